//! `software-stripe-on-hardware-raid` in words.

use plumb_model::Target;
use plumb_model::facts::{ArrayEvidence, SoftwareStripeOnHardwareRaid};

use super::{Sentences, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &SoftwareStripeOnHardwareRaid) -> Sentences {
    let summary = format!(
        "{} of {} devices below {} are LUNs of an array.",
        facts.luns,
        facts.devices,
        target::name(on)
    );
    Sentences::new(summary)
        .and(format!("{} is one: {}.", facts.lun, because(&facts.because)))
        .say(
            "Two stripes on each other split I/O twice. Let the array stripe. If several LUNs have to be joined, use a large \
             chunk that is a multiple of the segment.",
        )
}

/// Why a device counts as a LUN of an array.
pub(super) fn because(evidence: &ArrayEvidence) -> String {
    match evidence {
        ArrayEvidence::Unit {
            granularity_bytes,
            source,
        } => format!("it has an array unit of {granularity_bytes} ({source})"),
        ArrayEvidence::PathOf { device } => format!("it is a path of {device}"),
        ArrayEvidence::Model { model } => format!("its model is {model}"),
    }
}
