//! `read-ahead-off` in words.

use plumb_model::Target;
use plumb_model::facts::ReadAheadOff;

use super::phrase::part_of;
use super::{Sentences, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &ReadAheadOff) -> Sentences {
    let device = target::name(on);
    Sentences::new(format!(
        "Read-ahead of {device} is off, and {} reads are sequential and at most {} long.",
        part_of(facts.continuing_reads, facts.reads),
        facts.short_bytes
    ))
    .say(&format!(
        "{} reads filled the page cache. Without read-ahead the kernel reads one page at a time, and the program waits for each.",
        part_of(facts.cached_reads, facts.reads)
    ))
    .say(&format!(
        "Set read-ahead to {}, the default of the kernel. Put it into a udev rule, or it is lost at the next boot.",
        facts.better_bytes
    ))
}
