//! `latency-grew` in words.

use plumb_geometry::plural;
use plumb_model::Target;
use plumb_model::facts::LatencyGrew;

use super::{Sentences, change_time, target};
use crate::format::{factor_within, ns};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &LatencyGrew) -> Sentences {
    Sentences::new(format!(
        "Since {} the median latency of {} at equal load is {} times that before: {}, before {}.",
        change_time::since(&facts.time),
        target::name(on),
        factor_within(facts.ratio, 2),
        ns(facts.median_after_ns),
        ns(facts.median_before_ns)
    ))
    .and(format!(
        "The factor is a 99 % interval over {}. Only windows of one load are compared: {} with windows on both sides, by operation, \
         rate and size.",
        change_time::windows(&facts.time),
        plural(facts.loads, "load")
    ))
    .and(change_time::beside(&facts.time))
    .say(
        "If nothing on this host changed, look below it: the array, the path, other hosts on the same disks, a flash drive that is \
         nearly full.",
    )
}
