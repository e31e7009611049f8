//! Writes what was asked for: whole or not at all.

use std::fs::{self, File, FileType};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use plumb_report::text::Color;

use crate::cli::ColorChoice;
use crate::failure::Failure;

/// Prints to standard output. A reader that has gone away is no failure.
///
/// # Errors
/// When standard output cannot be written.
pub fn print(text: &str) -> Result<(), Failure> {
    print_if_read(text).map(|_| ())
}

/// Prints to standard output; tells whether there is still somebody who reads it.
///
/// # Errors
/// When standard output cannot be written.
pub fn print_if_read(text: &str) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::failed(&error)),
        Ok(()) => Ok(true),
    }
}

/// Whether a file can be written there: devices, pipes and directories are no place for one.
///
/// # Errors
/// When something else than a regular file has the name.
pub fn may_write(path: &Path) -> Result<(), Failure> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(taken(path, found.file_type(), "a regular file or none")),
        _ => Ok(()),
    }
}

/// Whether the name is free.
///
/// # Errors
/// When anything has it, a link without an end included.
pub fn must_be_new(path: &Path) -> Result<(), Failure> {
    may_write(path)?;
    match fs::symlink_metadata(path) {
        Ok(found) => Err(taken(path, found.file_type(), "the name of a new file")),
        Err(_) => Ok(()),
    }
}

fn taken(path: &Path, found: FileType, expected: &str) -> Failure {
    let what = match found {
        kind if kind.is_block_device() => "a block device",
        kind if kind.is_char_device() => "a character device",
        kind if kind.is_dir() => "a directory",
        kind if kind.is_symlink() => "a symbolic link",
        kind if kind.is_file() => "a file",
        _ => "a pipe or socket",
    };
    Failure::usage(format!("{}: found {what}, expected {expected}", path.display()))
        .with_help("nothing was written: give another name")
}

/// Writes a file under another name first, so that a file of this name is always whole.
///
/// # Errors
/// When it cannot be written.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    may_write(path)?;
    let failed = |error: io::Error| Failure::failed(&error).with_help(format!("writing {}", path.display()));
    let mut partial = path.as_os_str().to_owned();
    // Of this process, so that no file of the user's has the name and none is left by another run.
    partial.push(format!(".{}.partial", std::process::id()));
    let mut file = File::create_new(&partial).map_err(failed)?;
    let written = file.write_all(bytes).and_then(|()| fs::rename(&partial, path));
    written.map_err(|error| {
        // It is of no use in part; that it stays is no second failure.
        let _ = fs::remove_file(&partial);
        failed(error)
    })
}

/// Whether to colour standard output.
pub fn color(choice: ColorChoice) -> Color {
    let wanted = match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    };
    if wanted { Color::Always } else { Color::Never }
}
