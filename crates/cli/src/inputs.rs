//! Files that are read whole: output of other tools, and saved profiles.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use plumb_geometry::group_digits;
use plumb_profile::codec::{self, Saved};
use plumb_stack::Builder;
use plumb_stack::dump::{self, DumpError};
use plumb_trace::input::Input;
use plumb_trace::open::{self, Piece};
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::failure::Failure;

/// No dump is larger: `lsblk -J -O` of ten thousand devices takes 30 MB.
pub const DUMP_BYTES_MAX: u64 = 256 << 20;

/// How long a pipe may stay silent: a tool of a remote host has to log in first.
const PIPE_WAIT: Duration = Duration::from_secs(60);

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
        _ => open(path, PIPE_WAIT).map_err(failed)?,
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

/// Opens a file to read it from its beginning. A pipe must not keep the program waiting for a writer that never comes.
fn open(path: &Path, wait: Duration) -> io::Result<Box<dyn Read>> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    Ok(match file.metadata()?.file_type().is_fifo() {
        true => Box::new(Pipe { file, wait }),
        false => Box::new(file),
    })
}

/// A named pipe, or one of the shell's `<(command)`.
struct Pipe {
    file: File,
    wait: Duration,
}

impl Read for Pipe {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let limit = Timespec::try_from(self.wait).map_err(io::Error::other)?;
        let begun = Instant::now();
        loop {
            let mut polled = [PollFd::new(&self.file, PollFlags::IN)];
            match rustix::event::poll(&mut polled, Some(&limit)) {
                Ok(0) => {
                    return Err(io::Error::other(format!(
                        "found a pipe on which nothing came for {} s, expected the output of a tool",
                        self.wait.as_secs_f64()
                    )));
                }
                Ok(_) => match self.file.read(bytes) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    read => return read,
                },
                Err(rustix::io::Errno::INTR) if begun.elapsed() < self.wait => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// Adds the output of a tool to a builder.
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

/// The recording that a path names.
///
/// # Errors
/// If it names none, or several.
pub fn one_piece(path: &Path) -> Result<Piece, Failure> {
    let mut pieces = open::pieces(std::slice::from_ref(&path.to_owned()));
    match (pieces.pop(), pieces.is_empty()) {
        (Some(piece), true) => Ok(piece),
        (None, _) => Err(Failure::unknown(format!(
            "{} holds no trace",
            path.display()
        ))),
        (Some(_), false) => Err(Failure::usage(format!(
            "{} holds several recordings: name one",
            path.display()
        ))),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn fifo() -> (plumb_testkit::tempdir::TempDir, std::path::PathBuf) {
        let folder = plumb_testkit::temp_dir("fifo");
        let path = folder.path().join("pipe");
        let made = Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo of coreutils").success());
        (folder, path)
    }

    #[test]
    fn a_pipe_without_a_writer_ends() {
        let (_folder, path) = fifo();
        let mut messages = Vec::new();
        for is_written in [false, true] {
            // A writer that says nothing is no better than none.
            let writer = is_written.then(|| {
                let options = OpenOptions::new().read(true).write(true).open(&path);
                options.expect("opens both ends")
            });
            let mut pipe = open(&path, Duration::from_millis(200)).expect("opens");
            let error = pipe.read(&mut [0; 8]).expect_err("nothing comes");
            messages.push(error.to_string());
            drop(writer);
        }
        insta::assert_snapshot!(messages.join("\n\n"));
    }

    #[test]
    fn a_pipe_is_read_to_its_end() {
        let (_folder, path) = fifo();
        let script = format!(
            "(sleep 0.2; printf one; sleep 0.2; printf two) >{}",
            path.display()
        );
        let mut writer = Command::new("sh")
            .args(["-c", &script])
            .spawn()
            .expect("a shell");
        let mut text = String::new();
        let mut pipe = open(&path, Duration::from_secs(30)).expect("opens");
        pipe.read_to_string(&mut text).expect("reads");
        assert_eq!(text, "onetwo");
        assert!(
            plumb_testkit::wait::exit("the writer", plumb_testkit::wait::PATIENCE, &mut writer)
                .success()
        );
    }
}
