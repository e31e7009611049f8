//! Tests of `sizes-changed`.

use plumb_diagnose::{RuleId, Severity};
use plumb_model::Facts;

use crate::course::{assert_day, days, judged, only};

#[test]
fn sizes_that_changed_are_found_with_their_mix() {
    let mut windows = days(40, 12);
    for window in &mut windows[30..] {
        window.lengths = [
            0,
            window.reads / 2,
            window.writes,
            0,
            window.reads - window.reads / 2,
        ];
    }
    let found = judged(windows);
    let (facts, severity) = only(&found, RuleId::SizesChanged);
    let Facts::SizesChanged(facts) = facts else {
        panic!("{facts:?}");
    };
    assert_eq!(severity, Severity::Note);
    assert_day(&facts.time, 30, 40);
    // Half of some 95 % of the I/O went from the second class to the last.
    assert!([1, 4].contains(&facts.most_changed), "{facts:?}");
    assert!((facts.shares_after[1] - 0.475).abs() < 0.03, "{facts:?}");
    assert!((facts.shares_before[1] - 0.95).abs() < 0.03, "{facts:?}");
    assert_eq!(facts.shares_before[4], 0.0);
    for shares in [facts.shares_before, facts.shares_after] {
        assert!(
            (shares.iter().sum::<f64>() - 1.0).abs() < 1e-9,
            "{shares:?}"
        );
    }
}
