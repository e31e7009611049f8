//! Whether a plan can be carried out at all, before anything is read or written.

use crate::plan::{DEPTH_MAX, Job, LoadPlan, Pace, THREADS_MAX};
use crate::workload::WorkloadError;

/// Fastest rate: an I/O a nanosecond.
const PER_SECOND_MAX: f64 = 1e9;

/// Shortest interval.
const INTERVAL_MS_MIN: u128 = 10;

/// Whether all numbers of a plan are within their bounds, and writers have a permission.
pub(crate) fn must_fit(plan: &LoadPlan<'_>) -> Result<(), WorkloadError> {
    if plan.jobs.is_empty() {
        return out("jobs", "none".to_owned(), "1 or more");
    }
    if plan.interval.as_millis() < INTERVAL_MS_MIN {
        return out(
            "interval",
            format!("{} ms", plan.interval.as_millis()),
            "10 ms or more",
        );
    }
    if plan.duration.is_some_and(|duration| duration.is_zero()) {
        return out("duration", "0".to_owned(), "a time above 0");
    }
    plan.jobs.iter().try_for_each(job_must_fit)
}

fn job_must_fit(job: &Job<'_>) -> Result<(), WorkloadError> {
    if job.workload.writes()
        && !job
            .may_write
            .is_some_and(|may_write| may_write.covers(job.target))
    {
        return Err(WorkloadError::NotPermitted {
            target: job.target.name().to_owned(),
        });
    }
    if !(1..=THREADS_MAX).contains(&job.threads) {
        return out("threads", job.threads.to_string(), "1 to 1,024");
    }
    if !(1..=DEPTH_MAX).contains(&job.depth) {
        return out("depth", job.depth.to_string(), "1 to 4,096");
    }
    if !(1..=job.depth).contains(&job.batch) {
        return out("batch", job.batch.to_string(), "1 to the depth");
    }
    if job.ios_max == Some(0) {
        return out("number of I/O", "0".to_owned(), "1 or more");
    }
    let per_second = match job.pace {
        Pace::Max => return Ok(()),
        Pace::Closed { per_second } | Pace::Open { per_second, .. } => per_second,
    };
    if !(per_second > 0.0 && per_second <= PER_SECOND_MAX) {
        return out(
            "rate",
            per_second.to_string(),
            "above 0, at most 1,000,000,000 I/O a second",
        );
    }
    if job.batch > 1 {
        return out(
            "batch",
            job.batch.to_string(),
            "1 at a rate: an I/O that waits for others is late",
        );
    }
    Ok(())
}

fn out(what: &'static str, found: String, expected: &'static str) -> Result<(), WorkloadError> {
    Err(WorkloadError::OutOfRange {
        what,
        found,
        expected,
    })
}
