//! Reads of a device past the page cache.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

const O_DIRECT: i32 = 0o40000;
/// The kernel's alignment of memory.
const ALIGNMENT: usize = 4096;

/// A device and the memory into which it is read.
pub struct DirectReader {
    file: File,
    memory: Vec<u8>,
    len: usize,
}

impl DirectReader {
    /// Opens a device for reads of `len` bytes each.
    pub fn open(path: &Path, len: usize) -> DirectReader {
        let file = File::options()
            .read(true)
            .custom_flags(O_DIRECT)
            .open(path)
            .expect("a device");
        DirectReader {
            file,
            memory: vec![0; len + ALIGNMENT],
            len,
        }
    }

    /// Reads at a byte of the device.
    pub fn read_at(&mut self, start: u64) -> io::Result<()> {
        let aligned = self.memory.as_ptr().align_offset(ALIGNMENT);
        let into = &mut self.memory[aligned..aligned + self.len];
        self.file.read_exact_at(into, start)
    }
}
