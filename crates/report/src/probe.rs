//! The result of a probe, as text and JSON.

mod text;
mod words;

use plumb_model::Finding;
use plumb_quoting::CommandLine;
use serde::Serialize;

use crate::json::Document;
use crate::run::Run;
use crate::verdict::{Outcome, Verdict, Word};

pub use text::text;

pub(crate) use words::{figures, grid_words, headline, searched_words, shown, source_words};

/// A probe that has ended.
#[derive(Debug, Serialize)]
pub struct ProbeReport<'a> {
    /// The target, as it was named.
    pub target: &'a str,
    /// Its length.
    pub size_bytes: u64,
    /// The verdict.
    pub verdict: ReportedVerdict,
    /// The measured operation: a verdict on reads is none on writes.
    pub op: Op,
    /// When a write counted as done; `None` of reads.
    pub durability: Option<Durability>,
    /// The reason of an inconclusive verdict.
    pub reason: Option<String>,
    /// Commands that help then.
    pub commands: &'a [CommandLine],
    /// The grid, in the address space of the target.
    pub grid: Option<Grid>,
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
    pub drift: Option<Drift>,
    /// Time of a short read, from beginning to end.
    pub pace: &'a [ProbePace],
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

/// The measured operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// Reads.
    Read,
    /// Writes of data that was read before.
    Write,
}

impl Op {
    /// One of them.
    #[must_use]
    pub const fn one(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
        }
    }

    /// Several.
    #[must_use]
    pub const fn all(self) -> &'static str {
        match self {
            Op::Read => "reads",
            Op::Write => "writes",
        }
    }

    /// Several, as a sentence begins.
    pub(crate) const fn first(self) -> &'static str {
        match self {
            Op::Read => "Reads",
            Op::Write => "Writes",
        }
    }

    /// The operation that a verdict leaves open.
    pub(crate) const fn open(self) -> &'static str {
        match self {
            Op::Read => "writes: unknown, a probe of reads says nothing of them",
            Op::Write => "reads: unknown, a probe of writes says nothing of them",
        }
    }
}

/// When a write counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// When the device says so.
    Accepted,
    /// When it has reached the medium.
    Medium,
}

/// The verdict of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReportedVerdict {
    /// The grid has an offset other than 0.
    Misaligned,
    /// The grid has the offset 0.
    Aligned,
    /// No start costs more than the margin.
    NoPenalty,
    /// The measurement decides nothing.
    Inconclusive,
}

impl ReportedVerdict {
    /// The word used in output.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            ReportedVerdict::Misaligned => "misaligned",
            ReportedVerdict::Aligned => "aligned",
            ReportedVerdict::NoPenalty => "no penalty",
            ReportedVerdict::Inconclusive => "inconclusive",
        }
    }
}

/// A grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Grid {
    /// Bytes from one boundary to the next.
    pub granularity_bytes: u64,
    /// Of the first boundary.
    pub offset_bytes: u64,
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

/// The cost of an I/O at a start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bar {
    /// The start, modulo the granularity.
    pub offset_bytes: u64,
    /// Time of one, with the others in flight.
    pub ns: f64,
}

/// A granularity that was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Searched {
    /// Bytes.
    pub granularity_bytes: u64,
    /// Length of the I/O.
    pub len_bytes: u64,
    /// No start of them cost more than this share; `None` where that was not shown.
    pub flat_within: Option<f64>,
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
    pub grid: Grid,
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
    pub(crate) const fn word(self) -> &'static str {
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
    pub found: Option<FoundCache>,
}

/// The measurement of places that are read again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FoundCache {
    /// Median time of a first read, alone.
    pub first_ns: u64,
    /// Median time of a repetition, alone.
    pub again_ns: u64,
    /// The farthest distance over which places are held.
    pub held: Option<Reach>,
    /// The nearest over which they are not.
    pub lost: Option<Reach>,
    /// Share of first reads that were as fast as repetitions that are held.
    pub fast_share: f64,
}

/// The reads between a read and its repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Reach {
    /// Reads.
    pub reads: u64,
    /// Bytes of the pages that they touched.
    pub bytes: u64,
}

/// A change of pace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Drift {
    /// When, in time of all reads before.
    pub at_seconds: f64,
    /// Time of a short read before, with the others in flight.
    pub before_ns: f64,
    /// Time of one afterwards.
    pub after_ns: f64,
    /// The second by the first.
    pub factor: f64,
}

/// How long a short read took at one time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ProbePace {
    /// Time of all reads before.
    pub at_seconds: f64,
    /// Time of one, with the others in flight.
    pub ns: f64,
}

/// I/O of others on the device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Others {
    /// Reads.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Their bytes.
    pub written_bytes: u64,
    /// Of all I/O, by count or by bytes, whichever is more.
    pub share: f64,
}

impl ProbeReport<'_> {
    /// I/O of the kind that was measured.
    #[must_use]
    pub fn measured(&self) -> u64 {
        match self.op {
            Op::Read => self.reads,
            Op::Write => self.writes,
        }
    }
}

/// The verdict on a probe. A grid off 0 is no misfit if no finding reaches the limit of `--fail-on`.
#[must_use]
pub fn verdict(probed: &ProbeReport<'_>, outcome: Outcome) -> Verdict {
    let (word, limit) = match (outcome, probed.verdict) {
        (Outcome::Findings, _) => (Word::Misfit, ""),
        (Outcome::Unknown(_), _) | (_, ReportedVerdict::Inconclusive) => (Word::Inconclusive, ""),
        (Outcome::Clean, ReportedVerdict::Misaligned) => {
            (Word::Ok, ", below the limit of --fail-on")
        }
        (Outcome::Clean, _) => (Word::Ok, ""),
    };
    Verdict::measured(word, format!("{}{limit}.", words::sentence(probed)))
}

/// The document of `plumb probe`.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn json(
    run: &Run,
    probed: &ProbeReport<'_>,
    findings: &[Finding],
    outcome: Outcome,
) -> Result<String, serde_json::Error> {
    plumb_quoting::json::pretty(&Document {
        schema: "plumb.probe/2",
        run,
        inputs: Vec::<()>::new(),
        verdict: Some(verdict(probed, outcome)),
        findings: crate::json::findings(findings),
        result: probed,
    })
}
