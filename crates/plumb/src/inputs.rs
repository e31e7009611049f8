//! Files that are read whole: output of other tools, and saved profiles.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use plumb_geometry::group_digits;
use plumb_profile::codec::{self, Saved};
use plumb_stack::Builder;
use plumb_stack::dump::{self, DumpError};
use plumb_trace::input::Input;

use crate::failure::Failure;

/// No dump is larger: `lsblk -J -O` of ten thousand devices takes 30 MB.
pub const DUMP_BYTES_MAX: u64 = 256 << 20;

/// As many bytes as tell that a file is a saved profile.
const MAGIC_BYTES: usize = 8;

/// The bytes of a file, or of standard input for `-`.
///
/// # Errors
/// When it cannot be read, or is longer than it may be.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Failure> {
    let name = path.display();
    let failed = |source: io::Error| {
        Failure::failed(&Unreadable {
            name: name.to_string(),
            source,
        })
    };
    let input: Box<dyn Read> = match path.to_str() {
        Some("-") => Box::new(std::io::stdin().lock()),
        _ => Box::new(File::open(path).map_err(failed)?),
    };
    let mut bytes = Vec::new();
    input
        .take(bytes_max + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > bytes_max {
        return Err(Failure::failed(&TooLong {
            name: name.to_string(),
            bytes_max,
        }));
    }
    Ok(bytes)
}

/// What a tool has printed, told to a builder.
///
/// # Errors
/// When no tool is known that prints such, or its output is damaged.
pub fn dump(name: &str, bytes: &[u8], builder: &mut Builder) -> Result<dump::Read, Failure> {
    dump::read_bytes(name, bytes, builder).map_err(|error| match error {
        DumpError::Unknown { .. } => {
            let tools: Vec<&str> = dump::formats().map(|format| format.tool).collect();
            Failure::failed(&error)
                .with_help(format!("known are {}; see docs/dumps.md", tools.join(", ")))
        }
        DumpError::Empty { .. } | DumpError::Malformed { .. } => Failure::failed(&error),
    })
}

/// A saved profile, packed once more or not; `-` is standard input.
///
/// # Errors
/// When it cannot be read, or is none.
pub fn profile(path: &Path) -> Result<Saved, Failure> {
    let input = Input::open(path).map_err(|error| Failure::failed(&error))?;
    saved(input).map_err(|failure| {
        failure.with_help(format!(
            "{} must be a profile that `plumb analyze --save` wrote",
            path.display()
        ))
    })
}

/// Whether an input holds a saved profile.
///
/// # Errors
/// When it cannot be read.
pub fn is_profile(input: &mut Input) -> Result<bool, Failure> {
    let head = input
        .peek(MAGIC_BYTES)
        .map_err(|error| Failure::failed(&error))?;
    Ok(codec::is_encoded(head))
}

/// The saved profile in an input.
///
/// # Errors
/// When it cannot be read, or is none.
pub fn saved(input: Input) -> Result<Saved, Failure> {
    // Packed it is never larger than unpacked, and more than that is refused anyway.
    let bytes = whole(input, codec::UNPACKED_BYTES_MAX)?;
    codec::decode(&bytes).map_err(|error| Failure::failed(&error))
}

/// All bytes of an input.
///
/// # Errors
/// When it cannot be read, or is longer than it may be.
pub fn whole(mut input: Input, bytes_max: u64) -> Result<Vec<u8>, Failure> {
    let name = input.path.clone();
    let mut bytes = Vec::new();
    while bytes.len() as u64 <= bytes_max {
        let more = input.peek(1).map_err(|error| Failure::failed(&error))?;
        if more.is_empty() {
            return Ok(bytes);
        }
        bytes.extend_from_slice(more);
        let taken = more.len();
        input.consume(taken);
    }
    Err(Failure::failed(&TooLong { name, bytes_max }))
}

/// A file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {name}")]
struct Unreadable {
    name: String,
    source: io::Error,
}

/// A file that is longer than anything it could be.
#[derive(Debug, thiserror::Error)]
#[error("{name}: found more than {} bytes, expected a file of a tool", group_digits(*bytes_max))]
struct TooLong {
    name: String,
    bytes_max: u64,
}
