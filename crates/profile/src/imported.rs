//! A source's ready-made results: histograms of its own buckets, totals. Kept unchanged, because finer data do not
//! exist.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use plumb_geometry::SmallSort;
use plumb_trace::{AlignTotals, Distribution, Op};

use crate::histogram::power_index;
use crate::timeline::Window;

/// Lowest value, highest value and number of I/O; `None` is open.
pub type Bucket = (Option<i64>, Option<i64>, u64);

/// A histogram as a source made it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ForeignHistogram {
    /// The measure.
    pub measured: Measured,
    /// Operation; `None` for all.
    pub op: Option<Op>,
    /// Buckets in rising order.
    pub buckets: Vec<Bucket>,
    /// Smallest, largest and mean value, where the source gives them.
    pub min_max_mean: Option<(i64, i64, i64)>,
}

impl ForeignHistogram {
    /// The order of histograms by all but their counts.
    fn compare_kinds(&self, other: &ForeignHistogram) -> Ordering {
        let bounds = |one: &ForeignHistogram| -> Vec<(Option<i64>, Option<i64>)> {
            one.buckets
                .iter()
                .map(|(low, high, _)| (*low, *high))
                .collect()
        };
        (self.measured, self.op, self.min_max_mean)
            .cmp(&(other.measured, other.op, other.min_max_mean))
            .then_with(|| bounds(self).cmp(&bounds(other)))
    }

    /// Adds the counts of one with the same buckets.
    fn add_counts(&mut self, other: &ForeignHistogram) {
        for ((_, _, mine), (_, _, theirs)) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine = mine.saturating_add(*theirs);
        }
    }
}

/// The measure of a ready-made histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Measured {
    /// Length, bytes.
    LenBytes,
    /// Distance to the next I/O, bytes.
    SeekBytes,
    /// Issue to complete, ns.
    DeviceNs,
    /// Between issues, ns.
    InterarrivalNs,
    /// I/O in flight at an issue.
    Depth,
    /// Start modulo a unit, bytes.
    ResidueBytes,
}

impl From<plumb_trace::Measured> for Measured {
    fn from(measured: plumb_trace::Measured) -> Measured {
        match measured {
            plumb_trace::Measured::LenBytes => Measured::LenBytes,
            plumb_trace::Measured::SeekBytes => Measured::SeekBytes,
            plumb_trace::Measured::DeviceNs => Measured::DeviceNs,
            plumb_trace::Measured::InterarrivalNs => Measured::InterarrivalNs,
            plumb_trace::Measured::Depth => Measured::Depth,
            plumb_trace::Measured::ResidueBytes => Measured::ResidueBytes,
        }
    }
}

/// Buckets of two histograms: equal ones add up.
fn sum_of_buckets(one: &[Bucket], other: &[Bucket]) -> Vec<Bucket> {
    let mut sums: BTreeMap<(Option<i64>, Option<i64>), u64> = BTreeMap::new();
    for (low, high, ios) in one.iter().chain(other) {
        let sum = sums.entry((*low, *high)).or_default();
        *sum = sum.saturating_add(*ios);
    }
    sums.into_iter()
        .map(|((low, high), ios)| (low, high, ios))
        .collect()
}

/// The share of an interval of a ready-made histogram of lengths in the course over time; `None` if it has no such share.
///
/// A row counts as the power of two at which it begins. The other lengths in it belong to the next power, but most lengths are
/// powers of two.
pub fn window_of(given: &Distribution) -> Option<Window> {
    if given.measured != plumb_trace::Measured::LenBytes {
        return None;
    }
    let mut window = Window::default();
    for bucket in &given.buckets {
        let len_bytes = bucket.low.and_then(|low| u64::try_from(low).ok())?;
        let index = power_index(len_bytes);
        match given.op {
            Some(Op::Read) => window.read_sizes.add(index, bucket.ios),
            Some(Op::Write) => window.write_sizes.add(index, bucket.ios),
            Some(_) => window.other_ios = window.other_ios.saturating_add(bucket.ios),
            None => return None,
        }
    }
    let bytes = given.bytes.unwrap_or(0);
    match given.op {
        Some(Op::Read) => window.read_bytes = bytes,
        Some(Op::Write) => window.write_bytes = bytes,
        _ => {}
    }
    Some(window)
}

/// Totals as `align.d` prints them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Totals {
    /// Length of the observation, ns; `None` when unknown.
    pub elapsed_ns: Option<i64>,
    /// I/O issued.
    pub ios: u64,
    /// Of these, off the unit.
    pub misaligned_ios: u64,
    /// Unit of the start, bytes.
    pub start_unit_bytes: u64,
    /// Mean distance from the unit, bytes.
    pub mean_offset_bytes: u64,
    /// I/O whose length is no multiple of the length unit.
    pub odd_length_ios: u64,
    /// Unit of the length, bytes.
    pub len_unit_bytes: u64,
}

/// Everything ready-made of one device, in a fixed order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// Histograms.
    pub histograms: Vec<ForeignHistogram>,
    /// Totals, one for each observation.
    pub totals: Vec<Totals>,
}

impl Imported {
    /// Takes a histogram in. Those of intervals add up to one.
    pub fn add_histogram(&mut self, given: &Distribution) {
        let mut histogram = ForeignHistogram {
            measured: given.measured.into(),
            op: given.op,
            buckets: given
                .buckets
                .iter()
                .map(|bucket| (bucket.low, bucket.high, bucket.ios))
                .collect(),
            min_max_mean: given.min_max_mean,
        };
        let same = |kept: &ForeignHistogram| {
            (kept.measured, kept.op) == (histogram.measured, histogram.op)
        };
        if given.interval.is_some()
            && let Some(at) = self.histograms.iter().position(same)
        {
            let known = self.histograms.remove(at);
            histogram.buckets = sum_of_buckets(&known.buckets, &histogram.buckets);
        }
        let at = self.histograms.partition_point(|kept| *kept < histogram);
        self.histograms.insert(at, histogram);
    }

    /// Takes totals in.
    pub fn add_totals(&mut self, given: &AlignTotals) {
        let totals = Totals {
            elapsed_ns: given.elapsed_ns,
            ios: given.ios,
            misaligned_ios: given.misaligned_ios,
            start_unit_bytes: given.start_unit_bytes,
            mean_offset_bytes: given.mean_offset_bytes,
            odd_length_ios: given.odd_length_ios,
            len_unit_bytes: given.len_unit_bytes,
        };
        let at = self.totals.partition_point(|kept| *kept < totals);
        self.totals.insert(at, totals);
    }

    /// Whether nothing came ready-made.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.histograms.is_empty() && self.totals.is_empty()
    }

    /// Adds the data of another part. Histograms of the same buckets add up, so that those of many windows are one.
    pub(crate) fn merge(&mut self, other: &Imported) {
        if !other.histograms.is_empty() {
            self.histograms.extend(other.histograms.iter().cloned());
            self.histograms
                .small_sort_by(ForeignHistogram::compare_kinds);
            self.histograms.dedup_by(|later, kept| {
                // A sum has no mean.
                let is_alike = later.min_max_mean.is_none() && later.compare_kinds(kept).is_eq();
                if is_alike {
                    kept.add_counts(later);
                }
                is_alike
            });
            self.histograms.sort();
        }
        self.totals.extend(other.totals.iter().cloned());
        self.totals.sort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(op: Op, buckets: &[(i64, u64)], mean: Option<i64>) -> Imported {
        let buckets = buckets.iter();
        let buckets = buckets.map(|(low, ios)| (Some(*low), Some(low * 2 - 1), *ios));
        Imported {
            histograms: vec![ForeignHistogram {
                measured: Measured::LenBytes,
                op: Some(op),
                buckets: buckets.collect(),
                min_max_mean: mean.map(|mean| (mean, mean, mean)),
            }],
            totals: Vec::new(),
        }
    }

    /// Histograms of the same buckets add up in any order; others stay by themselves.
    #[test]
    fn like_histograms_add_up() {
        let parts = [
            histogram(Op::Read, &[(4096, 1), (8192, 2)], None),
            histogram(Op::Write, &[(4096, 7), (8192, 0)], None),
            histogram(Op::Read, &[(4096, 10)], None),
            histogram(Op::Read, &[(4096, 100), (8192, 200)], None),
            // A mean of two means is not known.
            histogram(Op::Read, &[(4096, 1), (8192, 2)], Some(5)),
            histogram(Op::Read, &[(4096, 1), (8192, 2)], Some(5)),
        ];
        let sum = |order: &[usize]| {
            let mut sum = Imported::default();
            order.iter().for_each(|at| sum.merge(&parts[*at]));
            sum
        };
        let found = sum(&[0, 1, 2, 3, 4, 5]);
        let counts: Vec<Vec<u64>> = found
            .histograms
            .iter()
            .map(|one| one.buckets.iter().map(|bucket| bucket.2).collect())
            .collect();
        assert_eq!(
            counts,
            [vec![1, 2], vec![1, 2], vec![10], vec![101, 202], vec![7, 0]]
        );
        for order in [[5, 4, 3, 2, 1, 0], [3, 5, 0, 2, 4, 1]] {
            assert_eq!(sum(&order), found);
        }
        let mut grouped = sum(&[2, 3]);
        grouped.merge(&sum(&[0, 5, 4, 1]));
        assert_eq!(grouped, found);
    }
}
