//! `sizes-changed`: the mix of I/O sizes changed and stayed so.

use plumb_geometry::Bounds;
use plumb_model::facts::SizesChanged;
use plumb_model::reason::Counting;
use plumb_model::{Confidence, Facts, Finding, RuleId, Severity};
use plumb_stats::Step;

use super::{Course, CourseRule, ValuedWindows, share, thresholds};
use crate::rules::{Outcome, share_words};

/// Smallest change of the share of a class: less changes neither throughput nor fit much.
const CHANGE_MIN: f64 = 0.1;

/// The rule.
pub const RULE: CourseRule = CourseRule {
    id: RuleId::SizesChanged,
    thresholds: || {
        thresholds(format!(
            "99 % interval of the change of one class beyond {}",
            share_words(CHANGE_MIN)
        ))
    },
    judge,
};

/// Classes of sizes.
const CLASSES: usize = 5;

fn judge(course: &Course) -> Outcome {
    let of_class = |class: usize| {
        ValuedWindows::new(course, move |window| {
            Some((share(window.lengths[class], window), 0))
        })
    };
    if let Some(why) = of_class(0).is_short(Counting::Windows) {
        return Outcome::Unknown(why);
    }
    // The end of the interval that is nearer to no change.
    let least = |step: &Step| step.height.low.abs().min(step.height.high.abs());
    let largest = (0..CLASSES)
        .filter_map(|class| {
            let series = of_class(class);
            let step = series.step(CLASSES)?;
            (least(&step) > CHANGE_MIN).then_some((class, series, step))
        })
        .max_by(|one, other| least(&one.2).total_cmp(&least(&other.2)));
    let Some((most_changed, series, step)) = largest else {
        return Outcome::Silent;
    };
    let shares: [[f64; 2]; CLASSES] = std::array::from_fn(|class| {
        series.means(&step, |window| share(window.lengths[class], window))
    });
    let facts = Facts::SizesChanged(SizesChanged {
        time: series.time(&step),
        most_changed,
        change: Bounds {
            low: step.height.low.max(-1.0),
            high: step.height.high.min(1.0),
        },
        shares_before: shares.map(|[before, _]| before),
        shares_after: shares.map(|[_, after]| after),
    });
    Outcome::found(Finding::new(
        facts,
        course.target.clone(),
        Severity::Note,
        Confidence::High,
    ))
}
