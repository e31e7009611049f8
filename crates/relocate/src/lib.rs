//! Writes layouts: labels of disks, and the data of a partition moved to its right place, so that a crash at any point
//! loses no byte. The only crate that writes either.
//!
//! - [`labels`]: a moved partition, a new label, a repaired one; the way back is saved before the write
//! - [`moving`]: the move, its rollback, and the plan of both
//! - [`preflight`]: the conditions of a move, and the evidence that a disk is the one of a move
//! - [`journal`]: the log that makes them safe
//! - [`disk`]: their devices; [`raw`]: a real disk, and a real journal
//! - [`signatures`]: the bytes to hide
//! - [`marker`]: the text that replaces a signature in the meantime
//! - [`mod@fix_ups`]: positions recorded by file systems; [`grub`]: sectors that a boot loader uses

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
