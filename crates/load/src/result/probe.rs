//! The result of a probe.

use plumb_model::facts::Direction;
use plumb_quoting::CommandLine;
use serde::Serialize;

use crate::Durability;
use crate::probe::conclusion::Conclusion;
use crate::probe::counters::Others;
use crate::probe::drift::{PaceChange, ReadPace};
use crate::probe::{self, Bar, Candidate, Searched};

/// A probe that has ended.
#[derive(Debug, Serialize)]
pub struct ProbeReport<'a> {
    /// The target, as it was named.
    pub target: &'a str,
    /// Its length.
    pub size_bytes: u64,
    /// The verdict.
    pub verdict: Conclusion,
    /// The measured operation: a verdict on reads is none on writes.
    pub op: Direction,
    /// When a write counted as done; `None` of reads.
    pub durability: Option<Durability>,
    /// The reason of an inconclusive verdict.
    pub reason: Option<String>,
    /// Commands that help then.
    pub commands: &'a [CommandLine],
    /// The grid, in the address space of the target.
    pub grid: Option<Candidate>,
    /// Time of I/O off the grid, by that of I/O on it.
    pub penalty: Option<PenaltyRatio>,
    /// Time of the shortest I/O across a boundary, by that of others.
    pub crossing: Option<PenaltyRatio>,
    /// A difference in percent below which a penalty does not matter.
    pub margin_percent: f64,
    /// I/O from each start over the granularity.
    pub sweep: &'a [Bar],
    /// Granularities that were looked for.
    pub searched: &'a [Searched],
    /// The statements of the stack and the user, each compared with the measurement.
    pub hints: &'a [Hint],
    /// The cache; `None` if the probe did not look for one.
    pub cache: Option<Cache>,
    /// From when on the pace was another; `None` where it was kept.
    pub drift: Option<PaceChange>,
    /// Time of a short read, from beginning to end.
    pub pace: &'a [ReadPace],
    /// I/O of others meanwhile; `None` if nothing counts it.
    pub others: Option<Others>,
    /// Logical block; starts and lengths are its multiples.
    pub block_bytes: u64,
    /// I/O in flight.
    pub depth: u32,
    /// How they were made.
    pub means: &'a str,
    /// Reads that were made.
    pub reads: u64,
    /// Writes of data that was read from the same place before.
    pub writes: u64,
    /// Bytes of those that were measured.
    pub bytes: u64,
    /// I/O that failed and ended it.
    pub failed: Option<Failed>,
    /// From the beginning to the end.
    pub seconds: f64,
    /// Repeats the order of all I/O.
    pub seed: u64,
    /// Sentences that a reader must know.
    pub notes: &'a [String],
}

impl ProbeReport<'_> {
    /// I/O of the kind that was measured.
    #[must_use]
    pub fn measured(&self) -> u64 {
        match self.op {
            Direction::Read => self.reads,
            Direction::Write => self.writes,
        }
    }
}

/// A ratio with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PenaltyRatio {
    /// The estimate.
    pub ratio: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How often such an interval holds the true ratio.
    pub level: f64,
    /// Pairs of slices behind it.
    pub pairs: u64,
    /// Length of the I/O.
    pub len_bytes: u64,
}

/// I/O that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// How many reads, of those that were in flight then.
    pub reads: u64,
    /// How many writes.
    pub writes: u64,
    /// The start of the first of them.
    pub at_bytes: u64,
    /// How one of them failed.
    pub error: String,
}

/// A statement, and its comparison with the measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hint {
    /// Its kind: `physical block`.
    pub what: String,
    /// The layer that states it.
    pub layer: String,
    /// Its source.
    pub source: String,
    /// The grid in the address space of the target.
    #[serde(flatten)]
    pub grid: Candidate,
    /// The outcome of the comparison.
    pub outcome: HintOutcome,
    /// In words.
    pub why: String,
    /// Why it was doubted before anything was measured; `None` where it was believed.
    pub doubt: Option<String>,
}

/// The outcome of comparing a statement with a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HintOutcome {
    /// The measurement shows the same.
    Confirmed,
    /// Something else was seen.
    Refuted,
    /// The measurement does not tell.
    Open,
}

impl HintOutcome {
    /// The word as it is printed.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            HintOutcome::Confirmed => "confirmed",
            HintOutcome::Refuted => "refuted",
            HintOutcome::Open => "open",
        }
    }
}

/// A cache before the medium.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cache {
    /// Its size as the user states it.
    pub stated_bytes: Option<u64>,
    /// The result of repetitions; `None` if none were made.
    pub found: Option<probe::cache::Cache>,
}
