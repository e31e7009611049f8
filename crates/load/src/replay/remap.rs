//! The place of a trace's I/O on the target: ranges that begin elsewhere, a shift, and the fold of I/O outside.
//!
//! The fold: an I/O that ends beyond the target starts at its start modulo W, the largest multiple of the modulus
//! within the target, and if it still crosses the end, earlier by the necessary number of moduli. Starts therefore keep
//! their residue, and continuations stay continuations, unless the stream crosses a multiple of W or the end.

use crate::replay::error::ReplayError;
use crate::target::Target;
use plumb_geometry::SmallSort;

/// Bytes by which the fold moves: every grid of a power of two up to it divides them.
pub const MODULUS_BYTES: u64 = 1 << 20;

/// A range that begins elsewhere on the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Its first byte in the trace. It ends where the next one begins.
    pub old: u64,
    /// Its first byte on the target.
    pub new: u64,
}

/// The changes of a trace's starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remap {
    /// By their first byte in the trace.
    moves: Vec<Move>,
    shift_bytes: i64,
    modulus_bytes: u64,
}

impl Default for Remap {
    fn default() -> Remap {
        Remap {
            moves: Vec::new(),
            shift_bytes: 0,
            modulus_bytes: MODULUS_BYTES,
        }
    }
}

/// The place of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub start: u64,
    pub is_folded: bool,
}

impl Remap {
    /// Moves ranges, adds a shift, and folds by a modulus.
    ///
    /// # Errors
    /// When the modulus is 0, or two ranges begin at the same byte.
    pub fn new(
        mut moves: Vec<Move>,
        shift_bytes: i64,
        modulus_bytes: u64,
    ) -> Result<Remap, ReplayError> {
        if modulus_bytes == 0 {
            return Err(ReplayError::NoModulus);
        }
        moves.small_sort_by_key(|range| range.old);
        match moves.windows(2).find(|pair| pair[0].old == pair[1].old) {
            Some(pair) => Err(ReplayError::SameRange { old: pair[0].old }),
            None => Ok(Remap {
                moves,
                shift_bytes,
                modulus_bytes,
            }),
        }
    }

    /// The same fold without moves and shift.
    #[must_use]
    pub fn unmoved(&self) -> Remap {
        Remap {
            modulus_bytes: self.modulus_bytes,
            ..Remap::default()
        }
    }

    /// Whether it moves only I/O that do not fit.
    #[must_use]
    pub fn is_unmoved(&self) -> bool {
        self.moves.is_empty() && self.shift_bytes == 0
    }

    /// Bytes by which the fold moves.
    #[must_use]
    pub fn modulus_bytes(&self) -> u64 {
        self.modulus_bytes
    }

    /// Whether the fold can keep to the logical blocks of a target.
    pub(crate) fn must_suit(&self, target: &Target) -> Result<(), ReplayError> {
        let (modulus_bytes, block_bytes) = (self.modulus_bytes, target.block_bytes());
        if modulus_bytes.is_multiple_of(u64::from(block_bytes)) {
            return Ok(());
        }
        Err(ReplayError::OddModulus {
            target: target.name().to_owned(),
            modulus_bytes,
            block_bytes,
        })
    }

    /// The place of an I/O on a target of this size; `None` if no start of its residue has room for it.
    #[inline]
    pub(crate) fn place(&self, start: u64, len_bytes: u32, size_bytes: u64) -> Option<Placed> {
        let len = i128::from(len_bytes);
        let moved = self.moved(start);
        if moved >= 0 && moved + len <= i128::from(size_bytes) {
            return Some(Placed {
                start: moved as u64,
                is_folded: false,
            });
        }
        let modulus = i128::from(self.modulus_bytes);
        let whole = i128::from(size_bytes) / modulus * modulus;
        if whole == 0 {
            return None;
        }
        let within = moved.rem_euclid(whole);
        let beyond = (within + len - i128::from(size_bytes)).max(0);
        let back = (beyond + modulus - 1) / modulus * modulus;
        let start = u64::try_from(within - back).ok()?;
        Some(Placed {
            start,
            is_folded: true,
        })
    }

    fn moved(&self, start: u64) -> i128 {
        let ranges = self.moves.partition_point(|range| range.old <= start);
        let by = ranges.checked_sub(1).map_or(0, |last| {
            let Move { old, new } = self.moves[last];
            i128::from(new) - i128::from(old)
        });
        i128::from(start) + by + i128::from(self.shift_bytes)
    }
}

#[cfg(test)]
#[path = "remap_tests.rs"]
mod tests;
