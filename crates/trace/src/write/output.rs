//! The file that something is written to: under a temporary name until it is whole.
//!
//! A link is followed and stays one; what it leads to is replaced, and keeps its permissions. Beside files only pipes
//! and standard output are written to: a disk is never taken for one.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 256 * 1024;

/// How many temporary names are tried before it is given up.
const NAMES_TRIED: u32 = 100;

/// As many links in a row as the kernel follows.
const LINKS_MAX: usize = 40;

/// Numbers of `/dev/null` and `/dev/full` on Linux, which lead nowhere.
const NOWHERE: [u64; 2] = [0x103, 0x107];

/// Where something is written. Dropped without [`Output::commit`], it leaves nothing behind.
pub struct Output {
    path: PathBuf,
    /// Name until the file is whole; `None` when the path is no plain file (a pipe, a terminal, `-`).
    temporary: Option<PathBuf>,
    writer: BufWriter<Box<dyn Sync + Send + WriteAndSync>>,
}

trait WriteAndSync: Write {
    fn sync(&self) -> io::Result<()>;
}

impl WriteAndSync for File {
    fn sync(&self) -> io::Result<()> {
        self.sync_all()
    }
}

impl WriteAndSync for io::Stdout {
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Output {
    /// Opens an output; `-` is standard output.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(path: &Path) -> Result<Output, Error> {
        if path == Path::new("-") {
            return Ok(Output::direct(path, Box::new(io::stdout())));
        }
        let open = |source| Error::Write {
            path: path.display().to_string(),
            source,
        };
        let old = fs::metadata(path).ok();
        if let Some(old) = &old {
            let is_stdout = is_standard_output(old);
            if is_stdout && !old.is_dir() && !old.file_type().is_block_device() {
                return Ok(Output::direct(path, Box::new(io::stdout())));
            }
            if !old.is_file() {
                let kind = old.file_type();
                let leads_nowhere = kind.is_char_device() && NOWHERE.contains(&old.rdev());
                if !kind.is_fifo() && !leads_nowhere {
                    return Err(Error::NoFile {
                        path: path.display().to_string(),
                        found: words_of(old),
                    });
                }
                let file = OpenOptions::new().write(true).open(path).map_err(open)?;
                return Ok(Output::direct(path, Box::new(file)));
            }
        }
        let target = target_of(path).map_err(open)?;
        let (temporary, file) = create_beside(&target).map_err(open)?;
        if let Some(old) = &old {
            keep_access(&file, old)
                .inspect_err(|_| drop(fs::remove_file(&temporary)))
                .map_err(open)?;
        }
        let writer = BufWriter::with_capacity(BUFFER_BYTES, Box::new(file) as Box<_>);
        Ok(Output {
            path: target,
            temporary: Some(temporary),
            writer,
        })
    }

    fn direct(path: &Path, to: Box<dyn Sync + Send + WriteAndSync>) -> Output {
        Output {
            path: path.to_owned(),
            temporary: None,
            writer: BufWriter::with_capacity(BUFFER_BYTES, to),
        }
    }

    /// The path, for messages.
    #[must_use]
    pub fn path(&self) -> String {
        self.path.display().to_string()
    }

    /// Writes out what is gathered and gives the file its name.
    ///
    /// # Errors
    /// When that fails; the temporary file is removed then.
    pub fn commit(mut self) -> Result<(), Error> {
        let outcome = self.put_into_place();
        outcome.map_err(|source| Error::Write {
            path: self.path(),
            source,
        })
    }

    fn put_into_place(&mut self) -> io::Result<()> {
        self.writer.flush()?;
        let Some(temporary) = &self.temporary else {
            return Ok(());
        };
        // Without this a crash after the rename could leave an empty file under the final name.
        self.writer.get_ref().sync()?;
        fs::rename(temporary, &self.path)?;
        self.temporary = None;
        Ok(())
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

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Nobody is left to tell when this fails; the name says what it was.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// What is at a path, in words.
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

/// Whether it is what standard output is connected to.
fn is_standard_output(found: &Metadata) -> bool {
    let same = |out: Metadata| (out.dev(), out.ino()) == (found.dev(), found.ino());
    fs::metadata("/dev/stdout").is_ok_and(same)
}

/// Where a chain of links leads; its end need not be there.
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

/// Who may read the file that is replaced may read the new one, and nobody else.
fn keep_access(file: &File, old: &Metadata) -> io::Result<()> {
    // Only the administrator may give files away; for all others the new one is theirs.
    let _ = std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid()));
    file.set_permissions(old.permissions())
}

fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for attempt in 0..NAMES_TRIED {
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".unfinished-{}-{attempt}", std::process::id()));
        let temporary = path.with_file_name(hidden);
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary)
        {
            Ok(file) => return Ok((temporary, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}
