//! What Plumb asks the Linux kernel that no file tells: ioctls on block devices, the device mapper, NVMe and files.
//!
//! Everything here reads; nothing is written, loaded or changed. Structures go back as plain Rust values, or as the bytes
//! that a drive returned, to be taken apart by code that needs no privileges and can be tested anywhere. The `unsafe` is
//! in `ioctl.rs` but for the statements, beside each structure, that the kernel stays inside it.
//!
//! - [`directory`]: small files below a root that symbolic links cannot leave
//! - [`block`]: a block device opened for reading, its size and queue limits
//! - [`device_mapper`]: tables of mapped devices, without the keys of encrypted ones
//! - [`mod@nvme`] asks a drive to identify itself
//! - [`scsi`]: READ CAPACITY(16) and pages of vital product data
//! - [`extents`]: where the bytes of a file lie on its device

pub mod block;
pub mod device_mapper;
pub mod directory;
pub mod error;
pub mod extents;
mod ioctl;
pub mod nvme;
pub mod scsi;

pub use block::{BlockDevice, Limits};
pub use device_mapper::{DeviceMapper, Mapped, Target};
pub use directory::Directory;
pub use error::SysError;
pub use extents::{FileExtent, FileExtents};
