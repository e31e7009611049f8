//! Repeats writes that did not stay.

use std::ops::Range;

use plumb_sys::AlignedBuffer;

use super::ahead::within;
use super::loss::joined;
use super::read::{common, holes_in, read_around, read_into};
use super::script::{Action, Place};
use super::windows::Window;
use super::{Move, MoveError};
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
        let block = u64::from(self.state.plan.logical_block_bytes);
        for blocks in self.units(&window.moved) {
            let holes = holes_in(holes, &blocks);
            let Some(own) = common(&window.moved, &blocks).filter(|_| !holes.is_empty()) else {
                continue;
            };
            let mut unit = self.unit_around(&blocks, &own)?;
            for at in holes
                .iter()
                .flat_map(|hole| hole.clone().step_by(block as usize))
            {
                let here = at..at + block;
                let mut filled = bytes[within(window.moved.start, &here)].to_vec();
                self.fix_up(at, &mut filled);
                let filled = self.signature_bytes(&here).unwrap_or(filled);
                unit[within(blocks.start, &here)].copy_from_slice(&filled);
            }
            self.write_unit(&blocks, &unit)?;
        }
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

    /// Writes zeros where a place of the partition cannot be read; signatures are in the journal.
    pub(super) fn mend_holes(
        &mut self,
        place: &Range<u64>,
        holes: &[Range<u64>],
    ) -> Result<(), MoveError> {
        let Some(all) = holes.first().zip(holes.last()) else {
            return Ok(());
        };
        for blocks in self.units(&(all.0.start..all.1.end)) {
            if holes_in(holes, &blocks).is_empty() {
                continue;
            }
            let Some(own) = common(place, &blocks) else {
                continue;
            };
            let mut unit = self.unit_around(&blocks, &own)?;
            let block = u64::from(self.state.plan.logical_block_bytes);
            for at in holes_in(holes, &own)
                .into_iter()
                .flat_map(|hole| hole.step_by(block as usize))
            {
                if let Some(known) = self.signature_bytes(&(at..at + block)) {
                    unit[within(blocks.start, &(at..at + block))].copy_from_slice(&known);
                }
            }
            self.write_unit(&blocks, &unit)?;
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
        let mut found = AlignedBuffer::new(unit.len());
        read_into(&mut self.disk, blocks.start, &mut found)?;
        match *found == **unit {
            true => Ok(()),
            false => Err(MoveError::NotAsWritten {
                at: blocks.start,
                len: unit.len() as u64,
            }),
        }
    }
}
