//! `small-maxphys` in words.

use plumb_model::facts::SmallMaxphys;

use super::Sentences;

/// The sentences of its finding.
pub(super) fn words(facts: &SmallMaxphys) -> Sentences {
    Sentences::new(format!(
        "maxphys is {}: the kernel cuts larger I/O.",
        facts.maxphys_bytes
    ))
    .and(
        facts
            .chunk_bytes
            .map(|chunk| format!("A chunk of {chunk} takes more than one I/O.")),
    )
    .and(
        facts
            .resync_bytes
            .map(|resync| format!("Resync I/O of {resync} are cut as well.")),
    )
    .and(format!(
        "Set maxphys to {} or more in /etc/system and boot; drivers of disks may have a limit of their own.",
        facts.wanted_bytes
    ))
}

/// Facts with every branch of the sentences.
#[cfg(test)]
pub(super) fn examples() -> Vec<plumb_model::Facts> {
    use plumb_geometry::Bytes;

    vec![plumb_model::Facts::SmallMaxphys(SmallMaxphys {
        maxphys_bytes: Bytes(256 << 10),
        wanted_bytes: Bytes(1 << 20),
        chunk_bytes: Some(Bytes(512 << 10)),
        resync_bytes: Some(Bytes(1 << 20)),
        source: super::tests::kernel(),
    })]
}
