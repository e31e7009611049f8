//! Common parts of all parameter files: positions in them, and possible errors.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

/// Longest file that is read. Files that people write have some hundred lines.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLine {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// Counted from 1; 0 for text that is in no file.
    pub line: usize,
}

impl fmt::Display for FileLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// Why a parameter file asks for nothing that can be run.
#[derive(Debug, Error)]
pub enum JobFileError {
    /// There is no such file, or no right to it.
    #[error("{path}: cannot be read")]
    Unreadable {
        /// The file, as it was named.
        path: String,
        /// The error of the system.
        source: io::Error,
    },
    /// More than anybody writes.
    #[error("{path}: found more than {FILE_BYTES_MAX} bytes, expected a parameter file")]
    TooLong {
        /// The file, as it was named.
        path: String,
    },
    /// It was read to its end, and asks for nothing.
    #[error("{path}: found nothing to run, expected {expected}")]
    Unfinished {
        /// The file, as it was named.
        path: String,
        /// The missing part.
        expected: &'static str,
    },
    /// Letters that make no parameter.
    #[error("{place}: found {found}, expected {expected}")]
    Shape {
        /// The position.
        place: FileLine,
        /// The text found.
        found: String,
        /// The expected text.
        expected: &'static str,
    },
    /// A parameter that its tool does not have either.
    #[error("{place}: found unknown parameter `{found}` of {owner}, expected one of: {expected}")]
    UnknownParameter {
        /// The position.
        place: FileLine,
        /// The parameter, as it was written.
        found: String,
        /// The owner of the parameter.
        owner: String,
        /// Those there are.
        expected: String,
    },
    /// A parameter that its tool has, and that has no meaning here.
    #[error("{place}: found `{found}` of {owner}, which {why}; expected the file without it")]
    Refused {
        /// The position.
        place: FileLine,
        /// The parameter, as it was written.
        found: String,
        /// The owner of the parameter.
        owner: String,
        /// Why it is refused.
        why: &'static str,
    },
    /// A value that a parameter cannot have.
    #[error("{place}: {parameter}: found `{found}`, expected {expected}")]
    Value {
        /// The position.
        place: FileLine,
        /// The parameter, in full.
        parameter: String,
        /// Its value, as it was written.
        found: String,
        /// The allowed value.
        expected: String,
    },
    /// A name that is there already, or a parameter that was given already.
    #[error("{place}: found {what} a second time, expected it once: it is in line {first} too")]
    Twice {
        /// The position.
        place: FileLine,
        /// Its description.
        what: String,
        /// Line of the first one.
        first: usize,
    },
    /// A name that nothing has.
    #[error("{place}: found {kind}={name}, which is not defined, expected one of: {known}")]
    NoSuch {
        /// The position.
        place: FileLine,
        /// Its kind.
        kind: &'static str,
        /// The name, as it was written.
        name: String,
        /// Names there are.
        known: String,
    },
    /// Something that has to be there is not.
    #[error("{place}: found {owner} without {lacking}, expected {expected}")]
    Lacking {
        /// The position.
        place: FileLine,
        /// The definition that lacks it.
        owner: String,
        /// The parameter.
        lacking: &'static str,
        /// The accepted values.
        expected: &'static str,
    },
}

/// The text of a parameter file.
///
/// # Errors
/// When it cannot be read, or is far longer than such files are.
pub fn read_text(path: &Path) -> Result<String, JobFileError> {
    let name = || path.display().to_string();
    let unreadable = |source| JobFileError::Unreadable {
        path: name(),
        source,
    };
    let mut text = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    io::Read::read_to_end(&mut io::Read::take(file, FILE_BYTES_MAX + 1), &mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(JobFileError::TooLong { path: name() });
    }
    // Invalid UTF-8 is allowed in a comment; elsewhere it is an unknown word.
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Names for a message: those that a line or two hold.
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 40;
    let names: Vec<&str> = names.collect();
    match names.len() {
        0 => "none".to_owned(),
        all if all <= SHOWN => names.join(", "),
        all => format!("{} and {} more", names[..SHOWN].join(", "), all - SHOWN),
    }
}
