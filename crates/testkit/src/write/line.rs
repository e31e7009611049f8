//! Lines of text, fast: numbers go through itoa into one buffer, and the buffer to the sink when it is full.

use std::io::{self, Write};

/// Bytes held before they go to the sink.
const FULL_BYTES: usize = 1 << 18;

/// A buffered sink with the few number forms that trace formats use.
pub struct Lines<W: Write> {
    sink: W,
    buffer: Vec<u8>,
    digits: itoa::Buffer,
}

impl<W: Write> Lines<W> {
    /// Buffers in front of `sink`.
    pub fn new(sink: W) -> Self {
        Self {
            sink,
            buffer: Vec::with_capacity(FULL_BYTES + 4096),
            digits: itoa::Buffer::new(),
        }
    }

    /// Text as it is.
    #[inline]
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.buffer.extend_from_slice(text.as_bytes());
        self
    }

    /// One ASCII character.
    #[inline]
    pub fn ch(&mut self, ch: char) -> &mut Self {
        debug_assert!(ch.is_ascii());
        self.buffer.push(ch as u8);
        self
    }

    /// A decimal integer.
    #[inline]
    pub fn int(&mut self, value: impl itoa::Integer) -> &mut Self {
        self.buffer
            .extend_from_slice(self.digits.format(value).as_bytes());
        self
    }

    /// `value` in units of 10^-`places`, as a decimal number with that many places: (1500, 3) is 1.500.
    #[inline]
    pub fn fixed(&mut self, value: i64, places: u32) -> &mut Self {
        let scale = 10i64.pow(places);
        if value < 0 {
            self.ch('-');
        }
        let magnitude = value.unsigned_abs();
        self.int(magnitude / scale.unsigned_abs()).ch('.');
        self.zero_padded(magnitude % scale.unsigned_abs(), places as usize)
    }

    /// A decimal integer with leading zeros to `width`.
    #[inline]
    pub fn zero_padded(&mut self, value: u64, width: usize) -> &mut Self {
        let digits = self.digits.format(value);
        for _ in digits.len()..width {
            self.buffer.push(b'0');
        }
        self.buffer.extend_from_slice(digits.as_bytes());
        self
    }

    /// Anything that formats, for formats where speed is no matter.
    pub fn args(&mut self, args: std::fmt::Arguments<'_>) -> &mut Self {
        // Writing to a vector cannot fail.
        let _ = self.buffer.write_fmt(args);
        self
    }

    /// Ends a line with a newline, and empties the buffer when it is full.
    ///
    /// # Errors
    /// Of the sink.
    #[inline]
    pub fn end(&mut self) -> io::Result<()> {
        self.buffer.push(b'\n');
        if self.buffer.len() >= FULL_BYTES {
            self.drain()
        } else {
            Ok(())
        }
    }

    fn drain(&mut self) -> io::Result<()> {
        self.sink.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Hands all to the sink and flushes it.
    ///
    /// # Errors
    /// Of the sink.
    pub fn flush(&mut self) -> io::Result<()> {
        self.drain()?;
        self.sink.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::fixture::SharedBytes;

    #[test]
    fn numbers_keep_their_zeros() {
        let bytes = SharedBytes::default();
        let mut lines = Lines::new(bytes.clone());
        lines
            .fixed(1_000_000_005, 9)
            .ch(' ')
            .fixed(-1_500, 3)
            .ch(' ')
            .fixed(7, 2)
            .ch(' ')
            .zero_padded(42, 5);
        lines.end().expect("memory");
        assert!(bytes.take().is_empty(), "held back until full");
        lines.flush().expect("memory");
        assert_eq!(bytes.take(), b"1.000000005 -1.500 0.07 00042\n");
    }
}
