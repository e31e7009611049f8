//! Windows of data on their way, three ways.
//!
//! Straight ones are read together and their sums recorded; then each is written, and durable before the next one is
//! begun. Saved ones go into the journal's slot together, and then to their place, as one, if flushes cost more than
//! writing twice. A window that overlaps its own source, or shares blocks with others, is a separate image.

use std::ops::Range;
use std::time::Duration;

use plumb_sys::AlignedBuffer;

use super::ahead::{Due, Reading, within};
use super::loss::{LossKind, LostRange, joined};
use super::plan::Copying;
use super::read::{holes_in, read_around};
use super::windows::MoveWindow;
use super::{Move, MoveError};
use crate::disk::{Disk, JournalStore};
use crate::journal::{Image, Journal, JournalError, JournalRecord, sum};
use crate::mutation::Mutation;

/// While so much is written as much is read ahead: little enough that no flush waits for long behind the reads, and much
/// enough that starting them costs nothing. Simulated disks are small.
const RUN_BYTES: usize = if cfg!(test) { 8 << 10 } else { 8 << 20 };

/// Windows that are read at once, with their data.
struct WindowGroup {
    windows: Vec<MoveWindow>,
    /// The place of the first byte of the data.
    base: u64,
    data: AlignedBuffer,
    /// Of windows that are copied straight.
    sums: Vec<u64>,
}

/// The part of a window that one call writes.
struct WritePiece {
    blocks: Range<u64>,
    ends_window: bool,
}

impl WindowGroup {
    /// All windows, the long ones in pieces of at most this length.
    fn pieces(&self, most: u64) -> Vec<WritePiece> {
        let step = most as usize;
        let cut = |window: &MoveWindow| {
            let Range { start, end } = window.blocks;
            let piece = move |at| WritePiece {
                blocks: at..end.min(at + most),
                ends_window: at + most >= end,
            };
            (start..end).step_by(step).map(piece)
        };
        self.windows.iter().flat_map(cut).collect()
    }

    /// Tells the journal that the group is about to be written.
    fn note<J: JournalStore>(
        &self,
        journal: &mut Journal<J>,
        step: u64,
        is_saved: bool,
        is_late: bool,
    ) -> Result<(), JournalError> {
        journal.append(&JournalRecord::Windows {
            step,
            is_saved,
            sums: self.sums.clone(),
        })?;
        if is_late { Ok(()) } else { journal.sync() }
    }
}

impl<D: Disk, J: JournalStore> Move<D, J> {
    /// Copies the window of that number and those that are read with it.
    pub(super) fn copy(&mut self, index: u64) -> Result<(), MoveError> {
        let windows = self.script.windows().read_with(index);
        let Some(is_journalled) = windows.first().map(|first| first.is_journalled) else {
            return Ok(());
        };
        let reading = Reading::to_copy(self.script.windows(), &windows);
        let Due {
            bytes: data,
            sums,
            holes,
        } = self.data_of(&reading)?;
        self.must_accept_holes(&windows, &holes)?;
        let next = self
            .script
            .windows()
            .read_with(index + windows.len() as u64);
        if !next.is_empty() {
            self.read_ahead(Reading::to_copy(self.script.windows(), &next));
        }
        let group = WindowGroup {
            windows,
            base: reading.base(),
            data,
            sums,
        };
        let spare = match (is_journalled, group.windows.len() > 1 && self.pace.saves()) {
            (true, _) => self.image_of(group)?,
            (false, true) => self.saved(group)?,
            (false, false) => self.straight(group)?,
        };
        self.spare = spare;
        Ok(())
    }

    /// Records the losses of a group of windows because of an unreadable source. A window that was recorded before, and
    /// can be read now, has no loss any more.
    fn must_accept_holes(
        &mut self,
        windows: &[MoveWindow],
        holes: &[Range<u64>],
    ) -> Result<(), MoveError> {
        let lost = windows
            .iter()
            .map(|window| {
                let source = self.script.windows().source_of(&window.moved);
                self.lost_in(&source, &holes_in(holes, &source))
            })
            .collect::<Vec<_>>();
        for (behind, lost) in (0..).zip(lost) {
            let step = self.loss_step(behind);
            self.must_be_accepted(step, lost)?;
        }
        Ok(())
    }

    /// Holes in a source, as ranges of the partition.
    pub(super) fn lost_in(&self, source: &Range<u64>, holes: &[Range<u64>]) -> Vec<LostRange> {
        let start = self.script.windows().place_of_source();
        debug_assert!(start <= source.start);
        let lost = holes.iter().map(|hole| LostRange {
            range: hole.start - start..hole.end - start,
            kind: LossKind::Unreadable,
        });
        joined(lost.collect())
    }

    /// A window that overlaps its own source, or shares a block with others.
    fn image_of(&mut self, mut group: WindowGroup) -> Result<AlignedBuffer, MoveError> {
        let MoveWindow { blocks, moved, .. } = group.windows[0].clone();
        let mut lost = Vec::new();
        for side in [blocks.start..moved.start, moved.end..blocks.end] {
            if !side.is_empty() {
                let bytes = &mut group.data[within(blocks.start, &side)];
                let holes = read_around(&mut self.disk, side.start, bytes)?;
                lost.extend(self.fill_holes(&side, bytes, &holes, &moved)?);
            }
        }
        if !lost.is_empty() {
            let step = self.loss_step(0);
            lost.extend_from_slice(self.state.lost_by(step));
            self.must_be_accepted(step, joined(lost))?;
        }
        let (step, at, data) = (self.state.next, blocks.start, &group.data);
        let is_in_slot = matches!(self.state.plan.copying, Copying::Batches(_));
        // A torn write would spoil bytes that are nowhere else, and in no sum.
        let has_others = blocks != moved;
        self.meanwhile(2, |_, journal| {
            let image = if is_in_slot {
                journal.fill_slot(data)?;
                if has_others {
                    journal.must_have_slot(data)?;
                }
                Image::Slot {
                    len: data.len() as u64,
                    sum: sum(&[data]),
                }
            } else {
                Image::Inline(data.to_vec())
            };
            journal.append_durable(&JournalRecord::Image { step, at, image })
        })?;
        self.write_image(at, &group.data)?;
        Ok(group.data)
    }

    /// Windows that share no block with their own source, nor with any source of the windows to come.
    fn straight(&mut self, group: WindowGroup) -> Result<AlignedBuffer, MoveError> {
        let (step, count, began) = (self.state.next, group.windows.len(), self.disk.now());
        let has_barrier = !self.mutations.has(Mutation::NoBarrier);
        let has_late_sums = self.mutations.has(Mutation::LateSums);
        let unit = self.state.plan.unit;
        let pieces = group.pieces(unit.floor_len(RUN_BYTES as u64).max(unit.bytes));
        let run_pieces = pieces
            .len()
            .div_ceil(group.data.len().div_ceil(RUN_BYTES).max(1))
            .max(1);
        let runs = pieces.len().div_ceil(run_pieces);
        let mut flushing = Duration::ZERO;
        for (index, run) in pieces.chunks(run_pieces).enumerate() {
            flushing += self.meanwhile(runs - index, |disk, journal| {
                if index == 0 {
                    group.note(journal, step, false, has_late_sums)?;
                }
                run.iter().try_fold(Duration::ZERO, |flushing, piece| {
                    let bytes = &group.data[within(group.base, &piece.blocks)];
                    match has_barrier && piece.ends_window {
                        true => disk
                            .put(piece.blocks.start, bytes)
                            .map(|took| flushing + took),
                        false => disk.write(piece.blocks.start, bytes).map(|()| flushing),
                    }
                })
            })?;
        }
        let writing = self
            .disk
            .now()
            .duration_since(began)
            .saturating_sub(flushing);
        self.pace.took_straight(count as u32, writing, flushing);
        self.passed(&group.sums);
        Ok(group.data)
    }

    /// The same as one, with all of it in the journal first.
    fn saved(&mut self, group: WindowGroup) -> Result<AlignedBuffer, MoveError> {
        let (step, began) = (self.state.next, self.disk.now());
        self.meanwhile(2, |_, journal| {
            journal.fill_slot(&group.data)?;
            group.note(journal, step, true, false)
        })?;
        let has_barrier = !self.mutations.has(Mutation::NoSlotBarrier);
        self.meanwhile(1, |disk, _| match has_barrier {
            true => disk.put(group.base, &group.data).map(|_| ()),
            false => disk.write(group.base, &group.data),
        })?;
        self.pace.took_saved(
            group.sums.len() as u32,
            self.disk.now().duration_since(began),
        );
        self.passed(&group.sums);
        Ok(group.data)
    }
}
