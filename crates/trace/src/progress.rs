//! Progress of reading inputs, for displays.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes read of bytes known, over all inputs that share it. Compressed inputs count by their length on disk.
#[derive(Debug, Default)]
pub struct Progress {
    read: AtomicU64,
    known: AtomicU64,
}

impl Progress {
    /// An input of a known size was opened.
    pub fn expect(&self, bytes: u64) {
        self.known.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes of an input were read.
    pub fn advance(&self, bytes: u64) {
        self.read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes read so far, and bytes in all inputs of known size opened so far.
    #[must_use]
    pub fn state(&self) -> (u64, u64) {
        (
            self.read.load(Ordering::Relaxed),
            self.known.load(Ordering::Relaxed),
        )
    }
}

/// A source that counts the bytes that are read of it.
pub struct CountingReader<R> {
    inner: R,
    progress: Arc<Progress>,
}

impl<R: Read> CountingReader<R> {
    /// Counts the bytes of a source in `progress`.
    pub fn new(inner: R, progress: &Arc<Progress>) -> CountingReader<R> {
        CountingReader {
            inner,
            progress: Arc::clone(progress),
        }
    }
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.inner.read(buffer)?;
        self.progress.advance(bytes as u64);
        Ok(bytes)
    }
}
