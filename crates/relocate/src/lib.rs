//! Writes layouts: labels of disks, and the data of a partition moved to where it belongs, so that a crash at any point
//! loses no byte. The only crate that writes either.
//!
//! - [`labels`]: a partition elsewhere, a new label, a mended one; written so that the way back is saved first
//! - [`moving`]: the move, its rollback, and the plan of both
//! - [`preflight`]: what has to hold before a move, and what shows that a disk is the one of a move
//! - [`journal`]: the log that makes them safe
//! - [`disk`]: what they work on; [`raw`]: a real one, and a real journal
//! - [`signatures`]: what has to be hidden
//! - [`marker`]: what stands in the place of a signature meanwhile
//! - [`mod@fix_ups`]: what file systems note of their place; [`grub`]: what a boot loader finds by its sectors

#![forbid(unsafe_code)]

pub mod disk;
pub mod fix_ups;
pub mod grub;
pub mod journal;
pub mod labels;
pub mod marker;
pub mod moving;
mod mutation;
mod offset;
pub mod preflight;
pub mod raw;
pub mod signatures;
#[cfg(test)]
mod sim;
mod unit;

pub use disk::{Disk, JOURNAL_BLOCK_BYTES_MIN, JournalStore};
pub use journal::{Ending, JournalError};
pub use marker::Marker;
pub use moving::{Move, MoveError, Plan, Progress, Stage, Status};
pub use offset::{DiskOffset, PartOffset};
pub use preflight::{Checked, Direction};
pub use raw::{JournalFile, Raw};
pub use unit::Unit;
