//! Memory for direct I/O: a slightly longer vector, used from the first aligned address.

use rustix::mm::{Advice, madvise};

/// Alignment in memory that direct I/O of every driver takes.
pub(crate) const MEMORY_ALIGNMENT: usize = 4096;

/// Buffers of several of these are asked for in pages as large: an I/O has then a few pieces of memory instead of hundreds,
/// and is cut up less on its way to the device. The common size; elsewhere it asks for nothing.
const HUGE_PAGE: usize = 2 << 20;

/// Memory that begins at a multiple of 4,096, as direct I/O needs, or for long buffers of 2 MiB.
#[derive(Debug, Default)]
pub struct AlignedBuffer {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    /// Zeros.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let is_huge = len >= 2 * HUGE_PAGE;
        let alignment = if is_huge { HUGE_PAGE } else { MEMORY_ALIGNMENT };
        let bytes = vec![0; len + alignment];
        let start = bytes.as_ptr().align_offset(alignment).min(alignment);
        let mut this = Self { bytes, start, len };
        if is_huge {
            ask_for_huge_pages(&mut this);
        }
        this
    }

    /// Makes it `len` long, with any content, and allocates only if it has to grow.
    pub fn resize(&mut self, len: usize) {
        if self.start + len > self.bytes.len() {
            *self = Self::new(len);
        }
        self.len = len;
    }
}

fn ask_for_huge_pages(memory: &mut [u8]) {
    // SAFETY: the range is memory of one value that is borrowed exclusively, and the advice changes nothing of its content.
    let taken = unsafe {
        madvise(
            memory.as_mut_ptr().cast(),
            memory.len(),
            Advice::LinuxHugepage,
        )
    };
    // A kernel without them serves as well, only slower.
    let _ = taken;
}

impl std::ops::Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }
}

impl std::ops::DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_for_direct_io() {
        let mut buffer = AlignedBuffer::new(100);
        for len in [1, 512, 70_000, 3, 5_000_001, 9] {
            buffer.resize(len);
            assert_eq!((buffer.len(), buffer.as_ptr().align_offset(4096)), (len, 0));
        }
        let mut long = AlignedBuffer::new(HUGE_PAGE * 2 + 1);
        assert_eq!(long.as_ptr().align_offset(HUGE_PAGE), 0);
        assert!(long.iter().all(|byte| *byte == 0), "zeros");
        long.fill(1);
    }
}
