//! From I/O to keys, at a step of the chain by which a table is reduced.

use plumb_trace::Op;

use super::Key;
use crate::columns::{BLOCK_EVENTS, Ios};

/// The data for counting an I/O in a table, as long as it is not lowered.
#[derive(Clone, Copy)]
pub(super) struct CountingStep {
    pub(super) unit_shift: u32,
    pub(super) modulus: u64,
    /// M less one where M is a power of two, which spares a division; else 0.
    pub(super) mask: u64,
    pub(super) lengths_rounded: bool,
}

impl CountingStep {
    #[inline(always)]
    pub(super) fn key(self, op: Op, continues: bool, start_bytes: u64, len_bytes: u64) -> Key {
        let start = start_bytes >> self.unit_shift;
        let residue = if self.mask != 0 {
            start & self.mask
        } else {
            start % self.modulus
        };
        let key = Key::new(
            op,
            continues,
            residue,
            len_bytes >> self.unit_shift,
            self.unit_shift,
        );
        if self.lengths_rounded {
            key.with_rounded_length()
        } else {
            key
        }
    }

    /// The keys of a block of I/O, of whose lengths all bits together are given: without a branch, and several at a
    /// time, where M is a power of two and no length is too long for a key, which is nearly everywhere.
    #[inline(always)]
    pub(super) fn keys(
        self,
        ios: &Ios<'_>,
        lengths: u64,
        continues: &[bool],
        keys: &mut [Key; BLOCK_EVENTS],
    ) {
        let columns = ios
            .op
            .iter()
            .zip(ios.start_bytes)
            .zip(ios.len_bytes)
            .zip(continues)
            .zip(keys);
        let is_plain = self.mask != 0 && Key::keeps(lengths);
        let (shift, mask) = (self.unit_shift, self.mask);
        if is_plain && self.lengths_rounded {
            for ((((&op, start), len), &continues), key) in columns {
                *key = Key::rounded(op, continues, start >> shift & mask, len >> shift);
            }
        } else if is_plain {
            for ((((&op, start), len), &continues), key) in columns {
                *key = Key::exact(op, continues, start >> shift & mask, len >> shift);
            }
        } else {
            for ((((&op, &start), &len), &continues), key) in columns {
                *key = self.key(op, continues, start, len);
            }
        }
    }
}
