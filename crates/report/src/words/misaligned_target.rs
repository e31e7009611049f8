//! `misaligned-target` in words.

use plumb_model::Target;
use plumb_model::facts::MisalignedTarget;

use super::{Sentences, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &MisalignedTarget) -> Sentences {
    let (granularity, offset) = (facts.granularity_bytes, facts.offset_bytes);
    Sentences::new(format!(
        "Blocks of {granularity} start {offset} past the start of {}: I/O at multiples of {granularity} miss all of them.",
        target::name(on)
    ))
}
