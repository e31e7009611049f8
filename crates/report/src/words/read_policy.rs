//! `read-policy` in words.

use plumb_model::Target;
use plumb_model::facts::ReadPolicy;
use plumb_stack::node_facts::MirrorReads;

use super::{Sentences, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &ReadPolicy) -> Sentences {
    let summary = format!(
        "{} reads from its {} sides by the policy \"{}\".",
        target::name(on),
        facts.sides,
        facts.policy
    );
    let meaning = if facts.policy == MirrorReads::First {
        "All reads go to the first side: that is right only if the others are slower."
    } else {
        "Each side serves a range of addresses: that helps sequential reads of a balanced load, and hurts a load with a hot \
         range."
    };
    Sentences::new(summary).say(meaning).say(
        "round-robin is the default and suits most loads. The policy changes at once and without risk to data.",
    )
}
