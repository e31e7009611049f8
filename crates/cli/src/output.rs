//! Writes requested files: whole or not at all, and never over an input.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use plumb_quoting::visible;
use plumb_report::text::{Color, Paper, ascii};
use plumb_trace::open;
use plumb_trace::write::{Output, target_of, words_of};
use ratatui::crossterm::terminal;

use crate::cli::ColorChoice;
use crate::failure::Failure;

/// Prints a report to standard output. A reader that has gone away is no failure.
///
/// # Errors
/// When standard output cannot be written.
pub fn print(text: &str) -> Result<(), Failure> {
    print_if_read(text).map(|_| ())
}

/// Prints a line to standard output, with hidden characters as escapes: names in it are from anywhere.
///
/// # Errors
/// As [`print()`].
pub fn print_line(line: &str) -> Result<(), Failure> {
    print(&format!("{}\n", visible(line)))
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

/// Says a line on standard error, with hidden characters as escapes: names in it are from anywhere.
pub fn say(line: &str) {
    // If this fails, no stream is left for the error.
    let _ = writeln!(io::stderr(), "{}", visible(line));
}

/// Whether files can be written there, each apart from all that is read and from the others: better known now than
/// after hours.
///
/// # Errors
/// When something else than a regular file has a name, two are the same file, or the directory takes none.
pub fn may_write(inputs: &[PathBuf], outputs: &[&Path]) -> Result<(), Failure> {
    for path in outputs {
        may_write_one(path)?;
    }
    must_be_apart(inputs, outputs)?;
    outputs
        .iter()
        .try_for_each(|path| Output::create(path).map(drop).map_err(of_trace))
}

fn may_write_one(path: &Path) -> Result<(), Failure> {
    if path == Path::new("-") {
        return Err(Failure::usage(
            "-: found standard output, where the report goes, expected the name of a file",
        )
        .with_help("nothing was written: give a name; ./- is a file that is called so"));
    }
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => return Err(taken(path, &found, "a regular file or none")),
        Ok(_) => return Ok(()),
        Err(_) => {}
    }
    match path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty())
    {
        Some(directory) if !directory.is_dir() => Err(Failure::missing(format!(
            "{}: found no such directory to write in",
            directory.display()
        ))),
        _ => Ok(()),
    }
}

/// Whether outputs differ from the inputs, and from standard output if that is a file.
///
/// # Errors
/// When two are the same file, under any names.
pub fn must_be_apart(inputs: &[PathBuf], outputs: &[&Path]) -> Result<(), Failure> {
    let pieces = open::pieces(inputs).into_iter();
    let read = pieces.flat_map(|piece| {
        if piece.files.is_empty() {
            vec![piece.path]
        } else {
            piece.files
        }
    });
    let mut others: Vec<(Option<File>, &str)> = read
        .map(|path| {
            (
                File::identify(if path == Path::new("-") {
                    Path::new(STDIN)
                } else {
                    &path
                }),
                "is read",
            )
        })
        .collect();
    others.push((File::identify(Path::new(STDOUT)), "is standard output"));
    for path in outputs.iter().filter(|path| !is_standard_output(path)) {
        let file = File::identify(path);
        if let Some((_, what)) = others
            .iter()
            .find(|(other, _)| file.is_some() && *other == file)
        {
            return Err(Failure::usage(format!(
                "{}: found a file that {what} too, expected another one",
                path.display()
            ))
            .with_help("nothing was written: give another name"));
        }
        others.push((file, "is written"));
    }
    Ok(())
}

const STDIN: &str = "/dev/stdin";
const STDOUT: &str = "/dev/stdout";

/// Whether a trace goes there on purpose.
fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-") || path == Path::new(STDOUT)
}

/// The identity of a regular file, independent of the links that lead to it.
#[derive(PartialEq, Eq)]
enum File {
    /// Device and inode.
    There(u64, u64),
    /// Directory and name of one that is not there yet.
    New(PathBuf, OsString),
}

impl File {
    /// Identifies the file at a path; `None` if it is no regular file and cannot become one.
    fn identify(path: &Path) -> Option<File> {
        match fs::metadata(path) {
            Ok(found) => found
                .is_file()
                .then(|| File::There(found.dev(), found.ino())),
            Err(_) => {
                let path = target_of(path).ok()?;
                let directory = path
                    .parent()
                    .filter(|directory| !directory.as_os_str().is_empty());
                let directory = fs::canonicalize(directory.unwrap_or(Path::new("."))).ok()?;
                Some(File::New(directory, path.file_name()?.to_owned()))
            }
        }
    }
}

/// Whether the name is free, and a file with data of disks can be made there.
///
/// # Errors
/// When anything has it, a link without an end included, or the directory takes no file.
pub fn must_be_new(path: &Path) -> Result<(), Failure> {
    may_write_one(path)?;
    match fs::symlink_metadata(path) {
        Ok(found) => Err(taken(path, &found, "the name of a new file")),
        Err(_) => must_be_apart(&[], &[path])
            .and_then(|()| Output::create_private(path).map(drop).map_err(of_trace)),
    }
}

fn taken(path: &Path, found: &Metadata, expected: &str) -> Failure {
    Failure::usage(format!(
        "{}: found {}, expected {expected}",
        path.display(),
        words_of(found)
    ))
    .with_help("nothing was written: give another name")
}

/// Writes a report under another name first, so that a file of this name is always whole.
///
/// # Errors
/// When it cannot be written.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    may_write_one(path)?;
    write(Output::create(path).map_err(of_trace)?, bytes)
}

/// Writes a new file with data of disks in the same way, for its owner alone.
///
/// # Errors
/// When anything has the name, or it cannot be written.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write(Output::create_private(path).map_err(of_trace)?, bytes)
}

fn write(mut output: Output, bytes: &[u8]) -> Result<(), Failure> {
    let written = output.write_all(bytes);
    let path = output.path();
    written.map_err(|source| {
        let path = path.clone();
        of_trace(plumb_trace::Error::Write { path, source })
    })?;
    output.commit().map_err(of_trace)?;
    note_written(&path);
    Ok(())
}

/// Tells a person that a file is there. Scripts know the names that they gave.
pub fn note_written(name: &str) {
    if io::stderr().is_terminal() {
        say(&format!("wrote {name}"));
    }
}

fn of_trace(error: plumb_trace::Error) -> Failure {
    Failure::failed(&error)
}

/// Columns of a terminal that does not say how wide it is.
pub const WIDTH: usize = 80;
/// Below that lines are not broken for it: nothing of a sentence would be left on one.
const WIDTH_MIN: usize = 30;

/// The width of a stream's terminal; `None` for anything else than a terminal.
pub fn columns(stream: &impl IsTerminal) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let width = terminal::size().map_or(WIDTH, |(columns, _)| usize::from(columns));
    Some(if width < WIDTH_MIN { WIDTH } else { width })
}

/// A report as standard output can show it: in ASCII where the locale has no other signs, or the terminal is dumb. Documents for
/// programs do not come here.
#[must_use]
pub fn drawn(text: String) -> String {
    match is_ascii_only(|name| std::env::var(name).ok()) {
        true => ascii(&text),
        false => text,
    }
}

/// Whether signs beyond ASCII may be lost. The first variable that is set decides, as for the C library; without any the locale is
/// that of POSIX, which has ASCII alone.
pub fn is_ascii_only(variable: impl Fn(&str) -> Option<String>) -> bool {
    if variable("TERM").as_deref() == Some("dumb") {
        return true;
    }
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(variable)
        .find(|locale| !locale.is_empty());
    let codeset = locale.map(|locale| locale.to_ascii_lowercase().replace('-', ""));
    !codeset.is_some_and(|codeset| codeset.contains("utf8"))
}

/// Whether to colour standard output.
pub fn color(choice: ColorChoice) -> Color {
    let wanted = match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
            std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() && !is_dumb
        }
    };
    if wanted { Color::Always } else { Color::Never }
}

/// The surface of standard output: its colour, and the width of its terminal.
pub fn paper(choice: ColorChoice) -> Paper {
    let paper = Paper::from(color(choice));
    columns(&std::io::stdout()).map_or(paper, |columns| paper.of_width(columns))
}

#[cfg(test)]
mod tests {
    use super::is_ascii_only;

    #[test]
    fn the_locale_decides_about_signs() {
        for (set, expected) in [
            (&[][..], true),
            (&[("LANG", "C")], true),
            (&[("LANG", "en_US.UTF-8")], false),
            (&[("LANG", "C.utf8")], false),
            (&[("LANG", "de_DE.ISO-8859-1")], true),
            (&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")], true),
            (&[("LC_ALL", ""), ("LANG", "en_US.UTF-8")], false),
            (&[("LC_CTYPE", "C.UTF-8"), ("LANG", "C")], false),
            (&[("LANG", "en_US.UTF-8"), ("TERM", "dumb")], true),
        ] {
            let variable = |name: &str| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(is_ascii_only(variable), expected, "{set:?}");
        }
    }
}
