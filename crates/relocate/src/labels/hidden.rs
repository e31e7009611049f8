//! The label of a partition that is being moved: first an entry of type *moving* over its old and its new place, so that
//! nobody makes a partition there and nobody takes it for what it was; at the end the entry at the new place.

use plumb_geometry::{Bytes, Extent};
use plumb_label::write as label;
use plumb_label::{Detail, Disk, Guid, Label, PartId, Place, Role};

use crate::labels::change::{Change, ChangeError, Changed};
use crate::labels::edit::{EditError, encode, relocated};
use crate::moving;

/// Type of a partition that is being moved; drawn at random for this purpose.
pub const MOVING: Guid = Guid::from_u128(0x9c3f6a52_71d8_4be0_a4c7_5d2e80b1f963);
/// The same in an MBR: one that is free for uses like this.
pub const MOVING_MBR: u8 = 0x7f;

/// What is written to a label before the first byte of data, and after the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelMove {
    /// To the entry of type *moving*.
    pub hide: Vec<moving::Change>,
    /// From there to the entry at the new place.
    pub finish: Vec<moving::Change>,
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
    /// A slice has no type of its own that others would heed.
    #[error("{part} is a slice of a Solaris VTOC: its type would stop nobody from using it during the move")]
    Slice {
        /// Which one.
        part: PartId,
    },
}

/// Works out the label's part of a move.
///
/// # Errors
/// When something lies between the two places, or the label cannot have the partition there.
pub fn label_move(
    label: &Label,
    part: PartId,
    to: Bytes,
    disk: &dyn Disk,
) -> Result<LabelMove, LabelMoveError> {
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
    let union = place(from.min(to), Bytes(from.0.abs_diff(to.0).saturating_add(len.0)))?;
    let mut hidden = relocated(label, part, union)?;
    let finished = relocated(label, part, place(to, len)?)?;
    take_type(&mut hidden, part, known.place)?;
    let in_use = label.in_use().unwrap_or(Role::Primary);
    let hide = Change::of(&encode(&hidden, in_use, false)?, disk)?;
    // Solaris's labels within a partition are data, and go with it.
    let finish = Change::of(&outside(&encode(&finished, in_use, false)?, union), &Changed::new(disk, &hide))?;
    let hide = Change::of(&outside(&encode(&hidden, in_use, false)?, union), disk)?;
    Ok(LabelMove { hide: changes(&hide), finish: changes(&finish) })
}

/// Without what a label has among the data of the partition itself.
fn outside(steps: &[label::Step], union: Extent) -> Vec<label::Step> {
    let lies_within = |at: Bytes| at >= union.start() && at < union.end();
    let kept = steps.iter().filter(|step| match step {
        label::Step::Write { at, .. } => !lies_within(*at),
        label::Step::Flush => true,
    });
    kept.cloned().collect()
}

fn changes(change: &Change) -> Vec<moving::Change> {
    let writes = change.writes();
    writes.map(|(at, old, new)| moving::Change { at: at.0, old: old.to_vec(), new: new.to_vec() }).collect()
}

fn take_type(detail: &mut Detail, part: PartId, place: Place) -> Result<(), LabelMoveError> {
    let missing = LabelMoveError::Edit(EditError::NoSuchPartition { part });
    let number = usize::try_from(part.number).unwrap_or(usize::MAX);
    match detail {
        Detail::Gpt(gpt) => {
            let entry = number.checked_sub(1).and_then(|index| gpt.entries.get_mut(index)).ok_or(missing)?;
            entry.kind = MOVING;
        }
        Detail::Mbr(mbr, _) if place == Place::Disk => {
            let entries = &mut mbr.first.entries;
            number.checked_sub(1).and_then(|index| entries.get_mut(index)).ok_or(missing)?.kind = MOVING_MBR;
        }
        Detail::Mbr(mbr, _) if place == Place::Logical => {
            let index = number.checked_sub(5).ok_or(missing)?;
            let missing = LabelMoveError::Edit(EditError::NoSuchPartition { part });
            mbr.logical_mut(index).ok_or(missing)?.1.kind = MOVING_MBR;
        }
        Detail::Mbr(..) | Detail::SparcVtoc(_) => return Err(LabelMoveError::Slice { part }),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_label::gpt::{Entry, types};
    use plumb_label::{Gpt, apply, read};

    const SECTOR: u64 = 512;

    fn disk(parts: &[(u64, u64)]) -> Vec<u8> {
        let mut gpt = Gpt::new(512, 8_192, Guid::from_u128(1)).expect("room");
        for (at, (first, last)) in parts.iter().enumerate() {
            let (kind, uuid) = (types::LINUX, Guid::from_u128(at as u128 + 2));
            gpt.entries[at] =
                Entry { kind, uuid, first_lba: *first, last_lba: *last, ..gpt.entries[at].clone() };
        }
        let mut image = vec![0; 8_192 * 512];
        apply(&gpt.encode_with_mbr(Role::Primary).expect("a label"), &mut image).expect("room");
        image
    }

    fn label_of(image: &Vec<u8>) -> Label {
        read(image, Some(512)).expect("readable").expect("a label")
    }

    fn applied(image: &mut [u8], changes: &[moving::Change]) {
        for change in changes {
            let at = change.at as usize;
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
            // The backup first, each its array and then its header.
            let last = 8_191 * SECTOR;
            let places: Vec<u64> = moved.hide.iter().map(|change| change.at).collect();
            assert_eq!(places, [last - 32 * SECTOR, last, 2 * SECTOR, SECTOR]);
            applied(&mut image, &moved.hide);
            let hidden = label_of(&image);
            let extent = hidden.partitions[0].extent;
            assert_eq!((extent.start().0 / SECTOR, extent.end().0 / SECTOR - 1), union);
            assert_eq!(hidden.partitions[0].kind, plumb_label::PartitionType::Guid(MOVING));
            assert_eq!(hidden.partitions[0].uuid, before.partitions[0].uuid);
            assert_eq!((&hidden.partitions[1], &hidden.problems), (&before.partitions[1], &before.problems));
            applied(&mut image, &moved.finish);
            let after = label_of(&image);
            assert_eq!(after.problems, []);
            assert_eq!(after.partitions[0].extent.start().0, to * SECTOR);
            assert_eq!(after.partitions[0].extent.len(), before.partitions[0].extent.len());
            assert_eq!(after.partitions[0].kind, before.partitions[0].kind);
            assert_eq!(after.partitions[1], before.partitions[1]);
        }
    }

    #[test]
    fn what_lies_between_is_in_the_way() {
        let image = disk(&[(34, 1_033), (2_000, 2_500)]);
        let before = label_of(&image);
        let found = label_move(&before, before.partitions[0].id, Bytes(4_000 * SECTOR), &image);
        assert!(matches!(found, Err(LabelMoveError::Edit(EditError::Taken { .. }))), "{found:?}");
    }
}
