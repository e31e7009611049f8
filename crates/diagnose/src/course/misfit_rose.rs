//! `misfit-rose`: the share of I/O off 4 KiB rose and stayed up.

use plumb_geometry::Bounds;
use plumb_model::facts::MisfitRose;
use plumb_model::reason::Counting;
use plumb_model::{Confidence, Facts, Finding, RuleId, Severity};

use super::{Course, CourseRule, ValuedWindows, share, thresholds};
use crate::rules::{Outcome, SHARE_WARNING, share_words};

/// Smallest rise: a backup or an update of packages may add a few percent for days.
const RISE_MIN: f64 = 0.05;

/// The rule.
pub const RULE: CourseRule = CourseRule {
    id: RuleId::MisfitRose,
    thresholds: || {
        let mut found = thresholds(format!(
            "lower end of the 99 % interval of the rise above {}",
            share_words(RISE_MIN)
        ));
        found.push(format!("warning from {}", share_words(SHARE_WARNING)));
        found
    },
    judge,
};

fn judge(course: &Course) -> Outcome {
    let series = ValuedWindows::new(course, |window| {
        Some((share(window.misaligned?, window), 0))
    });
    if let Some(why) = series.is_short(Counting::Windows) {
        return Outcome::Unknown(why);
    }
    let rise = series.rise().filter(|(_, step)| step.height.low > RISE_MIN);
    let Some((series, step)) = rise else {
        return Outcome::Silent;
    };
    let [before, after] = series.means(&step, |window| {
        share(window.misaligned.unwrap_or(0), window)
    });
    let severity = match after >= SHARE_WARNING {
        true => Severity::Warning,
        false => Severity::Note,
    };
    let facts = Facts::MisfitRose(MisfitRose {
        time: series.time(&step),
        share_before: before,
        share_after: after,
        rise: Bounds {
            low: step.height.low,
            high: step.height.high.min(1.0),
        },
    });
    Outcome::found(Finding::new(
        facts,
        course.target.clone(),
        severity,
        Confidence::High,
    ))
}
