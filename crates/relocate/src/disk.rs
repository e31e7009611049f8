//! The devices of a move: a disk that can be read, written and flushed, and the file of its journal.
//!
//! Traits, so that a simulated disk that loses its cache runs the same code as a real one. Positions and lengths are
//! bytes. All requests of the move begin and end on the disk's logical blocks and use memory at a multiple of 4,096, as
//! direct I/O needs.

use std::io;
use std::time::Instant;

/// A whole disk.
pub trait Disk {
    /// Its size in bytes.
    fn len_bytes(&self) -> u64;

    /// The unit in which it is addressed: 512 or 4,096.
    fn logical_block_bytes(&self) -> u32;

    /// The unit of its writes: a power cut in the middle of a write may destroy it.
    fn physical_block_bytes(&self) -> u32;

    /// Fills `buffer` with the bytes from `at` on.
    ///
    /// # Errors
    /// The error of the system; a partial read is an error too.
    fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes all of `bytes`. They need not be durable afterwards.
    ///
    /// # Errors
    /// The error of the system; any part may have been written then.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Returns when all that was written is durable.
    ///
    /// # Errors
    /// The error of the system; nothing written since the last flush counts as durable then.
    fn flush(&mut self) -> io::Result<()>;

    /// Fills `buffer` while `work` runs, which writes nothing of the range that is read: before, after or at once. Both
    /// have ended when it returns; the results are those of the work and of the read.
    fn read_while<T>(
        &mut self,
        at: u64,
        buffer: &mut [u8],
        work: impl FnOnce(&mut Self) -> T,
    ) -> (T, io::Result<()>)
    where
        Self: Sized,
    {
        let read = self.read_at(at, buffer);
        (work(self), read)
    }

    /// The time, for how long writes and flushes take.
    fn now(&self) -> Instant {
        Instant::now()
    }
}

/// The smallest block of a journal.
pub const JOURNAL_BLOCK_BYTES_MIN: u32 = 4096;

/// The file of a journal: preallocated, so that no write to it can fail for want of room, and filled from the front.
///
/// All reads and writes are whole blocks, in memory that begins at a multiple of 4,096. The file has to be opened for
/// direct I/O: after a failed sync, Linux returns data from its page cache that never reached the disk, and a resume
/// would trust them.
pub trait JournalStore {
    /// Its size in bytes, all of it allocated.
    fn len_bytes(&self) -> u64;

    /// The bytes that a power cut in the middle of a write may destroy: the larger of the file system's block and the
    /// disk's physical block, and a multiple of 4,096.
    fn block_bytes(&self) -> u32 {
        JOURNAL_BLOCK_BYTES_MIN
    }

    /// Fills `buffer` with the bytes from `at` on.
    ///
    /// # Errors
    /// The error of the system.
    fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes all of `bytes`. The move never writes a block of the log twice once it was synced.
    ///
    /// # Errors
    /// The error of the system.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Returns when all that was written is durable.
    ///
    /// # Errors
    /// The error of the system.
    fn sync(&mut self) -> io::Result<()>;
}

impl<D: Disk + ?Sized> Disk for &mut D {
    fn len_bytes(&self) -> u64 {
        (**self).len_bytes()
    }

    fn logical_block_bytes(&self) -> u32 {
        (**self).logical_block_bytes()
    }

    fn physical_block_bytes(&self) -> u32 {
        (**self).physical_block_bytes()
    }

    fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        (**self).read_at(at, buffer)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        (**self).write_at(at, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        (**self).flush()
    }

    fn now(&self) -> Instant {
        (**self).now()
    }
}

impl<J: JournalStore + ?Sized> JournalStore for &mut J {
    fn len_bytes(&self) -> u64 {
        (**self).len_bytes()
    }

    fn block_bytes(&self) -> u32 {
        (**self).block_bytes()
    }

    fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        (**self).read_at(at, buffer)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        (**self).write_at(at, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        (**self).sync()
    }
}

/// A journal in memory, for trials: durable as long as it exists.
impl JournalStore for Vec<u8> {
    fn len_bytes(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        buffer.copy_from_slice(place(self, at, buffer.len())?);
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        place(self, at, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn place(memory: &mut [u8], at: u64, len: usize) -> io::Result<&mut [u8]> {
    let place = usize::try_from(at)
        .ok()
        .and_then(|at| memory.get_mut(at..at.checked_add(len)?));
    place.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}
