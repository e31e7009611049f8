//! `read-ahead-too-large` in words.

use plumb_geometry::{group_digits, plural};
use plumb_model::Target;
use plumb_model::facts::ReadAheadTooLarge;

use super::phrase::part_of;
use super::{Sentences, target};
use crate::format::bytes;

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &ReadAheadTooLarge) -> Sentences {
    let device = target::name(on);
    let per_fault = facts.read_bytes / facts.faults.max(1);
    Sentences::new(format!(
        "Read-ahead of {device} is {}, and random page faults read {} each.",
        facts.bytes,
        bytes(per_fault)
    ))
    .say(&format!(
        "{} of the processes that use {device} waited for a disk, {} were read, and the position jumped {} times. {} reads filled the \
         page cache.",
        plural(facts.faults, "page fault"),
        bytes(facts.read_bytes),
        group_digits(facts.jumps),
        part_of(facts.cached_reads, facts.reads)
    ))
    .say("A page fault needs one page. The kernel reads the whole read-ahead around it, unless the program calls madvise(MADV_RANDOM).")
    .say(&format!(
        "Set read-ahead to {}, the default of the kernel. Put it into a udev rule, or it is lost at the next boot.",
        facts.better_bytes
    ))
}
