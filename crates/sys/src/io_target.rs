//! A block device or regular file opened to be measured: past the page cache where that can be done, and exclusively where
//! it is to be written.

use std::fs::Metadata;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, StatxFlags, fcntl_getfl, fcntl_setfl, fstat, open, stat, statx,
};
use rustix::io::Errno;
use rustix::ioctl::opcode;
use serde::Serialize;

use crate::block::{ask, number};
use crate::error::{Asking, SysError};
use crate::ioctl::ioctl;
use crate::kind::device_or_file;

/// The identity of a file, under any name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileId {
    /// A block device, by its number.
    Device(u64),
    /// A file, by the number of its file system and its inode.
    File(u64, u64),
}

impl FileId {
    /// Takes the id from the metadata of a file or device.
    #[must_use]
    pub fn from_metadata(found: &Metadata) -> FileId {
        match found.file_type().is_block_device() {
            true => FileId::Device(found.rdev()),
            false => FileId::File(found.dev(), found.ino()),
        }
    }
}

/// When a write counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// When the device says so: it may still be in a cache that loses it.
    Accepted,
    /// When it has reached the medium (`O_DSYNC`): by a flush after it, or by force unit access where the device knows that.
    Medium,
}

/// A device or file that I/O are sent to.
#[derive(Debug)]
pub struct IoTarget {
    fd: OwnedFd,
    path: PathBuf,
    id: FileId,
    size_bytes: u64,
    block_bytes: u32,
    is_direct: bool,
}

/// `O_DSYNC` (include/uapi/asm-generic/fcntl.h): rustix has the bits of `O_SYNC` under this name, with which a file system
/// would write its time stamps down after each write.
const DSYNC: OFlags = OFlags::from_bits_retain(0o10000);

/// Logical block if unknown: the least that every disk of a file system has had.
const BLOCK_BYTES: u32 = 512;

impl IoTarget {
    /// Opens it for reading. Nothing is read.
    ///
    /// # Errors
    /// When it cannot be opened, or is no target.
    pub fn open_to_read(path: &Path) -> Result<IoTarget, SysError> {
        IoTarget::open(path, OFlags::RDONLY)
    }

    /// Opens it for reading and writing; a block device so that nobody mounts it meanwhile, and only when nobody has.
    ///
    /// # Errors
    /// When it cannot be opened, is no target, in use or read-only.
    pub fn open_to_write(path: &Path, durability: Durability) -> Result<IoTarget, SysError> {
        // Its type is looked up first: without O_CREAT, the meaning of O_EXCL for other files is not defined.
        let asking = Asking {
            path,
            asked: "looking at it",
            capability: "CAP_DAC_READ_SEARCH",
        };
        let found = stat(path).map_err(|errno| asking.error(errno))?;
        let is_device = device_or_file(path, &found)? == FileType::BlockDevice;
        let exclusive = if is_device {
            OFlags::EXCL
        } else {
            OFlags::empty()
        };
        let synced = if durability == Durability::Medium {
            DSYNC
        } else {
            OFlags::empty()
        };
        let target =
            IoTarget::open(path, OFlags::RDWR | exclusive | synced).map_err(
                |error| match error {
                    SysError::Failed {
                        path,
                        errno: Errno::TXTBSY,
                        ..
                    } => SysError::InUse {
                        path,
                        asked: "opening it for writing",
                    },
                    SysError::Failed {
                        path,
                        errno: Errno::ROFS,
                        ..
                    } => SysError::ReadOnly { path },
                    SysError::NotPermitted { path, .. } if is_read_only(&path) => {
                        SysError::ReadOnly { path }
                    }
                    other => other,
                },
            )?;
        match target.is_block_device() && is_read_only_device(&target.fd) {
            true => Err(SysError::ReadOnly { path: target.path }),
            false => Ok(target),
        }
    }

    fn open(path: &Path, access: OFlags) -> Result<IoTarget, SysError> {
        let asking = Asking {
            path,
            asked: "opening it",
            capability: "CAP_DAC_OVERRIDE or the group disk",
        };
        device_or_file(path, &stat(path).map_err(|errno| asking.error(errno))?)?;
        let (fd, is_direct) = open_direct(path, access).map_err(|errno| asking.error(errno))?;
        let stat = fstat(&fd).map_err(|errno| asking.error(errno))?;
        let found = device_or_file(path, &stat)?;
        // It was opened so as not to wait for a medium. I/O must not end with EAGAIN for it.
        let flags = fcntl_getfl(&fd).map_err(|errno| asking.error(errno))?;
        fcntl_setfl(&fd, flags - OFlags::NONBLOCK).map_err(|errno| asking.error(errno))?;
        let (id, size_bytes, block_bytes) = match found {
            FileType::BlockDevice => (
                FileId::Device(stat.st_rdev),
                ask(&fd, path, number::SIZE, "BLKGETSIZE64")?,
                ask(&fd, path, number::LOGICAL, "BLKSSZGET")?,
            ),
            _ => {
                let size_bytes = u64::try_from(stat.st_size).unwrap_or(0);
                (
                    FileId::File(stat.st_dev, stat.st_ino),
                    size_bytes,
                    block_bytes_of_file(&fd),
                )
            }
        };
        let block_bytes = if is_direct { block_bytes } else { 1 };
        Ok(IoTarget {
            fd,
            path: path.to_owned(),
            id,
            size_bytes,
            block_bytes,
            is_direct,
        })
    }

    /// The path that was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its identity.
    #[must_use]
    pub fn id(&self) -> FileId {
        self.id
    }

    /// Its length when it was opened.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Starts and lengths are multiples of this; 1 where I/O go through the page cache.
    #[must_use]
    pub fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Whether I/O go past the page cache.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// Whether it still has a length; a device that was removed has none.
    #[must_use]
    pub fn is_there(&self) -> bool {
        let size_bytes = match self.id {
            FileId::Device(_) => ask(&self.fd, &self.path, number::SIZE, "BLKGETSIZE64").ok(),
            FileId::File(..) => fstat(&self.fd)
                .ok()
                .and_then(|stat| u64::try_from(stat.st_size).ok()),
        };
        size_bytes.is_some_and(|bytes| bytes > 0)
    }

    /// Whether it is a block device.
    #[must_use]
    pub fn is_block_device(&self) -> bool {
        matches!(self.id, FileId::Device(_))
    }
}

impl AsFd for IoTarget {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opens past the page cache, or through it where a file system refuses that.
fn open_direct(path: &Path, access: OFlags) -> Result<(OwnedFd, bool), Errno> {
    let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    match open(path, flags | OFlags::DIRECT, Mode::empty()) {
        Err(Errno::INVAL) => Ok((open(path, flags, Mode::empty())?, false)),
        opened => Ok((opened?, true)),
    }
}

/// The file system's requirement for direct I/O, if it states one (since Linux 6.1).
fn block_bytes_of_file(fd: &OwnedFd) -> u32 {
    let wanted = StatxFlags::DIOALIGN;
    let found = statx(fd, "", AtFlags::EMPTY_PATH, wanted).ok();
    let said = found.filter(|found| found.stx_mask & wanted.bits() != 0);
    said.map(|found| found.stx_dio_offset_align)
        .filter(|&bytes| bytes > 0)
        .unwrap_or(BLOCK_BYTES)
}

/// Whether a device that may be read may not be written by anybody.
fn is_read_only(path: &Path) -> bool {
    open(
        path,
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .is_ok_and(|fd| is_read_only_device(&fd))
}

fn is_read_only_device(fd: &OwnedFd) -> bool {
    let mut is_read_only = 0i32;
    // BLKROGET; regular files do not know it.
    ioctl(fd, opcode::none(0x12, 94), &mut is_read_only).is_ok() && is_read_only != 0
}
