//! The figures of a measurement: rates, and times of I/O by direction. `docs/schema/bench.json` and `docs/schema/replay.json`
//! have the same fields.

use plumb_geometry::Nanos;
use serde::Serialize;

use crate::tally::{DirectionTally, Latencies, Tally};

/// The measurement of some I/O.
#[derive(Debug, Serialize)]
pub struct Measurement {
    /// I/O that succeeded.
    pub ios: u64,
    /// Bytes that were moved.
    pub bytes: u64,
    /// I/O a second.
    pub ios_per_second: f64,
    /// Bytes a second.
    pub bytes_per_second: f64,
    /// Mean number of I/O in flight.
    pub in_flight_mean: f64,
    /// All.
    pub all: DirectionFigures,
    /// Reads.
    pub reads: DirectionFigures,
    /// Writes.
    pub writes: DirectionFigures,
    /// I/O that failed, by kind.
    pub failures: Vec<Failures>,
    /// I/O that were due and found no free slot before the end.
    pub not_issued: u64,
    /// I/O that never came back.
    pub never_back: u64,
}

/// One direction.
#[derive(Debug, Serialize)]
pub struct DirectionFigures {
    /// I/O that succeeded.
    pub ios: u64,
    /// Bytes that were moved.
    pub bytes: u64,
    /// Issue to complete; `None` without any.
    pub latency: Option<Times>,
    /// Due to complete; `None` where nothing was due at times.
    pub response: Option<Times>,
}

/// How long I/O took. Quantiles are to a thousandth, the largest is exact.
#[derive(Clone, Debug, Serialize)]
pub struct Times {
    /// The mean.
    pub mean_ns: f64,
    /// Standard deviation.
    pub deviation_ns: f64,
    /// Half took no longer.
    pub p50_ns: i64,
    /// 90 of 100 took no longer.
    pub p90_ns: i64,
    /// 99 of 100.
    pub p99_ns: i64,
    /// 999 of 1,000.
    pub p999_ns: i64,
    /// The longest.
    pub max_ns: i64,
    /// Pairs of an upper bound in ns and a count, 16 a power of two.
    pub buckets: Vec<(u64, u64)>,
}

/// I/O that failed alike.
#[derive(Debug, Serialize)]
pub struct Failures {
    /// Their operation.
    pub op: &'static str,
    /// How they failed.
    pub kind: String,
    /// How many.
    pub ios: u64,
}

impl DirectionFigures {
    /// The time that users waited: since an I/O was due, if it was due at a time.
    #[must_use]
    pub fn waited(&self) -> Option<&Times> {
        self.response.as_ref().or(self.latency.as_ref())
    }
}

/// The I/O of an interval, over all targets.
#[derive(Debug, Serialize)]
pub struct IntervalFigures {
    /// From 1 on.
    pub number: u32,
    /// Its end, since the run began.
    pub at_seconds: f64,
    /// Its length.
    pub seconds: f64,
    /// Whether it belongs to the warm-up: its I/O are not in the totals.
    pub is_warmup: bool,
    /// Whether the run ended before the interval was over: rates and depth of so short a time are those of the end, and
    /// lines and charts leave them out. Its I/O are in the totals.
    pub is_partial: bool,
    /// I/O that succeeded.
    pub ios: u64,
    /// Bytes that were moved.
    pub bytes: u64,
    /// I/O that failed.
    pub failed: u64,
    /// Times of all I/O; `None` without any.
    pub time: Option<Brief>,
    /// Of reads.
    pub read_time: Option<Brief>,
    /// Of writes.
    pub write_time: Option<Brief>,
    /// Share of the I/O that read; `None` without any.
    pub read_share: Option<f64>,
    /// Mean number of I/O in flight; of a part of an interval too high, since it has the whole time of I/O that began earlier.
    pub in_flight_mean: f64,
    /// Share of all processors' time that the host spent busy, and in the kernel; `None` if it does not report them.
    pub cpu: Option<CpuShares>,
}

/// Several intervals as one: its number is that of the last.
#[derive(Debug, Serialize)]
pub struct AverageFigures {
    /// Number of the first.
    pub first: u32,
    /// I/O a second.
    pub ios_per_second: f64,
    /// All of them together.
    pub interval: IntervalFigures,
}

/// Shares of the processors' time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CpuShares {
    /// In programs and in the kernel.
    pub busy_share: f64,
    /// In the kernel.
    pub system_share: f64,
}

/// Times of an interval.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Brief {
    /// I/O.
    pub ios: u64,
    /// Their mean.
    pub mean_ns: f64,
    /// Standard deviation, to a thousandth.
    pub deviation_ns: f64,
    /// Half took no longer.
    pub p50_ns: i64,
    /// 90 of 100 took no longer.
    pub p90_ns: i64,
    /// 99 of 100.
    pub p99_ns: i64,
    /// The longest.
    pub max_ns: i64,
}

impl Tally {
    /// The figures of a period of `seconds`. I/O that were not issued or never came back are in no tally, so their numbers
    /// are 0.
    #[must_use]
    pub fn figures(&self, seconds: f64) -> Measurement {
        let per_second = |number: f64| number / seconds.max(f64::MIN_POSITIVE);
        let in_flight_ns = self.reads.latency.sum_ns() + self.writes.latency.sum_ns();
        let failures = self.failures.iter().map(|((op, kind), ios)| Failures {
            op: op.word(),
            kind: kind.to_string(),
            ios: *ios,
        });
        let mut both = self.reads.clone();
        both.add(&self.writes);
        Measurement {
            ios: self.ios(),
            bytes: self.bytes(),
            ios_per_second: per_second(self.ios() as f64),
            bytes_per_second: per_second(self.bytes() as f64),
            in_flight_mean: per_second(in_flight_ns as f64 / 1e9),
            all: both.figures(),
            reads: self.reads.figures(),
            writes: self.writes.figures(),
            failures: failures.collect(),
            not_issued: 0,
            never_back: 0,
        }
    }

    /// The figures of an interval of `seconds`. Its end is that of a run of this length; the caller sets the end and the
    /// processors if it knows them.
    #[must_use]
    pub fn interval(&self, number: u32, seconds: f64) -> IntervalFigures {
        let (reads, writes) = (self.reads.waited(), self.writes.waited());
        let mut all = reads.clone();
        all.add(writes);
        let in_flight_ns = self.reads.latency.sum_ns() + self.writes.latency.sum_ns();
        IntervalFigures {
            number,
            at_seconds: seconds,
            seconds,
            is_warmup: false,
            is_partial: false,
            ios: self.ios(),
            bytes: self.bytes(),
            failed: self.failed(),
            time: all.brief(),
            read_time: reads.brief(),
            write_time: writes.brief(),
            read_share: (self.ios() > 0).then(|| self.reads.ios() as f64 / self.ios() as f64),
            in_flight_mean: in_flight_ns as f64 / 1e9 / seconds.max(f64::MIN_POSITIVE),
            cpu: None,
        }
    }
}

impl DirectionTally {
    /// The figures of this direction.
    #[must_use]
    pub fn figures(&self) -> DirectionFigures {
        DirectionFigures {
            ios: self.ios(),
            bytes: self.bytes,
            latency: self.latency.times(),
            response: self.response.times(),
        }
    }

    /// The times that users waited: since an I/O was due, if it was due at a time.
    #[must_use]
    pub fn waited(&self) -> &Latencies {
        if self.response.count() > 0 {
            &self.response
        } else {
            &self.latency
        }
    }
}

impl Latencies {
    /// The figures of these I/O; `None` without any.
    #[must_use]
    pub fn times(&self) -> Option<Times> {
        let quantile = |share| self.quantile(share).map(|Nanos(ns)| ns);
        Some(Times {
            mean_ns: self.mean_ns()?,
            deviation_ns: self.deviation_ns()?,
            p50_ns: quantile(0.5)?,
            p90_ns: quantile(0.9)?,
            p99_ns: quantile(0.99)?,
            p999_ns: quantile(0.999)?,
            max_ns: self.max()?.0,
            buckets: self.buckets(),
        })
    }

    /// The same in brief, with their number.
    #[must_use]
    pub fn brief(&self) -> Option<Brief> {
        let quantile = |share| self.quantile(share).map(|Nanos(ns)| ns);
        Some(Brief {
            ios: self.count(),
            mean_ns: self.mean_ns()?,
            deviation_ns: self.deviation_ns()?,
            p50_ns: quantile(0.5)?,
            p90_ns: quantile(0.9)?,
            p99_ns: quantile(0.99)?,
            max_ns: self.max()?.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two reads of 1,000 and 3,000 ns and a write of 2,000 ns in 2 s: 6,000 ns in flight. The write was due 500 ns before its
    /// issue.
    #[test]
    fn figures_are_those_of_a_period() {
        let mut tally = Tally::default();
        for ns in [1000, 3000] {
            tally.reads.bytes += 4096;
            tally.reads.latency.record(ns);
        }
        tally.writes.bytes = 512;
        tally.writes.latency.record(2000);
        tally.writes.response.record(2500);
        let figures = tally.figures(2.0);
        assert_eq!((figures.ios, figures.bytes), (3, 8704));
        assert_eq!(
            (figures.ios_per_second, figures.bytes_per_second),
            (1.5, 4352.0)
        );
        assert!((figures.in_flight_mean - 3e-6).abs() < 1e-15);
        assert_eq!((figures.reads.ios, figures.all.ios), (2, 3));
        let reads = figures.reads.waited().expect("two reads");
        assert_eq!((reads.mean_ns, reads.max_ns), (2000.0, 3000));
        assert!(figures.reads.response.is_none());
        let write = figures.writes.waited().expect("a write");
        assert_eq!((write.mean_ns, write.max_ns), (2500.0, 2500));
        assert_eq!(
            tally.writes.waited().brief().map(|brief| brief.ios),
            Some(1)
        );
        assert!(Tally::default().figures(1.0).all.latency.is_none());
    }
}
