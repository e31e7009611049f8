//! A disk, or an image of one, opened past the page cache: to read it, to write to it, alone where that is asked, and
//! locked as udev honours it.
//!
//! Opened exclusively (O_EXCL) a block device is refused while it, or a partition of it, is mounted or held by a volume; a
//! partition in use makes that impossible for the disk as well, so that [`Access::Write`] exists. The lock of the node
//! (flock) keeps udev from probing a label that is half written, and other tools that ask for it away.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, FlockOperation, Mode, OFlags, fdatasync, flock, fstat, open};
use rustix::io::{Errno, pread, pwrite};
use rustix::ioctl::{Opcode, opcode};

use crate::aligned::{AlignedBuffer, MEMORY_ALIGNMENT};
use crate::block::{Limits, limits_of};
use crate::error::{Asking, SysError};
use crate::ioctl::ioctl;
use crate::kind::device_or_file;

const FLUSH_BUFFERS: Opcode = opcode::none(0x12, 97);
const DISK_SEQUENCE: Opcode = opcode::read::<u64>(0x12, 128);

/// The open flag for I/O without the page cache, for the standard library's `custom_flags`.
pub const O_DIRECT: i32 = OFlags::DIRECT.bits() as i32;

/// The flag with which a pipe is opened without waiting for somebody to write to it.
pub const O_NONBLOCK: i32 = OFlags::NONBLOCK.bits() as i32;

/// Bytes that pass through the aligned buffer at once.
const PIECE: usize = 1 << 20;
/// How long udev may look at a disk before it counts as taken, and how often it is asked.
const LOCK_WAIT: Duration = Duration::from_secs(10);
const LOCK_AGAIN: Duration = Duration::from_millis(50);
/// Assumed block of an image in a file.
const IMAGE_BLOCK: u32 = 512;

/// The purpose of opening a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading only.
    Read,
    /// Writing, while partitions of it may be in use.
    Write,
    /// Writing, alone: refused while anything uses it.
    Exclusive,
}

/// An open disk.
#[derive(Debug)]
pub struct DirectDisk {
    fd: OwnedFd,
    path: PathBuf,
    limits: Limits,
    is_image: bool,
}

impl DirectDisk {
    /// Opens a block device, or an image in a regular file. A regular file among the device nodes is refused: a
    /// tool left it there where a node was missing.
    ///
    /// # Errors
    /// [`SysError::InUse`] when it is to be held alone and is not free.
    pub fn open(path: &Path, access: Access) -> Result<DirectDisk, SysError> {
        let asked = if access == Access::Read {
            "opening it"
        } else {
            "opening it for writing"
        };
        let asking = Asking {
            path,
            asked,
            capability: "CAP_DAC_OVERRIDE or the group disk",
        };
        let mode = if access == Access::Read {
            OFlags::RDONLY
        } else {
            OFlags::RDWR
        };
        let base = mode | OFlags::CLOEXEC | OFlags::NOCTTY;
        let stat = rustix::fs::stat(path).map_err(|errno| asking.error(errno))?;
        let is_image = device_or_file(path, &stat)? == FileType::RegularFile;
        // Without O_CREAT it means "alone" for block devices. Files are written through the page cache, which file systems
        // in memory have as well.
        let alone = if access == Access::Exclusive {
            OFlags::EXCL
        } else {
            OFlags::empty()
        };
        let flags = if is_image {
            base
        } else {
            base | alone | OFlags::DIRECT
        };
        let fd = open(path, flags, Mode::empty()).map_err(|errno| asking.error(errno))?;
        let limits = if is_image {
            image_limits(&fd, path)?
        } else {
            limits_of(&fd, path)?
        };
        Ok(DirectDisk {
            fd,
            path: path.to_owned(),
            limits,
            is_image,
        })
    }

    /// The path that was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is an image in a file.
    #[must_use]
    pub fn is_image(&self) -> bool {
        self.is_image
    }

    /// Size and limits as of when it was opened; of an image with blocks of 512 bytes.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Locks the node until it is closed, waiting for a moment where udev has it.
    ///
    /// # Errors
    /// [`SysError::Locked`] when somebody keeps it.
    pub fn lock(&self) -> Result<(), SysError> {
        let until = Instant::now() + LOCK_WAIT;
        loop {
            match flock(&self.fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(()),
                Err(Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(LOCK_AGAIN),
                Err(Errno::WOULDBLOCK) => {
                    return Err(SysError::Locked {
                        path: self.path.clone(),
                    });
                }
                Err(errno) => return Err(self.asking("locking it").error(errno)),
            }
        }
    }

    /// Fills the buffer from a place on.
    ///
    /// # Errors
    /// When the disk cannot be read there, or ends before; or a place is no multiple of its block.
    pub fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<(), SysError> {
        if is_aligned(buffer) {
            return self.read_piece(at, buffer);
        }
        let mut aligned = AlignedBuffer::new(buffer.len().min(PIECE));
        for (index, piece) in buffer.chunks_mut(PIECE).enumerate() {
            let through = &mut aligned[..piece.len()];
            self.read_piece(at + (index * PIECE) as u64, through)?;
            piece.copy_from_slice(through);
        }
        Ok(())
    }

    fn read_piece(&self, at: u64, piece: &mut [u8]) -> Result<(), SysError> {
        let mut done = 0;
        while done < piece.len() {
            let got = pread(&self.fd, &mut piece[done..], at + done as u64);
            match got.map_err(|errno| self.asking("reading").error(errno))? {
                0 => return Err(self.asking("reading").malformed("its end", "more bytes")),
                got => done += got,
            }
        }
        Ok(())
    }

    /// Writes bytes at a place; they may be lost until [`DirectDisk::flush`].
    ///
    /// # Errors
    /// When the disk refuses, or a place or length is no multiple of its block.
    pub fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), SysError> {
        if is_aligned(bytes) {
            return self.write_piece(at, bytes);
        }
        let mut aligned = AlignedBuffer::new(bytes.len().min(PIECE));
        for (index, piece) in bytes.chunks(PIECE).enumerate() {
            let through = &mut aligned[..piece.len()];
            through.copy_from_slice(piece);
            self.write_piece(at + (index * PIECE) as u64, through)?;
        }
        Ok(())
    }

    fn write_piece(&self, at: u64, piece: &[u8]) -> Result<(), SysError> {
        let mut done = 0;
        while done < piece.len() {
            let written = pwrite(&self.fd, &piece[done..], at + done as u64);
            match written.map_err(|errno| self.asking("writing").error(errno))? {
                0 => return Err(self.asking("writing").malformed("no bytes written", "some")),
                written => done += written,
            }
        }
        Ok(())
    }

    /// Everything written so far is on the medium when this returns.
    ///
    /// # Errors
    /// When the disk says that it is not.
    pub fn flush(&self) -> Result<(), SysError> {
        fdatasync(&self.fd).map_err(|errno| self.asking("flushing").error(errno))
    }

    /// Writes back and drops its pages in the page cache, so that other readers see the direct writes.
    ///
    /// # Errors
    /// When the process is not permitted.
    pub fn drop_cache(&self) -> Result<(), SysError> {
        if self.is_image {
            return Ok(());
        }
        let asked = "dropping its cache (BLKFLSBUF)";
        ioctl(&self.fd, FLUSH_BUFFERS, &mut 0u64)
            .map(|_| ())
            .map_err(|errno| self.asking(asked).error(errno))
    }

    /// The kernel's number of this attachment of a disk, which no other gets until the next boot; `None` for images and
    /// on kernels before 5.15.
    #[must_use]
    pub fn sequence(&self) -> Option<u64> {
        let mut sequence = 0u64;
        ioctl(&self.fd, DISK_SEQUENCE, &mut sequence)
            .ok()
            .filter(|_| !self.is_image)
            .map(|_| sequence)
    }

    fn asking(&self, asked: &'static str) -> Asking<'_> {
        Asking {
            path: &self.path,
            asked,
            capability: "CAP_SYS_ADMIN",
        }
    }
}

impl AsFd for DirectDisk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn image_limits(fd: &OwnedFd, path: &Path) -> Result<Limits, SysError> {
    let asking = Asking {
        path,
        asked: "its size",
        capability: "",
    };
    let stat = fstat(fd).map_err(|errno| asking.error(errno))?;
    Ok(Limits {
        size_bytes: stat.st_size.unsigned_abs(),
        logical_block_bytes: IMAGE_BLOCK,
        physical_block_bytes: IMAGE_BLOCK,
        minimum_io_bytes: IMAGE_BLOCK,
        optimal_io_bytes: 0,
        alignment_offset_bytes: 0,
    })
}

fn is_aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().align_offset(MEMORY_ALIGNMENT) == 0
}
