//! Possible faults of a journal.

use std::io;

use crate::moving::plan::PlanError;

/// Why a journal cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file could not be read.
    #[error("journal: byte {at} cannot be read")]
    Read {
        /// The position in the file.
        at: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// The file could not be written.
    #[error("journal: byte {at} cannot be written")]
    Write {
        /// The position in the file.
        at: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// The writes could not be made durable.
    #[error("journal: cannot be made durable")]
    Sync {
        /// The error of the system.
        source: io::Error,
    },
    /// The disk of the file has not kept the write.
    #[error(
        "journal: byte {at}: found other bytes than were written there; the disk that it is on cannot be relied on"
    )]
    NotAsWritten {
        /// The position in the file.
        at: u64,
    },
    /// The file does not begin as a journal does.
    #[error(
        "no journal of a move: found no good record at byte 0; name the file that the move was begun with"
    )]
    None,
    /// There is a journal, and the move never began: the disk was not written to.
    #[error(
        "the move was never begun, and nothing was written to the disk: the journal can be removed"
    )]
    NotBegun,
    /// The file ends before its plan says that it does.
    #[error(
        "journal: found {found} bytes, expected {needed} or more: its end is missing, and the last records of the move may be missing too; nothing was changed"
    )]
    Cut {
        /// Bytes that the file had when it was made, at the least.
        needed: u64,
        /// Bytes that it has.
        found: u64,
    },
    /// A broken record with a good one after it.
    #[error(
        "journal: record {number} at byte {at}: {found}, expected {expected}; nothing was changed"
    )]
    Damaged {
        /// Its number, counted from 0.
        number: u64,
        /// The position in the file.
        at: u64,
        /// The value found.
        found: &'static str,
        /// The expected value.
        expected: &'static str,
    },
    /// A plan that nobody can have begun to carry out.
    #[error("journal: its plan is broken: {0}")]
    Plan(#[from] PlanError),
    /// The file is full.
    #[error("journal: {needed} bytes are needed, found {found}; make the file longer")]
    Full {
        /// Bytes that the file should have.
        needed: u64,
        /// Bytes that it has.
        found: u64,
    },
}
