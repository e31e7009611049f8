//! GPT images made by sfdisk, fdisk, sgdisk and parted, read, compared with the output of these tools, and written
//! again.

use crate::common::{Image, PartitionRow, applied, assert_same_bytes, label_of, rows, sfdisk_rows};
use plumb_label::{Detail, Gpt, Guid, Label, LabelKind, PartitionType, Role, WriteStep};
use plumb_testkit::require;

const MIB: u64 = 1 << 20;

/// Partitions with attributes, names beyond ASCII, a gap in the numbers, and one at sector 34.
const SCRIPT: &str = "label: gpt
label-id: 0F5C3A7E-91D2-4C1B-8E55-6A7B8C9D0E1F
first-lba: 34
start=34, size=2014, type=21686148-6449-6E6F-744E-656564454649
start=2048, size=20480, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B, name=\"Größe ≥ 1\", attrs=\"RequiredPartition,LegacyBIOSBootable,GUID:63\"
4: start=32768, size=8192, type=0FC63DAF-8483-4772-8E79-3D69D8477DE4, uuid=DEADBEEF-0001-4002-8003-000000000004
";

fn gpt(label: &Label) -> &Gpt {
    match &label.detail {
        Some(Detail::Gpt(gpt)) => gpt,
        other => panic!("found {other:?}, expected a GPT"),
    }
}

fn sfdisk_image() -> Image {
    let image = Image::new(64 * MIB, 512);
    image.tool("sfdisk", &["--quiet"], SCRIPT);
    image
}

/// A label without problems and with both copies.
fn assert_whole(label: &Label) {
    assert_eq!(label.problems, []);
    let roles: Vec<Role> = label
        .copies
        .iter()
        .filter(|copy| copy.fault.is_none())
        .map(|copy| copy.role)
        .collect();
    assert_eq!(roles, [Role::Primary, Role::Backup]);
}

#[test]
fn reading_agrees_with_sfdisk() {
    require!(Tool("sfdisk"));
    let image = sfdisk_image();
    let label = image.label();
    assert_eq!((label.kind, label.sector_bytes), (LabelKind::Gpt, 512));
    assert_whole(&label);
    let table = image.sfdisk_json();
    assert_eq!(rows(&label), sfdisk_rows(&table));
    assert_eq!(
        rows(&label),
        [(1, 34, 2_014), (2, 2_048, 20_480), (4, 32_768, 8_192)]
    );
    assert_eq!(label.id, table["id"].as_str().map(str::to_lowercase));
    let gpt = gpt(&label);
    assert_eq!(
        (Some(gpt.first_usable_lba), Some(gpt.last_usable_lba)),
        (table["firstlba"].as_u64(), table["lastlba"].as_u64())
    );
    for (partition, said) in label
        .partitions
        .iter()
        .zip(table["partitions"].as_array().expect("partitions"))
    {
        let said = |field: &str| said[field].as_str().map(str::to_owned);
        assert_eq!(partition.uuid, said("uuid").map(|uuid| uuid.to_lowercase()));
        assert_eq!(partition.name, said("name"));
        let PartitionType::Guid(kind) = partition.kind else {
            panic!("no GUID: {partition:?}")
        };
        assert_eq!(
            Some(kind),
            said("type").map(|kind| kind.parse::<Guid>().expect("a GUID"))
        );
    }
    assert_eq!(gpt.entries[1].attributes, 1 << 63 | 0b101);
    let names: Vec<_> = label
        .partitions
        .iter()
        .map(|partition| partition.kind.name())
        .collect();
    assert_eq!(
        names,
        [
            Some("BIOS boot"),
            Some("EFI System"),
            Some("Linux filesystem")
        ]
    );
}

#[test]
fn labels_of_three_tools_for_either_sector_size() {
    require!(Tool("fdisk"), Tool("parted"), Tool("sgdisk"));
    let fdisk = |image: &Image| {
        let sector_bytes = image.sector_bytes.to_string();
        image.tool(
            "fdisk",
            &["-b", &sector_bytes],
            "g\nn\n1\n2048\n4095\nn\n3\n4100\n5000\nw\n",
        );
    };
    let parted = |image: &Image| {
        image.parted("mklabel gpt unit s mkpart one 2048s 4095s mkpart two 4100s 5000s");
    };
    // sgdisk accepts no block size, so it has 512 only.
    let sgdisk = |image: &Image| {
        image.tool(
            "sgdisk",
            &[
                "-a1",
                "-n1:2048:4095",
                "-n2:4100:5000",
                "-c2:two",
                "-A2:set:2",
            ],
            "",
        );
    };
    type Make<'a> = (&'a str, &'a dyn Fn(&Image), u32);
    let made: [Make; 5] = [
        ("fdisk", &fdisk, 512),
        ("fdisk", &fdisk, 4096),
        ("parted", &parted, 512),
        ("parted", &parted, 4096),
        ("sgdisk", &sgdisk, 512),
    ];
    for (tool, make, sector_bytes) in made {
        let image = Image::new(64 * MIB, sector_bytes);
        make(&image);
        let label = image.label();
        assert_whole(&label);
        assert_eq!(label.sector_bytes, sector_bytes, "{tool}");
        let starts: Vec<(u64, u64)> = rows(&label)
            .iter()
            .map(|&(_, first, count)| (first, count))
            .collect();
        assert_eq!(starts, [(2_048, 2_048), (4_100, 901)], "{tool}");
        assert_eq!(
            rows(&label),
            image.parted_rows(),
            "{tool} with {sector_bytes}"
        );
        let bytes = image.bytes();
        assert_same_bytes(
            &gpt(&label)
                .encode_with_mbr(Role::Primary)
                .expect("can be written"),
            &bytes,
        );
    }
}

#[test]
fn labels_are_written_unchanged_in_the_safe_order() {
    require!(Tool("sfdisk"));
    let image = sfdisk_image();
    let label = image.label();
    let steps = gpt(&label)
        .encode_with_mbr(Role::Primary)
        .expect("can be written");
    assert_same_bytes(&steps, &image.bytes());
    let last = 64 * MIB / 512 - 1;
    let places: Vec<Option<u64>> = steps
        .iter()
        .map(|step| match step {
            WriteStep::Write { at, .. } => Some(at.0 / 512),
            WriteStep::Flush => None,
        })
        .collect();
    assert_eq!(
        places,
        [
            Some(last - 32),
            Some(last),
            None,
            Some(2),
            Some(1),
            None,
            Some(0)
        ]
    );
}

/// Boot code, the signature and the bytes after the fields of a header belong to others, and stay.
#[test]
fn bytes_that_no_field_has_are_kept() {
    require!(Tool("sfdisk"));
    let image = sfdisk_image();
    let mut bytes = image.bytes();
    bytes[..440].fill(0x90);
    bytes[440..446].copy_from_slice(&[1, 2, 3, 4, 0x5a, 0x5a]);
    bytes[512 + 92..1024].fill(0xee);
    let label = label_of(&bytes, 512);
    assert_whole(&label);
    assert_same_bytes(
        &gpt(&label)
            .encode_with_mbr(Role::Primary)
            .expect("can be written"),
        &bytes,
    );
}

#[test]
fn a_changed_label_is_one_that_the_tools_read() {
    require!(Tool("sfdisk"), Tool("sgdisk"));
    let image = sfdisk_image();
    let mut changed = gpt(&image.label()).clone();
    changed.entries[3].first_lba += 8;
    changed.entries[3].last_lba += 8;
    let kind = "6a898cc3-1dd2-11b2-99a6-080020736631"
        .parse()
        .expect("a GUID");
    let uuid = Guid::from_u128(5);
    changed.entries[5] = plumb_label::gpt::Entry {
        kind,
        uuid,
        first_lba: 65_536,
        last_lba: 65_543,
        ..changed.entries[3].clone()
    };
    image.put(&applied(
        &changed.encode(Role::Primary).expect("can be written"),
        &image.bytes(),
    ));
    let expected: Vec<PartitionRow> = vec![
        (1, 34, 2_014),
        (2, 2_048, 20_480),
        (4, 32_776, 8_192),
        (6, 65_536, 8),
    ];
    assert_eq!(sfdisk_rows(&image.sfdisk_json()), expected);
    assert_eq!(rows(&image.label()), expected);
    assert!(image.is_whole_for_sgdisk());
}

#[test]
fn a_new_label_is_one_that_the_tools_read() {
    require!(Tool("parted"), Tool("sgdisk"));
    for sector_bytes in [512, 4096] {
        let image = Image::new(64 * MIB, sector_bytes);
        let lbas = 64 * MIB / u64::from(sector_bytes);
        let mut new = Gpt::new(
            sector_bytes,
            lbas,
            Guid::from_u128(0x0f5c3a7e_91d2_4c1b_8e55_6a7b8c9d0e1f),
        )
        .expect("room");
        let kind = "0fc63daf-8483-4772-8e79-3d69d8477de4"
            .parse()
            .expect("a GUID");
        let uuid = Guid::from_u128(7);
        new.entries[0] = plumb_label::gpt::Entry {
            kind,
            uuid,
            first_lba: 256,
            last_lba: 1_023,
            ..new.entries[0].clone()
        };
        image.put(&applied(
            &new.encode_with_mbr(Role::Primary).expect("can be written"),
            &image.bytes(),
        ));
        assert_eq!(image.parted_rows(), [(1, 256, 768)]);
        let label = image.label();
        assert_whole(&label);
        assert_eq!(gpt(&label), &new);
        if sector_bytes == 512 {
            assert!(image.is_whole_for_sgdisk());
        }
    }
}

/// Types of Solaris as sgdisk knows them, in the places where Solaris has them.
#[test]
fn solaris_efi_is_a_gpt_with_slices_and_a_reserved_partition() {
    require!(Tool("sgdisk"));
    let image = Image::new(64 * MIB, 512);
    let make = [
        "-a1",
        "-n1:34:100000",
        "-t1:bf01",
        "-n9:100001:116384",
        "-t9:bf07",
    ];
    image.tool("sgdisk", &make, "");
    let label = image.label();
    assert_eq!(label.kind, LabelKind::SolarisEfi);
    assert_whole(&label);
    let shown: Vec<_> = label
        .partitions
        .iter()
        .map(|p| (p.id.slice, p.id.number, p.kind.name()))
        .collect();
    assert_eq!(
        shown,
        [
            (Some(0), 1, Some("Solaris /usr or ZFS")),
            (Some(8), 9, Some("Solaris reserved"))
        ]
    );
    assert_eq!(label.partitions[0].extent.start().0, 17_408);
    assert_eq!(label.solaris_reserved(), label.partitions.last());
    // sgdisk's list of Solaris's types, bf00 to bf0b, goes by the same names as the headers of illumos.
    for (code, name) in [
        ("bf00", "Solaris root"),
        ("bf02", "Solaris swap"),
        ("bf03", "Solaris backup"),
        ("bf04", "Solaris /var"),
        ("bf05", "Solaris /home"),
        ("bf06", "Solaris alternate sectors"),
    ] {
        image.tool("sgdisk", &[&format!("-t1:{code}")], "");
        assert_eq!(
            image.label().partitions[0].kind.name(),
            Some(name),
            "{code}"
        );
    }
    image.tool("sgdisk", &["-d9"], "");
    assert_eq!(image.label().solaris_reserved(), None);
}

#[test]
fn tables_of_other_sizes_are_read() {
    require!(Tool("sgdisk"));
    for entries in ["4", "56", "200"] {
        let image = Image::new(64 * MIB, 512);
        image.tool("sgdisk", &["-S", entries, "-n2:4096:8191"], "");
        let label = image.label();
        assert_whole(&label);
        assert_eq!(gpt(&label).entries.len().to_string(), entries);
        assert_eq!(rows(&label), [(2, 4_096, 4_096)]);
        assert_same_bytes(
            &gpt(&label).encode(Role::Primary).expect("can be written"),
            &image.bytes(),
        );
    }
}

#[test]
fn a_hybrid_mbr_is_noted_and_kept() {
    require!(Tool("sgdisk"));
    let image = Image::new(64 * MIB, 512);
    image.tool("sgdisk", &["-n1:2048:8191", "-n2:8192:16383", "-h2"], "");
    let label = image.label();
    assert_eq!(label.problems, [plumb_label::Problem::HybridMbr]);
    assert_eq!(rows(&label), [(1, 2_048, 6_144), (2, 8_192, 8_192)]);
    assert_same_bytes(
        &gpt(&label)
            .encode_with_mbr(Role::Primary)
            .expect("can be written"),
        &image.bytes(),
    );

    // On a grown disk the length of its protective entry stays as somebody chose it.
    image.resize(96 * MIB);
    let mut moved = gpt(&image.label()).clone();
    moved.move_backup_to_end().expect("room at the end");
    assert_eq!(moved.mbr, gpt(&label).mbr);
    image.put(&applied(
        &moved
            .encode_with_mbr(Role::Primary)
            .expect("can be written"),
        &image.bytes(),
    ));
    assert_eq!(image.label().problems, [plumb_label::Problem::HybridMbr]);
}
