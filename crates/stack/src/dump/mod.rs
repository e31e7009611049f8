//! Output of other tools: one file for each tool, recognized by content.
//!
//! A dump is untrusted text. Lines without meaning are counted and skipped; a useless file is an error with the place,
//! the text found and the text expected. Several dumps of one host go into one [`Builder`], in any order; [`join`] then
//! connects nodes by name (a slice and its disk).

use std::borrow::Cow;

use serde::Serialize;
use thiserror::Error;

use crate::builder::Builder;
use crate::grid::Source;

mod iostat;
pub(crate) mod linux;
pub(crate) mod solaris;
mod text;

/// The text of one dump.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Name of the file, for messages and sources.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

impl Input<'_> {
    /// The source of something seen in a line, counted from 1; 0 where lines mean nothing.
    #[must_use]
    pub fn source(&self, tool: &'static str, line: usize) -> Source {
        Source::Dump {
            tool: Cow::Borrowed(tool),
            file: self.name.to_owned(),
            line: line as u64,
        }
    }
}

/// How sure a format is of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sniff {
    /// It is something else.
    No,
    /// It may be, if nobody knows better: a format without a mark of its own.
    Maybe,
    /// It is.
    Yes,
}

/// One tool's output.
pub struct Format {
    /// Name in messages: `metastat -p`.
    pub tool: &'static str,
    /// Whether it was tested on output of the real tool; others say *unverified* wherever they are named.
    pub is_verified: bool,
    /// Looks at the beginning.
    pub sniff: fn(&Input<'_>) -> Sniff,
    /// Takes everything in; tells how many lines meant nothing.
    pub read: fn(&Input<'_>, &mut Builder) -> Result<Taken, DumpError>,
}

/// The result of reading a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Taken {
    /// Lines or records that were understood.
    pub understood: u64,
    /// Those that were not, and are not decoration.
    pub passed_over: u64,
}

/// Why nothing can be made of a dump.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DumpError {
    /// There is nothing in it.
    #[error("{file} is empty, expected the output of a tool")]
    Empty {
        /// The input.
        file: String,
    },
    /// No format recognizes it; [`formats`] lists them.
    #[error("{file}: found {found}, expected the output of a tool that is known")]
    Unknown {
        /// The input.
        file: String,
        /// Its first words.
        found: String,
    },
    /// A format knows it, and cannot read it.
    #[error("{file}:{line}: found {found}, expected {expected} ({tool})")]
    Malformed {
        /// The tool.
        tool: &'static str,
        /// The input.
        file: String,
        /// Line, from 1.
        line: u64,
        /// The text found.
        found: String,
        /// The expected text.
        expected: String,
    },
}

/// A dump that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Read {
    /// Name of the file.
    pub file: String,
    /// Whose output it is.
    pub tool: &'static str,
    /// Whether that format was tested on output of the real tool.
    pub is_verified: bool,
    /// The result of reading it.
    pub taken: Taken,
}

/// All formats.
pub fn formats() -> impl Iterator<Item = &'static Format> {
    solaris::FORMATS.iter().chain(linux::FORMATS).copied()
}

/// Longest name of a thing found that an error repeats.
const FOUND_MAX: usize = 60;

/// Reads a dump of any tool.
///
/// # Errors
/// When no format knows the text, or the one that does cannot read it.
pub fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Read, DumpError> {
    let sure = formats().map(|format| ((format.sniff)(input), format));
    // The first of equals: formats are ordered from the narrow to the wide.
    let best = sure.fold(
        None,
        |best: Option<(Sniff, &Format)>, (sniff, format)| match best {
            Some((known, _)) if known >= sniff => best,
            _ => Some((sniff, format)),
        },
    );
    match best {
        Some((Sniff::Yes | Sniff::Maybe, format)) => {
            let taken = (format.read)(input, builder)?;
            Ok(Read {
                file: input.name.to_owned(),
                tool: format.tool,
                is_verified: format.is_verified,
                taken,
            })
        }
        _ => match input.text.lines().find(|line| !line.trim().is_empty()) {
            Some(line) => Err(DumpError::Unknown {
                file: input.name.to_owned(),
                found: shown(line),
            }),
            None => Err(DumpError::Empty {
                file: input.name.to_owned(),
            }),
        },
    }
}

/// Like [`read`], for content that may not be text: `nvme id-ns -b` writes the bytes that the drive returned.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(name: &str, bytes: &[u8], builder: &mut Builder) -> Result<Read, DumpError> {
    if linux::identify(name, bytes, builder) {
        let taken = Taken {
            understood: 1,
            passed_over: 0,
        };
        return Ok(Read {
            file: name.to_owned(),
            tool: "nvme id-ns -b",
            is_verified: true,
            taken,
        });
    }
    let text = String::from_utf8_lossy(bytes);
    read(&Input { name, text: &text }, builder)
}

/// Connects nodes by name; after the last dump.
pub fn join(builder: &mut Builder) {
    solaris::join(builder);
    linux::join(builder);
}

/// A word as an error repeats it: short, and without control characters.
pub(crate) fn shown(found: &str) -> String {
    let plain: String = found
        .trim()
        .chars()
        .take(FOUND_MAX)
        .flat_map(char::escape_debug)
        .collect();
    format!("\"{plain}\"")
}
