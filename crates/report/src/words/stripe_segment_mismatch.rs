//! `stripe-segment-mismatch` in words.

use plumb_geometry::plural;
use plumb_model::Target;
use plumb_model::facts::StripeSegmentMismatch;

use super::phrase::list;
use super::{Sentences, target};
use crate::format::percent;

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &StripeSegmentMismatch) -> Sentences {
    let (chunk, segment) = (facts.chunk_bytes, facts.segment.bytes);
    let summary = format!(
        "The chunk of {} ({chunk}) is no multiple of the {segment} segment of {} of {} below.",
        target::name(on),
        facts.devices_off,
        plural(facts.devices, "device")
    );
    let nearest: Vec<String> = facts
        .nearest_bytes
        .iter()
        .map(ToString::to_string)
        .collect();
    Sentences::new(summary)
        .and(format!(
            "Each chunk starts at another place in a segment, so the array splits I/O that fit a chunk: {} of a segment is \
             left over.",
            percent(facts.past_bytes.0 as f64 / segment.0.max(1) as f64)
        ))
        .and(format!("The nearest multiples of the segment are {}.", list(&nearest)))
        .and(facts.proposed_bytes.map(|proposed| {
            format!(
                "For random I/O use a large chunk, such as {proposed} = {} × {segment}.",
                proposed.0 / segment.0.max(1)
            )
        }))
        .say("A chunk cannot be changed in place: the stripe has to be created again, and the data copied.")
}
