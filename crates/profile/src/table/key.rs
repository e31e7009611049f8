//! The common properties of the I/O of one row, in one word.

use serde::{Deserialize, Serialize};

use plumb_trace::Op;

/// The field of a length in a key.
const LENGTH_FIELD: u64 = (1 << 35) - 1;

/// Longest exact length: as many bytes as the field of a key holds, for any unit, so that the step of a table does not
/// depend on its change to bytes.
const LENGTH_BYTES_MAX: u64 = LENGTH_FIELD;

/// A row's key in one word, in the order in which rows are written: operation, stream bit, mark, residue, length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key(pub(super) u64);

impl Key {
    /// Residue and length in units of 2^`unit_shift` bytes.
    #[inline]
    pub(super) fn new(op: Op, continues: bool, residue: u64, length: u64, unit_shift: u32) -> Key {
        debug_assert!(residue < 1 << 24, "a residue is below the largest modulus");
        let rounded = length > LENGTH_BYTES_MAX >> unit_shift;
        let length = if rounded { exponent(length) } else { length };
        Key(Key::exact(op, continues, residue, length).0 | u64::from(rounded) << 59)
    }

    /// Whether lengths are exact whose bits combined are these.
    #[inline(always)]
    pub(super) fn keeps(lengths_bytes: u64) -> bool {
        lengths_bytes <= LENGTH_BYTES_MAX
    }

    /// As [`Key::new`], of a length that is kept exactly.
    #[inline(always)]
    pub(super) fn exact(op: Op, continues: bool, residue: u64, length: u64) -> Key {
        Key((op as u64) << 61 | u64::from(continues) << 60 | residue << 35 | length)
    }

    /// As [`Key::new`] with its length rounded, of a length that would be kept exactly.
    #[inline(always)]
    pub(super) fn rounded(op: Op, continues: bool, residue: u64, length: u64) -> Key {
        let is_rounded = length & length.wrapping_sub(1) != 0;
        let length = if is_rounded { exponent(length) } else { length };
        Key(Key::exact(op, continues, residue, length).0 | u64::from(is_rounded) << 59)
    }

    /// The operation of the I/O.
    #[must_use]
    pub fn op(self) -> Op {
        Op::from_code((self.0 >> 61) as u8).unwrap_or(Op::Other)
    }

    /// Whether they continue a stream.
    #[must_use]
    pub fn continues(self) -> bool {
        self.0 >> 60 & 1 == 1
    }

    /// Whether the length was rounded up to a power of two.
    #[must_use]
    pub fn is_rounded(self) -> bool {
        self.0 >> 59 & 1 == 1
    }

    /// Start modulo M, in units.
    #[must_use]
    pub fn residue(self) -> u64 {
        self.0 >> 35 & 0xff_ffff
    }

    /// Length in units; when rounded, the power of two at or above it.
    #[must_use]
    pub fn length(self) -> u64 {
        let field = self.0 & LENGTH_FIELD;
        if self.is_rounded() {
            1u64.checked_shl(field as u32).unwrap_or(u64::MAX)
        } else {
            field
        }
    }

    /// The least length that it may stand for, in units: a power of two is not rounded to another one.
    #[must_use]
    pub fn length_min(self) -> u64 {
        let field = self.0 & LENGTH_FIELD;
        if self.is_rounded() {
            (1u64 << (field.clamp(1, 63) - 1)).saturating_add(1)
        } else {
            field
        }
    }

    /// The greatest length that it may stand for, in units of 2^`unit_shift` bytes.
    #[must_use]
    pub(super) fn length_max(self, unit_shift: u32) -> u64 {
        let field = self.0 & LENGTH_FIELD;
        if !self.is_rounded() {
            return field;
        }
        if field >= 63 {
            return u64::MAX >> unit_shift;
        }
        // Lengths too long for the field are rounded even if they are a power of two.
        let power = 1u64 << field;
        if power > LENGTH_BYTES_MAX >> unit_shift {
            power
        } else {
            (power - 1).max(self.length_min())
        }
    }

    pub(super) fn is_valid(self, modulus: u64, unit_shift: u32, lengths_rounded: bool) -> bool {
        let field = self.0 & LENGTH_FIELD;
        let length_fits = if self.is_rounded() {
            (1..64).contains(&field)
        } else {
            field <= LENGTH_BYTES_MAX >> unit_shift
                && (!lengths_rounded || field == 0 || field.is_power_of_two())
        };
        self.0 >> 61 < 6 && self.residue() < modulus && length_fits
    }

    pub(super) fn with_rounded_length(self) -> Key {
        let length = self.length();
        if self.is_rounded() || length == 0 || length.is_power_of_two() {
            return self;
        }
        Key(self.0 & !LENGTH_FIELD | 1 << 59 | exponent(length))
    }

    pub(super) fn with_modulus(self, modulus: u64) -> Key {
        Key(self.0 & !(0xff_ffff << 35) | (self.residue() % modulus) << 35)
    }

    /// The same I/O counted in bytes instead of units of 2^`unit_shift` bytes.
    pub(super) fn in_bytes(self, unit_shift: u32) -> Key {
        let field = self.0 & LENGTH_FIELD;
        let field = if self.is_rounded() {
            (field + u64::from(unit_shift)).min(63)
        } else {
            field << unit_shift
        };
        let same = self.0 & !(0xff_ffff << 35) & !LENGTH_FIELD;
        Key(same | self.residue() << unit_shift << 35 | field)
    }
}

/// Exponent of the power of two at or above `length`.
#[inline(always)]
fn exponent(length: u64) -> u64 {
    u64::from(64 - (length.max(1) - 1).leading_zeros()).min(63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_rounded_at_once_or_later() {
        for length in (0..300).chain([
            LENGTH_BYTES_MAX / 2,
            LENGTH_BYTES_MAX / 2 + 1,
            LENGTH_BYTES_MAX,
        ]) {
            let later = Key::new(Op::Write, true, 5, length, 0).with_rounded_length();
            let key = Key::rounded(Op::Write, true, 5, length);
            assert_eq!(key, later, "{length}");
            assert_eq!(
                key.length(),
                if length == 0 {
                    0
                } else {
                    length.next_power_of_two()
                }
            );
        }
    }
}
