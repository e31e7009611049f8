//! `too-few-disks` in words.

use plumb_geometry::plural;
use plumb_model::Target;
use plumb_model::facts::TooFewDisks;

use super::{Sentences, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &TooFewDisks) -> Sentences {
    let summary = format!(
        "{} needs {:.0} disk operations a second, and its {} give {:.0}.",
        target::name(on),
        facts.needed_ios_per_second,
        plural(facts.disks, "disk"),
        facts.given_ios_per_second
    );
    Sentences::new(summary)
        .and(facts.response_ns.map(|response| {
            format!(
                "At {:.0} % utilisation the mean response is {:.1} ms; an idle disk answers in {:.1} ms.",
                facts.utilisation * 100.0,
                response / 1e6,
                facts.idle_ns / 1e6
            )
        }))
        .and(wanted(facts))
        .say("Before you buy disks, look at the I/O: sequential or gathered writes may do with one.")
}

fn wanted(facts: &TooFewDisks) -> String {
    match (facts.wanted_disks, facts.wanted_margin) {
        (Some(disks), Some(margin)) => format!(
            "{} of this kind would do, with {:.0} % more than the need.",
            plural(disks, "disk"),
            margin * 100.0
        ),
        _ => {
            "No number of such disks answers within the limit: an idle one takes longer.".to_owned()
        }
    }
}
