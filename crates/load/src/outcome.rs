//! The results of a run, final and intermediate.

use std::time::Duration;

use plumb_sys::Errno;

use crate::processor::ProcessorUse;
use crate::tally::Tally;

/// The activity since the last report.
#[derive(Debug)]
pub struct IntervalReport<'a> {
    /// From 1 on, warm-up included.
    pub number: u32,
    /// Since the beginning of the run.
    pub at: Duration,
    /// Its length, which is that of the plan except for the last one and for delays of a busy machine.
    pub length: Duration,
    /// Whether the measurement has not begun yet: these I/O are not in the outcome.
    pub is_warmup: bool,
    /// Whether the run ended before the interval was over. I/O that waited in queues end in this rest, so its rate and
    /// depth say nothing about the load.
    pub is_partial: bool,
    /// By job, in the order of the plan.
    pub jobs: &'a [Tally],
}

/// The result of a run.
#[derive(Debug)]
pub struct RunOutcome {
    /// By job, in the order of the plan.
    pub jobs: Vec<JobOutcome>,
    /// Time of the measurement: from its beginning to the last completion, or to the end of the plan if that is later.
    pub elapsed: Duration,
    /// I/O that are in no trace, as it could not be written fast enough.
    pub not_traced: u64,
}

/// The result of a job.
#[derive(Debug)]
pub struct JobOutcome {
    /// The measurements. I/O in flight at the end of the time are waited for, and counted.
    pub tally: Tally,
    /// Time of the measurement of this job.
    pub elapsed: Duration,
    /// Why it ended.
    pub ended: Ended,
    /// How I/O were made.
    pub means: Means,
    /// I/O that were due before the end and found no free slot: an open loop that the target could not follow.
    pub not_issued: u64,
    /// I/O that were not back at the end, after a long wait.
    pub never_back: u64,
    /// The use of processors by the threads that send its I/O, in the measurement; `None` if the kernel does not count it.
    pub processor: Option<ProcessorUse>,
}

impl JobOutcome {
    /// I/O a second.
    #[must_use]
    pub fn ios_per_second(&self) -> f64 {
        self.tally.ios() as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// The mean number of I/O in flight, by Little's law.
    #[must_use]
    pub fn in_flight_mean(&self) -> f64 {
        let sum_ns = self.tally.reads.latency.sum_ns() + self.tally.writes.latency.sum_ns();
        sum_ns as f64 / (self.elapsed.as_secs_f64() * 1e9).max(f64::MIN_POSITIVE)
    }
}

/// Why a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its time was over.
    Time,
    /// It had made its I/O.
    Ios,
    /// It was stopped from outside.
    Stopped,
    /// Nothing but failures for a long while.
    OnlyFailures(Errno),
    /// The target went away.
    TargetGone(Errno),
    /// I/O did not come back.
    Stuck,
}

/// How I/O were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// By io_uring.
    Ring {
        /// Whether the buffers are known to the kernel beforehand.
        has_fixed_buffers: bool,
    },
    /// By pread and pwrite, a thread for each I/O in flight.
    Blocking {
        /// Why the kernel refused io_uring; `None` where that was not asked for.
        refused: Option<Errno>,
    },
}
