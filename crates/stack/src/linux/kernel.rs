//! Facts that no file contains: behind a trait, so that trees of files can be read without it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use plumb_sys::nvme::{IDENTIFY, Identify, identify};
use plumb_sys::{BlockDevice, DeviceMapper, FileExtents, Limits, Mapped, SysError, extents};
use thiserror::Error;

use super::answers::Refusal;
use super::guests::{self, GuestDisk};

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoAnswer {
    /// The files are those of another host.
    #[error("only the host itself can tell")]
    Elsewhere,
    /// The kernel said no.
    #[error(transparent)]
    Kernel(#[from] SysError),
    /// The kernel said no when its host was collected.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// The structures of an NVMe namespace and its controller, as the drive returned them.
#[derive(Clone, Debug)]
pub struct Identified {
    /// Identify Namespace (CNS 00h).
    pub namespace: Box<[u8; IDENTIFY]>,
    /// Identify Controller (CNS 01h), where it answered.
    pub controller: Option<Box<[u8; IDENTIFY]>>,
}

/// Answers by ioctl.
pub trait Kernel: Sync {
    /// The table of a mapped device.
    ///
    /// # Errors
    /// Without permission, or when the host is another one.
    fn table(&self, major: u32, minor: u32) -> Result<Mapped, NoAnswer>;

    /// The Identify data of an NVMe namespace, by its name below `/dev`.
    ///
    /// # Errors
    /// As [`Kernel::table`].
    fn identify(&self, device: &str) -> Result<Identified, NoAnswer>;

    /// Size and limits of a device that sysfs does not describe; by its name below `/dev`.
    ///
    /// # Errors
    /// As [`Kernel::table`].
    fn limits(&self, device: &str) -> Result<Limits, NoAnswer>;

    /// The extents of a file on the device of its file system.
    ///
    /// # Errors
    /// As [`Kernel::table`], and when the file system does not tell.
    fn extents(&self, path: &str, count_max: usize) -> Result<FileExtents, NoAnswer>;

    /// Disks of the guests that run on it; none where nobody can tell.
    fn guests(&self) -> Vec<GuestDisk> {
        Vec::new()
    }
}

/// Another host: no answers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Elsewhere;

impl Kernel for Elsewhere {
    fn table(&self, _: u32, _: u32) -> Result<Mapped, NoAnswer> {
        Err(NoAnswer::Elsewhere)
    }

    fn identify(&self, _: &str) -> Result<Identified, NoAnswer> {
        Err(NoAnswer::Elsewhere)
    }

    fn limits(&self, _: &str) -> Result<Limits, NoAnswer> {
        Err(NoAnswer::Elsewhere)
    }

    fn extents(&self, _: &str, _: usize) -> Result<FileExtents, NoAnswer> {
        Err(NoAnswer::Elsewhere)
    }
}

/// The kernel that this runs on; opened when first asked.
#[derive(Debug, Default)]
pub struct Live {
    mapper: OnceLock<Result<DeviceMapper, SysError>>,
}

fn node_of(device: &str) -> PathBuf {
    Path::new("/dev").join(device)
}

impl Kernel for Live {
    fn table(&self, major: u32, minor: u32) -> Result<Mapped, NoAnswer> {
        match self.mapper.get_or_init(DeviceMapper::open) {
            Ok(mapper) => Ok(mapper.table(major, minor)?),
            Err(error) => Err(error.clone().into()),
        }
    }

    fn identify(&self, device: &str) -> Result<Identified, NoAnswer> {
        let device = BlockDevice::open(&node_of(device))?;
        let namespace = identify(&device, Identify::Namespace)?;
        Ok(Identified {
            namespace,
            controller: identify(&device, Identify::Controller).ok(),
        })
    }

    fn limits(&self, device: &str) -> Result<Limits, NoAnswer> {
        Ok(BlockDevice::open(&node_of(device))?.limits()?)
    }

    fn extents(&self, path: &str, count_max: usize) -> Result<FileExtents, NoAnswer> {
        Ok(extents::of_file(Path::new(path), count_max)?)
    }

    fn guests(&self) -> Vec<GuestDisk> {
        guests::running()
    }
}
