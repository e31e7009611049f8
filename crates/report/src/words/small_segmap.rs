//! `small-segmap` in words.

use plumb_geometry::plural;
use plumb_model::facts::SmallSegmap;

use super::Sentences;

/// The sentences of its finding.
pub(super) fn words(facts: &SmallSegmap) -> Sentences {
    Sentences::new(format!(
        "segmap_percent is {}, with {} in the file cache.",
        facts.segmap_percent,
        plural(facts.file_systems, "UFS file system")
    ))
    .say("With much memory and heavy use of UFS a larger share serves better; on a small host it takes memory away.")
    .say("Set segmap_percent in /etc/system and boot; direct I/O does without it.")
}

/// Facts with every branch of the sentences.
#[cfg(test)]
pub(super) fn examples() -> Vec<plumb_model::Facts> {
    vec![plumb_model::Facts::SmallSegmap(SmallSegmap {
        segmap_percent: 12,
        file_systems: 1,
        source: super::tests::kernel(),
    })]
}
