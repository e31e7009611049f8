//! A stretch of time and the I/O in it. Slices add up.

/// Sums over a stretch of time; see the module.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimeSlice {
    /// How long it is; 1 where the source tells rates and not how long.
    pub seconds: f64,
    /// Reads and writes.
    pub ios: [f64; 2],
    /// I/O whose operation the source does not have.
    pub undivided: f64,
    /// Bytes read and written; `None` where unknown.
    pub bytes: [Option<f64>; 2],
    /// Bytes whose operation the source does not have.
    pub undivided_bytes: f64,
    /// Reads and writes with a known latency.
    pub timed: f64,
    /// Sum of their latencies, ns.
    pub ns_sum: f64,
    /// I/O in flight, times seconds; `None` where unknown.
    pub in_flight_seconds: Option<f64>,
}

/// More observations than this are combined: the results depend less on their neighbours, and twenty means are as good
/// as any number of them.
const MANY: usize = 40;
/// The number after that.
const BATCHES: usize = 20;

impl TimeSlice {
    /// Reads and writes a second.
    #[must_use]
    pub fn ios_per_second(&self) -> f64 {
        self.all_ios() / self.seconds
    }

    fn all_ios(&self) -> f64 {
        self.ios[0] + self.ios[1] + self.undivided
    }

    fn all_bytes(&self) -> Option<f64> {
        Some(self.bytes[0]? + self.bytes[1]? + self.undivided_bytes)
    }

    /// Reads, or writes, a second; `None` where the source does not tell them apart.
    #[must_use]
    pub fn ios_per_second_of(&self, op: usize) -> Option<f64> {
        (self.undivided <= 0.0).then(|| self.ios[op] / self.seconds)
    }

    /// Bytes read, or written, a second; `None` where unknown.
    #[must_use]
    pub fn bytes_per_second_of(&self, op: usize) -> Option<f64> {
        let bytes = self.bytes[op].filter(|_| self.undivided_bytes <= 0.0)?;
        Some(bytes / self.seconds)
    }

    /// Bytes a second; `None` where unknown.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        Some(self.all_bytes()? / self.seconds)
    }

    /// Mean length of an I/O in bytes; `None` where that is unknown, and without I/O.
    #[must_use]
    pub fn len_bytes(&self) -> Option<f64> {
        let (ios, bytes) = (self.all_ios(), self.all_bytes()?);
        (ios > 0.0).then(|| bytes / ios)
    }

    /// Mean latency, ns; `None` where nothing was timed.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.timed > 0.0).then(|| self.ns_sum / self.timed)
    }

    /// Mean number in flight; `None` where unknown.
    #[must_use]
    pub fn in_flight(&self) -> Option<f64> {
        self.in_flight_seconds.map(|sum| sum / self.seconds)
    }

    fn add(&mut self, other: &TimeSlice) {
        let both = |mine: Option<f64>, theirs: Option<f64>| Some(mine? + theirs?);
        self.seconds += other.seconds;
        for op in 0..2 {
            self.ios[op] += other.ios[op];
            self.bytes[op] = both(self.bytes[op], other.bytes[op]);
        }
        self.undivided += other.undivided;
        self.undivided_bytes += other.undivided_bytes;
        self.timed += other.timed;
        self.ns_sum += other.ns_sum;
        self.in_flight_seconds = both(self.in_flight_seconds, other.in_flight_seconds);
    }
}

/// Puts neighbours together where there are many; the method of batch means.
#[must_use]
pub fn batched(slices: Vec<TimeSlice>) -> Vec<TimeSlice> {
    let together = |batch: &[TimeSlice]| {
        let (first, others) = batch.split_first()?;
        let mut sum = *first;
        others.iter().for_each(|slice| sum.add(slice));
        Some(sum)
    };
    batches(&slices).filter_map(together).collect()
}

/// Neighbours that are put together: each alone where there are few.
pub fn batches<T>(observations: &[T]) -> impl Iterator<Item = &[T]> {
    let count = if observations.len() <= MANY {
        observations.len()
    } else {
        BATCHES
    };
    let bound = move |batch: usize| batch * observations.len() / count.max(1);
    (0..count).map(move |batch| &observations[bound(batch)..bound(batch + 1)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(ios: f64) -> TimeSlice {
        TimeSlice {
            seconds: 2.0,
            ios: [ios, 1.0],
            undivided: 0.0,
            undivided_bytes: 0.0,
            bytes: [Some(ios * 4096.0), None],
            timed: ios,
            ns_sum: ios * 1e6,
            in_flight_seconds: Some(4.0),
        }
    }

    #[test]
    fn few_stay_and_many_are_put_together() {
        let few: Vec<TimeSlice> = (0..40).map(|n| slice(f64::from(n))).collect();
        assert_eq!(batched(few.clone()), few);
        let many: Vec<TimeSlice> = (0..101).map(|n| slice(f64::from(n))).collect();
        let batches = batched(many.clone());
        assert_eq!(batches.len(), 20);
        let sum =
            |slices: &[TimeSlice], of: fn(&TimeSlice) -> f64| slices.iter().map(of).sum::<f64>();
        for of in [
            |slice: &TimeSlice| slice.seconds,
            |slice: &TimeSlice| slice.ios[0],
            |slice: &TimeSlice| slice.ns_sum,
        ] {
            assert_eq!(sum(&batches, of), sum(&many, of), "nothing is lost");
        }
        assert_eq!(batches[0].ios[0], 10.0, "0 to 4");
        assert_eq!(batches[0].in_flight(), Some(2.0));
        assert_eq!(
            batches[0].bytes_per_second(),
            None,
            "an unknown part leaves the sum unknown"
        );
    }

    #[test]
    fn nothing_timed_has_no_latency() {
        assert_eq!(
            TimeSlice {
                seconds: 1.0,
                ..TimeSlice::default()
            }
            .mean_ns(),
            None
        );
        assert_eq!(slice(8.0).mean_ns(), Some(1e6));
        assert_eq!(slice(8.0).ios_per_second(), 4.5);
    }
}
