//! The positions of a file's bytes on its device: `FS_IOC_FIEMAP` (<linux/fiemap.h>).
//!
//! The file is not synced first: a question must cause no I/O. Bytes that are not written yet come back flagged.

use std::ffi::c_void;
use std::fs::File;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::ioctl::{Opcode, opcode};

use crate::error::{Asking, SysError};
use crate::ioctl::{Argument, ioctl};

/// Words of 8 bytes in `struct fiemap` and `struct fiemap_extent`.
const HEADER: usize = 4;
const EXTENT: usize = 7;
/// Extents asked for at once.
const BATCH: usize = 512;

const FIEMAP: Opcode = opcode::read_write::<[u64; HEADER]>(b'f', 11);

/// The place is not known yet, or the bytes are not in a block of their own.
const UNPLACED: u32 =
    flag::UNKNOWN | flag::DELAYED | flag::ENCODED | flag::NOT_ALIGNED | flag::INLINE | flag::TAIL;

/// Flags of an extent.
pub mod flag {
    /// The last one of the file.
    pub const LAST: u32 = 0x1;
    /// Its place is not known.
    pub const UNKNOWN: u32 = 0x2;
    /// Not allocated yet.
    pub const DELAYED: u32 = 0x4;
    /// Compressed or encrypted.
    pub const ENCODED: u32 = 0x8;
    /// Not on a block of the file system.
    pub const NOT_ALIGNED: u32 = 0x100;
    /// In the metadata.
    pub const INLINE: u32 = 0x200;
    /// Shares a block with other files' ends.
    pub const TAIL: u32 = 0x400;
    /// Allocated, reads as zeros.
    pub const UNWRITTEN: u32 = 0x800;
    /// Shared with other files.
    pub const SHARED: u32 = 0x2000;
}

/// A run of a file on its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileExtent {
    /// First byte in the file.
    pub logical_bytes: u64,
    /// First byte on the device of the file system.
    pub physical_bytes: u64,
    /// Length.
    pub len_bytes: u64,
    /// See [`flag`].
    pub flags: u32,
}

impl FileExtent {
    /// Whether the bytes are at the stated position, one to one.
    #[must_use]
    pub const fn is_placed(&self) -> bool {
        self.flags & UNPLACED == 0
    }
}

/// A file's extents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileExtents {
    /// Length of the file.
    pub size_bytes: u64,
    /// In order.
    pub extents: Vec<FileExtent>,
    /// Whether there are more than were asked for.
    pub is_cut: bool,
}

/// A `struct fiemap` with room for a batch.
struct Buffer(Vec<u64>);

// SAFETY: the kernel writes no more extents than `fm_extent_count`, which `Buffer::new` sets to the room behind the header.
unsafe impl Argument for Buffer {
    fn address(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }
}

impl Buffer {
    fn new(start_bytes: u64) -> Buffer {
        let mut words = vec![0; HEADER + BATCH * EXTENT];
        (words[0], words[1]) = (start_bytes, u64::MAX - start_bytes);
        // fm_extent_count and a reserved word: 32 bits each.
        words[3] = u64::from_ne_bytes(halves(BATCH as u32, 0));
        Buffer(words)
    }

    /// `fm_mapped_extents`: the second half of the third word.
    fn mapped(&self) -> usize {
        let bytes = self.0[2].to_ne_bytes();
        (u32::from_ne_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize).min(BATCH)
    }

    fn extent(&self, at: usize) -> FileExtent {
        let words = &self.0[HEADER + at * EXTENT..][..EXTENT];
        let flags = words[5].to_ne_bytes();
        FileExtent {
            logical_bytes: words[0],
            physical_bytes: words[1],
            len_bytes: words[2],
            flags: u32::from_ne_bytes([flags[0], flags[1], flags[2], flags[3]]),
        }
    }
}

fn halves(first: u32, second: u32) -> [u8; 8] {
    let (a, b) = (first.to_ne_bytes(), second.to_ne_bytes());
    [a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]]
}

/// The extents of a regular file, no more than `count_max`.
///
/// # Errors
/// When it cannot be opened, is no regular file, or its file system does not tell.
pub fn of_file(path: &Path, count_max: usize) -> Result<FileExtents, SysError> {
    let asking = Asking {
        path,
        asked: "the map of its extents",
        capability: "CAP_DAC_READ_SEARCH",
    };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(open(path, flags, Mode::empty()).map_err(|errno| asking.error(errno))?);
    let stat = fstat(&file).map_err(|errno| asking.error(errno))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(asking.malformed("something else", "a regular file"));
    }
    let mut found = FileExtents {
        size_bytes: stat.st_size as u64,
        ..FileExtents::default()
    };
    let mut start_bytes = 0;
    loop {
        let mut buffer = Buffer::new(start_bytes);
        ioctl(&file, FIEMAP, &mut buffer).map_err(|errno| asking.error(errno))?;
        for at in 0..buffer.mapped() {
            let extent = buffer.extent(at);
            if found.extents.len() >= count_max {
                found.is_cut = true;
                return Ok(found);
            }
            found.extents.push(extent);
            if extent.flags & flag::LAST != 0 {
                return Ok(found);
            }
        }
        let end = found
            .extents
            .last()
            .and_then(|last| last.logical_bytes.checked_add(last.len_bytes));
        match end {
            Some(end) if buffer.mapped() > 0 && end > start_bytes => start_bytes = end,
            _ => return Ok(found),
        }
    }
}
