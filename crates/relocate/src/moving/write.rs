//! Everything that a move writes to its disk is written here, and only in places that the plan names.
//!
//! Steps of a few bytes are carried out here as well. An *image* goes into the journal first, is durable there, is
//! written, flushed, and noted as written; nothing of the next step is written before that. Windows of data have ways of
//! their own.

use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

use plumb_sys::AlignedBuffer;

use super::edit::{self, Edit};
use super::plan::Plan;
use super::read::{read_around, read_into};
use super::script::Action;
use super::windows::MoveWindow;
use super::{Move, MoveError};
use crate::disk::{Disk, JournalStore};
use crate::journal::{Image, JournalRecord, sum};
use crate::mutation::Mutation;

/// The disk of a move: anybody reads it, and only this file can write to it.
pub(super) struct TargetDisk<D> {
    disk: D,
    /// The writable ranges of the plan: whole units, in order, apart from each other.
    own: Vec<Range<u64>>,
}

/// The writer to the disk of a move.
pub(super) struct DiskWriter<'a, D> {
    disk: &'a mut D,
    own: &'a [Range<u64>],
}

impl<D: Disk> TargetDisk<D> {
    pub(super) fn new(disk: D, plan: &Plan) -> Self {
        Self {
            disk,
            own: places(plan),
        }
    }

    pub(super) fn logical_block_bytes(&self) -> u32 {
        self.disk.logical_block_bytes()
    }

    pub(super) fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.disk.read_at(at, buffer)
    }

    /// As [`Disk::read_while`]; the work can write.
    pub(super) fn read_while<T>(
        &mut self,
        at: u64,
        buffer: &mut [u8],
        work: impl FnOnce(&mut DiskWriter<'_, D>) -> T,
    ) -> (T, io::Result<()>) {
        let Self { disk, own } = self;
        disk.read_while(at, buffer, |disk| work(&mut DiskWriter { disk, own }))
    }

    pub(super) fn flush(&mut self) -> Result<(), MoveError> {
        self.disk
            .flush()
            .map_err(|source| MoveError::Flush { source })
    }

    pub(super) fn now(&self) -> Instant {
        self.disk.now()
    }

    pub(super) fn writer(&mut self) -> DiskWriter<'_, D> {
        let Self { disk, own } = self;
        DiskWriter { disk, own }
    }
}

impl<D: Disk> DiskWriter<'_, D> {
    /// Writes, and returns when that is durable; how long the flush took.
    pub(super) fn put(&mut self, at: u64, bytes: &[u8]) -> Result<Duration, MoveError> {
        self.write(at, bytes)?;
        let written = self.disk.now();
        self.disk
            .flush()
            .map_err(|source| MoveError::Flush { source })?;
        Ok(self.disk.now().duration_since(written))
    }

    /// Writes data that need not be durable on return.
    ///
    /// # Errors
    /// [`MoveError::Elsewhere`] for a place that is not the plan's, before anything is written: the journal can say
    /// anything, and so can a mistake in this crate.
    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), MoveError> {
        let len = bytes.len() as u64;
        let end = at.saturating_add(len);
        let is_own = |place: &Range<u64>| place.start <= at && end <= place.end;
        if !self.own.iter().any(is_own) {
            return Err(MoveError::Elsewhere { at, len });
        }
        self.disk
            .write_at(at, bytes)
            .map_err(|source| MoveError::Write { at, len, source })
    }
}

/// The places of a plan; those that touch are one.
fn places(plan: &Plan) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = plan.places().into_iter().map(|place| place.range).collect();
    ranges.sort_by_key(|range| range.start);
    let mut own: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match own.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => own.push(range),
        }
    }
    own
}

impl<D: Disk, J: JournalStore> Move<D, J> {
    pub(super) fn perform(&mut self, action: &Action) -> Result<(), MoveError> {
        if let Action::Window(index) = action {
            return self.copy(*index);
        }
        match edit::for_action(&self.state.plan, &self.state.saved, action) {
            Some(edit) => self.edit(&edit),
            None => Ok(()),
        }
    }

    /// A few bytes, with all else of their blocks as it is.
    fn edit(&mut self, edit: &Edit) -> Result<(), MoveError> {
        let blocks = edit.blocks(&self.state.plan);
        let mut buffer = AlignedBuffer::new((blocks.end - blocks.start) as usize);
        let holes = read_around(&mut self.disk, blocks.start, &mut buffer)?;
        let own = edit.at..edit.at + edit.bytes.len() as u64;
        let start = (edit.at - blocks.start) as usize;
        let found = &mut buffer[start..start + edit.bytes.len()];
        if !edit.fits(found, &holes) && !self.is_lost(&own) {
            return Err(MoveError::Changed { at: edit.at });
        }
        found.copy_from_slice(&edit.bytes);
        let lost = self.fill_holes(&blocks, &mut buffer, &holes, &own)?;
        self.must_be_accepted(self.loss_step(0), lost)?;
        let (step, at, image) = (
            self.state.next,
            blocks.start,
            Image::Inline(buffer.to_vec()),
        );
        self.journal
            .append_durable(&JournalRecord::Image { step, at, image })?;
        self.state.record_blocks(at, &buffer);
        self.write_image(at, &buffer)
    }

    /// Writes an image that the journal has. The journal records it only after it is durable.
    pub(super) fn write_image(&mut self, at: u64, bytes: &[u8]) -> Result<(), MoveError> {
        self.meanwhile(1, |disk, _| disk.put(at, bytes))?;
        // The sums of windows are compared at the end; bytes of neighbours are in no sum.
        let has_only_own = |window: &MoveWindow| window.moved == window.blocks;
        if !self.next_window().as_ref().is_some_and(has_only_own) {
            self.must_have_arrived(at, bytes)?;
        }
        self.note_image(at, bytes)
    }

    /// Records that an image is on the disk.
    pub(super) fn note_image(&mut self, at: u64, bytes: &[u8]) -> Result<(), MoveError> {
        let moved = self.next_window().map_or(0, |window| {
            let (start, end) = (
                (window.moved.start - at) as usize,
                (window.moved.end - at) as usize,
            );
            bytes.get(start..end).map_or(0, |moved| sum(&[moved]))
        });
        let step = self.state.next;
        self.journal
            .append_durable(&JournalRecord::Written { step, moved })?;
        self.passed(&[moved]);
        Ok(())
    }

    /// The window that the next step writes, if it writes one.
    pub(super) fn next_window(&self) -> Option<MoveWindow> {
        let index = self.script.window_at(self.state.next)?;
        self.script.windows().get(index)
    }

    /// Most windows are read again together, and bytes that are written with those of others at once.
    pub(super) fn must_have_arrived(&mut self, at: u64, bytes: &[u8]) -> Result<(), MoveError> {
        let mut found = AlignedBuffer::new(bytes.len());
        read_into(&mut self.disk, at, &mut found)?;
        if *found == *bytes || self.mutations.has(Mutation::NoArrival) {
            Ok(())
        } else {
            Err(MoveError::NotAsWritten {
                at,
                len: bytes.len() as u64,
            })
        }
    }

    /// Steps are done; for windows these are the sums of their data.
    pub(super) fn passed(&mut self, sums: &[u64]) {
        // The steps of this script follow each other, so that there is a place for each.
        let noted = self.state.note_moved(self.state.next, sums);
        debug_assert_eq!(noted, Ok(()));
        self.state.next += sums.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::*;
    use crate::sim::memory_disk::MemoryDisk;

    /// Sectors 40 to 59 go to 100: the units from 40 to 63 and from 96 to 119 are written, and no other sector.
    #[test]
    fn only_places_of_the_plan_are_written() {
        let plan = plan(40 * 512, 100 * 512, 20 * 512);
        let mut bytes = vec![0; 2 << 20];
        let mut disk = TargetDisk::new(MemoryDisk(&mut bytes), &plan);
        for sector in 0..200 {
            let is_own = (40..64).contains(&sector) || (96..120).contains(&sector);
            let written = disk.writer().write(sector * 512, &[7; 512]);
            match written {
                Ok(()) => assert!(is_own, "sector {sector}"),
                Err(MoveError::Elsewhere { at, len }) => {
                    assert!(!is_own, "sector {sector}");
                    assert_eq!((at, len), (sector * 512, 512));
                }
                Err(error) => panic!("{error}"),
            }
            let byte = disk.disk.0[sector as usize * 512];
            assert_eq!(byte == 7, is_own, "sector {sector}");
        }
        // One write must not begin in a place and end behind it, nor span two of them.
        for (at, sectors) in [(60, 5), (40, 80), (39, 2)] {
            let refused = disk.writer().put(at * 512, &vec![7; sectors * 512]);
            assert!(matches!(refused, Err(MoveError::Elsewhere { .. })), "{at}");
        }
    }
}
