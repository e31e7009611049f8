//! The references that the tests hold Plumb against: synthetic I/O with answers known in advance,
//! writers of foreign trace formats, converters, maps of layers byte by byte, an NVMe drive of chosen
//! Identify data, a file layer of SQLite whose writes fail, and checks of the machine's abilities.
//!
//! The crate knows nothing of Plumb's readers, and of Plumb uses the units of `geometry` alone. A
//! writer here follows the description of a format, so that a reader and its test cannot share one
//! mistake.
//!
//! Left out: anything that opens a device itself. Loop devices are left to losetup, guests to scripts.

// `faulty_vfs` alone allows itself more.
#![deny(unsafe_code)]

pub mod bad_block;
pub mod by_name;
pub mod cell_disk;
pub mod certificate;
pub mod cgroup;
pub mod charging;
pub mod convert;
pub mod event;
pub mod fake_sysfs;
#[allow(unsafe_code)]
pub mod faulty_vfs;
pub mod fleet;
pub mod hostile;
pub mod log_writes;
pub mod loop_device;
pub mod machine;
pub mod maps;
pub mod nvme_target;
pub mod opener;
pub mod require;
pub mod rng;
pub mod seeds;
pub mod slow_disk;
pub mod soft_partitions;
pub mod tempdir;
pub mod wait;
pub mod workload;
pub mod write;
pub mod zram;

pub use event::{SynthEvent, SynthOp};
pub use machine::Machine;
pub use require::{Capability, real_trace, real_traces};
pub use rng::Rng;
pub use tempdir::{TempFile, root_dir, temp_dir, temp_file};
pub use write::{EventSink, WriteError, WrittenCount, write_all};
