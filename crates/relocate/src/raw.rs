//! An open disk as label readers and label writers want it.
//!
//! Readers look for labels of every block size, at places that are no multiple of the disk's own: direct I/O takes whole
//! blocks only, so that what lies around is read with them.

use std::io;

use plumb_geometry::{align_down, align_up};
use plumb_label::Disk;
use plumb_sys::DirectDisk;

use crate::labels::Medium;

/// A disk that is open; see the module.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a>(pub &'a DirectDisk);

impl Raw<'_> {
    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        let limits = self.0.limits();
        let block = u64::from(limits.logical_block_bytes);
        let end = at.checked_add(buffer.len() as u64).filter(|end| *end <= limits.size_bytes);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let from = align_down(at, block).ok_or(io::ErrorKind::InvalidInput)?;
        // The last block of an image may be cut off.
        let to = align_up(end, block).ok_or(io::ErrorKind::InvalidInput)?.min(limits.size_bytes);
        if (from, to) == (at, end) {
            return self.0.read_at(at, buffer).map_err(io::Error::other);
        }
        let mut whole = vec![0; (to - from) as usize];
        self.0.read_at(from, &mut whole).map_err(io::Error::other)?;
        let start = (at - from) as usize;
        buffer.copy_from_slice(&whole[start..start + buffer.len()]);
        Ok(())
    }
}

impl Disk for Raw<'_> {
    fn size_bytes(&self) -> u64 {
        self.0.limits().size_bytes
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read(offset_bytes, buffer)
    }
}

impl Medium for Raw<'_> {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read(at, buffer)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_at(at, bytes).map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(io::Error::other)
    }
}
