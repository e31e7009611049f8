//! The result of a benchmark: numbers as they were measured, in the shape in which they are shown. Text and JSON; the page
//! is in `html/bench.rs`.

mod processor;
mod study;
mod sweep;
mod text;
mod verdict;

use plumb_load::figures::{AverageFigures, CpuShares, IntervalFigures, Measurement};
use serde::Serialize;

use crate::json::Document;
use crate::run::Run;
use crate::verdict::Outcome;

pub use study::Study;
pub use sweep::{Sweep, sweep_text};
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
