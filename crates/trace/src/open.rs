//! From the user's paths to readers: groups per-CPU files, detects formats.

use std::path::{Path, PathBuf};

use crate::error::{Error, shown};
use crate::format::blktrace::{self, set};
use crate::format::{FORMATS, Format, known_names};
use crate::input::{Input, SNIFF_BYTES};
use crate::order::Ordered;
use crate::reader::{ReadOptions, Reader, Sniff};

/// This number of lines at the beginning of a text may be damaged before its format is unknown.
const ODD_LINES_MAX: usize = 8;

/// One recording: the unit within which streams and order have a meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// As the user named it; `DIR/NAME` for several files of CPUs.
    pub path: PathBuf,
    /// The files that record one CPU each; empty where the path itself is the file.
    pub files: Vec<PathBuf>,
}

/// Splits the user's paths into recordings: a directory into those of blktrace in it, `DIR/NAME` into its files
/// `NAME.blktrace.CPU`, and such files, named one by one, into those that belong together.
#[must_use]
pub fn pieces(paths: &[PathBuf]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for path in paths {
        let files = if path.is_dir() {
            set::files_in(path)
                .into_iter()
                .map(|(recording, _, file)| (recording, file))
                .collect()
        } else if let Some((recording, _)) = set::file_of_cpu(path) {
            vec![(recording, path.clone())]
        } else if path.exists() {
            Vec::new()
        } else {
            set::files_of(path)
                .into_iter()
                .map(|file| (path.clone(), file))
                .collect::<Vec<_>>()
        };
        if files.is_empty() {
            pieces.push(Piece {
                path: path.clone(),
                files: Vec::new(),
            });
        }
        for (recording, file) in files {
            add(&mut pieces, recording, file);
        }
    }
    for piece in &mut pieces {
        if let [file] = &piece.files[..] {
            piece.path.clone_from(file);
        }
    }
    pieces
}

/// Adds a file to its recording, unless the file of its CPU is already there.
fn add(pieces: &mut Vec<Piece>, recording: PathBuf, file: PathBuf) {
    let cpu_of = |file: &Path| set::file_of_cpu(file).map(|(_, cpu)| cpu);
    let found = pieces
        .iter_mut()
        .find(|piece| !piece.files.is_empty() && piece.path == recording);
    match found {
        None => pieces.push(Piece {
            path: recording,
            files: vec![file],
        }),
        Some(piece) => {
            if piece
                .files
                .iter()
                .all(|known| cpu_of(known) != cpu_of(&file))
            {
                piece.files.push(file);
                piece.files.sort_by_key(|file| cpu_of(file));
            }
        }
    }
}

/// Opens a recording.
///
/// # Errors
/// If it cannot be opened, is empty, or its format is unknown, refused or not the requested one.
pub fn open(piece: &Piece, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    let as_blktrace = options
        .format
        .as_deref()
        .is_none_or(|name| name == blktrace::FORMAT.name);
    if piece.files.is_empty() || !as_blktrace {
        return open_input(
            Input::open_watched(&piece.path, options.progress.as_ref())?,
            options,
        );
    }
    let reader = blktrace::reader::open_files(&piece.path, &piece.files, options)?;
    Ok(Box::new(Ordered::new(reader)))
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
    Ok(if format.unsorted {
        Box::new(Ordered::new(reader))
    } else {
        reader
    })
}

fn named_format(name: &str) -> Result<&'static Format, Error> {
    let found = FORMATS.iter().find(|format| format.name == name).copied();
    found.ok_or_else(|| Error::NoSuchFormat {
        found: name.to_owned(),
        known: known_names(),
    })
}

/// Asks all formats, with more bytes as long as one wants more and none says yes.
fn sniff(input: &mut Input) -> Result<&'static Format, Error> {
    let mut want = 4096;
    loop {
        let prefix = input.peek(want)?;
        let prefix = &prefix[..prefix.len().min(SNIFF_BYTES)];
        let all_of_it = prefix.len() < want;
        if let Some(format) = first_yes(prefix, all_of_it) {
            return Ok(format);
        }
        let undecided = FORMATS
            .iter()
            .any(|format| (format.sniff)(prefix, all_of_it) == Sniff::More);
        if undecided && !all_of_it && want < SNIFF_BYTES {
            want *= 4;
            continue;
        }
        let later = behind_odd_lines(prefix).find_map(|rest| first_yes(rest, all_of_it));
        let found = shown(prefix);
        return later.ok_or_else(|| Error::UnknownFormat {
            path: input.path.clone(),
            found,
        });
    }
}

fn first_yes(prefix: &[u8], complete: bool) -> Option<&'static Format> {
    FORMATS
        .iter()
        .find(|format| (format.sniff)(prefix, complete) == Sniff::Yes)
        .copied()
}

/// The text after the first line, after the second, and so on: a damaged one must not hide the others, which identify
/// the format. It is then counted as damaged, like later ones. A line of column names is no damage: it belongs to an
/// unknown format, and hides the text after it.
fn behind_odd_lines(prefix: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_text = memchr::memchr(0, prefix).is_none();
    let mut rest = if is_text { prefix } else { &[] };
    std::iter::from_fn(move || {
        let (line, after) = rest.split_at_checked(memchr::memchr(b'\n', rest)? + 1)?;
        rest = if names_columns(line, after) {
            &[]
        } else {
            after
        };
        (!rest.is_empty()).then_some(rest)
    })
    .take(ODD_LINES_MAX)
}

/// Whether a line has a word for each number of the line after it.
fn names_columns(line: &[u8], after: &[u8]) -> bool {
    let next = after
        .split(|&byte| byte == b'\n')
        .next()
        .unwrap_or_default();
    let has_digit = |line: &[u8]| line.iter().any(u8::is_ascii_digit);
    let columns = |line: &[u8], by: u8| {
        line.trim_ascii()
            .split(|&byte| byte == by)
            .filter(|word| !word.trim_ascii().is_empty())
            .count()
    };
    let alike = |by: u8| columns(line, by) > 1 && columns(line, by) == columns(next, by);
    !line.starts_with(b"#")
        && !has_digit(line)
        && has_digit(next)
        && b",;\t ".iter().any(|&by| alike(by))
}

/// Whether a path is standard input, that of an existing file, or the `DIR/NAME` of files of blktrace.
#[must_use]
pub fn exists(path: &Path) -> bool {
    path == Path::new("-") || path.exists() || !set::files_of(path).is_empty()
}
