//! `small-resync-io` in words.

use plumb_geometry::{group_digits, plural};
use plumb_model::facts::SmallResyncIo;

use super::Sentences;

/// The sentences of its finding.
pub(super) fn words(facts: &SmallResyncIo) -> Sentences {
    let wanted = facts.wanted_bytes;
    Sentences::new(format!(
        "A resync of {} uses I/O of {}.",
        plural(facts.mirrors, "mirror"),
        facts.resync_bytes
    ))
    .and(format!(
        "The time of a resync depends on the size of its I/O: use {wanted}, which is {} blocks of 512 bytes.",
        group_digits(wanted.0 / 512)
    ))
    .and(
        facts
            .maxphys_bytes
            .map(|maxphys| format!("maxphys is {maxphys}: it has to be {wanted} as well.")),
    )
}

/// Facts with every branch of the sentences.
#[cfg(test)]
pub(super) fn examples() -> Vec<plumb_model::Facts> {
    use plumb_geometry::Bytes;

    vec![plumb_model::Facts::SmallResyncIo(SmallResyncIo {
        resync_bytes: Bytes(32 << 10),
        wanted_bytes: Bytes(1 << 20),
        mirrors: 1,
        maxphys_bytes: Some(Bytes(256 << 10)),
        source: super::tests::kernel(),
    })]
}
