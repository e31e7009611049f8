//! Why a partition is not moved, or not further.

use std::io;

use plumb_relocate::MoveError;
use plumb_relocate::labels::hidden::LabelMoveError;
use thiserror::Error;

use crate::failure::Failure;

/// Why; each names what it is about.
#[derive(Debug, Error)]
pub enum MoveRefused {
    /// It is used.
    #[error("{partition}: nothing was written: {}", users.join("; "))]
    InUse {
        /// The partition.
        partition: String,
        /// Who uses it.
        users: Vec<String>,
    },
    /// It is no partition.
    #[error("{name} is {found}, expected a partition of a disk: /dev/sdb1")]
    NotAPartition {
        /// What was named.
        name: String,
        /// What it is.
        found: String,
    },
    /// Something that a move cannot keep.
    #[error("{partition}: {why}")]
    Refused {
        /// The partition.
        partition: String,
        /// Why.
        why: String,
    },
    /// The label cannot go along.
    #[error("{partition}")]
    Label {
        /// The partition.
        partition: String,
        /// Why.
        source: LabelMoveError,
    },
    /// The disk cannot be read.
    #[error("{partition}: byte {at} of its disk cannot be read: nothing was written")]
    Unreadable {
        /// The partition.
        partition: String,
        /// Where.
        at: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The journal's place.
    #[error("{path}: no place for a journal: {why}")]
    Place {
        /// The file.
        path: String,
        /// Why.
        why: String,
    },
    /// The journal's file.
    #[error("{path}: the journal cannot be opened")]
    Journal {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// What the move says.
    #[error("{name}")]
    Move {
        /// The partition or the journal.
        name: String,
        /// Why.
        source: MoveError,
    },
    /// Another disk than the move was begun on.
    #[error("{device}: found {found}, expected {expected}: the move was begun on another disk")]
    OtherDisk {
        /// The disk.
        device: String,
        /// What it is.
        found: String,
        /// What it should be.
        expected: String,
    },
}

impl From<MoveRefused> for Failure {
    fn from(error: MoveRefused) -> Failure {
        Failure::failed(&error)
    }
}
