//! What Plumb asks the Linux kernel that no file tells: ioctls on block devices, the device mapper, NVMe and files.
//!
//! Everything here reads but [`direct`] and [`partitions`], which do what their callers say and check nothing of it:
//! `relocate` is the one that calls them. Structures go back as plain Rust values, or as the bytes
//! that a drive returned, to be taken apart by code that needs no privileges and can be tested anywhere. The `unsafe` is
//! in `ioctl.rs` but for the statements, beside each structure, that the kernel stays inside it.
//!
//! - [`directory`]: small files below a root that symbolic links cannot leave
//! - [`block`]: a block device opened for reading, its size and queue limits
//! - [`device_mapper`]: tables of mapped devices, without the keys of encrypted ones
//! - [`mod@nvme`] asks a drive to identify itself
//! - [`scsi`]: READ CAPACITY(16) and pages of vital product data
//! - [`extents`]: where the bytes of a file lie on its device
//! - [`direct`]: a disk opened past the page cache; [`partitions`]: those that the kernel knows

pub mod block;
pub mod device_mapper;
pub mod direct;
pub mod directory;
pub mod error;
pub mod extents;
mod ioctl;
pub mod nvme;
pub mod partitions;
pub mod scsi;

pub use block::{BlockDevice, Limits};
pub use device_mapper::{DeviceMapper, Mapped, Target};
pub use direct::{Access, DirectDisk};
pub use directory::Directory;
pub use error::SysError;
pub use extents::{FileExtent, FileExtents};
pub use partitions::KernelPartition;
