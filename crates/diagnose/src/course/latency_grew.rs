//! `latency-grew`: latency at equal load grew and stayed up.

use std::ops::Range;

use plumb_geometry::Bounds;
use plumb_model::facts::LatencyGrew;
use plumb_model::reason::Counting;
use plumb_model::{Confidence, Facts, Finding, RuleId, Severity};

use super::{Course, CourseRule, CourseWindow, ValuedWindows, middle, thresholds};
use crate::rules::Outcome;

/// Smallest growth: the histograms know a latency to a sixteenth, and a cache that fills moves medians by more than that.
const RATIO_MIN: f64 = 1.2;
/// From this growth on a finding is a warning.
const RATIO_WARNING: f64 = 1.5;

/// The rule.
pub const RULE: CourseRule = CourseRule {
    id: RuleId::LatencyGrew,
    thresholds: || {
        let mut found = thresholds(format!(
            "lower end of the 99 % interval of the ratio above {RATIO_MIN}"
        ));
        found.push(format!("warning from {RATIO_WARNING}"));
        found
    },
    judge,
};

/// Least share of one operation. The stored median is that of reads and writes together: with more of both, it would move with their
/// shares alone.
const SHARE_OF_ONE: f64 = 0.9;

/// Windows of one load may be compared: of one kind, with the rate to a factor of 2.
fn load(window: &CourseWindow) -> Option<u32> {
    Some(window.placed().max(1).ilog2() * KINDS + kind(window)?)
}

/// Kinds of I/O.
const KINDS: u32 = 64 * 8 * 2;

/// The kind of the I/O of a window, below [`KINDS`]: the mean size to a factor of 2, the class of sizes that most I/O have, and whether
/// they are reads or writes. `None` for a window with both.
pub(super) fn kind(window: &CourseWindow) -> Option<u32> {
    let placed = window.placed().max(1);
    let is_reads = match window.reads.max(window.writes) {
        most if (most as f64) < SHARE_OF_ONE * placed as f64 => return None,
        most => most == window.reads,
    };
    let size = (window.bytes / placed).max(1).ilog2();
    let most = window.lengths.iter().max();
    let class = window
        .lengths
        .iter()
        .position(|ios| Some(ios) == most)
        .unwrap_or(0);
    Some((size * 8 + class as u32) * 2 + u32::from(is_reads))
}

fn judge(course: &Course) -> Outcome {
    let series = ValuedWindows::new(course, |window| {
        let median = window.median_ns.filter(|ns| *ns > 0)?;
        Some(((median as f64).ln(), load(window)?))
    });
    if let Some(why) = series.is_short(Counting::TimedWindows) {
        return Outcome::Unknown(why);
    }
    let rise = series
        .rise()
        .filter(|(_, step)| step.height.low > RATIO_MIN.ln());
    let Some((series, step)) = rise else {
        return Outcome::Silent;
    };
    let (before, after) = series.strata.split_at(step.at);
    let mut loads: Vec<u32> = before.to_vec();
    loads.sort_unstable();
    loads.dedup();
    loads.retain(|load| after.contains(load));
    let compared = |range: Range<usize>| {
        let is_compared = |index: &usize| loads.contains(&series.strata[*index]);
        let indices = range.filter(is_compared);
        middle(
            indices
                .filter_map(|index| series.windows[index].median_ns)
                .collect(),
        )
    };
    let severity = match step.height.low >= RATIO_WARNING.ln() {
        true => Severity::Warning,
        false => Severity::Note,
    };
    let facts = Facts::LatencyGrew(LatencyGrew {
        time: series.time(&step),
        ratio: Bounds {
            low: step.height.low.exp(),
            high: step.height.high.exp(),
        },
        median_before_ns: compared(0..step.at),
        median_after_ns: compared(step.at..series.windows.len()),
        loads: loads.len() as u64,
    });
    Outcome::found(Finding::new(
        facts,
        course.target.clone(),
        severity,
        Confidence::Medium,
    ))
}
