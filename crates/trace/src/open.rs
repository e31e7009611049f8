//! From what the user named to readers: groups per-CPU files, finds out formats.

use std::path::{Path, PathBuf};

use crate::error::{Error, shown};
use crate::format::{FORMATS, Format, known_names};
use crate::input::{Input, SNIFF_BYTES};
use crate::order::Ordered;
use crate::reader::{ReadOptions, Reader, Sniff};

/// One recording: the unit within which streams and order have a meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// As the user named it.
    pub path: PathBuf,
}

/// Takes what the user named apart into recordings.
#[must_use]
pub fn pieces(paths: &[PathBuf]) -> Vec<Piece> {
    paths.iter().map(|path| Piece { path: path.clone() }).collect()
}

/// Opens a recording.
///
/// # Errors
/// When it cannot be opened, is empty, or its format is unknown, refused or not what was asked.
pub fn open(piece: &Piece, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    open_input(Input::open(&piece.path)?, options)
}

/// Opens a recording whose bytes are at hand.
///
/// # Errors
/// As [`open`].
pub fn open_input(mut input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    let format = match &options.format {
        Some(name) => named_format(name)?,
        None => sniff(&mut input)?,
    };
    let reader = (format.open)(input, options)?;
    Ok(if format.unsorted { Box::new(Ordered::new(reader)) } else { reader })
}

fn named_format(name: &str) -> Result<&'static Format, Error> {
    let found = FORMATS.iter().find(|format| format.name == name).copied();
    found.ok_or_else(|| Error::NoSuchFormat { found: name.to_owned(), known: known_names() })
}

/// Asks all formats, with more bytes as long as one wants more and none says yes.
fn sniff(input: &mut Input) -> Result<&'static Format, Error> {
    let mut want = 4096;
    loop {
        let prefix = input.peek(want)?;
        let prefix = &prefix[..prefix.len().min(SNIFF_BYTES)];
        let all_of_it = prefix.len() < want;
        let answers = || FORMATS.iter().map(|format| (*format, (format.sniff)(prefix, all_of_it)));
        if let Some((format, _)) = answers().find(|(_, answer)| *answer == Sniff::Yes) {
            return Ok(format);
        }
        let undecided = answers().any(|(_, answer)| answer == Sniff::More);
        if undecided && !all_of_it && want < SNIFF_BYTES {
            want *= 4;
            continue;
        }
        let found = shown(prefix);
        return Err(Error::UnknownFormat { path: input.path.clone(), found, known: known_names() });
    }
}

/// Whether a path is that of an existing file or standard input.
#[must_use]
pub fn exists(path: &Path) -> bool {
    path == Path::new("-") || path.exists()
}
