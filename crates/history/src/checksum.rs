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

    pub(crate) fn numbers<const N: usize>(mut self, numbers: &[Option<i64>; N]) -> RowSum {
        // An absent number is not 0.
        let mut absent = 0u64;
        let mut bytes = [[0; 8]; N];
        for (at, number) in numbers.iter().enumerate() {
            absent |= u64::from(number.is_none()) << at;
            bytes[at] = number.unwrap_or(0).to_le_bytes();
        }
        self.0.update(bytes.as_flattened());
        self.0.update(&absent.to_le_bytes());
        self
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
