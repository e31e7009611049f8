//! MBR images made by sfdisk, fdisk and parted, read, compared with the output of these tools, damaged, and written
//! again.

use crate::common::{Image, applied, assert_same_bytes, has, label_of, rows, sfdisk_rows};
use plumb_label::{
    Detail, Fault, Label, LabelKind, Mbr, PartId, PartitionPlace, PartitionType, Problem, read,
};
use plumb_testkit::require;

const MIB: u64 = 1 << 20;
/// Two primary partitions, one of them active, an extended one and three logical ones in it.
const SCRIPT: &str = "label: dos
label-id: 0xDECAFBAD
start=63, size=1985, type=83, bootable
start=2048, size=8192, type=7
start=10240, size=100000, type=f
start=12288, size=2048, type=83
start=16384, size=2048, type=82
start=20480, size=2048, type=8e
";
/// Positions of sfdisk's links of the chain: it leaves a MiB before each logical partition, and the first link is the
/// first block of the extended one.
const EXTENDED: usize = 10_240;
const LINK_AT: usize = 446 + 16;

fn mbr(label: &Label) -> &Mbr {
    match &label.detail {
        Some(Detail::Mbr(mbr, _)) => mbr,
        other => panic!("found {other:?}, expected an MBR"),
    }
}

fn image() -> Image {
    let image = Image::new(64 * MIB, 512);
    image.tool("sfdisk", &["--quiet"], SCRIPT);
    image
}

/// Lets the link at block `lba` lead to block `next` of the extended partition.
fn lead(bytes: &mut [u8], lba: usize, next: u32) {
    let field = lba * 512 + LINK_AT + 8;
    bytes[field..field + 4].copy_from_slice(&next.to_le_bytes());
}

#[test]
fn reading_agrees_with_sfdisk() {
    require!(Tool("sfdisk"));
    let image = image();
    let label = image.label();
    assert_eq!((label.kind, &label.problems[..]), (LabelKind::Mbr, &[][..]));
    let table = image.sfdisk_json();
    assert_eq!(rows(&label), sfdisk_rows(&table));
    let numbers: Vec<u32> = label.partitions.iter().map(|p| p.id.number).collect();
    assert_eq!(numbers, [1, 2, 3, 5, 6, 7]);
    assert_eq!(label.id.as_deref(), Some("decafbad"));
    for (partition, said) in label
        .partitions
        .iter()
        .zip(table["partitions"].as_array().expect("partitions"))
    {
        let kind =
            u8::from_str_radix(said["type"].as_str().expect("a type"), 16).expect("a number");
        assert_eq!(partition.kind, PartitionType::Mbr(kind));
    }
    let places: Vec<PartitionPlace> = label.partitions.iter().map(|p| p.place).collect();
    use PartitionPlace::{Disk, Extended, Logical};
    assert_eq!(places, [Disk, Disk, Extended, Logical, Logical, Logical]);
    assert_eq!(label.partitions[4].uuid.as_deref(), Some("decafbad-06"));
    assert_eq!(mbr(&label).first.entries[0].status, 0x80);
    assert_same_bytes(
        &mbr(&label).encode().expect("can be written"),
        &image.bytes(),
    );
}

#[test]
fn labels_of_fdisk_and_parted_for_either_sector_size() {
    require!(Tool("fdisk"), Tool("parted"));
    let fdisk = |image: &Image| {
        let sector_bytes = image.sector_bytes.to_string();
        let commands =
            "o\nn\np\n1\n256\n511\nn\ne\n2\n1024\n8191\nn\nl\n1280\n1535\nn\nl\n2048\n2303\nw\n";
        image.tool("fdisk", &["-b", &sector_bytes], commands);
    };
    let parted = |image: &Image| {
        image.parted(
            "mklabel msdos unit s mkpart primary 256s 511s mkpart extended 1024s 8191s \
             mkpart logical 1280s 1535s mkpart logical 2048s 2303s",
        );
    };
    type Make<'a> = (&'a str, &'a dyn Fn(&Image), u32);
    // With 512 bytes fdisk begins at 2048 and takes no less.
    let made: [Make; 3] = [
        ("fdisk", &fdisk, 4096),
        ("parted", &parted, 512),
        ("parted", &parted, 4096),
    ];
    for (tool, make, sector_bytes) in made {
        let image = Image::new(64 * MIB, sector_bytes);
        make(&image);
        let label = image.label();
        assert_eq!(label.problems, [], "{tool}");
        let expected = [
            (1, 256, 256),
            (2, 1_024, 7_168),
            (5, 1_280, 256),
            (6, 2_048, 256),
        ];
        assert_eq!(rows(&label), expected, "{tool} with {sector_bytes}");
        assert_eq!(
            rows(&label),
            image.parted_rows(),
            "{tool} with {sector_bytes}"
        );
        assert_same_bytes(
            &mbr(&label).encode().expect("can be written"),
            &image.bytes(),
        );
    }
}

#[test]
fn a_changed_label_is_one_that_sfdisk_reads() {
    require!(Tool("sfdisk"));
    let image = image();
    let mut changed = mbr(&image.label()).clone();
    changed.first.entries[1].first += 8;
    changed.first.entries[1].count -= 8;
    changed.ebrs[1].sector.entries[0].count = 1_024;
    image.put(&applied(
        &changed.encode().expect("can be written"),
        &image.bytes(),
    ));
    let read = sfdisk_rows(&image.sfdisk_json());
    assert_eq!((read[1], read[4]), ((2, 2_056, 8_184), (6, 16_384, 1_024)));
    assert_eq!(read, rows(&image.label()));
}

#[test]
fn the_chain_is_written_from_its_end() {
    require!(Tool("sfdisk"));
    let label = image().label();
    let links: Vec<u64> = mbr(&label).ebrs.iter().map(|ebr| ebr.lba * 512).collect();
    let places: Vec<Option<u64>> = mbr(&label)
        .encode()
        .expect("can be written")
        .iter()
        .map(|step| match step {
            plumb_label::WriteStep::Write { at, .. } => Some(at.0),
            plumb_label::WriteStep::Flush => None,
        })
        .collect();
    assert_eq!(
        places,
        [
            Some(links[2]),
            Some(links[1]),
            Some(links[0]),
            None,
            Some(0)
        ]
    );
}

#[test]
fn a_loop_ends_the_chain_and_keeps_earlier_links() {
    require!(Tool("sfdisk"));
    let whole = image().bytes();
    let links: Vec<u64> = mbr(&label_of(&whole, 512))
        .ebrs
        .iter()
        .map(|ebr| ebr.lba)
        .collect();
    let base = EXTENDED as u64;
    for (from, to) in [(2, 1), (1, 1), (2, 2)] {
        let mut bytes = whole.clone();
        let at = usize::try_from(links[from]).expect("small");
        bytes[at * 512 + LINK_AT..][..16]
            .copy_from_slice(&[0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
        lead(
            &mut bytes,
            at,
            u32::try_from(links[to] - base).expect("small"),
        );
        let label = label_of(&bytes, 512);
        assert_eq!(label.problems, [Problem::EbrLoop { lba: links[to] }]);
        let logical = label
            .partitions
            .iter()
            .filter(|p| p.place == PartitionPlace::Logical)
            .count();
        assert_eq!(logical, from + 1);
    }
}

/// Links beyond the disk, outside the extended partition, to an invalid link, and into sector 0 by way of 32 bits.
#[test]
fn a_chain_that_leaves_the_extended_partition_is_reported() {
    require!(Tool("sfdisk"));
    let whole = image().bytes();
    let check = |next: u32, expected: &dyn Fn(&Problem) -> bool| {
        let mut bytes = whole.clone();
        lead(&mut bytes, EXTENDED, next);
        let label = label_of(&bytes, 512);
        assert!(has(&label, expected), "{next}: {:?}", label.problems);
        assert_eq!(
            label.partitions.len(),
            4,
            "the primary ones and the first logical one"
        );
    };
    check(u32::MAX, &|p| {
        matches!(
            p,
            Problem::BrokenEbr {
                fault: Fault::BeyondEnd { .. },
                ..
            }
        )
    });
    check(110_000, &|p| {
        matches!(p, Problem::EbrOutsideExtended { lba: 120_240 })
    });
    check(50, &|p| {
        matches!(
            p,
            Problem::BrokenEbr {
                lba: 10_290,
                fault: Fault::NoSignature
            }
        )
    });
}

/// Linux and its tools list any entry with a length, and leave garbage in the last two entries of a link alone.
#[test]
fn an_entry_is_in_use_when_it_has_a_length() {
    require!(Tool("sfdisk"), Tool("partx"));
    let image = Image::new(64 * MIB, 512);
    let script = "label: dos\nstart=2048, size=100, type=0\nstart=4096, size=9000, type=5\nstart=6144, size=64, type=83\n";
    image.tool("sfdisk", &["--quiet"], script);
    let mut bytes = image.bytes();
    let garbage = 4_096 * 512 + 446 + 32;
    bytes[garbage..garbage + 32].fill(0x77);
    image.put(&bytes);
    let label = image.label();
    assert_eq!(label.problems, []);
    assert_eq!(
        rows(&label),
        [(1, 2_048, 100), (2, 4_096, 9_000), (5, 6_144, 64)]
    );
    let theirs = image.tool(
        "partx",
        &["--raw", "--noheadings", "--output", "NR,START"],
        "",
    );
    assert_eq!(theirs, "1 2048\n2 4096\n5 6144\n");
    assert_same_bytes(&mbr(&label).encode().expect("can be written"), &bytes);
}

#[test]
fn an_endless_chain_is_left() {
    // 5000 links, each one block after the other, from block 1 on.
    let mut bytes = vec![0u8; 6_000 * 512];
    let entry = |kind: u8, first: u32, count: u32| {
        [
            &[0, 0, 0, 0, kind, 0, 0, 0][..],
            &first.to_le_bytes(),
            &count.to_le_bytes(),
        ]
        .concat()
    };
    bytes[446..462].copy_from_slice(&entry(5, 1, 5_999));
    bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
    for link in 1..=5_000u32 {
        let at = link as usize * 512;
        bytes[at + 446..at + 462].copy_from_slice(&entry(0x83, 0, 1));
        bytes[at + 462..at + 478].copy_from_slice(&entry(5, link, 1));
        bytes[at + 510..at + 512].copy_from_slice(&[0x55, 0xaa]);
    }
    let label = label_of(&bytes, 512);
    assert!(
        has(&label, |p| *p == Problem::EbrLimit { links: 4_096 }),
        "{:?}",
        label.problems.first()
    );
    assert_eq!(label.partitions.len(), 1 + 4_096);
}

#[test]
fn overlapping_and_overhanging_partitions_are_reported() {
    require!(Tool("sfdisk"));
    let image = Image::new(64 * MIB, 512);
    let script = "label: dos\nstart=2048, size=4096, type=83\nstart=6144, size=2048, type=83\nstart=8192, size=122880, type=83\n";
    image.tool("sfdisk", &["--quiet"], script);
    let mut bytes = image.bytes();
    // The second begins one block before the first ends.
    bytes[446 + 16 + 8..446 + 16 + 12].copy_from_slice(&6_143u32.to_le_bytes());
    let overlap = Problem::Overlap {
        first: PartId::partition(1),
        second: PartId::partition(2),
    };
    assert_eq!(
        label_of(&bytes, 512).problems,
        std::slice::from_ref(&overlap)
    );
    bytes.truncate(32 << 20);
    let beyond = Problem::BeyondEnd {
        part: PartId::partition(3),
        end_lba: 131_072,
        device_lbas: 65_536,
    };
    let label = label_of(&bytes, 512);
    assert_eq!(label.problems, [beyond, overlap]);
    assert_eq!(
        rows(&label),
        [(1, 2_048, 4_096), (2, 6_143, 2_048), (3, 8_192, 122_880)]
    );
}

#[test]
fn an_overhanging_logical_partition_is_reported() {
    require!(Tool("sfdisk"));
    let mut bytes = image().bytes();
    let third = mbr(&label_of(&bytes, 512)).ebrs[2].lba;
    let field = usize::try_from(third).expect("small") * 512 + 446 + 12;
    bytes[field..field + 4].copy_from_slice(&100_000u32.to_le_bytes());
    let outside = Problem::OutsideParent {
        part: PartId::partition(7),
        parent: PartId::partition(3),
    };
    assert_eq!(label_of(&bytes, 512).problems, [outside]);
}

#[test]
fn a_cut_image_never_ends_the_reading() {
    require!(Tool("sfdisk"));
    let whole = image().bytes();
    for blocks in [1, 2, EXTENDED, EXTENDED + 1, 16_000, 30_000] {
        let label = label_of(&whole[..blocks * 512], 512);
        assert!(
            has(&label, |p| matches!(p, Problem::BeyondEnd { .. })),
            "{blocks} blocks"
        );
        assert!(label.partitions.len() >= 3);
    }
}

/// The boot sector of a FAT file system ends like an MBR; an MBR without partitions is one.
#[test]
fn a_boot_sector_is_no_mbr() {
    let mut sector = vec![0u8; 1 << 20];
    sector[510..512].copy_from_slice(&[0x55, 0xaa]);
    assert_eq!(label_of(&sector, 512).kind, LabelKind::Mbr);
    sector[..3].copy_from_slice(&[0xeb, 0x3c, 0x90]);
    sector[11..13].copy_from_slice(&512u16.to_le_bytes());
    assert_eq!(read(&sector, Some(512)), Ok(None));
    sector[446] = 0x41;
    assert_eq!(read(&sector, Some(512)), Ok(None));
}
