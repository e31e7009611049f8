//! Directories of a test's own, removed when the test is done.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

pub use tempfile::TempDir;

/// A new empty directory; its name identifies the test that left it, in case of a kill.
///
/// # Panics
/// When the temporary directory of the machine cannot be written: no test can go on from there.
#[must_use]
pub fn temp_dir(test: &str) -> TempDir {
    tempfile::Builder::new()
        .prefix(&format!("plumb-{test}-"))
        .tempdir()
        .unwrap_or_else(|e| panic!("cannot make a temporary directory for {test}: {e}"))
}

/// The same where root alone can write to every directory above it, as nobody promises of directories for temporary files.
///
/// # Panics
/// When this process is not root's, or there is no room.
#[must_use]
pub fn root_dir(test: &str) -> TempDir {
    tempfile::Builder::new()
        .prefix(&format!("plumb-{test}-"))
        .tempdir_in("/var/lib")
        .unwrap_or_else(|e| panic!("cannot make a directory below /var/lib for {test}: {e}"))
}

/// A file in a directory of its own.
#[derive(Debug)]
pub struct TempFile {
    path: PathBuf,
    _room: TempDir,
}

/// A new file of this content.
///
/// # Panics
/// When it cannot be written.
#[must_use]
pub fn temp_file(test: &str, content: &[u8]) -> TempFile {
    let room = temp_dir(test);
    let path = room.path().join("image");
    std::fs::write(&path, content)
        .unwrap_or_else(|e| panic!("cannot write a file for {test}: {e}"));
    TempFile { path, _room: room }
}

impl TempFile {
    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The last part of its path.
    #[must_use]
    pub fn name(&self) -> String {
        self.path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// Its content.
    ///
    /// # Panics
    /// When it cannot be read.
    #[must_use]
    pub fn content(&self) -> Vec<u8> {
        std::fs::read(&self.path).expect("a file of the test's own")
    }

    /// Gives it another length.
    ///
    /// # Panics
    /// When it cannot be changed.
    pub fn cut(&self, len_bytes: u64) {
        let file = OpenOptions::new()
            .write(true)
            .open(&self.path)
            .expect("a file of the test's own");
        file.set_len(len_bytes).expect("another length");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_are_distinct_and_gone_after_drop() {
        let (a, b) = (temp_dir("twin"), temp_dir("twin"));
        assert_ne!(a.path(), b.path());
        let kept = a.path().to_path_buf();
        std::fs::write(kept.join("file"), b"x").expect("write into a fresh directory");
        drop(a);
        assert!(!kept.exists());
        assert!(b.path().exists());
    }
}
