//! `double-counted` in words.

use plumb_model::facts::DoubleCounted;

use super::Sentences;
use super::phrase::{list, rate};

/// The sentences of its finding.
pub(super) fn words(facts: &DoubleCounted) -> Sentences {
    Sentences::new(format!(
        "{} carry one load of {}/s, not {}/s.",
        list(&facts.devices),
        rate(facts.asked_ios_per_second),
        rate(facts.sum_ios_per_second)
    ))
    .say("Each layer counts the I/O that pass through it: add up the devices of one layer only.")
    .and((!facts.is_same).then(|| {
        "The bottom does not do the same as the top asks: because of splits, copies, merges, caches, or other users of the \
         disks."
            .to_owned()
    }))
}
