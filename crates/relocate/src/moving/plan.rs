//! The extent of a move, its direction, and all changes that belong to it.

use std::fmt;
use std::ops::Range;

use crate::disk::Disk;
use crate::{DiskOffset, PartOffset, Unit};

/// The smallest unit of writing that a move assumes, for any statement of the disk.
pub const UNIT_BYTES_MIN: u64 = 4096;
/// The longest window, and the most that is read at once: this much twice is in memory.
pub const WINDOW_BYTES_MAX: u64 = 64 << 20;
/// Below this shift a window is so short that flushes take most of the time: batches go through the journal instead.
pub const WINDOWS_FROM_BYTES: u64 = 1 << 20;
/// The least number of groups of windows, if there are as many windows.
const GROUPS_MIN: u64 = 16;
/// Longest unit, signature, and all changes of labels together.
const PART_BYTES_MAX: u64 = 8 << 20;
/// Most signatures, changes of labels and the like that a plan may have.
pub(crate) const LIST_MAX: usize = 4096;

/// The identity of a journal; random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JournalId(pub [u8; 16]);

impl fmt::Display for JournalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Bytes that are to be replaced by as many others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteChange<At> {
    /// The first of them: a [`DiskOffset`] of a label, a [`PartOffset`] of a fix-up.
    pub at: At,
    /// The old content.
    pub old: Vec<u8>,
    /// The new content.
    pub new: Vec<u8>,
}

impl ByteChange<DiskOffset> {
    /// Bytes of the disk.
    pub(crate) fn range(&self) -> Range<u64> {
        self.at.range(self.new.len() as u64)
    }
}

impl ByteChange<PartOffset> {
    /// Bytes of the partition.
    pub(crate) fn range_in_partition(&self) -> Range<u64> {
        self.at.0..self.at.0.saturating_add(self.new.len() as u64)
    }

    /// Bytes of the disk, while the partition begins at `partition`.
    pub(crate) fn range_on_disk(&self, partition: DiskOffset) -> Range<u64> {
        self.at.on_disk(partition).range(self.new.len() as u64)
    }
}

/// How data reach their new place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copying {
    /// Straight, in windows of at most this length, none longer than the shift; only edges go through the journal.
    Windows(u64),
    /// Through the journal, in batches of at most this length: each is written twice.
    Batches(u64),
}

/// A move. Every position is in bytes of the whole disk unless it is marked as one in the partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The partition, as its user calls it.
    pub partition: String,
    /// The identity of the disk, in the words of the plan's author; a resume compares it.
    pub disk: String,
    /// Size of the disk.
    pub disk_bytes: u64,
    /// Its logical block.
    pub logical_block_bytes: u32,
    /// Its physical block.
    pub physical_block_bytes: u32,
    /// The journal's own name.
    pub journal: JournalId,
    /// The path of the journal, for the markers.
    pub journal_path: String,
    /// The present start of the partition.
    pub from: DiskOffset,
    /// Its new start.
    pub to: DiskOffset,
    /// Its length, which stays.
    pub len: u64,
    /// The blocks in which the disk writes.
    pub unit: Unit,
    /// Straight or through the journal.
    pub copying: Copying,
    /// Straight windows that are read, and whose sums are noted, before the first of them is written; 1 with batches.
    pub at_once: u64,
    /// Changes of the label that put an entry of type *moving* over both places, in the order of writing; each is
    /// durable before the next is begun.
    pub hide: Vec<ByteChange<DiskOffset>>,
    /// Changes of the label from there to the one that is wanted.
    pub finish: Vec<ByteChange<DiskOffset>>,
    /// In the partition: its signatures, whole logical blocks, the one that decides first.
    pub signatures: Vec<Range<u64>>,
    /// On the disk: signatures in the free part of the union of both places; they are wiped before the move.
    pub strays: Vec<Range<u64>>,
    /// In the partition: its fields about the position, with their new values. Each is within one signature or shares
    /// no byte with any.
    pub fix_ups: Vec<ByteChange<PartOffset>>,
}

/// The part of the disk that a move writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceKind {
    /// A copy of the label.
    Label,
    /// The place of the partition before the move.
    Old,
    /// The place of the partition after the move.
    New,
    /// The rest of a signature in free space.
    Stray,
}

/// A place that a move writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenPlace {
    /// Its kind.
    pub kind: PlaceKind,
    /// Bytes of the disk.
    pub range: Range<u64>,
}

/// A plan that cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: found {found}, expected {expected}")]
pub struct PlanError {
    /// The field of the plan.
    pub field: &'static str,
    /// Its value.
    pub found: u64,
    /// The allowed value.
    pub expected: String,
}

fn demand(holds: bool, field: &'static str, found: u64, expected: &str) -> Result<(), PlanError> {
    if holds {
        return Ok(());
    }
    Err(PlanError {
        field,
        found,
        expected: expected.to_owned(),
    })
}

impl Plan {
    /// How far data move.
    #[must_use]
    pub fn shift_bytes(&self) -> u64 {
        self.from.0.abs_diff(self.to.0)
    }

    /// Straight in the longest windows that a shift allows, or in batches through the journal where these would be
    /// short. Shifts under two units always go through the journal.
    #[must_use]
    pub fn usual_copying(shift_bytes: u64, unit: Unit) -> Copying {
        let most = (WINDOW_BYTES_MAX / unit.bytes.max(1)).max(1) * unit.bytes;
        if shift_bytes < WINDOWS_FROM_BYTES.max(unit.bytes.saturating_mul(2)) {
            return Copying::Batches(most);
        }
        Copying::Windows(unit.floor_len(shift_bytes).min(most))
    }

    /// As many windows at once as memory is meant for; of a short partition a part, so that reading and writing
    /// overlap there as well.
    #[must_use]
    pub fn usual_at_once(copying: Copying, len: u64) -> u64 {
        match copying {
            Copying::Windows(bytes) => {
                let bytes = bytes.max(1);
                (len / bytes / GROUPS_MIN)
                    .min(WINDOW_BYTES_MAX / bytes)
                    .max(1)
            }
            Copying::Batches(_) => 1,
        }
    }

    /// The extent of the partition before the move.
    #[must_use]
    pub fn old_place(&self) -> Range<u64> {
        self.from.range(self.len)
    }

    /// Its extent after the move.
    #[must_use]
    pub fn new_place(&self) -> Range<u64> {
        self.to.range(self.len)
    }

    /// From the first byte of both places to the last.
    #[must_use]
    pub fn union(&self) -> Range<u64> {
        self.from.min(self.to).0..self.from.max(self.to).range(self.len).end
    }

    /// The part of the new place that the partition does not have yet.
    #[must_use]
    pub fn free_part(&self) -> Range<u64> {
        let (old, new) = (self.old_place(), self.new_place());
        match self.to > self.from {
            true => new.start.max(old.end)..new.end,
            false => new.start..new.end.min(old.start),
        }
    }

    /// Bytes outside of both places that are written with them or with the label, since a disk writes whole blocks. They
    /// are written as they were when their block was read, also by a resume long after: a neighbour that has some of them
    /// must not be in use during a move.
    #[must_use]
    pub fn bystanders(&self) -> Vec<Range<u64>> {
        let union = self.union();
        let labels = self.hide.iter().chain(&self.finish).map(ByteChange::range);
        let mut found: Vec<Range<u64>> = Vec::new();
        for own in [self.old_place(), self.new_place()]
            .into_iter()
            .chain(labels)
        {
            let cover = self.unit.cover(&own, self.disk_bytes);
            for side in [cover.start..own.start, own.end..cover.end] {
                let outside = [
                    side.start..side.end.min(union.start),
                    side.start.max(union.end)..side.end,
                ];
                for range in outside {
                    if !range.is_empty() && !found.contains(&range) {
                        found.push(range);
                    }
                }
            }
        }
        found
    }

    /// Every place of the disk that the move or its rollback writes, in whole blocks of the unit.
    #[must_use]
    pub fn places(&self) -> Vec<WrittenPlace> {
        let labels = self.hide.iter().chain(&self.finish);
        let labels = labels.map(|change| (PlaceKind::Label, change.range()));
        let data = [
            (PlaceKind::Old, self.old_place()),
            (PlaceKind::New, self.new_place()),
        ];
        let strays = self.strays.iter().cloned();
        let strays = strays.map(|range| (PlaceKind::Stray, range));
        let start = self.union().start;
        let mark = start..start.saturating_add(self.logical_block_bytes.into());
        let mut places: Vec<WrittenPlace> = Vec::new();
        for (kind, range) in labels
            .chain(data)
            .chain([(PlaceKind::New, mark)])
            .chain(strays)
        {
            let place = WrittenPlace {
                kind,
                range: self.unit.cover(&range, self.disk_bytes),
            };
            let is_known = |known: &WrittenPlace| {
                known.kind == kind
                    && known.range.start <= place.range.start
                    && place.range.end <= known.range.end
            };
            if !places.iter().any(is_known) {
                places.push(place);
            }
        }
        places
    }

    /// Whether the move writes a marker at this byte of the disk.
    #[must_use]
    pub fn marks(&self, at: u64) -> bool {
        let start = self.union().start;
        let begins = start..start.saturating_add(self.logical_block_bytes.into());
        let signatures = self
            .signatures
            .iter()
            .flat_map(|range| [self.from, self.to].map(|place| place.of_partition(range)));
        signatures.chain([begins]).any(|range| range.contains(&at))
    }

    /// Bytes that the journal's file should have, so that a move, a rollback of it from the very end and some
    /// hundreds of interruptions find room.
    #[must_use]
    pub fn journal_bytes(&self, block_bytes: u32) -> u64 {
        crate::journal::needed_bytes(self, u64::from(block_bytes.max(1)))
    }

    /// Whether the plan is one that can be carried out, on a disk like this.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn check(&self) -> Result<(), PlanError> {
        self.check_disk()?;
        self.check_places()?;
        self.check_copying()?;
        self.check_labels()?;
        self.check_content()
    }

    fn check_disk(&self) -> Result<(), PlanError> {
        let (logical, physical) = (
            u64::from(self.logical_block_bytes),
            u64::from(self.physical_block_bytes),
        );
        let is_block = logical.is_power_of_two() && (512..=65_536).contains(&logical);
        demand(
            is_block,
            "logical block",
            logical,
            "a power of two from 512 to 65536",
        )?;
        let is_multiple =
            physical >= logical && physical.is_multiple_of(logical) && physical <= PART_BYTES_MAX;
        demand(
            is_multiple,
            "physical block",
            physical,
            "a multiple of the logical block",
        )?;
        let fits = self.disk_bytes.is_multiple_of(logical) && self.disk_bytes < 1 << 62;
        demand(
            fits,
            "size of the disk",
            self.disk_bytes,
            "whole logical blocks",
        )?;
        let unit = self.unit.bytes;
        let is_unit =
            (UNIT_BYTES_MIN..=PART_BYTES_MAX).contains(&unit) && unit.is_multiple_of(physical);
        demand(
            is_unit,
            "unit",
            unit,
            "whole physical blocks, 4 KiB to 8 MiB",
        )?;
        let is_offset = self.unit.offset < unit && self.unit.offset.is_multiple_of(logical);
        demand(
            is_offset,
            "offset of the unit",
            self.unit.offset,
            "whole logical blocks, less than the unit",
        )
    }

    fn check_places(&self) -> Result<(), PlanError> {
        let logical = u64::from(self.logical_block_bytes);
        let expected = "whole logical blocks on the disk";
        for (field, start) in [("start", self.from.0), ("new start", self.to.0)] {
            let end = start
                .checked_add(self.len)
                .filter(|end| *end <= self.disk_bytes);
            demand(
                start.is_multiple_of(logical) && end.is_some(),
                field,
                start,
                expected,
            )?;
        }
        demand(
            self.len > 0 && self.len.is_multiple_of(logical),
            "length",
            self.len,
            expected,
        )?;
        demand(
            self.from != self.to,
            "new start",
            self.to.0,
            "another place than the old one",
        )
    }

    fn check_copying(&self) -> Result<(), PlanError> {
        let (Copying::Windows(bytes) | Copying::Batches(bytes)) = self.copying;
        let is_window =
            bytes > 0 && bytes.is_multiple_of(self.unit.bytes) && bytes <= WINDOW_BYTES_MAX;
        demand(is_window, "window", bytes, "whole units, at most 64 MiB")?;
        let at_once = self.at_once;
        let fits = at_once
            .checked_mul(bytes)
            .is_some_and(|bytes| bytes > 0 && bytes <= WINDOW_BYTES_MAX);
        demand(
            fits,
            "windows at once",
            at_once,
            "1 or more, together no more than 64 MiB",
        )?;
        if let Copying::Batches(_) = self.copying {
            demand(at_once == 1, "windows at once", at_once, "1 with batches")?;
        } else {
            let shift = self.shift_bytes();
            demand(bytes <= shift, "window", bytes, "no more than the shift")?;
            demand(
                shift >= 2 * self.unit.bytes,
                "shift",
                shift,
                "two units, or batches through the journal",
            )?;
        }
        Ok(())
    }

    fn check_labels(&self) -> Result<(), PlanError> {
        for change in self.hide.iter().chain(&self.finish) {
            check_change("label", change.at.0, change, self.disk_bytes)?;
            let range = change.range();
            let lies_outside = [self.old_place(), self.new_place()]
                .iter()
                .all(|place| !meet(place, &range));
            demand(
                lies_outside,
                "label",
                change.at.0,
                "bytes outside of the moved partition",
            )?;
        }
        let bytes: u64 = self
            .hide
            .iter()
            .chain(&self.finish)
            .map(|change| change.new.len() as u64)
            .sum();
        demand(
            bytes <= PART_BYTES_MAX,
            "changes of the label",
            bytes,
            "no more than 8 MiB",
        )?;
        let few = self.hide.len().max(self.finish.len());
        demand(
            few <= LIST_MAX,
            "changes of the label",
            few as u64,
            "no more than 4096",
        )
    }

    fn check_content(&self) -> Result<(), PlanError> {
        let logical = u64::from(self.logical_block_bytes);
        let few = self
            .signatures
            .len()
            .max(self.strays.len())
            .max(self.fix_ups.len());
        demand(
            few <= LIST_MAX,
            "signatures",
            few as u64,
            "no more than 4096",
        )?;
        let union = self.union();
        let signatures = self.signatures.iter().map(|range| (range, 0..self.len));
        for (range, within) in
            signatures.chain(self.strays.iter().map(|range| (range, union.clone())))
        {
            let is_whole = range.start.is_multiple_of(logical) && range.end.is_multiple_of(logical);
            let lies_within =
                range.start < range.end && within.start <= range.start && range.end <= within.end;
            demand(
                is_whole && lies_within,
                "signature",
                range.start,
                "whole logical blocks in place",
            )?;
        }
        let is_free = |range: &Range<u64>| !meet(range, &self.old_place());
        for range in &self.strays {
            demand(
                is_free(range),
                "signature",
                range.start,
                "a stray one, outside of the partition",
            )?;
        }
        for (index, range) in self.signatures.iter().enumerate() {
            let is_apart = self.signatures[..index]
                .iter()
                .all(|before| !meet(before, range));
            demand(
                is_apart,
                "signature",
                range.start,
                "a place that no other has",
            )?;
        }
        let bytes: u64 = self
            .fix_ups
            .iter()
            .map(|fix_up| fix_up.new.len() as u64)
            .sum();
        demand(
            bytes <= PART_BYTES_MAX,
            "fix-ups",
            bytes,
            "no more than 8 MiB",
        )?;
        for fix_up in &self.fix_ups {
            check_change("fix-up", fix_up.at.0, fix_up, self.len)?;
            let range = fix_up.range_in_partition();
            let is_clear = self.signatures.iter().all(|signature| {
                !meet(signature, &range)
                    || (signature.start <= range.start && range.end <= signature.end)
            });
            demand(
                is_clear,
                "fix-up",
                fix_up.at.0,
                "a place within one signature, or outside of all",
            )?;
        }
        Ok(())
    }

    /// Whether `disk` matches the one of the plan. Another stated physical block, as with another adapter, is accepted
    /// if the unit is a multiple: a torn write then stays within it as before.
    pub(crate) fn check_against<D: Disk>(&self, disk: &D) -> Result<(), PlanError> {
        let pairs = [
            ("size of the disk", disk.len_bytes(), self.disk_bytes),
            (
                "logical block",
                disk.logical_block_bytes().into(),
                self.logical_block_bytes.into(),
            ),
        ];
        pairs.into_iter().try_for_each(|(field, found, planned)| {
            demand(
                found == planned,
                field,
                found,
                &format!("{planned}, as planned"),
            )
        })?;
        let (physical, unit) = (u64::from(disk.physical_block_bytes()), self.unit.bytes);
        let is_part = physical > 0 && unit.is_multiple_of(physical);
        demand(
            is_part,
            "physical block",
            physical,
            &format!("{unit}, the unit that was planned, or a part of it"),
        )
    }
}

/// Whether a change replaces as many bytes, and ends by `end`.
fn check_change<At>(
    field: &'static str,
    at: u64,
    change: &ByteChange<At>,
    end: u64,
) -> Result<(), PlanError> {
    let len = change.new.len();
    demand(
        len > 0 && change.old.len() == len,
        field,
        len as u64,
        "as many new bytes as old ones",
    )?;
    let last = at.checked_add(len as u64).filter(|last| *last <= end);
    demand(last.is_some(), field, at, "a place within")
}

/// Whether two ranges share a byte.
pub(crate) fn meet(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A plan without label and signatures on a disk of 2 MiB, in batches of two units.
    pub(crate) fn plan(from: u64, to: u64, len: u64) -> Plan {
        let (from, to) = (DiskOffset(from), DiskOffset(to));
        Plan {
            partition: "test".to_owned(),
            disk: "simulated".to_owned(),
            disk_bytes: 2 << 20,
            logical_block_bytes: 512,
            physical_block_bytes: 4096,
            journal: JournalId(*b"0123456789abcdef"),
            journal_path: "/journal".to_owned(),
            from,
            to,
            len,
            unit: Unit {
                bytes: 4096,
                offset: 0,
            },
            copying: Copying::Batches(8192),
            at_once: 1,
            hide: Vec::new(),
            finish: Vec::new(),
            signatures: Vec::new(),
            strays: Vec::new(),
            fix_ups: Vec::new(),
        }
    }

    #[test]
    fn impossible_plans_are_refused() {
        type Spoil = fn(&mut Plan);
        let spoiled: [(&str, Spoil); 14] = [
            ("logical block", |plan| plan.logical_block_bytes = 513),
            ("physical block", |plan| plan.physical_block_bytes = 256),
            ("unit", |plan| plan.unit.bytes = 512),
            ("offset of the unit", |plan| plan.unit.offset = 4096),
            ("start", |plan| plan.from.0 += 1),
            ("new start", |plan| plan.to.0 = u64::MAX - 511),
            ("new start", |plan| plan.to = plan.from),
            ("window", |plan| plan.copying = Copying::Windows(8192)),
            ("windows at once", |plan| plan.at_once = 0),
            ("windows at once", |plan| plan.at_once = 2),
            ("label", |plan| {
                plan.hide = vec![ByteChange {
                    at: DiskOffset(64 * 512),
                    old: vec![0],
                    new: vec![1],
                }]
            }),
            ("signature", |plan| plan.signatures = vec![0..512, 0..1024]),
            ("signature", |plan| plan.strays.push(34 * 512..35 * 512)),
            ("fix-up", |plan| {
                plan.fix_ups = vec![ByteChange {
                    at: PartOffset(0),
                    old: vec![0; 2],
                    new: vec![0],
                }]
            }),
        ];
        for (field, spoil) in spoiled {
            let mut plan = plan(34 * 512, 40 * 512, 100 * 512);
            assert_eq!(plan.check(), Ok(()));
            spoil(&mut plan);
            assert_eq!(plan.check().expect_err(field).field, field);
        }
    }

    #[test]
    fn short_shifts_go_through_the_journal() {
        let unit = Unit {
            bytes: 4096,
            offset: 0,
        };
        assert_eq!(Plan::usual_copying(512, unit), Copying::Batches(64 << 20));
        assert_eq!(
            Plan::usual_copying(2014 * 512, unit),
            Copying::Batches(64 << 20)
        );
        assert_eq!(
            Plan::usual_copying((1 << 20) + 512, unit),
            Copying::Windows(1 << 20)
        );
        assert_eq!(
            Plan::usual_copying(1 << 40, unit),
            Copying::Windows(64 << 20)
        );
    }

    /// The journal of a terabyte that moves by 1 MiB, and of one that moves farther.
    #[test]
    fn journals_stay_short() {
        let mib = 1_u64 << 20;
        for (shift, most) in [
            (mib, 200 * mib),
            (16 * mib, 200 * mib),
            (64 * mib, 140 * mib),
        ] {
            let mut plan = Plan {
                disk_bytes: 2 << 40,
                ..plan(mib, mib + shift, 1 << 40)
            };
            plan.copying = Plan::usual_copying(shift, plan.unit);
            plan.at_once = Plan::usual_at_once(plan.copying, plan.len);
            plan.check().expect("a good plan");
            let needed = plan.journal_bytes(4096);
            assert!(needed < most, "{shift}: {} MiB", needed / mib);
        }
    }

    #[test]
    fn neighbours_in_the_same_block_are_named() {
        let near = plan(34 * 512, 64 * 512, 100 * 512);
        // 34 and 134 are no boundaries of 8 sectors; 64 and 164 end on one and on half of one; 134 is within both.
        assert_eq!(
            near.bystanders(),
            [32 * 512..34 * 512, 164 * 512..168 * 512]
        );
        // The label ends within the block that the next partition begins in.
        let (old, new) = (vec![0; 33 * 512], vec![1; 33 * 512]);
        let hide = vec![ByteChange {
            at: DiskOffset(512),
            old,
            new,
        }];
        let label = Plan {
            hide,
            ..plan(2048 * 512, 2304 * 512, 100 * 512)
        };
        assert_eq!(
            label.bystanders(),
            [2404 * 512..2408 * 512, 0..512, 34 * 512..40 * 512]
        );
    }
}
