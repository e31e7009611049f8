//! Whether the changes of the label in a journal are those of its move.
//!
//! A journal is a file, and a forged one could name any bytes of the disk as its label. So the changes are computed
//! again: the old label is assembled from the disk and the old bytes in the journal, and the changes that
//! [`label_move`](super::label_move) derives from it must equal those of the plan, byte for byte.

use std::io;
use std::ops::Range;

use plumb_geometry::Bytes;
use plumb_label::{Disk, Partition, PartitionPlace, ReadError, Role, read};

use crate::labels::hidden::label_move_of_before;
use crate::moving::{Plan, Torn};

/// Changes of a label that no move of this partition makes.
#[derive(Debug, thiserror::Error)]
pub enum NotDerived {
    /// The disk with the old bytes of the journal has no label that can be read.
    #[error(
        "found no label on the disk with the old bytes of the journal, expected the one of before the move"
    )]
    NoLabel,
    /// No copy of the label can be read, and the journal has not enough of its old bytes.
    #[error(
        "{source}; expected one readable copy of the label, beside the old bytes of the journal"
    )]
    Unreadable {
        /// The fault.
        source: ReadError,
    },
    /// That label has no such partition.
    #[error(
        "found no partition of bytes {from} to {end} in the label of before the move, expected the one that is moved"
    )]
    NoPartition {
        /// First byte by the plan.
        from: u64,
        /// End by the plan.
        end: u64,
    },
    /// The changes are others.
    #[error(
        "found changes of the label in the journal that a move of this partition does not make, expected those that \
         its label leads to"
    )]
    Other,
}

/// Whether the changes of a plan follow from the label that the disk had before it. `torn` is the last unfinished
/// write.
///
/// # Errors
/// They do not.
pub fn must_be_derived(
    plan: &Plan,
    torn: Option<&Torn>,
    disk: &dyn Disk,
) -> Result<(), NotDerived> {
    let union = plan.union();
    // A label of Solaris within the partition is a part of its data, and may be half moved. It was read with the old
    // label, or it is left out: neither changes the writes outside of the partition.
    let found = [None, Some(union)].map(|blank| {
        let before = Before::new(plan, torn, disk, blank);
        derives(plan, &before)
    });
    let [whole, blanked] = found;
    whole.or(blanked)
}

fn derives(plan: &Plan, before: &Before<'_>) -> Result<(), NotDerived> {
    let label = match read(before, Some(plan.logical_block_bytes)) {
        Ok(label) => label.ok_or(NotDerived::NoLabel)?,
        Err(source) => return Err(NotDerived::Unreadable { source }),
    };
    let end = plan.old_place().end;
    let none = NotDerived::NoPartition {
        from: plan.from.0,
        end,
    };
    let is_it = |part: &&Partition| {
        let place = part.extent.start().0..part.extent.end().0;
        place == plan.old_place() && part.place != PartitionPlace::Slice
    };
    let mut parts = label.partitions.iter().filter(is_it).peekable();
    if parts.peek().is_none() {
        return Err(none);
    }
    // The copy that was in use then may be the unreadable one now.
    let is_derived = parts.any(|part| {
        [Role::Primary, Role::Backup].into_iter().any(|in_use| {
            let derived = label_move_of_before(&label, part.id, Bytes(plan.to.0), before, in_use);
            derived.is_ok_and(|labels| labels.hide == plan.hide && labels.finish == plan.finish)
        })
    });
    match is_derived {
        true => Ok(()),
        false => Err(NotDerived::Other),
    }
}

/// The disk with its label of before the move.
struct Before<'a> {
    disk: &'a dyn Disk,
    block_bytes: u64,
    /// Bytes and their places; later ones override earlier ones.
    patches: Vec<(u64, &'a [u8])>,
    /// Bytes that are read as zeros.
    blank: Range<u64>,
}

impl<'a> Before<'a> {
    fn new(
        plan: &'a Plan,
        torn: Option<&'a Torn>,
        disk: &'a dyn Disk,
        blank: Option<Range<u64>>,
    ) -> Self {
        let torn = torn.map(|torn| (torn.at, &torn.bytes[..]));
        // The first change of a place has its original content.
        let changes = plan.finish.iter().rev().chain(plan.hide.iter().rev());
        let old = changes.map(|change| (change.at.0, &change.old[..]));
        Before {
            disk,
            block_bytes: plan.logical_block_bytes.into(),
            patches: torn.into_iter().chain(old).collect(),
            blank: blank.unwrap_or_default(),
        }
    }
}

impl Before<'_> {
    /// Whether all bytes of a range are those of the journal, or zeros by agreement.
    fn replaces(&self, range: &Range<u64>) -> bool {
        let contains = |all: &Range<u64>| all.start <= range.start && range.end <= all.end;
        let patches = self.patches.iter();
        let mut places = patches.map(|(at, bytes)| *at..at.saturating_add(bytes.len() as u64));
        contains(&self.blank) || places.any(|place| contains(&place))
    }

    /// Reads block by block, and passes over those whose bytes come from elsewhere: they may be unreadable.
    fn read_blocks(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = at.saturating_add(buffer.len() as u64);
        let mut from = at;
        while from < end {
            let next = (from - from % self.block_bytes).saturating_add(self.block_bytes);
            let to = next.min(end);
            if !self.replaces(&(from..to)) {
                let here = (from - at) as usize..(to - at) as usize;
                self.disk.read_at(from, &mut buffer[here])?;
            }
            from = to;
        }
        Ok(())
    }
}

impl Disk for Before<'_> {
    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        let whole = self.disk.read_at(at, buffer);
        whole.or_else(|_| self.read_blocks(at, buffer))?;
        let end = at.saturating_add(buffer.len() as u64);
        // The part of a range that was asked for, by its place in the buffer.
        let common = |range: Range<u64>| {
            let (start, stop) = (at.max(range.start), end.min(range.end));
            let is_some = start < stop;
            is_some.then(|| (start - at) as usize..(stop - at) as usize)
        };
        if let Some(blank) = common(self.blank.clone()) {
            buffer[blank].fill(0);
        }
        for (from, bytes) in &self.patches {
            let range = *from..from.saturating_add(bytes.len() as u64);
            if let Some(here) = common(range) {
                let there = (at + here.start as u64 - from) as usize;
                let len = here.len();
                buffer[here].copy_from_slice(&bytes[there..there + len]);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use plumb_label::gpt::{Entry, Gpt, types};
    use plumb_label::write::apply;
    use plumb_label::{Guid, Role};

    use super::*;
    use crate::DiskOffset;
    use crate::labels::label_move;
    use crate::moving::plan::tests;
    use crate::moving::{ByteChange, Copying};

    const SECTOR: u64 = 512;

    /// A GPT with a partition in sectors 34 to 3,033, and the plan that moves it to sector 2,048.
    fn disk_and_plan() -> (Vec<u8>, Plan) {
        let mut gpt = Gpt::new(512, 8_192, Guid::from_u128(1)).expect("room");
        gpt.entries[0] = Entry {
            kind: types::LINUX,
            uuid: Guid::from_u128(2),
            first_lba: 34,
            last_lba: 3_033,
            ..gpt.entries[0].clone()
        };
        let mut image = vec![0; 8_192 * 512];
        apply(
            &gpt.encode_with_mbr(Role::Primary).expect("a label"),
            &mut image,
        )
        .expect("room");
        let label = read(&image, Some(512)).expect("it").expect("a label");
        let to = 2_048 * SECTOR;
        let moved =
            label_move(&label, label.partitions[0].id, Bytes(to), &image).expect("room for it");
        let plan = Plan {
            disk_bytes: image.len() as u64,
            copying: Copying::Batches(4096),
            at_once: 1,
            hide: moved.hide,
            finish: moved.finish,
            ..tests::plan(34 * SECTOR, to, 3_000 * SECTOR)
        };
        plan.check().expect("a good plan");
        (image, plan)
    }

    fn put(image: &mut [u8], at: u64, bytes: &[u8]) {
        image[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    /// After each change, and with the blocks of each of them torn, the plan follows from the disk.
    #[test]
    fn a_plan_follows_from_its_disk_at_every_moment() {
        let (mut image, plan) = disk_and_plan();
        must_be_derived(&plan, None, &image).expect("nothing was written");
        for change in plan.hide.iter().chain(&plan.finish) {
            let blocks = plan.unit.cover(&change.range(), plan.disk_bytes);
            let mut whole = image[blocks.start as usize..blocks.end as usize].to_vec();
            put(&mut whole, change.at.0 - blocks.start, &change.new);
            let torn = Torn {
                at: blocks.start,
                len: whole.len() as u64,
                bytes: whole,
            };
            let mut garbage = image.clone();
            put(&mut garbage, torn.at, &vec![0x5a; torn.len as usize]);
            must_be_derived(&plan, Some(&torn), &garbage).expect("its blocks are in the journal");
            if blocks.start == 0 {
                must_be_derived(&plan, None, &garbage).expect_err("the first sector is lost");
            }
            put(&mut image, change.at.0, &change.new);
            must_be_derived(&plan, None, &image).expect("a change was written");
        }
    }

    #[test]
    fn a_forged_plan_does_not_follow() {
        let (image, plan) = disk_and_plan();
        let forged = |forge: fn(&mut Plan)| {
            let mut forged = plan.clone();
            forge(&mut forged);
            must_be_derived(&forged, None, &image).expect_err("forged")
        };
        let boot_code = |plan: &mut Plan| {
            plan.hide.push(ByteChange {
                at: DiskOffset(0),
                old: vec![0; 440],
                new: vec![0x90; 440],
            });
        };
        assert!(matches!(forged(boot_code), NotDerived::Other));
        assert!(matches!(
            forged(|plan| plan.hide[0].new[60] ^= 1),
            NotDerived::Other
        ));
        assert!(matches!(
            forged(|plan| drop(plan.finish.pop())),
            NotDerived::Other
        ));
        assert!(matches!(
            forged(|plan| plan.to.0 += SECTOR),
            NotDerived::Other
        ));
        assert!(matches!(
            forged(|plan| plan.len -= SECTOR),
            NotDerived::NoPartition { .. }
        ));
        let blank = vec![0; image.len()];
        let mut without = plan.clone();
        (without.hide, without.finish) = (Vec::new(), Vec::new());
        assert!(matches!(
            must_be_derived(&without, None, &blank),
            Err(NotDerived::NoLabel)
        ));
    }
}
