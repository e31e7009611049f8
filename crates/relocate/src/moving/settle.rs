//! Bringing the disk into the state of the journal, before anything else.
//!
//! An image that may be torn is written again. Each recorded window is judged separately: one with the right sum at its
//! place has arrived; any other, unreadable ones included, is written again from the journal's slot, or from its source
//! if that still has the sum. Nothing counts as right without proof: a disk that falsely confirmed a flush may have
//! lost a window and kept later ones, which overwrote its source.

use std::ops::Range;

use plumb_sys::AlignedBuffer;

use super::ahead::within;
use super::loss::{LossKind, LostRange, OnLoss, joined};
use super::read::{holds, read_around};
use super::windows::MoveWindow;
use super::{Move, MoveError};
use crate::disk::{Disk, JournalStore};
use crate::journal::{Image, JournalError, JournalRecord, PendingImage, Unproven, sum};
use crate::mutation::Mutation;

/// Data for a window that has not arrived.
enum FoundCopy {
    /// They have the noted sum.
    Right(AlignedBuffer),
    /// They have another one, or blocks that cannot be read.
    Doubtful(AlignedBuffer, Vec<Range<u64>>),
}

impl<D: Disk, J: JournalStore> Move<D, J> {
    /// Writes everything that may be torn, and finds the windows that arrived. A rollback needs only the windows that
    /// were written already.
    pub(super) fn settle(&mut self, turns_back: bool) -> Result<(), MoveError> {
        if let Some(pending) = self.state.pending.take() {
            return match self.journal.image(&pending.image) {
                // Written again, it could go elsewhere, when the partition may be in use already.
                Ok(bytes) if self.has_image(pending.at, &bytes)? => {
                    self.note_image(pending.at, &bytes)
                }
                Ok(bytes) => self.write_image(pending.at, &bytes),
                Err(error) => self.do_without_image(&pending, error),
            };
        }
        match self.state.unproven.take() {
            Some(unproven) => {
                let stops_early = turns_back && !self.script.is_back() && !unproven.is_saved;
                self.settle_windows(&unproven, stops_early)
            }
            None => Ok(()),
        }
    }

    /// Whether all blocks of an image are on the disk. A flush came before, so that they stay there.
    fn has_image(&mut self, at: u64, bytes: &[u8]) -> Result<bool, MoveError> {
        Ok(!self.mutations.has(Mutation::TwoWrites) && holds(&mut self.disk, at, bytes)?)
    }

    /// The slot does not have the batch any more, and the batch may be torn: the present content stays, and the wrong
    /// bytes in it cannot be identified.
    fn do_without_image(
        &mut self,
        pending: &PendingImage,
        error: JournalError,
    ) -> Result<(), MoveError> {
        let step = self.state.next;
        let (Some(window), Image::Slot { .. }) = (self.next_window(), &pending.image) else {
            return Err(error.into());
        };
        if self.on_loss == OnLoss::Stop {
            self.state.pending = Some(pending.clone());
            return Err(error.into());
        }
        let mut bytes = AlignedBuffer::new((window.moved.end - window.moved.start) as usize);
        let holes = read_around(&mut self.disk, window.moved.start, &mut bytes)?;
        if !holes.is_empty() {
            return Err(error.into());
        }
        let source = self.script.windows().source_of(&window.moved);
        let lost = vec![self.doubtful(&source)];
        self.must_be_accepted(self.loss_step(0), lost)?;
        let moved = sum(&[&bytes]);
        self.journal
            .append_durable(&JournalRecord::Written { step, moved })?;
        self.passed(&[moved]);
        Ok(())
    }

    fn settle_windows(&mut self, unproven: &Unproven, stops_early: bool) -> Result<(), MoveError> {
        let first = self.state.next;
        let windows: Vec<MoveWindow> = (first..first + unproven.sums.len() as u64)
            .filter_map(|step| self.script.straight_at(step))
            .collect();
        let mut has_arrived = Vec::new();
        for (window, expected) in windows.iter().zip(&unproven.sums) {
            has_arrived.push(self.has_arrived(window, *expected)?);
        }
        let last = has_arrived.iter().rposition(|arrived| *arrived);
        let end = match stops_early {
            true => last.map_or(0, |last| last + 1),
            false => windows.len(),
        };
        let missing: Vec<usize> = (0..end).filter(|index| !has_arrived[*index]).collect();
        let slot = match unproven.is_saved && !missing.is_empty() {
            true => Some(self.journal.slot_as_it_is(total_bytes(&windows))),
            false => None,
        };
        let base = windows.iter().map(|window| window.blocks.start).min();
        let (mut sums, mut lost) = (unproven.sums.clone(), Vec::new());
        for index in missing {
            let window = &windows[index];
            let saved = slot
                .as_ref()
                .map(|slot| &slot[within(base.unwrap_or_default(), &window.blocks)]);
            match self.copy_of(window, sums[index], saved)? {
                // It would overwrite the source of the unproven one.
                FoundCopy::Right(_) if !lost.is_empty() => {}
                FoundCopy::Right(bytes) => {
                    self.disk.writer().put(window.blocks.start, &bytes)?;
                }
                // The part that goes back is compared, and named, before.
                FoundCopy::Doubtful(..) if stops_early => {}
                FoundCopy::Doubtful(bytes, holes) => {
                    let source = self.script.windows().source_of(&window.moved);
                    let mut ranges = self.lost_in(&source, &holes);
                    ranges.push(self.doubtful(&source));
                    if self.on_loss == OnLoss::Stop {
                        lost.extend(ranges);
                        continue;
                    }
                    self.note_lost(self.loss_step(index as u64), joined(ranges))?;
                    sums[index] = sum(&[&bytes]);
                    self.note_again(first, index, &sums, unproven.is_saved)?;
                    self.disk.writer().put(window.blocks.start, &bytes)?;
                }
            }
        }
        if !lost.is_empty() {
            return Err(MoveError::Lost {
                ranges: joined(lost),
            });
        }
        self.state.next = first + end as u64;
        Ok(())
    }

    fn has_arrived(&mut self, window: &MoveWindow, expected: u64) -> Result<bool, MoveError> {
        let mut found = std::mem::take(&mut self.spare);
        found.resize((window.moved.end - window.moved.start) as usize);
        let holes = read_around(&mut self.disk, window.moved.start, &mut found)?;
        let is_right = holes.is_empty() && sum(&[&found]) == expected;
        self.spare = found;
        Ok(is_right || self.mutations.has(Mutation::NoSumCheck))
    }

    /// The data of a window that has not arrived: out of the journal, or from the source.
    fn copy_of(
        &mut self,
        window: &MoveWindow,
        expected: u64,
        saved: Option<&[u8]>,
    ) -> Result<FoundCopy, MoveError> {
        let mut bytes = AlignedBuffer::new((window.moved.end - window.moved.start) as usize);
        if let Some(saved) = saved.filter(|saved| sum(&[saved]) == expected) {
            bytes.copy_from_slice(saved);
            return Ok(FoundCopy::Right(bytes));
        }
        let source = self.script.windows().source_of(&window.moved);
        let holes = read_around(&mut self.disk, source.start, &mut bytes)?;
        // With zeros in the place of holes the sum is right if that is how it was noted.
        let is_right = sum(&[&bytes]) == expected || self.mutations.has(Mutation::NoSourceSum);
        Ok(match is_right {
            true => FoundCopy::Right(bytes),
            false => FoundCopy::Doubtful(bytes, holes),
        })
    }

    /// Windows from one of them on, with the sums of the present writes.
    fn note_again(
        &mut self,
        first: u64,
        index: usize,
        sums: &[u64],
        is_saved: bool,
    ) -> Result<(), MoveError> {
        let step = first + index as u64;
        let sums = sums[index..].to_vec();
        // The steps of this script follow each other, so that there is a place for each.
        let noted = self.state.note_moved(step, &sums);
        debug_assert_eq!(noted, Ok(()));
        Ok(self.journal.append_durable(&JournalRecord::Windows {
            step,
            is_saved,
            sums,
        })?)
    }

    /// All of a source.
    fn doubtful(&self, source: &Range<u64>) -> LostRange {
        let start = self.script.windows().place_of_source();
        LostRange {
            range: source.start - start..source.end - start,
            kind: LossKind::Doubtful,
        }
    }
}

fn total_bytes(windows: &[MoveWindow]) -> u64 {
    windows
        .iter()
        .map(|window| window.moved.end - window.moved.start)
        .sum()
}
