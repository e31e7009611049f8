//! One thread of a job: takes I/O from its draw when they are due, keeps them in flight, and tallies completions.
//!
//! The clock is read once a round: the moment at which a batch came back is the one at which the next is issued. A
//! latency therefore contains the time to submit a batch, and is never too small.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plumb_sys::{Completion, Errno};
use plumb_trace::Op;

use crate::draw::{Draw, DrawnIo};
use crate::engine::Engine;
use crate::outcome::Ended;
use crate::processor::{ProcessorMeter, ProcessorUse};
use crate::schedule::Schedule;
use crate::tally::{DirectionTally, IoFailure, Tally};
use crate::target::Target;
use crate::trace::{EndedIo, Tracer};

/// How long a thread waits at most before it looks whether it shall end.
pub(crate) const LOOK_UP: Duration = Duration::from_millis(100);

/// I/O in flight that have not moved for this time after the end never come back.
pub(crate) const STUCK_AFTER_NS: u64 = 30_000_000_000;

/// A job ends when nothing has succeeded for this time, with at least this many failures in a row.
const ONLY_FAILURES_FOR_NS: u64 = 3_000_000_000;
const FAILURES_IN_A_ROW: u32 = 100;

/// The start of a run, and the meaning of its times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub began: Instant,
    pub warmup_ns: u64,
    /// When the measurement ends; `u64::MAX` for none.
    pub end_ns: u64,
}

impl Clock {
    /// Since the beginning of the run.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }
}

/// The state that the threads of a job share.
#[derive(Debug)]
pub(crate) struct Budget {
    max: Option<u64>,
    taken: AtomicU64,
}

impl Budget {
    pub fn new(max: Option<u64>) -> Budget {
        Budget {
            max,
            taken: AtomicU64::new(0),
        }
    }

    /// Whether there is one more I/O to make; it is taken then.
    #[inline]
    fn take(&self) -> bool {
        self.max
            .is_none_or(|max| self.taken.fetch_add(1, Ordering::Relaxed) < max)
    }
}

/// The tallies of a thread: read by others at each interval.
#[derive(Debug, Default)]
pub(crate) struct WorkerTallies {
    pub warmup: Tally,
    pub measured: Tally,
}

impl WorkerTallies {
    pub fn clear(&mut self) {
        self.warmup.clear();
        self.measured.clear();
    }
}

/// The result of a thread.
#[derive(Debug)]
pub(crate) struct WorkerEnd {
    pub ended: Ended,
    pub last_completion_ns: u64,
    pub not_issued: u64,
    pub never_back: u64,
    pub has_fixed_buffers: bool,
    pub not_traced: u64,
    pub processor: Option<ProcessorUse>,
}

/// All that a thread works with.
pub(crate) struct Worker<'a, E> {
    pub target: &'a Target,
    pub draw: Draw<'a>,
    pub schedule: Option<Schedule>,
    pub depth: u32,
    pub batch: u32,
    pub clock: Clock,
    pub budget: &'a Budget,
    pub counters: &'a Mutex<WorkerTallies>,
    pub stop: &'a AtomicBool,
    pub tracer: Option<Tracer>,
    pub engine: E,
}

/// An I/O on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub io: DrawnIo,
    pub due_ns: u64,
    pub issued_ns: u64,
}

const NOTHING: Flight = Flight {
    io: DrawnIo {
        is_read: true,
        start: 0,
        len_bytes: 0,
    },
    due_ns: 0,
    issued_ns: 0,
};

/// How the last rounds went.
#[derive(Debug, Default)]
pub(crate) struct Luck {
    failures_in_a_row: u32,
    last_success_ns: u64,
    last_failure: Option<IoFailure>,
    pub last_completion_ns: u64,
}

impl Luck {
    pub fn failed(&mut self, failure: IoFailure) {
        self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
        self.last_failure = Some(failure);
    }

    pub fn succeeded(&mut self, now_ns: u64) {
        self.failures_in_a_row = 0;
        self.last_success_ns = now_ns;
    }

    /// Whether to go on makes no sense: the target is gone, or nothing has succeeded for long.
    pub fn is_out(&self, now_ns: u64, target: &Target) -> Option<Ended> {
        if self.failures_in_a_row == 0 {
            return None;
        }
        let errno = self.last_failure.map_or(Errno::IO, IoFailure::errno);
        if is_gone(errno) {
            return Some(Ended::TargetGone(errno));
        }
        if self.failures_in_a_row < FAILURES_IN_A_ROW {
            return None;
        }
        if !target.io().is_there() {
            return Some(Ended::TargetGone(errno));
        }
        let since = now_ns.saturating_sub(self.last_success_ns);
        if since >= ONLY_FAILURES_FOR_NS {
            return Some(Ended::OnlyFailures(errno));
        }
        // Failures return at once: leave the machine time for other work.
        std::thread::sleep(Duration::from_millis(1));
        None
    }
}

impl<E: Engine> Worker<'_, E> {
    /// Works until it is time to end.
    pub fn run(mut self) -> WorkerEnd {
        let mut flights = vec![NOTHING; self.depth as usize];
        let mut free: Vec<u32> = (0..self.depth).rev().collect();
        let mut luck = Luck::default();
        let mut now_ns = self.clock.now_ns();
        let mut meter_from_ns = self.clock.warmup_ns;
        let mut meter = None;
        let ended = loop {
            if now_ns >= meter_from_ns {
                meter = ProcessorMeter::begin(now_ns);
                meter_from_ns = u64::MAX;
            }
            let over = self
                .is_over(now_ns, &luck)
                .or_else(|| self.issue(now_ns, &mut flights, &mut free));
            if let Some(ended) = over {
                break ended;
            }
            if let Err(errno) = self.wait(now_ns) {
                break Ended::OnlyFailures(errno);
            }
            now_ns = self.clock.now_ns();
            self.reap(now_ns, &flights, &mut free, &mut luck);
        };
        let processor = meter.and_then(|meter| meter.end(now_ns));
        let never_back = self.drain(now_ns, &flights, &mut free, &mut luck);
        let end_ns = self.clock.end_ns.min(now_ns);
        let not_issued = match ended {
            Ended::Time => self
                .schedule
                .as_mut()
                .map_or(0, |schedule| schedule.due_before(end_ns)),
            _ => 0,
        };
        WorkerEnd {
            ended: if never_back > 0 { Ended::Stuck } else { ended },
            last_completion_ns: luck.last_completion_ns,
            not_issued,
            never_back,
            has_fixed_buffers: self.engine.has_fixed_buffers(),
            not_traced: self.tracer.map_or(0, Tracer::finish),
            processor,
        }
    }

    fn is_over(&self, now_ns: u64, luck: &Luck) -> Option<Ended> {
        if now_ns >= self.clock.end_ns {
            return Some(Ended::Time);
        }
        if self.stop.load(Ordering::Relaxed) {
            return Some(Ended::Stopped);
        }
        luck.is_out(now_ns, self.target)
    }

    /// Queues due I/O, as far as there are slots. Returns whether there is nothing more to issue.
    #[inline]
    fn issue(&mut self, now_ns: u64, flights: &mut [Flight], free: &mut Vec<u32>) -> Option<Ended> {
        if (free.len() as u32) < self.batch.min(self.depth) && self.engine.in_flight() > 0 {
            return None;
        }
        while let Some(&slot) = free.last() {
            let due_ns = match &self.schedule {
                Some(schedule) if schedule.next_ns() > now_ns => break,
                Some(schedule) => schedule.next_ns(),
                None => now_ns,
            };
            // I/O that were due in the warm-up do not count, even if they were late.
            if due_ns >= self.clock.warmup_ns && !self.budget.take() {
                return Some(Ended::Ios);
            }
            if let Some(schedule) = &mut self.schedule {
                schedule.advance();
            }
            free.pop();
            let io = self.draw.next();
            flights[slot as usize] = Flight {
                io,
                due_ns,
                issued_ns: now_ns,
            };
            match io.is_read {
                true => self.engine.queue_read(slot, io.start, io.len_bytes),
                false => self
                    .engine
                    .queue_write_of_noise(slot, io.start, io.len_bytes),
            }
        }
        None
    }

    /// Submits the queue, and waits for completions, the next due time, or long enough.
    #[inline]
    fn wait(&mut self, now_ns: u64) -> Result<(), Errno> {
        let left_ns = self.clock.end_ns.saturating_sub(now_ns);
        let mut wait_ns = left_ns.min(LOOK_UP.as_nanos() as u64);
        let in_flight = self.engine.in_flight();
        if let Some(schedule) = self.schedule.as_ref().filter(|_| in_flight < self.depth) {
            wait_ns = wait_ns.min(schedule.next_ns().saturating_sub(now_ns));
        }
        let wait = Duration::from_nanos(wait_ns);
        if in_flight == 0 {
            std::thread::sleep(wait);
            return Ok(());
        }
        self.engine.submit(self.batch.min(in_flight), wait)
    }

    #[inline]
    fn reap(&mut self, now_ns: u64, flights: &[Flight], free: &mut Vec<u32>, luck: &mut Luck) {
        let Worker {
            engine,
            counters,
            tracer,
            clock,
            schedule,
            ..
        } = self;
        let is_paced = schedule.is_some();
        // Nobody panics while holding it.
        let mut counters = counters
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        engine.reap(|completion| {
            let flight = flights[completion.slot as usize];
            free.push(completion.slot);
            let is_measured = flight.due_ns >= clock.warmup_ns;
            let tally = if is_measured {
                &mut counters.measured
            } else {
                &mut counters.warmup
            };
            let is_good = count(tally, flight, completion, now_ns, is_paced, luck);
            luck.last_completion_ns = now_ns;
            if let Some(tracer) = tracer.as_mut().filter(|_| is_measured) {
                tracer.push(EndedIo::new(
                    flight.io,
                    flight.due_ns,
                    flight.issued_ns,
                    is_good.then_some(now_ns),
                ));
            }
        });
        drop(counters);
        if let Some(tracer) = tracer.as_mut().filter(|tracer| tracer.is_due()) {
            let oldest = |slot: usize| !free.contains(&(slot as u32));
            let in_flight = flights.iter().enumerate().filter(|(slot, _)| oldest(*slot));
            let oldest_ns = in_flight
                .map(|(_, flight)| flight.issued_ns)
                .min()
                .unwrap_or(now_ns);
            tracer.send(oldest_ns.min(now_ns));
        }
    }

    /// Waits for I/O in flight; returns the number that never came.
    fn drain(
        &mut self,
        now_ns: u64,
        flights: &[Flight],
        free: &mut Vec<u32>,
        luck: &mut Luck,
    ) -> u64 {
        let mut moved_ns = now_ns;
        while self.engine.in_flight() > 0 {
            let before = self.engine.in_flight();
            if self.engine.submit(1, LOOK_UP).is_err() {
                break;
            }
            let now_ns = self.clock.now_ns();
            self.reap(now_ns, flights, free, luck);
            if self.engine.in_flight() < before {
                moved_ns = now_ns;
            } else if now_ns.saturating_sub(moved_ns) >= STUCK_AFTER_NS {
                break;
            }
        }
        u64::from(self.engine.in_flight())
    }
}

/// Counts an I/O that came back; whether it succeeded.
#[inline]
pub(crate) fn count(
    tally: &mut Tally,
    flight: Flight,
    completion: Completion,
    now_ns: u64,
    is_paced: bool,
    luck: &mut Luck,
) -> bool {
    let failure = match completion.result {
        Ok(bytes) if bytes == flight.io.len_bytes => None,
        Ok(_) => Some(IoFailure::Short),
        Err(errno) => Some(IoFailure::Errno(errno)),
    };
    if let Some(failure) = failure {
        let op = if flight.io.is_read {
            Op::Read
        } else {
            Op::Write
        };
        *tally.failures.entry((op, failure)).or_insert(0) += 1;
        luck.failed(failure);
        return false;
    }
    let side: &mut DirectionTally = if flight.io.is_read {
        &mut tally.reads
    } else {
        &mut tally.writes
    };
    side.bytes += u64::from(flight.io.len_bytes);
    side.latency.record(now_ns - flight.issued_ns);
    if is_paced {
        side.response.record(now_ns.saturating_sub(flight.due_ns));
    }
    luck.succeeded(now_ns);
    true
}

/// Errors that no other I/O will escape: the device, or the server of the file system, is no more.
fn is_gone(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NODEV
            | Errno::NXIO
            | Errno::NOMEDIUM
            | Errno::NOTCONN
            | Errno::SHUTDOWN
            | Errno::CONNABORTED
            | Errno::BADF
    )
}
