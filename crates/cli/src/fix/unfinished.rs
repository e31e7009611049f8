//! Whether a move on a disk has not ended: then its label is the move's, and no other fix may change it.

use plumb_geometry::Extent;
use plumb_label::Label;
use plumb_relocate::preflight::{Unfinished, mark_in};

use super::error::FixError;
use super::subject::Subject;
use crate::failure::Failure;

/// In words: the evidence with its place, and the path of the journal at the start of the move.
pub fn text(unfinished: &Unfinished) -> String {
    let entry = unfinished
        .entry
        .map(|(part, at)| format!("{part} of type moving at byte {at}"));
    let mark = unfinished
        .mark
        .as_ref()
        .map(|(at, _)| format!("the mark of a move at byte {at}"));
    let found: Vec<String> = entry.into_iter().chain(mark).collect();
    let journal = match &unfinished.mark {
        Some((_, marker)) if !marker.path.is_empty() => {
            format!("the mark names the journal {}", marker.path)
        }
        Some((_, marker)) => format!(
            "the mark names the journal {}, whose path is too long for it",
            marker.journal
        ),
        None => "no mark names its journal".to_owned(),
    };
    format!(
        "found {}, expected no move that has not ended; {journal}",
        found.join(" and ")
    )
}

/// Whether marks on the disk are to be ignored: somebody has named the disk for that.
///
/// # Errors
/// When the name is that of another disk.
pub fn ignores_marks(subject: &Subject, ignored: Option<&str>) -> Result<bool, Failure> {
    match ignored {
        None => Ok(false),
        Some(name) if subject.has_name(name) => Ok(true),
        Some(name) => Err(Failure::usage(format!(
            "--ignore-marker: found `{name}`, expected `{}`, the disk whose marks would be ignored",
            subject.name
        ))),
    }
}

/// That no move has stopped there in its middle: another label, also an older one, would take its places from it.
///
/// # Errors
/// When one has, unless the disk is the one whose marks are `ignored`; an entry of type *moving* is never ignored.
pub fn must_be_none(
    subject: &Subject,
    label: Option<&Label>,
    ignored: Option<&str>,
) -> Result<(), Failure> {
    let ignores_marks = ignores_marks(subject, ignored)?;
    match label
        .and_then(|label| Unfinished::on(&subject.raw(), label, block_of(subject), ignores_marks))
    {
        Some(unfinished) => Err(FixError::Unfinished {
            device: subject.device(),
            name: subject.name.clone(),
            unfinished: Box::new(unfinished),
        }
        .into()),
        None => Ok(()),
    }
}

/// The same of a place that a partition is to have: the move may have lost its label.
///
/// # Errors
/// When there is a mark, unless the disk is the one whose marks are `ignored`.
pub fn must_be_none_at(
    subject: &Subject,
    place: Extent,
    ignored: Option<&str>,
) -> Result<(), Failure> {
    if ignores_marks(subject, ignored)? {
        return Ok(());
    }
    match mark_in(&subject.raw(), block_of(subject), [place]) {
        Some(mark) => Err(FixError::Unfinished {
            device: subject.device(),
            name: subject.name.clone(),
            unfinished: Box::new(Unfinished {
                entry: None,
                mark: Some(mark),
            }),
        }
        .into()),
        None => Ok(()),
    }
}

fn block_of(subject: &Subject) -> u32 {
    subject.disk.limits().logical_block_bytes
}
