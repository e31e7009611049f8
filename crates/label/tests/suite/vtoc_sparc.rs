//! SPARC labels: images made by sfdisk and parted, read, compared with the output of these, and written again.

use crate::common::{
    Image, PartitionRow, applied, assert_same_bytes, has, label_of, rows, sfdisk_rows,
};
use plumb_label::vtoc::{Geometry, Slice, tags};
use plumb_label::{
    Detail, Fault, Label, LabelKind, PartId, PartitionType, Problem, Role, SparcVtoc, WriteStep,
};
use plumb_testkit::require;

const MIB: u64 = 1 << 20;
/// sfdisk's defaults for heads and sectors: 255 and 63.
const CYLINDER: u64 = 16_065;
const LBAS: u64 = 64 * MIB / 512;

fn vtoc(label: &Label) -> SparcVtoc {
    match &label.detail {
        Some(Detail::SparcVtoc(vtoc)) => (**vtoc).clone(),
        other => panic!("found {other:?}, expected a SPARC label"),
    }
}

fn image() -> Image {
    let image = Image::new(64 * MIB, 512);
    let whole = 8 * CYLINDER;
    let script = format!(
        "label: sun\nstart=0, size=32130, type=2\nstart=32130, size=48195, type=3\nstart=0, size={whole}, type=5\nstart=80325, size=48195, type=4\n"
    );
    image.tool("sfdisk", &["--quiet"], &script);
    image
}

#[test]
fn reading_agrees_with_sfdisk() {
    require!(Tool("sfdisk"));
    let image = image();
    let label = image.label();
    assert_eq!(
        (label.kind, &label.problems[..]),
        (LabelKind::SparcVtoc, &[][..])
    );
    let table = image.sfdisk_json();
    assert_eq!(rows(&label), sfdisk_rows(&table));
    let expected: Vec<PartitionRow> = vec![
        (1, 0, 32_130),
        (2, 32_130, 48_195),
        (3, 0, 128_520),
        (4, 80_325, 48_195),
    ];
    assert_eq!(rows(&label), expected);
    let tags: Vec<PartitionType> = label.partitions.iter().map(|p| p.kind).collect();
    let said = |p: &serde_json::Value| {
        p["type"]
            .as_str()
            .and_then(|tag| u16::from_str_radix(tag, 16).ok())
    };
    let said: Vec<PartitionType> = table["partitions"]
        .as_array()
        .expect("partitions")
        .iter()
        .filter_map(said)
        .map(PartitionType::Tag)
        .collect();
    assert_eq!(tags, said);
    let slices: Vec<_> = label
        .partitions
        .iter()
        .map(|p| (p.id.slice, p.is_whole_disk))
        .collect();
    assert_eq!(
        slices,
        [
            (Some(0), false),
            (Some(1), false),
            (Some(2), true),
            (Some(3), false)
        ]
    );
    assert_same_bytes(
        &vtoc(&label).encode(Role::Primary).expect("can be written"),
        &image.bytes(),
    );
}

#[test]
fn reading_agrees_with_parted() {
    require!(Tool("parted"));
    let image = Image::new(64 * MIB, 512);
    // parted uses 4 heads of 32 sectors for a file; it does not list the whole-disk slice.
    image.parted("mklabel sun unit s mkpart 0s 16383s mkpart 16384s 32767s");
    let label = image.label();
    assert_eq!(
        (label.kind, &label.problems[..]),
        (LabelKind::SparcVtoc, &[][..])
    );
    assert_eq!(vtoc(&label).geometry.cylinder_lbas(), 128);
    let (whole, others): (Vec<_>, Vec<_>) = label.partitions.iter().partition(|p| p.is_whole_disk);
    let others: Vec<PartitionRow> = others.iter().map(|p| crate::common::row(p, 512)).collect();
    assert_eq!(others, image.parted_rows());
    assert_eq!(others, [(1, 0, 16_384), (2, 16_384, 16_384)]);
    assert_eq!(whole.len(), 1);
    assert_same_bytes(
        &vtoc(&label).encode(Role::Primary).expect("can be written"),
        &image.bytes(),
    );
}

/// The example of the layout's own comment: `SUN18G cyl 7506 alt 2 hd 19 sec 248`, on a disk of its size.
#[test]
fn a_new_label_is_one_that_the_tools_read() {
    require!(Tool("sfdisk"), Tool("parted"));
    let geometry = Geometry {
        cylinders_physical: 7_508,
        cylinders: 7_506,
        cylinders_alternate: 2,
        heads: 19,
        sectors: 248,
    };
    let lbas = 7_508 * 4_712;
    let mut new = SparcVtoc::new(512, lbas, geometry).expect("a geometry that fits");
    new.slices[0] = Slice {
        tag: 2,
        flag: 0,
        start: 0,
        count: 4_712 * 100,
    };
    new.slices[7] = Slice {
        tag: 8,
        flag: 1,
        start: 100,
        count: 4_712 * 7_406,
    };
    let image = Image::new(1 << 20, 512);
    image.put(&applied(
        &new.encode(Role::Primary).expect("can be written"),
        &image.bytes(),
    ));
    image.resize(lbas * 512);
    let expected: Vec<PartitionRow> = vec![
        (1, 0, 471_200),
        (3, 0, 35_368_272),
        (8, 471_200, 34_897_072),
    ];
    assert_eq!(sfdisk_rows(&image.sfdisk_json()), expected);
    let (first, last) = (expected[0], expected[2]);
    assert_eq!(image.parted_rows(), [first, last]);
    let label = image.label();
    assert_eq!((rows(&label), &label.problems[..]), (expected, &[][..]));
    assert_eq!(vtoc(&label), new);
}

#[test]
fn fields_are_at_the_offsets_of_the_table() {
    let geometry = Geometry {
        cylinders_physical: 7_508,
        cylinders: 7_506,
        cylinders_alternate: 2,
        heads: 19,
        sectors: 248,
    };
    let mut new = SparcVtoc::new(512, 1 << 32, geometry).expect("a geometry that fits");
    new.slices[6] = Slice {
        tag: 0x0102,
        flag: 0x0304,
        start: 0x0506_0708,
        count: 0x090a_0b0c,
    };
    let steps = new.encode(Role::Primary).expect("can be written");
    let [WriteStep::Write { at, bytes }] = &steps[..] else {
        panic!("{steps:?}")
    };
    assert_eq!((at.0, bytes.len()), (0, 512));
    let ascii_label = b"plumb cyl 7506 alt 2 hd 19 sec 248\0\0";
    assert_eq!(bytes[..36], *ascii_label);
    assert_eq!(bytes[128..132], [0, 0, 0, 1]);
    assert_eq!(bytes[140..142], [0, 8]);
    assert_eq!(bytes[142 + 6 * 4..142 + 7 * 4], [1, 2, 3, 4]);
    assert_eq!(bytes[188..192], [0x60, 0x0d, 0xde, 0xee]);
    assert_eq!(bytes[422..424], 7_508u16.to_be_bytes());
    assert_eq!(bytes[432..440], [0x1d, 0x52, 0, 2, 0, 19, 0, 248]);
    assert_eq!(bytes[444 + 6 * 8..444 + 7 * 8], [5, 6, 7, 8, 9, 10, 11, 12]);
    assert_eq!(bytes[508..510], [0xda, 0xbe]);
    assert_eq!(
        bytes
            .chunks(2)
            .fold([0, 0], |sum, word| [sum[0] ^ word[0], sum[1] ^ word[1]]),
        [0, 0]
    );
}

#[test]
fn a_broken_label_is_reported_and_its_backups_answer() {
    require!(Tool("sfdisk"));
    let image = image();
    let mut with_backups = vtoc(&image.label());
    let mut broken = image.bytes();
    broken[300] ^= 1;
    let label = label_of(&broken, 512);
    assert_eq!(
        (label.kind, &label.partitions[..], &label.detail),
        (LabelKind::SparcVtoc, &[][..], &None)
    );
    let fault = |p: &Problem| {
        matches!(
            p,
            Problem::BrokenCopy {
                lba: 0,
                fault: Fault::Checksum { .. },
                ..
            }
        )
    };
    assert!(
        has(&label, fault) && has(&label, |p| *p == Problem::NoGoodCopy),
        "{:?}",
        label.problems
    );

    // A cylinder less for data is one more for backups.
    with_backups.geometry.cylinders = 7;
    with_backups.geometry.cylinders_alternate = 1;
    with_backups.slices[2].count = 7 * 16_065;
    with_backups.slices[3].count -= 16_065;
    with_backups.backup_lbas = with_backups.geometry.backup_lbas();
    let mut bytes = applied(
        &with_backups.encode(Role::Primary).expect("can be written"),
        &image.bytes(),
    );
    let whole = label_of(&bytes, 512);
    assert_eq!((whole.copies.len(), &whole.problems[..]), (6, &[][..]));
    assert_eq!(vtoc(&whole), with_backups);
    bytes[300] ^= 1;
    let label = label_of(&bytes, 512);
    assert_eq!(rows(&label), rows(&whole));
    assert!(
        label.problems.len() == 1 && has(&label, fault),
        "{:?}",
        label.problems
    );
    let used: Vec<Role> = label
        .copies
        .iter()
        .filter(|copy| copy.is_used)
        .map(|copy| copy.role)
        .collect();
    assert_eq!(used, [Role::Backup]);
    // The repaired label is the first one again.
    let mended = applied(
        &vtoc(&label).encode(Role::Primary).expect("can be written"),
        &bytes,
    );
    assert_eq!(label_of(&mended, 512), whole);
}

#[test]
fn overlapping_slices_and_a_smaller_disk_are_reported() {
    require!(Tool("sfdisk"));
    let image = image();
    let mut odd = vtoc(&image.label());
    odd.slices[1].start = 1;
    let bytes = applied(
        &odd.encode(Role::Primary).expect("can be written"),
        &image.bytes(),
    );
    let slice = |number| PartId::slice(number, None);
    assert_eq!(
        label_of(&bytes, 512).problems,
        [Problem::Overlap {
            first: slice(0),
            second: slice(1)
        }]
    );

    image.resize(32 * MIB);
    let device_lbas = LBAS / 2;
    let beyond = |number, end_lba| Problem::BeyondEnd {
        part: slice(number),
        end_lba,
        device_lbas,
    };
    let label = image.label();
    assert_eq!(
        label.problems,
        [
            Problem::DeviceSmaller {
                label_lbas: 8 * CYLINDER,
                device_lbas
            },
            beyond(1, 80_325),
            beyond(2, 128_520),
            beyond(3, 128_520)
        ]
    );
    assert_eq!(label.partitions.len(), 4);
}

/// Without the table of contents there are slices, but without a purpose.
#[test]
fn a_label_without_tags_has_slices() {
    require!(Tool("sfdisk"));
    let image = image();
    let mut bytes = image.bytes();
    bytes[128..192].fill(0);
    bytes[510..512].fill(0);
    let sum = bytes[..510]
        .chunks(2)
        .fold([0, 0], |sum, word| [sum[0] ^ word[0], sum[1] ^ word[1]]);
    bytes[510..512].copy_from_slice(&sum);
    let label = label_of(&bytes, 512);
    assert_eq!(rows(&label).len(), 4);
    assert!(
        label
            .partitions
            .iter()
            .all(|p| p.kind == PartitionType::Tag(0))
    );
    assert!(
        label.partitions[2].is_whole_disk,
        "slice 2 over all cylinders"
    );
    assert_eq!(tags::name(5), Some("backup"));
    assert_same_bytes(
        &vtoc(&label).encode(Role::Primary).expect("can be written"),
        &bytes,
    );
}

/// A broken geometry may lead anywhere; a backup there must identify itself.
#[test]
fn a_label_at_a_wrong_place_is_no_backup() {
    let geometry = |sectors| Geometry {
        cylinders_physical: 3,
        cylinders: 2,
        cylinders_alternate: 1,
        heads: 2,
        sectors,
    };
    let other = SparcVtoc::new(512, 100, geometry(12)).expect("a geometry that fits");
    let disk = applied(
        &other.encode(Role::Primary).expect("can be written"),
        &[0; 100 * 512],
    );
    let mut bytes = applied(
        &SparcVtoc::new(512, 100, geometry(10))
            .expect("a geometry that fits")
            .encode(Role::Primary)
            .expect("fits"),
        &[0; 100 * 512],
    );
    let place = geometry(10).backup_lbas()[0] as usize * 512;
    bytes[place..place + 512].copy_from_slice(&disk[..512]);
    bytes[300] ^= 1;
    let label = label_of(&bytes, 512);
    assert_eq!((label.copies.len(), &label.detail), (1, &None));
}

/// The checksum is over the magic number too: a sector with nothing else would be right.
#[test]
fn a_magic_number_alone_is_no_label() {
    let mut bytes = vec![0; 4_096];
    bytes[508..512].copy_from_slice(&[0xda, 0xbe, 0xda, 0xbe]);
    assert_eq!(plumb_label::read(&bytes, Some(512)), Ok(None));
}
