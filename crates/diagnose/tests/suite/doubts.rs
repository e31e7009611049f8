//! Unknown facts are reported, and never appear as silence.

use crate::common::{Io, Judged, Random, RuleBench};
use crate::facts;
use plumb_diagnose::Reason;
use plumb_geometry::{Bounds, Bytes};
use plumb_model::facts::RecordMismatch;
use plumb_model::{Confidence, LostEvents, Severity};
use plumb_profile::fit::Unknown;
use plumb_profile::table::{ROWS_MAX_LEAST, Row, Table};
use plumb_profile::{Profile, Settings};
use plumb_trace::Op::{Discard, Flush, Read, Write};
use plumb_trace::{Layer, Op};

fn pages(count: u64, sectors: u64, op: Op) -> Vec<Io> {
    let mut random = Random(3);
    (0..count)
        .map(|_| Io(op, random.below(1 << 22) * 128, sectors))
        .collect()
}

fn is_rounded(reason: &Reason) -> bool {
    let Reason::Table { why } = reason else {
        return false;
    };
    matches!(why, Unknown::Lengths { ios: 40_000, .. })
}

fn losing(mut bench: RuleBench, lost: u64) -> RuleBench {
    bench.info.counts.lost = lost;
    bench
}

#[test]
fn lost_events_are_in_the_findings_that_they_affect() {
    let ios = || [pages(900, 8, Read), pages(100, 3, Read)].concat();
    let rule = "odd-length-io";
    let few = losing(RuleBench::grid("4k"), 100).judge_ios(ios());
    let finding = few.finding(rule);
    let lost = LostEvents {
        events: 100,
        share_low: 100.0 / 1100.0,
        share_high: 200.0 / 1100.0,
    };
    assert_eq!(facts!(finding, OddLengthIo).counted.lost, Some(lost));
    assert_eq!(
        finding.confidence,
        Confidence::High,
        "a defect whatever was lost"
    );
    // 100 of 101,000 are below the threshold of a rule: the finding depends on the losses.
    let many = losing(RuleBench::grid("4k"), 100_000).judge_ios(ios());
    assert_eq!(many.finding(rule).confidence, Confidence::Medium);
}

#[test]
fn lost_events_end_a_silence() {
    let (rule, ios) = ("misaligned-io", || pages(1000, 8, Read));
    assert!(
        losing(RuleBench::grid("4k"), 4)
            .judge_ios(ios())
            .is_silent(rule),
        "4 of 1,004 are below the threshold"
    );
    let reason = Reason::Lost {
        count: 0,
        of: 1000,
        lost: 60,
    };
    let judged = losing(RuleBench::grid("4k"), 60).judge_ios(ios());
    assert_eq!(*judged.unknown(rule), reason);
}

/// Nobody can confirm a share that lost events may have made: it is a note, and the rule is unknown.
#[test]
fn a_doubtful_share_is_a_note_and_unknown() {
    let (rule, bench) = ("looks-sequential", |lost| {
        losing(RuleBench::default(), lost)
    });
    let ios = || pages(1000, 128, Read);
    let sure = bench(10).judge_ios(ios());
    assert_eq!(sure.finding(rule).severity, Severity::Warning);
    let doubtful = bench(1_000_000).judge_ios(ios());
    let finding = doubtful.finding(rule);
    assert_eq!(
        (finding.severity, finding.confidence),
        (Severity::Note, Confidence::Low)
    );
    let reason = Reason::Lost {
        count: 1000,
        of: 1000,
        lost: 1_000_000,
    };
    let mut unknown = doubtful.diagnosis.unknown.iter();
    let of_rule = unknown.find(|one| one.rule == finding.rule());
    assert_eq!(of_rule.map(|one| &one.reason), Some(&reason));
}

/// Enough different rows that lengths have to be rounded up.
fn crowded() -> impl Iterator<Item = Io> {
    let mut random = Random(4);
    (0..40_000).map(move |_| Io(Read, random.below(1 << 30), 65 + random.below(60)))
}

/// The tallies of a rule fire on the lower end of a range, are silent on its upper end, and unknown in between.
#[test]
fn dropped_lengths_leave_ranges() {
    let bench = |change_settings: fn(&mut Settings)| {
        let mut bench = RuleBench::chunk(64 << 10, Some(4));
        bench.questions.grids = RuleBench::grid("4k").questions.grids;
        RuleBench {
            change_settings,
            ..bench
        }
    };
    let fill = |settings: &mut Settings| {
        settings.rows_max = ROWS_MAX_LEAST;
        settings.grids.clear();
    };
    let judged = bench(fill).judge_ios(crowded());
    let exact = bench(|_| {}).judge_ios(crowded());
    assert!(judged.analysis.lengths_rounded && !exact.analysis.lengths_rounded);
    // Of lengths from 33 to 62 KiB all may be odd, or none.
    assert!(is_rounded(judged.unknown("odd-length-io")));
    let counted = |judged: &Judged| facts!(judged.finding("split-io"), SplitIo).counted;
    let (range, truth) = (
        counted(&judged).expect("counted"),
        counted(&exact).expect("counted"),
    );
    assert!(range.count.low < range.count.high, "{range:?}");
    let split = truth.count.known().expect("exact");
    assert!(range.count.contains(split), "{range:?} {truth:?}");
    assert!(
        range.share_low < truth.share_low && truth.share_high < range.share_high,
        "an interval spans both ends: {range:?} {truth:?}"
    );
    let cost = |judged: &Judged| judged.finding("split-io").cost.clone().expect("a cost");
    let (range, truth) = (cost(&judged), cost(&exact));
    let most = range.value_max.expect("a range");
    assert_eq!(truth.value_max, None);
    assert!(
        range.value < truth.value && truth.value < most,
        "{range:?} {truth:?}"
    );
    let records = RuleBench {
        layer: Layer::Vfs,
        change_settings: fill,
        ..RuleBench::record(64 << 10)
    }
    .judge_ios(crowded());
    // All are shorter than a record, however long they are.
    let RecordMismatch::Requests(facts) =
        facts!(records.finding("record-mismatch"), RecordMismatch)
    else {
        panic!("found another mismatch");
    };
    assert_eq!(
        (facts.counted.count, facts.counted.of),
        (Bounds::exact(40_000), 40_000)
    );
    let fit = |judged: &Judged| {
        let fit = judged.analysis.device().expect("a device").grids[0].clone();
        let ratio = fit.all.expect("starts").cells_ratio().expect("cells");
        [fit.read_amplification.expect("reads"), ratio]
    };
    for (range, truth) in fit(&judged).into_iter().zip(fit(&exact)) {
        assert!(
            range.low <= truth.low && truth.high <= range.high && range.low < range.high,
            "{range:?} {truth:?}"
        );
    }
    // Grids that are asked for beforehand stay exact in a full table.
    let asked = bench(|settings| settings.rows_max = ROWS_MAX_LEAST).judge_ios(crowded());
    assert!(asked.analysis.lengths_rounded);
    assert_eq!(counted(&asked), counted(&exact));
    let odd = |judged: &Judged| facts!(judged.finding("odd-length-io"), OddLengthIo).counted;
    assert_eq!(odd(&asked), odd(&exact));
    // None is as long as 64 KiB, but 33 to 62 KiB was rounded up to that: large ones must not come out of it.
    assert!(judged.is_silent("looks-sequential"));
    let sizes = &judged.analysis.random_by_size;
    let at_least = |bytes| {
        sizes
            .iter()
            .find(|row| row.len_bytes_min == bytes)
            .expect("listed")
            .ios
    };
    assert_eq!((at_least(32 << 10), at_least(64 << 10)), (40_000, 0));
    // Starts are known all the same.
    let facts = facts!(judged.finding("misaligned-io"), MisalignedIo);
    assert_eq!(facts.counted.of, 40_000);
}

#[test]
fn counts_by_place_have_no_streams() {
    let mut profile = Profile::new("8,0", Layer::Request, Table::default());
    for residue in 0..256 {
        let row = Row {
            ios: 10,
            ..Row::default()
        };
        profile.add_residue(Write, residue * 4096, 8192, false, &row);
        profile.add_residue(Read, residue * 4096, 131_072, false, &row);
    }
    profile.pieces = 1;
    let judged = RuleBench::grid("4k").judge(profile);
    for rule in ["looks-sequential", "small-random-writes"] {
        assert_eq!(*judged.unknown(rule), Reason::Unordered);
    }
    assert!(judged.is_silent("misaligned-io"));
}

#[test]
fn completions_alone_have_no_streams() {
    let mut bench = RuleBench::default();
    bench.info.completions_only = true;
    let judged = bench.judge_ios(pages(1000, 16, Write));
    for rule in ["looks-sequential", "small-random-writes"] {
        assert_eq!(*judged.unknown(rule), Reason::CompletionsOnly);
    }
}

#[test]
fn a_grid_beyond_the_table_is_unknown() {
    // Kept modulo 1 MiB, which 48 KiB does not divide, and asked afterwards.
    let profile = RuleBench::default()
        .judge_ios(pages(1000, 16, Read))
        .profile;
    let judged = RuleBench::grid("48k").judge(profile.clone());
    let why = Unknown::Modulus {
        granularity: Bytes(48 << 10),
        modulus: Bytes(1 << 20),
    };
    let expected = Reason::Table { why };
    assert_eq!(*judged.unknown("misaligned-io"), expected);
    assert_eq!(*judged.unknown("odd-length-io"), expected);
    assert_eq!(
        *RuleBench::chunk(48 << 10, None)
            .judge(profile)
            .unknown("split-io"),
        expected
    );
}

/// Discards and flushes are no reads or writes, so they are in neither number of N of M.
#[test]
fn discards_and_flushes_are_in_no_share() {
    let mut ios = pages(1000, 8, Read);
    ios.extend((0..1000).map(|at| Io(Discard, at * 2048 + 5, 3)));
    ios.extend((0..500).map(|_| Io(Flush, 0, 0)));
    let judged = RuleBench::grid("4k").judge_ios(ios.clone());
    assert!(judged.is_silent("misaligned-io") && judged.is_silent("odd-length-io"));
    ios.extend((0..100).map(|at| Io(Read, at * 2048 + 5, 8)));
    let judged = RuleBench::grid("4k").judge_ios(ios);
    let counted = facts!(judged.finding("misaligned-io"), MisalignedIo).counted;
    assert_eq!((counted.count, counted.of), (Bounds::exact(100), 1100));
}
