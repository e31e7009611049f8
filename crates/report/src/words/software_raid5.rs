//! `software-raid5` in words.

use plumb_model::Target;
use plumb_model::facts::SoftwareRaid5;

use super::{Sentences, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &SoftwareRaid5) -> Sentences {
    let summary = format!(
        "{} computes the parity of {} in software, over {} devices.",
        facts.manager,
        target::name(on),
        facts.members
    );
    Sentences::new(summary).and(format!(
        "A small write needs {} disk operations, on a mirror 2: for databases use mirrors, or an array with a cache that \
         survives a power cut.",
        facts.operations
    ))
}
