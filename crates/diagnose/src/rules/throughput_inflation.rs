//! `throughput-inflation`: the device moves far more bytes than applications asked for.
//!
//! Compares the requests of processes to a file system (the vfs layer) with the I/O of the devices below it in the same
//! time. The page cache is between the two: it saves reads, keeps writes for later, and makes whole pages of parts.
//! Only for direct I/O, and for writes over a window that begins and ends with nothing left to write, the ratio is the
//! amplification of the file system; else the answer says that the cache is included.

use plumb_geometry::Bytes;
use plumb_model::facts::{Direction, ThroughputInflation};
use plumb_model::reason::Counting;
use plumb_model::{Confidence, Cost, CostOf, Facts, Finding, Reason, RuleId, Severity};

use super::{Context, IOS_MIN, IoRule, Outcome};

/// The rule.
pub const RULE: IoRule = IoRule {
    id: RuleId::ThroughputInflation,
    thresholds: || {
        vec![
            format!("at least {IOS_MIN} calls"),
            format!("{RATIO_MIN} bytes at the device for each byte asked"),
            format!("{} MiB too many", EXCESS_BYTES_MIN >> 20),
            format!("warning from {RATIO_WARNING}"),
        ]
    },
    judge,
};

/// From this number of bytes at the device for each requested byte it is reported. Below it metadata, a journal, and
/// pages at the ends of an extent explain it.
pub const RATIO_MIN: f64 = 2.0;

/// From this number on it is a warning: data that are journalled whole reach 2 and some metadata. The case behind the
/// rule, 8 KiB pages in 128 KiB records, reached 12.
pub const RATIO_WARNING: f64 = 4.0;

/// Less than this much too many is the label, the log or the metadata that any file system reads once.
pub const EXCESS_BYTES_MIN: u64 = 1 << 20;

/// The requests to a file system, and the I/O of the devices below it in the same time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Throughput {
    /// Reads.
    pub reads: Flow,
    /// Writes.
    pub writes: Flow,
    /// Ways to the file system's data on which bytes are not counted and that processes went; empty when none did.
    pub uncounted: Vec<String>,
    /// The reason why bytes of the device are unknown for this file system alone; `None` if they are known.
    pub device_unknown: Option<String>,
    /// Whether nothing was left to be written when the window began, and when it ended.
    pub is_synced: bool,
}

/// One direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Calls.
    pub calls: u64,
    /// Bytes that they asked for.
    pub asked_bytes: u64,
    /// Those of them that went past the cache.
    pub direct_bytes: u64,
    /// Bytes that the devices moved in this direction.
    pub device_bytes: u64,
}

impl Flow {
    /// Bytes at the device per byte asked; `None` when nothing was asked.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        (self.asked_bytes > 0).then(|| self.device_bytes as f64 / self.asked_bytes as f64)
    }

    fn is_direct(&self) -> bool {
        self.direct_bytes == self.asked_bytes
    }
}

impl Throughput {
    /// Whether all bytes on both sides are known.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.uncounted.is_empty() && self.device_unknown.is_none()
    }

    /// Bytes at the device per byte read, where no cache is in it.
    #[must_use]
    pub fn read_amplification(&self) -> Option<f64> {
        self.reads
            .ratio()
            .filter(|_| self.is_whole() && self.reads.is_direct())
    }

    /// Bytes at the device per byte written, where no cache is in it.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let is_all = self.writes.is_direct() || self.is_synced;
        self.writes.ratio().filter(|_| self.is_whole() && is_all)
    }
}

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let Some(throughput) = context.throughput else {
        return vec![Outcome::NotAsked];
    };
    let calls = throughput.reads.calls + throughput.writes.calls;
    if calls < IOS_MIN {
        return vec![Outcome::Unknown(Reason::TooFew {
            what: Counting::Calls,
            seen: calls,
            needed: IOS_MIN,
        })];
    }
    if let Some(why) = &throughput.device_unknown {
        return vec![Outcome::Unknown(Reason::DeviceUnknown { why: why.clone() })];
    }
    if !throughput.uncounted.is_empty() {
        let ways = throughput.uncounted.clone();
        return vec![Outcome::Unknown(Reason::Uncounted { ways })];
    }
    [Direction::Read, Direction::Write]
        .into_iter()
        .filter(|direction| flow(throughput, *direction).calls >= IOS_MIN)
        .map(|direction| judge_flow(context, throughput, direction))
        .collect()
}

fn flow(throughput: &Throughput, direction: Direction) -> &Flow {
    match direction {
        Direction::Read => &throughput.reads,
        Direction::Write => &throughput.writes,
    }
}

fn amplification(throughput: &Throughput, direction: Direction) -> Option<f64> {
    match direction {
        Direction::Read => throughput.read_amplification(),
        Direction::Write => throughput.write_amplification(),
    }
}

fn judge_flow(context: &Context<'_>, throughput: &Throughput, direction: Direction) -> Outcome {
    let flow = flow(throughput, direction);
    if direction == Direction::Write && amplification(throughput, direction).is_none() {
        return Outcome::Unknown(Reason::NotSynced);
    }
    let Some(ratio) = flow.ratio() else {
        return Outcome::Silent;
    };
    if ratio < RATIO_MIN || flow.device_bytes - flow.asked_bytes < EXCESS_BYTES_MIN {
        return Outcome::Silent;
    }
    Outcome::found(found(context, throughput, direction, ratio))
}

fn found(
    context: &Context<'_>,
    throughput: &Throughput,
    direction: Direction,
    ratio: f64,
) -> Finding {
    let flow = flow(throughput, direction);
    let severity = if ratio >= RATIO_WARNING {
        Severity::Warning
    } else {
        Severity::Note
    };
    let is_cached = amplification(throughput, direction).is_none();
    let confidence = if is_cached {
        Confidence::Medium
    } else {
        Confidence::High
    };
    let reads = &throughput.reads;
    let read_first = reads.device_bytes.saturating_sub(reads.asked_bytes);
    let facts = Facts::ThroughputInflation(ThroughputInflation {
        direction,
        calls: flow.calls,
        asked_bytes: Bytes(flow.asked_bytes),
        device_bytes: Bytes(flow.device_bytes),
        ratio,
        is_cached,
        read_first_bytes: (direction == Direction::Write && read_first > 0)
            .then_some(Bytes(read_first)),
    });
    context
        .finding(facts, severity, confidence)
        .with_cost(Cost::measured(CostOf::DeviceBytes, ratio))
}
