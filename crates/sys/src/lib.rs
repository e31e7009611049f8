//! Requests to the Linux kernel that files do not answer: ioctls on block devices, the device mapper, NVMe and files.
//! And the parts of direct I/O: aligned memory, a ring, targets opened for it.
//!
//! Requests only read. Structures go back as plain Rust values, or as the bytes that a drive returned, for code that
//! needs no privileges and can be tested anywhere. The `unsafe` for that is in `ioctl.rs`, except for the statements,
//! beside each structure, that the kernel stays inside it; that of I/O is in `memory.rs`, `aligned.rs` and `ring.rs`,
//! that of handlers in `signals.rs`, that of the calendar in `local_time.rs`. Writes go only through a target that was opened for writing, to files that
//! [`new_file`] makes, and by [`direct`] and [`partitions`], which follow their callers without checks: only `relocate`
//! calls them.
//!
//! - [`directory`]: small files below a root that symbolic links cannot leave
//! - [`file_tree`]: the same for files in memory, which an archive had
//! - [`block`]: a block device opened for reading, its size and queue limits
//! - [`device_mapper`]: tables of mapped devices, without the keys of encrypted ones
//! - [`mod@nvme`] asks a drive to identify itself
//! - [`scsi`]: READ CAPACITY(16), GET LBA STATUS and pages of vital product data
//! - [`extents`]: positions of a file's bytes on its device
//! - [`io_target`]: a device or file opened for a measurement; [`mod@openers`]: other processes with it open
//! - [`named_file`]: a file that somebody named, opened once, with how far its owners vouch for it
//! - [`new_file`]: a file made beside its name, which it gets when it is complete; [`signals`]: early ends of this
//!   program
//! - [`user`]: the user that this process works for; [`local_time`]: the calendar of its place
//! - [`server`]: how long the server of a file takes to answer
//! - [`ring`]: I/O by io_uring; [`blocking`]: the same by blocking I/O; [`memory`]: their buffers
//! - [`direct`]: a disk opened past the page cache; [`partitions`]: those that the kernel knows

mod aligned;
pub mod block;
pub mod blocking;
pub mod device_mapper;
pub mod direct;
pub mod directory;
pub mod error;
pub mod extents;
pub mod file_tree;
pub mod io_target;
mod ioctl;
mod kind;
pub mod local_time;
pub mod memory;
pub mod named_file;
pub mod new_file;
pub mod nvme;
pub mod openers;
pub mod partitions;
pub mod ring;
pub mod scsi;
pub mod server;
pub mod signals;
pub mod user;

pub use aligned::AlignedBuffer;
pub use block::{BlockDevice, Limits};
pub use blocking::Blocking;
pub use device_mapper::{DeviceMapper, Mapped, MappedTarget};
pub use direct::{Access, DirectDisk};
pub use directory::Directory;
pub use error::SysError;
pub use extents::{FileExtent, FileExtents};
pub use file_tree::{FileTree, TreeError};
pub use io_target::{Durability, FileId, IoTarget};
pub use memory::MemoryShape;
pub use named_file::{Doubt, FileUse, NamedFile, doubt_of_directory};
pub use new_file::{FileContent, NameRefused, NewFile, must_be_own_in_public};
pub use openers::{Opener, openers, openers_of_any, writers_of_any};
pub use partitions::{KernelPartition, Sharer};
pub use ring::{Completion, Ring};
pub use rustix::io::Errno;

/// Lets this thread sleep as exactly as the machine can, where the system would save power by waking it late.
pub fn sleep_exactly() {
    // If that is refused, it sleeps less exactly.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}
