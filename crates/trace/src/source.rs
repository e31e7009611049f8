//! A reader's knowledge of its source: the reliability of its numbers and its gaps.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::error::Damage;
use crate::op::Layer;

/// The meaning of time 0 of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Nanoseconds since 1970-01-01 UTC.
    Unix,
    /// Nanoseconds since some boot; traces of one host and boot can be laid side by side.
    Boot,
    /// Nanoseconds since the trace began.
    Start,
    /// The source does not say, or has no times at all.
    #[default]
    Unknown,
}

impl Clock {
    /// The word used in output and in Parquet metadata.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Clock::Unix => "unix",
            Clock::Boot => "boot",
            Clock::Start => "start",
            Clock::Unknown => "unknown",
        }
    }

    /// The clock of a word; `None` for any other.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Clock> {
        [Clock::Unix, Clock::Boot, Clock::Start, Clock::Unknown]
            .into_iter()
            .find(|clock| clock.word() == word)
    }
}

/// Counts of a source. Nothing that was seen and not used goes uncounted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Lines or records looked at.
    pub records: u64,
    /// Events handed on.
    pub events: u64,
    /// Events that the source itself says it lost.
    pub lost: u64,
    /// Lines or records that could not be understood and were passed over.
    pub damaged: u64,
    /// Bytes passed over to find the next record.
    pub skipped_bytes: u64,
    /// Files that belong to the recording and were not there to be read.
    pub missing_files: u64,
    /// Issues whose completion never came.
    pub unmatched_issues: u64,
    /// Latencies that may be those of other I/O: an equal I/O at the same place was open, and one of these never
    /// completed.
    pub doubtful_latencies: u64,
    /// Completions whose issue was not seen.
    pub unmatched_completions: u64,
    /// Completions that came after their issue had been handed on, so that their latency is in no figure.
    pub late_completions: u64,
    /// Largest latency among the late completions, in ns; 0 without any.
    #[serde(skip)]
    pub late_ns_max: i64,
    /// Events with a time before that of an event already handed on.
    pub out_of_order: u64,
}

/// Whether the events of a source carry latencies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Latency {
    /// They do, as far as each event says.
    #[default]
    Known,
    /// None does, for this reason.
    None(String),
}

/// A document has the reason why there are no latencies; null if there are some.
impl Serialize for Latency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Latency::Known => serializer.serialize_none(),
            Latency::None(why) => serializer.serialize_str(why),
        }
    }
}

/// Two statements of one source that cannot both be true. Lines are those of a histogram's heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Contradiction {
    /// A histogram of remainders counts I/O in a row that no remainder can be in.
    ImpossibleRemainder {
        /// Line.
        line: u64,
        /// The lowest value of the row, in sectors.
        from_sectors: i64,
        /// The divisor: remainders are smaller.
        unit_sectors: u64,
        /// I/O in the row.
        ios: u64,
    },
    /// A histogram counts other I/O off the unit than the source printed as misaligned.
    Misaligned {
        /// Line.
        line: u64,
        /// Off the unit by the histogram.
        counted: u64,
        /// Misaligned as printed.
        printed: u64,
        /// I/O issued.
        issued: u64,
    },
    /// The rows of a histogram do not add up to the I/O issued.
    HistogramSum {
        /// Line.
        line: u64,
        /// Sum of the rows.
        counted: u64,
        /// I/O issued.
        issued: u64,
    },
    /// The mean offset is outside of the bounds that the histogram sets.
    MeanOffset {
        /// Line.
        line: u64,
        /// Least mean by the histogram, bytes.
        counted_low: u64,
        /// Largest mean by the histogram, bytes.
        counted_high: u64,
        /// As printed, bytes.
        printed: u64,
    },
    /// The counts of each length do not add up to the I/O issued.
    LengthSum {
        /// Sum of the counts.
        counted: u64,
        /// I/O issued.
        issued: u64,
    },
    /// The counts of each length hold other odd lengths than the source printed.
    OddLengths {
        /// I/O of odd length by the counts.
        counted: u64,
        /// As printed.
        printed: u64,
        /// Unit of the length, bytes.
        unit_bytes: u64,
    },
}

/// How many contradictions are kept: two histograms a run have six at most.
pub const CONTRADICTIONS_KEPT: usize = 24;

/// How many damaged places are kept in full; the rest is only counted.
pub const DAMAGES_KEPT: usize = 5;

/// A reader's knowledge of its source. Complete once the reader has come to its end. A document has the same names.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SourceInfo {
    /// Input as the user named it.
    pub path: String,
    /// Name of the format, as in `--format`.
    pub format: &'static str,
    /// Whether the reader was held against a real file of this format.
    pub verified: bool,
    /// Layers that were seen in the source.
    pub layers: Vec<Layer>,
    /// Whether no device was seen at more than one layer: I/O of two layers are those of different devices then.
    #[serde(skip)]
    pub one_layer_a_device: bool,
    /// Whether only completions were recorded: their times are those of completion.
    pub completions_only: bool,
    /// The meaning of time 0.
    pub clock: Clock,
    /// Unix time of time 0 in ns; `None` when it cannot be known.
    pub unix_ns_at_zero: Option<i64>,
    /// Whether there are latencies.
    #[serde(rename = "latency_unknown")]
    pub latency: Latency,
    /// Counts.
    #[serde(flatten)]
    pub counts: Counts,
    /// Records by kind, as the format names its kinds: Q, D, C, …
    pub tallies: BTreeMap<&'static str, u64>,
    /// The first damaged places; see [`Counts::damaged`] for how many there were.
    pub damages: Vec<Damage>,
    /// Statements of the source that cannot both be true, the first ones.
    pub contradictions: Vec<Contradiction>,
    /// Everything else that a reader of the result must know, a sentence each.
    pub notes: Vec<String>,
    /// Gaps of this source, for instance "start alignment".
    pub cannot_tell: Vec<&'static str>,
}

impl SourceInfo {
    /// Counts a damaged place and keeps it if it is among the first.
    pub fn damage(&mut self, damage: Damage) {
        self.counts.damaged += 1;
        if self.damages.len() < DAMAGES_KEPT {
            self.damages.push(damage);
        }
    }

    /// Keeps a contradiction if it is among the first.
    pub fn contradict(&mut self, found: Contradiction) {
        if self.contradictions.len() < CONTRADICTIONS_KEPT {
            self.contradictions.push(found);
        }
    }

    /// Counts a record of a kind.
    pub fn tally(&mut self, kind: &'static str) {
        self.tally_many(kind, 1);
    }

    /// Counts a number of a kind.
    pub fn tally_many(&mut self, kind: &'static str, count: u64) {
        if count > 0 {
            *self.tallies.entry(kind).or_insert(0) += count;
        }
    }

    /// Notes a sentence once.
    pub fn note(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.notes.contains(&sentence) {
            self.notes.push(sentence);
        }
    }

    /// Adds a gap of the source, once.
    pub fn note_unknown(&mut self, what: &'static str) {
        if !self.cannot_tell.contains(&what) {
            self.cannot_tell.push(what);
        }
    }

    /// Notes that a layer was seen.
    pub fn saw_layer(&mut self, layer: Layer) {
        if !self.layers.contains(&layer) {
            self.layers.push(layer);
            self.layers.sort_unstable();
        }
    }

    /// Whether everything in the input was understood, nothing was lost, and nothing contradicts the rest.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let counts = &self.counts;
        self.contradictions.is_empty()
            && counts.damaged == 0
            && counts.lost == 0
            && counts.skipped_bytes == 0
            && counts.missing_files == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_sources_are_whole() {
        let whole = |counts: Counts| {
            SourceInfo {
                counts,
                ..SourceInfo::default()
            }
            .is_whole()
        };
        assert!(whole(Counts {
            events: 7,
            unmatched_issues: 3,
            late_completions: 1,
            ..Counts::default()
        }));
        assert!(!whole(Counts {
            lost: 1,
            ..Counts::default()
        }));
        assert!(!whole(Counts {
            damaged: 1,
            ..Counts::default()
        }));
        assert!(!whole(Counts {
            skipped_bytes: 1,
            ..Counts::default()
        }));
        assert!(!whole(Counts {
            missing_files: 1,
            ..Counts::default()
        }));
    }
}
