//! Bytes in memory as a disk that neither caches nor fails.

use std::io;

use crate::disk::Disk;

/// A disk in memory.
pub(crate) struct MemoryDisk<'a>(pub(crate) &'a mut Vec<u8>);

impl Disk for MemoryDisk<'_> {
    fn len_bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn logical_block_bytes(&self) -> u32 {
        512
    }

    fn physical_block_bytes(&self) -> u32 {
        4096
    }

    fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        buffer.copy_from_slice(&self.0[at as usize..][..buffer.len()]);
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.0[at as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
