//! The measurements: reads and writes apart, latencies in histograms, failed I/O by kind.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use hdrhistogram::Histogram;
use plumb_geometry::Nanos;
use plumb_sys::Errno;
use plumb_trace::Op;

/// Digits of a latency that are kept: it is exact to a thousandth.
const DIGITS: u8 = 3;

/// Latencies of some I/O: their number, sum and largest exactly, the others to a thousandth.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
    sum_ns: u128,
    ns_max: u64,
}

impl Default for Latencies {
    fn default() -> Latencies {
        let histogram = Histogram::new(DIGITS).expect("three digits are within its bounds");
        Latencies {
            histogram,
            sum_ns: 0,
            ns_max: 0,
        }
    }
}

impl Latencies {
    /// Counts one.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        // It grows up to 64 bits; if memory does not, its largest value is used instead.
        if self.histogram.record(ns).is_err() {
            self.histogram.saturating_record(ns);
        }
        self.sum_ns += u128::from(ns);
        self.ns_max = self.ns_max.max(ns);
    }

    /// Adds others.
    pub fn add(&mut self, others: &Latencies) {
        let grown = self.histogram.add(&others.histogram);
        debug_assert!(grown.is_ok(), "it grows by itself: {grown:?}");
        self.sum_ns += others.sum_ns;
        self.ns_max = self.ns_max.max(others.ns_max);
    }

    /// Forgets all, and keeps the memory.
    pub fn clear(&mut self) {
        self.histogram.reset();
        self.sum_ns = 0;
        self.ns_max = 0;
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The smallest latency that this share (0 to 1) of the I/O did not exceed, to a thousandth; `None` without any.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Nanos> {
        if self.count() == 0 {
            return None;
        }
        let ns = self.histogram.value_at_quantile(share).min(self.ns_max);
        Some(Nanos(i64::try_from(ns).unwrap_or(i64::MAX)))
    }

    /// The largest, exactly; `None` without any.
    #[must_use]
    pub fn max(&self) -> Option<Nanos> {
        (self.count() > 0).then(|| Nanos(i64::try_from(self.ns_max).unwrap_or(i64::MAX)))
    }

    /// The mean in ns, exactly but for floating point; `None` without any.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum_ns as f64 / self.count() as f64)
    }

    /// The standard deviation in ns, to a thousandth; `None` without any.
    #[must_use]
    pub fn deviation_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.histogram.stdev())
    }

    /// The sum in ns, exactly. Divided by a time, the mean number in flight.
    #[must_use]
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Pairs of an upper bound in ns and a count, rising, those without any left out: 16 bounds a power of two.
    #[must_use]
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        let mut buckets: Vec<(u64, u64)> = Vec::new();
        for step in self.histogram.iter_recorded() {
            let upper_ns = coarse_upper(step.value_iterated_to());
            match buckets
                .last_mut()
                .filter(|(last_ns, _)| *last_ns == upper_ns)
            {
                Some((_, ios)) => *ios += step.count_at_value(),
                None => buckets.push((upper_ns, step.count_at_value())),
            }
        }
        buckets
    }
}

/// The largest value of the bucket of a value, with 16 buckets for each power of two.
fn coarse_upper(ns: u64) -> u64 {
    let width = 1u64 << ns.max(1).ilog2().saturating_sub(4);
    ns | (width - 1)
}

/// I/O of one direction.
#[derive(Clone, Debug, Default)]
pub struct DirectionTally {
    /// Bytes that were moved.
    pub bytes: u64,
    /// Issue to complete, of the I/O that succeeded; their number is that of the I/O.
    pub latency: Latencies,
    /// Due to complete, where I/O were due at times: empty at [`Pace::Max`](crate::Pace::Max).
    pub response: Latencies,
}

impl DirectionTally {
    /// I/O that succeeded.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.latency.count()
    }

    /// Adds others.
    pub fn add(&mut self, others: &DirectionTally) {
        self.bytes += others.bytes;
        self.latency.add(&others.latency);
        self.response.add(&others.response);
    }

    fn clear(&mut self) {
        self.bytes = 0;
        self.latency.clear();
        self.response.clear();
    }
}

/// How an I/O failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoFailure {
    /// The kernel said why.
    Errno(Errno),
    /// Fewer bytes were moved than asked for.
    Short,
}

impl IoFailure {
    /// The error of the kernel; a short I/O has that of any failed I/O.
    pub(crate) fn errno(self) -> Errno {
        match self {
            IoFailure::Errno(errno) => errno,
            IoFailure::Short => Errno::IO,
        }
    }

    /// The number of the error; 0 is none of the kernel's.
    fn number(self) -> i32 {
        match self {
            IoFailure::Errno(errno) => errno.raw_os_error(),
            IoFailure::Short => 0,
        }
    }
}

impl Ord for IoFailure {
    fn cmp(&self, other: &IoFailure) -> Ordering {
        self.number().cmp(&other.number())
    }
}

impl PartialOrd for IoFailure {
    fn partial_cmp(&self, other: &IoFailure) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for IoFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IoFailure::Errno(errno) => write!(f, "{errno}"),
            IoFailure::Short => f.write_str("fewer bytes than asked for"),
        }
    }
}

/// The measurements of some I/O.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Reads.
    pub reads: DirectionTally,
    /// Writes.
    pub writes: DirectionTally,
    /// I/O that failed, by operation and kind.
    pub failures: BTreeMap<(Op, IoFailure), u64>,
}

impl Tally {
    /// Adds others.
    pub fn add(&mut self, others: &Tally) {
        self.reads.add(&others.reads);
        self.writes.add(&others.writes);
        for (kind, ios) in &others.failures {
            *self.failures.entry(*kind).or_insert(0) += ios;
        }
    }

    /// Forgets all, and keeps the memory.
    pub fn clear(&mut self) {
        self.reads.clear();
        self.writes.clear();
        self.failures.clear();
    }

    /// Reads and writes that succeeded.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.reads.ios() + self.writes.ios()
    }

    /// Bytes that were moved.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.reads.bytes + self.writes.bytes
    }

    /// I/O that failed.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_to_a_thousandth_at_every_size() {
        let mut latencies = Latencies::default();
        assert_eq!(
            (
                latencies.quantile(0.5),
                latencies.max(),
                latencies.mean_ns()
            ),
            (None, None, None)
        );
        // 1,000 values over nine powers of ten, in no order.
        let value = |n: u64| 10f64.powf(2.0 + 9.0 * n as f64 / 999.0) as u64;
        for n in 0..1000 {
            latencies.record(value(n * 7 % 1000));
        }
        for share in [0.001, 0.25, 0.5, 0.9, 0.999, 1.0] {
            let exact = value((share * 1000.0f64).round() as u64 - 1) as f64;
            let found = latencies.quantile(share).expect("some").0 as f64;
            assert!(
                (found / exact - 1.0).abs() <= 0.001,
                "{share}: {found}, expected {exact}"
            );
        }
        assert_eq!(latencies.max(), Some(Nanos(value(999) as i64)));
        let mean = (0..1000).map(value).sum::<u64>() as f64 / 1000.0;
        assert_eq!(latencies.mean_ns(), Some(mean));
        let square = (0..1000)
            .map(|n| (value(n) as f64 - mean).powi(2))
            .sum::<f64>()
            / 1000.0;
        let deviation = latencies.deviation_ns().expect("some");
        assert!(
            (deviation / square.sqrt() - 1.0).abs() < 0.002,
            "{deviation}, expected {}",
            square.sqrt()
        );
    }

    #[test]
    fn buckets_hold_all_and_keep_their_bounds() {
        let mut latencies = Latencies::default();
        let mut other = Latencies::default();
        for ns in 1..=10_000u64 {
            if ns % 2 == 0 {
                latencies.record(ns)
            } else {
                other.record(ns)
            }
        }
        latencies.add(&other);
        let buckets = latencies.buckets();
        assert_eq!(buckets.iter().map(|(_, ios)| ios).sum::<u64>(), 10_000);
        assert!(buckets.is_sorted_by(|one, next| one.0 < next.0));
        let mut below = 0;
        for (upper_ns, ios) in buckets {
            below += ios;
            // Bounds of the finer buckets beneath are off by a thousandth at most.
            let expected = upper_ns.min(10_000);
            assert!(
                below.abs_diff(expected) <= expected / 500 + 1,
                "{below} up to {upper_ns}"
            );
        }
        latencies.clear();
        assert_eq!((latencies.count(), latencies.sum_ns()), (0, 0));
    }
}
