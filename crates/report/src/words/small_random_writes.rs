//! `small-random-writes` in words.

use plumb_geometry::plural;
use plumb_model::Target;
use plumb_model::facts::SmallRandomWrites;

use super::phrase::{counted, interval};
use super::{Sentences, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &SmallRandomWrites) -> Sentences {
    let mut sentences = Sentences::new(format!(
        "{} I/O on {} are random writes of at most {}.",
        counted(&facts.counted),
        target::name(on),
        facts.longest_bytes
    ));
    sentences.explanation.extend(interval(&facts.counted));
    sentences
        .and(format!(
            "Gathered {} to a write, {} would do; written in sequence, none would seek.",
            facts.gathered,
            plural(facts.gathered_writes, "write")
        ))
        .say("This estimate changes the requests: only `plumb replay` or `plumb compare` can prove the gain.")
}
