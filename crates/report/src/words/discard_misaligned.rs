//! `discard-misaligned` in words.

use plumb_geometry::Bytes;
use plumb_model::Target;
use plumb_model::facts::DiscardMisaligned;

use super::phrase::{place, unit};
use super::{Sentences, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &DiscardMisaligned) -> Sentences {
    let summary = format!(
        "{} starts {} past a boundary of {}.",
        target::name(on),
        place(facts.past_bytes),
        unit(&facts.grid)
    );
    let up = facts
        .grid
        .granularity_bytes
        .0
        .saturating_sub(facts.past_bytes.0);
    Sentences::new(summary)
        .say(
            "A discard gives back whole units only: a range that starts and ends on units of the file system keeps one unit, \
             which is across its ends.",
        )
        .and(format!(
            "Move its start up by {}, or let the file system discard in larger ranges: by a scheduled trim instead of one for \
             each file.",
            place(Bytes(up))
        ))
}
