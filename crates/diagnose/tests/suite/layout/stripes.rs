//! Rules on stripes: `split-io`, `narrow-stripe`, `stripe-segment-mismatch`, `parity-small-writes`, `software-raid5`,
//! `software-stripe-on-hardware-raid`, `geometry-mismatch`.

use plumb_diagnose::{Reason, Severity};
use plumb_geometry::{Bytes, Grid, Share};
use plumb_model::reason::Counting;
use plumb_model::{Confidence, IoSize, IoSizeBasis};
use plumb_profile::fit::Unknown;
use plumb_stack::node::keys;
use plumb_stack::{CellKind, GridFact, Kind, NodeId, Placing, Source};
use plumb_stack::{GridDoubt, Obstacle};
use plumb_trace::Op;

use crate::facts;
use crate::layout::lab::{JudgedLayout, Lab, kernel, number};

/// The size that is taken where nothing states one.
const ASSUMED: IoSize = IoSize {
    bytes: Bytes(4096),
    basis: IoSizeBasis::Assumed,
};

/// A volume that begins `start` sectors into a stripe over `members` disks.
fn volume(lab: &mut Lab, chunk: u64, members: usize, start: u64) -> NodeId {
    let disks: Vec<NodeId> = (0..members)
        .map(|at| lab.disk(&format!("sd{at}"), 512, 0))
        .collect();
    let stripe = lab.stripe("d10", chunk, &disks);
    lab.runs(Kind::SoftPartition, "d11", &[(stripe, start, 1 << 21)])
}

fn judge_volume(chunk: u64, start: u64, page: Option<u64>) -> JudgedLayout {
    let mut lab = Lab::default();
    lab.known.page = page.map(Bytes);
    volume(&mut lab, chunk, 2, start);
    lab.judge()
}

/// The table of the paper's arithmetic: pages of 8 KiB, with the base on a chunk and one sector off.
#[test]
fn the_expected_share_is_exact() {
    let rule = "split-io";
    let page = Some(8192);
    assert!(judge_volume(32 << 10, 64, page).is_silent(rule), "none");
    let off = judge_volume(32 << 10, 65, page);
    let finding = off.finding(rule);
    assert_eq!(number(finding, "expected"), 0.25);
    assert_eq!(number(finding, "past_bytes"), 512.0);
    assert_eq!(
        (finding.severity, finding.confidence),
        (Severity::Warning, Confidence::High)
    );
    let given = IoSize {
        bytes: Bytes(8192),
        basis: IoSizeBasis::Given,
    };
    assert_eq!(facts!(finding, SplitIo).io, Some(given));
    assert!(judge_volume(1 << 20, 2048, page).is_silent(rule));
    assert!(
        judge_volume(1 << 20, 2049, page).is_silent(rule),
        "1 of 128 is less than one in a hundred"
    );
    let half = judge_volume(128 << 10, 257, page);
    assert_eq!(number(half.finding(rule), "expected"), 1.0 / 16.0);
    assert_eq!(half.finding(rule).severity, Severity::Note);
}

/// A volume in pieces is as bad as its worst piece.
#[test]
fn the_worst_piece_counts() {
    let mut lab = Lab::default();
    lab.known.page = Some(Bytes(8192));
    let disks = ["sda", "sdb"].map(|name| lab.disk(name, 512, 0));
    let stripe = lab.stripe("d10", 32 << 10, &disks);
    lab.runs(
        Kind::SoftPartition,
        "d11",
        &[(stripe, 64, 640), (stripe, 1025, 640), (stripe, 2048, 640)],
    );
    let judged = lab.judge();
    assert_eq!(number(judged.finding("split-io"), "expected"), 0.25);
    assert_eq!(number(judged.finding("split-io"), "past_bytes"), 512.0);
}

#[test]
fn without_a_page_4_kib_are_assumed() {
    let rule = "split-io";
    let off = judge_volume(32 << 10, 65, None);
    assert_eq!(number(off.finding(rule), "expected"), 0.125, "4 of 32 KiB");
    assert_eq!(off.finding(rule).confidence, Confidence::Low);
    assert_eq!(facts!(off.finding(rule), SplitIo).io, Some(ASSUMED));
    let on = judge_volume(32 << 10, 64, None);
    let none = Share {
        numerator: 0,
        denominator: 1,
    };
    let reason = Reason::FewSplitForAssumed {
        io: ASSUMED,
        on: "d10".to_owned(),
        split: none,
    };
    assert_eq!(*on.unknown(rule), reason, "never silent");
}

/// Observed I/O count instead of the layout's arithmetic.
#[test]
fn a_profile_takes_the_place_of_arithmetic() {
    let rule = "split-io";
    let judge = |start: u64, ios: u64| {
        let mut lab = Lab::default();
        lab.known.page = Some(Bytes(8192));
        volume(&mut lab, 32 << 10, 2, start);
        // Two sectors at multiples of four: they cross a chunk's end only if the volume moves them by 3 mod 4.
        lab.seen("d11", (0..ios).map(|at| (Op::Read, at * 4, 2)));
        lab.judge()
    };
    assert!(judge(64, 1600).is_silent(rule));
    assert!(
        judge(65, 1600).is_silent(rule),
        "the page alone would have said 1 of 4"
    );
    let off = judge(67, 1600);
    let finding = off.finding(rule);
    // Of the 16 starts in a chunk of 64 sectors one is at sector 63 of it.
    assert_eq!(
        (
            number(finding, "counted.count"),
            number(finding, "counted.of")
        ),
        (100.0, 1600.0)
    );
    assert_eq!(facts!(finding, SplitIo).counted_on, None, "its own");
    let few = Reason::TooFew {
        what: Counting::Ios,
        seen: 199,
        needed: 200,
    };
    assert_eq!(*judge(67, 199).unknown(rule), few);
}

/// I/O of the stripe itself are judged although a volume is above it.
#[test]
fn a_profile_of_the_stripe() {
    let mut lab = Lab::default();
    lab.known.page = Some(Bytes(8192));
    volume(&mut lab, 32 << 10, 2, 64);
    lab.seen("d10", (0..400).map(|at| (Op::Read, at * 64 + 63, 2)));
    let judged = lab.judge();
    assert_eq!(judged.found_on("split-io"), ["d10"]);
    assert_eq!(number(judged.finding("split-io"), "counted.count"), 400.0);
}

/// A boundary of the drive below a stripe whose chunk is no multiple of it is elsewhere in each chunk.
#[test]
fn split_io_below_chunks_is_unknown_where_they_do_not_fit() {
    let mut lab = Lab::default();
    lab.known.page = Some(Bytes(8192));
    let disks = ["sda", "sdb"].map(|name| lab.disk(name, 512, 0));
    lab.grid(disks[0], CellKind::IoBoundary, 128 << 10, 0, kernel());
    lab.stripe("md0", 96 << 10, &disks);
    let judged = lab.judge();
    let devices = ["md0", "sda"].map(str::to_owned).to_vec();
    assert_eq!(
        judged.whys("split-io")[0],
        &Reason::ChunksBetween { devices }
    );
}

#[test]
fn a_disk_alone_has_no_chunks() {
    let mut lab = Lab::default();
    lab.known.page = Some(Bytes(8192));
    let disk = lab.disk("sda", 512, 0);
    lab.partition("sda1", disk, 2048);
    let judged = lab.judge();
    assert!(judged.is_not_asked("split-io") && judged.is_not_asked("narrow-stripe"));
}

#[test]
fn narrow_stripe() {
    let rule = "narrow-stripe";
    let judged = judge_volume(32 << 10, 64, Some(8192));
    let finding = judged.finding(rule);
    assert_eq!(finding.target.device, "d10");
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(
        number(finding, "split"),
        15.0 / 64.0,
        "the seed's exact share"
    );
    assert_eq!(number(finding, "members"), 2.0);
    assert_eq!(number(finding, "wanted_chunk_bytes"), f64::from(1 << 20));
    assert_eq!(
        number(finding, "wanted_split"),
        15.0 / 2048.0,
        "15 of 2,048 sectors of 1 MiB"
    );
    assert_eq!(
        judge_volume(64 << 10, 64, Some(8192))
            .finding(rule)
            .severity,
        Severity::Note,
        "8 pages"
    );
    assert!(
        judge_volume(128 << 10, 64, Some(8192)).is_silent(rule),
        "16 pages"
    );
    assert!(
        judge_volume(1 << 20, 64, None).is_silent(rule),
        "1 MiB whatever is asked"
    );
    let default = judge_volume(16 << 10, 64, None);
    assert_eq!(
        default.finding(rule).severity,
        Severity::Note,
        "4 KiB are assumed"
    );
    assert_eq!(default.finding(rule).confidence, Confidence::Low);
    let wide = Reason::WideForAssumed {
        chunk_bytes: Bytes(256 << 10),
        io: ASSUMED,
    };
    assert_eq!(*judge_volume(256 << 10, 64, None).unknown(rule), wide);
}

/// A stripe with an unknown chunk.
#[test]
fn a_chunk_that_is_not_known() {
    let mut lab = Lab::default();
    let disks = ["sda", "sdb"].map(|name| lab.disk(name, 512, 0));
    let stripe = lab.node(Kind::Stripe, "d10");
    let grid = Grid::boundary(Bytes(16 << 10)).expect("a grid");
    let why = GridDoubt::NoInterlace {
        old_bytes: Bytes(16 << 10),
        new_bytes: Bytes(512 << 10),
    };
    lab.builder.grid(
        stripe,
        GridFact::doubted(grid, CellKind::Chunk, kernel(), why.clone()),
    );
    lab.builder.place(
        stripe,
        Placing::Unknown {
            members: disks.to_vec(),
            why: Obstacle::NoChunk,
        },
        &kernel(),
    );
    assert_eq!(
        *lab.judge().unknown("narrow-stripe"),
        Reason::ChunkDoubted { why }
    );
}

/// A boundary of a drive that everything begins on is no question.
#[test]
fn boundaries_of_drives() {
    for (start, page, found) in [(2048, None, 0), (2055, Some(8192), 1)] {
        let mut lab = Lab::default();
        lab.known.page = page.map(Bytes);
        let disk = lab.disk("nvme0n1", 512, 0);
        lab.grid(disk, CellKind::IoBoundary, 128 << 10, 0, kernel());
        lab.partition("nvme0n1p1", disk, start);
        let judged = lab.judge();
        assert_eq!(judged.found_on("split-io").len(), found);
        assert_eq!(judged.is_not_asked("split-io"), found == 0);
    }
}

/// The commonest I/O seen says more than the page that somebody gave.
#[test]
fn stripes_are_narrow_for_the_observed_io() {
    let mut lab = Lab::default();
    lab.known.page = Some(Bytes(4096));
    let disks = ["sda", "sdb"].map(|name| lab.disk(name, 512, 0));
    lab.stripe("md0", 64 << 10, &disks);
    lab.seen("md0", (0..300).map(|at| (Op::Read, at * 64, 64)));
    let judged = lab.judge();
    assert_eq!(number(judged.finding("narrow-stripe"), "io.bytes"), 32768.0);
}

fn on_array(chunk: u64, segment: Option<u64>, known: Option<u64>) -> JudgedLayout {
    let mut lab = Lab::default();
    lab.known.segment = known.map(Bytes);
    let luns = ["c5t0d0", "c5t1d0"].map(|name| lab.disk(name, 512, 0));
    for lun in luns {
        lab.fact(lun, keys::MODEL, "SUN StorEdge 9980");
        if let Some(segment) = segment {
            lab.grid(lun, CellKind::ArrayUnit, segment, 0, Source::User);
        }
    }
    lab.stripe("d10", chunk, &luns);
    lab.judge()
}

/// The paper's example: 20 segments of 48 KiB.
#[test]
fn stripe_segment_mismatch() {
    let rule = "stripe-segment-mismatch";
    let right = 20 * (48 << 10);
    assert_eq!(right, 960 << 10);
    assert!(on_array(right, Some(48 << 10), None).is_silent(rule));
    assert!(on_array(right, None, Some(48 << 10)).is_silent(rule));
    let judged = on_array(1 << 20, Some(48 << 10), None);
    let finding = judged.finding(rule);
    assert_eq!(number(finding, "past_bytes"), f64::from(16 << 10));
    let facts = facts!(finding, StripeSegmentMismatch);
    let nearest = [21 * (48 << 10), 22 * (48 << 10)].map(Bytes);
    assert_eq!(facts.nearest_bytes, nearest);
    assert_eq!(facts.proposed_bytes, Some(nearest[0]), "1,008 KiB");
    assert_eq!((facts.devices_off, facts.devices), (2, 2));
    assert_eq!(
        on_array(1 << 20, None, Some(48 << 10)).found_on(rule),
        ["d10"]
    );
    let on = "c5t0d0".to_owned();
    assert_eq!(
        *on_array(1 << 20, None, None).unknown(rule),
        Reason::Segment { on }
    );
    let mut lab = Lab::default();
    lab.known.segment = Some(Bytes(48 << 10));
    let disks = ["sda", "sdb"].map(|name| lab.disk(name, 512, 0));
    for disk in disks {
        lab.fact(disk, keys::MODEL, "ST18000NM000J");
    }
    lab.stripe("md0", 1 << 20, &disks);
    assert!(
        lab.judge().is_not_asked(rule),
        "a drive has no segment, whatever the arrays have"
    );
    let drives = judge_volume(1 << 20, 0, None);
    assert!(drives.is_not_asked(rule), "no array and no segment");
}

fn raid(parity: u32, members: usize, manager: Option<&str>, page: Option<u64>) -> Lab {
    let mut lab = Lab::default();
    lab.known.page = page.map(Bytes);
    let disks: Vec<(NodeId, u64)> = (0..members)
        .map(|at| (lab.disk(&format!("sd{at}"), 512, 0), 0))
        .collect();
    let id = lab.chunks("md0", 64 << 10, parity, &disks);
    if let Some(manager) = manager {
        lab.fact(id, keys::MANAGER, manager);
    }
    lab
}

/// Five disks with one of parity: a full stripe is 4 × 64 KiB.
#[test]
fn parity_small_writes() {
    let rule = "parity-small-writes";
    let judged = raid(1, 5, Some("md"), Some(8192)).judge();
    let finding = judged.finding(rule);
    assert_eq!(number(finding, "stripe_bytes"), f64::from(256 << 10));
    assert_eq!(
        finding.cost.as_ref().map(|cost| cost.value),
        Some(4.0),
        "read and write of data and parity"
    );
    let six = raid(2, 6, Some("md"), Some(8192)).judge();
    assert_eq!(
        six.finding(rule).cost.as_ref().map(|cost| cost.value),
        Some(6.0),
        "two parities"
    );
    assert!(
        raid(1, 5, Some("md"), Some(256 << 10))
            .judge()
            .is_silent(rule)
    );
    let stripe_bytes = Bytes(256 << 10);
    assert_eq!(
        *raid(1, 5, Some("md"), None).judge().unknown(rule),
        Reason::WritesToStripe { stripe_bytes }
    );
    assert!(
        raid(1, 5, Some("zfs"), Some(8192))
            .judge()
            .is_not_asked(rule)
    );
}

#[test]
fn parity_small_writes_that_were_seen() {
    let rule = "parity-small-writes";
    let seen = |len: u64, op: Op, count: u64| {
        let mut lab = raid(1, 5, Some("md"), None);
        lab.seen("md0", (0..count).map(|at| (op, at * 512, len)));
        lab.judge()
    };
    let judged = seen(16, Op::Write, 500);
    assert_eq!(number(judged.finding(rule), "counted.count"), 500.0);
    assert_eq!(judged.finding(rule).severity, Severity::Warning);
    assert!(
        seen(512, Op::Write, 500).is_silent(rule),
        "whole stripes of 512 sectors"
    );
    let few = Reason::TooFew {
        what: Counting::Writes,
        seen: 50,
        needed: 200,
    };
    assert_eq!(*seen(16, Op::Write, 50).unknown(rule), few);
    let none = Reason::Table { why: Unknown::NoIo };
    assert_eq!(
        *seen(16, Op::Read, 500).unknown(rule),
        none,
        "reads need no parity"
    );
}

#[test]
fn software_raid5() {
    let rule = "software-raid5";
    assert_eq!(
        raid(1, 5, Some("svm"), None).judge().finding(rule).severity,
        Severity::Warning
    );
    assert_eq!(
        raid(2, 6, Some("md"), None).judge().finding(rule).severity,
        Severity::Note
    );
    assert!(
        raid(1, 5, Some("zfs"), None).judge().is_silent(rule),
        "RAID-Z writes whole stripes"
    );
    assert_eq!(
        *raid(1, 5, None, None).judge().unknown(rule),
        Reason::ParityManager
    );
}

#[test]
fn software_stripe_on_hardware_raid() {
    let rule = "software-stripe-on-hardware-raid";
    let judged = on_array(1 << 20, None, None);
    assert_eq!(number(judged.finding(rule), "luns"), 2.0);
    let modelled = |model: Option<&str>| {
        let mut lab = Lab::default();
        let disks = ["sda", "sdb"].map(|name| lab.disk(name, 512, 0));
        for disk in disks {
            if let Some(model) = model {
                lab.fact(disk, keys::MODEL, model);
            }
        }
        lab.stripe("md0", 64 << 10, &disks);
        lab.judge()
    };
    assert!(modelled(Some("ST18000NM000J")).is_silent(rule));
    assert!(modelled(Some("ST3000DM001")).is_silent(rule), "no T300");
    assert_eq!(modelled(Some("SUN T300")).found_on(rule), ["md0"]);
    let device = "sda".to_owned();
    assert_eq!(*modelled(None).unknown(rule), Reason::DriveOrLun { device });
}

fn file_system(kind: &str, unit: Option<u64>, width: Option<u64>) -> JudgedLayout {
    let mut lab = Lab::default();
    let disks: Vec<(NodeId, u64)> = (0..4)
        .map(|at| (lab.disk(&format!("sd{at}"), 512, 0), 0))
        .collect();
    let array = lab.chunks("md0", 64 << 10, 1, &disks);
    let system = lab.runs(Kind::FileSystem, "/data", &[(array, 0, 1 << 20)]);
    lab.fact(system, keys::CONTENT, kind);
    if let Some(unit) = unit {
        lab.fact(system, keys::FS_STRIPE_UNIT, Bytes(unit));
    }
    if let Some(width) = width {
        lab.fact(system, keys::FS_STRIPE_WIDTH, Bytes(width));
    }
    lab.judge()
}

/// mkfs's width from optimal_io_size in a test on 3 × 64 KiB: 512 KiB instead of the true 192 KiB of four disks with
/// one of parity.
#[test]
fn geometry_mismatch() {
    let rule = "geometry-mismatch";
    assert!(file_system("xfs", Some(65536), Some(196608)).is_silent(rule));
    let wide = file_system("xfs", Some(65536), Some(524288));
    assert_eq!(wide.finding(rule).severity, Severity::Warning);
    assert_eq!(number(wide.finding(rule), "stripe.width_bytes"), 196_608.0);
    assert_eq!(number(wide.finding(rule), "stripe.data_chunks"), 3.0);
    assert_eq!(number(wide.finding(rule), "told_width_bytes"), 524_288.0);
    let other = file_system("xfs", Some(4096), Some(196608));
    assert_eq!(number(other.finding(rule), "told_unit_bytes"), 4096.0);
    assert_eq!(number(other.finding(rule), "stripe.chunk_bytes"), 65_536.0);
    assert_eq!(
        file_system("xfs", Some(0), None).finding(rule).severity,
        Severity::Note,
        "told nothing"
    );
    let on = "md0".to_owned();
    assert_eq!(
        *file_system("xfs", None, None).unknown(rule),
        Reason::StripeNotTold { on }
    );
    assert!(file_system("btrfs", None, None).is_not_asked(rule));
}

/// A superblock's fact about a device is reported for the file system that is mounted from it, once.
#[test]
fn facts_of_a_device_are_reported_for_its_file_system() {
    let mut lab = Lab::default();
    let disks = ["sda", "sdb"].map(|name| lab.disk(name, 512, 0));
    let array = lab.stripe("md0", 64 << 10, &disks);
    lab.fact(array, keys::FS_STRIPE_UNIT, Bytes(4096));
    lab.fact(array, keys::MOUNT_OPTIONS, "rw");
    lab.runs(Kind::FileSystem, "/data", &[(array, 0, 1 << 20)]);
    assert_eq!(lab.judge().found_on("geometry-mismatch"), ["/data"]);
}

#[test]
fn a_stripe_width_without_a_stripe() {
    let rule = "geometry-mismatch";
    let judge = |model: Option<&str>| {
        let mut lab = Lab::default();
        let disk = lab.disk("sda", 4096, 0);
        if let Some(model) = model {
            lab.fact(disk, keys::MODEL, model);
        }
        let system = lab.runs(Kind::FileSystem, "/data", &[(disk, 0, 1 << 20)]);
        lab.fact(system, keys::FS_STRIPE_UNIT, Bytes(33_553_920));
        lab.judge()
    };
    assert_eq!(judge(Some("ST18000NM000J")).found_on(rule), ["/data"]);
    let reason = Reason::StripeNotVisible {
        told_bytes: Bytes(33_553_920),
        on: "sda".to_owned(),
    };
    assert_eq!(*judge(None).unknown(rule), reason);
}
