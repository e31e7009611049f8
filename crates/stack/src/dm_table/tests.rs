//! Lines as the kernel's documentation gives them, and lines that nobody should believe.

use plumb_geometry::{Bytes, ParityLayout, SECTOR, Sectors};
use proptest::prelude::*;

use super::*;
use crate::Obstacle;
use crate::builder::Builder;
use crate::graph::Stack;
use crate::grid::{CellKind, GridFact, Source};
use crate::node::{Kind, Placing};
use crate::verdict::Verdict;

fn at(device: &str, start: u64) -> At {
    At {
        device: device.to_owned(),
        start: Sectors(start),
    }
}

fn names(all: &[&str]) -> Vec<String> {
    all.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn targets_are_understood() {
    let check = |line: &str, expected: DmTarget| {
        assert_eq!(
            parse_line(line).map(|line| line.target),
            Ok(expected),
            "{line}"
        );
    };
    check(
        "0 40960 linear 259:1 2048",
        DmTarget::Linear(at("259:1", 2048)),
    );
    check(
        "0 1024 linear /dev/sda 0",
        DmTarget::Linear(at("/dev/sda", 0)),
    );
    check(
        "0 2048 striped 3 128 8:1 0 8:2 16 8:3 0",
        DmTarget::Striped {
            chunk: Sectors(128),
            members: vec![at("8:1", 0), at("8:2", 16), at("8:3", 0)],
        },
    );
    let crypt = |sector_bytes| DmTarget::Crypt {
        data: at("8:2", 32768),
        sector_bytes,
    };
    check(
        "0 99 crypt aes-xts-plain64 :64:logon:key 0 8:2 32768",
        crypt(512),
    );
    check(
        "0 99 crypt aes-xts-plain64 - 0 8:2 32768 2 allow_discards sector_size:4096",
        crypt(4096),
    );
    // From dm-raid.rst, the example of RAID 4 and one with a failed device.
    check(
        "0 1960893648 raid raid4 1 2048 5 - 8:17 - 8:33 - 8:49 - 8:65 - 8:81",
        DmTarget::Raid {
            level: "raid4".to_owned(),
            shape: RaidShape {
                parity: 1,
                copies: 1,
                layout: None,
            },
            chunk: Sectors(2048),
            data_offset: Sectors(0),
            members: ["8:17", "8:33", "8:49", "8:65", "8:81"]
                .map(|it| Some(it.to_owned()))
                .to_vec(),
        },
    );
    check(
        "0 8 raid raid5_ls 7 128 sync region_size 1024 data_offset 2048 nosync 3 253:0 253:1 - - 253:4 253:5",
        DmTarget::Raid {
            level: "raid5_ls".to_owned(),
            shape: RaidShape {
                parity: 1,
                copies: 1,
                layout: Some(ParityLayout::LeftSymmetric),
            },
            chunk: Sectors(128),
            data_offset: Sectors(2048),
            members: vec![Some("253:1".to_owned()), None, Some("253:5".to_owned())],
        },
    );
    check(
        "0 8 mirror clustered-disk 4 253:2 1024 UUID block_on_error 3 8:1 0 8:2 8 8:3 0",
        DmTarget::Mirror {
            members: vec![at("8:1", 0), at("8:2", 8), at("8:3", 0)],
        },
    );
    check(
        "0 71014400 multipath 0 0 4 1 round-robin 0 1 1 66:128 1000 round-robin 0 1 1 65:64 1000 \
         round-robin 0 1 1 8:0 1000 round-robin 0 1 1 67:192 1000",
        DmTarget::Multipath {
            paths: names(&["66:128", "65:64", "8:0", "67:192"]),
        },
    );
    check(
        "0 8 multipath 3 queue_if_no_path retain_attached_hw_handler yes 1 alua 1 1 service-time 0 2 2 8:16 1 1 8:32 1 1",
        DmTarget::Multipath {
            paths: names(&["8:16", "8:32"]),
        },
    );
    check(
        "0 20971520 thin-pool 253:1 253:2 128 32768 1 skip_block_zeroing",
        DmTarget::ThinPool {
            metadata: "253:1".to_owned(),
            data: "253:2".to_owned(),
            block: Sectors(128),
        },
    );
    check(
        "0 2097152 thin 253:3 1",
        DmTarget::Thin {
            pool: "253:3".to_owned(),
            origin: None,
        },
    );
    check(
        "0 2097152 thin 253:3 1 7:0",
        DmTarget::Thin {
            pool: "253:3".to_owned(),
            origin: Some("7:0".to_owned()),
        },
    );
    check(
        "0 41943040 cache 253:1 253:2 8:16 512 1 writeback default 0",
        DmTarget::Cache {
            cache: "253:2".to_owned(),
            origin: "8:16".to_owned(),
            block: Sectors(512),
        },
    );
    check(
        "0 8 writecache s 8:16 8:32 4096 0",
        DmTarget::WriteCache {
            cache: "8:32".to_owned(),
            origin: "8:16".to_owned(),
            block_bytes: 4096,
        },
    );
    check(
        "0 2097152 snapshot 254:11 254:12 P 16",
        DmTarget::Snapshot {
            origin: "254:11".to_owned(),
            store: "254:12".to_owned(),
            chunk: Sectors(16),
        },
    );
    check(
        "0 8 snapshot-origin 254:11",
        DmTarget::SnapshotOrigin("254:11".to_owned()),
    );
    check(
        "0 8 integrity 8:2 0 32 J 2 internal_hash:hmac(sha256):- block_size:4096",
        DmTarget::Integrity {
            device: "8:2".to_owned(),
            block_bytes: 4096,
        },
    );
    check(
        "0 8 verity 1 8:2 8:3 4096 4096 262144 1 sha256 abcd 1234",
        DmTarget::Verity {
            data: "8:2".to_owned(),
            block_bytes: 4096,
        },
    );
    check("0 8 zero ", DmTarget::Nothing);
    check("0 8 error", DmTarget::Nothing);
    check(
        "0 8 vdo V4 /dev/sda 4096 8:2 x:y 8:2",
        DmTarget::Other {
            kind: "vdo".to_owned(),
            devices: names(&["8:2"]),
        },
    );
}

#[test]
fn broken_lines_name_the_missing_field() {
    for (line, message) in [
        ("", "the parameters of table end before the first sector"),
        (
            "0 x linear 8:0 0",
            "table: found \"x\", expected the length",
        ),
        (
            "0 8 linear 8:0",
            "the parameters of linear end before its first sector",
        ),
        (
            "0 8 linear 8:0 36028797018963968",
            "linear: found \"36028797018963968\", expected its first sector",
        ),
        (
            "0 8 striped 4000000000 8 8:0 0",
            "striped: found \"4000000000\", expected the number of stripes",
        ),
        (
            "0 8 striped 1 0 8:0 0",
            "striped: found \"0\", expected the chunk",
        ),
        (
            "0 8 raid raid7 0 0",
            "raid: found \"raid7\", expected a level of RAID",
        ),
        (
            "18446744073709551615 8 linear 8:0 0",
            "table: found \"18446744073709551615\", expected the first sector",
        ),
    ] {
        assert_eq!(
            parse_line(line).map_err(|error| error.to_string()),
            Err(message.to_owned())
        );
    }
}

#[test]
fn names_of_volumes_are_unfolded() {
    for (name, expected) in [
        ("vg-lv", Some("vg/lv")),
        ("my--vg-my--lv", Some("my-vg/my-lv")),
        ("vg-lv_rimage_0", Some("vg/lv_rimage_0")),
        ("vg-pool-tpool", None),
        ("vg", None),
        ("vg--lv", None),
        ("-lv", None),
    ] {
        assert_eq!(lvm_name(name).as_deref(), expected, "{name}");
    }
}

/// A stack of tables over disks `8:0`, `8:16`, … of 4 KiB physical blocks.
fn stack(tables: &[(&str, &str, &[&str])]) -> Stack {
    let mut builder = Builder::default();
    for disk in ["8:0", "8:16", "8:32"] {
        let node = builder.node(disk);
        builder.kind(node, Kind::Disk, &Source::User);
        let grid = plumb_geometry::Grid::unit(Bytes(4096)).expect("a grid");
        builder.grid(
            node,
            GridFact::believed(grid, CellKind::PhysicalBlock, Source::User),
        );
    }
    let mapped: Vec<Mapped> = tables
        .iter()
        .map(|(name, uuid, lines)| Mapped {
            node: builder.node(name),
            uuid: (*uuid).to_owned(),
            lines: lines
                .iter()
                .map(|line| parse_line(line).expect("a line"))
                .collect(),
        })
        .collect();
    place(
        &mut builder,
        &mapped,
        &mut |builder, name| builder.node(name),
        &Source::DeviceMapper,
    );
    builder.finish()
}

fn verdicts(stack: &Stack, top: &str) -> Vec<Verdict> {
    stack
        .standings(stack.find(top).expect(top))
        .into_iter()
        .map(|one| one.verdict)
        .collect()
}

fn misaligned(by: u64) -> Verdict {
    Verdict::Misaligned { by: Bytes(by) }
}

/// A volume with one aligned and one misaligned segment.
#[test]
fn segments_are_distinguished() {
    let stack = stack(&[(
        "vg-lv",
        "LVM-x",
        &[
            "0 8192 linear 8:0 2048",
            "8192 8192 striped 2 128 8:16 2049 8:32 2049",
            "16384 8 zero",
        ],
    )]);
    let piece = stack.find("vg-lv[1]").expect("the striped segment");
    assert_eq!(stack.node(piece).kind, Kind::Stripe);
    assert_eq!(
        stack.node(stack.find("vg-lv").expect("it")).kind,
        Kind::LogicalVolume
    );
    assert_eq!(
        verdicts(&stack, "vg-lv"),
        [Verdict::Aligned, misaligned(512), misaligned(512)]
    );
}

#[test]
fn missing_layers_below_are_reported() {
    let stack = stack(&[("null", "", &["0 8 zero", "8 8 error"]), ("empty", "", &[])]);
    for (name, expected) in [
        ("null", Obstacle::LeadsNowhere),
        ("empty", Obstacle::NoTable),
    ] {
        let lost = stack.landings(stack.find(name).expect(name)).lost;
        assert_eq!(
            lost.into_iter().map(|(_, why)| why).collect::<Vec<_>>(),
            [expected]
        );
    }
}

#[test]
fn encryption_moves_and_cuts() {
    let stack = stack(&[
        (
            "home",
            "CRYPT-LUKS2-x",
            &["0 99 crypt aes - 0 8:0 32769 1 sector_size:4096"],
        ),
        ("inside", "", &["0 8 linear home 1"]),
    ]);
    // On its own sectors and then 512 bytes off the disk's; one sector in, off both.
    assert_eq!(
        verdicts(&stack, "home"),
        [Verdict::Aligned, misaligned(512)]
    );
    assert_eq!(
        verdicts(&stack, "inside"),
        [misaligned(512), misaligned(1024)]
    );
}

/// Blocks of a pool may be anywhere, but their phase is that of the pool's data.
#[test]
fn thin_volumes_have_the_phase_of_their_pool() {
    for (start, expected) in [(2048, Verdict::Aligned), (2049, misaligned(512))] {
        // The volume is named before its pool: its block comes from there all the same.
        let data = format!("0 9999 linear 8:0 {start}");
        let stack = stack(&[
            ("thin", "", &["0 999 thin pool 1"]),
            ("pool", "", &["0 999 thin-pool meta data 128 0"]),
            ("data", "", &[&data]),
            ("lost", "", &["0 999 thin elsewhere 1"]),
        ]);
        assert_eq!(verdicts(&stack, "thin").last(), Some(&expected));
        let lost = stack.landings(stack.find("lost").expect("it")).lost;
        assert_eq!(lost[0].1, Obstacle::PoolTableMissing);
    }
}

/// A byte behind a cache is on the origin and in the cache: both must be aligned.
#[test]
fn caches_have_two_places() {
    let stack = stack(&[
        ("fast", "", &["0 9999 linear 8:16 1"]),
        ("cached", "", &["0 9999 cache meta fast 8:0 512 0"]),
    ]);
    let found = verdicts(&stack, "cached");
    assert!(
        found.contains(&misaligned(512)) && found.contains(&Verdict::Aligned),
        "{found:?}"
    );
}

#[test]
fn arrays_keep_the_places_of_missing_members() {
    let stack = stack(&[(
        "array",
        "",
        &["0 9999 raid raid5_ls 3 128 data_offset 8 3 - 8:0 - - - 8:32"],
    )]);
    let Placing::Chunks(chunks) = &stack.node(stack.find("array").expect("it")).placing else {
        panic!("no chunks")
    };
    assert_eq!(
        (chunks.data_chunks(), chunks.stripe_bytes()),
        (2, Some(Bytes(2 * 128 * SECTOR)))
    );
    assert_eq!(chunks.members[0].start, Bytes(4096));
    let missing = stack.node(chunks.members[1].node);
    let (array, slot) = ("array".to_owned(), 1);
    assert_eq!(
        missing.opaque,
        Some(Obstacle::MissingMember { array, slot })
    );
}

#[test]
fn paths_are_no_disks() {
    let stack = stack(&[(
        "mpatha",
        "mpath-1",
        &["0 99 multipath 0 0 1 1 rr 0 2 1 8:0 1 8:16 1"],
    )]);
    let kinds = ["mpatha", "8:0", "8:16", "8:32"]
        .map(|name| stack.node(stack.find(name).expect(name)).kind);
    assert_eq!(kinds, [Kind::Multipath, Kind::Path, Kind::Path, Kind::Disk]);
    assert!(stack.problems().is_empty());
}

const KINDS: [&str; 19] = [
    "linear",
    "striped",
    "crypt",
    "raid",
    "mirror",
    "multipath",
    "thin-pool",
    "thin",
    "cache",
    "writecache",
    "snapshot",
    "snapshot-origin",
    "integrity",
    "verity",
    "zero",
    "flakey",
    "delay",
    "raid1",
    "x",
];

proptest! {
    /// No text panics, and every parsed table can be placed and folded.
    #[test]
    fn any_table_is_read_or_refused(
        lines in prop::collection::vec(
            (0usize..KINDS.len(), prop::collection::vec("[0-9]{1,3}|8:[0-9]|-|raid[0-9]{1,2}|[a-z_]{1,9}|18446744073709551615|\\PC{0,4}", 0..14)),
            1..4,
        ),
    ) {
        let lines: Vec<DmLine> = lines
            .into_iter()
            .filter_map(|(kind, words)| parse_line(&format!("0 8 {} {}", KINDS[kind], words.join(" "))).ok())
            .collect();
        let mut builder = Builder::default();
        let table = Mapped { node: builder.node("dm-0"), uuid: String::new(), lines };
        place(&mut builder, &[table], &mut |builder, name| builder.node(name), &Source::DeviceMapper);
        let stack = builder.finish();
        for top in stack.tops() {
            let _ = stack.standings(top);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = parse_line(&text);
        let _ = lvm_name(&text);
    }
}
