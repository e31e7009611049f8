//! Where a move stands, for who asks and writes nothing.

use super::script::Stage;
use super::{MoveError, Plan, Progress};
use crate::disk::JournalStore;
use crate::journal::{Ending, Journal, JournalError};
use crate::mutation::Mutations;

/// What a journal says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// What was to be done.
    pub plan: Plan,
    /// How far it is; the last window may have to be copied again.
    pub progress: Progress,
    /// Whether the partition may have come back at its new place already, so that somebody may have used it there: what
    /// tells it there was begun to be written. A rollback would take from it what it has come to hold.
    pub may_be_in_use: bool,
    /// How it ended, if it did.
    pub ending: Option<Ending>,
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
            // Nothing but the label hides what has no signature.
            true => script.label_changes_before(begun) > state.plan.hide.len(),
            // The signature that decides is revealed last.
            false => begun >= script.len(),
        };
    Ok(Status {
        progress,
        may_be_in_use,
        ending: state.ending,
        plan: state.plan,
    })
}
