//! `latency-grew`: latency at equal load grew and stayed up.

use plumb_geometry::Bounds;
use plumb_model::facts::LatencyGrew;
use plumb_model::{Confidence, Facts, Finding, RuleId, Severity};

use super::{Course, CourseRule, CourseWindow, Series, thresholds};
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

/// Windows of one load may be compared: the rate to a factor of 2, the class of sizes that most I/O have, and whether most of them read.
fn load(window: &CourseWindow) -> u32 {
    let rate = window.placed().max(1).ilog2();
    let most = window.lengths.iter().max();
    let class = window
        .lengths
        .iter()
        .position(|ios| Some(ios) == most)
        .unwrap_or(0);
    let reads = u32::from(window.reads > window.writes);
    (rate * 8 + class as u32) * 2 + reads
}

fn judge(course: &Course) -> Outcome {
    let series = Series::new(course, |window| {
        let median = window.median_ns.filter(|ns| *ns > 0)?;
        Some(((median as f64).ln(), load(window)))
    });
    if let Some(why) = series.is_short() {
        return Outcome::Unknown(why);
    }
    let grown = |low: f64| low > RATIO_MIN.ln();
    let Some(step) = series.step(1).filter(|step| grown(step.height.low)) else {
        return Outcome::Silent;
    };
    let (before, after) = series.windows.split_at(step.at);
    let mut loads = series.strata.clone();
    loads.sort_unstable();
    loads.dedup();
    let is_compared = |load: &&u32| {
        let (before, after) = series.strata.split_at(step.at);
        before.contains(load) && after.contains(load)
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
        median_before_ns: middle(before),
        median_after_ns: middle(after),
        loads: loads.iter().filter(is_compared).count() as u64,
    });
    Outcome::found(Finding::new(
        facts,
        course.target.clone(),
        severity,
        Confidence::Medium,
    ))
}

/// The middle one of the medians of windows.
fn middle(windows: &[&CourseWindow]) -> u64 {
    let mut medians: Vec<u64> = windows
        .iter()
        .filter_map(|window| window.median_ns)
        .collect();
    medians.sort_unstable();
    medians.get(medians.len() / 2).copied().unwrap_or(0)
}
