//! Damaged GPT images: faults are reported, and all other parts are read.

use crate::common::{Image, applied, assert_same_bytes, has, label_of, rows};
use plumb_label::{
    Detail, Disk, EncodeError, Fault, Gpt, Label, LabelKind, Problem, ReadError, Role, read,
};
use plumb_testkit::require;

const MIB: u64 = 1 << 20;
const LBAS: u64 = 64 * MIB / 512;
const LAST: u64 = LBAS - 1;
/// Two partitions, the second up to the last usable block.
const SCRIPT: &str = "label: gpt\nstart=2048, size=8192, type=linux, name=data\nstart=65536, size=65503, type=linux, name=tail\n";
const ROWS: [(u32, u64, u64); 2] = [(1, 2_048, 8_192), (2, 65_536, 65_503)];

fn image() -> Image {
    let image = Image::new(64 * MIB, 512);
    image.tool("sfdisk", &["--quiet"], SCRIPT);
    image
}

fn gpt(label: &Label) -> Gpt {
    match &label.detail {
        Some(Detail::Gpt(gpt)) => (**gpt).clone(),
        other => panic!("found {other:?}, expected a GPT"),
    }
}

fn used(label: &Label) -> Vec<Role> {
    label
        .copies
        .iter()
        .filter(|copy| copy.is_used)
        .map(|copy| copy.role)
        .collect()
}

/// A byte of each part of one copy: signature, size, CRC, a field, and an entry.
#[test]
fn a_broken_primary_leaves_the_partitions_of_the_backup_and_is_repaired() {
    require!(Tool("sfdisk"));
    let whole = image().bytes();
    for at in [512, 512 + 12, 512 + 16, 512 + 40, 1_024 + 33] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x41;
        let label = label_of(&bytes, 512);
        assert_eq!(rows(&label), ROWS, "byte {at}");
        assert_eq!(used(&label), [Role::Backup]);
        let [
            Problem::BrokenCopy {
                role: Role::Primary,
                lba: 1,
                fault,
            },
        ] = &label.problems[..]
        else {
            panic!("byte {at}: {:?}", label.problems)
        };
        match (at, fault) {
            (512, Fault::NoSignature)
            | (
                524,
                Fault::Field {
                    field: "HeaderSize",
                    ..
                },
            ) => {}
            (528 | 552, Fault::Checksum { over: "header", .. }) => {}
            (
                1_057,
                Fault::Checksum {
                    over: "partition entries",
                    ..
                },
            ) => {}
            _ => panic!("byte {at}: {fault}"),
        }
        let mended = applied(
            &gpt(&label).encode(Role::Primary).expect("can be written"),
            &bytes,
        );
        assert!(mended == whole, "byte {at} is not as it was");
    }
}

#[test]
fn a_broken_backup_is_reported_and_repaired() {
    require!(Tool("sfdisk"));
    let whole = image().bytes();
    let end = whole.len();
    for at in [end - 512, end - 512 + 60, end - 33 * 512 + 32] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        let label = label_of(&bytes, 512);
        assert_eq!(rows(&label), ROWS);
        assert_eq!(used(&label), [Role::Primary]);
        let is_it = |p: &Problem| {
            matches!(
                p,
                Problem::BrokenCopy {
                    role: Role::Backup,
                    lba: LAST,
                    ..
                }
            )
        };
        assert!(
            label.problems.len() == 1 && has(&label, is_it),
            "byte {at}: {:?}",
            label.problems
        );
        let mended = applied(
            &gpt(&label).encode(Role::Primary).expect("can be written"),
            &bytes,
        );
        assert!(mended == whole, "byte {at} is not as it was");
    }
}

#[test]
fn without_any_good_copy_there_is_a_label_and_nothing_in_it() {
    require!(Tool("sfdisk"));
    let mut bytes = image().bytes();
    bytes[512 + 40] ^= 1;
    let end = bytes.len();
    bytes[end - 512 + 40] ^= 1;
    let label = label_of(&bytes, 512);
    assert_eq!(
        (label.kind, rows(&label), &label.detail),
        (LabelKind::Gpt, vec![], &None)
    );
    assert!(has(&label, |p| *p == Problem::NoGoodCopy));
    assert_eq!(
        label
            .copies
            .iter()
            .filter(|copy| copy.fault.is_some())
            .count(),
        2
    );
}

#[test]
fn a_grown_disk_has_a_stranded_backup_that_can_be_moved() {
    require!(Tool("sfdisk"), Tool("sgdisk"));
    let image = image();
    image.resize(96 * MIB);
    let last_lba = 96 * MIB / 512 - 1;
    let label = image.label();
    assert_eq!(
        label.problems,
        [Problem::StrandedBackup {
            found_lba: LAST,
            last_lba
        }]
    );
    assert_eq!(rows(&label), ROWS);

    let mut moved = gpt(&label);
    moved.move_backup_to_end().expect("room at the end");
    let ours = applied(
        &moved
            .encode_with_mbr(Role::Primary)
            .expect("can be written"),
        &image.bytes(),
    );
    // sgdisk does the same but leaves a gap before the array, so the comparison is with sfdisk.
    let path = image.path();
    let path = path.to_str().expect("a path of text");
    crate::common::run(
        "sfdisk",
        &["--quiet", "--relocate", "gpt-bak-std", path],
        512,
        "",
    );
    assert_same_bytes(
        &moved
            .encode_with_mbr(Role::Primary)
            .expect("can be written"),
        &image.bytes(),
    );
    image.put(&ours);
    assert_eq!(image.label().problems, []);
    assert!(image.is_whole_for_sgdisk());
}

/// Nothing at the end tells of the old backup, but the broken header or the protective MBR does.
#[test]
fn a_stranded_backup_is_found_also_when_the_primary_is_broken() {
    require!(Tool("sfdisk"));
    let image = image();
    image.resize(96 * MIB);
    let grown = image.bytes();
    let (header_field, signature, protective_size) = (512 + 40, 512, 446 + 12..446 + 16);
    let found = |bytes: &[u8]| {
        let label = label_of(bytes, 512);
        assert!(has(&label, |p| matches!(
            p,
            Problem::BrokenCopy {
                role: Role::Primary,
                ..
            }
        )));
        let stranded = has(&label, |p| {
            matches!(
                p,
                Problem::StrandedBackup {
                    found_lba: LAST,
                    ..
                }
            )
        });
        assert_eq!(rows(&label) == ROWS, stranded);
        stranded
    };
    let mut by_protective = grown.clone();
    by_protective[signature] ^= 1;
    assert!(found(&by_protective));
    let mut by_header = grown.clone();
    by_header[header_field] ^= 1;
    by_header[protective_size.clone()].fill(0xff);
    assert!(found(&by_header));
    by_header[signature] ^= 1;
    assert!(!found(&by_header), "nothing leads there any more");
}

/// The header still has the position of its array, if only the array is broken.
#[test]
fn a_primary_array_elsewhere_is_repaired_at_its_place() {
    require!(Tool("sgdisk"));
    let image = Image::new(64 * MIB, 512);
    image.tool("sgdisk", &["-j", "100", "-n1:4096:8191"], "");
    let whole = image.bytes();
    let mut bytes = whole.clone();
    bytes[100 * 512 + 33] ^= 1;
    let label = label_of(&bytes, 512);
    assert_eq!(rows(&label), [(1, 4_096, 4_096)]);
    assert_eq!(used(&label), [Role::Backup]);
    assert!(
        applied(
            &gpt(&label).encode(Role::Primary).expect("can be written"),
            &bytes
        ) == whole
    );
}

/// A header copied to another block is none, though its checksum is right.
#[test]
fn a_header_has_to_state_its_position() {
    require!(Tool("sfdisk"));
    let mut bytes = image().bytes();
    let (first, rest) = bytes.split_at_mut(1_024);
    let end = rest.len();
    rest[end - 512..].copy_from_slice(&first[512..]);
    let label = label_of(&bytes, 512);
    let fault = |p: &Problem| {
        matches!(
            p,
            Problem::BrokenCopy {
                fault: Fault::Field {
                    field: "MyLBA",
                    found: 1,
                    ..
                },
                ..
            }
        )
    };
    assert!(
        label.problems.len() == 1 && has(&label, fault),
        "{:?}",
        label.problems
    );
}

#[test]
fn a_shrunk_disk_is_smaller_than_its_label_and_a_partition_ends_beyond_it() {
    require!(Tool("sfdisk"));
    let image = image();
    image.resize(48 * MIB);
    let device_lbas = 48 * MIB / 512;
    let label = image.label();
    let backup = Problem::BrokenCopy {
        role: Role::Backup,
        lba: LAST,
        fault: Fault::BeyondEnd {
            lba: LAST,
            disk_lbas: device_lbas,
        },
    };
    let smaller = Problem::DeviceSmaller {
        label_lbas: LBAS,
        device_lbas,
    };
    let part = label.partitions[1].id;
    let beyond = Problem::BeyondEnd {
        part,
        end_lba: 65_536 + 65_503,
        device_lbas,
    };
    assert_eq!(label.problems, [backup, smaller, beyond]);
    assert_eq!(rows(&label), ROWS);

    let mut moved = gpt(&label);
    assert!(matches!(
        moved.encode(Role::Primary),
        Err(EncodeError::OutsideDisk { .. })
    ));
    assert!(matches!(
        moved.move_backup_to_end(),
        Err(EncodeError::InTheWay { .. })
    ));
    moved.entries[1].last_lba = 90_000;
    moved
        .move_backup_to_end()
        .expect("the partition is out of the way");
    image.put(&applied(
        &moved
            .encode_with_mbr(Role::Primary)
            .expect("can be written"),
        &image.bytes(),
    ));
    assert_eq!(image.label().problems, []);
}

/// Cut at every sector of its beginning, and at odd bytes.
#[test]
fn a_cut_image_never_ends_the_reading() {
    require!(Tool("sfdisk"));
    let whole = image().bytes();
    for end in (0..40 * 512).step_by(256).chain([511, 513, 1_025]) {
        let cut = whole[..end].to_vec();
        let label = read(&cut, Some(512)).expect("nothing is unreadable");
        match end {
            0..512 => assert_eq!(label, None),
            _ => {
                let label = label.expect("a protective MBR, so a label");
                // The array ends at block 34.
                let expected = if end < 34 * 512 { &[][..] } else { &ROWS };
                assert_eq!(rows(&label), expected, "cut at {end}");
                assert!(!label.problems.is_empty());
            }
        }
    }
}

/// The backup's array says something else, with a checksum that is right.
#[test]
fn different_copies_are_reported() {
    require!(Tool("sfdisk"));
    let image = image();
    let first = image.bytes();
    let mut other = gpt(&image.label());
    other.entries[0].last_lba -= 8;
    let mut bytes = applied(
        &other.encode(Role::Primary).expect("can be written"),
        &first,
    );
    bytes[..40 * 512].copy_from_slice(&first[..40 * 512]);
    let label = label_of(&bytes, 512);
    assert_eq!(
        label.problems,
        [Problem::CopiesDiffer {
            field: "partitions"
        }]
    );
    assert_eq!(rows(&label), ROWS, "the primary counts");
}

/// Old Solaris on x86 wrote the backup one block before the last.
#[test]
fn the_backup_in_the_last_block_but_one_is_found() {
    require!(Tool("sfdisk"));
    let image = Image::new(64 * MIB - 512, 512);
    image.tool(
        "sfdisk",
        &["--quiet"],
        "label: gpt\nstart=2048, size=8192, type=linux\n",
    );
    image.resize(64 * MIB);
    let legacy = Problem::LegacyBackup {
        found_lba: LAST - 1,
    };
    assert_eq!(image.label().problems, std::slice::from_ref(&legacy));
    let mut bytes = image.bytes();
    bytes[512..1_024].fill(0);
    let label = label_of(&bytes, 512);
    assert!(has(&label, |p| *p == legacy), "{:?}", label.problems);
    assert_eq!(rows(&label), [(1, 2_048, 8_192)]);
}

/// Solaris's libefi says that its header is 512 bytes long. The checksum is over all of them then.
#[test]
fn a_header_of_512_bytes_is_read_and_kept() {
    require!(Tool("sfdisk"));
    let image = image();
    let mut solaris = gpt(&image.label());
    (solaris.primary.header_bytes, solaris.backup.header_bytes) = (512, 512);
    let bytes = applied(
        &solaris.encode(Role::Primary).expect("can be written"),
        &image.bytes(),
    );
    // Computed apart from the codec, bit by bit.
    let mut header = bytes[512..1_024].to_vec();
    let stored = u32::from_le_bytes(header[16..20].try_into().expect("4 bytes"));
    header[16..20].fill(0);
    assert_eq!(stored, slow_crc(&header));
    let label = label_of(&bytes, 512);
    assert_eq!(
        (rows(&label), &label.problems[..]),
        (ROWS.to_vec(), &[][..])
    );
    assert_eq!(gpt(&label).primary.header_bytes, 512);
}

fn slow_crc(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ 0xedb8_8320
            } else {
                crc >> 1
            };
        }
    }
    !crc
}

#[test]
fn a_label_for_other_sectors_is_reported() {
    require!(Tool("sfdisk"), Tool("fdisk"));
    let small = image();
    let label = label_of(&small.bytes(), 4096);
    assert_eq!(
        label.problems,
        [Problem::SectorSizeMismatch {
            label_bytes: 512,
            device_bytes: 4096
        }]
    );
    assert_eq!((label.sector_bytes, rows(&label)), (512, ROWS.to_vec()));

    let large = Image::new(64 * MIB, 4096);
    large.tool("fdisk", &["-b", "4096"], "g\nn\n1\n256\n511\nw\n");
    let label = label_of(&large.bytes(), 512);
    assert_eq!(
        label.problems,
        [Problem::SectorSizeMismatch {
            label_bytes: 4096,
            device_bytes: 512
        }]
    );
    assert_eq!(label.partitions[0].extent.start().0, MIB);
    let unasked = read(&large.bytes(), None)
        .expect("readable")
        .expect("a label");
    assert_eq!(
        (unasked.sector_bytes, &unasked.problems[..]),
        (4096, &[][..])
    );
}

/// Partitions as no tool makes them, put into the array by hand.
#[test]
fn impossible_partitions_are_reported_one_by_one() {
    require!(Tool("sfdisk"));
    let image = image();
    let mut bytes = image.bytes();
    for (number, first_lba, last_lba) in [
        (3, 9_000, 9_100),   // In the first one.
        (4, 20_000, 19_998), // Ends before it begins.
        (5, 1u64, 40u64),    // On the label itself.
        (6, 30_000, LBAS),   // Over all and the end.
        (7, u64::MAX, u64::MAX),
        (8, 20_000, 19_999),
    ] {
        put_entry(&mut bytes, number, first_lba, last_lba);
    }
    let label = label_of(&bytes, 512);
    let id = plumb_label::PartId::partition;
    let backwards = |number, first_lba, last_lba| Problem::Backwards {
        part: id(number),
        first_lba,
        last_lba,
    };
    assert_eq!(
        label.problems,
        [
            backwards(4, 20_000, 19_998),
            Problem::OutsideUsable { part: id(5) },
            Problem::OutsideUsable { part: id(6) },
            backwards(7, u64::MAX, u64::MAX),
            backwards(8, 20_000, 19_999),
            Problem::BeyondEnd {
                part: id(6),
                end_lba: LBAS + 1,
                device_lbas: LBAS
            },
            Problem::Overlap {
                first: id(1),
                second: id(3)
            },
            Problem::Overlap {
                first: id(6),
                second: id(2)
            },
        ]
    );
    let numbers: Vec<u32> = label.partitions.iter().map(|p| p.id.number).collect();
    assert_eq!(numbers, [1, 2, 3, 5, 6]);
}

/// Copies the first entry to another number and moves it, in both copies, with checksums computed apart.
fn put_entry(bytes: &mut [u8], number: usize, first_lba: u64, last_lba: u64) {
    let end = bytes.len();
    for (header, array) in [(512, 1_024), (end - 512, end - 33 * 512)] {
        let entry = array + 128 * (number - 1);
        bytes.copy_within(array..array + 128, entry);
        bytes[entry + 32..entry + 40].copy_from_slice(&first_lba.to_le_bytes());
        bytes[entry + 40..entry + 48].copy_from_slice(&last_lba.to_le_bytes());
        let array_crc = slow_crc(&bytes[array..array + 128 * 128]);
        bytes[header + 88..header + 92].copy_from_slice(&array_crc.to_le_bytes());
        bytes[header + 16..header + 20].fill(0);
        let crc = slow_crc(&bytes[header..header + 92]);
        bytes[header + 16..header + 20].copy_from_slice(&crc.to_le_bytes());
    }
}

/// A label is never written into a partition, wherever its fields say that a lost copy was.
#[test]
fn a_label_on_a_partition_is_not_written() {
    require!(Tool("sfdisk"));
    let image = image();
    let whole = gpt(&image.label());
    let check = |first_lba, last_lba, refused: Option<(&str, u64)>| {
        let mut changed = whole.clone();
        (changed.entries[1].first_lba, changed.entries[1].last_lba) = (first_lba, last_lba);
        let found = match changed.encode(Role::Primary) {
            Ok(_) => None,
            Err(EncodeError::InTheWay { what, lba, other }) => {
                assert_eq!(other, "partition 2");
                Some((what, lba))
            }
            Err(other) => panic!("{other}"),
        };
        assert_eq!(found, refused, "{first_lba} to {last_lba}");
    };
    check(34, LAST - 33, None);
    check(33, 40, Some(("primary array", 2)));
    check(60_000, LAST - 32, Some(("backup array", LAST - 32)));
    check(LAST, LAST, Some(("backup header", LAST)));
    check(1, 1, Some(("primary header", 1)));
    check(0, u64::MAX, Some(("sector 0", 0)));
    check(LAST, 1, None);
    // A lost backup, and a primary that names a block in the middle of the second partition for it.
    let mut stale = whole.clone();
    (stale.backup.header_lba, stale.backup.array_lba) = (70_000, 69_968);
    assert!(matches!(
        stale.encode(Role::Primary),
        Err(EncodeError::InTheWay {
            what: "backup array",
            ..
        })
    ));
}

#[test]
fn a_gpt_without_protective_mbr_and_one_beside_an_mbr() {
    require!(Tool("sfdisk"));
    let mut bytes = image().bytes();
    let gpt_only = {
        let mut bytes = bytes.clone();
        bytes[..512].fill(0);
        label_of(&bytes, 512)
    };
    assert_eq!(
        (gpt_only.kind, &gpt_only.problems[..]),
        (LabelKind::Gpt, &[Problem::NoProtectiveMbr][..])
    );
    assert_eq!(rows(&gpt_only), ROWS);

    let mbr = Image::new(64 * MIB, 512);
    mbr.tool(
        "sfdisk",
        &["--quiet"],
        "label: dos\nstart=63, size=100, type=83\n",
    );
    bytes[..512].copy_from_slice(&mbr.bytes()[..512]);
    let beside = label_of(&bytes, 512);
    assert_eq!(
        (beside.kind, rows(&beside)),
        (LabelKind::Mbr, vec![(1, 63, 100)])
    );
    assert_eq!(beside.problems, [Problem::LeftoverGpt { good: true }]);
    let end = bytes.len();
    for header in [512, end - 512] {
        bytes[header + 60] ^= 1;
    }
    assert_eq!(
        label_of(&bytes, 512).problems,
        [Problem::LeftoverGpt { good: false }]
    );
}

/// The device's own sector size is where its systems look.
#[test]
fn of_two_labels_the_one_for_this_device_counts() {
    require!(Tool("parted"));
    let large = Image::new(64 * MIB, 4096);
    large.parted("mklabel gpt unit s mkpart large 256s 511s");
    let small = Image::new(64 * MIB, 512);
    small.parted("mklabel gpt unit s mkpart small 2048s 4095s");
    // Of the small label: header, backup and the bytes before the large one's header; its primary array is lost.
    let mut both = large.bytes();
    let small = small.bytes();
    both[512..4_096].copy_from_slice(&small[512..4_096]);
    let backup = both.len() - 33 * 512..both.len();
    let large_backup = both[backup.clone()].to_vec();
    both[backup.clone()].copy_from_slice(&small[backup.clone()]);
    let label = label_of(&both, 512);
    assert_eq!(
        (label.sector_bytes, rows(&label)),
        (512, vec![(1, 2_048, 2_048)])
    );
    assert_eq!(used(&label), [Role::Backup]);
    both[backup].copy_from_slice(&large_backup);
    let label = label_of(&both, 4096);
    assert_eq!(
        (label.sector_bytes, rows(&label)),
        (4096, vec![(1, 256, 256)])
    );
    assert_eq!(label.problems, []);
}

/// A disk with bad sectors.
struct Bad {
    bytes: Vec<u8>,
    bad: Vec<u64>,
}

impl Disk for Bad {
    fn size_bytes(&self) -> u64 {
        self.bytes.size_bytes()
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        let sectors = offset_bytes / 512..(offset_bytes + buffer.len() as u64).div_ceil(512);
        if self.bad.iter().any(|bad| sectors.contains(bad)) {
            return Err(std::io::Error::other("medium error"));
        }
        self.bytes.read_at(offset_bytes, buffer)
    }
}

#[test]
fn a_sector_that_cannot_be_read_is_a_broken_copy_and_never_no_label() {
    require!(Tool("sfdisk"));
    let bytes = image().bytes();
    let disk = |bad: &[u64]| {
        read(
            &Bad {
                bytes: bytes.clone(),
                bad: bad.to_vec(),
            },
            Some(512),
        )
    };
    let label = disk(&[5]).expect("the backup answers").expect("a label");
    let unreadable = |p: &Problem| {
        matches!(
            p,
            Problem::BrokenCopy {
                fault: Fault::Unreadable { .. },
                ..
            }
        )
    };
    assert!(has(&label, unreadable), "{:?}", label.problems);
    assert_eq!(
        (rows(&label), used(&label)),
        (ROWS.to_vec(), vec![Role::Backup])
    );
    let label = disk(&[0]).expect("the GPT answers").expect("a label");
    assert!(has(&label, |p| matches!(p, Problem::FirstSector { .. })));
    let empty = Bad {
        bytes: vec![0; 1 << 20],
        bad: vec![1],
    };
    assert!(matches!(
        read(&empty, Some(512)),
        Err(ReadError::Unreadable { .. })
    ));
    let empty = Bad {
        bytes: vec![0; 1 << 20],
        bad: vec![0],
    };
    assert!(matches!(
        read(&empty, Some(512)),
        Err(ReadError::Unreadable { .. })
    ));
    assert_eq!(read(&vec![0; 1 << 20], Some(512)), Ok(None));
    assert_eq!(
        read(&vec![0; 1 << 20], Some(520)),
        Err(ReadError::SectorBytes { found: 520 })
    );
}

/// A table of 2³² entries does not make the reader allocate anything.
#[test]
fn a_table_too_large_is_refused_by_its_header() {
    require!(Tool("sfdisk"));
    for (at, value, field) in [
        (80, u32::MAX, "NumberOfPartitionEntries"),
        (84, 192, "SizeOfPartitionEntry"),
    ] {
        let mut bytes = image().bytes();
        for header in [512, bytes.len() - 512] {
            bytes[header + at..header + at + 4].copy_from_slice(&value.to_le_bytes());
            bytes[header + 16..header + 20].fill(0);
            let crc = slow_crc(&bytes[header..header + 92]);
            bytes[header + 16..header + 20].copy_from_slice(&crc.to_le_bytes());
        }
        let label = label_of(&bytes, 512);
        let faults: Vec<_> = label
            .copies
            .iter()
            .filter_map(|copy| copy.fault.as_ref())
            .collect();
        assert_eq!(faults.len(), 2);
        assert!(
            faults
                .iter()
                .all(|f| matches!(f, Fault::Field { field: found, .. } if *found == field)),
            "{faults:?}"
        );
    }
}
