//! Checksums of rows. SQLite has none: a flipped bit in a number would be another number, and one in a key another window.

use crc32fast::Hasher;

/// Added to each checksum, so that its column always takes six bytes. A flipped bit then makes no absent value of it.
const BASE: i64 = 1 << 40;

/// The checksum of a row, over its key and its columns in their order.
pub(crate) struct RowSum(Hasher);

impl RowSum {
    pub(crate) fn of_key(id: i64) -> RowSum {
        let mut sum = RowSum(Hasher::new());
        sum.0.update(&id.to_le_bytes());
        sum
    }

    /// The sum of a row of numbers, with the key in front and the set of absent ones behind: an absent number is not 0.
    pub(crate) fn of_words(words: &[[u8; 8]]) -> RowSum {
        let mut sum = RowSum(Hasher::new());
        sum.0.update(words.as_flattened());
        sum
    }

    pub(crate) fn bytes(mut self, bytes: Option<&[u8]>) -> RowSum {
        // The length in front keeps neighbours apart.
        let len = bytes.map_or(-1, |bytes| i64::try_from(bytes.len()).unwrap_or(i64::MAX));
        self.0.update(&len.to_le_bytes());
        self.0.update(bytes.unwrap_or_default());
        self
    }

    /// The value of the column `sum`.
    pub(crate) fn value(self) -> i64 {
        BASE + i64::from(self.0.finalize())
    }
}
