//! What tests on loop devices share.

#![allow(dead_code, reason = "each test file uses its part of it")]

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use plumb_trace::Op;

/// A file that is read and written past the cache, from a buffer that begins at a page.
pub struct Direct {
    pub file: File,
    buffer: Vec<u8>,
    first: usize,
}

impl Direct {
    pub fn open(path: &Path) -> Direct {
        let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
        let file = OpenOptions::new().read(true).write(true).custom_flags(direct).open(path);
        let buffer = vec![0; (1 << 20) + 4096];
        let first = buffer.as_ptr().align_offset(4096);
        Direct { file: file.expect("the device"), buffer, first }
    }

    pub fn io(&mut self, op: Op, start: u64, len: u64) {
        let buffer = &mut self.buffer[self.first..self.first + len as usize];
        match op {
            Op::Write => self.file.write_all_at(buffer, start).expect("a write"),
            _ => self.file.read_exact_at(buffer, start).expect("a read"),
        }
    }
}
