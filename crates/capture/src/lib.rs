//! The I/O of this host's disks, and the requests of processes to its file systems, live: programs in the kernel count
//! every request, bio and call at once, and this crate makes the profile that a trace would give.
//!
//! Needs CAP_BPF and CAP_PERFMON. If the kernel accepts no programs, its trace events watch the block layers instead,
//! which needs root and costs more. Only this crate and `sys` contain `unsafe`: it
//! maps memory that the kernel writes.

mod abi;
mod asked;
mod block;
mod clock;
mod devices;
mod difference;
mod error;
mod filter;
mod kernel;
mod layer;
mod program;
mod reading;
mod record;
mod sender_names;
mod shared;
mod silence;
mod sizes;
mod tracefs;
mod vfs;

pub use asked::{AccessWay, Asker, CallKind, Calls, FileCalls, FileSystem};
pub use block::{BlockWatch, Layers, Options, OwnReads};
pub use devices::{Device, disk_of, is_bio_based, name_of, names_below, number_of};
pub use error::CaptureError;
pub use filter::Filter;
pub use plumb_model::result::record::DiskTally;
pub use plumb_model::result::watch::{MappedPages, Misses};
pub use program::Attached;
pub use reading::{ALIGNMENTS, Process, Reading, alignment_of};
pub use record::{Batches, DiskAnswers, PIDS_MAX, Record, RecordOptions, Recorder};
pub use sizes::WatchMemory;
pub use vfs::{Vfs, write_out};
