//! The label of a partition during its move: first an entry of type *moving* over its old and its new place, so that no
//! tool creates a partition there or mounts it; at the end the entry at the new place.

use plumb_geometry::{Bytes, Extent};
use plumb_label::write as label;
use plumb_label::{Detail, Disk, Label, PartId, PartitionPlace, Role, gpt, mbr};

use crate::labels::change::{Change, ChangeError, ChangeStep, Changed};
use crate::labels::edit::{EditError, encode, relocated};
use crate::{DiskOffset, moving};

/// The writes to a label before the first byte of data, and after the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelMove {
    /// To the entry of type *moving*.
    pub hide: Vec<moving::ByteChange<DiskOffset>>,
    /// From there to the entry at the new place.
    pub finish: Vec<moving::ByteChange<DiskOffset>>,
}

/// Why a label cannot go along with a move.
#[derive(Debug, thiserror::Error)]
pub enum LabelMoveError {
    /// The label cannot have it there.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The disk cannot be read.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// An obstacle between the places.
    #[error("{other} begins at {} and ends at {}, between the old and the new place of {part}", lies.start().0, lies.end().0)]
    Between {
        /// The partition that is moved.
        part: PartId,
        /// The obstacle.
        other: String,
        /// Its extent.
        lies: Extent,
    },
    /// A slice has no type of its own that others would heed.
    #[error(
        "{part} is a slice of a Solaris VTOC: its type would stop nobody from using it during the move"
    )]
    Slice {
        /// The partition.
        part: PartId,
    },
}

/// Works out the label's part of a move.
///
/// # Errors
/// If there is an obstacle between the two places, or the label cannot have the partition there.
pub fn label_move(
    label: &Label,
    part: PartId,
    to: Bytes,
    disk: &dyn Disk,
) -> Result<LabelMove, LabelMoveError> {
    let in_use = label.in_use().unwrap_or(Role::Primary);
    label_move_by(label, part, to, disk, in_use, Change::for_disk)
}

/// The same for a move that was begun while `in_use` was the good copy. Blocks of the other copy may be unreadable by now: as far
/// as the label is right, they hold what it says.
pub(super) fn label_move_of_before(
    label: &Label,
    part: PartId,
    to: Bytes,
    before: &dyn Disk,
    in_use: Role,
) -> Result<LabelMove, LabelMoveError> {
    let block = label.sector_bytes as usize;
    label_move_by(label, part, to, before, in_use, |steps, disk| {
        Change::for_readable_blocks(steps, disk, block)
    })
}

fn label_move_by(
    label: &Label,
    part: PartId,
    to: Bytes,
    disk: &dyn Disk,
    in_use: Role,
    change: impl Fn(&[label::WriteStep], &dyn Disk) -> Result<Change, ChangeError>,
) -> Result<LabelMove, LabelMoveError> {
    let block = label.sector_bytes as usize;
    let known = label.partitions.iter().find(|known| known.id == part);
    let known = known.ok_or(EditError::NoSuchPartition { part })?;
    let (from, len) = (known.extent.start(), known.extent.len());
    let place = |start: Bytes, len: Bytes| {
        Extent::new(start, len).map_err(|_| EditError::TooLarge {
            part,
            what: "end",
            found: start.0,
            most: u64::MAX - len.0,
        })
    };
    let union = place(
        from.min(to),
        Bytes(from.0.abs_diff(to.0).saturating_add(len.0)),
    )?;
    let finished = relocated(label, part, place(to, len)?)?;
    let mut hidden = relocated(label, part, union).map_err(|error| match error {
        EditError::Taken { other, lies, .. } => LabelMoveError::Between { part, other, lies },
        error => error.into(),
    })?;
    take_type(&mut hidden, part, known.place)?;
    let hide = change(&encode(&hidden, in_use, false)?, disk)?;
    // Solaris's labels within a partition are data, and go with it.
    let finish = change(
        &outside(&encode(&finished, in_use, false)?, union),
        &Changed::new(disk, &hide),
    )?;
    let hide = change(&outside(&encode(&hidden, in_use, false)?, union), disk)?;
    Ok(LabelMove {
        hide: changes(&hide, block),
        finish: changes(&finish, block),
    })
}

/// Without the parts of a label among the data of the partition itself.
fn outside(steps: &[label::WriteStep], union: Extent) -> Vec<label::WriteStep> {
    let lies_within = |at: Bytes| at >= union.start() && at < union.end();
    let kept = steps.iter().filter(|step| match step {
        label::WriteStep::Write { at, .. } => !lies_within(*at),
        label::WriteStep::Flush => true,
    });
    kept.cloned().collect()
}

/// Each copy of the label as one change: a header that is good only with its table changes with it, and if such changes
/// are undone one after the other, one copy is good at every moment.
///
/// Whole blocks from the first that differs to the last: the end of a table of entries may share a physical block with a
/// neighbour's data, which then need not be touched.
fn changes(change: &Change, block: usize) -> Vec<moving::ByteChange<DiskOffset>> {
    let narrowed = |moving::ByteChange { at, old, new }: moving::ByteChange<DiskOffset>| {
        let pairs = old.chunks(block).zip(new.chunks(block)).enumerate();
        let mut differing = pairs
            .filter(|(_, (old, new))| old != new)
            .map(|(index, _)| index * block);
        let first = differing.next()?;
        let range = first..(differing.next_back().unwrap_or(first) + block).min(new.len());
        let at = DiskOffset(at.0 + first as u64);
        Some(moving::ByteChange {
            at,
            old: old[range.clone()].to_vec(),
            new: new[range].to_vec(),
        })
    };
    joined(change).into_iter().filter_map(narrowed).collect()
}

/// Writes between two flushes that touch each other are one.
fn joined(change: &Change) -> Vec<moving::ByteChange<DiskOffset>> {
    let mut joined: Vec<moving::ByteChange<DiskOffset>> = Vec::new();
    let mut may_join = false;
    for step in change.steps() {
        let ChangeStep::Write { at, old, new } = step else {
            may_join = false;
            continue;
        };
        let one = moving::ByteChange {
            at: DiskOffset(at.0),
            old: old.clone(),
            new: new.clone(),
        };
        match joined.last_mut().filter(|_| may_join) {
            Some(last) if last.range().end == one.at.0 => {
                last.old.extend(one.old);
                last.new.extend(one.new);
            }
            Some(last) if one.range().end == last.at.0 => {
                let (old, new) = (
                    [one.old, last.old.clone()].concat(),
                    [one.new, last.new.clone()].concat(),
                );
                *last = moving::ByteChange {
                    at: one.at,
                    old,
                    new,
                };
            }
            _ => joined.push(one),
        }
        may_join = true;
    }
    joined
}

fn take_type(
    detail: &mut Detail,
    part: PartId,
    place: PartitionPlace,
) -> Result<(), LabelMoveError> {
    let missing = LabelMoveError::Edit(EditError::NoSuchPartition { part });
    let number = usize::try_from(part.number).unwrap_or(usize::MAX);
    match detail {
        Detail::Gpt(gpt) => {
            let entry = number
                .checked_sub(1)
                .and_then(|index| gpt.entries.get_mut(index))
                .ok_or(missing)?;
            entry.kind = gpt::types::MOVING;
        }
        Detail::Mbr(mbr, _) if place == PartitionPlace::Disk => {
            let entries = &mut mbr.first.entries;
            number
                .checked_sub(1)
                .and_then(|index| entries.get_mut(index))
                .ok_or(missing)?
                .kind = mbr::types::MOVING;
        }
        Detail::Mbr(mbr, _) if place == PartitionPlace::Logical => {
            let index = number.checked_sub(5).ok_or(missing)?;
            let missing = LabelMoveError::Edit(EditError::NoSuchPartition { part });
            mbr.logical_mut(index).ok_or(missing)?.1.kind = mbr::types::MOVING;
        }
        Detail::Mbr(..) | Detail::SparcVtoc(_) => return Err(LabelMoveError::Slice { part }),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::new::{NewIds, NewKind, NewLabel};
    use plumb_label::Guid;
    use plumb_label::gpt::{Entry, types};
    use plumb_label::mbr::MbrEntry;
    use plumb_label::vtoc::{Geometry, Slice, tags};
    use plumb_label::{Gpt, Mbr, Partition, X86Vtoc, apply, read};

    const SECTOR: u64 = 512;

    fn disk(parts: &[(u64, u64)]) -> Vec<u8> {
        let mut gpt = Gpt::new(512, 8_192, Guid::from_u128(1)).expect("room");
        for (at, (first, last)) in parts.iter().enumerate() {
            let (kind, uuid) = (types::LINUX, Guid::from_u128(at as u128 + 2));
            gpt.entries[at] = Entry {
                kind,
                uuid,
                first_lba: *first,
                last_lba: *last,
                ..gpt.entries[at].clone()
            };
        }
        let mut image = vec![0; 8_192 * 512];
        apply(
            &gpt.encode_with_mbr(Role::Primary).expect("a label"),
            &mut image,
        )
        .expect("room");
        image
    }

    fn label_of(image: &[u8]) -> Label {
        read(&image, Some(512)).expect("readable").expect("a label")
    }

    fn applied(image: &mut [u8], changes: &[moving::ByteChange<DiskOffset>]) {
        for change in changes {
            let at = change.at.0 as usize;
            let place = &mut image[at..at + change.new.len()];
            assert_eq!(place, change.old, "byte {at}");
            place.copy_from_slice(&change.new);
        }
    }

    #[test]
    fn an_entry_covers_both_places_and_then_the_new_one() {
        for (to, union) in [(2_048, (34, 5_047)), (100, (34, 3_099))] {
            let mut image = disk(&[(34, 3_033), (6_000, 7_000)]);
            let before = label_of(&image);
            let part = before.partitions[0].id;
            let moved = label_move(&before, part, Bytes(to * SECTOR), &image).expect("room");
            // The backup first, each its table and its header at once.
            let sectors: Vec<_> = moved
                .hide
                .iter()
                .map(|change| in_sectors(change.range()))
                .collect();
            assert_eq!(sectors, [8_191 - 32..8_192, 1..3]);
            applied(&mut image, &moved.hide);
            let hidden = label_of(&image);
            let extent = hidden.partitions[0].extent;
            assert_eq!(
                (extent.start().0 / SECTOR, extent.end().0 / SECTOR - 1),
                union
            );
            assert!(hidden.partitions[0].kind.is_moving());
            assert_eq!(hidden.partitions[0].uuid, before.partitions[0].uuid);
            assert_eq!(
                (&hidden.partitions[1], &hidden.problems),
                (&before.partitions[1], &before.problems)
            );
            applied(&mut image, &moved.finish);
            let after = label_of(&image);
            assert_eq!(after.problems, []);
            assert_eq!(after.partitions[0].extent.start().0, to * SECTOR);
            assert_eq!(
                after.partitions[0].extent.len(),
                before.partitions[0].extent.len()
            );
            assert_eq!(after.partitions[0].kind, before.partitions[0].kind);
            assert_eq!(after.partitions[1], before.partitions[1]);
        }
    }

    /// The table of entries ends in sector 33, and the neighbour begins in the next one.
    #[test]
    fn only_blocks_that_change_are_written() {
        let image = disk(&[(34, 1_033), (2_049, 2_500)]);
        let before = label_of(&image);
        let moved = label_move(
            &before,
            before.partitions[1].id,
            Bytes(2_304 * SECTOR),
            &image,
        )
        .expect("room");
        for changes in [&moved.hide, &moved.finish] {
            let sectors: Vec<_> = changes
                .iter()
                .map(|change| in_sectors(change.range()))
                .collect();
            assert_eq!(sectors, [8_191 - 32..8_192, 1..3]);
        }
        assert!(
            moved
                .hide
                .iter()
                .chain(&moved.finish)
                .all(|change| change.old != change.new)
        );
    }

    /// A rollback undoes the changes in the order in which they were made, however many of them were.
    #[test]
    fn one_copy_is_good_at_every_moment() {
        // One of the first entries, and one in the last sector of the table.
        for entry in [0, 127] {
            let mut gpt = Gpt::new(512, 8_192, Guid::from_u128(1)).expect("room");
            let (kind, uuid) = (types::LINUX, Guid::from_u128(2));
            gpt.entries[entry] = Entry {
                kind,
                uuid,
                first_lba: 34,
                last_lba: 3_033,
                ..gpt.entries[entry].clone()
            };
            let mut image = vec![0; 8_192 * 512];
            apply(
                &gpt.encode_with_mbr(Role::Primary).expect("a label"),
                &mut image,
            )
            .expect("room");
            let before = label_of(&image);
            let moved = label_move(
                &before,
                before.partitions[0].id,
                Bytes(2_048 * SECTOR),
                &image,
            )
            .expect("room");
            for changes in [&moved.hide, &moved.finish] {
                for done in 0..=changes.len() {
                    let mut image = image.clone();
                    let steps = changes[..done]
                        .iter()
                        .map(|change| (change.at.0, &change.new));
                    let back = changes[..done]
                        .iter()
                        .map(|change| (change.at.0, &change.old));
                    for (at, bytes) in steps.chain(back) {
                        image[at as usize..][..bytes.len()].copy_from_slice(bytes);
                        let label = label_of(&image);
                        assert!(
                            label.copies.iter().any(|copy| copy.fault.is_none()),
                            "byte {at}: {:?}",
                            label.problems
                        );
                        assert_eq!(label.partitions.len(), 1);
                    }
                }
                applied(&mut image, changes);
            }
        }
    }

    fn in_sectors(range: std::ops::Range<u64>) -> std::ops::Range<u64> {
        range.start / SECTOR..range.end / SECTOR
    }

    #[test]
    fn signatures_between_the_labels_block_a_change() {
        let image = disk(&[(34, 1_033), (2_000, 2_500)]);
        let before = label_of(&image);
        let to = |lba: u64| {
            label_move(
                &before,
                before.partitions[0].id,
                Bytes(lba * SECTOR),
                &image,
            )
        };
        let found = to(4_000);
        assert!(
            matches!(&found, Err(LabelMoveError::Between { other, .. }) if other == "partition 2"),
            "{found:?}"
        );
        // The error names the requested place.
        let found = to(1_500);
        let Err(LabelMoveError::Edit(EditError::Taken { found, .. })) = found else {
            panic!("{found:?}")
        };
        assert_eq!(
            (found.start(), found.len()),
            (Bytes(1_500 * SECTOR), Bytes(1_000 * SECTOR))
        );
    }

    /// The place is free, so the type is the only obstacle.
    #[test]
    fn slices_are_refused() {
        for (image, to) in [(sparc_disk(), 4_096), (x86_disk(), 3_072)] {
            let label = label_of(&image);
            let is_slice = |part: &&Partition| part.id.slice.is_some() && !part.is_whole_disk;
            let slice = label.partitions.iter().find(is_slice).expect("a slice").id;
            let found = label_move(&label, slice, Bytes(to * SECTOR), &image);
            assert!(
                matches!(found, Err(LabelMoveError::Slice { part }) if part == slice),
                "{:?}: {found:?}",
                label.kind
            );
        }
    }

    /// Slice 0 from sector 1,024 on, in cylinders of 256 sectors.
    fn sparc_disk() -> Vec<u8> {
        let kind = NewKind::SparcVtoc {
            heads: 4,
            sectors: 64,
        };
        let id = Guid::from_u128(1);
        let ids = NewIds {
            disk: id,
            partition: id,
            reserved: id,
        };
        let extent = Extent::new(Bytes(1_024 * SECTOR), Bytes(1_024 * SECTOR)).expect("small");
        let new = NewLabel {
            kind,
            sector_bytes: 512,
            disk_lbas: 8_192,
            number: 0,
            extent,
            ids,
        };
        let mut image = vec![0; 8_192 * 512];
        apply(
            &encode(&new.detail().expect("room"), Role::Primary, true).expect("a label"),
            &mut image,
        )
        .expect("room");
        image
    }

    /// The same in a partition of an MBR, from sector 512 on.
    fn x86_disk() -> Vec<u8> {
        let mut mbr = Mbr::new(512, 8_192).expect("a sector size");
        mbr.first.entries[0] = MbrEntry {
            kind: 0xbf,
            first: 512,
            count: 7_680,
            ..MbrEntry::default()
        };
        let cylinders = 30;
        let geometry = Geometry {
            cylinders_physical: cylinders,
            cylinders,
            cylinders_alternate: 0,
            heads: 4,
            sectors: 64,
        };
        let mut vtoc = X86Vtoc::new(512, 1, 512, 7_680, geometry).expect("fits");
        vtoc.slices[0] = Slice {
            tag: tags::USR,
            flag: 0,
            start: 512,
            count: 1_024,
        };
        let mut image = vec![0; 8_192 * 512];
        apply(&mbr.encode().expect("fits"), &mut image).expect("room");
        apply(&vtoc.encode(Role::Primary).expect("fits"), &mut image).expect("room");
        image
    }
}
