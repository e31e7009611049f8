//! Writes what was asked for: whole or not at all.

use std::io::{self, IsTerminal, Write};
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

/// Writes a file under another name first, so that a file of this name is always whole.
///
/// # Errors
/// When it cannot be written.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::failed(&error).with_help(format!("writing {}", path.display()));
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    std::fs::write(&partial, bytes).map_err(failed)?;
    std::fs::rename(&partial, path).map_err(failed)
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
