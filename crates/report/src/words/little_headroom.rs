//! `little-headroom` in words.

use plumb_model::Target;
use plumb_model::facts::LittleHeadroom;

use super::{Sentences, change_time, target};
use crate::format::{digits, factor_within, ns, percent};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &LittleHeadroom) -> Sentences {
    let share = facts.rate_after / facts.highest_rate.max(f64::MIN_POSITIVE);
    let wait = facts.median_highest_ns as f64 / facts.median_low_ns.max(1) as f64;
    Sentences::new(format!(
        "Since {} {} serves {} I/O a second on the mean, {} of the {} that it has sustained at most.",
        change_time::since(&facts.time),
        target::name(on),
        digits(facts.rate_after),
        percent(share),
        digits(facts.highest_rate)
    ))
    .and(format!(
        "The rate is {} times that before, {} a second (99 % interval over {}).",
        factor_within(facts.ratio, 2),
        digits(facts.rate_before),
        change_time::windows(&facts.time)
    ))
    .and(format!(
        "At the highest rate the median latency was {wait:.1} times that at low rates, {} against {}: I/O waited for each other.",
        ns(facts.median_highest_ns),
        ns(facts.median_low_ns)
    ))
    .and(change_time::beside(&facts.time))
}
