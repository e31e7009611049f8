//! Errors of reading a trace, each with its position, the text found and the text expected.

use std::fmt;
use std::io;

use serde::{Serialize, Serializer};

use crate::op::Layer;

/// A position in an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Line, counted from 1.
    Line(u64),
    /// Byte, counted from 0.
    Byte(u64),
    /// Row of a table, counted from 0.
    Row(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            Place::Byte(byte) => write!(f, "byte {byte}"),
            Place::Row(row) => write!(f, "row {row}"),
        }
    }
}

/// A document has the position in words.
impl Serialize for Place {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A part of an input that could not be understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The position.
    pub place: Place,
    /// The text found, shortened.
    pub found: String,
    /// The expected text.
    pub expected: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: found {}, expected {}",
            self.place, self.found, self.expected
        )
    }
}

/// Why a trace could not be opened or read on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be opened.
    #[error("cannot open {path}")]
    Open {
        /// Input as the user named it.
        path: String,
        /// The error of the system.
        source: io::Error,
    },
    /// Reading failed underway.
    #[error("cannot read {path} at byte {offset}")]
    Read {
        /// Input as the user named it.
        path: String,
        /// Bytes read before.
        offset: u64,
        /// The error of the system (or the decompressor).
        source: io::Error,
    },
    /// A directory without any trace that belongs into one.
    #[error(
        "{path} is a directory: found no NAME.blktrace.CPU in it, expected the per-CPU files of blktrace; name a trace file instead"
    )]
    Directory {
        /// Input as the user named it.
        path: String,
    },
    /// Nothing to read.
    #[error("{path} is empty: found 0 bytes, expected a trace")]
    Empty {
        /// Input as the user named it.
        path: String,
    },
    /// No reader knows it.
    #[error("{path} has no known trace format: it begins with {found}")]
    UnknownFormat {
        /// Input as the user named it.
        path: String,
        /// First bytes, made printable.
        found: String,
    },
    /// The user named a format that does not exist.
    #[error("no trace format is called {found}; expected one of: {known}")]
    NoSuchFormat {
        /// The name given.
        found: String,
        /// Names of the formats.
        known: String,
    },
    /// The format is known and cannot serve.
    #[error("{path} is {format}, which is refused: {reason}")]
    Refused {
        /// Input as the user named it.
        path: String,
        /// Name of the format.
        format: &'static str,
        /// The reason, and an alternative.
        reason: &'static str,
    },
    /// Nothing sensible could be read any more.
    #[error("{path}, {damage}")]
    Malformed {
        /// Input as the user named it.
        path: String,
        /// Place, found and expected.
        damage: Damage,
    },
    /// The trace holds no event of the layer asked for.
    #[error("{path} holds no {} layer; it has: {present}", asked.word())]
    NoLayer {
        /// Input as the user named it.
        path: String,
        /// Layer asked for.
        asked: Layer,
        /// Layers that are there.
        present: String,
    },
    /// The format needs a file that can be read at any place.
    #[error(
        "{path} is {format}, which is read from its end: found a stream, expected a plain file"
    )]
    NeedsFile {
        /// Input as the user named it.
        path: String,
        /// Name of the format.
        format: &'static str,
    },
    /// No writer for the request.
    #[error("no trace format to write is known for {found}; expected one of: {known}")]
    NoSuchTarget {
        /// The name or path given.
        found: String,
        /// Names of the formats, with their extensions.
        known: String,
    },
    /// A trace could not be written.
    #[error("cannot write {path}")]
    Write {
        /// Output as the user named it.
        path: String,
        /// The error of the system.
        source: io::Error,
    },
    /// Something other than a file has the name of an output.
    #[error("{path}: found {found}, expected a file, a pipe or a free name")]
    NoFile {
        /// Output as the user named it.
        path: String,
        /// The kind found.
        found: &'static str,
    },
    /// A Parquet file of other things.
    #[error("{path} is Parquet, but no trace of plumb: found {found}, expected {expected}")]
    NoTrace {
        /// File as the user named it.
        path: String,
        /// Columns or the type found.
        found: String,
        /// Expected column or type.
        expected: String,
    },
    /// A Parquet trace of a version that is not known yet.
    #[error(
        "{path} has schema version {found}, expected {expected} or older; a newer plumb reads it"
    )]
    NewerSchema {
        /// File as the user named it.
        path: String,
        /// The version found.
        found: String,
        /// Newest version that is known.
        expected: u32,
    },
    /// The Parquet library refused the file.
    #[error("{path} cannot be read as Parquet")]
    Parquet {
        /// File as the user named it.
        path: String,
        /// The error of the library.
        source: parquet::errors::ParquetError,
    },
}

/// Makes the first bytes of something printable, quoted and short.
#[must_use]
pub fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 48;
    let cut = &bytes[..bytes.len().min(MOST)];
    let dots = if bytes.len() > MOST { "…" } else { "" };
    if cut.is_empty() {
        return "nothing".to_owned();
    }
    let printable = cut.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
        || std::str::from_utf8(cut).is_ok();
    if printable {
        format!("`{}{dots}`", String::from_utf8_lossy(cut).escape_debug())
    } else {
        let hex: Vec<String> = cut
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!(
            "bytes {}{}",
            hex.join(" "),
            if bytes.len() > 16 { " …" } else { "" }
        )
    }
}
