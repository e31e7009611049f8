//! Distances from the end of an I/O to the start of the next, as they are counted.

use crate::columns::{BLOCK_EVENTS, Ios};
use crate::histogram::{Distances, power_index};

/// Distances by direction and power of two, in one array so that counting takes no branch.
pub(super) struct Seeks {
    /// As many as a bucket's byte can tell; those of three directions are used.
    counts: Box<[u64; 256]>,
    /// The end of the last I/O with an extent, and whether there was one.
    end_bytes: u64,
    is_known: bool,
    room: Box<Room>,
}

/// Buffers for each I/O of a block.
struct Room {
    /// The end of the one before.
    from_bytes: [u64; BLOCK_EVENTS],
    /// 1 where both have an extent, else 0.
    seeks: [u8; BLOCK_EVENTS],
    buckets: [u8; BLOCK_EVENTS],
}

/// Powers of two of 64 bits: one more than there are bits.
const SEEK_BUCKETS: usize = 65;

impl Default for Seeks {
    fn default() -> Seeks {
        let room = Room {
            from_bytes: [0; BLOCK_EVENTS],
            seeks: [0; BLOCK_EVENTS],
            buckets: [0; BLOCK_EVENTS],
        };
        Seeks {
            counts: Box::new([0; 256]),
            end_bytes: 0,
            is_known: false,
            room: Box::new(room),
        }
    }
}

impl Seeks {
    /// Counts the way to each I/O of a block.
    #[inline(always)]
    pub(super) fn add_block(&mut self, ios: &Ios<'_>, ends_bytes: &[u64; BLOCK_EVENTS]) {
        let Room {
            from_bytes,
            seeks,
            buckets,
        } = &mut *self.room;
        let (mut last, mut is_known) = (self.end_bytes, self.is_known);
        let given = ios.len_bytes.iter().zip(ends_bytes);
        for ((from, seeks), (&len, &end)) in from_bytes.iter_mut().zip(&mut *seeks).zip(given) {
            let has_extent = len > 0;
            (*from, *seeks) = (last, u8::from(has_extent & is_known));
            last = if has_extent { end } else { last };
            is_known |= has_extent;
        }
        (self.end_bytes, self.is_known) = (last, is_known);
        for ((bucket, &from), &to) in buckets.iter_mut().zip(&*from_bytes).zip(ios.start_bytes) {
            let direction = usize::from(to > from) + 2 * usize::from(to == from);
            *bucket = (direction * SEEK_BUCKETS + power_index(to.abs_diff(from))) as u8;
        }
        let rows = ios.len().min(BLOCK_EVENTS);
        for (&bucket, &seeks) in buckets[..rows].iter().zip(&seeks[..rows]) {
            self.counts[usize::from(bucket)] += u64::from(seeks);
        }
    }

    pub(super) fn put_into(&mut self, seeks: &mut Distances) {
        let (backward, rest) = self.counts.split_at_mut(SEEK_BUCKETS);
        let (forward, none) = rest.split_at_mut(SEEK_BUCKETS);
        seeks.backward.take_from(backward);
        seeks.forward.take_from(forward);
        seeks.none += std::mem::take(&mut none[0]);
    }
}
