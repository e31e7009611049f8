//! The gain of a plan: slices of a trace are sent alternately to the present places and to the planned ones, in pairs,
//! so that slow drift moves both of a pair. The order is drawn for every other pair, and the pair after it has the
//! reverse order: cache hits of the second are as often the present's as the plan's.
//!
//! At full speed the first I/O of each slice do not count. A device may charge an I/O's cost to the next one: a throttle of
//! the kind "leaky bucket" lets an I/O pass at once and delays the one behind it. If the side changes, the first I/O of a slice
//! then pays for the last one of the other side, and n I/O of twice the cost seem to be only (2n - 1) / (n + 1) times as slow. I/O that
//! are sent at their times keep their gaps, and a slice of them stays whole.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_stats::equivalence::{Difference, Margin, difference};
use plumb_stats::{Interval, Level, median_ratio};
use plumb_sys::Ring;
use plumb_trace::{Batch, Op, UNKNOWN_NS};
use serde::Serialize;

use crate::engine::Engine;
use crate::outcome::{Ended, Means};
use crate::pool::Pool;
use crate::random::Random;
use crate::replay::remap::Remap;
use crate::replay::send::{Sent, StepSender, slots};
use crate::replay::steps::{EventSource, ReplayCounts, Steps};
use crate::replay::{Replay, Speed, TraceSurvey, is_ring, must_fit, with_buffers};
use crate::run::LoadError;
use crate::tally::{Latencies, Tally};

/// Events of a slice: enough that its beginning and end do not matter, and few enough to be held.
const SLICE_EVENTS: std::ops::RangeInclusive<u64> = 16..=4096;

/// Fewer rounds give no interval of 95 of 100: a median of five is outside all of them more often.
const ROUNDS_MIN: usize = 6;

/// This share of a slice's events, with at least one that is sent, does not count at full speed.
const LEAD_SHARE: usize = 8;

/// Slices are sent for this time, or once, before they count: rate limits let short bursts pass.
const WARM_UP: Duration = Duration::from_millis(250);

/// How a comparison is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Pairs of slices, spread over the trace; fewer where the trace is short.
    pub pairs: u32,
    /// Changes of up to so much are none.
    pub margin: Margin,
    /// How often the interval holds the true gain.
    pub level: Level,
    /// The same seed draws the same order.
    pub seed: u64,
}

/// One slice, sent both ways.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SlicePair {
    /// I/O that count each time: at full speed those behind the lead of the slice.
    pub ios: u64,
    /// Whether today's places came first.
    pub is_today_first: bool,
    /// Time an I/O at today's places: see [`Compared::gain`].
    pub today_ns: f64,
    /// Time an I/O at the planned places.
    pub planned_ns: f64,
}

/// The verdict of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayVerdict {
    /// The planned places are faster.
    Better,
    /// They are slower.
    Worse,
    /// Neither, by more than the margin.
    NoDifference,
    /// Undecided.
    Inconclusive(Doubt),
}

/// The reason why it is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Some I/O failed.
    Failures,
    /// There were too few pairs.
    TooFew,
    /// The interval holds both a difference and none.
    Wide,
}

/// The result of a comparison.
#[derive(Debug)]
pub struct Compared {
    /// In the order in which they were made.
    pub pairs: Vec<SlicePair>,
    /// Events of a slice.
    pub slice_events: u64,
    /// The speedup of the planned places: time of an I/O at the present places divided by that at the planned ones, the
    /// median over rounds of two pairs. If I/O have due times, the time of an I/O is the mean from due to complete;
    /// else that of a slice, divided by its I/O.
    pub gain: Option<Interval>,
    /// How many times as fast the second of a pair is, whichever that was: a cache, or a device that comes to speed.
    pub second: Option<Interval>,
    /// Its verdict.
    pub verdict: ReplayVerdict,
    /// Today's and the planned places.
    pub sides: [SideTotals; 2],
    /// Time of it all.
    pub elapsed: Duration,
    /// Why it ended; [`Ended::Ios`] is after all pairs.
    pub ended: Ended,
    /// How I/O were made.
    pub means: Means,
}

/// All slices of one side, added up.
#[derive(Debug, Default)]
pub struct SideTotals {
    /// The counts of the events.
    pub counts: ReplayCounts,
    /// Reads and writes.
    pub tally: Tally,
    /// Due to issue.
    pub lateness: Latencies,
}

/// Sends slices of a trace that was looked through both as `replay` says and to the planned places.
///
/// # Errors
/// As [`replay`](crate::replay::replay).
pub fn compare(
    replay: &Replay<'_>,
    planned: &Remap,
    survey: &TraceSurvey,
    comparison: Comparison,
    source: &mut dyn EventSource,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(usize),
) -> Result<Compared, LoadError> {
    must_fit(replay)?;
    planned.must_suit(replay.target)?;
    let plan = Alternation {
        replay,
        planned,
        survey,
        comparison,
        stop,
    };
    match replay.engine.found(replay.target.io()) {
        means @ Means::Ring { .. } => plan.run::<Ring>(means, source, tell),
        means @ Means::Blocking { .. } => plan.run::<Pool>(means, source, tell),
    }
}

struct Alternation<'a> {
    replay: &'a Replay<'a>,
    planned: &'a Remap,
    survey: &'a TraceSurvey,
    comparison: Comparison,
    stop: &'a AtomicBool,
}

impl Alternation<'_> {
    fn run<E: Engine>(
        &self,
        means: Means,
        source: &mut dyn EventSource,
        tell: &mut dyn FnMut(usize),
    ) -> Result<Compared, LoadError> {
        let began = Instant::now();
        let slots = slots(self.replay.order, self.survey.len_bytes_max, is_ring(means));
        let mut sender: StepSender<'_, E> = StepSender::new(self.replay, self.survey, slots)?;
        let mut slices = Slices::new(
            source,
            self.replay.speed,
            self.survey.counts.events,
            self.comparison.pairs,
        );
        let slice_events = slices.len;
        let mut order = Turns::new(self.comparison.seed);
        let (mut pairs, mut sides) = (Vec::new(), [SideTotals::default(), SideTotals::default()]);
        let (mut ended, mut is_warm) = (Ended::Ios, false);
        while let Some(slice) = slices.next()? {
            if !is_warm {
                self.warm_up(&mut sender, &slice)?;
                is_warm = true;
            }
            let is_today_first = order.next();
            let mut times = [None; 2];
            for side in if is_today_first { [0, 1] } else { [1, 0] } {
                let sent = self.send_slice(&mut sender, &slice, side)?;
                sides[side].add(&sent);
                ended = sent.end();
                if ended != Ended::Ios {
                    break;
                }
                times[side] = time_an_io(&sent.timed, self.replay.speed);
            }
            if ended != Ended::Ios {
                break;
            }
            if let [Some((ios, today_ns)), Some((_, planned_ns))] = times {
                pairs.push(SlicePair {
                    ios,
                    is_today_first,
                    today_ns,
                    planned_ns,
                });
                tell(pairs.len());
            }
            if pairs.len() as u32 >= self.comparison.pairs {
                break;
            }
        }
        let means = with_buffers(means, sender.has_fixed_buffers());
        let level = self.comparison.level;
        let gain = gain_of(&pairs, level);
        let has_failures = sides.iter().any(|side| side.tally.failed() > 0)
            || !matches!(ended, Ended::Ios | Ended::Stopped);
        let verdict = verdict(gain.as_ref(), has_failures, self.comparison.margin);
        let second = second_of(&pairs, level);
        let elapsed = began.elapsed();
        Ok(Compared {
            pairs,
            slice_events,
            gain,
            second,
            verdict,
            sides,
            elapsed,
            ended,
            means,
        })
    }

    /// These I/O do not count: a rested device answers faster, or slower.
    fn warm_up<E: Engine>(
        &self,
        sender: &mut StepSender<'_, E>,
        slice: &Slice,
    ) -> Result<(), LoadError> {
        let began = Instant::now();
        loop {
            for side in 0..2 {
                let sent = self.send_slice(sender, slice, side)?;
                if sent.timed.ended != Ended::Ios {
                    return Ok(());
                }
            }
            if began.elapsed() >= WARM_UP {
                return Ok(());
            }
        }
    }

    /// Sends the lead and then the other events of a slice, if the lead ended well.
    fn send_slice<E: Engine>(
        &self,
        sender: &mut StepSender<'_, E>,
        slice: &Slice,
        side: usize,
    ) -> Result<SentSlice, LoadError> {
        let mut counts = ReplayCounts::default();
        let lead = self.send(sender, &slice.lead, side, &mut counts)?;
        let timed = match lead.ended {
            Ended::Ios => self.send(sender, &slice.timed, side, &mut counts)?,
            ended => Sent {
                ended,
                ..Sent::default()
            },
        };
        Ok(SentSlice {
            lead,
            timed,
            counts,
        })
    }

    fn send<E: Engine>(
        &self,
        sender: &mut StepSender<'_, E>,
        events: &Batch,
        side: usize,
        counts: &mut ReplayCounts,
    ) -> Result<Sent, LoadError> {
        let remap = [&self.replay.remap, self.planned][side];
        let mut source = Once {
            batch: Some(events),
        };
        let is_written = self.replay.may_write.is_some();
        let mut steps = Steps::new(&mut source, self.replay.target, remap, is_written)
            .up_to(self.survey.len_bytes_max);
        let first_ns = events
            .time_ns
            .iter()
            .copied()
            .find(|&ns| ns != UNKNOWN_NS)
            .unwrap_or(0);
        let sent = sender.send(&mut steps, first_ns, self.stop, None, &mut |_| ())?;
        counts.add(steps.counts());
        if self.stop.load(Ordering::Relaxed) {
            return Ok(Sent {
                ended: Ended::Stopped,
                ..sent
            });
        }
        Ok(sent)
    }
}

/// A slice that was sent to one side.
struct SentSlice {
    lead: Sent,
    timed: Sent,
    counts: ReplayCounts,
}

impl SentSlice {
    /// Its end; if nothing of it succeeded, nothing of the next will.
    fn end(&self) -> Ended {
        let parts = [&self.lead, &self.timed];
        let has_success = parts.iter().any(|sent| sent.tally.ios() > 0);
        let mut failures = parts.iter().flat_map(|sent| sent.tally.failures.keys());
        match failures.next() {
            Some((_, failure)) if !has_success && self.timed.ended == Ended::Ios => {
                Ended::OnlyFailures(failure.errno())
            }
            _ => self.timed.ended,
        }
    }
}

impl SideTotals {
    fn add(&mut self, slice: &SentSlice) {
        self.counts.add(slice.counts);
        self.tally.add(&slice.timed.tally);
        self.lateness.add(&slice.timed.lateness);
        // An I/O that fails is a failure wherever it is.
        self.tally.add(&Tally {
            failures: slice.lead.tally.failures.clone(),
            ..Tally::default()
        });
    }
}

/// I/O that were sent, and the time of one of them; `None` where none succeeded.
fn time_an_io(sent: &Sent, speed: Speed) -> Option<(u64, f64)> {
    let (reads, writes) = (&sent.tally.reads, &sent.tally.writes);
    let ios = sent.tally.ios();
    let sum_ns = match speed {
        Speed::Max => sent.elapsed.as_nanos(),
        Speed::Times(_) => reads.response.sum_ns() + writes.response.sum_ns(),
    };
    (ios > 0 && sum_ns > 0).then(|| (ios, sum_ns as f64 / ios as f64))
}

fn gain_of(pairs: &[SlicePair], level: Level) -> Option<Interval> {
    of_rounds(pairs, level, |pair| (pair.planned_ns, pair.today_ns))
}

fn second_of(pairs: &[SlicePair], level: Level) -> Option<Interval> {
    of_rounds(pairs, level, |pair| match pair.is_today_first {
        true => (pair.planned_ns, pair.today_ns),
        false => (pair.today_ns, pair.planned_ns),
    })
}

/// The median over rounds of a ratio of two times: two pairs of either order make a round, so that the effect of the
/// order cancels. A median, because a busy machine spoils some of them.
fn of_rounds(
    pairs: &[SlicePair],
    level: Level,
    times: impl Fn(&SlicePair) -> (f64, f64),
) -> Option<Interval> {
    let round = |round: &[SlicePair]| {
        let (below, above): (Vec<f64>, Vec<f64>) = round.iter().map(&times).unzip();
        let mean = |times: Vec<f64>| times.iter().product::<f64>().sqrt();
        (mean(below), mean(above))
    };
    let (below, above): (Vec<f64>, Vec<f64>) = pairs.chunks_exact(2).map(round).unzip();
    median_ratio(&below, &above, level)
        .ok()
        .filter(|interval| interval.n >= ROUNDS_MIN)
}

fn verdict(gain: Option<&Interval>, has_failures: bool, margin: Margin) -> ReplayVerdict {
    if has_failures {
        return ReplayVerdict::Inconclusive(Doubt::Failures);
    }
    let Some(gain) = gain else {
        return ReplayVerdict::Inconclusive(Doubt::TooFew);
    };
    match difference([gain.low, gain.high], margin) {
        Difference::Within => ReplayVerdict::NoDifference,
        Difference::More => ReplayVerdict::Better,
        Difference::Less => ReplayVerdict::Worse,
        Difference::Unclear => ReplayVerdict::Inconclusive(Doubt::Wide),
    }
}

/// The order of a pair.
struct Turns {
    random: Random,
    last: Option<bool>,
}

impl Turns {
    fn new(seed: u64) -> Turns {
        Turns {
            random: Random::new(seed, 0),
            last: None,
        }
    }

    fn next(&mut self) -> bool {
        match self.last.take() {
            Some(last) => !last,
            None => {
                let drawn = self.random.below(2) == 0;
                self.last = Some(drawn);
                drawn
            }
        }
    }
}

/// Events that are sent together.
struct Slice {
    /// They bring the device from the other side's state to this one's, and do not count.
    lead: Batch,
    /// The events behind them.
    timed: Batch,
}

impl Slice {
    /// Cuts events for full speed in two, with a read or a write that is sent in the lead; a single one counts.
    fn new(events: &Batch, speed: Speed) -> Slice {
        // A write that must not be made is sent as a read.
        let is_sent = |row: &usize| {
            matches!(events.op[*row], Op::Read | Op::Write) && events.len_bytes[*row] > 0
        };
        let mut sent = (0..events.len()).filter(is_sent);
        let lead = match (speed, sent.next(), sent.next_back()) {
            (Speed::Max, Some(first), Some(last)) => {
                (events.len() / LEAD_SHARE).max(first + 1).min(last)
            }
            _ => 0,
        };
        Slice {
            lead: copy_rows(events, 0..lead),
            timed: copy_rows(events, lead..events.len()),
        }
    }
}

fn copy_rows(events: &Batch, rows: std::ops::Range<usize>) -> Batch {
    let mut copy = Batch::default();
    events.copy_rows(rows, &mut copy);
    copy.names = std::sync::Arc::clone(&events.names);
    copy
}

/// Slices of a trace, spread evenly over it.
struct Slices<'s> {
    source: &'s mut dyn EventSource,
    speed: Speed,
    batch: Batch,
    row: usize,
    /// Events of a slice.
    len: u64,
    /// One of this number of slices is used.
    every: u64,
    number: u64,
}

impl<'s> Slices<'s> {
    fn new(source: &'s mut dyn EventSource, speed: Speed, events: u64, pairs: u32) -> Slices<'s> {
        let pairs = u64::from(pairs.max(1));
        let len = (events / pairs).clamp(*SLICE_EVENTS.start(), *SLICE_EVENTS.end());
        let every = (events / len / pairs).max(1);
        Slices {
            source,
            speed,
            batch: Batch::default(),
            row: 0,
            len,
            every,
            number: 0,
        }
    }

    /// The next slice that is used. An incomplete last one is only used if it is the only one.
    fn next(&mut self) -> Result<Option<Slice>, plumb_trace::Error> {
        loop {
            let mut slice = Batch::default();
            let is_whole = self.read(&mut slice)?;
            let number = self.number;
            self.number += 1;
            if !is_whole && (number > 0 || slice.is_empty()) {
                return Ok(None);
            }
            if number.is_multiple_of(self.every) {
                return Ok(Some(Slice::new(&slice, self.speed)));
            }
        }
    }

    fn read(&mut self, slice: &mut Batch) -> Result<bool, plumb_trace::Error> {
        while (slice.len() as u64) < self.len {
            if self.row >= self.batch.len() {
                self.row = 0;
                if !self.source.fill(&mut self.batch)? {
                    self.batch.clear();
                    return Ok(false);
                }
                continue;
            }
            let wanted = self.len as usize - slice.len();
            let end = (self.row + wanted).min(self.batch.len());
            self.batch.copy_rows(self.row..end, slice);
            slice.names = std::sync::Arc::clone(&self.batch.names);
            self.row = end;
        }
        Ok(true)
    }
}

/// One batch as a source.
struct Once<'b> {
    batch: Option<&'b Batch>,
}

impl EventSource for Once<'_> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool, plumb_trace::Error> {
        let Some(only) = self.batch.take() else {
            return Ok(false);
        };
        batch.clone_from(only);
        Ok(true)
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
