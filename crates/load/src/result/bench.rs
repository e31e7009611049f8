//! The result of a benchmark: numbers as they were measured, in the shape in which they are shown.

use serde::Serialize;

use crate::figures::{AverageFigures, CpuShares, IntervalFigures, Measurement};
use crate::series::gather::Gain;
use crate::series::{OffsetRun, SweepVerdict};

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
    pub intervals: Vec<IntervalFigures>,
    /// Over the intervals behind the first, or behind the warm-up; `None` without such intervals, and for one run only.
    pub average: Option<AverageFigures>,
    /// The processors of the host in the measurement; `None` if the kernel does not report them.
    pub cpu: Option<CpuShares>,
    /// All jobs together.
    pub total: Measurement,
    /// By target.
    pub targets: Vec<BenchTarget>,
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

/// The verdict of a sweep.
#[derive(Debug, Serialize)]
pub struct Sweep {
    /// Its target.
    pub target: String,
    /// The operation: reads, writes or both.
    pub ops: &'static str,
    /// Length of each I/O.
    pub len_bytes: u64,
    /// Starts are multiples of this, the offset aside.
    pub unit_bytes: u64,
    /// The verdict with its numbers.
    #[serde(flatten)]
    pub verdict: SweepVerdict,
    /// The results, in the order of the runs.
    pub offsets: Vec<OffsetRun>,
}

/// The study of small records.
#[derive(Debug, Serialize)]
pub struct Study {
    /// Bytes of a record.
    pub record_bytes: u64,
    /// The operation: reads or writes.
    pub ops: &'static str,
    /// Every combination, in the order of the runs.
    pub rows: Vec<Gain>,
}
