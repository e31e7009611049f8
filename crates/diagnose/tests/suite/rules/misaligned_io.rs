//! Tests of `misaligned-io`.

use plumb_diagnose::{Reason, Severity};
use plumb_geometry::{Bounds, Bytes, Grid};
use plumb_model::Confidence;
use plumb_model::facts::GridSource;
use plumb_profile::fit::Unknown;
use plumb_trace::Op::Read;
use plumb_trace::{Event, Layer};

use crate::common::{RuleBench, few};
use crate::facts;
use crate::rules::reads;

#[test]
fn misaligned_io() {
    let (rule, bench) = ("misaligned-io", RuleBench::grid("4k"));
    let judged = bench.judge_ios([reads(700, 8, 7, 8), reads(300, 8, 0, 8)].concat());
    let finding = judged.finding(rule);
    let facts = facts!(finding, MisalignedIo);
    assert_eq!(
        (facts.counted.count, facts.counted.of),
        (Bounds::exact(700), 1000)
    );
    assert_eq!(
        (facts.grid, facts.grid_source),
        (Grid::ASSUMED, GridSource::User)
    );
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.confidence, Confidence::High);
    // 700 of them touch two cells where one would do.
    assert_eq!(finding.cost.as_ref().expect("a cost").value, 1.7);
    assert!(bench.judge_ios(reads(1000, 8, 0, 8)).is_silent(rule));
    assert_eq!(
        *bench.judge_ios(reads(199, 8, 7, 8)).unknown(rule),
        few(199)
    );
    assert_eq!(
        *bench.judge_ios([]).unknown(rule),
        Reason::Table { why: Unknown::NoIo }
    );
}

/// Unaligned I/O that took less time than aligned ones of the same kind are no warning, and slower ones are.
#[test]
fn misaligned_io_that_costs_nothing_is_a_note() {
    let judged = |unaligned_ns: i64| {
        let io = |at: u64, off: u64, ns: i64| {
            let mut event = Event::new(
                at as i64 * 1_000_000,
                0,
                Layer::Request,
                Read,
                (at * 7 % 1_000 * 64 + off) * 512,
                4096,
            );
            event.device_ns = Some(ns + at as i64 % 50);
            event
        };
        let events =
            (0..600).flat_map(|at| [io(2 * at, 0, 100_000), io(2 * at + 1, 7, unaligned_ns)]);
        RuleBench::grid("4k").judge_events(events)
    };
    let severity = |ns| judged(ns).finding("misaligned-io").severity;
    assert_eq!(severity(90_000), Severity::Note);
    // The difference is below 3 %.
    assert_eq!(severity(100_000), Severity::Note);
    assert_eq!(severity(104_000), Severity::Warning);
    assert_eq!(severity(150_000), Severity::Warning);
    let facts = judged(90_000);
    let facts = facts!(facts.finding("misaligned-io"), MisalignedIo);
    let latency = facts.latency.as_ref().expect("timed");
    assert!(latency.shows_no_cost(), "{latency:?}");
}

#[test]
fn misaligned_io_on_the_assumed_grid() {
    let (rule, bench) = ("misaligned-io", RuleBench::default());
    let finding = bench.judge_ios(reads(1000, 8, 7, 8));
    let finding = finding.finding(rule);
    assert_eq!(
        facts!(finding, MisalignedIo).grid_source,
        GridSource::Assumed
    );
    assert_eq!(finding.confidence, Confidence::Medium);
    // On the assumed grid nothing is known of larger ones: that is no silence.
    let reason = Reason::BeyondAssumed {
        count: 0,
        of: 1000,
        granularity_bytes: Bytes(4096),
    };
    assert_eq!(*bench.judge_ios(reads(1000, 8, 0, 8)).unknown(rule), reason);
}
