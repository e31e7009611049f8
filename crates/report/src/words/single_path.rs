//! `single-path` in words.

use plumb_model::Target;
use plumb_model::facts::{PathCase, SinglePath};

use super::phrase::{capital, list};
use super::software_stripe_on_hardware_raid::because;
use super::{Sentences, target};

const FAILS: &str = "It fails with its path; a second path adds bandwidth as well.";

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &SinglePath) -> Sentences {
    let name = target::name(on);
    match &facts.case {
        PathCase::Multipath => Sentences::new(format!("{name} has a single path."))
            .say(FAILS)
            .say("Look at cables, zoning and LUN masking first: paths seldom vanish without a cause."),
        PathCase::Lun { because: why } => {
            Sentences::new(format!("{name} is a LUN of an array and has one path."))
                .and(capital(&because(why)) + ".")
                .say(FAILS)
        }
        PathCase::Unjoined { devices } => Sentences::new(format!(
            "{} are one LUN, and no multipath device joins them.",
            list(devices)
        ))
        .say("A write to each of them is two writes to one disk: volume managers may refuse that, or damage it.")
        .say("Let a multipath driver join them, and use only its device."),
    }
}
