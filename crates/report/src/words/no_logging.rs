//! `no-logging` in words.

use plumb_model::Target;
use plumb_model::facts::NoLogging;

use super::{Sentences, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &NoLogging) -> Sentences {
    let name = target::name(on);
    Sentences::new(if facts.is_switched_off {
        format!("{name} is mounted with nologging.")
    } else {
        format!("{name} is mounted without the option logging.")
    })
    .say("After a crash the whole file system is checked before it can be used; with a log that takes seconds.")
    .say("Mount it with logging: you can do that at any time, and undo it.")
}

/// Facts with every branch of the sentences.
#[cfg(test)]
pub(super) fn examples() -> Vec<plumb_model::Facts> {
    let example = |is_switched_off| {
        plumb_model::Facts::NoLogging(NoLogging {
            is_switched_off,
            source: None,
        })
    };
    [true, false].map(example).to_vec()
}
