//! Why a move stops. Whatever it is, the journal knows how far it came.

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
        /// Where.
        at: u64,
        /// How many.
        len: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The disk could not be written.
    #[error("{len} bytes at byte {at} of the disk cannot be written")]
    Write {
        /// Where.
        at: u64,
        /// How many.
        len: u64,
        /// What the system said.
        source: io::Error,
    },
    /// What was written could not be made durable.
    #[error("the disk cannot make durable what was written to it")]
    Flush {
        /// What the system said.
        source: io::Error,
    },
    /// Something else has written where only the move may.
    #[error(
        "byte {at} of the disk: found neither what was there when the move began nor what the move writes; \
         somebody else has written it"
    )]
    Changed {
        /// Where.
        at: u64,
    },
    /// A rollback would bring back over newer data what the partition began with.
    #[error(
        "byte {at} of the disk: the partition has come back at its new place, and somebody has used it there since: \
         it cannot go back any more; resume ends the move where it is"
    )]
    Used {
        /// Where.
        at: u64,
    },
    /// Bytes of the partition cannot be read, or are not those that the journal has the sum of.
    #[error("of the partition {}", list(ranges))]
    Lost {
        /// Which, counted from the first byte of the partition.
        ranges: Vec<LostRange>,
    },
    /// No copy of the label can be read in full.
    #[error("byte {at} of the disk, in its label, cannot be read, and there is no other copy")]
    LabelUnreadable {
        /// Where.
        at: u64,
    },
    /// Bytes of somebody else cannot be read, and lie in a block that has to be written.
    #[error(
        "{len} bytes at byte {at} of the disk cannot be read: they lie outside of the partition, in a block that is written with \
         it or with the label; write them from a copy first"
    )]
    Bystander {
        /// Where.
        at: u64,
        /// How many.
        len: u64,
    },
    /// What was read again is not what was written.
    #[error("{len} bytes at byte {at} of the disk: found other data than were written there")]
    NotAsWritten {
        /// Where.
        at: u64,
        /// How many.
        len: u64,
    },
    /// A write to a place that is not one of the move.
    #[error(
        "{len} bytes at byte {at} of the disk: the plan of the move names no such place to write, and nothing was written there"
    )]
    Elsewhere {
        /// Where.
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
