//! The file that a trace is written to: under a temporary name until it is whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 256 * 1024;

/// How many temporary names are tried before it is given up.
const NAMES_TRIED: u32 = 100;

/// Where a trace is written. Dropped without [`Output::commit`], it leaves nothing behind.
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
        let open = |source| Error::Write { path: path.display().to_string(), source };
        // A link stays one: its target is what is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if fs::metadata(&target).is_ok_and(|found| !found.is_file()) {
            let file = OpenOptions::new().write(true).open(&target).map_err(open)?;
            return Ok(Output::direct(path, Box::new(file)));
        }
        let (temporary, file) = create_beside(&target).map_err(open)?;
        let writer = BufWriter::with_capacity(BUFFER_BYTES, Box::new(file) as Box<_>);
        Ok(Output { path: target, temporary: Some(temporary), writer })
    }

    fn direct(path: &Path, to: Box<dyn Sync + Send + WriteAndSync>) -> Output {
        Output { path: path.to_owned(), temporary: None, writer: BufWriter::with_capacity(BUFFER_BYTES, to) }
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
        outcome.map_err(|source| Error::Write { path: self.path(), source })
    }

    fn put_into_place(&mut self) -> io::Result<()> {
        self.writer.flush()?;
        let Some(temporary) = &self.temporary else { return Ok(()) };
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

fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for attempt in 0..NAMES_TRIED {
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".unfinished-{}-{attempt}", std::process::id()));
        let temporary = path.with_file_name(hidden);
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}
