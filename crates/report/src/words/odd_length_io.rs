//! `odd-length-io` in words.

use plumb_geometry::group_digits;
use plumb_model::Target;
use plumb_model::facts::OddLengthIo;

use super::phrase::{counted, interval};
use super::{Sentences, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &OddLengthIo) -> Sentences {
    let mut sentences = Sentences::new(format!(
        "The length of {} I/O on {} is no multiple of {}.",
        counted(&facts.counted),
        target::name(on),
        facts.unit_bytes
    ));
    sentences.explanation.extend(interval(&facts.counted));
    let odd: Vec<String> = facts
        .commonest
        .iter()
        .map(|length| format!("{} ({} I/O)", length.len_bytes, group_digits(length.ios)))
        .collect();
    sentences
        .and((!odd.is_empty()).then(|| format!("The commonest odd lengths: {}.", odd.join(", "))))
        .and(facts.is_seen.then(|| {
            "Moving a partition does not help: the application or file system asks in smaller units than the device keeps."
                .to_owned()
        }))
}
