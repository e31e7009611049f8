//! The file that something is written to: under a temporary name until it is whole.
//!
//! A link is followed and stays one; its target is replaced, and keeps its permissions. [`NewFile`] defines the refused
//! links and files. Beside files only pipes and standard output are written to, never a disk.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use plumb_sys::{FileContent, NewFile, must_be_own_in_public};

use crate::error::Error;

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 256 * 1024;

/// As many links in a row as the kernel follows.
const LINKS_MAX: usize = 40;

/// Numbers of `/dev/null` and `/dev/full` on Linux, which lead nowhere.
const NOWHERE: [u64; 2] = [0x103, 0x107];

/// A destination for output. Dropped without [`Output::commit`], it leaves nothing behind.
pub struct Output {
    path: PathBuf,
    writer: BufWriter<Destination>,
}

/// The bytes of an output that gathers them.
#[derive(Clone, Debug, Default)]
pub struct Gathered(Arc<Mutex<Vec<u8>>>);

impl Gathered {
    /// Takes the bytes; call it after [`Output::commit`].
    #[must_use]
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Gathered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut gathered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        gathered.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Destination {
    New(NewFile),
    /// No plain file: a pipe, a terminal, `-`.
    Direct(Box<dyn Sync + Send + Write>),
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Destination::New(file) => file.write(bytes),
            Destination::Direct(to) => to.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Destination::New(file) => file.flush(),
            Destination::Direct(to) => to.flush(),
        }
    }
}

impl Output {
    /// Opens an output for a report, which takes the place of an older file; `-` is standard output.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(path: &Path) -> Result<Output, Error> {
        if path == Path::new("-") {
            return Ok(Output::to(
                path,
                Destination::Direct(Box::new(io::stdout())),
            ));
        }
        let open = |source| Error::Write {
            path: path.display().to_string(),
            source,
        };
        if let Ok(old) = fs::metadata(path) {
            let is_stdout = is_standard_output(&old);
            if is_stdout && !old.is_dir() && !old.file_type().is_block_device() {
                return Ok(Output::to(
                    path,
                    Destination::Direct(Box::new(io::stdout())),
                ));
            }
            if !old.is_file() {
                let kind = old.file_type();
                let leads_nowhere = kind.is_char_device() && NOWHERE.contains(&old.rdev());
                if !kind.is_fifo() && !leads_nowhere {
                    return Err(Error::NoFile {
                        path: path.display().to_string(),
                        found: words_of(&old),
                    });
                }
                let file = open_in_place(path, &old).map_err(open)?;
                return Ok(Output::to(path, Destination::Direct(Box::new(file))));
            }
        }
        let new = NewFile::create(path, FileContent::Report).map_err(open)?;
        Ok(Output::to(path, Destination::New(new)))
    }

    /// An output that gathers its bytes in memory. `name` stands for a path in messages.
    #[must_use]
    pub fn gather(name: &str, gathered: &Gathered) -> Output {
        let to = Destination::Direct(Box::new(gathered.clone()));
        Output::to(Path::new(name), to)
    }

    /// Opens an output for data, names or accesses of disks: a new file for its owner alone.
    ///
    /// # Errors
    /// When anything has the name, or it cannot be created.
    pub fn create_private(path: &Path) -> Result<Output, Error> {
        let new = NewFile::create(path, FileContent::DiskData).map_err(|source| Error::Write {
            path: path.display().to_string(),
            source,
        })?;
        Ok(Output::to(path, Destination::New(new)))
    }

    fn to(path: &Path, destination: Destination) -> Output {
        Output {
            path: path.to_owned(),
            writer: BufWriter::with_capacity(BUFFER_BYTES, destination),
        }
    }

    /// The path, for messages.
    #[must_use]
    pub fn path(&self) -> String {
        self.path.display().to_string()
    }

    /// Writes the gathered bytes and gives the file its name.
    ///
    /// # Errors
    /// When that fails; the temporary file is removed then.
    pub fn commit(mut self) -> Result<(), Error> {
        let path = self.path();
        let flushed = self.writer.flush();
        let finished = flushed.and_then(|()| match self.writer.into_parts().0 {
            Destination::New(file) => file.finish().map(drop),
            Destination::Direct(_) => Ok(()),
        });
        finished.map_err(|source| Error::Write { path, source })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Opens a pipe or a device that leads nowhere, which `found` was: another user may have made it, and exchange it now.
fn open_in_place(path: &Path, found: &Metadata) -> io::Result<File> {
    must_be_own_in_public(path, found)?;
    let file = OpenOptions::new().write(true).open(path)?;
    let opened = file.metadata()?;
    if (opened.dev(), opened.ino()) != (found.dev(), found.ino()) {
        return Err(io::Error::other(
            "the file was replaced while it was opened",
        ));
    }
    Ok(file)
}

/// The kind of a path's target, in words.
#[must_use]
pub fn words_of(found: &Metadata) -> &'static str {
    match found.file_type() {
        kind if kind.is_block_device() => "a block device",
        kind if kind.is_char_device() => "a character device",
        kind if kind.is_dir() => "a directory",
        kind if kind.is_symlink() => "a symbolic link",
        kind if kind.is_file() => "a file",
        _ => "a pipe or socket",
    }
}

/// Whether standard output is connected to it.
fn is_standard_output(found: &Metadata) -> bool {
    let same = |out: Metadata| (out.dev(), out.ino()) == (found.dev(), found.ino());
    fs::metadata("/dev/stdout").is_ok_and(same)
}

/// The end of a chain of links; it need not exist.
///
/// # Errors
/// When it leads in a circle.
pub fn target_of(path: &Path) -> io::Result<PathBuf> {
    if let Ok(target) = fs::canonicalize(path) {
        return Ok(target);
    }
    let mut target = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&target) {
            Ok(next) => target = target.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other(
        "found more links in a row than can be followed",
    ))
}
