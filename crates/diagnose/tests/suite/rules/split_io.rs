//! Tests of `split-io`.

use plumb_diagnose::{Reason, Severity};
use plumb_geometry::{Bounds, Bytes, Grid, Share};
use plumb_model::reason::Counting;
use plumb_model::{Confidence, IoSize, IoSizeBasis};
use plumb_stack::{CellKind, GridDoubt, GridFact, Kind, Obstacle, Placing};
use plumb_trace::Op;

use crate::common::lab::{Lab, kernel};
use crate::common::stripes::{ASSUMED, judge_volume, volume};
use crate::common::{RuleBench, few, number};
use crate::facts;
use crate::rules::reads;

#[test]
fn split_io() {
    let (rule, bench) = ("split-io", RuleBench::chunk(64 << 10, None));
    let judged = bench.judge_ios([reads(900, 128, 0, 16), reads(100, 128, 120, 16)].concat());
    let finding = judged.finding(rule);
    let counted = facts!(finding, SplitIo).counted.expect("counts");
    assert_eq!((counted.count, counted.of), (Bounds::exact(100), 1000));
    assert_eq!(number(finding, "chunk_bytes"), 65_536.0);
    // A random sector of 128 lets 8 KiB spill over from 113 on: 15 of 128.
    assert_eq!(number(finding, "trace.random_share"), 15.0 / 128.0);
    assert_eq!(number(finding, "trace.longer"), 0.0, "no other crosses");
    assert!(bench.judge_ios(reads(1000, 128, 64, 64)).is_silent(rule));
    // Two whole chunks are two because of their length, which is no defect of place.
    assert!(bench.judge_ios(reads(1000, 128, 0, 256)).is_silent(rule));
    assert_eq!(
        *bench.judge_ios(reads(20, 128, 120, 16)).unknown(rule),
        few(20)
    );
    assert!(
        RuleBench::default()
            .judge_ios(reads(1000, 128, 120, 16))
            .findings(rule)
            .next()
            .is_none(),
        "not asked"
    );
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
