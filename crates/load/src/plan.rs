//! A run as it is planned: jobs side by side, how fast each of them asks, and when it ends.

use std::time::Duration;

use crate::engine::EngineChoice;
use crate::permission::MayWrite;
use crate::target::Target;
use crate::workload::Workload;

/// Most threads of a job.
pub const THREADS_MAX: u32 = 1024;

/// Most I/O that a thread has in flight.
pub const DEPTH_MAX: u32 = 4096;

/// One workload against one target.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The target of the load.
    pub target: &'a Target,
    /// The permission that a workload with writes needs.
    pub may_write: Option<&'a MayWrite>,
    /// The workload.
    pub workload: Workload,
    /// Threads, 1 to [`THREADS_MAX`].
    pub threads: u32,
    /// I/O in flight a thread, 1 to [`DEPTH_MAX`].
    pub depth: u32,
    /// I/O that a thread hands over and waits for at once, 1 to its depth. More than 1 saves calls; latencies then contain the
    /// wait for the others of the batch.
    pub batch: u32,
    /// How fast.
    pub pace: Pace,
    /// I/O at which it ends, exactly, where time is not over before.
    pub ios_max: Option<u64>,
}

impl<'a> Job<'a> {
    /// One thread with one I/O in flight, as fast as it goes.
    #[must_use]
    pub fn new(target: &'a Target, workload: Workload) -> Job<'a> {
        Job {
            target,
            may_write: None,
            workload,
            threads: 1,
            depth: 1,
            batch: 1,
            pace: Pace::Max,
            ios_max: None,
        }
    }
}

/// How fast a job asks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// The next I/O as soon as one has completed.
    Max,
    /// At most this number a second; delays by a slow target are caught up. Latency counts from the issue.
    Closed {
        /// I/O a second of all threads of the job.
        per_second: f64,
    },
    /// This number a second, independent of the target. Latency counts from the due time of an I/O, even if there was
    /// no free slot for it then.
    Open {
        /// I/O a second of all threads of the job.
        per_second: f64,
        /// How they arrive.
        arrivals: Arrivals,
    },
}

/// How I/O arrive in an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// At random, independent of each other: gaps are exponential.
    Exponential,
    /// At random, with gaps that are spread evenly from 0 to twice their mean.
    Uniform,
    /// At even distances.
    Even,
}

/// A run: the load, its duration, and the interval of reports.
#[derive(Clone, Debug)]
pub struct LoadPlan<'a> {
    /// Side by side.
    pub jobs: Vec<Job<'a>>,
    /// Time before the measurement begins; its I/O count nowhere else.
    pub warmup: Duration,
    /// Time of the measurement; `None` goes on until each job has made its `ios_max`, or until it is stopped.
    pub duration: Option<Duration>,
    /// How often an [`IntervalReport`](crate::IntervalReport) is reported.
    pub interval: Duration,
    /// The same seed draws the same I/O.
    pub seed: u64,
    /// How I/O are made.
    pub engine: EngineChoice,
}

impl<'a> LoadPlan<'a> {
    /// A run of these jobs for a duration, with an interval of a second.
    #[must_use]
    pub fn new(jobs: Vec<Job<'a>>, duration: Duration) -> LoadPlan<'a> {
        let interval = Duration::from_secs(1);
        LoadPlan {
            jobs,
            warmup: Duration::ZERO,
            duration: Some(duration),
            interval,
            seed: 1,
            engine: EngineChoice::Ring,
        }
    }
}
