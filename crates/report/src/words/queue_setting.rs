//! `queue-setting` in words.

use plumb_model::Target;
use plumb_model::facts::{BadSetting, QueueSetting};

use super::phrase::capital;
use super::{Sentences, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &QueueSetting) -> Sentences {
    let name = target::name(on);
    let mut settings = facts.settings.iter();
    let first = settings.next();
    let summary = first.map_or_else(
        || format!("A setting of the queue of {name} slows its I/O."),
        |first| format!("{} {}.", capital(what(first)), said(first, &name)),
    );
    let mut sentences = Sentences::new(summary);
    sentences.explanation.extend(first.map(meaning));
    for setting in settings {
        let words = format!(
            "{} {}. {}",
            capital(what(setting)),
            said(setting, &name),
            meaning(setting)
        );
        sentences.explanation.push(words);
    }
    sentences.say(
        "Settings of a queue change at once and without risk to data. Put them into a udev rule, or they are lost at the next \
         boot.",
    )
}

const fn what(setting: &BadSetting) -> &'static str {
    match setting {
        BadSetting::ReadAhead { .. } => "read-ahead",
        BadSetting::Request { .. } => "requests",
        BadSetting::Scheduler { .. } => "the scheduler",
    }
}

fn said(setting: &BadSetting, name: &str) -> String {
    match setting {
        BadSetting::ReadAhead { bytes, .. } => format!("of {name} is {bytes}"),
        BadSetting::Request {
            bytes,
            hardware_bytes,
            ..
        } => format!("to {name} are cut at {bytes}, and its hardware takes {hardware_bytes}"),
        BadSetting::Scheduler {
            name: scheduler, ..
        } => format!("of {name} is {scheduler}, and the drive has no head"),
    }
}

fn meaning(setting: &BadSetting) -> String {
    match setting {
        BadSetting::ReadAhead { most_bytes, .. } => format!(
            "Each small sequential read may bring in as much; more than {most_bytes} serves no stream."
        ),
        BadSetting::Request { .. } => "Large I/O become many commands.".to_owned(),
        BadSetting::Scheduler { .. } => {
            "It costs time for each I/O and limits the queue depth; none or mq-deadline suits most loads better.".to_owned()
        }
    }
}
