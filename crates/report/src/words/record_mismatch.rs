//! `record-mismatch` in words.

use plumb_geometry::{Bounds, group_digits};
use plumb_model::Target;
use plumb_model::facts::{Keeper, PagesAndRecords, RecordMismatch, RequestsAndRecords};

use super::phrase::{counted, interval};
use super::{Sentences, target};
use crate::format::{count_within, factor_within};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &RecordMismatch) -> Sentences {
    match facts {
        RecordMismatch::Requests(facts) => of_requests(on, facts),
        RecordMismatch::Layout(facts) => of_layout(on, facts),
    }
}

fn of_requests(on: &Target, facts: &RequestsAndRecords) -> Sentences {
    let mut sentences = Sentences::new(format!(
        "{} requests to {} cover a record of {} only in part.",
        counted(&facts.counted),
        target::name(on),
        facts.record_bytes
    ));
    sentences.explanation.extend(interval(&facts.counted));
    let moved = |words: &str, value: Option<Bounds<f64>>| {
        let value = value.map(|value| factor_within(value, 1));
        value.map(|value| format!("{words} move up to {value} bytes for each byte asked for."))
    };
    let is_size_right = facts
        .commonest
        .is_some_and(|commonest| commonest.len_bytes == facts.record_bytes);
    sentences
        .and(moved("Reads", facts.read_amplification))
        .and(moved("Writes", facts.write_amplification))
        .and((facts.following.low > 0).then(|| {
            format!(
                "{} of them follow another request without a gap: a cache may make whole records of those.",
                count_within(facts.following)
            )
        }))
        .and(facts.commonest.map(|commonest| {
            format!(
                "The commonest request has {} ({} I/O).",
                commonest.len_bytes,
                group_digits(commonest.ios)
            )
        }))
        .and(is_size_right.then(|| {
            "That is the size of a record: its place in the file does not fit, not its size.".to_owned()
        }))
        .and(facts.commonest.map(|_| {
            "This is an upper bound: a cache may hold the record already. `plumb replay` or `plumb compare` can prove the gain."
                .to_owned()
        }))
}

fn of_layout(on: &Target, facts: &PagesAndRecords) -> Sentences {
    let name = target::name(on);
    let summary = format!(
        "{name} keeps pages of {} in {} of {}.",
        facts.page_bytes,
        keeper(facts.keeper),
        facts.record_bytes
    );
    Sentences::new(summary)
        .and(format!(
            "A page that is not cached reads up to {:.1} bytes for each byte asked for, and a write reads as much before it \
             writes as much.",
            facts.read_amplification
        ))
        .say(match facts.keeper {
            Keeper::Records => {
                "Set the record size to the page before the files are written: existing files keep theirs until they are \
                 written again."
            }
            Keeper::VolumeBlocks => {
                "The block of a volume is fixed at its creation: create a volume with the page as its block, and copy the \
                 data."
            }
            Keeper::Blocks => {
                "Create the file system with blocks and fragments of the page, or mount it for direct I/O."
            }
        })
}

/// The keeper of pages.
pub(super) const fn keeper(keeper: Keeper) -> &'static str {
    match keeper {
        Keeper::Records => "records",
        Keeper::VolumeBlocks => "volume blocks",
        Keeper::Blocks => "blocks",
    }
}
