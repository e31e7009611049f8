//! The source of a label: anything with a size that can be read at any position.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use plumb_geometry::Bytes;

use crate::problem::Fault;

/// A disk or an image of one.
pub trait Disk {
    /// Its size in bytes, which need not be whole sectors.
    fn size_bytes(&self) -> u64;

    /// Fills `buffer` with the bytes from `offset_bytes` on.
    ///
    /// # Errors
    /// The error of the system, or [`io::ErrorKind::UnexpectedEof`] if the disk ends before the buffer is full.
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()>;
}

impl Disk for [u8] {
    fn size_bytes(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        let found = usize::try_from(offset_bytes)
            .ok()
            .and_then(|start| self.get(start..start.checked_add(buffer.len())?))
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(found);
        Ok(())
    }
}

impl Disk for Vec<u8> {
    fn size_bytes(&self) -> u64 {
        self.as_slice().size_bytes()
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.as_slice().read_at(offset_bytes, buffer)
    }
}

impl<D: Disk + ?Sized> Disk for &D {
    fn size_bytes(&self) -> u64 {
        (**self).size_bytes()
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        (**self).read_at(offset_bytes, buffer)
    }
}

/// An open image or block device.
#[derive(Debug)]
pub struct FileDisk {
    file: File,
    size_bytes: u64,
}

impl FileDisk {
    /// Takes an open file. Its size is where it ends, since the metadata of a block device have none.
    ///
    /// # Errors
    /// When the end cannot be found, as with a pipe.
    pub fn new(mut file: File) -> io::Result<Self> {
        let size_bytes = file.seek(SeekFrom::End(0))?;
        Ok(Self { file, size_bytes })
    }
}

impl Disk for FileDisk {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset_bytes)
    }
}

/// A disk counted in logical blocks of one size.
#[derive(Clone, Copy)]
pub(crate) struct Blocks<'a> {
    disk: &'a dyn Disk,
    pub(crate) sector_bytes: u32,
}

impl<'a> Blocks<'a> {
    pub(crate) fn new(disk: &'a dyn Disk, sector_bytes: u32) -> Self {
        Self { disk, sector_bytes }
    }

    /// Whole logical blocks on the disk.
    pub(crate) fn count(self) -> u64 {
        self.disk.size_bytes() / u64::from(self.sector_bytes)
    }

    /// Address of the last logical block; `None` on a disk without any.
    pub(crate) fn last_lba(self) -> Option<u64> {
        self.count().checked_sub(1)
    }

    /// Reads `count` blocks. The range is compared with the disk before anything is allocated, and callers bound
    /// `count` by the limits of their format.
    pub(crate) fn read(self, lba: u64, count: u64) -> Result<Vec<u8>, Fault> {
        let end = lba.checked_add(count).filter(|&end| end <= self.count());
        let sector_bytes = u64::from(self.sector_bytes);
        let len = count
            .checked_mul(sector_bytes)
            .and_then(|len| usize::try_from(len).ok());
        let (Some(_), Some(len)) = (end, len) else {
            return Err(Fault::BeyondEnd {
                lba,
                disk_lbas: self.count(),
            });
        };
        let mut bytes = vec![0; len];
        let offset = lba * sector_bytes;
        match self.disk.read_at(offset, &mut bytes) {
            Ok(()) => Ok(bytes),
            Err(error) => Err(Fault::Unreadable {
                at: Bytes(offset),
                error: error.to_string(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_only_read_whole_and_on_the_disk() {
        let disk = vec![7; 512 * 3 + 511];
        let blocks = Blocks::new(&disk, 512);
        assert_eq!((blocks.count(), blocks.last_lba()), (3, Some(2)));
        assert_eq!(blocks.read(1, 2), Ok(vec![7; 1_024]));
        assert_eq!(
            blocks.read(2, 2),
            Err(Fault::BeyondEnd {
                lba: 2,
                disk_lbas: 3
            })
        );
        assert_eq!(
            blocks.read(u64::MAX, 1),
            Err(Fault::BeyondEnd {
                lba: u64::MAX,
                disk_lbas: 3
            })
        );
        assert_eq!(Blocks::new(&vec![0; 511], 512).last_lba(), None);
    }

    #[test]
    fn a_slice_ends_where_it_ends() {
        let mut buffer = [0; 4];
        let disk: &[u8] = &[1, 2, 3, 4, 5];
        disk.read_at(1, &mut buffer).expect("within the slice");
        assert_eq!(buffer, [2, 3, 4, 5]);
        let error = disk.read_at(2, &mut buffer).expect_err("one byte too far");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(disk.read_at(u64::MAX, &mut buffer).is_err());
    }
}
