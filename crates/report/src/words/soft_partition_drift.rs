//! `soft-partition-drift` in words.

use plumb_model::Target;
use plumb_model::facts::SoftPartitionDrift;

use super::phrase::{assumed, place, unit};
use super::{Sentences, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &SoftPartitionDrift) -> Sentences {
    let component = &facts.component;
    let behind = match &facts.behind {
        Some(previous) => format!("the end of {previous}"),
        None => format!("the beginning of {component}"),
    };
    let summary = format!(
        "{} starts {} past a boundary of {}, one sector behind {behind}.",
        target::name(on),
        place(facts.past_bytes),
        unit(&facts.grid),
    );
    Sentences::new(summary)
        .and(assumed(&facts.grid, facts.given_bytes))
        .and(facts.wanted_bytes.map(|wanted| {
            format!(
                "The next offset on the unit behind a header is {} of {component}.",
                place(wanted)
            )
        }))
        .and(facts.rule_of_thumb_bytes.map(|thumb| {
            format!(
                "The formula last offset + last size + unit gives {}, which is off the unit: it holds only if both are \
                 multiples of the unit.",
                place(thumb)
            )
        }))
        .and(facts.next_free_bytes.map(|free| {
            format!(
                "Give a new soft partition on {component} the offset {}.",
                place(free)
            )
        }))
        .say(
            "Each extent has a header of one sector in front: give offsets yourself (`-o`), or let metainit align them (`-A`).",
        )
}
