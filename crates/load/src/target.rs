//! The target of a load: a block device or a regular file, opened without the page cache if possible.

use std::path::Path;

use plumb_sys::{FileId, IoTarget, SysError};

/// A target of I/O, open for reading; for writing as well only out of [`permit_writes`](crate::permit_writes).
#[derive(Debug)]
pub struct Target {
    io: IoTarget,
    name: String,
}

impl Target {
    /// Opens a target for reading. Nothing is read.
    ///
    /// # Errors
    /// When it is missing, or something that cannot be measured: a directory, a regular file that some tool left below /dev.
    pub fn open(path: &Path) -> Result<Target, SysError> {
        IoTarget::open_to_read(path).map(Target::new)
    }

    pub(crate) fn new(io: IoTarget) -> Target {
        let name = io.path().display().to_string();
        Target { io, name }
    }

    /// As it was named.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its name in traces: a device by the last part of its own path, through any link.
    #[must_use]
    pub fn trace_name(&self) -> String {
        let own = std::fs::canonicalize(self.path())
            .ok()
            .filter(|_| self.is_block_device());
        let last = own
            .as_deref()
            .and_then(Path::file_name)
            .map(|name| name.to_string_lossy().into_owned());
        last.unwrap_or_else(|| self.name.clone())
    }

    /// The path that was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.io.path()
    }

    /// Its length.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.io.size_bytes()
    }

    /// Starts and lengths are multiples of this; 1 where I/O go through the page cache.
    #[must_use]
    pub fn block_bytes(&self) -> u32 {
        self.io.block_bytes()
    }

    /// Whether I/O bypass the page cache. If they do not, a measurement is one of memory.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.io.is_direct()
    }

    /// Whether it is a block device; a regular file else.
    #[must_use]
    pub fn is_block_device(&self) -> bool {
        self.io.is_block_device()
    }

    /// Its identity, under any name.
    #[must_use]
    pub fn id(&self) -> FileId {
        self.io.id()
    }

    /// The system's knowledge of it.
    #[must_use]
    pub fn io(&self) -> &IoTarget {
        &self.io
    }
}
