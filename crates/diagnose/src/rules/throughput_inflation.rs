//! `throughput-inflation`: the device moves far more bytes than applications asked for.
//!
//! Takes what processes asked of a file system (the vfs layer) and what the devices below it moved in the same time. The
//! page cache stands between the two: it saves reads, keeps writes for later, and makes whole pages of parts. Only for
//! direct I/O, and for writes over a window that begins and ends with nothing left to write, the ratio is the
//! amplification of the file system; else the answer says that the cache is in it.

use plumb_geometry::{Bytes, group_digits};

use super::{Context, IOS_MIN, IoRule, Outcome};
use crate::finding::{Basis, Confidence, Cost, Finding, Severity};

/// The rule.
pub const RULE: IoRule = IoRule {
    id: "throughput-inflation",
    title: "the device moves far more bytes than applications asked for",
    needs: "`plumb watch --app`",
    decides: true,
    thresholds: || {
        vec![
            format!("at least {IOS_MIN} calls"),
            format!("{RATIO_MIN} bytes at the device for each byte asked"),
            format!("{} MiB too many", EXCESS_BYTES_MIN >> 20),
            format!("warning from {RATIO_WARNING}"),
        ]
    },
    plan: None,
    judge,
};

/// From so many bytes at the device per byte asked it is reported. Below it metadata, a journal, and pages at the ends
/// of an extent explain it.
pub const RATIO_MIN: f64 = 2.0;

/// From so many it is worth mending: data that are journalled whole come to 2 and some metadata. The case that the rule is
/// named for, 8 KiB pages in 128 KiB records, came to 12.
pub const RATIO_WARNING: f64 = 4.0;

/// Less than this much too many is the label, the log or the metadata that any file system reads once.
pub const EXCESS_BYTES_MIN: u64 = 1 << 20;

/// What was asked of a file system, and what the devices below it moved in the same time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Throughput {
    /// Reads.
    pub reads: Flow,
    /// Writes.
    pub writes: Flow,
    /// Ways to the file system's data on which bytes are not counted and that processes went; empty when none did.
    pub uncounted: Vec<String>,
    /// Why bytes of the device cannot be told for this file system alone; `None` when they can.
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
        return vec![Outcome::Unknown(format!(
            "{calls} calls seen, {IOS_MIN} needed"
        ))];
    }
    if let Some(why) = &throughput.device_unknown {
        return vec![Outcome::Unknown(why.clone())];
    }
    if !throughput.uncounted.is_empty() {
        let ways = throughput.uncounted.join(", ");
        return vec![Outcome::Unknown(format!(
            "processes use what is not counted: {ways}"
        ))];
    }
    [Direction::Reads, Direction::Writes]
        .into_iter()
        .filter(|direction| direction.flow(throughput).calls >= IOS_MIN)
        .map(|direction| judge_flow(context, throughput, direction))
        .collect()
}

#[derive(Clone, Copy)]
enum Direction {
    Reads,
    Writes,
}

impl Direction {
    fn flow(self, throughput: &Throughput) -> &Flow {
        match self {
            Direction::Reads => &throughput.reads,
            Direction::Writes => &throughput.writes,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Direction::Reads => "read",
            Direction::Writes => "written",
        }
    }

    fn amplification(self, throughput: &Throughput) -> Option<f64> {
        match self {
            Direction::Reads => throughput.read_amplification(),
            Direction::Writes => throughput.write_amplification(),
        }
    }
}

fn judge_flow(context: &Context<'_>, throughput: &Throughput, direction: Direction) -> Outcome {
    let flow = direction.flow(throughput);
    let is_write = matches!(direction, Direction::Writes);
    let amplification = direction.amplification(throughput);
    if is_write && amplification.is_none() {
        return Outcome::Unknown(
            "writes went through the cache, and the time did not begin and end synced: watch with --sync"
                .into(),
        );
    }
    let Some(ratio) = flow.ratio() else {
        return Outcome::Silent;
    };
    if ratio < RATIO_MIN || flow.device_bytes - flow.asked_bytes < EXCESS_BYTES_MIN {
        return Outcome::Silent;
    }
    Outcome::Found(found(context, throughput, direction, ratio))
}

fn found(
    context: &Context<'_>,
    throughput: &Throughput,
    direction: Direction,
    ratio: f64,
) -> Finding {
    let flow = direction.flow(throughput);
    let severity = if ratio >= RATIO_WARNING {
        Severity::Warning
    } else {
        Severity::Note
    };
    let is_amplification = direction.amplification(throughput).is_some();
    let confidence = if is_amplification {
        Confidence::High
    } else {
        Confidence::Medium
    };
    let summary = format!(
        "{ratio:.1} bytes {} at the device for each byte asked: {} for {}",
        direction.word(),
        Bytes(flow.device_bytes),
        Bytes(flow.asked_bytes),
    );
    let device = context.evidence("bytes_at_device", flow.device_bytes as f64, "bytes");
    let mut finding = Finding::new(
        RULE.id,
        severity,
        context.target,
        confidence,
        summary,
        device,
    )
    .with_evidence(context.evidence("bytes_asked", flow.asked_bytes as f64, "bytes"))
    .with_evidence(context.evidence("calls", flow.calls as f64, "calls"))
    .with_cost(Some(Cost {
        value: ratio,
        unit: "bytes at the device per byte asked",
        basis: Basis::Measured,
    }))
    .explained(format!(
        "{} calls asked for {} bytes each in the mean",
        group_digits(flow.calls),
        group_digits(flow.asked_bytes / flow.calls.max(1))
    ));
    finding = finding.explained(if is_amplification {
        "the cache has no part in it: the file system reads and writes in larger units than it is asked for"
    } else {
        "the cache is in it: it may have saved reads, and read ahead what nobody asked for"
    });
    if matches!(direction, Direction::Writes)
        && throughput.reads.device_bytes > throughput.reads.asked_bytes
    {
        let first = throughput.reads.device_bytes - throughput.reads.asked_bytes;
        finding = finding.explained(format!(
            "{} were read beside that nobody asked for: a unit that is written in part is read first",
            Bytes(first)
        ));
    }
    finding.explained("metadata and the journal of the file system are in what the device moved")
}
