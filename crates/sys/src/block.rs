//! A block device opened for reading, and the kernel's facts about it by ioctl: for hosts without readable sysfs.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::ioctl::{Opcode, opcode};

use crate::error::{Asking, SysError};
use crate::ioctl::{Argument, ioctl};

/// Numbers from <linux/fs.h>; the kernel writes an `int` or `unsigned int` for each, and 64 bits for the size.
pub(crate) mod number {
    use super::{Opcode, opcode};
    pub(crate) const LOGICAL: Opcode = opcode::none(0x12, 104);
    pub(crate) const MINIMUM_IO: Opcode = opcode::none(0x12, 120);
    pub(crate) const OPTIMAL_IO: Opcode = opcode::none(0x12, 121);
    pub(crate) const ALIGNMENT: Opcode = opcode::none(0x12, 122);
    pub(crate) const PHYSICAL: Opcode = opcode::none(0x12, 123);
    pub(crate) const SIZE: Opcode = opcode::read::<usize>(0x12, 114);
}

/// A block device, open for reading only.
#[derive(Debug)]
pub struct BlockDevice {
    fd: OwnedFd,
    path: PathBuf,
}

/// Size and queue limits as the kernel states them, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Length of the device.
    pub size_bytes: u64,
    /// Smallest addressable block.
    pub logical_block_bytes: u32,
    /// Physical block.
    pub physical_block_bytes: u32,
    /// `minimum_io_size`.
    pub minimum_io_bytes: u32,
    /// `optimal_io_size`; 0 where none is stated.
    pub optimal_io_bytes: u32,
    /// First aligned byte of a disk, see `alignment_offset` in sysfs; -1 where the kernel gave up.
    pub alignment_offset_bytes: i32,
}

impl BlockDevice {
    /// Opens it. Nothing is read, and a device without a medium does not block.
    ///
    /// # Errors
    /// When it cannot be opened, or is something else than a block device.
    pub fn open(path: &Path) -> Result<BlockDevice, SysError> {
        let asking = Asking {
            path,
            asked: "opening it",
            capability: "CAP_DAC_OVERRIDE or the group disk",
        };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let fd = open(path, flags, Mode::empty()).map_err(|errno| asking.error(errno))?;
        let stat = fstat(&fd).map_err(|errno| asking.error(errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice {
            return Err(SysError::NotABlockDevice {
                path: path.to_owned(),
            });
        }
        Ok(BlockDevice {
            fd,
            path: path.to_owned(),
        })
    }

    /// The path that was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its size and limits.
    ///
    /// # Errors
    /// When the driver does not answer.
    pub fn limits(&self) -> Result<Limits, SysError> {
        limits_of(&self.fd, &self.path)
    }
}

/// Size and limits of an open block device.
pub(crate) fn limits_of(fd: &OwnedFd, path: &Path) -> Result<Limits, SysError> {
    Ok(Limits {
        size_bytes: ask(fd, path, number::SIZE, "BLKGETSIZE64")?,
        logical_block_bytes: ask(fd, path, number::LOGICAL, "BLKSSZGET")?,
        physical_block_bytes: ask(fd, path, number::PHYSICAL, "BLKPBSZGET")?,
        minimum_io_bytes: ask(fd, path, number::MINIMUM_IO, "BLKIOMIN")?,
        optimal_io_bytes: ask(fd, path, number::OPTIMAL_IO, "BLKIOOPT")?,
        alignment_offset_bytes: ask(fd, path, number::ALIGNMENT, "BLKALIGNOFF")?,
    })
}

/// The answer of a device to one question.
pub(crate) fn ask<T: Argument + Default>(
    fd: &OwnedFd,
    path: &Path,
    number: Opcode,
    asked: &'static str,
) -> Result<T, SysError> {
    let mut answer = T::default();
    let asking = Asking {
        path,
        asked,
        capability: "CAP_SYS_ADMIN",
    };
    ioctl(fd, number, &mut answer).map_err(|errno| asking.error(errno))?;
    Ok(answer)
}

impl AsFd for BlockDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
