//! Carries a plan out: threads that load, and one that reports their progress at each interval.

use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use plumb_sys::{Blocking, Errno, MemoryShape, Ring, SysError, sleep_exactly};
use thiserror::Error;

use crate::draw::{Draw, WorkloadLayout};
use crate::engine::Engine;
use crate::gate::Gate;
use crate::outcome::{Ended, IntervalReport, JobOutcome, Means, RunOutcome};
use crate::plan::{Job, LoadPlan, Pace};
use crate::random::Random;
use crate::replay::ReplayError;
use crate::schedule::Schedule;
use crate::tally::Tally;
use crate::trace::{Gatherer, TraceSink, Tracer, channel as trace_channel};
use crate::validate::must_fit;
use crate::worker::{Budget, Clock, Worker, WorkerEnd, WorkerTallies};
use crate::workload::WorkloadError;

/// Why a plan cannot be carried out.
#[derive(Debug, Error)]
pub enum LoadError {
    /// It does not fit its target.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The system refuses a necessary resource.
    #[error(transparent)]
    System(#[from] SysError),
    /// There are no more threads, files or memory.
    #[error(
        "{target}: {what} for its I/O cannot be had ({errno}): ask for fewer threads, less depth or shorter I/O"
    )]
    NoMeans {
        /// The target.
        target: String,
        /// The missing resource.
        what: &'static str,
        /// The error of the kernel.
        errno: Errno,
    },
    /// I/O did not come back.
    #[error("{target}: I/O did not come back for {seconds} s")]
    Stuck {
        /// The target.
        target: String,
        /// For how long they were waited for.
        seconds: u64,
    },
    /// The trace cannot be replayed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// A trace cannot be read or written.
    #[error(transparent)]
    Trace(#[from] plumb_trace::Error),
}

/// One thread that is to be.
struct Seat<'a> {
    number: usize,
    job: usize,
    /// Of how many threads of its job it is which.
    thread: u32,
    threads: u32,
    depth: u32,
    layout: &'a WorkloadLayout,
    budget: &'a Budget,
    counters: &'a Mutex<WorkerTallies>,
}

/// Whether a plan fits its targets, and writers have a permission. Nothing is read or written.
///
/// # Errors
/// The part that does not fit.
pub fn check(plan: &LoadPlan<'_>) -> Result<(), LoadError> {
    laid_out(plan).map(drop)
}

fn laid_out(plan: &LoadPlan<'_>) -> Result<Vec<WorkloadLayout>, LoadError> {
    must_fit(plan)?;
    let layouts = plan.jobs.iter().enumerate().map(|(job, of)| {
        // Those of the threads are counted from the other end.
        let mut random = Random::new(plan.seed, u64::MAX - job as u64);
        WorkloadLayout::new(&of.workload, of.target, &mut random)
    });
    Ok(layouts.collect::<Result<_, WorkloadError>>()?)
}

/// Carries a plan out. `stop` ends it early, `tell` is called once an interval, and `trace` is handed every I/O of the
/// measurement.
///
/// # Errors
/// When the plan does not fit its targets, before anything is read or written, or the trace cannot be written.
pub fn run(
    plan: &LoadPlan<'_>,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&IntervalReport<'_>),
    trace: Option<&mut TraceSink<'_>>,
) -> Result<RunOutcome, LoadError> {
    let layouts = laid_out(plan)?;
    let means: Vec<Means> = plan
        .jobs
        .iter()
        .map(|job| plan.engine.found(job.target.io()))
        .collect();
    let budgets: Vec<Budget> = plan
        .jobs
        .iter()
        .map(|job| Budget::new(job.ios_max))
        .collect();
    // Without a ring each I/O in flight has a thread of its own.
    let shapes: Vec<(u32, u32)> = plan
        .jobs
        .iter()
        .zip(&means)
        .map(|(job, means)| shape(job, *means))
        .collect();
    let seats: u32 = shapes.iter().map(|(threads, _)| threads).sum();
    let counters: Vec<Mutex<WorkerTallies>> = (0..seats).map(|_| Mutex::default()).collect();
    let mut all = Vec::new();
    for (job, &(threads, depth)) in shapes.iter().enumerate() {
        for thread in 0..threads {
            let number = all.len();
            let (layout, budget, counters) = (&layouts[job], &budgets[job], &counters[number]);
            all.push(Seat {
                number,
                job,
                thread,
                threads,
                depth,
                layout,
                budget,
                counters,
            });
        }
    }
    RunningLoad { plan, means, stop }.carry_out(&all, tell, trace)
}

fn shape(job: &Job<'_>, means: Means) -> (u32, u32) {
    match means {
        Means::Ring { .. } => (job.threads, job.depth),
        Means::Blocking { .. } => (job.threads * job.depth, 1),
    }
}

struct RunningLoad<'a> {
    plan: &'a LoadPlan<'a>,
    means: Vec<Means>,
    stop: &'a AtomicBool,
}

type Ending = (usize, Result<Option<WorkerEnd>, LoadError>);

impl RunningLoad<'_> {
    fn carry_out(
        self,
        seats: &[Seat<'_>],
        tell: &mut dyn FnMut(&IntervalReport<'_>),
        trace: Option<&mut TraceSink<'_>>,
    ) -> Result<RunOutcome, LoadError> {
        let gate = Gate::default();
        let (ends, ended) = channel::<Ending>();
        let (to_trace, traced) = trace_channel();
        std::thread::scope(|scope| {
            let mut refused = None;
            let mut spawned = 0;
            for seat in seats {
                let tracer = trace
                    .is_some()
                    .then(|| Tracer::new(seat.number, seat.job, to_trace.clone()));
                let (ends, gate, this) = (ends.clone(), &gate, &self);
                let sit = move || {
                    // The other side waits for all of them.
                    let _ = ends.send((seat.job, this.sit(seat, gate, tracer)));
                };
                if let Err(error) = std::thread::Builder::new().spawn_scoped(scope, sit) {
                    let errno = Errno::from_io_error(&error).unwrap_or(Errno::AGAIN);
                    refused = Some(self.no_means(seat.job, "a thread", errno));
                    break;
                }
                spawned += 1;
            }
            drop((ends, to_trace));
            let writer = trace.map(|sink| {
                let gatherer =
                    Gatherer::new(self.plan.jobs.iter().map(|job| job.target), seats.len());
                scope.spawn(move || gatherer.run(&traced, sink))
            });
            let clock = gate.open(spawned, refused.is_none(), || self.begin());
            let outcome = self.watch(seats, spawned, clock, &ended, tell);
            let written =
                writer.map(|writer| writer.join().unwrap_or_else(|panic| resume_unwind(panic)));
            let outcome = refused.map_or(outcome, Err)?;
            written.transpose()?;
            Ok(outcome)
        })
    }

    fn no_means(&self, job: usize, what: &'static str, errno: Errno) -> LoadError {
        LoadError::NoMeans {
            target: self.plan.jobs[job].target.name().to_owned(),
            what,
            errno,
        }
    }

    fn begin(&self) -> Clock {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let warmup_ns = ns(self.plan.warmup);
        let end_ns = self
            .plan
            .duration
            .map_or(u64::MAX, |time| warmup_ns.saturating_add(ns(time)));
        Clock {
            began: Instant::now(),
            warmup_ns,
            end_ns,
        }
    }

    /// The life of a thread from beginning to end; `None` if it never began.
    fn sit(
        &self,
        seat: &Seat<'_>,
        gate: &Gate,
        tracer: Option<Tracer>,
    ) -> Result<Option<WorkerEnd>, LoadError> {
        match self.means[seat.job] {
            Means::Ring { .. } => self.sit_with::<Ring>(seat, gate, tracer),
            Means::Blocking { .. } => self.sit_with::<Blocking>(seat, gate, tracer),
        }
    }

    fn sit_with<E: Engine>(
        &self,
        seat: &Seat<'_>,
        gate: &Gate,
        tracer: Option<Tracer>,
    ) -> Result<Option<WorkerEnd>, LoadError> {
        let job = &self.plan.jobs[seat.job];
        let shape = MemoryShape {
            slots: seat.depth,
            len_bytes_max: job.workload.lengths.max_bytes(),
            has_noise: job.workload.writes(),
        };
        // A ring belongs to the thread that makes it.
        let engine = E::new(job.target.io(), shape);
        if job.pace != Pace::Max {
            sleep_exactly();
        }
        let clock = gate.pass(engine.is_ok());
        let engine = engine.map_err(|errno| self.no_means(seat.job, "a ring or memory", errno))?;
        let Some(clock) = clock else { return Ok(None) };
        let random = |of: u64| Random::new(self.plan.seed, (seat.number as u64) << 1 | of);
        let worker = Worker {
            target: job.target,
            draw: Draw::new(seat.layout, random(0)),
            schedule: Schedule::new(job.pace, seat.thread, seat.threads, random(1)),
            depth: seat.depth,
            batch: job.batch.min(seat.depth),
            clock,
            budget: seat.budget,
            counters: seat.counters,
            stop: self.stop,
            tracer,
            engine,
        };
        Ok(Some(worker.run()))
    }

    /// Reports progress at each interval, until all threads have ended.
    fn watch(
        &self,
        seats: &[Seat<'_>],
        spawned: usize,
        clock: Option<Clock>,
        ended: &Receiver<Ending>,
        tell: &mut dyn FnMut(&IntervalReport<'_>),
    ) -> Result<RunOutcome, LoadError> {
        // If no thread began, only the reason is reported.
        let clock = clock.unwrap_or_else(|| self.begin());
        let mut book = Book::new(self.plan, &self.means);
        let mut failed = None;
        let mut running = spawned;
        while running > 0 {
            match ended.recv_timeout(book.next.saturating_sub(clock.began.elapsed())) {
                Ok((job, end)) => {
                    running -= 1;
                    match end {
                        Ok(end) => end.iter().for_each(|end| book.note(job, end)),
                        Err(error) => failed = failed.or(Some(error)),
                    }
                }
                Err(RecvTimeoutError::Timeout) => book.close_interval(seats, &clock, false, tell),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        book.close_interval(seats, &clock, true, tell);
        failed.map_or_else(|| Ok(book.finish(&clock)), Err)
    }
}

/// Adds up the counts of the threads.
struct Book {
    interval: Duration,
    warmup: Duration,
    duration: Option<Duration>,
    number: u32,
    /// End of the last interval, and of the present one.
    last: Duration,
    next: Duration,
    jobs: Vec<JobOutcome>,
    /// Measurements before the end of the last warm-up interval: the next one contains them.
    early: Vec<Tally>,
    last_completion_ns: Vec<u64>,
    spare: WorkerTallies,
    not_traced: u64,
}

impl Book {
    fn new(plan: &LoadPlan<'_>, means: &[Means]) -> Book {
        let job = |means: &Means| JobOutcome {
            tally: Tally::default(),
            elapsed: Duration::ZERO,
            ended: Ended::Time,
            means: *means,
            not_issued: 0,
            never_back: 0,
            processor: None,
        };
        Book {
            interval: plan.interval,
            warmup: plan.warmup,
            duration: plan.duration,
            number: 0,
            last: Duration::ZERO,
            next: plan.interval,
            jobs: means.iter().map(job).collect(),
            early: vec![Tally::default(); means.len()],
            last_completion_ns: vec![0; means.len()],
            spare: WorkerTallies::default(),
            not_traced: 0,
        }
    }

    /// Takes the counts since the last time, and reports them.
    fn close_interval(
        &mut self,
        seats: &[Seat<'_>],
        clock: &Clock,
        is_last: bool,
        tell: &mut dyn FnMut(&IntervalReport<'_>),
    ) {
        let at = clock.began.elapsed();
        let mut jobs = vec![Tally::default(); self.jobs.len()];
        // The boundary between warm-up and measurement is within the interval of its end.
        let is_warmup = at <= self.warmup || self.next <= self.warmup;
        for seat in seats {
            let mut counted = seat
                .counters
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            std::mem::swap(&mut *counted, &mut self.spare);
            drop(counted);
            self.jobs[seat.job].tally.add(&self.spare.measured);
            let early = &mut self.early[seat.job];
            if is_warmup {
                early.add(&self.spare.measured);
                jobs[seat.job].add(&self.spare.warmup);
            } else {
                jobs[seat.job].add(early);
                early.clear();
                jobs[seat.job].add(&self.spare.measured);
            }
            self.spare.clear();
        }
        let from = if is_warmup {
            self.last
        } else {
            self.last.max(self.warmup)
        };
        let length = at.saturating_sub(from);
        self.last = if is_warmup { at.min(self.warmup) } else { at };
        while self.next <= at {
            self.next += self.interval;
        }
        // A rest after the last boundary, without I/O, is no interval.
        if length < self.interval / 2 && jobs.iter().all(|job| job.ios() + job.failed() == 0) {
            return;
        }
        self.number += 1;
        tell(&IntervalReport {
            number: self.number,
            at,
            length,
            is_warmup,
            is_partial: is_last && length < self.interval * 9 / 10,
            jobs: &jobs,
        });
    }

    fn note(&mut self, job: usize, end: &WorkerEnd) {
        let outcome = &mut self.jobs[job];
        outcome.not_issued += end.not_issued;
        outcome.never_back += end.never_back;
        outcome.ended = worse(outcome.ended, end.ended);
        self.not_traced += end.not_traced;
        if let Some(used) = end.processor {
            outcome.processor.get_or_insert_default().add(used);
        }
        if let Means::Ring { has_fixed_buffers } = &mut outcome.means {
            *has_fixed_buffers &= end.has_fixed_buffers;
        }
        let last_ns = &mut self.last_completion_ns[job];
        *last_ns = (*last_ns).max(end.last_completion_ns);
    }

    fn finish(mut self, clock: &Clock) -> RunOutcome {
        for (job, &last_ns) in self.jobs.iter_mut().zip(&self.last_completion_ns) {
            let last = Duration::from_nanos(last_ns.saturating_sub(clock.warmup_ns));
            let planned = self
                .duration
                .filter(|_| matches!(job.ended, Ended::Time | Ended::Stuck));
            job.elapsed = planned.map_or(last, |planned| planned.max(last));
        }
        let elapsed = self
            .jobs
            .iter()
            .map(|job| job.elapsed)
            .max()
            .unwrap_or_default();
        RunOutcome {
            jobs: self.jobs,
            elapsed,
            not_traced: self.not_traced,
        }
    }
}

/// Of two threads of a job the end that says more.
fn worse(one: Ended, other: Ended) -> Ended {
    let rank = |ended: &Ended| match ended {
        Ended::Time => 0,
        Ended::Ios => 1,
        Ended::Stopped => 2,
        Ended::OnlyFailures(_) => 3,
        Ended::TargetGone(_) => 4,
        Ended::Stuck => 5,
    };
    if rank(&other) > rank(&one) {
        other
    } else {
        one
    }
}
