//! Whether a few places are hit again and again: I/O by a hash of their start.
//!
//! Offset inference must not take one hot block for a layout. Starts themselves would be too many, so they
//! are spread over [`BUCKETS`] by a hash; the fullest bucket bounds the share of every single start from above.

use plumb_trace::IOS_MAX;
use serde::{Deserialize, Serialize};

use crate::columns::{BLOCK_EVENTS, Ios};
use crate::histogram::Counts;

/// How many buckets. With none hot, each holds about 0.4 %: far below the 10 % that matters.
pub const BUCKETS: usize = 256;

/// The bucket of a start.
#[inline(always)]
fn bucket(start_bytes: u64) -> usize {
    let mixed = (start_bytes ^ start_bytes >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as usize
}

/// Starts of stream heads among reads and writes as they are counted.
pub(crate) struct Heads(Box<[[u64; BUCKETS]; 2]>);

impl Default for Heads {
    fn default() -> Heads {
        Heads(Box::new([[0; BUCKETS]; 2]))
    }
}

impl Heads {
    /// Counts those of a block that are heads.
    #[inline(always)]
    pub(crate) fn add_block(
        &mut self,
        ios: &Ios<'_>,
        continues: &[bool; BLOCK_EVENTS],
        buckets: &mut [u16; BLOCK_EVENTS],
    ) {
        let given = ios
            .op
            .iter()
            .zip(ios.start_bytes)
            .zip(ios.len_bytes)
            .zip(continues);
        for (at, (((&op, &start), &len), &continues)) in buckets.iter_mut().zip(given) {
            let is_head = !continues & (len > 0) & (op as usize <= 1);
            *at = (bucket(start) | (op as usize & 1) << 8 | usize::from(is_head) << 9) as u16;
        }
        for &at in &buckets[..ios.len().min(BLOCK_EVENTS)] {
            let at = usize::from(at);
            self.0[at >> 8 & 1][at % BUCKETS] += at as u64 >> 9;
        }
    }

    /// Adds the counts to starts of reads and of writes.
    pub(crate) fn put_into(&mut self, reads: &mut Starts, writes: &mut Starts) {
        let [of_reads, of_writes] = &mut *self.0;
        reads.0.take_from(of_reads);
        writes.0.take_from(of_writes);
    }
}

/// Starts of stream heads, spread by hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Starts(Counts);

impl Starts {
    /// Counts a start.
    #[inline]
    pub fn add(&mut self, start_bytes: u64) {
        self.0.bump(bucket(start_bytes));
    }

    /// Counts starts that a source has already sorted into buckets, by the hash that is used here.
    pub fn add_counted(&mut self, bucket: usize, starts: u64) {
        self.0.add(bucket % BUCKETS, starts);
    }

    /// Adds another one's counts.
    pub fn merge(&mut self, other: &Starts) {
        self.0.merge(&other.0);
    }

    /// How many were counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.total()
    }

    /// No single start was hit more often than this.
    #[must_use]
    pub fn single_max(&self) -> u64 {
        self.0.iter().map(|(_, starts)| starts).max().unwrap_or(0)
    }

    pub(crate) fn is_plausible(&self) -> bool {
        self.0.is_plausible(BUCKETS) && self.0.total() <= IOS_MAX
    }
}
