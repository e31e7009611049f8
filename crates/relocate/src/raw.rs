//! A real disk and the file of a real journal, as readers of labels, writers of labels and the move want them.
//!
//! Readers look for labels of every block size, at places that are no multiple of the disk's own: direct I/O uses whole
//! blocks only, so the surrounding bytes are read with them.

use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::thread::ScopedJoinHandle;

use plumb_geometry::{align_down, align_up};
use plumb_sys::{AlignedBuffer, DirectDisk, Doubt, FileContent, FileUse, NamedFile, NewFile};

use crate::disk::{Disk, JOURNAL_BLOCK_BYTES_MIN, JournalStore};

/// A disk that is open; see the module.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a>(pub &'a DirectDisk);

impl Raw<'_> {
    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        let limits = self.0.limits();
        let block = u64::from(limits.logical_block_bytes);
        let end = at
            .checked_add(buffer.len() as u64)
            .filter(|end| *end <= limits.size_bytes);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let from = align_down(at, block).ok_or(io::ErrorKind::InvalidInput)?;
        // The last block of an image may be cut off.
        let to = align_up(end, block)
            .ok_or(io::ErrorKind::InvalidInput)?
            .min(limits.size_bytes);
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

impl plumb_label::Disk for Raw<'_> {
    fn size_bytes(&self) -> u64 {
        self.0.limits().size_bytes
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read(offset_bytes, buffer)
    }
}

impl Disk for Raw<'_> {
    fn len_bytes(&self) -> u64 {
        self.0.limits().size_bytes
    }

    fn logical_block_bytes(&self) -> u32 {
        self.0.limits().logical_block_bytes
    }

    fn physical_block_bytes(&self) -> u32 {
        self.0.limits().physical_block_bytes
    }

    fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read(at, buffer)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_at(at, bytes).map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(io::Error::other)
    }

    /// At once: a thread takes far less time to start than a window to be written.
    fn read_while<T>(
        &mut self,
        at: u64,
        buffer: &mut [u8],
        work: impl FnOnce(&mut Self) -> T,
    ) -> (T, io::Result<()>) {
        let disk = *self;
        std::thread::scope(|scope| {
            let reading =
                std::thread::Builder::new().spawn_scoped(scope, move || disk.read(at, buffer));
            let done = work(self);
            let ended = |thread: ScopedJoinHandle<'_, _>| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            (done, reading.and_then(ended))
        })
    }
}

/// The length of one write while a journal is filled with zeros.
const PIECE: usize = 1 << 20;

/// The file of a journal, without the page cache: after a failed sync the cache would show data that never reached the
/// disk.
///
/// It is opened once: the checked file is the one that is read, written and removed.
#[derive(Debug)]
pub struct JournalFile {
    file: NamedFile,
    len_bytes: u64,
    /// Of one that is there the first record tells.
    block_bytes: u32,
}

impl JournalFile {
    /// Makes a new file of that length, written completely so that no write to it can fail for want of room, and on its
    /// medium with its name. Its blocks are the write unit of its disk.
    ///
    /// # Errors
    /// When there is a file of that name, no room for it, or the system refuses.
    pub fn create(path: &Path, len_bytes: u64, block_bytes: u32) -> io::Result<JournalFile> {
        let mut new = NewFile::create(path, FileContent::DiskData)?;
        fill(&mut new, len_bytes)?;
        let made = new.finish()?.metadata()?;
        let journal = JournalFile::open(path)?;
        let opened = journal.file.file().metadata()?;
        if (opened.dev(), opened.ino()) != (made.dev(), made.ino()) {
            return Err(io::Error::other(
                "another file took the name of the new one",
            ));
        }
        Ok(JournalFile {
            block_bytes,
            ..journal
        })
    }

    /// Opens one that is there, to go on with it.
    ///
    /// # Errors
    /// If it does not exist, is no regular file, or cannot be written.
    pub fn open(path: &Path) -> io::Result<JournalFile> {
        JournalFile::opened(path, FileUse::WriteDirect)
    }

    /// Opens one that is there, to look at it.
    ///
    /// # Errors
    /// If it does not exist, or is no regular file.
    pub fn open_to_look(path: &Path) -> io::Result<JournalFile> {
        JournalFile::opened(path, FileUse::ReadDirect)
    }

    /// The first reason to distrust the writers of the file.
    #[must_use]
    pub fn doubt(&self) -> Option<&Doubt> {
        self.file.doubt()
    }

    /// Whether the file still has a name: another process that ended the move has removed it.
    ///
    /// # Errors
    /// The error of the system.
    pub fn has_name(&self) -> io::Result<bool> {
        Ok(self.file.file().metadata()?.nlink() > 0)
    }

    /// Whether it begins as a journal does before its first record is written: with zeros, or with nothing.
    pub fn is_unwritten(&mut self) -> bool {
        let len = self.len_bytes.min(JOURNAL_BLOCK_BYTES_MIN.into());
        if len < JOURNAL_BLOCK_BYTES_MIN.into() {
            return len == 0;
        }
        let mut start = AlignedBuffer::new(JOURNAL_BLOCK_BYTES_MIN as usize);
        let read = self.read_at(0, &mut start);
        read.is_ok() && start.iter().all(|byte| *byte == 0)
    }

    /// Removes the file, if its name still leads to it.
    ///
    /// # Errors
    /// When the name leads to another file, and the errors of the system.
    pub fn remove(&self) -> io::Result<()> {
        self.file.remove()
    }

    fn opened(path: &Path, file_use: FileUse) -> io::Result<JournalFile> {
        let file = NamedFile::open(path, file_use)?;
        let len_bytes = file.file().metadata()?.len();
        Ok(JournalFile {
            file,
            len_bytes,
            block_bytes: JOURNAL_BLOCK_BYTES_MIN,
        })
    }
}

fn fill(file: &mut impl Write, len_bytes: u64) -> io::Result<()> {
    let zeros = vec![0; PIECE];
    let mut left = len_bytes;
    while left > 0 {
        let len = left.min(PIECE as u64);
        file.write_all(&zeros[..len as usize])?;
        left -= len;
    }
    Ok(())
}

impl JournalStore for JournalFile {
    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.file().read_exact_at(buffer, at)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.file().write_all_at(bytes, at)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.file().sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_sys::Access;

    /// Readers ask for bytes anywhere; the end of an image may be no whole block.
    #[test]
    fn any_bytes_of_a_disk_can_be_read() {
        let dir = plumb_testkit::temp_dir("raw");
        let path = dir.path().join("disk.img");
        let bytes: Vec<u8> = (0..5_000u32).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &bytes).expect("room");
        let disk = DirectDisk::open(&path, Access::Read).expect("an image");
        for (at, len) in [
            (0, 512),
            (511, 2),
            (100, 3_000),
            (4_998, 2),
            (4_608, 392),
            (0, 5_000),
        ] {
            let mut buffer = vec![0; len];
            Raw(&disk)
                .read(at as u64, &mut buffer)
                .expect("on the disk");
            assert_eq!(buffer, bytes[at..at + len], "{len} at {at}");
        }
        assert!(Raw(&disk).read(4_999, &mut [0; 2]).is_err());
        assert!(Raw(&disk).read(u64::MAX, &mut [0; 2]).is_err());
    }

    #[test]
    fn a_journal_is_new_and_has_its_length() {
        let dir = plumb_testkit::temp_dir("raw");
        let path = dir.path().join("journal");
        let len = (3 << 20) + 4096;
        let mut made = JournalFile::create(&path, len, 8192).expect("room");
        assert_eq!(made.block_bytes(), 8192);
        assert_eq!(
            (
                made.len_bytes(),
                std::fs::metadata(&path).expect("it").len()
            ),
            (len, len)
        );
        let mut record = AlignedBuffer::new(4096);
        record.fill(b'r');
        made.write_at(8192, &record).expect("room");
        made.sync().expect("a disk");
        let mut found = AlignedBuffer::new(4096);
        JournalFile::open(&path)
            .expect("it")
            .read_at(8192, &mut found)
            .expect("there");
        assert_eq!(found[..], record[..]);
        assert!(
            JournalFile::create(&path, 1, 4096).is_err(),
            "never over another one"
        );
    }
}
