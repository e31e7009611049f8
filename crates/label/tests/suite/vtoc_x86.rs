//! x86 labels. No available tool writes one, so the image is built here byte by byte from the offset table of illumos
//! `sys/dklabel.h`, apart from the codec, and compared with the result of util-linux.

use crate::common::{Image, applied, assert_same_bytes, has, label_of, rows, run};
use plumb_label::vtoc::{Geometry, Slice};
use plumb_label::{
    Detail, Fault, Label, LabelKind, PartId, PartitionPlace, Problem, Role, X86Vtoc,
};
use plumb_testkit::require;

/// The Solaris partition begins at the second cylinder of 255 heads and 63 sectors.
const FIRST: u64 = 16_065;
const LBAS: u64 = 7 * 16_065;
/// Tag, flag, first block within the partition, number of blocks.
const SLICES: [(usize, [u32; 4]); 5] = [
    (0, [2, 0, 32_130, 32_130]),
    (1, [3, 1, 64_260, 16_065]),
    (2, [5, 0, 0, 112_455]),
    (8, [1, 1, 0, 16_065]),
    (9, [9, 1, 16_065, 16_065]),
];

/// The label's sector by the offset table.
fn sector() -> Vec<u8> {
    let mut sector = vec![0u8; 512];
    let mut put = |at: usize, bytes: &[u8]| sector[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &[7; 12]); // bootinfo
    put(12, &[0xee, 0xde, 0x0d, 0x60]);
    put(16, &1u32.to_le_bytes());
    put(20, b"volume\0\0");
    put(28, &512u16.to_le_bytes());
    put(30, &16u16.to_le_bytes());
    for (number, [tag, flag, start, count]) in SLICES {
        let at = 72 + 12 * number;
        put(at, &(tag as u16).to_le_bytes());
        put(at + 2, &(flag as u16).to_le_bytes());
        put(at + 4, &start.to_le_bytes());
        put(at + 8, &count.to_le_bytes());
    }
    put(264, &[9; 64]); // timestamps
    put(328, b"DEFAULT cyl 5 alt 2 hd 255 sec 63");
    put(456, &7u32.to_le_bytes());
    put(460, &5u32.to_le_bytes());
    put(464, &2u16.to_le_bytes());
    put(468, &255u32.to_le_bytes());
    put(472, &63u32.to_le_bytes());
    put(476, &1u16.to_le_bytes()); // interleave
    put(482, &3_600u16.to_le_bytes()); // rpm
    put(508, &[0xbe, 0xda]);
    seal(&mut sector);
    sector
}

fn seal(sector: &mut [u8]) {
    let sum = sector[..510]
        .chunks(2)
        .fold([0, 0], |sum, word| [sum[0] ^ word[0], sum[1] ^ word[1]]);
    sector[510..512].copy_from_slice(&sum);
}

fn disk(kind: u8) -> Vec<u8> {
    let mut disk = vec![0u8; 64 << 20];
    disk[446 + 4] = kind;
    disk[446 + 8..446 + 12].copy_from_slice(&(FIRST as u32).to_le_bytes());
    disk[446 + 12..446 + 16].copy_from_slice(&(LBAS as u32).to_le_bytes());
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    let at = (FIRST as usize + 1) * 512;
    disk[at..at + 512].copy_from_slice(&sector());
    disk
}

fn vtocs(label: &Label) -> &[X86Vtoc] {
    match &label.detail {
        Some(Detail::Mbr(_, vtocs)) => vtocs,
        other => panic!("found {other:?}, expected an MBR"),
    }
}

#[test]
fn slices_count_from_their_partition() {
    for kind in [0xbf, 0x82] {
        let label = label_of(&disk(kind), 512);
        assert_eq!(
            (label.kind, &label.problems[..]),
            (LabelKind::X86Vtoc, &[][..])
        );
        let slices: Vec<_> = label
            .partitions
            .iter()
            .filter(|p| p.place == PartitionPlace::Slice)
            .collect();
        assert_eq!(slices.len(), SLICES.len());
        for (slice, (number, [tag, _, start, count])) in slices.iter().zip(SLICES) {
            assert_eq!(
                (slice.id.slice, slice.id.within),
                (Some(number as u32), Some(1))
            );
            assert_eq!(slice.extent.start().0, (FIRST + u64::from(start)) * 512);
            assert_eq!(slice.extent.len().0, u64::from(count) * 512);
            assert_eq!(
                (slice.is_whole_disk, slice.kind),
                (tag == 5, plumb_label::PartitionType::Tag(tag as u16))
            );
        }
        assert_eq!(slices[0].id.to_string(), "slice 0 of partition 1");
        assert_same_bytes(
            &vtocs(&label)[0]
                .encode(Role::Primary)
                .expect("can be written"),
            &disk(kind),
        );
        assert_eq!(vtocs(&label)[0].geometry.cylinder_lbas(), FIRST);
    }
}

/// libblkid looks for slices in partitions of type 0x82 only, and leaves the whole-disk slice out.
#[test]
fn util_linux_sees_the_same_slices() {
    require!(Tool("partx"));
    let image = Image::new(1 << 20, 512);
    image.put(&disk(0x82));
    let path = image.path();
    let path = path.to_str().expect("a path of text");
    let text = run(
        "partx",
        &["--raw", "--noheadings", "--output", "START,SECTORS", path],
        512,
        "",
    );
    let mut theirs: Vec<(u64, u64)> = text
        .lines()
        .map(|line| {
            let (start, count) = line.split_once(' ').expect("two columns");
            (
                start.parse().expect("a number"),
                count.parse().expect("a number"),
            )
        })
        .collect();
    let label = image.label();
    let shown = label.partitions.iter().filter(|p| !p.is_whole_disk);
    let mut ours: Vec<(u64, u64)> = shown
        .map(|p| crate::common::row(p, 512))
        .map(|(_, start, count)| (start, count))
        .collect();
    theirs.sort_unstable();
    ours.sort_unstable();
    assert_eq!(ours, theirs);
}

#[test]
fn a_changed_label_is_at_its_place_with_a_checksum() {
    let bytes = disk(0xbf);
    let mut changed = vtocs(&label_of(&bytes, 512))[0].clone();
    changed.slices[7] = Slice {
        tag: 8,
        flag: 0,
        start: 80_325,
        count: 32_130,
    };
    let after = applied(
        &changed.encode(Role::Primary).expect("can be written"),
        &bytes,
    );
    let mut expected = sector();
    let at = 72 + 12 * 7;
    expected[at..at + 12].copy_from_slice(&[8, 0, 0, 0, 0xc5, 0x39, 1, 0, 0x82, 0x7d, 0, 0]);
    seal(&mut expected);
    let place = (FIRST as usize + 1) * 512;
    assert!(after[place..place + 512] == expected[..]);
    assert!(after[..place] == bytes[..place] && after[place + 512..] == bytes[place + 512..]);
}

#[test]
fn a_broken_label_is_reported_and_a_backup_answers() {
    let mut bytes = disk(0xbf);
    let mut with_backups = vtocs(&label_of(&bytes, 512))[0].clone();
    let place = (FIRST as usize + 1) * 512;
    bytes[place + 300] ^= 1;
    let label = label_of(&bytes, 512);
    let broken = |p: &Problem| {
        matches!(
            p,
            Problem::BrokenCopy {
                lba: 16_066,
                fault: Fault::Checksum { over: "label", .. },
                ..
            }
        )
    };
    assert!(
        has(&label, broken) && has(&label, |p| *p == Problem::NoGoodCopy),
        "{:?}",
        label.problems
    );
    assert_eq!(
        (label.kind, rows(&label)),
        (LabelKind::Mbr, vec![(1, FIRST, LBAS)])
    );

    with_backups.backup_lbas = with_backups
        .geometry
        .backup_lbas()
        .iter()
        .map(|lba| lba + FIRST)
        .collect();
    let mut bytes = applied(
        &with_backups.encode(Role::Primary).expect("can be written"),
        &bytes,
    );
    assert_eq!(label_of(&bytes, 512).problems, []);
    bytes[place + 300] ^= 1;
    let label = label_of(&bytes, 512);
    assert!(
        label.problems.len() == 1 && has(&label, broken),
        "{:?}",
        label.problems
    );
    assert_eq!(label.partitions.len(), 1 + SLICES.len());
}

#[test]
fn overlapping_and_overhanging_slices_are_reported() {
    let bytes = disk(0xbf);
    let mut odd = vtocs(&label_of(&bytes, 512))[0].clone();
    odd.slices[1].start = 64_259;
    odd.slices[7] = Slice {
        tag: 8,
        flag: 0,
        start: 112_454,
        count: 2,
    };
    let label = label_of(
        &applied(&odd.encode(Role::Primary).expect("can be written"), &bytes),
        512,
    );
    let slice = |number| PartId::slice(number, Some(1));
    assert_eq!(
        label.problems,
        [
            Problem::OutsideParent {
                part: slice(7),
                parent: PartId::partition(1)
            },
            Problem::Overlap {
                first: slice(0),
                second: slice(1)
            }
        ]
    );
}

/// Type 0x82 is Linux swap much more often.
#[test]
fn a_partition_without_label_is_just_one() {
    for kind in [0xbf, 0x82] {
        let mut bytes = disk(kind);
        let place = (FIRST as usize + 1) * 512;
        bytes[place..place + 512].fill(0);
        let label = label_of(&bytes, 512);
        assert_eq!((label.kind, &label.problems[..]), (LabelKind::Mbr, &[][..]));
    }
}

#[test]
fn a_new_label_reads_back() {
    let geometry = Geometry {
        cylinders_physical: 7,
        cylinders: 5,
        cylinders_alternate: 2,
        heads: 255,
        sectors: 63,
    };
    let new = X86Vtoc::new(512, 1, FIRST, LBAS, geometry).expect("blocks that 32 bits count");
    let label = label_of(
        &applied(
            &new.encode(Role::Primary).expect("can be written"),
            &disk(0xbf),
        ),
        512,
    );
    assert_eq!(vtocs(&label), [new]);
    assert!(label.partitions[1].is_whole_disk);
    let past = X86Vtoc::new(512, 1, FIRST, 1, geometry).expect("one block");
    assert!(
        past.encode(Role::Primary).is_err(),
        "no room for the label in one block"
    );
}

/// With one head and no alternate cylinder the first backup would be at the position of the label.
#[test]
fn a_label_is_not_its_own_backup() {
    let geometry = Geometry {
        cylinders_physical: 1,
        cylinders: 1,
        cylinders_alternate: 0,
        heads: 1,
        sectors: 10,
    };
    let new = X86Vtoc::new(512, 1, FIRST, LBAS, geometry).expect("blocks that 32 bits count");
    let label = label_of(
        &applied(
            &new.encode(Role::Primary).expect("can be written"),
            &disk(0xbf),
        ),
        512,
    );
    assert_eq!(
        (label.copies.len(), vtocs(&label)),
        (2, &[new][..]),
        "the MBR and the label"
    );
}
