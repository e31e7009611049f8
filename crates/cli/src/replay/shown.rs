//! From the I/O sent to the data of a report.

use plumb_geometry::group_digits;
use plumb_load::replay::{
    Compared, Doubt, Order, Replay, ReplayVerdict, Replayed, SideTotals, SlicePair, Speed,
    TraceSurvey,
};
use plumb_load::result::replay as result;
use plumb_load::{Ended, Tally};
use plumb_stats::Interval;
use plumb_stats::equivalence::Margin;

use crate::bench::measured::{ended, engine};

/// How the trace was sent, in words.
pub fn how(replay: &Replay<'_>) -> String {
    let speed = match replay.speed {
        Speed::Max => "as fast as it goes".to_owned(),
        Speed::Times(1.0) => "at its times".to_owned(),
        Speed::Times(times) => format!("{times} times as fast as recorded"),
    };
    let order = match replay.order {
        Order::Threads => "each I/O after those of its process that had ended before it".to_owned(),
        Order::Depth(1) => "one I/O after the other".to_owned(),
        Order::Depth(depth) => format!("up to {} in flight", group_digits(u64::from(depth))),
    };
    format!("{speed}, {order}")
}

/// A replay that has ended.
pub fn replayed(replayed: &Replayed, survey: &TraceSurvey) -> result::Replayed {
    let seconds = replayed.elapsed.as_secs_f64();
    let mut measured = replayed.tally.figures(seconds);
    measured.never_back = replayed.never_back;
    result::Replayed {
        counts: replayed.counts,
        trace_seconds: survey.first_ns.map(|_| survey.span.as_secs_f64()),
        seconds,
        measured,
        flushes: replayed.flushes.times(),
        lateness: replayed.lateness.times(),
        course: replayed.course.figures(replayed.lateness.count() > 0),
        in_flight_max: replayed.in_flight_max,
        engine: engine(replayed.means),
        ended: match replayed.ended {
            Ended::Ios => "with the trace".to_owned(),
            other => ended(other),
        },
    }
}

/// Notes for a reader of a replay.
pub fn notes_of_replay(replayed: &Replayed, order: Order) -> Vec<String> {
    let mut notes = Vec::new();
    if order == Order::Threads && replayed.in_flight_max == replayed.slots {
        let slots = group_digits(u64::from(replayed.slots));
        notes.push(format!(
            "as many I/O as there was room for ({slots}) were in flight: some waited for that"
        ));
    }
    notes.extend(unforced(replayed.counts.unforced));
    notes
}

fn unforced(ios: u64) -> Option<String> {
    let words =
        "writes asked for a flush before them or for the medium (FUA), and were sent without";
    (ios > 0).then(|| format!("{} {words}", group_digits(ios)))
}

/// A comparison that has ended.
pub fn comparison(compared: &Compared, margin: Margin) -> result::Comparison {
    let (verdict, why) = match compared.verdict {
        ReplayVerdict::Better => ("better", None),
        ReplayVerdict::Worse => ("worse", None),
        ReplayVerdict::NoDifference => ("no difference", None),
        ReplayVerdict::Inconclusive(doubt) => (
            "inconclusive",
            Some(doubt_words(doubt, compared.pairs.len())),
        ),
    };
    let [today, planned] = &compared.sides;
    result::Comparison {
        verdict,
        why,
        margin: margin.share(),
        gain: compared.gain.as_ref().map(ratio),
        today_ns: mean(compared, |pair| pair.today_ns),
        planned_ns: mean(compared, |pair| pair.planned_ns),
        second: compared.second.as_ref().map(ratio),
        slice_events: compared.slice_events,
        today: side(today),
        planned: side(planned),
        pairs: compared.pairs.clone(),
        seconds: compared.elapsed.as_secs_f64(),
        engine: engine(compared.means),
        ended: match compared.ended {
            Ended::Ios => "after its pairs".to_owned(),
            other => ended(other),
        },
    }
}

fn mean(compared: &Compared, of: fn(&SlicePair) -> f64) -> f64 {
    compared.pairs.iter().map(of).sum::<f64>() / compared.pairs.len().max(1) as f64
}

fn doubt_words(doubt: Doubt, pairs: usize) -> String {
    match doubt {
        Doubt::Failures => "some I/O failed".to_owned(),
        Doubt::TooFew => {
            format!("found {pairs} pairs, expected 12 or more: a longer trace has them")
        }
        Doubt::Wide => {
            "the interval holds both a difference and none: --pairs asks for more".to_owned()
        }
    }
}

fn ratio(interval: &Interval) -> result::ReplayRatio {
    let Interval {
        estimate,
        low,
        high,
        level,
        n,
    } = *interval;
    result::ReplayRatio {
        estimate,
        low,
        high,
        level: level.value(),
        rounds: n as u64,
    }
}

fn side(side: &SideTotals) -> result::ReplaySide {
    // Slices follow each other with gaps: only times can be combined.
    let Tally { reads, writes, .. } = &side.tally;
    let busy_ns = reads.latency.sum_ns() + writes.latency.sum_ns();
    result::ReplaySide {
        counts: side.counts,
        measured: side.tally.figures(busy_ns as f64 / 1e9),
        lateness: side.lateness.times(),
    }
}

/// Notes for a reader of a comparison.
pub fn notes_of_comparison(compared: &Compared, margin: Margin) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(second) = compared.second.filter(|second| second.low > margin.ratio()) {
        notes.push(format!(
            "the second of a pair was {:.2} times as fast, whichever that was: a cache answered it; more of the trace, or \
            a larger part of the target, goes past it",
            second.estimate
        ));
    }
    notes.extend(unforced(compared.sides[1].counts.unforced));
    notes
}
