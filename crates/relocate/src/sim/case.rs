//! Moves that the simulation carries out, and the right state before, during and after each.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use plumb_testkit::Rng;

use super::medium::{Clock, Flushes, MediaFaults, Medium, Shared, Which, World};
use crate::journal::Ending;
use crate::marker;
use crate::moving::loss::covers;
use crate::moving::plan::meet;
use crate::moving::{ByteChange, Copying, JournalId, LostRange, Plan};
use crate::preflight::Checked;
use crate::{DiskOffset, PartOffset, Unit};

const SECTOR: u64 = 512;
/// Sectors of a disk; long shifts have longer, sparse ones.
const DISK_SECTORS: u64 = 4096;

/// Blocks of a simulated disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blocks {
    pub(crate) logical: u32,
    pub(crate) physical: u32,
    /// The start of the first physical block.
    pub(crate) offset: u64,
}

pub(crate) const NATIVE_512: Blocks = Blocks {
    logical: 512,
    physical: 512,
    offset: 0,
};
pub(crate) const NATIVE_4096: Blocks = Blocks {
    logical: 4096,
    physical: 4096,
    offset: 0,
};
pub(crate) const EMULATED: Blocks = Blocks {
    logical: 512,
    physical: 4096,
    offset: 0,
};
pub(crate) const EMULATED_16K: Blocks = Blocks {
    logical: 512,
    physical: 16_384,
    offset: 0,
};
pub(crate) const EMULATED_OFFSET: Blocks = Blocks {
    logical: 512,
    physical: 4096,
    offset: 3584,
};

/// One move, in sectors; windows in units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) blocks: Blocks,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) len: u64,
    /// Longest window; the shift bounds it further.
    pub(crate) units: u64,
    /// Straight windows that are read and noted together.
    pub(crate) at_once: u64,
    /// The duration of a flush, and with it the way of straight windows.
    pub(crate) flushes: Flushes,
    /// Sectors of each copy of the label.
    pub(crate) label: u64,
}

impl Case {
    fn disk_bytes(&self) -> u64 {
        let end = self.from.max(self.to) + self.len + 64;
        DISK_SECTORS.max(end.next_multiple_of(8)) * SECTOR
    }

    fn unit(&self) -> Unit {
        Unit {
            bytes: u64::from(self.blocks.physical).max(4096),
            offset: self.blocks.offset,
        }
    }

    /// The smallest length of a signature.
    fn block(&self) -> u64 {
        self.blocks.logical.into()
    }

    pub(crate) fn plan(&self, before: &DiskBefore) -> Plan {
        let mut plan = Plan {
            partition: format!("{self:?}"),
            disk: "simulated".to_owned(),
            disk_bytes: self.disk_bytes(),
            logical_block_bytes: self.blocks.logical,
            physical_block_bytes: self.blocks.physical,
            journal: JournalId(*b"simulated journ."),
            journal_path: "/simulated".to_owned(),
            from: DiskOffset(self.from * SECTOR),
            to: DiskOffset(self.to * SECTOR),
            len: self.len * SECTOR,
            unit: self.unit(),
            copying: Copying::Batches(self.units * self.unit().bytes),
            at_once: 1,
            hide: before.changes(&before.label, &before.moving),
            finish: before.changes(&before.moving, &before.finished),
            signatures: self.signatures(),
            strays: Vec::new(),
            fix_ups: self.fix_ups(before),
        };
        let shift = plan.shift_bytes();
        let unit = plan.unit.bytes;
        if shift >= 2 * unit {
            plan.copying = Copying::Windows((self.units * unit).min(shift - shift % unit));
            plan.at_once = self.at_once;
        }
        let last = plan.union().end - self.block()..plan.union().end;
        if !meet(&last, &plan.old_place()) {
            plan.strays.push(last);
        }
        plan
    }

    /// One like that of ext4, and one at the end like those of md and NTFS, as far as there is room.
    fn signatures(&self) -> Vec<Range<u64>> {
        let (len, block) = (self.len * SECTOR, self.block());
        let first = if len >= 3 * block { block * 2 } else { 0 };
        let mut found: Vec<Range<u64>> = std::iter::once(first..first + block).collect();
        if len >= 4 * block {
            found.push(len - block..len);
        }
        found
    }

    fn fix_ups(&self, before: &DiskBefore) -> Vec<ByteChange<PartOffset>> {
        let mut places = vec![self.signatures()[0].start + 28];
        if self.len * SECTOR > 8 * self.block() {
            places.push(4 * self.block() + 100);
        }
        let change = |at: u64| {
            let old = before.partition[at as usize..at as usize + 4].to_vec();
            ByteChange {
                at: PartOffset(at),
                new: old.iter().map(|byte| !byte).collect(),
                old,
            }
        };
        places.into_iter().map(change).collect()
    }

    /// The two copies of the label, the backup first, as it is written.
    fn label_places(&self) -> [Range<u64>; 2] {
        let end = self.disk_bytes();
        let (len, block) = (self.label * SECTOR, self.block());
        [end - len..end, block..block + len]
    }
}

/// The content of a disk before the move, and the later label.
pub(crate) struct DiskBefore {
    pub(crate) partition: Vec<u8>,
    label: [Vec<u8>; 2],
    moving: [Vec<u8>; 2],
    finished: [Vec<u8>; 2],
    places: [Range<u64>; 2],
}

fn noise(rng: &mut Rng, len: u64) -> Vec<u8> {
    (0..len.div_ceil(8))
        .flat_map(|_| rng.next_u64().to_le_bytes())
        .take(len as usize)
        .collect()
}

impl DiskBefore {
    fn new(case: &Case, rng: &mut Rng) -> Self {
        let len = case.label * SECTOR;
        let mut label = || [noise(rng, len), noise(rng, len)];
        let (old, moving, finished) = (label(), label(), label());
        let partition = noise(rng, case.len * SECTOR);
        Self {
            partition,
            label: old,
            moving,
            finished,
            places: case.label_places(),
        }
    }

    fn changes(&self, old: &[Vec<u8>; 2], new: &[Vec<u8>; 2]) -> Vec<ByteChange<DiskOffset>> {
        let change = |index: usize| ByteChange {
            at: DiskOffset(self.places[index].start),
            old: old[index].clone(),
            new: new[index].clone(),
        };
        [0, 1].map(change).into()
    }
}

/// A case with its disk, and its required properties.
pub(crate) struct Setting {
    pub(crate) plan: Plan,
    pub(crate) world: Shared,
    before: DiskBefore,
    /// The partition as it is at its new place.
    fixed: Vec<u8>,
    /// The part of the partition apart from blocks that are written with a signature, a label or a fix-up: a torn write
    /// to one of those may leave the signature unchanged.
    apart: Vec<Range<u64>>,
    /// Neighbours: bytes that must stay unchanged in all cases.
    neighbours: Vec<(u64, Vec<u8>)>,
}

impl Setting {
    pub(crate) fn new(case: &Case, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let before = DiskBefore::new(case, &mut rng);
        let plan = case.plan(&before);
        let journal_bytes = plan.journal_bytes(plan.unit.bytes as u32);
        let mut disk = Medium::new(plan.disk_bytes);
        // Around both places, so that there are neighbours on every side.
        for place in [plan.old_place(), plan.new_place()] {
            let start = place.start.saturating_sub(2 * plan.unit.bytes);
            let end = (place.end + 2 * plan.unit.bytes).min(plan.disk_bytes);
            disk.write(start, &noise(&mut rng, end - start));
        }
        for (place, label) in before.places.iter().zip(&before.label) {
            disk.write(place.start, label);
        }
        disk.write(plan.from.0, &before.partition);
        let mut fixed = before.partition.clone();
        for fix_up in &plan.fix_ups {
            fixed[fix_up.at.0 as usize..][..fix_up.new.len()].copy_from_slice(&fix_up.new);
        }
        let apart = apart(&plan);
        let neighbours = neighbours(&plan, &before, &disk);
        let world = World {
            disk,
            journal: Medium::new(journal_bytes),
            disk_bytes: plan.disk_bytes,
            journal_bytes,
            logical: case.blocks.logical,
            physical: case.blocks.physical,
            unit_offset: case.blocks.offset,
            events: None,
            asked: 0,
            fails: None,
            faults: MediaFaults::default(),
            clock: Clock::new(case.flushes),
        };
        Self {
            plan,
            world: Rc::new(RefCell::new(world)),
            before,
            fixed,
            apart,
            neighbours,
        }
    }

    /// The plan, as if a preflight had checked it: there is no system around this disk.
    pub(crate) fn checked_plan(&self) -> Checked<Plan> {
        Checked::for_simulation(self.plan.clone())
    }

    /// A signature at the new place.
    pub(crate) fn signature(&self, index: usize) -> &[u8] {
        let range = &self.plan.signatures[index];
        &self.fixed[range.start as usize..range.end as usize]
    }

    /// Whether everything is as it has to be after the move, after its rollback, or (`None`) before the first write.
    pub(crate) fn check_ending(&self, ending: Option<Ending>) -> Result<(), String> {
        let (label, start, partition) = match ending {
            Some(Ending::Moved) => (&self.before.finished, self.plan.to.0, &self.fixed),
            _ => (&self.before.label, self.plan.from.0, &self.before.partition),
        };
        for (place, label) in self.before.places.iter().zip(label) {
            self.expect("label", place.start, label)?;
        }
        self.expect("partition", start, partition)?;
        for (at, bytes) in &self.neighbours {
            self.expect("neighbour", *at, bytes)?;
        }
        let (left, kept) = match ending {
            None => return Ok(()),
            Some(Ending::Moved) => (self.plan.from.0, self.plan.new_place()),
            Some(Ending::RolledBack) => return Ok(()),
        };
        for range in &self.plan.signatures {
            let bytes = left + range.start..left + range.end;
            for at in bytes
                .step_by(SECTOR as usize)
                .filter(|at| !kept.contains(at))
            {
                self.expect("stale signature", at, &[0; SECTOR as usize])?;
            }
        }
        Ok(())
    }

    /// The same except for bytes of the partition that were named as lost, neighbours in `spoiled` blocks, and for unreadable sectors: a reader notices
    /// those. At the new place these have to be named, too, unless they came too late.
    pub(crate) fn check_ending_but(
        &self,
        ending: Ending,
        lost: &[LostRange],
        is_late: bool,
        spoiled: &Range<u64>,
    ) -> Result<(), String> {
        let (label, start, partition) = match ending {
            Ending::Moved => (&self.before.finished, self.plan.to.0, &self.fixed),
            Ending::RolledBack => (&self.before.label, self.plan.from.0, &self.before.partition),
        };
        let mut whole_copies = 0;
        for (place, label) in self.before.places.iter().zip(label) {
            let mut is_whole = true;
            for (at, sector) in (place.start..)
                .step_by(SECTOR as usize)
                .zip(label.chunks(SECTOR as usize))
            {
                match self.is_unreadable(at) {
                    true => is_whole = false,
                    false => self.expect("label", at, sector)?,
                }
            }
            whole_copies += u32::from(is_whole);
        }
        if whole_copies == 0 {
            return Err("no copy of the label can be read".to_owned());
        }
        for (at, bytes) in &self.neighbours {
            for (at, sector) in (*at..)
                .step_by(SECTOR as usize)
                .zip(bytes.chunks(SECTOR as usize))
            {
                if !meet(&(at..at + sector.len() as u64), spoiled) {
                    self.expect("neighbour", at, sector)?;
                }
            }
        }
        for at in (0..self.plan.len).step_by(SECTOR as usize) {
            let sector = at..at + SECTOR;
            if covers(lost, &sector) {
                continue;
            }
            let is_bad = self.is_unreadable(start + at);
            match ending {
                _ if is_bad && is_late => continue,
                Ending::RolledBack if is_bad => continue,
                Ending::Moved if is_bad => {
                    return Err(format!("byte {at} cannot be read and is not named"));
                }
                _ => {}
            }
            let expected = &partition[at as usize..][..SECTOR as usize];
            self.expect("partition", start + at, expected)?;
        }
        Ok(())
    }

    /// Whether the logical block of a byte cannot be read.
    fn is_unreadable(&self, at: u64) -> bool {
        let world = self.world.borrow();
        let block = u64::from(world.logical) / SECTOR;
        let first = at / SECTOR - at / SECTOR % block;
        let sectors = (Which::Disk, first)..(Which::Disk, first + block);
        world.faults.unreadable.range(sectors).next().is_some()
    }

    fn expect(&self, what: &str, at: u64, expected: &[u8]) -> Result<(), String> {
        match self.first_difference(at, expected) {
            None => Ok(()),
            Some(byte) => Err(format!("{what} at byte {at}: byte {byte} is wrong")),
        }
    }

    fn first_difference(&self, at: u64, expected: &[u8]) -> Option<usize> {
        let world = self.world.borrow();
        let mut found = [0; 4096];
        let mut start = 0;
        while start < expected.len() {
            let len = (expected.len() - start).min(found.len());
            world.disk.read(at + start as u64, &mut found[..len]);
            let wanted = &expected[start..start + len];
            if found[..len] != *wanted {
                return Some(
                    start
                        + found
                            .iter()
                            .zip(wanted)
                            .position(|(a, b)| a != b)
                            .unwrap_or(0),
                );
            }
            start += len;
        }
        None
    }

    /// Whether the partition can be found at its new place: by the signature that decides, or, without one, by its label.
    pub(crate) fn has_come_back(&self) -> bool {
        let shown = match self.plan.signatures.first() {
            Some(range) => self.first_difference(self.plan.to.0 + range.start, self.signature(0)),
            None => self.first_difference(self.before.places[0].start, &self.before.finished[0]),
        };
        shown.is_none()
    }

    /// Whether its old place shows no marker any more: a program may have found the partition there.
    pub(crate) fn has_gone_back(&self) -> bool {
        let Some(range) = self.plan.signatures.first() else {
            return true;
        };
        let marker = marker::fill(&self.plan, range.end - range.start);
        let at = self.plan.from.0 + range.start;
        self.first_difference(at, &marker).is_some()
    }

    /// The forbidden state after any power cut: a partition that can be found, by a signature or by its label, with
    /// missing data.
    pub(crate) fn check_hidden(&self) -> Result<(), String> {
        let places = [
            ("old", self.plan.from.0, &self.before.partition),
            ("new", self.plan.to.0, &self.fixed),
        ];
        for (name, start, partition) in places {
            for range in &self.plan.signatures {
                let signature = &partition[range.start as usize..range.end as usize];
                if self
                    .first_difference(start + range.start, signature)
                    .is_none()
                {
                    self.check_apart(start, partition).map_err(|byte| {
                        format!("the {name} place shows its signature, and byte {byte} is wrong")
                    })?;
                }
            }
        }
        let labels = [
            (&self.before.label, self.plan.from.0, "old"),
            (&self.before.finished, self.plan.to.0, "new"),
        ];
        for (label, start, name) in labels {
            let shown = |index: usize| {
                self.first_difference(self.before.places[index].start, &label[index])
                    .is_none()
            };
            // Either copy can be the one that is read.
            if shown(0) || shown(1) {
                self.check_apart(start, &self.before.partition)
                    .map_err(|byte| {
                        format!("the label shows the {name} place, and byte {byte} is wrong")
                    })?;
            }
        }
        Ok(())
    }

    fn check_apart(&self, start: u64, partition: &[u8]) -> Result<(), u64> {
        for range in &self.apart {
            let expected = &partition[range.start as usize..range.end as usize];
            if let Some(byte) = self.first_difference(start + range.start, expected) {
                return Err(range.start + byte as u64);
            }
        }
        Ok(())
    }
}

/// In the partition, at either place, and whole sectors.
fn apart(plan: &Plan) -> Vec<Range<u64>> {
    let mut blocks = Vec::new();
    let labels = plan.hide.iter().map(|change| change.range());
    let strays = plan.strays.iter().cloned();
    for start in [plan.from.0, plan.to.0] {
        let signatures = plan
            .signatures
            .iter()
            .map(|range| start + range.start..start + range.end);
        let fix_ups = plan
            .fix_ups
            .iter()
            .map(|change| change.range_on_disk(DiskOffset(start)));
        for range in signatures
            .chain(fix_ups)
            .chain(labels.clone())
            .chain(strays.clone())
        {
            blocks.push(plan.unit.cover(&range, plan.disk_bytes));
        }
    }
    let is_apart = |at: &u64| {
        [plan.from.0, plan.to.0].iter().all(|start| {
            let sector = start + at..start + at + SECTOR;
            blocks.iter().all(|block| !meet(block, &sector))
        })
    };
    let mut found: Vec<Range<u64>> = Vec::new();
    for at in (0..plan.len).step_by(SECTOR as usize).filter(is_apart) {
        match found.last_mut() {
            Some(last) if last.end == at => last.end += SECTOR,
            _ => found.push(at..at + SECTOR),
        }
    }
    found
}

/// Two units on every side of both places, as far as they belong to nobody else.
fn neighbours(plan: &Plan, before: &DiskBefore, disk: &Medium) -> Vec<(u64, Vec<u8>)> {
    let mut found = Vec::new();
    let mut own: Vec<Range<u64>> = vec![plan.old_place(), plan.new_place()];
    own.extend(before.places.iter().cloned());
    own.extend(plan.strays.iter().cloned());
    let mut sectors: Vec<u64> = Vec::new();
    for place in own.clone() {
        let start = place.start.saturating_sub(2 * plan.unit.bytes);
        let end = (place.end + 2 * plan.unit.bytes).min(plan.disk_bytes);
        sectors.extend((start..place.start).step_by(SECTOR as usize));
        sectors.extend((place.end..end).step_by(SECTOR as usize));
    }
    sectors.sort_unstable();
    sectors.dedup();
    sectors.retain(|at| own.iter().all(|range| !meet(range, &(*at..at + SECTOR))));
    for at in sectors {
        let mut bytes = vec![0; SECTOR as usize];
        disk.read(at, &mut bytes);
        match found.last_mut() {
            Some((start, run)) if *start + (Vec::len(run) as u64) == at => run.extend(bytes),
            _ => found.push((at, bytes)),
        }
    }
    found
}
