//! Tests of `little-headroom`.

use plumb_diagnose::course::CourseWindow;
use plumb_diagnose::{RuleId, Severity};
use plumb_model::Facts;

use crate::course::{assert_day, days, judged, load, only};

#[test]
fn little_headroom() {
    let mut windows = days(40, 22);
    load(&mut windows[25..], 3, 2);
    let mut by_rate: Vec<u64> = windows.iter().map(CourseWindow::placed).collect();
    by_rate.sort_unstable();
    let third_highest = by_rate[37] as f64 / 86_400.0;
    let found = judged(windows);
    let (facts, severity) = only(&found, RuleId::LittleHeadroom);
    let Facts::LittleHeadroom(facts) = facts else {
        panic!("{facts:?}");
    };
    assert_eq!(severity, Severity::Note);
    assert_day(&facts.time, 25, 40);
    assert_eq!(facts.highest_rate, third_highest);
    assert!(
        facts.ratio.low > 2.5 && facts.ratio.low <= 3.0 && facts.ratio.high >= 3.0,
        "{facts:?}"
    );
    // Some 470,000 I/O a day, and three times as many.
    assert!((5.2..5.7).contains(&facts.rate_before), "{facts:?}");
    assert!((15.6..17.1).contains(&facts.rate_after), "{facts:?}");
    assert!(
        (380_000..420_000).contains(&facts.median_low_ns),
        "{facts:?}"
    );
    assert!(
        (760_000..840_000).contains(&facts.median_highest_ns),
        "{facts:?}"
    );
}

/// A higher rate with the latency of before, or one far from a rate that was sustained, leaves room.
#[test]
fn headroom_is_left() {
    let mut windows = days(40, 23);
    load(&mut windows[25..], 3, 1);
    assert_eq!(judged(windows).findings, []);
    // Three days reached a rate, and all days since the fortieth have three times the first one.
    let with_limit = |ios, latency| {
        let mut windows = days(60, 24);
        for day in [2, 9, 16] {
            load(&mut windows[day..=day], ios, latency);
        }
        load(&mut windows[40..], 3, 2);
        let found = judged(windows);
        let is_told = |rule: RuleId| found.findings.iter().any(|finding| finding.rule() == rule);
        is_told(RuleId::LittleHeadroom)
    };
    assert!(with_limit(3, 2));
    assert!(!with_limit(8, 4));
    // Three days alone had a latency as that of others.
    let mut windows = days(40, 25);
    load(&mut windows[25..], 3, 2);
    windows.sort_by_key(CourseWindow::placed);
    for window in &mut windows[37..] {
        window.median_ns = Some(400_000);
    }
    windows.sort_by_key(|window| window.from_ns);
    assert_eq!(judged(windows).findings, []);
}

/// Reads of 512 KiB at a high rate of bytes are no limit of reads of 8 KiB, and the other way round.
#[test]
fn other_io_have_another_limit() {
    let mut windows = days(60, 26);
    for window in &mut windows[..8] {
        window.lengths = [0, 0, 0, 0, window.placed()];
        window.bytes = window.placed() * 524_288;
        window.median_ns = Some(9_000_000);
    }
    load(&mut windows[..8], 9, 1);
    load(&mut windows[40..], 3, 2);
    let found = judged(windows);
    let is_told = |rule: RuleId| found.findings.iter().any(|finding| finding.rule() == rule);
    assert!(is_told(RuleId::LittleHeadroom), "{found:?}");
}
