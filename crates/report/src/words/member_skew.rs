//! `member-skew` in words.

use plumb_model::Target;
use plumb_model::facts::MemberSkew;

use super::phrase::{counted, interval};
use super::{Sentences, target};
use crate::format::percent;

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &MemberSkew) -> Sentences {
    let mut sentences = Sentences::new(format!(
        "Member {} of {} (of 0 to {}) gets {} pieces; an even share is {}.",
        facts.member,
        target::name(on),
        facts.members.saturating_sub(1),
        counted(&facts.counted),
        percent(1.0 / facts.members.max(1) as f64)
    ));
    sentences.explanation.extend(interval(&facts.counted));
    sentences.say(
        "The busiest member limits the stripe: look for metadata or hot blocks that repeat at the width of the stripe.",
    )
}
