//! The state of a move, for readers that write nothing.

use std::ops::Range;

use super::loss::LostRange;
use super::plan::meet;
use super::script::Stage;
use super::{MoveError, Plan, Progress};
use crate::disk::JournalStore;
use crate::journal::{Ending, Image, Journal, JournalError, MoveState, PendingImage};
use crate::mutation::Mutations;

/// The content of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The plan.
    pub plan: Plan,
    /// How far it is; the last window may have to be copied again.
    pub progress: Progress,
    /// Whether the partition may be back at its new place already, so that somebody may have used it there: the write
    /// of its deciding signature has begun. A rollback would destroy newer data.
    pub may_be_in_use: bool,
    /// Blocks that are about to be written, or whose write was interrupted: their content proves nothing.
    pub torn: Option<Torn>,
    /// Bytes of the partition that could not be brought along, in order.
    pub lost: Vec<LostRange>,
    /// How it ended, if it did.
    pub ending: Option<Ending>,
}

/// Blocks whose write was begun, and may have been cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// Their first byte on the disk.
    pub at: u64,
    /// Their length.
    pub len: u64,
    /// Their new content; empty for data of the partition, which the journal's slot has.
    pub bytes: Vec<u8>,
}

impl Torn {
    fn in_state(state: &MoveState) -> Option<Torn> {
        let mend = state.mend.as_ref().map(|mend| Torn {
            at: mend.at,
            len: mend.bytes.len() as u64,
            bytes: mend.bytes.clone(),
        });
        state.pending.as_ref().map(Torn::by).or(mend)
    }

    fn by(pending: &PendingImage) -> Torn {
        let bytes = match &pending.image {
            Image::Inline(bytes) => bytes.clone(),
            Image::Slot { .. } => Vec::new(),
        };
        Torn {
            at: pending.at,
            len: pending.image.len_bytes(),
            bytes,
        }
    }

    /// Whether a byte of a range is one of them.
    #[must_use]
    pub fn meets(&self, range: &Range<u64>) -> bool {
        meet(&(self.at..self.at.saturating_add(self.len)), range)
    }
}

/// Reads a journal of a move that never began: its plan, with no step done. `None` if the move began.
///
/// # Errors
/// A file that is no journal, or is damaged.
pub fn never_begun<J: JournalStore>(store: J) -> Result<Option<Status>, MoveError> {
    let (_, state) = Journal::look(store, Mutations::default())?;
    if state.script.is_some() {
        return Ok(None);
    }
    let progress = Progress {
        is_back: false,
        stage: Stage::Hiding,
        bytes: 0,
        bytes_total: state.plan.len,
    };
    Ok(Some(Status {
        plan: state.plan,
        progress,
        may_be_in_use: false,
        torn: None,
        lost: Vec::new(),
        ending: None,
    }))
}

/// Reads a journal.
///
/// # Errors
/// A file that is no journal, is damaged, or of a move that never began.
pub fn status<J: JournalStore>(store: J) -> Result<Status, MoveError> {
    let (_, state) = Journal::look(store, Mutations::default())?;
    let Some(script) = &state.script else {
        return Err(JournalError::NotBegun.into());
    };
    let (bytes, bytes_total) = script.bytes_at(state.next);
    let stage = match state.ending {
        Some(_) => Stage::Done,
        None if !script.is_back() && script.is_behind_windows(state.next) => Stage::Verifying,
        None => script.stage(state.next),
    };
    let progress = Progress {
        is_back: script.is_back(),
        stage,
        bytes,
        bytes_total,
    };
    let begun = state.next + u64::from(state.pending.is_some());
    let may_be_in_use = !script.is_back()
        && match state.plan.signatures.is_empty() {
            // Without signatures only the label hides the content.
            true => script.label_changes_before(begun) > state.plan.hide.len(),
            // The signature that decides is revealed last.
            false => begun >= script.len(),
        };
    Ok(Status {
        progress,
        may_be_in_use,
        torn: Torn::in_state(&state),
        lost: state.lost_for_good(),
        ending: state.ending,
        plan: state.plan,
    })
}
