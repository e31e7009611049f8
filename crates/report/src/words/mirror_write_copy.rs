//! `mirror-write-copy` in words.

use plumb_geometry::plural;
use plumb_model::facts::MirrorWriteCopy;

use super::Sentences;

/// The sentences of its finding.
pub(super) fn words(facts: &MirrorWriteCopy) -> Sentences {
    Sentences::new(format!(
        "md_mirror_wow_flg is {:#x}: the kernel copies each write to {} before it writes.",
        facts.flags,
        plural(facts.mirrors, "mirror")
    ))
    .say("That slows writes down considerably, and helps only applications that change a buffer during a write.")
    .say("Oracle does not. If no application does, remove the line from /etc/system and boot.")
}

/// Facts with every branch of the sentences.
#[cfg(test)]
pub(super) fn examples() -> Vec<plumb_model::Facts> {
    vec![plumb_model::Facts::MirrorWriteCopy(MirrorWriteCopy {
        flags: 0x20,
        mirrors: 2,
        source: super::tests::kernel(),
    })]
}
