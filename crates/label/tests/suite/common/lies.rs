//! The obvious model: the position of a partition, read from the bytes at their offsets, one field at a time.

use plumb_label::{Label, LabelKind, Partition, PartitionPlace, PartitionType};

fn le(bytes: &[u8], at: usize, len: usize) -> u128 {
    bytes[at..at + len]
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u128::from(*byte))
}

fn be(bytes: &[u8], at: usize, len: usize) -> u128 {
    bytes[at..at + len]
        .iter()
        .fold(0, |value, byte| value << 8 | u128::from(*byte))
}

/// First byte, number of bytes and type of every partition equal those in the image.
pub fn assert_lies_as_the_bytes_say(label: &Label, image: &[u8]) {
    for partition in &label.partitions {
        let (first, lbas, kind) = match (label.kind, partition.place) {
            (LabelKind::Gpt | LabelKind::SolarisEfi, _) => gpt(label, image, partition),
            (LabelKind::SparcVtoc, _) => sparc(label, image, partition),
            (_, PartitionPlace::Slice) => x86(label, image, partition),
            (_, PartitionPlace::Logical) => logical(label, image, partition),
            _ => mbr(image, 446 + 16 * (partition.id.number as usize - 1), 0),
        };
        let sector_bytes = u128::from(label.sector_bytes);
        assert_eq!(
            u128::from(partition.extent.start().0),
            first * sector_bytes,
            "start of {}",
            partition.id
        );
        assert_eq!(
            u128::from(partition.extent.len().0),
            lbas * sector_bytes,
            "length of {}",
            partition.id
        );
        match partition.kind {
            PartitionType::Guid(guid) => assert_eq!(u128::from_le_bytes(guid.0), kind),
            PartitionType::Mbr(found) => assert_eq!(u128::from(found), kind),
            PartitionType::Tag(found) => assert_eq!(u128::from(found), kind),
        }
    }
}

fn used(label: &Label) -> usize {
    let copy = label
        .copies
        .iter()
        .rfind(|copy| copy.is_used)
        .expect("partitions are of some copy");
    assert_eq!(copy.fault, None);
    usize::try_from(copy.at.0).expect("in memory")
}

fn gpt(label: &Label, image: &[u8], partition: &Partition) -> (u128, u128, u128) {
    let header = used(label);
    let array = le(image, header + 72, 8) * u128::from(label.sector_bytes);
    let entry = array + le(image, header + 84, 4) * u128::from(partition.id.number - 1);
    let entry = usize::try_from(entry).expect("in memory");
    let (first, last) = (le(image, entry + 32, 8), le(image, entry + 40, 8));
    (first, last - first + 1, le(image, entry, 16))
}

fn mbr(image: &[u8], entry: usize, base: u128) -> (u128, u128, u128) {
    (
        base + le(image, entry + 8, 4),
        le(image, entry + 12, 4),
        le(image, entry + 4, 1),
    )
}

/// Walks the chain to the partition asked for, without a thought for chains that do not end.
fn logical(label: &Label, image: &[u8], partition: &Partition) -> (u128, u128, u128) {
    let is_extended = |kind: u128| matches!(kind, 0x05 | 0x0f | 0x85);
    let sector =
        |lba: u128| usize::try_from(lba * u128::from(label.sector_bytes)).expect("in memory");
    let mut number = 5;
    for extended in 0..4 {
        let (base, count, kind) = mbr(image, 446 + 16 * extended, 0);
        let mut next = (is_extended(kind) && count > 0).then_some(base);
        while let Some(lba) = next.take() {
            for slot in 0..2 {
                let found = mbr(image, sector(lba) + 446 + 16 * slot, 0);
                if found.1 == 0 {
                    continue;
                }
                if is_extended(found.2) {
                    next = next.or(Some(base + found.0));
                } else if number == partition.id.number {
                    return (lba + found.0, found.1, found.2);
                } else {
                    number += 1;
                }
            }
        }
    }
    panic!("{} stands nowhere", partition.id)
}

fn sparc(label: &Label, image: &[u8], partition: &Partition) -> (u128, u128, u128) {
    let at = used(label);
    let slice = partition.id.slice.expect("a slice") as usize;
    let cylinder = be(image, at + 436, 2) * be(image, at + 438, 2);
    let has_tags = be(image, at + 188, 4) == 0x600d_deee
        && be(image, at + 128, 4) == 1
        && be(image, at + 140, 2) == 8;
    let tag = if has_tags {
        be(image, at + 142 + 4 * slice, 2)
    } else {
        0
    };
    (
        be(image, at + 444 + 8 * slice, 4) * cylinder,
        be(image, at + 448 + 8 * slice, 4),
        tag,
    )
}

fn x86(label: &Label, image: &[u8], partition: &Partition) -> (u128, u128, u128) {
    let parent = partition.id.within.expect("a parent");
    let parent = label
        .partitions
        .iter()
        .find(|p| p.place != PartitionPlace::Slice && p.id.number == parent)
        .expect("listed");
    let within = |copy: &&plumb_label::LabelCopy| {
        copy.is_used
            && copy.at >= parent.extent.start()
            && copy.at < parent.extent.end()
            && copy.at.0 > 0
    };
    let at = usize::try_from(label.copies.iter().find(within).expect("a label").at.0)
        .expect("in memory");
    let slice = at + 72 + 12 * partition.id.slice.expect("a slice") as usize;
    let base = u128::from(parent.extent.start().0 / u64::from(label.sector_bytes));
    (
        base + le(image, slice + 4, 4),
        le(image, slice + 8, 4),
        le(image, slice, 2),
    )
}
