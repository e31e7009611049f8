//! Histograms that merge by adding: log-linear for times, powers of two for lengths and distances.

use plumb_trace::IOS_MAX;
use serde::{Deserialize, Serialize};

/// Sub-buckets of each power of two of a log-linear histogram, so a bucket is at most 1/16 wide.
pub const SUB_BUCKETS: u64 = 16;

/// Index of the bucket of `value`: 0 to 15 stand for themselves, then 16 buckets a power of two.
#[inline]
#[must_use]
pub const fn log_linear_index(value: u64) -> usize {
    // Small values are taken for their own index without a branch: as if they had the power of the smallest
    // one that is not.
    let shift = 59 - (value | SUB_BUCKETS).leading_zeros() as u64;
    (shift * SUB_BUCKETS + (value >> shift)) as usize
}

/// Lowest and highest value of a bucket of [`log_linear_index`].
#[must_use]
pub const fn log_linear_bounds(index: usize) -> (u64, u64) {
    let index = index as u64;
    if index < 2 * SUB_BUCKETS {
        return (index, index);
    }
    let power = index / SUB_BUCKETS - 1;
    let low = (index % SUB_BUCKETS + SUB_BUCKETS) << power;
    (low, low + ((1 << power) - 1))
}

/// Index of the power of two at or above `value`: 0 for 0 and 1, 9 for 257 to 512.
#[inline]
#[must_use]
pub const fn power_index(value: u64) -> usize {
    let below = value.saturating_sub(1);
    if below >> 63 != 0 {
        return 64;
    }
    63 - (below << 1 | 1).leading_zeros() as usize
}

/// No histogram has more buckets than the log-linear one.
pub(crate) const LOG_LINEAR_BUCKETS: usize = log_linear_index(u64::MAX) + 1;

/// Counts by bucket; the owner defines the meaning of a bucket. Trailing empty buckets are not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts(
    #[serde(deserialize_with = "crate::bounded::list::<_, _, LOG_LINEAR_BUCKETS>")] Vec<u64>,
);

impl Counts {
    /// Adds to a bucket.
    #[inline]
    pub fn add(&mut self, index: usize, weight: u64) {
        if index >= self.0.len() {
            if weight == 0 {
                return;
            }
            self.0.resize(index + 1, 0);
        }
        // Weights may be times of a trace that nobody vouches for: the sum stays at its end.
        self.0[index] = self.0[index].saturating_add(weight);
    }

    /// Adds one to a bucket. Counting alone does not come to the end of 64 bits.
    #[inline(always)]
    pub(crate) fn bump(&mut self, index: usize) {
        match self.0.get_mut(index) {
            Some(count) => *count += 1,
            None => self.add(index, 1),
        }
    }

    /// Takes the counts of plain buckets.
    pub(crate) fn from_buckets(buckets: &[u64]) -> Counts {
        let used = buckets
            .iter()
            .rposition(|&count| count > 0)
            .map_or(0, |last| last + 1);
        Counts(buckets[..used].to_vec())
    }

    /// Adds the counts of plain buckets, and empties them.
    pub(crate) fn take_from(&mut self, buckets: &mut [u64]) {
        let used = buckets
            .iter()
            .rposition(|&count| count > 0)
            .map_or(0, |last| last + 1);
        for (index, count) in buckets[..used].iter_mut().enumerate() {
            self.add(index, std::mem::take(count));
        }
    }

    /// Adds all of another one's buckets.
    pub fn merge(&mut self, other: &Counts) {
        if other.0.len() > self.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, &theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = mine.saturating_add(theirs);
        }
    }

    /// Sum over all buckets.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0
            .iter()
            .fold(0, |total, &weight| total.saturating_add(weight))
    }

    /// Replaces the content of a bucket.
    pub fn put(&mut self, index: usize, weight: u64) {
        if index >= self.0.len() {
            self.0.resize(index + 1, 0);
        }
        self.0[index] = weight;
    }

    /// The content of a bucket.
    #[must_use]
    pub fn get(&self, index: usize) -> u64 {
        self.0.get(index).copied().unwrap_or(0)
    }

    /// Buckets that hold something, by index.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (usize, u64)> + '_ {
        self.0
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, weight)| *weight > 0)
    }

    /// Bounds of the log-linear bucket in which the share `part / whole` of the weight is reached.
    #[must_use]
    pub fn log_linear_quantile(&self, part: u64, whole: u64) -> Option<(u64, u64)> {
        let total = u128::from(self.total());
        if total == 0 {
            return None;
        }
        let wanted = (total * u128::from(part))
            .div_ceil(u128::from(whole.max(1)))
            .max(1);
        let mut seen = 0u128;
        for (index, weight) in self.iter() {
            seen += u128::from(weight);
            if seen >= wanted {
                return Some(log_linear_bounds(index));
            }
        }
        None
    }

    /// Whether these can be counts of I/O, whose sums and percentages do not overflow.
    pub(crate) fn can_be_ios(&self, buckets_max: usize) -> bool {
        self.is_plausible(buckets_max) && self.total() <= IOS_MAX
    }

    pub(crate) fn is_plausible(&self, buckets_max: usize) -> bool {
        self.0.len() <= buckets_max && self.0.last() != Some(&0)
    }
}

/// Distances, backward and forward, each by power of two; 0 is neither.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distances {
    /// The I/O begins where the last one ended.
    pub none: u64,
    /// By [`power_index`] of the bytes skipped.
    pub forward: Counts,
    /// By [`power_index`] of the bytes gone back.
    pub backward: Counts,
}

impl Distances {
    /// Counts the way from the end of the last I/O to the start of this one.
    #[inline]
    pub fn add(&mut self, from: u64, to: u64) {
        match to.cmp(&from) {
            std::cmp::Ordering::Equal => self.none += 1,
            std::cmp::Ordering::Greater => self.forward.add(power_index(to - from), 1),
            std::cmp::Ordering::Less => self.backward.add(power_index(from - to), 1),
        }
    }

    /// Adds another one's counts.
    pub fn merge(&mut self, other: &Distances) {
        self.none = self.none.saturating_add(other.none);
        self.forward.merge(&other.forward);
        self.backward.merge(&other.backward);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_within_its_narrow_bucket() {
        let mut value = 0u64;
        while value < u64::MAX / 2 {
            let (low, high) = log_linear_bounds(log_linear_index(value));
            assert!(low <= value && value <= high, "{value}: {low}..={high}");
            assert!(
                (high - low) as u128 * 16 <= value as u128,
                "{value}: {low}..={high}"
            );
            value = value + value / 37 + 1;
        }
        assert_eq!(log_linear_index(u64::MAX), 975);
    }

    #[test]
    fn buckets_follow_each_other_without_gap() {
        let mut expected = 0;
        for index in 0..900 {
            let (low, high) = log_linear_bounds(index);
            assert_eq!(low, expected, "bucket {index}");
            expected = high + 1;
        }
    }

    #[test]
    fn powers() {
        for (value, index) in [
            (0, 0),
            (1, 0),
            (2, 1),
            (3, 2),
            (4, 2),
            (257, 9),
            (512, 9),
            (513, 10),
            (u64::MAX, 64),
        ] {
            assert_eq!(power_index(value), index, "{value}");
        }
    }

    #[test]
    fn quantiles() {
        let mut counts = Counts::default();
        for value in 1..=10u64 {
            counts.add(log_linear_index(value), 1);
        }
        assert_eq!(counts.log_linear_quantile(1, 2), Some((5, 5)));
        assert_eq!(counts.log_linear_quantile(99, 100), Some((10, 10)));
        assert_eq!(Counts::default().log_linear_quantile(1, 2), None);
    }
}
