//! A collection: everything that a check reads of a host, in one file for another host to check.
//! `docs/formats/collection.md` describes it.
//!
//! It is a tar archive in a zstd frame. Files of sysfs and procfs have the same paths below `root/` as below `/`; `dumps/`
//! has the output of tools, and further entries the answers of the kernel and the bytes read from devices. A collection may
//! come from anywhere, so unpacking takes only files, directories and links, below a new directory, up to fixed sizes. Links
//! are made after the last file is written, so that no file is written through one.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use plumb_geometry::group_digits;
use tar::{Archive, EntryType, Header};
use thiserror::Error;

mod collected;
mod host;
mod kept;

pub use collected::{Collected, read};
pub use host::{ArchiveCounts, HOSTNAME, Origin, collect};

/// First entry of every collection.
const MARK: &str = "plumb-collection";
/// What it says.
const MARK_TEXT: &str = "plumb-collection 2\n";
/// What the first form said, which had files and outputs of tools alone.
const MARK_OF_FILES: &str = "plumb-collection 1\n";
/// First bytes of a zstd frame (RFC 8878).
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Power of two of the largest window that a frame may ask for.
const WINDOW_LOG_MAX: u32 = 23;
const LEVEL: i32 = 9;

/// Most entries: ten thousand devices have about a million files.
const ENTRIES_MAX: u64 = 4_000_000;
/// Longest file: a dump of ten thousand volumes has some megabytes.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// All files together.
const ALL_BYTES_MAX: u64 = 1 << 30;

/// Why a file is no collection, or a damaged one.
#[derive(Debug, Error)]
pub enum ArchiveError {
    /// It cannot be read, or its frame is damaged.
    #[error("{file}: cannot be unpacked at entry {entry}")]
    Unpack {
        /// The file.
        file: String,
        /// Number of the entry, from 1.
        entry: u64,
        /// What the decompressor or the file system said.
        source: io::Error,
    },
    /// Something in it must not be there.
    #[error("{file}: entry {entry}: found {found}, expected {expected}")]
    Entry {
        /// The file.
        file: String,
        /// Number of the entry, from 1.
        entry: u64,
        /// What is there.
        found: String,
        /// What may be.
        expected: &'static str,
    },
    /// A part of it is not as it must be.
    #[error("{file}: {part}: found {found}, expected {expected}")]
    Part {
        /// The file.
        file: String,
        /// Path in the collection.
        part: String,
        /// What is there.
        found: String,
        /// What should be.
        expected: &'static str,
    },
}

/// What a collection has beside files and outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Nothing: it is of the first form.
    Files,
    /// Answers of the kernel and bytes of devices.
    Whole,
}

/// Whether bytes may be a collection.
pub fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(&ZSTD)
}

/// An archive under construction.
struct Packer<W: Write> {
    tar: tar::Builder<W>,
    known: HashSet<PathBuf>,
}

impl<W: Write> Packer<W> {
    fn new(out: W) -> io::Result<Packer<W>> {
        let mut packer = Packer {
            tar: tar::Builder::new(out),
            known: HashSet::new(),
        };
        packer.file(Path::new(MARK), MARK_TEXT.as_bytes())?;
        Ok(packer)
    }

    fn header(kind: EntryType, len: u64) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(len);
        header.set_mode(0o644);
        header
    }

    /// Adds a file, unless it is in already.
    fn file(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if !self.known.insert(path.to_owned()) {
            return Ok(());
        }
        let mut header = Self::header(EntryType::Regular, bytes.len() as u64);
        self.tar.append_data(&mut header, path, bytes)
    }

    fn link(&mut self, path: &Path, target: &Path) -> io::Result<()> {
        if !self.known.insert(path.to_owned()) {
            return Ok(());
        }
        self.tar
            .append_link(&mut Self::header(EntryType::Symlink, 0), path, target)
    }
}

/// The outputs of tools in an unpacked collection. Links are left out: they may lead anywhere.
pub fn dumps(folder: &Path) -> Vec<PathBuf> {
    let dumps = folder.join("dumps");
    if !is_plain(folder, &dumps) {
        return Vec::new();
    }
    let entries = fs::read_dir(dumps)
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let mut files: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// The name that the host of an unpacked collection gives itself, if that is in it: any text at all.
pub fn own_name(folder: &Path) -> Option<String> {
    let path = folder.join("root").join(HOSTNAME);
    if !is_plain(folder, &path) {
        return None;
    }
    fs::read_to_string(path).ok()
}

/// Unpacks a collection into a directory that is empty.
///
/// # Errors
/// When it is none, is damaged, or holds what it must not.
pub fn unpack(file: &str, bytes: &[u8], into: &Path) -> Result<Form, ArchiveError> {
    let mut at = 0;
    unpack_entries(bytes, into, &mut at).map_err(|problem| match problem {
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

enum Problem {
    Io(io::Error),
    Found(String, &'static str),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Problem {
        Problem::Io(error)
    }
}

fn unpack_entries(bytes: &[u8], into: &Path, at: &mut u64) -> Result<Form, Problem> {
    let mut frame = zstd::stream::read::Decoder::new(bytes)?;
    frame.window_log_max(WINDOW_LOG_MAX)?;
    let mut archive = Archive::new(frame.take(ALL_BYTES_MAX));
    let (mut links, mut all, mut form) = (Vec::new(), 0, Form::Files);
    for entry in archive.entries()? {
        *at += 1;
        let mut entry = entry?;
        let path = checked_path(&entry.path()?)?;
        if *at == 1 {
            form = mark(&path, &mut entry)?;
            continue;
        }
        all += entry.size();
        if *at > ENTRIES_MAX || entry.size() > FILE_BYTES_MAX || all > ALL_BYTES_MAX {
            let found = format!("{} of {} bytes", shown(&path), group_digits(entry.size()));
            return Err(Problem::Found(
                found,
                "less than 64 MiB a file and 1 GiB in all",
            ));
        }
        let place = into.join(&path);
        match entry.header().entry_type() {
            EntryType::Regular => {
                fs::create_dir_all(place.parent().unwrap_or(into))?;
                let mut out = fs::File::create_new(&place)?;
                io::copy(&mut entry, &mut out)?;
            }
            EntryType::Directory => fs::create_dir_all(&place)?,
            EntryType::Symlink => {
                let target = entry
                    .link_name()?
                    .map(|target| target.into_owned())
                    .unwrap_or_default();
                links.push((place, target));
            }
            other => {
                let found = format!("{} of type {other:?}", shown(&path));
                return Err(Problem::Found(found, "a file, a directory or a link"));
            }
        }
    }
    if *at == 0 {
        return Err(Problem::Found(
            "nothing".to_owned(),
            "a collection of `plumb check --collect`",
        ));
    }
    // From here on nothing is written but links, and each below directories that were made above or are made here.
    for (place, target) in links {
        let parent = place.parent().unwrap_or(into);
        if !is_plain(into, parent) {
            return Err(Problem::Found(shown(&place), "no link below a link"));
        }
        fs::create_dir_all(parent)?;
        symlink(target, &place)?;
    }
    Ok(form)
}

/// The first entry says what it is, and of which version.
fn mark(path: &Path, entry: &mut impl Read) -> Result<Form, Problem> {
    let mut text = Vec::new();
    entry.take(64).read_to_end(&mut text)?;
    for (known, form) in [(MARK_TEXT, Form::Whole), (MARK_OF_FILES, Form::Files)] {
        if path == Path::new(MARK) && text == known.as_bytes() {
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
fn checked_path(path: &Path) -> Result<PathBuf, Problem> {
    let is_name = |part: Component<'_>| matches!(part, Component::Normal(_));
    if path.components().next().is_none() || !path.components().all(is_name) {
        return Err(Problem::Found(shown(path), "a path of plain names"));
    }
    Ok(path.to_owned())
}

/// Whether no part of a path below a directory is a link.
fn is_plain(into: &Path, path: &Path) -> bool {
    let below = path.ancestors().take_while(|part| *part != into);
    !below.into_iter().any(Path::is_symlink)
}

fn shown(path: &Path) -> String {
    path.display()
        .to_string()
        .chars()
        .take(80)
        .flat_map(char::escape_debug)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Add<'a> = &'a dyn Fn(&mut Packer<Vec<u8>>) -> io::Result<()>;

    /// What becomes of an archive: the message, or the files.
    fn unpacked(add: Add<'_>) -> (Option<String>, plumb_testkit::tempdir::TempDir) {
        let mut packer = Packer::new(Vec::new()).expect("an archive in memory");
        add(&mut packer).expect("an entry");
        let tar = packer.tar.into_inner().expect("the archive");
        let bytes = zstd::encode_all(&tar[..], LEVEL).expect("a frame");
        let folder = plumb_testkit::temp_dir("collection");
        let error = unpack("c.tar.zst", &bytes, folder.path()).err();
        (error.map(|error| error.to_string()), folder)
    }

    /// An entry with a path that the library would refuse to write.
    fn raw(
        packer: &mut Packer<Vec<u8>>,
        kind: EntryType,
        path: &str,
        link: &str,
    ) -> io::Result<()> {
        let mut header = Packer::<Vec<u8>>::header(kind, 0);
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        packer.tar.append(&header, io::empty())
    }

    #[test]
    fn what_was_packed_comes_back() {
        let (error, folder) = unpacked(&|packer| {
            packer.file(Path::new("root/sys/devices/sda/size"), b"2048\n")?;
            packer.file(Path::new("root/sys/devices/sda/size"), b"again\n")?;
            packer.link(
                Path::new("root/sys/class/block/sda"),
                Path::new("../../devices/sda"),
            )
        });
        assert_eq!(error, None);
        let size = fs::read_to_string(folder.path().join("root/sys/class/block/sda/size"));
        assert_eq!(size.expect("through the link"), "2048\n");
        assert!(!folder.path().join(MARK).exists());
    }

    #[test]
    fn nothing_leads_out() {
        for path in ["../evil", "/etc/evil", "root/../../evil", ""] {
            let (error, _) = unpacked(&|packer| raw(packer, EntryType::Regular, path, ""));
            let error = error.unwrap_or_else(|| panic!("{path} was taken"));
            assert!(error.contains("expected a path of plain names"), "{error}");
        }
        let (error, folder) = unpacked(&|packer| {
            raw(packer, EntryType::Symlink, "root", "..")?;
            raw(packer, EntryType::Regular, "root/evil", "")
        });
        // The file comes first, and the link finds its place taken.
        assert!(error.is_some_and(|error| error.contains("cannot be unpacked")));
        assert!(folder.path().join("root/evil").exists());
        let (error, _) = unpacked(&|packer| {
            raw(packer, EntryType::Symlink, "root", "..")?;
            raw(packer, EntryType::Symlink, "root/evil", "x")
        });
        assert!(error.is_some_and(|error| error.contains("expected no link below a link")));
        for kind in [EntryType::Link, EntryType::Char, EntryType::Fifo] {
            let (error, _) = unpacked(&|packer| raw(packer, kind, "root/node", "root/x"));
            assert!(
                error.is_some_and(|error| error.contains("expected a file, a directory or a link"))
            );
        }
    }

    #[test]
    fn bombs_are_refused() {
        let (error, _) = unpacked(&|packer| {
            let path = Path::new("root/zeros");
            let len = FILE_BYTES_MAX + 1;
            let mut header = Packer::<Vec<u8>>::header(EntryType::Regular, len);
            packer
                .tar
                .append_data(&mut header, path, io::repeat(0).take(len))
        });
        assert!(error.is_some_and(|error| error.contains("expected less than 64 MiB a file")));
    }

    #[test]
    fn other_archives_and_damage() {
        let folder = plumb_testkit::temp_dir("collection");
        let message = |bytes: &[u8]| {
            unpack("c.tar.zst", bytes, folder.path())
                .expect_err("no collection")
                .to_string()
        };
        let mut other = tar::Builder::new(Vec::new());
        let mut header = Packer::<Vec<u8>>::header(EntryType::Regular, 2);
        other
            .append_data(&mut header, "README", &b"hi"[..])
            .expect("an entry");
        let other = zstd::encode_all(&other.into_inner().expect("it")[..], LEVEL).expect("a frame");
        assert!(
            message(&other).contains("entry 1: found README with \"hi\""),
            "{}",
            message(&other)
        );
        assert!(message(&other[..other.len() / 2]).contains("cannot be unpacked"));
        let empty = zstd::encode_all(&[][..], LEVEL).expect("a frame");
        assert!(message(&empty).contains("found nothing"));
    }
}
