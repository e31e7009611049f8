//! Repeats writes that did not stay.

use std::ops::Range;

use plumb_sys::AlignedBuffer;

use super::ahead::within;
use super::loss::joined;
use super::read::{common, holes_in, read_around, read_into};
use super::script::{Action, Place};
use super::windows::Window;
use super::{Move, MoveError};
use crate::PartOffset;
use crate::disk::{Disk, JournalStore};
use crate::journal::{JournalRecord, sum};
use crate::mutation::Mutation;

/// Edges are no longer: of a window that goes through the journal no more is written again.
const UNITS_MAX: u64 = 2;

impl<D: Disk, J: JournalStore> Move<D, J> {
    /// Writes a window of the move again, if its source still has the data. A crash in between destroys neither: no
    /// window overlaps its own source, and units shared with others go through the journal.
    pub(super) fn rewrite(&mut self, window: &Window, expected: u64) -> Result<bool, MoveError> {
        let source = self.forward.source_of(&window.moved);
        let mut bytes = AlignedBuffer::new((source.end - source.start) as usize);
        let holes = read_around(&mut self.disk, source.start, &mut bytes)?;
        self.hide_again(Place::Old, source.start, &mut bytes);
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
            self.write_unit(&blocks, &unit)?;
        }
        Ok(true)
    }

    /// Fills blocks of a window that cannot be read, where a part of the label, signatures or fix-ups has come back already and
    /// the window must not be written as a whole. `false` if its source does not have the data any more, or the rest of it is
    /// not right either.
    pub(super) fn refill(
        &mut self,
        window: &Window,
        expected: u64,
        holes: &[Range<u64>],
    ) -> Result<bool, MoveError> {
        let source = self.forward.source_of(&window.moved);
        let mut bytes = AlignedBuffer::new((source.end - source.start) as usize);
        let of_source = read_around(&mut self.disk, source.start, &mut bytes)?;
        self.hide_again(Place::Old, source.start, &mut bytes);
        if holes.is_empty() || !of_source.is_empty() || sum(&[&bytes]) != expected {
            return Ok(false);
        }
        self.fix_up(window.moved.start, &mut bytes);
        let blocks = self.blocks_of(holes);
        self.write_blocks(&window.moved, &bytes, &blocks)?;
        let mut found = AlignedBuffer::new(bytes.len());
        read_into(&mut self.disk, window.moved.start, &mut found)?;
        self.hide_again(Place::New, window.moved.start, &mut found);
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

    /// Writes the bad blocks of a window at its old place again, if the new place still has all its bytes. `found` are the
    /// bytes of the old place as they were during the copy, with zeros in `holes`. `false` if the window stays wrong.
    pub(super) fn restore(
        &mut self,
        window: &Window,
        expected: u64,
        found: &[u8],
        holes: &[Range<u64>],
    ) -> Result<bool, MoveError> {
        let mut copy = AlignedBuffer::new(found.len());
        let of_copy = read_around(&mut self.disk, window.moved.start, &mut copy)?;
        let of_copy = self.lay_pending(window.moved.start, &mut copy, of_copy);
        self.hide_again(Place::New, window.moved.start, &mut copy);
        if !of_copy.is_empty() || sum(&[&copy]) != expected {
            return Ok(false);
        }
        let place = self.forward.source_of(&window.moved);
        let mut bad = self.blocks_of(std::slice::from_ref(&place));
        bad.retain(|block| {
            let part = within(place.start, block);
            found[part.clone()] != copy[part] || !holes_in(holes, block).is_empty()
        });
        let bad = self.but_kept(bad);
        self.write_blocks(&place, &copy, &bad)?;
        let mut found = AlignedBuffer::new(copy.len());
        read_around(&mut self.disk, place.start, &mut found)?;
        self.hide_again(Place::Old, place.start, &mut found);
        Ok(sum(&[&found]) == expected)
    }

    /// Writes zeros where a place of the partition cannot be read; signatures are in the journal.
    pub(super) fn mend_holes(
        &mut self,
        place: &Range<u64>,
        holes: &[Range<u64>],
    ) -> Result<(), MoveError> {
        let zeros = vec![0; (place.end - place.start) as usize];
        let blocks = self.blocks_of(holes);
        self.write_blocks(place, &zeros, &blocks)
    }

    /// The same at the old place, but for the blocks that the move found unreadable there.
    pub(super) fn mend_old_holes(
        &mut self,
        place: &Range<u64>,
        holes: &[Range<u64>],
    ) -> Result<(), MoveError> {
        let zeros = vec![0; (place.end - place.start) as usize];
        let blocks = self.but_kept(self.blocks_of(holes));
        self.write_blocks(place, &zeros, &blocks)
    }

    /// Blocks but for those that share a unit with a block that the move found unreadable at the old place: a tool that
    /// rescues data may still get something out of that one, and nothing is written to its unit.
    fn but_kept(&self, mut blocks: Vec<Range<u64>>) -> Vec<Range<u64>> {
        if self.mutations.has(Mutation::OldBlocksMended) {
            return blocks;
        }
        let plan = &self.state.plan;
        let is_kept = |block: &Range<u64>| {
            let PartOffset(start) = plan.from.offset_of(block.start)?;
            let range = start..start + (block.end - block.start);
            Some(self.state.is_as_it_was(&range))
        };
        blocks.retain(|block| {
            let unit = plan.unit.cover(block, plan.disk_bytes);
            let mut all = self.blocks_of(std::slice::from_ref(&unit)).into_iter();
            !all.any(|block| is_kept(&block) == Some(true))
        });
        blocks
    }

    /// The logical blocks of ranges that consist of them.
    fn blocks_of(&self, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        let block = u64::from(self.state.plan.logical_block_bytes);
        let all = ranges
            .iter()
            .flat_map(|range| range.clone().step_by(block as usize));
        all.map(|at| at..at + block).collect()
    }

    /// Writes blocks of a place of the partition again, unit by unit. `bytes` are those of the place during the copy; signatures
    /// become what they have to be at this step.
    fn write_blocks(
        &mut self,
        place: &Range<u64>,
        bytes: &[u8],
        blocks: &[Range<u64>],
    ) -> Result<(), MoveError> {
        let Some((first, last)) = blocks.first().zip(blocks.last()) else {
            return Ok(());
        };
        for unit in self.units(&(first.start..last.end)) {
            let Some(own) = common(place, &unit) else {
                continue;
            };
            let here: Vec<&Range<u64>> = blocks
                .iter()
                .filter(|block| unit.contains(&block.start))
                .collect();
            if here.is_empty() {
                continue;
            }
            let mut written = self.unit_around(&unit, &own)?;
            for block in here {
                let signature = self.signature_bytes(block);
                let filled = match &signature {
                    Some(signature) => signature,
                    None => &bytes[within(place.start, block)],
                };
                written[within(unit.start, block)].copy_from_slice(filled);
            }
            self.write_unit(&unit, &written)?;
        }
        Ok(())
    }

    /// Writes blocks of one unit, with all else of it as it is.
    pub(super) fn write_within(&mut self, at: u64, bytes: &[u8]) -> Result<(), MoveError> {
        let own = at..at + bytes.len() as u64;
        let plan = &self.state.plan;
        let blocks = plan.unit.cover(&own, plan.disk_bytes);
        let mut unit = AlignedBuffer::new((blocks.end - blocks.start) as usize);
        let holes = read_around(&mut self.disk, blocks.start, &mut unit)?;
        let mut lost = self.fill_holes(&blocks, &mut unit, &holes, &own)?;
        if !lost.is_empty() {
            let step = self.first_step();
            lost.extend_from_slice(self.state.lost_by(step));
            self.must_be_accepted(step, joined(lost))?;
        }
        unit[within(blocks.start, &own)].copy_from_slice(bytes);
        self.write_unit(&blocks, &unit)
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

    /// A unit as it is, with zeros where `own` bytes of the partition cannot be read.
    fn unit_around(
        &mut self,
        blocks: &Range<u64>,
        own: &Range<u64>,
    ) -> Result<AlignedBuffer, MoveError> {
        let mut unit = AlignedBuffer::new((blocks.end - blocks.start) as usize);
        let holes = read_around(&mut self.disk, blocks.start, &mut unit)?;
        // The loss of another window is named at its own comparison: its sum is wrong then.
        self.fill_holes(blocks, &mut unit, &holes, own)?;
        Ok(unit)
    }

    /// Writes one unit; the journal has its image in the meantime.
    fn write_unit(&mut self, blocks: &Range<u64>, unit: &AlignedBuffer) -> Result<(), MoveError> {
        if !self.mutations.has(Mutation::NoMendImage) {
            self.journal.append_durable(&JournalRecord::Mend {
                at: blocks.start,
                bytes: unit.to_vec(),
            })?;
        }
        self.disk.writer().put(blocks.start, unit)?;
        self.must_have_arrived(blocks.start, unit)
    }
}
