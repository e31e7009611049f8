//! `looks-sequential` in words.

use plumb_geometry::group_digits;
use plumb_model::Target;
use plumb_model::facts::LooksSequential;

use super::phrase::{counted, interval};
use super::{Sentences, target};
use crate::format::count_within;

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &LooksSequential) -> Sentences {
    let mut sentences = Sentences::new(format!(
        "{} I/O on {} are random and of {} or more, but less than {}.",
        counted(&facts.counted),
        target::name(on),
        facts.from_bytes,
        facts.below_bytes
    ));
    sentences.explanation.extend(interval(&facts.counted));
    sentences
        .and(format!(
            "Of {} I/O of that size, {} continue no stream: an array that judges by size caches or prefetches them wrongly, \
             one that follows positions does not.",
            group_digits(facts.of_that_size),
            count_within(facts.counted.count)
        ))
        .say(
            "A file-system record larger than the request of the application is a usual cause. If the application asks for so \
             much at once, nothing is wrong with it.",
        )
}
