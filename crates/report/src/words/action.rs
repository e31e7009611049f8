//! The effects of actions, the steps before them, and the model's result for a remedy.

use plumb_model::{
    Class, Effect, Finding, Measurement, Obstacle, Place, Precondition, Remedy, RestsOn,
};

use super::target;
use crate::format::percent;

/// The risk of a command, in a clause.
#[must_use]
pub fn risk(effect: Effect, risk: Option<&str>) -> String {
    match (effect, risk) {
        (Effect::ReadsOnly, _) => "reads only".to_owned(),
        (Effect::WritesFile, _) => "writes a file; keep it on another disk".to_owned(),
        (_, Some(risk)) => format!("risk: {risk}"),
        (Effect::ChangesSetting, None) => "changes a setting".to_owned(),
        (Effect::MovesDataCrashSafely, None) => "moves data; a crash loses nothing".to_owned(),
        (Effect::MovesData, None) => "moves data; a crash may lose them".to_owned(),
        (Effect::DestroysData, None) => "destroys the data".to_owned(),
    }
}

/// The step before, as an instruction.
#[must_use]
pub fn precondition(first: &Precondition) -> String {
    match first {
        Precondition::Unmount { mount } => format!("Unmount {mount} first."),
        Precondition::BootOtherMedia => {
            "The root file system is on it: boot from other media first, such as a live system."
                .to_owned()
        }
        Precondition::Release { volume } => {
            format!("{volume} uses it: stop {volume}, or take it away, first.")
        }
        Precondition::Backup { device } => {
            format!("Back up {device} first, and compare the backup with it.")
        }
        Precondition::OtherPartition => {
            "Make a partition of another disk first, at least as long.".to_owned()
        }
    }
}

/// The model's result for the remedy of a finding, and the steps before it.
pub(super) fn sentences(finding: &Finding) -> Vec<String> {
    match finding.recommended() {
        Some(remedy) => {
            let first = remedy.first.iter().map(precondition);
            first.chain([proof(&remedy.class)]).collect()
        }
        None => finding
            .remedies
            .first()
            .map(not_recommended)
            .into_iter()
            .collect(),
    }
}

fn proof(class: &Class) -> String {
    match class {
        Class::Proven { rests_on: None } => {
            "The model of the stack shows that this removes the finding and makes nothing worse."
                .to_owned()
        }
        Class::Proven {
            rests_on: Some(RestsOn::Grid { what, on }),
        } => format!(
            "The model of the stack shows that this removes the finding and makes nothing worse, as far as the {} of {on} is the \
             whole truth.",
            what.text()
        ),
        Class::Proven {
            rests_on: Some(RestsOn::IoSize { bytes }),
        } => format!(
            "The model of the stack shows that this removes the finding and makes nothing worse, for I/O of {bytes} (assumed)."
        ),
        Class::Partial { now, remains } => format!(
            "This removes a part only: {} of {} remains.",
            percent(*remains),
            percent(*now)
        ),
        Class::NeedsMeasurement { with } => format!(
            "Only a measurement shows the gain: run {} before and after.",
            measured_by(*with)
        ),
    }
}

fn measured_by(with: Measurement) -> &'static str {
    match with {
        Measurement::Replay => "`plumb replay`",
        Measurement::Bench => "`plumb bench`",
    }
}

/// The reason why the best way is not recommended, and the user's choice.
fn not_recommended(best: &Remedy) -> String {
    match (&best.class, best.keeps_data, best.place) {
        (Class::Proven { .. }, false, Place::MayHoldData) => {
            "A change that removes it is proven, and destroys the data: decide whether it is worth a restore from a backup."
                .to_owned()
        }
        (class, ..) => proof(class),
    }
}

/// Why the way that suggests itself is no remedy.
pub(super) fn no_remedy(device: &str, plan: &str, obstacle: &Obstacle) -> String {
    let why = match obstacle {
        Obstacle::Remains => "the finding would remain".to_owned(),
        Obstacle::BecomesUnknown => "nobody could tell whether the finding remains".to_owned(),
        Obstacle::Worse {
            rule,
            target: on,
            severity: Some(severity),
        } => format!(
            "it would bring about {rule} ({}) of {}",
            severity.word(),
            target(on)
        ),
        Obstacle::Worse {
            rule,
            target: on,
            severity: None,
        } => format!("nobody could tell about {rule} of {} any more", target(on)),
        Obstacle::NotModelled => "the model of the stack does not describe the change".to_owned(),
        Obstacle::NotJudged => {
            return format!(
                "Plumb prints no commands: too many remedies to prove at once. Run `plumb check` on {device} alone."
            );
        }
    };
    format!("Plumb prints no commands: `plumb plan {plan}` would change {device}, and {why}.")
}
