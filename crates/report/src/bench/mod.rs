//! The result of a benchmark: numbers as they were measured, in the shape in which they are shown. Text and JSON; the page
//! is in `html/bench.rs`.

mod processor;
mod study;
mod sweep;
mod text;
mod verdict;

use serde::Serialize;

use crate::json::Document;
use crate::run::Run;
use crate::verdict::Outcome;

pub use study::{Study, StudyRow};
pub use sweep::{Grid, Offset, RateRatio, Sweep, sweep_text};
pub use text::{IntervalColumns, average_line, heading, interval_line, run_heading, summary};
pub use verdict::verdict;

pub(crate) use processor::sentence as processor_words;
pub(crate) use study::sentences as study_words;
pub(crate) use sweep::sentences as sweep_words;
pub(crate) use text::{rates, times, times_line};

/// All runs of a benchmark.
#[derive(Debug, Serialize)]
pub struct Bench {
    /// In the order in which they were made.
    pub runs: Vec<BenchRun>,
    /// The joint conclusion of runs that differ only in their offset; `None` for other runs.
    pub sweep: Option<Sweep>,
    /// The result of a study; `None` without one.
    pub study: Option<Study>,
    /// Sentences that a reader must know.
    pub notes: Vec<String>,
}

/// One run: jobs side by side.
#[derive(Debug, Serialize)]
pub struct BenchRun {
    /// Its name; `None` where there is one run only.
    pub name: Option<String>,
    /// The workload, in words.
    pub workload: String,
    /// Warm-up before it.
    pub warmup_seconds: f64,
    /// Time of the measurement.
    pub seconds: f64,
    /// The course, warm-up included.
    pub intervals: Vec<BenchInterval>,
    /// Over the intervals behind the first, or behind the warm-up; `None` without such intervals, and for one run only.
    pub average: Option<Average>,
    /// The processors of the host in the measurement; `None` if the kernel does not report them.
    pub cpu: Option<Cpu>,
    /// All jobs together.
    pub total: Measurement,
    /// By target.
    pub targets: Vec<BenchTarget>,
}

/// The I/O of an interval, over all targets.
#[derive(Debug, Serialize)]
pub struct BenchInterval {
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
    pub cpu: Option<Cpu>,
}

/// Several intervals as one: its number is that of the last.
#[derive(Debug, Serialize)]
pub struct Average {
    /// Number of the first.
    pub first: u32,
    /// I/O a second.
    pub ios_per_second: f64,
    /// All of them together.
    pub interval: BenchInterval,
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

/// Shares of the processors' time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cpu {
    /// In programs and in the kernel.
    pub busy_share: f64,
    /// In the kernel.
    pub system_share: f64,
}

/// A target of a run.
#[derive(Debug, Serialize)]
pub struct BenchTarget {
    /// Its name.
    pub target: String,
    /// Its length.
    pub size_bytes: u64,
    /// Whether I/O went past the page cache.
    pub is_direct: bool,
    /// How I/O were made, in words.
    pub engine: String,
    /// Why it ended, in words.
    pub ended: String,
    /// Whether the measurement is whole: neither failed I/O nor an early end for the target's sake.
    pub is_whole: bool,
    /// Share of the measurement in which its threads ran on a processor or waited for one; `None` if the kernel does not
    /// count it.
    pub processor_share: Option<f64>,
    /// The measurement.
    pub measured: Measurement,
}

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

/// The document of `plumb bench`.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn json(run: &Run, bench: &Bench, outcome: Outcome) -> Result<String, serde_json::Error> {
    plumb_quoting::json::pretty(&Document {
        schema: "plumb.bench/2",
        run,
        inputs: Vec::<()>::new(),
        verdict: Some(verdict(bench, outcome)),
        findings: Vec::new(),
        result: bench,
    })
}
