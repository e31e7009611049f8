//! The result of `plumb history`, and the messages of `plumb agent` about findings.

use plumb_profile::Owner;
use plumb_profile::top::ProcessShare;
use serde::Serialize;

use crate::finding::{Finding, Unjudged};
use crate::rule::RuleId;

/// A change of a finding over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingChange {
    /// It was not there before.
    Appeared,
    /// It is more severe than before.
    Worsened,
    /// Its rule found nothing any more.
    Gone,
}

impl FindingChange {
    /// The word for logs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            FindingChange::Appeared => "appeared",
            FindingChange::Worsened => "worsened",
            FindingChange::Gone => "gone",
        }
    }
}

/// A change of a finding for a receiver of notifications.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FindingMessage<'a> {
    /// Version of the program.
    pub version: &'a str,
    /// The host; none if the kernel does not tell.
    pub host: Option<&'a str>,
    /// Moment of the change, UTC.
    pub time: &'a str,
    /// The kind of change.
    pub change: FindingChange,
    /// WWN, serial number or UUID of the device; a name without them.
    pub identity: &'a str,
    /// The address of instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runbook_url: Option<&'a str>,
    /// The file of a recording of the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<&'a str>,
    /// The finding; one that is gone as it was last.
    #[serde(skip)]
    pub finding: &'a Finding,
}

/// A device with a history.
#[derive(Clone, Debug, Serialize)]
pub struct HistoryDevice {
    /// Its last name.
    pub device: String,
    /// WWN, serial number or UUID; a name without them.
    pub identity: String,
    /// Layer at which its I/O were counted.
    pub layer: &'static str,
    /// Names with the time from which each was seen, in order.
    pub names: Vec<NameSince>,
    /// Begin of its first window; absent without any.
    pub from: Option<String>,
    /// End of its last window, excluded.
    pub to: Option<String>,
}

/// A name of a device.
#[derive(Clone, Debug, Serialize)]
pub struct NameSince {
    /// The time from which it was seen.
    pub since: String,
    /// The name.
    pub name: String,
}

/// The I/O of a device over time.
#[derive(Clone, Debug, Serialize)]
pub struct HistoryCourse {
    /// Its last name.
    pub device: String,
    /// WWN, serial number or UUID; a name without them.
    pub identity: String,
    /// Layer at which its I/O were counted.
    pub layer: &'static str,
    /// Length of a window.
    pub window_seconds: u64,
    /// The windows with I/O that are over, in order.
    pub windows: Vec<HistoryWindow>,
    /// The I/O since the last of them: of windows that are not over.
    pub open: Option<HistoryWindow>,
}

/// Totals of a window.
#[derive(Clone, Debug, Serialize)]
pub struct HistoryWindow {
    /// Its begin.
    pub from: String,
    /// I/O of all operations.
    pub ios: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Reads and writes that do not start on a 4 KiB boundary; absent if it is unknown.
    pub misaligned_4k: Option<u64>,
    /// Reads and writes with a known latency.
    pub timed: u64,
    /// Half of the latencies are at most this, ns.
    pub p50_ns: Option<u64>,
    /// The same for 99 %.
    pub p99_ns: Option<u64>,
    /// No latency is larger, ns.
    pub max_ns: Option<u64>,
    /// Reads and writes of up to 4, 16, 64 and 256 KiB, and longer ones.
    pub lengths: [u64; 5],
    /// Means of another program in place of counts: the figures above have none of these I/O.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub averages: Option<HistoryAverages>,
}

/// The I/O of a window that is known by means alone, as far as its time is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryAverages {
    /// I/O of all operations.
    pub ios: CountRange,
    /// Their bytes.
    pub bytes: CountRange,
    /// Reads; absent if the source does not tell operations apart.
    pub reads: Option<CountRange>,
    /// Writes, likewise.
    pub writes: Option<CountRange>,
}

/// A count within two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CountRange {
    /// Least count.
    pub low: u64,
    /// Largest count; `None` if it is unknown.
    pub high: Option<u64>,
}

/// The size of a history, now and later.
#[derive(Clone, Debug, Serialize)]
pub struct HistorySize {
    /// Bytes of its files.
    pub used_bytes: u64,
    /// The cap.
    pub cap_bytes: u64,
    /// Expected bytes once every tier is full, without the cap; absent for a history of less than a day.
    pub full_bytes: Option<u64>,
    /// The tiers.
    pub tiers: Vec<HistoryTier>,
}

/// A tier of windows.
#[derive(Clone, Debug, Serialize)]
pub struct HistoryTier {
    /// Length of a window.
    pub window_seconds: u64,
    /// Days that it will reach back, within the cap.
    pub reach_days: u64,
    /// Begin of its oldest window; absent without any.
    pub oldest: Option<String>,
}

/// A finding of the agent over time.
#[derive(Clone, Debug, Serialize)]
pub struct HistoryFinding {
    /// The time at which it appeared.
    pub appeared: String,
    /// The time of its last change.
    pub changed: String,
    /// The time at which it went; absent while it is present.
    pub went: Option<String>,
    /// Its last form.
    pub finding: Finding,
    /// Its sentence for readers that do not know its facts.
    pub summary: String,
}

/// The changes in the I/O of a device over time.
#[derive(Debug, Serialize)]
pub struct HistoryChanges {
    /// Its last name.
    pub device: String,
    /// WWN, serial number or UUID; a name without them.
    pub identity: String,
    /// Layer at which its I/O were counted.
    pub layer: &'static str,
    /// Length of a window.
    pub window_seconds: u64,
    /// Windows with I/O that were searched.
    pub windows: u64,
    /// Begin of the first of them; absent without any.
    pub from: Option<String>,
    /// The changes, worst first.
    #[serde(skip)]
    pub findings: Vec<Finding>,
    /// Rules that could not judge.
    pub unknown: Vec<Unjudged>,
    /// Rules that looked and found no change.
    pub silent: Vec<RuleId>,
}

/// The state of a file.
#[derive(Clone, Debug, Serialize)]
pub struct HistoryFile {
    /// Its path.
    pub file: String,
    /// Faults of the file itself.
    pub faults: Vec<String>,
    /// Sound records.
    pub sound: u64,
    /// Damaged records.
    pub damaged: u64,
    /// Records whose totals are not those of their histograms.
    pub differing: u64,
}

/// Everything that `plumb history` prints.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", content = "is", rename_all = "kebab-case")]
pub enum HistoryAnswer {
    /// The devices.
    Devices(Vec<HistoryDevice>),
    /// The I/O of a device, a course for each layer.
    Courses(Vec<HistoryCourse>),
    /// The findings, in the order in which they appeared.
    Findings(Vec<HistoryFinding>),
    /// The senders of a device's I/O, a list for each layer.
    Senders(Vec<HistorySenders>),
    /// The changes in the I/O of each device.
    Changes(Vec<HistoryChanges>),
    /// Sizes.
    Size(HistorySize),
    /// The state of the files.
    Files(Vec<HistoryFile>),
}

/// The senders of a device's I/O over a time.
#[derive(Clone, Debug, Serialize)]
pub struct HistorySenders {
    /// Its last name.
    pub device: String,
    /// WWN, serial number or UUID; a name without them.
    pub identity: String,
    /// Layer at which its I/O were counted.
    pub layer: &'static str,
    /// Begin of the time, widened to whole windows.
    pub from: String,
    /// Its end, excluded.
    pub to: String,
    /// I/O of all operations.
    pub ios: u64,
    /// The senders, most I/O first. A window keeps its largest ones: if `others` has I/O, a sender may have sent some of these
    /// as well.
    pub senders: Vec<HistorySender>,
    /// I/O of senders that a window did not keep.
    pub others: ProcessShare,
    /// I/O whose sender is not known: it was not seen, or there was no room for it.
    pub unknown: u64,
    /// Damaged records in this time, whose I/O are in no figure.
    pub damaged: u64,
}

/// A sender.
#[derive(Clone, Debug, Serialize)]
pub struct HistorySender {
    /// Its command.
    pub command: String,
    /// Path of its cgroup of version 2, if it was known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// The owner that this path names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// Its I/O.
    #[serde(flatten)]
    pub sent: ProcessShare,
}
