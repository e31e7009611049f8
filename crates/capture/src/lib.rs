//! What the disks of this host receive, and what processes ask of its file systems, as it happens: programs in the kernel
//! sum up every request, bio and call where it passes, and this crate makes the profile of it that a trace would give.
//!
//! Needs CAP_BPF and CAP_PERFMON. Where the kernel takes no programs, the block layers are watched by its trace events
//! instead, which needs root and costs more. With `sys` the only crate with `unsafe`: it maps memory that the kernel writes.

mod abi;
mod asked;
mod block;
mod devices;
mod difference;
mod error;
mod filter;
mod kernel;
mod layer;
mod program;
mod reading;
mod record;
mod shared;
mod silence;
mod tracefs;
mod vfs;

pub use asked::{AccessWay, Asker, CallKind, Calls, FileCalls, FileSystem};
pub use block::{BlockWatch, Layers, Options};
pub use devices::{Device, disk_of, is_bio_based, name_of, names_below};
pub use error::CaptureError;
pub use filter::Filter;
pub use program::Attached;
pub use reading::{Misses, Process, Reading};
pub use record::{Batches, DiskTally, PIDS_MAX, Record, RecordOptions, Recorder};
pub use vfs::{Vfs, write_out};
