//! Writes layouts: labels of disks, and the data of a partition moved to where it belongs, so that a crash at any point
//! loses no byte. The only crate that writes either.
//!
//! - [`moving`]: the move, its rollback, and the plan of both
//! - [`journal`]: the log that makes them safe
//! - [`disk`]: what they work on
//! - [`signatures`]: what has to be hidden
//! - [`marker`]: what stands in the place of a signature meanwhile

#![forbid(unsafe_code)]

pub mod disk;
pub mod journal;
pub mod marker;
pub mod moving;
mod mutation;
pub mod signatures;
#[cfg(test)]
mod sim;
mod unit;

pub use disk::{Disk, JournalStore};
pub use journal::{Ending, JournalError};
pub use marker::Marker;
pub use moving::{Move, MoveError, Plan, Progress, Stage, Status};
pub use unit::Unit;
