//! The blocks in which a disk writes, and which a power cut destroys as a whole.

use std::ops::Range;

/// A grid of blocks: boundaries at offset + k × bytes. The parts before the first boundary, and after the last one on
/// the disk, are shorter blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Length of a block in bytes: the physical block, at least 4,096, or a larger unit in which the disk is known to
    /// write.
    pub bytes: u64,
    /// The start of the first block: the disk's alignment offset, less than `bytes`.
    pub offset: u64,
}

impl Unit {
    /// The last boundary at or before `position`; 0 before the first one.
    pub(crate) fn floor(self, position: u64) -> u64 {
        match position.checked_sub(self.offset) {
            Some(past) => position - past % self.bytes,
            None => 0,
        }
    }

    /// The first boundary at or after `position`; positions are those of a disk, far from the end of 64 bits.
    pub(crate) fn ceil(self, position: u64) -> u64 {
        let floor = self.floor(position);
        match floor == position {
            true => position,
            false if position < self.offset => self.offset,
            false => floor + self.bytes,
        }
    }

    /// The longest run of whole blocks that is no longer than `len`.
    pub(crate) fn floor_len(self, len: u64) -> u64 {
        len - len % self.bytes
    }

    /// Whole blocks around `range`, as far as the disk has them.
    pub(crate) fn cover(self, range: &Range<u64>, disk_bytes: u64) -> Range<u64> {
        self.floor(range.start)..self.ceil(range.end).min(disk_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Held against a walk over all boundaries.
    #[test]
    fn boundaries_are_found_from_both_sides() {
        for (bytes, offset) in [(8, 0), (8, 7), (12, 5)] {
            let unit = Unit { bytes, offset };
            let boundaries: Vec<u64> = std::iter::once(0)
                .chain((0..20).map(|k| offset + k * bytes))
                .collect();
            for position in 0..100 {
                let floor = boundaries.iter().filter(|b| **b <= position).max();
                let ceil = boundaries.iter().filter(|b| **b >= position).min();
                assert_eq!(Some(&unit.floor(position)), floor, "{unit:?} {position}");
                assert_eq!(Some(&unit.ceil(position)), ceil, "{unit:?} {position}");
            }
        }
    }

    #[test]
    fn the_last_block_ends_with_the_disk() {
        let unit = Unit {
            bytes: 8,
            offset: 0,
        };
        assert_eq!(unit.cover(&(9..17), 20), 8..20);
        assert_eq!(unit.cover(&(8..16), 20), 8..16);
    }
}
