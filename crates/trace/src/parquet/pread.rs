//! Gives the Parquet library parts of a file, by reads at a place: no map of the file into memory (a file that
//! shrinks would kill the process) and no shared position.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// No page and no footer of a trace comes near this; a larger request stems from a damaged length.
const PART_BYTES_MAX: usize = 256 << 20;

/// Room for a page's header, which is read through a buffer because the library takes it byte by byte.
const HEADER_BYTES: usize = 256;

/// A file of known length that is read at any place.
#[derive(Clone)]
pub struct PartFile {
    file: Arc<File>,
    len_bytes: u64,
}

impl PartFile {
    /// Takes a file over, with the length that it has now.
    ///
    /// # Errors
    /// When the system does not tell the length.
    pub fn new(file: File) -> io::Result<PartFile> {
        let len_bytes = file.metadata()?.len();
        Ok(PartFile {
            file: Arc::new(file),
            len_bytes,
        })
    }

    /// The same file as if it ended at a byte that it has.
    #[must_use]
    pub fn up_to(self, len_bytes: u64) -> PartFile {
        PartFile {
            len_bytes: len_bytes.min(self.len_bytes),
            ..self
        }
    }

    /// The last bytes of the file, at most as many as asked for.
    ///
    /// # Errors
    /// When reading fails.
    pub fn tail(&self, want: u64) -> io::Result<Vec<u8>> {
        let len = want.min(self.len_bytes);
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
        self.file.read_exact_at(&mut bytes, self.len_bytes - len)?;
        Ok(bytes)
    }
}

impl Length for PartFile {
    fn len(&self) -> u64 {
        self.len_bytes
    }
}

/// Reads on from a place.
pub struct From {
    file: Arc<File>,
    at: u64,
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read_at(buffer, self.at)?;
        self.at += bytes as u64;
        Ok(bytes)
    }
}

impl ChunkReader for PartFile {
    type T = BufReader<From>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let from = From {
            file: Arc::clone(&self.file),
            at: start,
        };
        Ok(BufReader::with_capacity(HEADER_BYTES, from))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let end = start.checked_add(length as u64);
        if length > PART_BYTES_MAX || end.is_none_or(|end| end > self.len_bytes) {
            return Err(ParquetError::EOF(format!(
                "found a part of {length} bytes at byte {start}, expected one within the {} bytes of the file",
                self.len_bytes
            )));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}
