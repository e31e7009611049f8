//! `little-headroom`: the rate nears the highest that the device has sustained.

use plumb_geometry::Bounds;
use plumb_model::facts::LittleHeadroom;
use plumb_model::reason::Counting;
use plumb_model::{Confidence, Facts, Finding, RuleId, Severity};

use super::latency_grew::kind;
use super::{Course, CourseRule, CourseWindow, ValuedWindows, middle, thresholds};
use crate::rules::{Outcome, share_words};

/// Smallest growth of the rate: the load of a week differs from that of another by a tenth.
const RATIO_MIN: f64 = 1.2;
/// Share of the highest rate from which on little is left: a day's busiest hour has some 1.25 times its mean.
const SHARE_MIN: f64 = 0.8;
/// Windows that reach the highest rate: one may be a burst into a cache.
const HIGHEST: usize = 3;
/// Growth of the latency that shows that I/O wait for each other. Without it the device may have more to give.
const WAIT_MIN: f64 = 1.5;

/// The rule.
pub const RULE: CourseRule = CourseRule {
    id: RuleId::LittleHeadroom,
    thresholds: || {
        let mut found = thresholds(format!(
            "lower end of the 99 % interval of the ratio above {RATIO_MIN}"
        ));
        found.push(format!(
            "at least {} of the rate that {HIGHEST} windows reached",
            share_words(SHARE_MIN)
        ));
        found.push(format!("latency there {WAIT_MIN} times that at low rates"));
        found
    },
    judge,
};

fn judge(course: &Course) -> Outcome {
    // I/O of another kind have another limit: the windows of the commonest kind alone are compared.
    let commonest = commonest(&course.windows);
    let rate = |window: &CourseWindow| window.placed() as f64 / course.window_seconds.max(1) as f64;
    let series = ValuedWindows::new(course, |window| {
        window.median_ns.filter(|ns| *ns > 0)?;
        (kind(window)? == commonest?).then(|| (rate(window).ln(), 0))
    });
    if let Some(why) = series.is_short(Counting::TimedWindows) {
        return Outcome::Unknown(why);
    }
    let mut by_rate = series.windows.clone();
    by_rate.sort_by_key(|window| window.placed());
    let medians = |windows: &[&CourseWindow]| -> Vec<u64> {
        let medians = windows.iter().filter_map(|window| window.median_ns);
        medians.collect()
    };
    let (low, _) = by_rate.split_at(by_rate.len() / 2);
    let (_, highest) = by_rate.split_at(by_rate.len().saturating_sub(HIGHEST));
    let highest_rate = highest.first().map_or(0.0, |window| rate(window));
    let (median_low_ns, at_highest) = (middle(medians(low)), medians(highest));
    // Each of them, so that one slow window is no limit.
    let is_limit = at_highest
        .iter()
        .all(|ns| *ns as f64 >= WAIT_MIN * median_low_ns as f64);
    let rise = series
        .rise()
        .filter(|(_, step)| step.height.low > RATIO_MIN.ln());
    let Some((series, step)) = rise.filter(|_| is_limit) else {
        return Outcome::Silent;
    };
    let [rate_before, rate_after] = series.means(&step, rate);
    if rate_after < SHARE_MIN * highest_rate {
        return Outcome::Silent;
    }
    let facts = Facts::LittleHeadroom(LittleHeadroom {
        time: series.time(&step),
        ratio: Bounds {
            low: step.height.low.exp(),
            high: step.height.high.exp(),
        },
        rate_before,
        rate_after,
        highest_rate,
        median_highest_ns: middle(at_highest),
        median_low_ns,
    });
    Outcome::found(Finding::new(
        facts,
        course.target.clone(),
        Severity::Note,
        Confidence::Medium,
    ))
}

/// The kind of I/O that most windows have.
fn commonest(windows: &[CourseWindow]) -> Option<u32> {
    let mut kinds: Vec<u32> = windows.iter().filter_map(kind).collect();
    kinds.sort_unstable();
    let runs = kinds.chunk_by(|one, other| one == other);
    runs.max_by_key(|run| run.len()).map(|run| run[0])
}
