//! Distances from the end of an I/O to the start of the next, as they are counted.

use crate::histogram::{Distances, power_index};

/// Distances by direction and power of two, in one array so that counting takes no branch.
pub(super) struct Seeks(Box<[u64; 3 * SEEK_BUCKETS]>);

/// Powers of two of 64 bits: one more than there are bits.
const SEEK_BUCKETS: usize = 65;

impl Default for Seeks {
    fn default() -> Seeks {
        Seeks(Box::new([0; 3 * SEEK_BUCKETS]))
    }
}

impl Seeks {
    #[inline(always)]
    pub(super) fn add(&mut self, from: u64, to: u64, is_known: bool) {
        let direction = usize::from(to > from) + 2 * usize::from(to == from);
        self.0[direction * SEEK_BUCKETS + power_index(to.abs_diff(from))] += u64::from(is_known);
    }

    pub(super) fn put_into(&mut self, seeks: &mut Distances) {
        let (backward, rest) = self.0.split_at_mut(SEEK_BUCKETS);
        let (forward, none) = rest.split_at_mut(SEEK_BUCKETS);
        seeks.backward.take_from(backward);
        seeks.forward.take_from(forward);
        seeks.none += std::mem::take(&mut none[0]);
    }
}
