//! Facts that a reader must know about the remedy of a finding.

use plumb_model::Advice;

use super::{action, target};
use crate::words::phrase::capital;

/// The sentence.
pub(super) fn sentence(advice: &Advice) -> String {
    match advice {
        Advice::AttachImage => {
            "Plumb prints no commands: attach the image as a device first, and check that device."
                .to_owned()
        }
        Advice::AttachLoop => {
            "No commands for an image that holds data: attach it with `losetup --find --show --partscan`, and check the loop \
             device."
                .to_owned()
        }
        Advice::SeeOther {
            component,
            rule,
            target: other,
        } => format!(
            "One layout covers all misplaced soft partitions of {component}: see {rule} of {}.",
            target(other)
        ),
        Advice::NoPlan { why } => ended(format!("Plumb prints no commands: {why}")),
        Advice::NoCommand { why } => ended(capital(why)),
        Advice::RunOn { host, changes } => {
            let host = host.as_deref().unwrap_or("this host");
            let changed = changes
                .as_ref()
                .map_or_else(String::new, |device| format!("; they change {device}"));
            format!("Run the commands on {host}, with its names for its devices{changed}.")
        }
        Advice::Empty => "The partition holds no data.".to_owned(),
        Advice::NoneKeepsData { device, plan } => format!(
            "Plumb prints no commands: every fix destroys the data on {device}. `plumb plan {plan}` prints the steps, which need a \
             backup."
        ),
        Advice::AssumedStart {
            planned_bytes,
            is_reduced,
        } => {
            let why = if *is_reduced {
                " (a wider one leaves no room)"
            } else {
                ""
            };
            format!(
                "Nothing states the unit of the disk, so the start is planned on {planned_bytes}{why}, a multiple of every block, \
                 unit and chunk of a power of two up to it."
            )
        }
        Advice::NoRemedy {
            device,
            plan,
            obstacle,
        } => action::no_remedy(device, plan, obstacle),
        Advice::Recommended { harm, title } => format!("Recommended: {harm} ({title})."),
        Advice::Constraint { text } => ended(capital(text)),
    }
}

/// A sentence with its full stop.
fn ended(words: String) -> String {
    if words.ends_with(['.', '?', '!']) {
        words
    } else {
        words + "."
    }
}
