//! Tests of `misfit-rose`.

use plumb_diagnose::{RuleId, Severity};
use plumb_model::Facts;

use crate::course::{DAY_NS, assert_day, days, judged, judged_of, only};

#[test]
fn a_misfit_that_rose_is_found_on_its_day() {
    for (off, severity) in [(30, Severity::Warning), (8, Severity::Note)] {
        let mut windows = days(40, 7);
        for window in &mut windows[23..] {
            window.misaligned = Some(window.placed() * off / 100);
        }
        let found = judged(windows);
        let (facts, judged) = only(&found, RuleId::MisfitRose);
        let Facts::MisfitRose(facts) = facts else {
            panic!("{facts:?}");
        };
        assert_eq!(judged, severity);
        assert_day(&facts.time, 23, 40);
        let share = off as f64 / 100.0;
        assert!((facts.share_after - share).abs() < 0.001, "{facts:?}");
        assert!(facts.share_before < 0.01, "{facts:?}");
        let rise = facts.share_after - facts.share_before;
        assert!(
            facts.rise.low <= rise && rise <= facts.rise.high,
            "{facts:?}"
        );
    }
}

/// A misfit that fell is no defect, nor is one of a single day.
#[test]
fn a_misfit_that_fell_is_no_finding() {
    let mut windows = days(40, 8);
    for window in &mut windows[..20] {
        window.misaligned = Some(window.placed() / 2);
    }
    assert_eq!(judged(windows).findings, []);
    let mut windows = days(40, 9);
    windows[20].misaligned = Some(windows[20].placed());
    assert_eq!(judged(windows).findings, []);
}

/// A misfit that fell, and rose again later: the rise is found.
#[test]
fn a_rise_behind_a_fall_is_found() {
    let mut windows = days(60, 17);
    for (day, window) in windows.iter_mut().enumerate() {
        let off = match day {
            0..20 => 80,
            20..45 => 0,
            _ => 50,
        };
        window.misaligned = Some(window.placed() * off / 100);
    }
    let found = judged(windows);
    let Facts::MisfitRose(facts) = only(&found, RuleId::MisfitRose).0 else {
        panic!("{found:?}");
    };
    assert_eq!(facts.time.since_ns, 45 * DAY_NS);
    // From the fall on.
    assert_eq!(
        (facts.time.windows_before, facts.time.windows_after),
        (25, 15)
    );
    assert_eq!(facts.share_before, 0.0);
}

/// A misfit that rose and is gone again, is no finding; one that rose twice is found from the second day on.
#[test]
fn a_rise_that_is_gone_again_is_no_finding() {
    let with = |second: u64| {
        let mut windows = days(60, 20);
        for (day, window) in windows.iter_mut().enumerate() {
            let off = match day {
                20..35 => 80,
                50.. => second,
                _ => 0,
            };
            window.misaligned = Some(window.placed() * off / 100);
        }
        judged(windows)
    };
    assert_eq!(with(0).findings, []);
    let found = with(70);
    let Facts::MisfitRose(facts) = only(&found, RuleId::MisfitRose).0 else {
        panic!("{found:?}");
    };
    assert_eq!(facts.time.since_ns, 50 * DAY_NS);
    // The last days of it, too few to be levels of their own.
    let mut windows = days(45, 21);
    for window in &mut windows[30..40] {
        window.misaligned = Some(window.placed() * 80 / 100);
    }
    assert_eq!(judged(windows).findings, []);
}

/// The first night of a backup is no change; hours need two days on each side.
#[test]
fn hours_need_two_days_on_each_side() {
    let hours = |count: usize| {
        let mut windows = days(count, 18);
        for (hour, window) in windows.iter_mut().enumerate() {
            window.from_ns = hour as i64 * DAY_NS / 24;
            let off = if hour % 24 < 15 { 2 } else { 60 };
            window.misaligned = Some(window.placed() * off / 100);
        }
        windows
    };
    for (count, is_unknown) in [
        (21, true),
        (40, true),
        (95, true),
        (96, false),
        (200, false),
    ] {
        let found = judged_of(3600, hours(count), Vec::new());
        assert_eq!(found.findings, [], "{count} hours");
        let unknown = found
            .unknown
            .iter()
            .any(|one| one.rule == RuleId::MisfitRose);
        assert_eq!(unknown, is_unknown, "{count} hours");
    }
}
