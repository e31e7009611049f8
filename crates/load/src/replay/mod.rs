//! The I/O of a trace, sent again: at their times, faster, or as fast as possible; to the same places or to planned
//! ones. A trace is read twice: once to check that all of it can be sent, before anything is, and once to send it.
//! Neither holds more of it than some batches.
//!
//! Nothing is written but with a permission; without it writes are sent as reads, and flushes not at all. Discards are never
//! sent.

mod compare;
mod course;
pub mod error;
mod order;
mod remap;
mod send;
mod steps;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_sys::Ring;
use plumb_trace::UNKNOWN_NS;

use crate::engine::{Engine, EngineChoice};
use crate::outcome::{Ended, Means};
use crate::permission::MayWrite;
use crate::plan::DEPTH_MAX;
use crate::pool::Pool;
use crate::run::LoadError;
use crate::tally::{Latencies, Tally};
use crate::target::Target;
use crate::trace::{Gatherer, TraceSink, Tracer, channel};
use crate::workload::WorkloadError;

pub use compare::{Compared, Comparison, Doubt, ReplayVerdict, SideTotals, SlicePair, compare};
pub use course::{CourseFigures, DueWindow, ReplayCourse, WindowFigures};
pub use error::ReplayError;
pub use order::Order;
pub use remap::{MODULUS_BYTES, Move, Remap};
pub use steps::{EventSource, ReplayCounts};

use send::{Sent, StepSender, slots};
use steps::Steps;

/// How fast a trace is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// This many times as fast as recorded; each I/O has a due time.
    Times(f64),
    /// As soon as it may go.
    Max,
}

/// Fastest of those that keep times.
const TIMES_MAX: f64 = 1e6;

/// The I/O to send, their places and their speed.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    /// The target.
    pub target: &'a Target,
    /// The permission to write; without it writes are sent as reads.
    pub may_write: Option<&'a MayWrite>,
    /// The mapping of starts.
    pub remap: Remap,
    /// How fast.
    pub speed: Speed,
    /// The order of I/O.
    pub order: Order,
    /// How I/O are made.
    pub engine: EngineChoice,
}

/// The content of a trace, as it would be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceSurvey {
    /// The counts of its events.
    pub counts: ReplayCounts,
    /// When the first that is sent was issued; `None` without times.
    pub first_ns: Option<i64>,
    /// From the first issue to the last.
    pub span: Duration,
    /// The longest I/O.
    pub len_bytes_max: u32,
    /// I/O to send whose end the trace contains.
    pub timed: u64,
    /// I/O to send whose sender the trace contains.
    pub known_senders: u64,
}

/// The result of a replay.
#[derive(Debug)]
pub struct Replayed {
    /// The counts of the events.
    pub counts: ReplayCounts,
    /// Reads and writes. Response counts from when an I/O was due.
    pub tally: Tally,
    /// Times of flushes, issue to complete.
    pub flushes: Latencies,
    /// Due to issue: how far behind its times the replay was; empty where nothing was due at a time.
    pub lateness: Latencies,
    /// Reads and writes over time.
    pub course: ReplayCourse,
    /// Most I/O that were in flight at once.
    pub in_flight_max: u32,
    /// I/O that there was room for in flight.
    pub slots: u32,
    /// From the first due time to the last completion.
    pub elapsed: Duration,
    /// Why it ended; [`Ended::Ios`] is the end of the trace.
    pub ended: Ended,
    /// How I/O were made.
    pub means: Means,
    /// I/O that never came back.
    pub never_back: u64,
    /// I/O that are in no trace, as it could not be written fast enough.
    pub not_traced: u64,
}

/// How far a replay has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Since it began.
    pub at: Duration,
    /// I/O that have come back.
    pub ios: u64,
    /// I/O that failed.
    pub failed: u64,
}

/// Reads a trace: whether all of it can be sent, and its needs.
///
/// # Errors
/// If some I/O cannot be sent, or the trace lacks the facts that the order or the speed need.
pub fn survey(replay: &Replay<'_>, source: &mut dyn EventSource) -> Result<TraceSurvey, LoadError> {
    must_fit(replay)?;
    let mut steps = Steps::new(
        source,
        replay.target,
        &replay.remap,
        replay.may_write.is_some(),
    );
    let mut survey = TraceSurvey::default();
    let mut last_ns = i64::MIN;
    while let Some(step) = steps.next()? {
        if step.time_ns == UNKNOWN_NS && replay.speed != Speed::Max {
            return Err(ReplayError::NoTimes.into());
        }
        survey.first_ns = survey
            .first_ns
            .or(Some(step.time_ns).filter(|&ns| ns != UNKNOWN_NS));
        last_ns = last_ns.max(step.time_ns);
        survey.len_bytes_max = survey.len_bytes_max.max(step.len_bytes);
        survey.timed += u64::from(step.end_ns.is_some());
        survey.known_senders += u64::from(step.sender.is_some());
    }
    survey.counts = steps.counts();
    let span_ns = survey
        .first_ns
        .map_or(0, |first_ns| last_ns.saturating_sub(first_ns));
    survey.span = Duration::from_nanos(u64::try_from(span_ns).unwrap_or(0));
    if survey.counts.sent() == 0 {
        return Err(ReplayError::Nothing {
            events: survey.counts.events,
        }
        .into());
    }
    if survey.timed == 0 && (replay.speed, replay.order) == (Speed::Max, Order::Threads) {
        return Err(ReplayError::NoLatencies.into());
    }
    Ok(survey)
}

fn must_fit(replay: &Replay<'_>) -> Result<(), LoadError> {
    if replay
        .may_write
        .is_some_and(|may_write| !may_write.covers(replay.target))
    {
        return Err(WorkloadError::NotPermitted {
            target: replay.target.name().to_owned(),
        }
        .into());
    }
    match (replay.speed, replay.order) {
        (Speed::Times(found), _) if !(found > 0.0 && found <= TIMES_MAX) => {
            return Err(ReplayError::Speed { found }.into());
        }
        (_, Order::Depth(found)) if !(1..=DEPTH_MAX).contains(&found) => {
            return Err(ReplayError::Depth { found }.into());
        }
        _ => {}
    }
    Ok(replay.remap.must_suit(replay.target)?)
}

/// Sends a trace that was looked through. `stop` ends it early, `tell` says now and then how far it has come, and `trace` is
/// handed every I/O.
///
/// # Errors
/// When the trace is another one by now, cannot be read, or there are no means.
pub fn replay(
    replay: &Replay<'_>,
    survey: &TraceSurvey,
    source: &mut dyn EventSource,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&Progress),
    trace: Option<&mut TraceSink<'_>>,
) -> Result<Replayed, LoadError> {
    must_fit(replay)?;
    match replay.engine.found(replay.target.io()) {
        means @ Means::Ring { .. } => {
            replay_by::<Ring>(replay, means, survey, source, stop, tell, trace)
        }
        means @ Means::Blocking { .. } => {
            replay_by::<Pool>(replay, means, survey, source, stop, tell, trace)
        }
    }
}

fn replay_by<E: Engine>(
    replay: &Replay<'_>,
    means: Means,
    survey: &TraceSurvey,
    source: &mut dyn EventSource,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&Progress),
    trace: Option<&mut TraceSink<'_>>,
) -> Result<Replayed, LoadError> {
    let slots = slots(replay.order, survey.len_bytes_max, is_ring(means));
    let mut sender: StepSender<'_, E> = StepSender::new(replay, survey, slots)?;
    let mut steps = Steps::new(
        source,
        replay.target,
        &replay.remap,
        replay.may_write.is_some(),
    )
    .up_to(survey.len_bytes_max);
    let mut tell = |sent: &Sent| {
        let ios = sent.tally.ios() + sent.flushes.count();
        tell(&Progress {
            at: sent.elapsed,
            ios,
            failed: sent.tally.failed(),
        });
    };
    let first_ns = survey.first_ns.unwrap_or(0);
    let (sent, not_traced) = match trace {
        None => (sender.send(&mut steps, first_ns, stop, None, &mut tell)?, 0),
        Some(sink) => std::thread::scope(|scope| {
            let (to, from) = channel();
            let gatherer = Gatherer::new(std::iter::once(replay.target), 1);
            let written = scope.spawn(move || gatherer.run(&from, sink));
            let mut tracer = Tracer::new(0, 0, to);
            let sent = sender.send(&mut steps, first_ns, stop, Some(&mut tracer), &mut tell);
            let not_traced = tracer.finish();
            written
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            sent.map(|sent| (sent, not_traced))
        })?,
    };
    let Sent {
        tally,
        flushes,
        lateness,
        course,
        in_flight_max,
        elapsed,
        ended,
        never_back,
    } = sent;
    let means = with_buffers(means, sender.has_fixed_buffers());
    let counts = steps.counts();
    Ok(Replayed {
        counts,
        tally,
        flushes,
        lateness,
        course,
        in_flight_max,
        slots,
        elapsed,
        ended,
        means,
        never_back,
        not_traced,
    })
}

fn is_ring(means: Means) -> bool {
    matches!(means, Means::Ring { .. })
}

/// The same of the engine that was used.
fn with_buffers(means: Means, has_fixed_buffers: bool) -> Means {
    match means {
        Means::Ring { .. } => Means::Ring { has_fixed_buffers },
        blocking @ Means::Blocking { .. } => blocking,
    }
}
