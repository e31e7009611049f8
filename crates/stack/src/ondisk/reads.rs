//! A disk that records the bytes that were read.

use std::cell::RefCell;
use std::io;

use plumb_label::Disk;

/// See the module.
pub(super) struct Noted<'a> {
    disk: &'a dyn Disk,
    reads: RefCell<Vec<(u64, u64)>>,
}

impl<'a> Noted<'a> {
    pub(super) fn new(disk: &'a dyn Disk) -> Self {
        Self {
            disk,
            reads: RefCell::default(),
        }
    }

    /// Starts and lengths of the reads that succeeded.
    pub(super) fn into_reads(self) -> Vec<(u64, u64)> {
        self.reads.into_inner()
    }
}

impl Disk for Noted<'_> {
    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.disk.read_at(offset_bytes, buffer)?;
        self.reads
            .borrow_mut()
            .push((offset_bytes, buffer.len() as u64));
        Ok(())
    }
}
