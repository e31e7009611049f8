//! Repeats writes that did not stay.

use std::ops::Range;

use plumb_sys::AlignedBuffer;

use super::ahead::within;
use super::loss::{LostRange, covers};
use super::plan::meet;
use super::read::{common, holes_in, is_of_medium, read_around, read_into};
use super::script::{Action, PartitionPlace};
use super::windows::MoveWindow;
use super::{Move, MoveError, Stage};
use crate::PartOffset;
use crate::disk::{Disk, JournalStore};
use crate::journal::{JournalRecord, sum};
use crate::mutation::Mutation;

/// Edges are no longer: of a window that goes through the journal no more is written again.
const UNITS_MAX: u64 = 2;
/// How often the disk is asked to write a bad block.
const RESTORES_MAX: u32 = 2;

impl<D: Disk, J: JournalStore> Move<D, J> {
    /// Writes a window of the move again, if its source still has the data. A crash in between destroys neither: no
    /// window overlaps its own source, and units shared with others go through the journal.
    pub(super) fn rewrite(
        &mut self,
        window: &MoveWindow,
        expected: u64,
    ) -> Result<bool, MoveError> {
        let source = self.forward.source_of(&window.moved);
        let mut bytes = AlignedBuffer::new((source.end - source.start) as usize);
        let holes = read_around(&mut self.disk, source.start, &mut bytes)?;
        self.hide_again(PartitionPlace::Old, source.start, &mut bytes);
        if !holes.is_empty() || sum(&[&bytes]) != expected {
            return Ok(false);
        }
        if !window.is_journalled {
            self.disk.writer().put(window.moved.start, &bytes)?;
            self.must_have_arrived(window.moved.start, &bytes)?;
            return Ok(true);
        }
        let unit = self.state.plan.unit;
        if window.blocks.end - window.blocks.start > UNITS_MAX * unit.bytes {
            return Ok(false);
        }
        for blocks in self.units(&window.blocks) {
            let Some(part) = common(&window.moved, &blocks) else {
                continue;
            };
            let mut unit = self.unit_around(&blocks, &part)?;
            unit[within(blocks.start, &part)]
                .copy_from_slice(&bytes[within(window.moved.start, &part)]);
            self.write_all_of_unit(&blocks, &unit)?;
        }
        Ok(true)
    }

    /// Fills blocks of a window that cannot be read, where a part of the label, signatures or fix-ups has come back already and
    /// the window must not be written as a whole. `false` if its source does not have the data any more, or the rest of it is
    /// not right either.
    pub(super) fn refill(
        &mut self,
        window: &MoveWindow,
        expected: u64,
        holes: &[Range<u64>],
    ) -> Result<bool, MoveError> {
        let source = self.forward.source_of(&window.moved);
        let mut bytes = AlignedBuffer::new((source.end - source.start) as usize);
        let of_source = read_around(&mut self.disk, source.start, &mut bytes)?;
        self.hide_again(PartitionPlace::Old, source.start, &mut bytes);
        if holes.is_empty() || !of_source.is_empty() || sum(&[&bytes]) != expected {
            return Ok(false);
        }
        self.fix_up(window.moved.start, &mut bytes);
        let blocks = self.blocks_of(holes);
        self.write_blocks(&window.moved, Some(&bytes), &blocks)?;
        let mut found = AlignedBuffer::new(bytes.len());
        read_into(&mut self.disk, window.moved.start, &mut found)?;
        self.lay_pending(window.moved.start, &mut found, Vec::new());
        self.hide_again(PartitionPlace::New, window.moved.start, &mut found);
        Ok(sum(&[&found]) == expected)
    }

    /// Puts into bytes of the new place the fix-ups that were written by now.
    fn fix_up(&self, at: u64, bytes: &mut [u8]) {
        let plan = &self.state.plan;
        let here = at..at + bytes.len() as u64;
        for action in self.script.edits_before(self.state.next) {
            let Action::FixUp { index, undo: false } = action else {
                continue;
            };
            let change = &plan.fix_ups[*index];
            let fixed = change.range_on_disk(plan.to);
            if let Some(part) = common(&fixed, &here) {
                bytes[within(at, &part)].copy_from_slice(&change.new[within(fixed.start, &part)]);
            }
        }
    }

    /// Writes the bad blocks of a window at its old place again, if the new place still has all its bytes. `false` if the window
    /// stays wrong.
    pub(super) fn restore(
        &mut self,
        window: &MoveWindow,
        expected: u64,
    ) -> Result<bool, MoveError> {
        let Some(copy) = self.copy_of_old(window, expected)? else {
            return Ok(false);
        };
        let place = self.forward.source_of(&window.moved);
        for _ in 0..RESTORES_MAX {
            let (found, holes) = self.found_at(PartitionPlace::Old, &place)?;
            let holes = self.but_as_they_were(&holes);
            if sum(&[&found]) == expected && holes.is_empty() {
                return Ok(true);
            }
            let mut bad = self.blocks_of(std::slice::from_ref(&place));
            bad.retain(|block| {
                let part = within(place.start, block);
                found[part.clone()] != copy[part] || !holes_in(&holes, block).is_empty()
            });
            let bad = self.but_kept(bad);
            if bad.is_empty() {
                return Ok(false);
            }
            let (alone, shared): (Vec<_>, Vec<_>) = bad
                .into_iter()
                .partition(|block| self.is_alone(block, &place));
            self.write_straight(&place, &copy, &alone)?;
            self.write_blocks(&place, Some(&copy), &shared)?;
        }
        let (found, holes) = self.found_at(PartitionPlace::Old, &place)?;
        let is_right = sum(&[&found]) == expected && self.but_as_they_were(&holes).is_empty();
        if !is_right {
            self.checks.give_up();
        }
        Ok(is_right)
    }

    /// The bytes of a window at its new place, as they were copied; `None` if not all of them are there.
    pub(super) fn copy_of_old(
        &mut self,
        window: &MoveWindow,
        expected: u64,
    ) -> Result<Option<AlignedBuffer>, MoveError> {
        let (copy, holes) = self.found_at(PartitionPlace::New, &window.moved)?;
        let is_right = holes.is_empty() && sum(&[&copy]) == expected;
        Ok(is_right.then_some(copy))
    }

    /// Bytes of a place as they were during the copy, with zeros in blocks that cannot be read, and these blocks.
    pub(super) fn found_at(
        &mut self,
        place: PartitionPlace,
        range: &Range<u64>,
    ) -> Result<(AlignedBuffer, Vec<Range<u64>>), MoveError> {
        let mut bytes = AlignedBuffer::new((range.end - range.start) as usize);
        let holes = read_around(&mut self.disk, range.start, &mut bytes)?;
        let holes = self.lay_pending(range.start, &mut bytes, holes);
        self.hide_again(place, range.start, &mut bytes);
        Ok((bytes, holes))
    }

    /// Whether the unit of a block has bytes of that place alone, and none of a signature. If a crash tears it, the bytes are at the
    /// other place, and the comparison begins again.
    fn is_alone(&self, block: &Range<u64>, place: &Range<u64>) -> bool {
        let plan = &self.state.plan;
        let unit = plan.unit.cover(block, plan.disk_bytes);
        let mut signatures = plan.signatures.iter();
        common(&unit, place).as_ref() == Some(&unit)
            && !signatures.any(|range| meet(&plan.from.of_partition(range), &unit))
    }

    /// Writes whole units of a window at its old place without an image in the journal. Units that the disk cannot write stay
    /// as they are.
    fn write_straight(
        &mut self,
        place: &Range<u64>,
        copy: &[u8],
        blocks: &[Range<u64>],
    ) -> Result<(), MoveError> {
        let plan = &self.state.plan;
        let mut runs: Vec<Range<u64>> = Vec::new();
        for block in blocks {
            let unit = plan.unit.cover(block, plan.disk_bytes);
            match runs.last_mut() {
                Some(run) if unit.start <= run.end => run.end = unit.end,
                _ => runs.push(unit),
            }
        }
        for run in runs {
            if !self.can_put(&run, &copy[within(place.start, &run)])? {
                for unit in self.units(&run) {
                    self.can_put(&unit, &copy[within(place.start, &unit)])?;
                }
            }
            let mut found = AlignedBuffer::new((run.end - run.start) as usize);
            let holes = read_around(&mut self.disk, run.start, &mut found)?;
            if !holes.is_empty() || *found != copy[within(place.start, &run)] {
                self.checks.has_missed();
            }
        }
        Ok(())
    }

    /// Writes blocks. `false` if the medium failed.
    fn can_put(&mut self, blocks: &Range<u64>, bytes: &[u8]) -> Result<bool, MoveError> {
        let mut buffer = AlignedBuffer::new(bytes.len());
        buffer.copy_from_slice(bytes);
        match self.disk.writer().put(blocks.start, &buffer) {
            Ok(_) => Ok(true),
            Err(MoveError::Write { source, .. }) if is_of_medium(&source) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes zeros where a place of the partition cannot be read; signatures are in the journal.
    pub(super) fn mend_holes(
        &mut self,
        place: &Range<u64>,
        holes: &[Range<u64>],
    ) -> Result<(), MoveError> {
        let blocks = self.blocks_of(holes);
        self.write_blocks(place, None, &blocks)
    }

    /// The same at the old place, but for the blocks that the move found unreadable there.
    pub(super) fn mend_old_holes(
        &mut self,
        place: &Range<u64>,
        holes: &[Range<u64>],
    ) -> Result<(), MoveError> {
        let blocks = self.but_kept(self.blocks_of(holes));
        self.write_blocks(place, None, &blocks)
    }

    /// Blocks but for those that share a unit with a block that the move found unreadable at the old place: a tool that
    /// rescues data may still get something out of that one, and nothing is written to its unit.
    fn but_kept(&self, mut blocks: Vec<Range<u64>>) -> Vec<Range<u64>> {
        if self.mutations.has(Mutation::OldBlocksMended) {
            return blocks;
        }
        let plan = &self.state.plan;
        blocks.retain(|block| {
            let unit = plan.unit.cover(block, plan.disk_bytes);
            let all = self.blocks_of(std::slice::from_ref(&unit));
            !all.iter().any(|block| self.is_as_it_was(block))
        });
        blocks
    }

    /// Blocks of the old place but for those that the move found unreadable there.
    pub(super) fn but_as_they_were(&self, holes: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut blocks = self.blocks_of(holes);
        blocks.retain(|block| !self.is_as_it_was(block));
        blocks
    }

    /// Whether a block of the disk is one that the move found unreadable at the old place, and that stays so.
    fn is_as_it_was(&self, block: &Range<u64>) -> bool {
        let offset = self.state.plan.from.offset_of(block.start);
        offset.is_some_and(|PartOffset(start)| {
            let range = start..start + (block.end - block.start);
            self.state.is_as_it_was(&range)
        })
    }

    /// The logical blocks of ranges that consist of them.
    fn blocks_of(&self, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        let block = u64::from(self.state.plan.logical_block_bytes);
        let all = ranges
            .iter()
            .flat_map(|range| range.clone().step_by(block as usize));
        all.map(|at| at..at + block).collect()
    }

    /// Writes blocks of a place of the partition again, unit by unit, with an image of each in the journal. `bytes` are those of
    /// the place during the copy; without them, blocks that cannot be read now become zeros. Signatures become those of this
    /// step. Blocks stay as they are if the disk cannot write them, if the journal has no room for another image, or beside
    /// bytes of a neighbour that cannot be read.
    fn write_blocks(
        &mut self,
        place: &Range<u64>,
        bytes: Option<&[u8]>,
        blocks: &[Range<u64>],
    ) -> Result<(), MoveError> {
        let Some((first, last)) = blocks.first().zip(blocks.last()) else {
            return Ok(());
        };
        for unit in self.units(&(first.start..last.end)) {
            let Some(own) = common(place, &unit) else {
                continue;
            };
            let mut found = AlignedBuffer::new((unit.end - unit.start) as usize);
            let holes = read_around(&mut self.disk, unit.start, &mut found)?;
            let mut here = blocks.to_vec();
            here.retain(|block| {
                let is_due = bytes.is_some() || !holes_in(&holes, block).is_empty();
                unit.contains(&block.start) && is_due
            });
            if here.is_empty() || !self.has_room_for_image() {
                continue;
            }
            match self.fill_around(&unit, &mut found, &holes, &here) {
                Err(MoveError::Bystander { .. }) => continue,
                filled => filled?,
            }
            for block in &here {
                let signature = self.signature_bytes(block);
                let written = &mut found[within(unit.start, block)];
                match (&signature, bytes) {
                    (Some(signature), _) => written.copy_from_slice(signature),
                    (None, Some(bytes)) => {
                        written.copy_from_slice(&bytes[within(place.start, block)]);
                    }
                    (None, None) => written.fill(0),
                }
            }
            let holes = self.write_unit(&unit, &found)?;
            if !holes.is_empty() {
                self.checks.has_missed();
            }
            let lost = self.lost_in_unit(&unit, &holes, &own)?;
            self.must_be_accepted_for_good(lost)?;
        }
        Ok(())
    }

    /// Writes blocks of one unit, with all else of it as it is.
    pub(super) fn write_within(&mut self, at: u64, bytes: &[u8]) -> Result<(), MoveError> {
        let own = at..at + bytes.len() as u64;
        let plan = &self.state.plan;
        let blocks = plan.unit.cover(&own, plan.disk_bytes);
        let mut unit = self.unit_around(&blocks, &own)?;
        unit[within(blocks.start, &own)].copy_from_slice(bytes);
        self.write_all_of_unit(&blocks, &unit)
    }

    /// The units that contain bytes of a range.
    fn units(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let plan = &self.state.plan;
        let mut units = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let blocks = plan.unit.cover(&(at..at + 1), plan.disk_bytes);
            at = blocks.end;
            units.push(blocks);
        }
        units
    }

    /// A unit as it is, for a write of its `own` bytes.
    fn unit_around(
        &mut self,
        blocks: &Range<u64>,
        own: &Range<u64>,
    ) -> Result<AlignedBuffer, MoveError> {
        let mut unit = AlignedBuffer::new((blocks.end - blocks.start) as usize);
        let holes = read_around(&mut self.disk, blocks.start, &mut unit)?;
        self.fill_around(blocks, &mut unit, &holes, std::slice::from_ref(own))?;
        Ok(unit)
    }

    /// Fills unreadable blocks of a unit beside those that will be written. Bytes of the partition come from their copies; without
    /// one they are lost as soon as the unit is written.
    fn fill_around(
        &mut self,
        blocks: &Range<u64>,
        unit: &mut [u8],
        holes: &[Range<u64>],
        written: &[Range<u64>],
    ) -> Result<(), MoveError> {
        let mut left = self.blocks_of(holes);
        left.retain(|hole| {
            let covers = |written: &Range<u64>| common(written, hole).as_ref() == Some(hole);
            !written.iter().any(covers)
        });
        if self.script.is_back() && self.script.stage(self.state.next) == Stage::Finishing {
            for hole in std::mem::take(&mut left) {
                match self.copied(&hole)? {
                    Some(bytes) => unit[within(blocks.start, &hole)].copy_from_slice(&bytes),
                    None => left.push(hole),
                }
            }
        }
        let lost = self.fill_holes(blocks, unit, &left, &(blocks.start..blocks.start))?;
        self.must_be_accepted_for_good(lost)
    }

    /// The bytes of a block of the old place, from its window at the new place, if all of that is there.
    fn copied(&mut self, block: &Range<u64>) -> Result<Option<Vec<u8>>, MoveError> {
        if let Some(bytes) = self.signature_bytes(block) {
            return Ok(Some(bytes));
        }
        let plan = &self.state.plan;
        let Some(PartOffset(offset)) = plan.from.offset_of(block.start) else {
            return Ok(None);
        };
        let here = plan
            .to
            .of_partition(&(offset..offset + (block.end - block.start)));
        let windows = self.state.moved.iter().zip(0..);
        let found = windows.filter_map(|(expected, index)| {
            let window = self.forward.get(index)?;
            let has_it = common(&here, &window.moved).as_ref() == Some(&here);
            has_it.then_some((window, *expected))
        });
        let Some((window, expected)) = found.last() else {
            return Ok(None);
        };
        let copy = self.copy_of_old(&window, expected)?;
        Ok(copy.map(|copy| copy[within(window.moved.start, &here)].to_vec()))
    }

    /// Unreadable bytes of the partition in a unit, but for `own` ones.
    ///
    /// # Errors
    /// When somebody else would lose something.
    fn lost_in_unit(
        &self,
        blocks: &Range<u64>,
        holes: &[Range<u64>],
        own: &Range<u64>,
    ) -> Result<Vec<LostRange>, MoveError> {
        let mut scratch = vec![0; (blocks.end - blocks.start) as usize];
        self.fill_holes(blocks, &mut scratch, holes, own)
    }

    /// Losses that no later step takes back.
    fn must_be_accepted_for_good(&mut self, lost: Vec<LostRange>) -> Result<(), MoveError> {
        match lost.is_empty() {
            true => Ok(()),
            false => self.must_be_accepted(self.kept_step(), lost),
        }
    }

    /// Whether the journal keeps room for its other records if a unit is written again.
    fn has_room_for_image(&self) -> bool {
        let images = self.state.mends + 1;
        self.journal
            .has_room_for_images(images, self.state.plan.unit.bytes)
    }

    /// Writes all of a unit again; the journal has its image in the meantime.
    fn write_all_of_unit(
        &mut self,
        blocks: &Range<u64>,
        unit: &AlignedBuffer,
    ) -> Result<(), MoveError> {
        let holes = self.write_unit(blocks, unit)?;
        match holes.is_empty() {
            true => Ok(()),
            false => Err(MoveError::NotAsWritten {
                at: blocks.start,
                len: blocks.end - blocks.start,
            }),
        }
    }

    /// Writes one unit; the journal has its image in the meantime. Blocks that cannot be read afterwards are the answer.
    fn write_unit(
        &mut self,
        blocks: &Range<u64>,
        unit: &AlignedBuffer,
    ) -> Result<Vec<Range<u64>>, MoveError> {
        if !self.mutations.has(Mutation::NoMendImage) {
            self.journal.append_durable(&JournalRecord::Mend {
                at: blocks.start,
                bytes: unit.to_vec(),
            })?;
            self.state.mends += 1;
        }
        self.put_unit(blocks, unit)
    }

    /// Writes a unit whose image is the last record of the journal. Blocks that cannot be read afterwards are the answer.
    ///
    /// # Errors
    /// When other bytes can be read, and when the disk has gone.
    fn put_unit(&mut self, blocks: &Range<u64>, unit: &[u8]) -> Result<Vec<Range<u64>>, MoveError> {
        self.can_put(blocks, unit)?;
        let mut found = AlignedBuffer::new(unit.len());
        let holes = read_around(&mut self.disk, blocks.start, &mut found)?;
        for hole in &holes {
            let hole = within(blocks.start, hole);
            found[hole.clone()].copy_from_slice(&unit[hole]);
        }
        match *found == *unit || self.mutations.has(Mutation::NoArrival) {
            true => Ok(holes),
            false => Err(MoveError::NotAsWritten {
                at: blocks.start,
                len: blocks.end - blocks.start,
            }),
        }
    }

    /// Writes the unit that may be torn since it was being written again. It has to be done before anything is appended to
    /// the journal: the record that follows stands for it. Before a move turns back, bytes of the new place need not be there:
    /// those that go back are compared.
    pub(super) fn settle_mend(&mut self, turns_back: bool) -> Result<(), MoveError> {
        let Some(mend) = self.state.mend.take() else {
            return Ok(());
        };
        let blocks = mend.at..mend.at + mend.bytes.len() as u64;
        let holes = self.put_unit(&blocks, &mend.bytes)?;
        let mut lost = self.lost_in_unit(&blocks, &holes, &(blocks.start..blocks.start))?;
        // They were not written, and stay with their step.
        let noted = self.state.lost();
        lost.retain(|lost| !covers(&noted, &lost.range));
        let is_hiding = self.script.stage(self.state.next) == Stage::Hiding;
        if turns_back && !self.script.is_back() && !is_hiding {
            return Ok(());
        }
        self.must_be_accepted_for_good(lost)
    }
}
