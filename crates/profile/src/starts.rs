//! Whether a few places are hit again and again: I/O by a hash of their start.
//!
//! Offset inference must not take one hot block for a layout. Starts themselves would be too many, so they
//! are spread over [`BUCKETS`] by a hash; the fullest bucket bounds the share of every single start from above.

use plumb_trace::IOS_MAX;
use serde::{Deserialize, Serialize};

use crate::histogram::Counts;

/// How many buckets. With none hot, each holds about 0.4 %: far below the 10 % that matters.
pub const BUCKETS: usize = 256;

/// The bucket of a start.
#[inline(always)]
pub(crate) fn bucket(start_bytes: u64) -> usize {
    let mixed = (start_bytes ^ start_bytes >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as usize
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

    /// Adds what was counted in plain buckets, and empties them.
    pub(crate) fn take_from(&mut self, buckets: &mut [u64; BUCKETS]) {
        self.0.take_from(buckets);
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
