//! `throughput-inflation` in words.

use plumb_geometry::group_digits;
use plumb_model::Target;
use plumb_model::facts::{Direction, ThroughputInflation};

use super::{Sentences, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &ThroughputInflation) -> Sentences {
    let verb = match facts.direction {
        Direction::Read => "read",
        Direction::Write => "written",
    };
    Sentences::new(format!(
        "{:.1} bytes are {verb} at the device of {} for each byte asked: {} for {}.",
        facts.ratio,
        target::name(on),
        facts.device_bytes,
        facts.asked_bytes
    ))
    .and(format!(
        "{} calls asked for {} bytes each on average.",
        group_digits(facts.calls),
        group_digits(facts.asked_bytes.0 / facts.calls.max(1))
    ))
    .say(if facts.is_cached {
        "The cache has a part in it: it may have saved reads, and read ahead data that nobody asked for."
    } else {
        "The cache has no part in it: the file system reads and writes in larger units than the calls ask for."
    })
    .and(facts.read_first_bytes.map(|bytes| {
        format!(
            "{bytes} were read beside that nobody asked for: the file system reads a unit first that is written in part."
        )
    }))
    .say("The bytes at the device include metadata and the journal of the file system.")
}
