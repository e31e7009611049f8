//! Whether a move on a disk has not ended: then its label is the move's, and no other fix may change it.

use plumb_geometry::Extent;
use plumb_label::{Label, PartId};
use plumb_relocate::Marker;

use super::error::FixError;
use super::moving::{marker_at_ends, moving_part};
use super::subject::Subject;

/// What a disk shows of a move that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The entry of type *moving*, with its first byte.
    pub entry: Option<(PartId, u64)>,
    /// A mark in a partition, with its first byte.
    pub mark: Option<(u64, Marker)>,
}

impl Unfinished {
    /// Looks at the label, and for marks where most signatures are: at the ends of its partitions.
    fn on(subject: &Subject, label: &Label) -> Option<Unfinished> {
        let entry = moving_part(label).map(|part| (part.id, part.extent.start().0));
        let mark = marker_at_ends(subject, label.partitions.iter().map(|part| part.extent));
        (entry.is_some() || mark.is_some()).then_some(Unfinished { entry, mark })
    }

    /// In words: what was found where, and where the journal was when the move began.
    pub fn text(&self) -> String {
        let entry = self
            .entry
            .map(|(part, at)| format!("{part} of type moving at byte {at}"));
        let mark = self
            .mark
            .as_ref()
            .map(|(at, _)| format!("the mark of a move at byte {at}"));
        let found: Vec<String> = entry.into_iter().chain(mark).collect();
        let journal = match &self.mark {
            Some((_, marker)) if !marker.path.is_empty() => {
                format!("its journal is {}", marker.path)
            }
            Some((_, marker)) => format!(
                "its journal is {}, of a path too long to be noted",
                marker.journal
            ),
            None => "no mark names its journal".to_owned(),
        };
        format!(
            "found {}, expected no move that has not ended; {journal}",
            found.join(" and ")
        )
    }
}

/// That no move has stopped there in its middle: another label, also an older one, would take its places from it.
///
/// # Errors
/// When one has.
pub fn must_be_none(subject: &Subject, label: Option<&Label>) -> Result<(), FixError> {
    match label.and_then(|label| Unfinished::on(subject, label)) {
        Some(unfinished) => Err(FixError::Unfinished {
            device: subject.device(),
            unfinished,
        }),
        None => Ok(()),
    }
}

/// The same of a place that a partition is to have: the move may have lost its label.
///
/// # Errors
/// When there is a mark.
pub fn must_be_none_at(subject: &Subject, place: Extent) -> Result<(), FixError> {
    match marker_at_ends(subject, [place]) {
        Some(mark) => {
            let unfinished = Unfinished {
                entry: None,
                mark: Some(mark),
            };
            Err(FixError::Unfinished {
                device: subject.device(),
                unfinished,
            })
        }
        None => Ok(()),
    }
}
