//! The result of a replay, or of a comparison of places by replays.

use plumb_trace::SourceInfo;
use serde::Serialize;

use crate::figures::{Measurement, Times};
use crate::replay::{CourseFigures, ReplayCounts, SlicePair};

/// A trace that was sent to a target.
#[derive(Debug, Serialize)]
pub struct Replay<'a> {
    /// The facts about the trace.
    #[serde(skip)]
    pub trace: &'a SourceInfo,
    /// Its device that was sent.
    pub device: String,
    /// The target.
    pub target: String,
    /// How fast and in which order, in words.
    pub how: String,
    /// The result; `None` if it was compared.
    pub replayed: Option<Replayed>,
    /// The result of a comparison.
    pub comparison: Option<Comparison>,
    /// Sentences that a reader must know.
    pub notes: Vec<String>,
}

/// The result of a replay.
#[derive(Debug, Serialize)]
pub struct Replayed {
    /// The counts of the events.
    pub counts: ReplayCounts,
    /// From the first issue of the trace to the last; `None` without times.
    pub trace_seconds: Option<f64>,
    /// From the first due time to the last completion.
    pub seconds: f64,
    /// The measurements.
    pub measured: Measurement,
    /// Flushes, issue to complete.
    pub flushes: Option<Times>,
    /// Due to issue; `None` where nothing was due at a time.
    pub lateness: Option<Times>,
    /// Reads and writes over time.
    pub course: CourseFigures,
    /// Most I/O in flight at once.
    pub in_flight_max: u32,
    /// How I/O were made, in words.
    pub engine: String,
    /// Why it ended, in words.
    pub ended: String,
}

/// The result of a comparison.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// `better`, `worse`, `no difference` or `inconclusive`.
    pub verdict: &'static str,
    /// Why it is inconclusive.
    pub why: Option<String>,
    /// Changes of up to this share are none.
    pub margin: f64,
    /// How many times as fast the planned places are.
    pub gain: Option<ReplayRatio>,
    /// Time an I/O at today's places: the mean over the pairs, 0 without any.
    pub today_ns: f64,
    /// At the planned ones.
    pub planned_ns: f64,
    /// How many times as fast the second of a pair is.
    pub second: Option<ReplayRatio>,
    /// Events of a slice.
    pub slice_events: u64,
    /// Today's places.
    pub today: ReplaySide,
    /// The planned ones.
    pub planned: ReplaySide,
    /// In the order in which they were made.
    pub pairs: Vec<SlicePair>,
    /// Time of it all.
    pub seconds: f64,
    /// How I/O were made, in words.
    pub engine: String,
    /// Why it ended, in words.
    pub ended: String,
}

/// A ratio with its interval.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ReplayRatio {
    /// The estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How often such an interval holds the true ratio.
    pub level: f64,
    /// Rounds of two pairs behind it.
    pub rounds: u64,
}

/// One side of a comparison, all slices together. Rates are those while I/O were in flight, one at a time.
#[derive(Debug, Serialize)]
pub struct ReplaySide {
    /// The counts of the events.
    pub counts: ReplayCounts,
    /// The measurements of the I/O that count.
    pub measured: Measurement,
    /// Due to issue; `None` where nothing was due at a time.
    pub lateness: Option<Times>,
}
