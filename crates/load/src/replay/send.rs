//! Sends the steps of a trace: those that are due and may go, as far as there are slots.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_sys::{Completion, Errno, MemoryShape, sleep_exactly};
use plumb_trace::Op;

use crate::draw::DrawnIo;
use crate::engine::Engine;
use crate::outcome::Ended;
use crate::replay::course::ReplayCourse;
use crate::replay::order::{Due, Order, Waiting};
use crate::replay::steps::{ReplayStep, StepAction, Steps};
use crate::replay::{Replay, Speed, TraceSurvey};
use crate::run::LoadError;
use crate::tally::{IoFailure, Latencies, Tally};
use crate::target::Target;
use crate::trace::{EndedIo, Tracer};
use crate::worker::{Flight, LOOK_UP, Luck, STUCK_AFTER_NS, count};

/// Steps that are taken out of the trace before they can go: about 6 MiB. Steps behind them wait longer than necessary.
const WAITING_MAX: usize = 65_536;

/// Memory for I/O in flight where their number is not given.
const MEMORY_BYTES: u64 = 128 << 20;

/// Memory that is given at all.
const MEMORY_BYTES_MAX: u64 = 2 << 30;

/// Most in flight where their number is not given, by a ring and by threads that wait.
const SLOTS_MAX: [u32; 2] = [1024, 64];

/// The result of sending some steps.
#[derive(Debug)]
pub(crate) struct Sent {
    pub tally: Tally,
    pub flushes: Latencies,
    pub lateness: Latencies,
    pub course: ReplayCourse,
    pub in_flight_max: u32,
    pub elapsed: Duration,
    pub ended: Ended,
    pub never_back: u64,
}

/// An engine with its slots.
pub(crate) struct StepSender<'a, E> {
    target: &'a Target,
    engine: E,
    speed: Speed,
    order: Order,
    flights: Vec<Option<(ReplayStep, Flight)>>,
    free: Vec<u32>,
}

/// A number of slots, each for the longest I/O.
pub(crate) fn slots(order: Order, len_bytes_max: u32, is_ring: bool) -> u32 {
    let slots_max = SLOTS_MAX[usize::from(!is_ring)];
    match order {
        Order::Depth(depth) => depth,
        Order::Threads => {
            let slots = MEMORY_BYTES / u64::from(len_bytes_max.max(1));
            u32::try_from(slots).unwrap_or(u32::MAX).clamp(4, slots_max)
        }
    }
}

impl<'a, E: Engine> StepSender<'a, E> {
    pub fn new(
        replay: &Replay<'a>,
        survey: &TraceSurvey,
        slots: u32,
    ) -> Result<StepSender<'a, E>, LoadError> {
        let target = replay.target;
        let shape = MemoryShape {
            slots,
            len_bytes_max: survey.len_bytes_max.max(1),
            has_noise: replay.may_write.is_some(),
        };
        let no_means = |errno| {
            let target = target.name().to_owned();
            LoadError::NoMeans {
                target,
                what: "a ring, threads or memory",
                errno,
            }
        };
        if u64::from(slots) * u64::from(shape.len_bytes_max) > MEMORY_BYTES_MAX {
            return Err(no_means(Errno::NOMEM));
        }
        let engine = E::new(target.io(), shape).map_err(no_means)?;
        if replay.speed != Speed::Max {
            sleep_exactly();
        }
        let (speed, order) = (replay.speed, replay.order);
        let (flights, free) = (vec![None; slots as usize], (0..slots).rev().collect());
        Ok(StepSender {
            target,
            engine,
            speed,
            order,
            flights,
            free,
        })
    }

    pub fn has_fixed_buffers(&self) -> bool {
        self.engine.has_fixed_buffers()
    }

    /// Sends all steps; `first_ns` of the trace is when they begin.
    pub fn send(
        &mut self,
        steps: &mut Steps<'_>,
        first_ns: i64,
        stop: &AtomicBool,
        tracer: Option<&mut Tracer>,
        tell: &mut dyn FnMut(&Sent),
    ) -> Result<Sent, LoadError> {
        Sending {
            began: Instant::now(),
            waiting: Waiting::new(self.order),
            sender: self,
            schedule: Schedule {
                first_ns,
                last_due_ns: 0,
            },
            luck: Luck::default(),
            sent: Sent::default(),
            tracer,
        }
        .run(steps, stop, tell)
    }
}

impl Default for Sent {
    fn default() -> Sent {
        Sent {
            tally: Tally::default(),
            flushes: Latencies::default(),
            lateness: Latencies::default(),
            course: ReplayCourse::default(),
            in_flight_max: 0,
            elapsed: Duration::ZERO,
            ended: Ended::Ios,
            never_back: 0,
        }
    }
}

/// The due times of steps. An event out of order is due with the one before it.
struct Schedule {
    first_ns: i64,
    last_due_ns: u64,
}

impl Schedule {
    fn due(&mut self, step: ReplayStep, speed: Speed) -> Due {
        let due_ns = match speed {
            Speed::Max => 0,
            Speed::Times(times) => {
                let since_ns =
                    u64::try_from(step.time_ns.saturating_sub(self.first_ns)).unwrap_or(0);
                if times == 1.0 {
                    since_ns
                } else {
                    (since_ns as f64 / times) as u64
                }
            }
        };
        self.last_due_ns = self.last_due_ns.max(due_ns);
        Due {
            step,
            due_ns: self.last_due_ns,
        }
    }
}

struct Sending<'s, 'a, E> {
    sender: &'s mut StepSender<'a, E>,
    began: Instant,
    waiting: Waiting,
    schedule: Schedule,
    luck: Luck,
    sent: Sent,
    tracer: Option<&'s mut Tracer>,
}

impl<E: Engine> Sending<'_, '_, E> {
    fn run(
        mut self,
        steps: &mut Steps<'_>,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&Sent),
    ) -> Result<Sent, LoadError> {
        let mut now_ns = self.now_ns();
        let mut told_ns = now_ns;
        let mut upcoming = self.upcoming(steps)?;
        let ended = loop {
            if let Some(ended) = self.luck.is_out(now_ns, self.sender.target) {
                break ended;
            }
            if stop.load(Ordering::Relaxed) {
                break Ended::Stopped;
            }
            while let Some(due) = upcoming.filter(|due| due.due_ns <= now_ns) {
                if self.waiting.len() >= WAITING_MAX {
                    break;
                }
                self.waiting.push(due);
                upcoming = self.upcoming(steps)?;
            }
            // Reading took time in between.
            now_ns = self.now_ns();
            self.issue(now_ns);
            if self.sender.engine.in_flight() == 0 && self.waiting.len() == 0 && upcoming.is_none()
            {
                break Ended::Ios;
            }
            self.wait(now_ns, upcoming.map(|due| due.due_ns));
            now_ns = self.now_ns();
            self.reap(now_ns);
            if now_ns - told_ns >= LOOK_UP.as_nanos() as u64 {
                told_ns = now_ns;
                self.sent.elapsed = Duration::from_nanos(now_ns);
                tell(&self.sent);
            }
        };
        self.sent.never_back = self.drain(now_ns);
        self.sent.ended = if self.sent.never_back > 0 {
            Ended::Stuck
        } else {
            ended
        };
        self.sent.elapsed = Duration::from_nanos(self.luck.last_completion_ns);
        Ok(self.sent)
    }

    fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn upcoming(&mut self, steps: &mut Steps<'_>) -> Result<Option<Due>, LoadError> {
        let step = steps.next()?;
        Ok(step.map(|step| self.schedule.due(step, self.sender.speed)))
    }

    /// Queues the steps that may go, as far as there are slots.
    fn issue(&mut self, now_ns: u64) {
        let sender = &mut *self.sender;
        while let Some(&slot) = sender.free.last() {
            let Some(Due { step, due_ns }) = self.waiting.next() else {
                break;
            };
            sender.free.pop();
            let ReplayStep {
                action,
                start,
                len_bytes,
                ..
            } = step;
            let io = DrawnIo {
                is_read: action == StepAction::Read,
                start,
                len_bytes,
            };
            let is_timed = sender.speed != Speed::Max;
            let due_ns = if is_timed { due_ns } else { now_ns };
            if is_timed {
                self.sent.lateness.record(now_ns.saturating_sub(due_ns));
            }
            sender.flights[slot as usize] = Some((
                step,
                Flight {
                    io,
                    due_ns,
                    issued_ns: now_ns,
                },
            ));
            match action {
                StepAction::Read => sender.engine.queue_read(slot, start, len_bytes),
                StepAction::Write => sender.engine.queue_write_of_noise(slot, start, len_bytes),
                StepAction::Flush => sender.engine.queue_flush(slot),
            }
        }
        self.sent.in_flight_max = self.sent.in_flight_max.max(sender.engine.in_flight());
    }

    /// Submits the queue, and waits for completions, the next due time, or long enough.
    fn wait(&mut self, now_ns: u64, next_due_ns: Option<u64>) {
        let has_room = self.waiting.len() < WAITING_MAX;
        let until_due_ns = next_due_ns
            .filter(|_| has_room)
            .map(|due_ns| due_ns.saturating_sub(now_ns));
        let look_up_ns = LOOK_UP.as_nanos() as u64;
        let wait = Duration::from_nanos(until_due_ns.unwrap_or(look_up_ns).min(look_up_ns));
        let engine = &mut self.sender.engine;
        if engine.in_flight() == 0 {
            std::thread::sleep(wait);
        } else if let Err(errno) = engine.submit(1, wait) {
            // It accepts nothing, and I/O in flight come back or not: as if all had failed.
            debug_assert!(false, "the kernel refused a ring that it made: {errno}");
            std::thread::sleep(wait);
        }
    }

    fn reap(&mut self, now_ns: u64) {
        let Sending {
            sender,
            waiting,
            luck,
            sent,
            tracer,
            ..
        } = self;
        let StepSender {
            engine,
            flights,
            free,
            speed,
            ..
        } = &mut **sender;
        let is_paced = *speed != Speed::Max;
        engine.reap(|completion| {
            let Some((step, flight)) = flights[completion.slot as usize].take() else {
                return;
            };
            free.push(completion.slot);
            waiting.ended(&step);
            let is_good = match step.action {
                StepAction::Flush => count_flush(sent, flight, completion, now_ns, luck),
                StepAction::Read | StepAction::Write => {
                    let is_good =
                        count(&mut sent.tally, flight, completion, now_ns, is_paced, luck);
                    if is_good {
                        sent.course.record(flight.due_ns, flight.issued_ns, now_ns);
                    }
                    is_good
                }
            };
            luck.last_completion_ns = now_ns;
            if let Some(tracer) = tracer {
                let completed_ns = is_good.then_some(now_ns);
                let row = match step.action {
                    StepAction::Flush => {
                        EndedIo::flush(flight.due_ns, flight.issued_ns, completed_ns)
                    }
                    _ => EndedIo::new(flight.io, flight.due_ns, flight.issued_ns, completed_ns),
                };
                tracer.push(row.numbered(step.number));
            }
        });
        if let Some(tracer) = tracer.as_mut().filter(|tracer| tracer.is_due()) {
            let issued = flights.iter().flatten().map(|(_, flight)| flight.issued_ns);
            tracer.send(issued.min().unwrap_or(now_ns).min(now_ns));
        }
    }

    /// Waits for I/O in flight; returns the number that never came.
    fn drain(&mut self, now_ns: u64) -> u64 {
        let mut moved_ns = now_ns;
        while self.sender.engine.in_flight() > 0 {
            let before = self.sender.engine.in_flight();
            if self.sender.engine.submit(1, LOOK_UP).is_err() {
                break;
            }
            let now_ns = self.now_ns();
            self.reap(now_ns);
            if self.sender.engine.in_flight() < before {
                moved_ns = now_ns;
            } else if now_ns.saturating_sub(moved_ns) >= STUCK_AFTER_NS {
                break;
            }
        }
        u64::from(self.sender.engine.in_flight())
    }
}

/// Counts a flush that came back; whether it succeeded.
fn count_flush(
    sent: &mut Sent,
    flight: Flight,
    completion: Completion,
    now_ns: u64,
    luck: &mut Luck,
) -> bool {
    match completion.result {
        Ok(_) => {
            sent.flushes.record(now_ns - flight.issued_ns);
            luck.succeeded(now_ns);
            true
        }
        Err(errno) => {
            let failure = IoFailure::Errno(errno);
            *sent.tally.failures.entry((Op::Flush, failure)).or_insert(0) += 1;
            luck.failed(failure);
            false
        }
    }
}
