//! `parity-small-writes` in words.

use plumb_model::Target;
use plumb_model::facts::ParitySmallWrites;

use super::phrase::{counted, interval};
use super::{Sentences, io_size, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &ParitySmallWrites) -> Sentences {
    let (name, stripe) = (target::name(on), facts.stripe_bytes);
    let summary = match (&facts.counted, &facts.io) {
        (Some(share), _) => {
            let at = facts.counted_on.as_ref().unwrap_or(&name);
            format!(
                "{} writes to {at} cover a full stripe of {stripe} only in part.",
                counted(share)
            )
        }
        (None, Some(io)) => format!(
            "Writes of {} to {name} are less than its full stripe of {stripe}, or end within one.",
            io.bytes
        ),
        (None, None) => format!("Writes to {name} are less than its full stripe of {stripe}."),
    };
    let parities = if facts.parity == 1 {
        "the old parity"
    } else {
        "all old parities"
    };
    let mut sentences = Sentences::new(summary);
    if let Some(counted) = &facts.counted {
        sentences.explanation.extend(interval(counted));
    }
    if let Some(io) = &facts.io {
        sentences = sentences.and(io_size::basis(&io.basis));
    }
    sentences
        .and(format!(
            "A small write reads the old data and {parities}, and writes both again: {} operations, where a mirror needs 2.",
            facts.operations
        ))
        .say(
            "A write-back cache that survives a power cut gathers some of them. For random writes use mirrors, for \
             sequential ones I/O of whole stripes.",
        )
}
