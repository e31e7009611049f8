//! A collection: everything that a check reads of a host, in one file for another host to check.
//! `docs/formats/collection.md` describes it.
//!
//! It is a tar archive in a zstd frame. Files of sysfs and procfs have the same paths below `root/` as below `/`; `dumps/`
//! has the output of tools, and further entries the answers of the kernel and the bytes read from devices.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_sys::FileTree;
use tar::{EntryType, Header};
use thiserror::Error;

use crate::linux::{Kernel, LinuxError, Root};

mod collected;
mod entries;
mod host;
mod kept;

pub use collected::Collected;
pub use host::{ArchiveCounts, HOSTNAME, OSRELEASE, Origin, collect};

/// First entry of every collection.
const MARK: &str = "plumb-collection";
/// Its content.
const MARK_TEXT: &str = "plumb-collection 2\n";
/// First bytes of a zstd frame (RFC 8878).
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Level 9 makes a collection of 12 KB smaller by 2.4 KB, and its compressors take 147 KB of the program.
const LEVEL: i32 = 3;
/// Directory of the host's files.
const ROOT: &str = "root";
/// Directory of the outputs of tools.
const DUMPS: &str = "dumps";

/// Longest file: a dump of ten thousand volumes has some megabytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Why a file is no collection, or a damaged one.
#[derive(Debug, Error)]
pub enum ArchiveError {
    /// Its frame or its archive is damaged.
    #[error("{file}: cannot be unpacked at entry {entry}")]
    Unpack {
        /// The file.
        file: String,
        /// Number of the entry, from 1.
        entry: u64,
        /// The error of the decompressor or the archive reader.
        source: io::Error,
    },
    /// Something in it must not be there.
    #[error("{file}: entry {entry}: found {found}, expected {expected}")]
    Entry {
        /// The file.
        file: String,
        /// Number of the entry, from 1.
        entry: u64,
        /// The value found.
        found: String,
        /// The allowed value.
        expected: &'static str,
    },
    /// A part of it is not as it must be.
    #[error("{file}: {part}: found {found}, expected {expected}")]
    Part {
        /// The file.
        file: String,
        /// Path in the collection.
        part: String,
        /// The value found.
        found: String,
        /// The expected value.
        expected: &'static str,
    },
}

/// The contents of a collection beside files and outputs.
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

/// Bytes that [`is_collection`] needs: the longest block of a frame (RFC 8878), and the headers before it.
pub const HEAD_BYTES: u64 = 132 << 10;

/// Whether a file begins as a collection does: with a frame whose archive begins with the mark. Compressed traces begin with a frame, too.
/// `head` are the first [`HEAD_BYTES`] of the file, or all of a shorter one.
#[must_use]
pub fn is_collection(head: &[u8]) -> bool {
    entries::first_name(head).is_ok_and(|name| name == *MARK.as_bytes())
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

/// A collection that was read: its files in memory.
pub struct Contents {
    file: String,
    form: Form,
    tree: Arc<FileTree>,
}

impl Contents {
    /// Reads a collection; `file` is its name for messages. Nothing of it is written anywhere.
    ///
    /// # Errors
    /// If it is not a collection, is damaged, exceeds a limit, or contains entries other than files, directories and
    /// links.
    pub fn read(file: &str, bytes: &[u8]) -> Result<Contents, ArchiveError> {
        let (form, tree) = entries::read(file, bytes)?;
        Ok(Contents {
            file: file.to_owned(),
            form,
            tree: Arc::new(tree),
        })
    }

    /// The form, which says whether it has more than files and outputs.
    #[must_use]
    pub fn form(&self) -> Form {
        self.form
    }

    /// Answers and bytes; none where it is of the first form.
    ///
    /// # Errors
    /// When a part is missing or damaged.
    pub fn collected(&self) -> Result<Collected, ArchiveError> {
        match self.form {
            Form::Files => Ok(Collected::default()),
            Form::Whole => collected::read(&self.file, &self.tree),
        }
    }

    /// The files of its host.
    ///
    /// # Errors
    /// When it has none.
    pub fn root<'k>(&self, kernel: &'k dyn Kernel) -> Result<Root<'k>, LinuxError> {
        Root::in_tree(&self.tree, ROOT, kernel)
    }

    /// The outputs of tools, with their paths in the collection. Links are left out: they may lead anywhere.
    #[must_use]
    pub fn dumps(&self) -> Vec<(String, &[u8])> {
        let names = self.tree.names(DUMPS).unwrap_or_default();
        let paths = names.iter().map(|name| format!("{DUMPS}/{name}"));
        paths
            .filter_map(|path| {
                let bytes = self.tree.file(&path).ok()?;
                Some((path, bytes))
            })
            .collect()
    }

    /// The version of its host's kernel, if that is in it.
    #[must_use]
    pub fn kernel(&self) -> Option<String> {
        let kernel = self.tree.file(&format!("{ROOT}/{OSRELEASE}")).ok()?;
        let kernel = std::str::from_utf8(kernel).ok()?.trim();
        (!kernel.is_empty()).then(|| kernel.to_owned())
    }

    /// The name that its host gives itself, if that is in it: any text at all.
    #[must_use]
    pub fn own_name(&self) -> Option<String> {
        let name = self.tree.file(&format!("{ROOT}/{HOSTNAME}")).ok()?;
        String::from_utf8(name.to_vec()).ok()
    }
}
