//! The front of a line of text, taken apart without a branch: for formats whose usual line is a few whole numbers with one byte
//! between them.
//!
//! The number of digits of a field is hard to predict, so the scan of [`crate::scan`] loses more time by wrong guesses than by work.
//! Here all fields are found at once, as bits, and each number is read backwards from its end: the digits and the bytes before them
//! are loaded as words, and a mask clears the latter. Mistakes are summed up and judged once a line.

use crate::number::{others, worth_of_digits};

/// Bytes before the line that a number may be loaded with.
const BEFORE: usize = 16;
/// Bytes of the line that are looked at.
const LINE_BYTES: usize = 48;
/// A field ends before the 64th byte, since places are bits of a word.
const WINDOW_BYTES: usize = BEFORE + u64::BITS as usize;

/// The front of a line.
pub(crate) struct Window<'text> {
    bytes: &'text [u8; WINDOW_BYTES],
    /// Places of bytes below `0` that no field has come to, a bit each.
    places: u64,
    /// The start of the next field.
    at: usize,
    /// Not 0 if the line is not of the usual form.
    wrong: u64,
}

/// A part of the line, with the byte behind it.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    end: usize,
    len: usize,
}

impl<'text> Window<'text> {
    /// The line that begins at a place. `None` near the ends of the text.
    #[inline(always)]
    pub(crate) fn at(text: &'text [u8], at: usize) -> Option<Window<'text>> {
        let bytes = text.get(at.checked_sub(BEFORE)?..)?.first_chunk()?;
        Some(Window {
            bytes,
            places: below_digits(bytes),
            at: 0,
            wrong: 0,
        })
    }

    /// The next field. It must end with this byte.
    #[inline(always)]
    pub(crate) fn field(&mut self, separator: u8) -> Field {
        let end = self.places.trailing_zeros() as usize & 63;
        self.wrong |= u64::from(self.bytes[BEFORE + end] ^ separator);
        self.places &= self.places.wrapping_sub(1);
        let len = end.wrapping_sub(self.at);
        self.at = end + 1;
        Field { end, len }
    }

    /// A number of up to 8 digits.
    #[inline(always)]
    pub(crate) fn few_digits(&mut self, field: Field) -> u64 {
        let word = self.word_before(field.end, field.len);
        self.wrong |= others(word) | (field.len.wrapping_sub(1) & !7) as u64;
        worth_of_digits(word)
    }

    /// A number of up to 16 digits.
    #[inline(always)]
    pub(crate) fn digits(&mut self, field: Field) -> u64 {
        let high = self.word_before(field.end.wrapping_sub(8), field.len.saturating_sub(8));
        let low = self.word_before(field.end, field.len.min(8));
        self.wrong |= others(high) | others(low) | (field.len.wrapping_sub(1) & !15) as u64;
        worth_of_digits(high) * 100_000_000 + worth_of_digits(low)
    }

    /// A field of one byte.
    #[inline(always)]
    pub(crate) fn letter(&mut self, field: Field) -> u8 {
        self.wrong |= (field.len ^ 1) as u64;
        self.bytes[(BEFORE - 1 + field.end) % WINDOW_BYTES]
    }

    /// Demands that a field has at most this number of bytes, below 64.
    #[inline(always)]
    pub(crate) fn demand_at_most(&mut self, field: Field, bytes: usize) {
        self.wrong |= (bytes.wrapping_sub(field.len) >> 63) as u64;
    }

    /// Demands that some bits are not set.
    #[inline(always)]
    pub(crate) fn demand_none(&mut self, bits: u8) {
        self.wrong |= u64::from(bits);
    }

    /// The length of the line with its end; `None` if a field was not as it had to be.
    #[inline(always)]
    pub(crate) fn end(&self) -> Option<usize> {
        match self.wrong {
            0 => Some(self.at),
            _ => None,
        }
    }

    /// The bytes before a place as a word, less `0` each; those before the last `kept` are 0.
    #[inline(always)]
    fn word_before(&self, end: usize, kept: usize) -> u64 {
        const FIRST: usize = BEFORE - 8;
        // The remainder is the place itself: 8 bytes before the end of a field, or 16, are in the window.
        let begin = FIRST.wrapping_add(end) % (WINDOW_BYTES - 7);
        let bytes = self.bytes[begin..]
            .first_chunk()
            .copied()
            .unwrap_or_default();
        (u64::from_le_bytes(bytes) ^ ZEROS) & KEPT[kept % KEPT.len()]
    }
}

impl Field {
    /// The number of its bytes.
    pub(crate) fn len(self) -> usize {
        self.len
    }
}

/// `0` in each byte.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Masks of the last bytes of a word of eight, by their number.
const KEPT: [u64; 16] = {
    let mut kept = [u64::MAX; 16];
    let mut digits = 0;
    while digits < 8 {
        kept[digits] = !(u64::MAX >> (8 * digits));
        digits += 1;
    }
    kept
};

/// The places in the line of bytes below `0`, a bit each. Bytes from 128 on count as their lower 7 bits.
#[inline(always)]
fn below_digits(window: &[u8; WINDOW_BYTES]) -> u64 {
    let (words, _) = window.as_chunks::<8>();
    let line = &words[BEFORE / 8..(BEFORE + LINE_BYTES) / 8];
    line.iter().rev().fold(0, |places, &word| {
        let low = u64::from_le_bytes(word) & 0x7f7f_7f7f_7f7f_7f7f;
        let below = !(low + 0x5050_5050_5050_5050) & 0x8080_8080_8080_8080;
        // The product moves the highest bit of each byte into the highest byte, each to a place of its own.
        places << 8 | (below >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
}
