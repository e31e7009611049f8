//! Opens the user's input: a file, standard input, and gzip or zstd around either.
//!
//! The first bytes are looked at before a format is chosen, and read again by its reader.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::progress::{CountingReader, Progress};

/// How many bytes a format may ask to see before it decides.
pub const SNIFF_BYTES: usize = 64 * 1024;

/// How large a piece is read at once.
const READ_BYTES: usize = 256 * 1024;

/// The bytes of one input from its beginning, decompressed.
pub struct Input {
    /// As the user named it; `-` is standard input.
    pub path: String,
    /// Set when the bytes come straight from a file that can be read at any place.
    pub plain_file: Option<File>,
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
    ended: bool,
}

impl Input {
    /// Opens a path, or standard input for `-`.
    ///
    /// # Errors
    /// When it cannot be opened, is a directory or is empty.
    pub fn open(path: &Path) -> Result<Input, Error> {
        Input::open_watched(path, None)
    }

    /// The same, telling how much was read.
    ///
    /// # Errors
    /// As [`Input::open`].
    pub fn open_watched(path: &Path, progress: Option<&Arc<Progress>>) -> Result<Input, Error> {
        let name = path.display().to_string();
        if name == "-" {
            return Input::new("standard input".to_owned(), Box::new(io::stdin()), None);
        }
        let open = |source| Error::Open {
            path: name.clone(),
            source,
        };
        let file = File::open(path).map_err(open)?;
        let kind = file.metadata().map_err(open)?;
        if kind.is_dir() {
            return Err(Error::Directory { path: name });
        }
        let plain = if kind.is_file() {
            Some(file.try_clone().map_err(open)?)
        } else {
            None
        };
        let Some(progress) = progress else {
            return Input::new(name, Box::new(file), plain);
        };
        progress.expect(kind.len());
        Input::new(name, Box::new(CountingReader::new(file, progress)), plain)
    }

    /// Bytes that are already in memory or come from elsewhere, under a name for messages.
    ///
    /// # Errors
    /// When the first read fails or brings nothing.
    pub fn from_reader(name: &str, source: Box<dyn Read + Send>) -> Result<Input, Error> {
        Input::new(name.to_owned(), source, None)
    }

    fn new(
        path: String,
        source: Box<dyn Read + Send>,
        plain_file: Option<File>,
    ) -> Result<Input, Error> {
        let mut input = Input {
            path,
            plain_file,
            source,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            offset: 0,
            ended: false,
        };
        let magic = input.peek(4)?;
        if magic.is_empty() {
            return Err(Error::Empty { path: input.path });
        }
        let gzip = magic.starts_with(&[0x1f, 0x8b]);
        let zstd = magic.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        if !gzip && !zstd {
            return Ok(input);
        }
        let head = io::Cursor::new(input.buffer[input.start..input.end].to_vec());
        let packed = head.chain(input.source);
        let source: Box<dyn Read + Send> = if gzip {
            Box::new(flate2::read::MultiGzDecoder::new(packed))
        } else {
            let decoder =
                zstd::stream::read::Decoder::new(packed).map_err(|source| Error::Read {
                    path: input.path.clone(),
                    offset: 0,
                    source,
                })?;
            Box::new(decoder)
        };
        let mut input = Input {
            path: input.path,
            plain_file: None,
            source,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            offset: 0,
            ended: false,
        };
        if input.peek(1)?.is_empty() {
            return Err(Error::Empty { path: input.path });
        }
        Ok(input)
    }

    /// At least `want` bytes from the current place without taking them, fewer only at the end.
    ///
    /// # Errors
    /// When reading or decompressing fails.
    pub fn peek(&mut self, want: usize) -> Result<&[u8], Error> {
        while self.end - self.start < want && !self.ended {
            self.read_more(want)?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// Bytes that [`Input::peek`] has read and no caller has taken yet; never reads.
    #[inline]
    #[must_use]
    pub fn shown(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Whether the bytes that [`Input::peek`] shows are the last ones.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.ended
    }

    /// Takes bytes that [`Input::peek`] has shown.
    #[inline]
    pub fn consume(&mut self, bytes: usize) {
        debug_assert!(
            bytes <= self.end - self.start,
            "only bytes that were shown can be taken"
        );
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// How many bytes were taken so far.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    fn read_more(&mut self, want: usize) -> Result<(), Error> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        // The rest grows twofold, so that a long line does not come in by single bytes.
        let room = want.max(READ_BYTES).max(2 * self.end);
        if self.buffer.len() < room {
            self.buffer.resize(room, 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(());
                }
                Ok(bytes) => {
                    self.end += bytes;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    self.ended = true;
                    let offset = self.offset + (self.end - self.start) as u64;
                    return Err(Error::Read {
                        path: self.path.clone(),
                        offset,
                        source,
                    });
                }
            }
        }
    }
}
