//! Tests of `latency-grew`.

use plumb_diagnose::{RuleId, Severity};
use plumb_model::Facts;

use crate::course::{assert_day, days, judged, only};

#[test]
fn a_latency_that_grew_at_equal_load_is_found() {
    let mut windows = days(40, 10);
    for window in &mut windows[15..] {
        window.median_ns = window.median_ns.map(|ns| ns * 2);
    }
    let found = judged(windows);
    let (facts, severity) = only(&found, RuleId::LatencyGrew);
    let Facts::LatencyGrew(facts) = facts else {
        panic!("{facts:?}");
    };
    assert_eq!(severity, Severity::Warning);
    assert_day(&facts.time, 15, 40);
    assert!(
        facts.ratio.low > 1.8 && facts.ratio.low <= 2.0 && facts.ratio.high >= 2.0,
        "{facts:?}"
    );
    assert!(
        (760_000..840_000).contains(&facts.median_after_ns),
        "{facts:?}"
    );
    assert!(facts.loads >= 1);
}

/// Four times the load with a longer latency, on some days before the change as well: at equal load nothing grew.
#[test]
fn a_latency_that_grew_with_the_load_is_no_finding() {
    let mut windows = days(60, 11);
    for (day, window) in windows.iter_mut().enumerate() {
        let is_busy = (day < 30) == day.is_multiple_of(6);
        if is_busy {
            window.reads *= 4;
            window.lengths[1] *= 4;
            window.bytes = window.reads * 8192 + window.writes * 65_536;
            window.median_ns = window.median_ns.map(|ns| ns * 3);
        }
    }
    let found = judged(windows);
    assert!(found.silent.contains(&RuleId::LatencyGrew), "{found:?}");
}

/// Reads take 200 µs and writes 20 µs, and half of the I/O, then nearly all, are reads: the common median grows, and no I/O got slower.
#[test]
fn a_median_that_follows_the_share_of_reads_is_no_finding() {
    let mut windows = days(40, 16);
    for (day, window) in windows.iter_mut().enumerate() {
        let all = window.placed();
        window.reads = all * if day < 20 { 56 } else { 89 } / 100;
        window.writes = all - window.reads;
        window.median_ns = Some(if day < 20 { 120_000 } else { 190_000 } + day as u64 * 7 % 5);
    }
    let found = judged(windows);
    let is_told = |rule: RuleId| found.findings.iter().any(|finding| finding.rule() == rule);
    assert!(!is_told(RuleId::LatencyGrew), "{found:?}");
    assert!(
        found
            .unknown
            .iter()
            .any(|one| one.rule == RuleId::LatencyGrew)
    );
}
