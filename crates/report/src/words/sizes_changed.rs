//! `sizes-changed` in words.

use plumb_model::Target;
use plumb_model::facts::SizesChanged;

use super::misfit_rose::points;
use super::{Sentences, change_time, target};
use crate::format::percent;

/// Classes of sizes, by their place in the lists of the facts.
const CLASSES: [&str; 5] = [
    "up to 4 KiB",
    "4 to 16 KiB",
    "16 to 64 KiB",
    "64 to 256 KiB",
    "more than 256 KiB",
];

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &SizesChanged) -> Sentences {
    let class = facts.most_changed.min(CLASSES.len() - 1);
    let [before, after] = [&facts.shares_before, &facts.shares_after].map(|shares| shares[class]);
    Sentences::new(format!(
        "Since {} {} of the I/O on {} have a size of {}; before it was {}.",
        change_time::since(&facts.time),
        percent(after),
        target::name(on),
        CLASSES[class],
        percent(before)
    ))
    .and(format!(
        "The change is {} (99 % interval over {}).",
        points(facts.change),
        change_time::windows(&facts.time)
    ))
    .and(format!("Before and since then: {}.", mix(facts).join("; ")))
    .and(change_time::beside(&facts.time))
}

/// Both shares of each class that has I/O.
fn mix(facts: &SizesChanged) -> Vec<String> {
    let shares = facts.shares_before.iter().zip(&facts.shares_after);
    CLASSES
        .iter()
        .zip(shares)
        .filter(|(_, (before, after))| **before > 0.0 || **after > 0.0)
        .map(|(class, (before, after))| {
            format!("{class} {} and {}", percent(*before), percent(*after))
        })
        .collect()
}
