//! `narrow-stripe` in words.

use plumb_geometry::plural;
use plumb_model::Target;
use plumb_model::facts::NarrowStripe;

use super::phrase::share;
use super::{Sentences, io_size, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &NarrowStripe) -> Sentences {
    let (chunk, io) = (facts.chunk_bytes, facts.io.bytes);
    let summary = format!(
        "A chunk of {} ({chunk}, {}) holds {} I/O of {io}.",
        target::name(on),
        plural(facts.members, "member"),
        facts.ios_per_chunk
    );
    let wanted = facts.wanted_chunk_bytes;
    Sentences::new(summary)
        .and(facts.split.map(|split| {
            format!(
                "{} I/O of {io} at random sectors would touch two members: {split} exactly (expected from the layout).",
                share(split)
            )
        }))
        .and(facts.wanted_split.map(|split| {
            format!("With chunks of {wanted} it would be {split}.")
        }))
        .and(io_size::assumed(&facts.io))
        .and(io_size::basis(&facts.io.basis))
        .and(format!(
            "Most systems cannot change a chunk: {} has to be created again with chunks of {wanted} or more, which needs a \
             backup. Until then, start soft partitions on chunk boundaries.",
            target::name(on)
        ))
}
