//! Tests of `misaligned-partition`.

use plumb_diagnose::{RuleId, Severity, TargetLayer};
use plumb_geometry::{Bytes, SECTOR};
use plumb_model::Confidence;
use plumb_model::facts::{MisalignedPartition, Mover, NextStart, WantedStart};
use plumb_stack::node::keys;
use plumb_stack::{CellKind, Kind, Member, Obstacle, Placing, Source};

use crate::common::lab::{JudgedLayout, Lab, kernel, stack_reason};
use crate::common::number;
use crate::facts;

const RULE: &str = "misaligned-partition";

/// The facts of the one finding.
fn facts(judged: &JudgedLayout) -> &MisalignedPartition {
    facts!(judged.finding(RULE), MisalignedPartition)
}

fn next(on: &str, sector: u64) -> NextStart {
    NextStart {
        on: on.to_owned(),
        start_bytes: Bytes(sector * SECTOR),
    }
}

/// Starts and lengths of neighbours, sectors.
type Below = &'static [(u64, u64)];

/// Sector 34 is 17 KiB: 1 KiB past a block of 4 KiB. Sector 63 is 3,584 B past one.
#[test]
fn a_partition_off_a_stated_block() {
    for (start, past) in [(34, 1024.0), (63, 3584.0), (2047, 3584.0), (1, 512.0)] {
        let mut lab = Lab::default();
        let disk = lab.disk("sda", 4096, 0);
        lab.partition("sda1", disk, start);
        let judged = lab.judge();
        let finding = judged.finding(RULE);
        assert_eq!(
            (finding.target.device.as_str(), finding.target.layer),
            ("sda1", TargetLayer::Stack(Kind::Partition))
        );
        assert_eq!(number(finding, "past_bytes"), past, "{start}");
        assert_eq!(
            (finding.severity, finding.confidence),
            (Severity::Warning, Confidence::High)
        );
        // A block of 4 KiB touches two of them.
        assert_eq!(finding.cost.as_ref().map(|cost| cost.value), Some(2.0));
    }
}

#[test]
fn the_next_start_is_named() {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    lab.partition("sda1", disk, 34);
    let judged = lab.judge();
    let facts = facts(&judged);
    assert_eq!(facts.past_bytes, Some(Bytes(1024)));
    assert_eq!(facts.start_bytes, Some(Bytes(34 * SECTOR)));
    assert_eq!(
        (
            facts.grid.granularity_bytes,
            facts.grid.what,
            facts.grid.on.as_str()
        ),
        (Bytes(4096), CellKind::PhysicalBlock, "sda")
    );
    assert!(facts.grid.believed);
    // 40 is the next multiple of 8 sectors. The first MiB is no place to move back to.
    let wanted = WantedStart::Partition {
        up_bytes: Bytes(6 * SECTOR),
        down_bytes: None,
        next: Some(next("sda", 40)),
    };
    assert_eq!(facts.wanted, wanted);
}

/// A physical volume on all of a drive, without a volume: its data will begin where its first extent does.
#[test]
fn a_physical_volume_without_volumes() {
    for (start, past) in [
        (1 << 20, None),
        (192 << 10, None),
        ((1 << 20) - 512, Some(3584.0)),
    ] {
        let mut lab = Lab::default();
        let disk = lab.disk("sdb", 4096, 0);
        lab.fact(disk, keys::CONTENT, "LVM2 PV");
        lab.fact(disk, keys::PE_START, Bytes(start));
        let judged = lab.judge();
        let found = judged
            .diagnosis
            .findings
            .iter()
            .find(|finding| finding.rule() == RuleId::MisalignedPartition);
        assert_eq!(
            found.map(|finding| number(finding, "past_bytes")),
            past,
            "{start}"
        );
    }
}

/// Its new start is in the units of its own table, for any layer below.
#[test]
fn the_next_start_is_one_of_its_own_table() {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    let outer = lab.partition("sda1", disk, 40);
    let volume = lab.runs(Kind::LogicalVolume, "vg/guest", &[(outer, 2048, 1 << 19)]);
    lab.runs(Kind::Partition, "vg/guest1", &[(volume, 63, 1 << 18)]);
    let judged = lab.judge();
    // 40 + 2,048 + 63 is 2,151, the last sector of a block.
    let wanted = WantedStart::Partition {
        up_bytes: Bytes(SECTOR),
        down_bytes: None,
        next: Some(next("vg/guest", 64)),
    };
    assert_eq!(facts(&judged).wanted, wanted);
}

/// A slice of an SMI label begins at a cylinder: 2,889 sectors are odd, so that every eighth is on 4 KiB.
#[test]
fn the_next_cylinder_is_named() {
    let cylinder = WantedStart::Cylinder {
        disk: "c3t13d0".to_owned(),
        next_bytes: Some(Bytes(23_112 * SECTOR)),
    };
    let any = WantedStart::Partition {
        up_bytes: Bytes(6 * SECTOR),
        down_bytes: Some(Bytes(2 * SECTOR)),
        next: Some(next("c3t13d0", 5_784)),
    };
    for (label, expected) in [("vtoc", cylinder), ("efi", any)] {
        let mut lab = Lab::default();
        let disk = lab.disk("c3t13d0", 4096, 0);
        lab.fact(disk, keys::LABEL, label);
        lab.fact(disk, keys::CYLINDER_SECTORS, 2_889_u64);
        lab.partition("c3t13d0s0", disk, 2 * 2_889);
        let judged = lab.judge();
        assert_eq!(facts(&judged).wanted, expected, "{label}");
    }
}

#[test]
fn silent_on_the_block_and_with_an_alignment_offset() {
    for (offset, start) in [(0, 2048), (0, 40), (3584, 2047), (3584, 7)] {
        let mut lab = Lab::default();
        let disk = lab.disk("sda", 4096, offset);
        lab.partition("sda1", disk, start);
        let judged = lab.judge();
        assert!(
            judged.is_silent(RULE),
            "{offset} {start}: {:?}",
            judged.diagnosis
        );
    }
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 3584);
    lab.partition("sda1", disk, 2048);
    assert_eq!(
        number(lab.judge().finding(RULE), "past_bytes"),
        512.0,
        "2048 is off there"
    );
}

/// Nothing stated: off 4 KiB is a finding of low confidence, on it is no verdict.
#[test]
fn an_assumed_grid_is_never_reported_as_aligned() {
    let mut lab = Lab::default();
    let disk = lab.bare("c0t0d0");
    lab.partition("c0t0d0s0", disk, 34);
    lab.partition("c0t0d0s1", disk, 4 << 20);
    let judged = lab.judge();
    let finding = judged.finding(RULE);
    assert_eq!(finding.target.device, "c0t0d0s0");
    assert_eq!(finding.confidence, Confidence::Low);
    let grid = &facts(&judged).grid;
    assert_eq!((grid.what, grid.believed), (CellKind::Assumed, false));
    assert_eq!(
        judged.whys(RULE),
        [&stack_reason(Obstacle::NothingBeyond {
            on: "c0t0d0".to_owned(),
            granularity_bytes: Bytes(4096),
        })]
    );
    assert!(!judged.is_silent(RULE));
}

/// A drive with blocks of 512 bytes, as far as it says, is no better known than one that says nothing.
#[test]
fn a_small_physical_block_decides_nothing() {
    let mut lab = Lab::default();
    let disk = lab.disk("loop0", 512, 0);
    lab.partition("loop0p1", disk, 34);
    assert_eq!(lab.judge().finding(RULE).confidence, Confidence::Low);
}

/// Never layer by layer: a PV at sector 63 whose data begin at sector 2049 of it is right, and the partition below it
/// is no finding of its own.
#[test]
fn two_wrongs_make_a_right() {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    let partition = lab.partition("sda1", disk, 63);
    lab.runs(Kind::LogicalVolume, "vg/lv", &[(partition, 2049, 8192)]);
    assert!(lab.judge().is_silent(RULE));
}

/// And two rights can hide a wrong: the volume is judged, by way of a partition that is off.
#[test]
fn a_volume_inherits_the_grid_below() {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    let partition = lab.partition("sda1", disk, 63);
    let volume = lab.runs(Kind::LogicalVolume, "vg/lv", &[(partition, 2048, 8192)]);
    let system = lab.runs(Kind::FileSystem, "/data", &[(volume, 0, 8192)]);
    lab.fact(system, keys::CONTENT, "ext4");
    let judged = lab.judge();
    let finding = judged.finding(RULE);
    assert_eq!(
        (finding.target.device.as_str(), finding.target.layer),
        ("vg/lv", TargetLayer::Stack(Kind::LogicalVolume)),
        "the device that the file system lies on"
    );
    let mover = Mover {
        device: "sda1".to_owned(),
        on: "sda".to_owned(),
        start_bytes: Bytes(63 * SECTOR),
        past_bytes: Bytes(3_584),
    };
    assert_eq!(facts(&judged).movers, [mover]);
}

/// A device that is mounted in two places is one device.
#[test]
fn two_mounts_of_one_device() {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    let partition = lab.partition("sda1", disk, 63);
    for mount in ["/data", "/srv"] {
        lab.runs(Kind::FileSystem, mount, &[(partition, 0, 1 << 20)]);
    }
    assert_eq!(lab.judge().found_on(RULE), ["sda1"]);
}

#[test]
fn only_one_piece_off_is_enough() {
    let mut lab = Lab::default();
    let (a, b) = (lab.disk("sda", 4096, 0), lab.disk("sdb", 4096, 0));
    lab.runs(
        Kind::LogicalVolume,
        "vg/lv",
        &[(a, 2048, 8192), (b, 2051, 8192)],
    );
    let judged = lab.judge();
    let finding = judged.finding(RULE);
    assert_eq!(number(finding, "past_bytes"), 1536.0);
    assert_eq!(number(finding, "grids_off"), 1.0);
}

/// One member of a stripe is off and the other on: no other place for the layer above the stripe is right on both, so
/// the slice has to be moved. If both are off by the same, moving the volume is enough.
#[test]
fn the_layer_that_has_to_move_is_named() {
    let below = WantedStart::BelowFirst {
        differs_on: "c2t1d0".to_owned(),
        mover: "c2t0d0s0".to_owned(),
        up_bytes: Bytes(6 * SECTOR),
    };
    let volume = WantedStart::SoftPartition {
        up_bytes: Bytes(6 * SECTOR),
        down_bytes: Some(Bytes(2 * SECTOR)),
    };
    for (other, wanted) in [(256, below), (42, volume)] {
        let mut lab = Lab::default();
        let slices = [("c2t0d0", 34), ("c2t1d0", other)].map(|(name, start)| {
            let disk = lab.disk(name, 4096, 0);
            lab.partition(&format!("{name}s0"), disk, start)
        });
        let stripe = lab.stripe("d1", 256 << 10, &slices);
        lab.runs(Kind::SoftPartition, "d11", &[(stripe, 512, 1 << 16)]);
        let judged = lab.judge();
        assert_eq!(facts(&judged).wanted, wanted, "{other}");
    }
}

/// Chunks of 6 KiB are on blocks of 4 KiB every other time.
#[test]
fn chunks_that_are_no_multiples_of_the_block() {
    let mut lab = Lab::default();
    let disks = ["sda", "sdb"].map(|name| lab.disk(name, 4096, 0));
    lab.stripe("d10", 6 << 10, &disks);
    let judged = lab.judge();
    let finding = judged.finding(RULE);
    assert_eq!(number(finding, "varies_by_bytes"), 2048.0);
    let also = &facts(&judged).also_off;
    assert_eq!(
        also.iter()
            .map(|other| other.on.as_str())
            .collect::<Vec<_>>(),
        ["sdb"],
        "both members are named"
    );
    assert_eq!(facts(&judged).wanted, WantedStart::NoStart);
}

#[test]
fn a_lost_way_is_unknown() {
    let mut lab = Lab::default();
    let slice = lab.node(Kind::Partition, "c1t0d0s0");
    let why = Obstacle::NoLabel {
        disk: "c1t0d0".to_owned(),
    };
    let disk = lab.bare("c1t0d0");
    lab.builder.place(
        slice,
        Placing::Unknown {
            members: vec![disk],
            why: why.clone(),
        },
        &kernel(),
    );
    lab.runs(Kind::SoftPartition, "d21", &[(slice, 8, 1024)]);
    assert_eq!(*lab.judge().unknown(RULE), stack_reason(why));
}

/// The statement of a virtual disk does not describe the layers below.
#[test]
fn below_a_virtual_disk_nothing_is_seen() {
    let mut lab = Lab::default();
    let disk = lab.node(Kind::VirtualDisk, "vda");
    lab.grid(disk, CellKind::PhysicalBlock, 4096, 0, kernel());
    lab.partition("vda1", disk, 2048);
    lab.partition("vda2", disk, 63);
    let judged = lab.judge();
    assert_eq!(judged.found_on(RULE), ["vda2"]);
    assert_eq!(judged.finding(RULE).confidence, Confidence::Medium);
    let why = Obstacle::BelowVirtualDisk {
        disk: "vda".to_owned(),
        target: None,
    };
    assert_eq!(judged.whys(RULE), [&stack_reason(why)]);
}

/// Slice 2 of a Solaris disk, an extended partition, and partitions that a label marks as without data.
#[test]
fn partitions_without_data_are_not_judged() {
    let mut lab = Lab::default();
    let disk = lab.disk("c0t0d0", 4096, 0);
    lab.runs(Kind::Partition, "c0t0d0s2", &[(disk, 1, 10_000)]);
    lab.runs(Kind::Partition, "c0t0d0s0", &[(disk, 8, 1000)]);
    lab.runs(Kind::Partition, "c0t0d0s1", &[(disk, 1008, 1000)]);
    let reserved = lab.runs(Kind::Partition, "c0t0d0s8", &[(disk, 10_001, 100)]);
    lab.fact(reserved, keys::PARTITION_TAG, 11_u64);
    let judged = lab.judge();
    assert!(judged.is_silent(RULE), "{:?}", judged.diagnosis.findings);
    // Alone on the disk it is a partition like any other.
    let mut lab = Lab::default();
    let disk = lab.disk("c0t0d0", 4096, 0);
    lab.runs(Kind::Partition, "c0t0d0s2", &[(disk, 1, 10_000)]);
    assert_eq!(lab.judge().found_on(RULE), ["c0t0d0s2"]);
}

/// Two partitions that cover the same, with another inside: none of the two holds data of its own.
#[test]
fn equal_partitions_around_a_third() {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    for name in ["sda1", "sda2"] {
        lab.runs(Kind::Partition, name, &[(disk, 1, 1000)]);
    }
    lab.runs(Kind::Partition, "sda5", &[(disk, 9, 100)]);
    assert_eq!(lab.judge().found_on(RULE), ["sda5"]);
}

/// An extended partition ends with its last logical one.
#[test]
fn an_extended_partition() {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    lab.runs(Kind::Partition, "sda4", &[(disk, 63, 1001)]);
    lab.runs(Kind::Partition, "sda5", &[(disk, 64, 1000)]);
    assert!(lab.judge().is_silent(RULE));
}

/// A pool places its blocks itself, at multiples of large powers of two of each member: the slice decides.
#[test]
fn the_member_of_a_pool_is_judged_itself() {
    let mut lab = Lab::default();
    let disk = lab.disk("c1t0d0", 4096, 0);
    let slice = lab.partition("c1t0d0s0", disk, 34);
    let pool = lab.node(Kind::Pool, "tank");
    let why = Obstacle::SpreadOverVdevs;
    lab.builder.place(
        pool,
        Placing::Unknown {
            members: vec![slice],
            why,
        },
        &kernel(),
    );
    for name in ["tank/a", "tank/b"] {
        lab.runs(Kind::Dataset, name, &[(pool, 0, 8)]);
    }
    assert_eq!(
        lab.judge().found_on(RULE),
        ["c1t0d0s0"],
        "once, for all data sets"
    );
}

/// NPWA states preferred starts of writes; NPWG beside it is about their length, and so is a physical block that the
/// kernel made of NPWG. One of no more than a sector states nothing.
#[test]
fn a_start_follows_npwa() {
    let drive = |field: &str| Source::Drive {
        field: field.to_owned(),
    };
    for (npwa, physical, starts_off) in [
        (Some(4096), 512, 0),
        (Some(4096), 4096, 0),
        (Some(4096), 16384, 0),
        (Some(16384), 4096, 1),
        (Some(512), 512, 1),
        (None, 512, 1),
        (None, 16384, 1),
    ] {
        let mut lab = Lab::default();
        let disk = lab.disk("nvme0n1", physical, 0);
        if let Some(npwa) = npwa {
            lab.grid(disk, CellKind::WriteAlignment, npwa, 0, drive("NPWA"));
        }
        lab.grid(disk, CellKind::IndirectionUnit, 16384, 0, drive("NPWG"));
        lab.partition("nvme0n1p1", disk, 2056);
        assert_eq!(
            lab.judge().found_on(RULE).len(),
            starts_off,
            "{npwa:?} {physical}"
        );
    }
}

/// The user's statement about the flash is no preference of the drive.
#[test]
fn a_unit_given_by_the_user_counts_beside_npwa() {
    let mut lab = Lab::default();
    let disk = lab.bare("nvme0n1");
    lab.grid(
        disk,
        CellKind::WriteAlignment,
        4096,
        0,
        Source::Drive {
            field: "NPWA".to_owned(),
        },
    );
    lab.grid(disk, CellKind::IndirectionUnit, 16384, 0, Source::User);
    lab.partition("nvme0n1p1", disk, 2056);
    assert_eq!(
        number(lab.judge().finding(RULE), "grid.granularity_bytes"),
        16384.0
    );
}

/// A physical volume without volumes: data begin at its first extent.
#[test]
fn a_physical_volume_is_judged_by_its_first_extent() {
    for (pe_start, found) in [
        (Some(2049 * SECTOR), 0),
        (Some(2048 * SECTOR), 1),
        (None, 0),
    ] {
        let mut lab = Lab::default();
        let disk = lab.disk("sda", 4096, 0);
        let partition = lab.partition("sda1", disk, 63);
        lab.fact(partition, keys::CONTENT, "LVM2 PV");
        if let Some(start) = pe_start {
            lab.fact(partition, keys::PE_START, Bytes(start));
        }
        let judged = lab.judge();
        assert_eq!(judged.found_on(RULE).len(), found, "{pe_start:?}");
        assert_eq!(
            judged.whys(RULE).len(),
            usize::from(pe_start.is_none()),
            "{pe_start:?}"
        );
    }
}

/// A unit that the user gave is as good as one that was measured; a table of models is less.
#[test]
fn confidence_follows_the_source() {
    let catalogue = Source::Catalogue {
        document: Default::default(),
    };
    for (source, expected) in [
        (Source::User, Confidence::High),
        (catalogue, Confidence::Medium),
    ] {
        let mut lab = Lab::default();
        let disk = lab.bare("sda");
        lab.grid(disk, CellKind::ArrayUnit, 48 << 10, 0, source);
        lab.partition("sda1", disk, 2048);
        let judged = lab.judge();
        let finding = judged.finding(RULE);
        assert_eq!(finding.confidence, expected);
        // 1 MiB mod 48 KiB: 21 × 48 = 1,008, and 16 KiB are left.
        assert_eq!(number(finding, "past_bytes"), f64::from(16 << 10));
    }
}

/// The cost is that of the page given: 8 KiB off a block of 4 KiB touch three for two.
#[test]
fn the_cost_is_that_of_the_page() {
    for (page, cost) in [(8192, Some(1.5)), (65536, Some(17.0 / 16.0)), (2048, None)] {
        let mut lab = Lab::default();
        lab.known.page = Some(Bytes(page));
        let disk = lab.disk("sda", 4096, 0);
        lab.partition("sda1", disk, 63);
        assert_eq!(
            lab.judge()
                .finding(RULE)
                .cost
                .as_ref()
                .map(|cost| cost.value),
            cost,
            "{page}"
        );
    }
}

/// Blocks of a thin pool are at multiples of their length from the start of the pool's data.
#[test]
fn thin_blocks_carry_the_phase() {
    for (start, found) in [(2048, 0), (2049, 1)] {
        let mut lab = Lab::default();
        let disk = lab.disk("sda", 4096, 0);
        let pool = lab.runs(Kind::ThinPool, "vg/pool", &[(disk, start, 1 << 20)]);
        let thin = lab.node(Kind::ThinVolume, "vg/thin");
        let member = Member {
            node: pool,
            start: Bytes(0),
        };
        lab.builder.place(
            thin,
            Placing::Blocks {
                block: Bytes(64 << 10),
                member,
            },
            &kernel(),
        );
        assert_eq!(lab.judge().found_on(RULE).len(), found, "{start}");
    }
}

/// No start back into the label or into a neighbour is suggested; by hand, on blocks of 8 sectors.
#[test]
fn the_way_back_is_free() {
    // (kind, neighbours, start judged, whether it may go back)
    let cases: [(Kind, Below, u64, bool); 8] = [
        // 34 - 2 = 32 is in the entries of a GPT, which end at 33.
        (Kind::Partition, &[], 34, false),
        (Kind::Partition, &[], 2049, true),
        // The neighbour ends at 4096, and at 4097.
        (Kind::Partition, &[(2048, 2048)], 4098, true),
        (Kind::Partition, &[(2048, 2049)], 4098, false),
        // 514 - 2 = 512 needs a header at 511.
        (Kind::SoftPartition, &[(1, 510)], 514, true),
        (Kind::SoftPartition, &[(1, 511)], 514, false),
        (Kind::SoftPartition, &[(1, 511), (4000, 8)], 514, false),
        // Offset 0 leaves no room for a header.
        (Kind::SoftPartition, &[], 2, false),
    ];
    for (kind, below, start, is_free) in cases {
        let mut lab = Lab::default();
        let disk = lab.disk("sda", 4096, 0);
        for (at, (from, len)) in below.iter().enumerate() {
            lab.runs(kind, &format!("below{at}"), &[(disk, *from, *len)]);
        }
        lab.runs(kind, "judged", &[(disk, start, 1024)]);
        let judged = lab.judge();
        let finding = judged
            .findings(RULE)
            .find(|finding| finding.target.device == "judged")
            .expect("off");
        let down = match &facts!(finding, MisalignedPartition).wanted {
            WantedStart::Partition { down_bytes, .. } => down_bytes,
            WantedStart::SoftPartition { down_bytes, .. } => down_bytes,
            other => panic!("found {other:?}"),
        };
        assert_eq!(down.is_some(), is_free, "{below:?} {start}");
    }
}

/// A grid of a sector says nothing of larger ones; that it was given is not passed over.
#[test]
fn a_sector_given_is_not_nothing() {
    let mut lab = Lab::default();
    let disk = lab.bare("sda");
    lab.grid(disk, CellKind::ArrayUnit, 512, 0, Source::User);
    lab.partition("sda1", disk, 63);
    let judged = lab.judge();
    assert_eq!(facts(&judged).given_bytes, Some(Bytes(512)));
}

/// An unwritten partition of a guest, in a hole of the file below: if the file's first bytes are misaligned because of
/// a partition of the host, those of the guest will be too.
#[test]
fn a_hole_does_not_hide_the_layer_above_it() {
    for (host_start, guest_start, past) in [
        (2049, 2048, Some(512.0)),
        (2048, 2048, None),
        (63, 2048, Some(3584.0)),
        (2049, 2055, None),
    ] {
        let mut lab = Lab::default();
        let disk = lab.disk("sda", 4096, 0);
        // Of the file only the first 4 MiB have a place.
        let file = lab.runs(Kind::File, "disk.raw", &[(disk, 8192, 8192)]);
        let image = lab.runs(Kind::Loop, "loop1", &[(file, 0, 1 << 22)]);
        let part = lab.runs(Kind::Partition, "loop1p1", &[(image, host_start, 1 << 21)]);
        lab.runs(
            Kind::Partition,
            "vda1",
            &[(part, guest_start + (1 << 20), 1 << 18)],
        );
        let judged = lab.judge();
        match past {
            Some(past) => {
                let finding = judged.finding(RULE);
                assert_eq!(finding.target.device, "loop1p1", "{host_start}");
                assert_eq!(number(finding, "past_bytes"), past);
            }
            None => assert!(
                judged.found_on(RULE).is_empty(),
                "{host_start} {guest_start}"
            ),
        }
        let why = Obstacle::Hole {
            file: "disk.raw".to_owned(),
        };
        assert_eq!(
            judged.whys(RULE),
            [&stack_reason(why)],
            "of the guest nothing is known"
        );
    }
}
