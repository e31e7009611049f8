//! The reason why a move stops. In every case, the journal has its progress.

use std::io;

use super::loss::{LostRange, list};
use super::plan::{JournalId, PlanError};
use crate::journal::{Ending, JournalError};

/// Why a move could not be begun, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// The plan cannot be carried out, or not on this disk.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The file holds another journal than the one that was checked.
    #[error("found the journal {found}, expected {expected}, which was checked")]
    OtherJournal {
        /// Its name.
        found: JournalId,
        /// The name of the other one.
        expected: JournalId,
    },
    /// The disk could not be read.
    #[error("{len} bytes at byte {at} of the disk cannot be read")]
    Read {
        /// The position.
        at: u64,
        /// How many.
        len: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// The disk could not be written.
    #[error("{len} bytes at byte {at} of the disk cannot be written")]
    Write {
        /// The position.
        at: u64,
        /// How many.
        len: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// The writes could not be made durable.
    #[error("the disk cannot make the written data durable")]
    Flush {
        /// The error of the system.
        source: io::Error,
    },
    /// Something else has written where only the move may.
    #[error(
        "byte {at} of the disk: found neither the data from before the move nor the data that the move \
         writes; another writer has changed it"
    )]
    Changed {
        /// The position.
        at: u64,
    },
    /// A rollback would overwrite newer data with the original content of the partition.
    #[error(
        "byte {at} of the disk: the partition has come back at its new place, and somebody has used it there since: \
         it cannot go back any more; resume ends the move where it is"
    )]
    Used {
        /// The position.
        at: u64,
    },
    /// Bytes of the partition cannot be read, or are not those that the journal has the sum of.
    #[error("of the partition {}", list(ranges))]
    Lost {
        /// The ranges, counted from the first byte of the partition.
        ranges: Vec<LostRange>,
    },
    /// No copy of the label can be read in full.
    #[error("byte {at} of the disk, in its label, cannot be read, and there is no other copy")]
    LabelUnreadable {
        /// The position.
        at: u64,
    },
    /// Unreadable bytes of others in a block that has to be written.
    #[error(
        "{len} bytes at byte {at} of the disk cannot be read: they are outside of the partition, in a block that is written with \
         it or with the label; write them from a copy first"
    )]
    Bystander {
        /// The position.
        at: u64,
        /// How many.
        len: u64,
    },
    /// The bytes read again differ from the write.
    #[error("{len} bytes at byte {at} of the disk: found other data than were written there")]
    NotAsWritten {
        /// The position.
        at: u64,
        /// How many.
        len: u64,
    },
    /// A write to a place that is not one of the move.
    #[error(
        "{len} bytes at byte {at} of the disk: the plan of the move names no such place to write, and nothing was written there"
    )]
    Elsewhere {
        /// The position.
        at: u64,
        /// How many.
        len: u64,
    },
    /// There is nothing to go on with.
    #[error("the move has ended already: {}", match ending {
        Ending::Moved => "the partition is at its new place",
        Ending::RolledBack => "the partition is where it was",
    })]
    Ended {
        /// How.
        ending: Ending,
    },
    /// The move has stopped with an error before; it goes on when it is resumed from its journal.
    #[error("the move has stopped; resume it from its journal")]
    Stopped,
}
