//! What the disks of this host receive, as it happens: programs in the kernel sum up every request where it passes, and
//! this crate makes the profile of it that a trace would give.
//!
//! Needs CAP_BPF and CAP_PERFMON. With `sys` the only crate with `unsafe`: it maps memory that the kernel writes.

mod abi;
mod block;
mod devices;
mod difference;
mod error;
mod kernel;
mod program;
mod shared;

pub use block::{Block, Options};
pub use devices::{Device, disk_of, handed_on_to, name_of};
pub use difference::{Misses, Process, Reading};
pub use error::CaptureError;
pub use program::Attached;
