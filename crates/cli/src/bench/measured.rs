//! From the engine's tallies to the data of a report.

use plumb_geometry::{group_digits, plural};
use plumb_load::figures::{AverageFigures, CpuShares, IntervalFigures};
use plumb_load::result::bench as result;
use plumb_load::series::Average;
use plumb_load::{
    Ended, Hits, IntervalReport, Job, JobOutcome, LoadPlan, Means, Pace, ProcessorUse, RunOutcome,
    Starts, Tally,
};
use plumb_report::format::{bytes, count, rate};

use super::cpu::CpuMeter;
use crate::status::time_of;

/// The course of a run as it grows.
pub struct BenchCourse {
    intervals: Vec<IntervalFigures>,
    cpu: CpuMeter,
}

impl BenchCourse {
    /// Begins with the run.
    pub fn new() -> BenchCourse {
        BenchCourse {
            intervals: Vec::new(),
            cpu: CpuMeter::new(),
        }
    }

    /// Takes an interval in, and gives it back as it is shown.
    pub fn take(&mut self, interval: &IntervalReport<'_>) -> &IntervalFigures {
        let mut tally = Tally::default();
        interval.jobs.iter().for_each(|job| tally.add(job));
        self.intervals.push(IntervalFigures {
            at_seconds: interval.at.as_secs_f64(),
            is_warmup: interval.is_warmup,
            is_partial: interval.is_partial,
            cpu: self.cpu.since_last(),
            ..tally.interval(interval.number, interval.length.as_secs_f64())
        });
        self.intervals.last().expect("one was just taken in")
    }
}

/// The rate of the last interval, the time of a run so far, and the time left.
pub fn progress(
    plan: &LoadPlan<'_>,
    interval: &IntervalReport<'_>,
    shown: &IntervalFigures,
) -> String {
    let rate = shown.ios as f64 / shown.seconds.max(f64::MIN_POSITIVE);
    let time = plan.duration.map_or_else(
        || format!("{:.0} s so far", interval.at.as_secs_f64()),
        |duration| time_of(interval.at, plan.warmup + duration),
    );
    format!("{} I/O/s; {time}", group_digits(rate as u64))
}

/// The average over the intervals that count; `None` where none does.
pub fn shown_average(average: &Average, course: &BenchCourse) -> Option<AverageFigures> {
    let (first, last) = average.span()?;
    let tally = average.tally();
    let seconds = average.time().as_secs_f64().max(f64::MIN_POSITIVE);
    let counted = || {
        course
            .intervals
            .iter()
            .filter(|interval| (first..=last).contains(&interval.number))
    };
    let interval = IntervalFigures {
        cpu: mean_cpu(counted()),
        at_seconds: counted()
            .next_back()
            .map_or(seconds, |interval| interval.at_seconds),
        ..tally.interval(last, seconds)
    };
    let ios_per_second = tally.ios() as f64 / seconds;
    Some(AverageFigures {
        first,
        ios_per_second,
        interval,
    })
}

/// The mean shares of the processors over some intervals; `None` if none has any.
fn mean_cpu<'a>(intervals: impl Iterator<Item = &'a IntervalFigures>) -> Option<CpuShares> {
    let (mut busy, mut system, mut seconds) = (0.0, 0.0, 0.0);
    for interval in intervals {
        if let Some(cpu) = interval.cpu {
            busy += cpu.busy_share * interval.seconds;
            system += cpu.system_share * interval.seconds;
            seconds += interval.seconds;
        }
    }
    (seconds > 0.0).then(|| CpuShares {
        busy_share: busy / seconds,
        system_share: system / seconds,
    })
}

/// A run that has ended.
pub fn shown_run(
    plan: &LoadPlan<'_>,
    outcome: &RunOutcome,
    course: BenchCourse,
) -> result::BenchRun {
    let mut all = Tally::default();
    outcome.jobs.iter().for_each(|job| all.add(&job.tally));
    let sum = |of: fn(&JobOutcome) -> u64| outcome.jobs.iter().map(of).sum::<u64>();
    let seconds = outcome.elapsed.as_secs_f64();
    let mut total = all.figures(seconds);
    total.not_issued = sum(|job| job.not_issued);
    total.never_back = sum(|job| job.never_back);
    let targets = plan
        .jobs
        .iter()
        .zip(&outcome.jobs)
        .map(|(job, outcome)| target(job, outcome));
    let measured_intervals = course
        .intervals
        .iter()
        .filter(|interval| !interval.is_warmup);
    result::BenchRun {
        name: None,
        average: None,
        workload: workloads(plan),
        warmup_seconds: plan.warmup.as_secs_f64(),
        seconds,
        cpu: mean_cpu(measured_intervals),
        intervals: course.intervals,
        total,
        targets: targets.collect(),
    }
}

fn target(job: &Job<'_>, outcome: &JobOutcome) -> result::BenchTarget {
    let mut measured = outcome.tally.figures(outcome.elapsed.as_secs_f64());
    measured.not_issued = outcome.not_issued;
    measured.never_back = outcome.never_back;
    result::BenchTarget {
        target: job.target.name().to_owned(),
        size_bytes: job.target.size_bytes(),
        is_direct: job.target.is_direct(),
        engine: engine(outcome.means),
        ended: ended(outcome.ended),
        is_whole: is_whole(outcome),
        processor_share: outcome.processor.and_then(ProcessorUse::share),
        measured,
    }
}

/// Whether neither I/O failed nor the target ended it.
pub fn is_whole(outcome: &JobOutcome) -> bool {
    outcome.tally.failed() == 0
        && matches!(outcome.ended, Ended::Time | Ended::Ios | Ended::Stopped)
}

/// How I/O were made, in words.
pub fn engine(means: Means) -> String {
    match means {
        Means::Ring {
            has_fixed_buffers: true,
        } => "io_uring with registered buffers".to_owned(),
        Means::Ring {
            has_fixed_buffers: false,
        } => "io_uring, without registered buffers (more memory than may be locked)".to_owned(),
        Means::Blocking { refused: None } => "blocking I/O".to_owned(),
        Means::Blocking {
            refused: Some(errno),
        } => {
            format!("blocking I/O, as the kernel refused io_uring ({errno})")
        }
    }
}

/// Why a run ended, in words.
pub fn ended(ended: Ended) -> String {
    match ended {
        Ended::Time => "after its time".to_owned(),
        Ended::Ios => "after its I/O".to_owned(),
        Ended::Stopped => "by a signal".to_owned(),
        Ended::OnlyFailures(errno) => format!("early, as nothing but failures came back ({errno})"),
        Ended::TargetGone(errno) => format!("early, as the target went away ({errno})"),
        Ended::Stuck => "with I/O that never came back".to_owned(),
    }
}

/// The workloads of all jobs, each once.
fn workloads(plan: &LoadPlan<'_>) -> String {
    let mut told: Vec<String> = plan.jobs.iter().map(|job| job_text(job, plan)).collect();
    let mut seen = Vec::new();
    told.retain(|words| {
        let is_new = !seen.contains(words);
        seen.push(words.clone());
        is_new
    });
    told.join("; beside ")
}

/// The workload of a job, in words.
fn job_text(job: &Job<'_>, plan: &LoadPlan<'_>) -> String {
    let workload = &job.workload;
    let what = match workload.read_percent {
        100 => "reads".to_owned(),
        0 => "writes".to_owned(),
        percent => format!("{percent} % reads, {} % writes", 100 - percent),
    };
    let lengths: Vec<String> = match workload.lengths.weighted() {
        [(len, _)] => vec![bytes(u64::from(*len))],
        several => several
            .iter()
            .map(|(len, weight)| format!("{} ({weight})", bytes(u64::from(*len))))
            .collect(),
    };
    let place = match &workload.starts {
        Starts::Random(plumb_load::Spread::Uniform) => "random".to_owned(),
        Starts::Random(plumb_load::Spread::Zipf { theta }) => format!("random (zipf {theta})"),
        Starts::Sequential {
            from_anywhere: false,
        } => "sequential".to_owned(),
        Starts::Sequential {
            from_anywhere: true,
        } => "sequential from a random place on".to_owned(),
        Starts::Strided { stride_bytes } => format!("every {}", bytes(*stride_bytes)),
        Starts::Seeks { percent, .. } => format!("{percent} % random, else on behind"),
    };
    let hits = workload
        .hits
        .map_or(String::new(), |hits| hit_words(workload.read_percent, hits));
    let shift = match workload.shift_bytes {
        0 => String::new(),
        shift => format!(
            ", shifted by {} bytes",
            if shift < 0 {
                format!("-{}", count(shift.unsigned_abs()))
            } else {
                count(shift.unsigned_abs())
            }
        ),
    };
    let pace = match job.pace {
        Pace::Max => "as fast as it goes".to_owned(),
        Pace::Closed { per_second } => format!("at most {}", rate(per_second)),
        Pace::Open { per_second, .. } => format!("{} in an open loop", rate(per_second)),
    };
    let many = if plan.jobs.len() > 1 { " each" } else { "" };
    format!(
        "{what}, {}, {place}{hits}{shift}; {} with {} in flight{many}, {pace}",
        lengths.join(", "),
        plural(u64::from(job.threads), "thread"),
        count(u64::from(job.depth)),
    )
}

/// How many I/O go to the hit area.
fn hit_words(read_percent: u8, hits: Hits) -> String {
    let share = match (read_percent, hits.read_percent, hits.write_percent) {
        (100, percent, _) | (0, _, percent) => format!("{percent} %"),
        (_, reads, writes) if reads == writes => format!("{reads} %"),
        (_, reads, writes) => format!("{reads} % of the reads and {writes} % of the writes"),
    };
    format!(", {share} to the first {}", bytes(hits.area_bytes))
}
