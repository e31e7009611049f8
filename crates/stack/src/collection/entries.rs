//! Reads the entries of a collection into memory.
//!
//! A collection may come from anywhere. Nothing of it is unpacked into a file system: it becomes a [`FileTree`] of bounded
//! size, in which no entry can be written through a link. Entries are taken raw, since a name for the next entry (of GNU tar
//! or pax) has a length of its own that the archive's reader would allocate unchecked.

use std::io::{self, Read};

use plumb_geometry::group_digits;
use plumb_sys::{FileTree, TreeError};
use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::{ArchiveError, DUMPS, FILE_BYTES_MAX, Form, MARK, MARK_TEXT};

/// The mark of the first form, which had only files and outputs of tools.
const MARK_OF_FILES: &str = "plumb-collection 1\n";
/// Power of two of the largest window that a frame may ask for.
const WINDOW_LOG_MAX: u32 = 23;

/// Most entries: ten thousand devices have about a million files.
const ENTRIES_MAX: u64 = 4_000_000;
/// All outputs of tools: parsing a line takes up to twenty times as much memory as the line.
const DUMPS_BYTES_MAX: u64 = 32 << 20;
/// All of the archive, unpacked.
const ALL_BYTES_MAX: u64 = 1 << 30;
/// Memory for names and files: a million files of sysfs take some 300 MB.
const MEMORY_BYTES_MAX: u64 = 512 << 20;
/// Longest path, of an entry or in a link: no longer one can be given to the kernel (PATH_MAX).
const PATH_BYTES_MAX: u64 = 4096;
/// Deepest path. A disk behind ten bridges of PCI has some 25 directories above its files.
const DEPTH_MAX: usize = 64;
/// Longest list of extensions for the next entry: two paths, and the times and owners that pax adds.
const PAX_BYTES_MAX: u64 = 64 << 10;

enum Problem {
    Io(io::Error),
    Found(String, &'static str),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Problem {
        Problem::Io(error)
    }
}

/// Reads a collection into memory.
///
/// # Errors
/// If it is not a collection, is damaged, or contains forbidden entries.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<(Form, FileTree), ArchiveError> {
    let mut at = 0;
    read_entries(bytes, &mut at).map_err(|problem| match problem {
        Problem::Io(source) => ArchiveError::Unpack {
            file: file.to_owned(),
            entry: at,
            source,
        },
        Problem::Found(found, expected) => ArchiveError::Entry {
            file: file.to_owned(),
            entry: at,
            found,
            expected,
        },
    })
}

/// A frame in memory.
type Frame<'a> = zstd::stream::read::Decoder<'a, io::BufReader<&'a [u8]>>;

fn frame(bytes: &[u8]) -> io::Result<Frame<'_>> {
    let mut frame = zstd::stream::read::Decoder::new(bytes)?;
    frame.window_log_max(WINDOW_LOG_MAX)?;
    Ok(frame)
}

/// The bytes that the mark has as the name of the first entry.
pub(super) fn first_name(head: &[u8]) -> io::Result<[u8; MARK.len()]> {
    let mut name = [0; MARK.len()];
    frame(head)?.read_exact(&mut name)?;
    Ok(name)
}

fn read_entries(bytes: &[u8], at: &mut u64) -> Result<(Form, FileTree), Problem> {
    let mut archive = Archive::new(Bounded {
        inner: frame(bytes)?,
        left: ALL_BYTES_MAX,
    });
    let mut files = Files::new();
    let mut form = None;
    let mut next = NextEntry::default();
    for entry in archive.entries()?.raw(true) {
        *at += 1;
        if *at > ENTRIES_MAX {
            let found = format!("more than {} entries", group_digits(ENTRIES_MAX));
            return Err(Problem::Found(found, "the files of one host"));
        }
        let mut entry = entry?;
        if next.is_told(&mut entry)? {
            continue;
        }
        let named = std::mem::take(&mut next).names_of(&entry)?;
        match form {
            None => form = Some(mark(&named.path, &mut entry)?),
            Some(_) => files.add(named, &mut entry)?,
        }
    }
    let expected = "a collection of `plumb check --collect`";
    let form = form.ok_or(Problem::Found("nothing".to_owned(), expected))?;
    // The checksum of the frame is behind its last byte.
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    Ok((form, files.tree))
}

/// Unpacked bytes, up to a length.
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(buffer)?;
        let left = self.left.checked_sub(len as u64);
        self.left = left.ok_or_else(|| {
            io::Error::other("found more than 1 GiB in it, expected the files of one host")
        })?;
        Ok(len)
    }
}

/// The fields for the next entry that earlier entries set.
#[derive(Default)]
struct NextEntry {
    path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
}

/// An entry with its own path, and the target if it is a link.
struct Named {
    path: String,
    target: Vec<u8>,
}

impl NextEntry {
    /// Takes in an entry that only tells of the next one; whether it was one.
    fn is_told(&mut self, entry: &mut Entry<'_, impl Read>) -> Result<bool, Problem> {
        let kind = entry.header().entry_type();
        match kind {
            EntryType::GNULongName => set(&mut self.path, long_name(entry)?)?,
            EntryType::GNULongLink => set(&mut self.target, long_name(entry)?)?,
            EntryType::XHeader => {
                self.pax(&content(entry, PAX_BYTES_MAX, "64 KiB of extensions")?)?
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn pax(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        for extension in PaxExtensions::new(bytes) {
            let extension = extension?;
            let value = || bounded_path(extension.value_bytes());
            match extension.key_bytes() {
                b"path" => set(&mut self.path, value()?)?,
                b"linkpath" => set(&mut self.target, value()?)?,
                // Another length than the header's: two readers would find different entries.
                key if key == b"size" || key.starts_with(b"GNU.sparse.") => {
                    let key = shown(&String::from_utf8_lossy(key));
                    let found = format!("the extension {key}");
                    return Err(Problem::Found(found, "a length in the header alone"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The names of the entry that all this was about.
    fn names_of(self, entry: &Entry<'_, impl Read>) -> Result<Named, Problem> {
        let header = entry.header();
        let path = self
            .path
            .unwrap_or_else(|| header.path_bytes().into_owned());
        let of_header = || header.link_name_bytes().unwrap_or_default().into_owned();
        Ok(Named {
            path: checked_path(&String::from_utf8_lossy(&path))?,
            target: self.target.unwrap_or_else(of_header),
        })
    }
}

fn set(name: &mut Option<Vec<u8>>, found: Vec<u8>) -> Result<(), Problem> {
    match name.replace(found) {
        None => Ok(()),
        Some(_) => {
            let found = "two names for one entry".to_owned();
            Err(Problem::Found(found, "one"))
        }
    }
}

/// The content of an entry that has a name; it ends with a NUL.
fn long_name(entry: &mut Entry<'_, impl Read>) -> Result<Vec<u8>, Problem> {
    let mut name = content(entry, PATH_BYTES_MAX + 1, PATH_EXPECTED)?;
    if name.last() == Some(&0) {
        name.pop();
    }
    bounded_path(&name)
}

const PATH_EXPECTED: &str = "a path of 4,096 bytes at most";

fn bounded_path(path: &[u8]) -> Result<Vec<u8>, Problem> {
    if path.len() as u64 > PATH_BYTES_MAX {
        let found = format!("a path of {} bytes", group_digits(path.len() as u64));
        return Err(Problem::Found(found, PATH_EXPECTED));
    }
    Ok(path.to_vec())
}

/// All bytes of an entry, which are counted before they are read.
fn content(
    entry: &mut Entry<'_, impl Read>,
    len_max: u64,
    expected: &'static str,
) -> Result<Vec<u8>, Problem> {
    let len = entry.size();
    if len > len_max {
        let found = format!("{} bytes", group_digits(len));
        return Err(Problem::Found(found, expected));
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes)?;
    if bytes.len() as u64 != len {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(bytes)
}

/// The files of the collection so far.
struct Files {
    tree: FileTree,
    left_for_dumps: u64,
}

impl Files {
    fn new() -> Files {
        Files {
            tree: FileTree::new(MEMORY_BYTES_MAX),
            left_for_dumps: DUMPS_BYTES_MAX,
        }
    }

    fn add(&mut self, named: Named, entry: &mut Entry<'_, impl Read>) -> Result<(), Problem> {
        let Named { path, target } = named;
        let added = match entry.header().entry_type() {
            EntryType::Regular => {
                self.must_fit(&path, entry.size())?;
                let content = content(entry, FILE_BYTES_MAX, FITS)?;
                self.tree.add_file(&path, content)
            }
            EntryType::Directory => self.tree.add_directory(&path),
            EntryType::Symlink => {
                let target = bounded_path(&target)?;
                let target = String::from_utf8_lossy(&target);
                self.tree.add_link(&path, &target)
            }
            other => {
                let found = format!("{} of type {other:?}", shown(&path));
                return Err(Problem::Found(found, "a file, a directory or a link"));
            }
        };
        added.map_err(|error| match error {
            TreeError::Twice => Problem::Found(format!("{} twice", shown(&path)), "each name once"),
            TreeError::NoDirectory => {
                let found = format!("{} below a file or link", shown(&path));
                Problem::Found(found, "directories above it")
            }
            TreeError::Full => Problem::Found(shown(&path), FITS),
        })
    }

    fn must_fit(&mut self, path: &str, len: u64) -> Result<(), Problem> {
        let found = || format!("{} of {} bytes", shown(path), group_digits(len));
        if len > FILE_BYTES_MAX.min(self.tree.left_bytes()) {
            return Err(Problem::Found(found(), FITS));
        }
        if path.split('/').next() == Some(DUMPS) {
            let left = self.left_for_dumps.checked_sub(len);
            self.left_for_dumps =
                left.ok_or_else(|| Problem::Found(found(), "32 MiB in all outputs of tools"))?;
        }
        Ok(())
    }
}

const FITS: &str = "less than 64 MiB a file, and 512 MiB with all names";

/// The first entry identifies the file and its version.
fn mark(path: &str, entry: &mut impl Read) -> Result<Form, Problem> {
    let mut text = Vec::new();
    entry.take(64).read_to_end(&mut text)?;
    for (known, form) in [(MARK_TEXT, Form::Whole), (MARK_OF_FILES, Form::Files)] {
        if path == MARK && text == known.as_bytes() {
            return Ok(form);
        }
    }
    let found = format!("{} with {:?}", shown(path), String::from_utf8_lossy(&text));
    Err(Problem::Found(
        found,
        "`plumb-collection 1` or 2, as `plumb check --collect` writes it",
    ))
}

/// A path of names alone: nothing that leads upward or to a root.
fn checked_path(path: &str) -> Result<String, Problem> {
    let is_name = |name: &&str| !name.is_empty() && *name != "." && *name != "..";
    // A directory's path ends with a slash.
    let inner = path.strip_suffix('/').unwrap_or(path);
    let depth = inner.split('/').count();
    if path.contains('\0') || !inner.split('/').all(|name| is_name(&name)) {
        return Err(Problem::Found(shown(path), "a path of plain names"));
    }
    if depth > DEPTH_MAX {
        let found = format!("{} in {depth} directories", shown(path));
        return Err(Problem::Found(found, "64 at most"));
    }
    Ok(inner.to_owned())
}

/// The beginning of a name, harmless to print.
pub(super) fn shown(path: &str) -> String {
    path.chars().take(80).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests;
