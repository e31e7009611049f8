//! The journal of a move: a log of numbered records, each with the sum of the one before it, and a slot for the batch
//! that is being written.
//!
//! Every record begins on a block of its own, so that no write can spoil one that is durable already, and is durable
//! before the next one is written. So at most the last record can be torn: one that cannot be read with good ones
//! behind it is damage, and nothing is done then.

mod code;
mod error;
mod fold;
mod log;
pub(crate) mod record;
mod sum;

pub use error::JournalError;
pub(crate) use fold::{MoveState, PendingImage, Unproven};
pub(crate) use log::{Journal, needed_bytes};
pub use log::{lengths, write_unchecked};
pub use record::Ending;
pub(crate) use record::{Image, JournalRecord, LossStep, Turn};
pub(crate) use sum::{Sums, sum};
