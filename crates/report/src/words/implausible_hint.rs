//! `implausible-hint` in words.

use plumb_model::Target;
use plumb_model::facts::{Hint, HintDoubt, ImplausibleHint};

use super::phrase::{capital, place};
use super::{Sentences, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &ImplausibleHint) -> Sentences {
    let name = target::name(on);
    let summary = match facts.hints.as_slice() {
        [hint, ..] => format!(
            "The {} of {} that {name} states cannot be true.",
            hint.what.text(),
            hint.stated_bytes
        ),
        [] => format!("A size that {name} states cannot be true."),
    };
    let mut sentences = Sentences::new(summary);
    sentences.explanation.extend(facts.hints.iter().map(reason));
    sentences.say(
        "Plumb does not use it, but other tools may: give partitioning tools, pvcreate and mkfs their alignment and stripe \
         yourself.",
    )
}

fn reason(hint: &Hint) -> String {
    let what = capital(hint.what.text());
    format!(
        "{what} of {}: {}.",
        place(hint.stated_bytes),
        doubt(&hint.doubt)
    )
}

fn doubt(doubt: &HintDoubt) -> String {
    match doubt {
        HintDoubt::Bridge => "USB bridges state 65,535 sectors if they do not know".to_owned(),
        HintDoubt::TooLarge { most_bytes } => {
            format!("no device needs I/O of more than {most_bytes} to be at its best")
        }
        HintDoubt::NoMultiple { of, unit_bytes } => {
            format!("it is no multiple of the {} of {unit_bytes}", of.text())
        }
        HintDoubt::OddSectors => "it is an odd number of sectors".to_owned(),
        HintDoubt::NotTheStripe {
            stripe_bytes,
            is_multiple_of_members,
        } => {
            let cause = if *is_multiple_of_members {
                "; the kernel took the least common multiple with those of its members"
            } else {
                ""
            };
            format!("the true stripe is {stripe_bytes}{cause}")
        }
        HintDoubt::Told { why } => super::doubt(why),
    }
}
