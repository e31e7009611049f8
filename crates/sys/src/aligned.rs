//! Memory for direct I/O, made without unsafe code: a vector that is a little longer, and used from where an address fits.

/// Alignment in memory that direct I/O of every driver takes.
pub(crate) const MEMORY_ALIGNMENT: usize = 4096;

/// Memory that begins at a multiple of 4,096, as direct I/O wants it.
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
        let bytes = vec![0; len + MEMORY_ALIGNMENT];
        let start = bytes.as_ptr().align_offset(MEMORY_ALIGNMENT).min(MEMORY_ALIGNMENT);
        Self { bytes, start, len }
    }

    /// Makes it `len` long, of any content, and allocates only where it has to grow.
    pub fn resize(&mut self, len: usize) {
        if self.start + len > self.bytes.len() {
            *self = Self::new(len);
        }
        self.len = len;
    }
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
    fn buffers_lie_where_direct_io_wants_them() {
        let mut buffer = AlignedBuffer::new(100);
        for len in [1, 512, 70_000, 3] {
            buffer.resize(len);
            assert_eq!((buffer.len(), buffer.as_ptr().align_offset(4096)), (len, 0));
        }
    }
}
