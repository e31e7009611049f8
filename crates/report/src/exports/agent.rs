//! The measurements of an agent as metrics of Prometheus.
//!
//! Labels have few values: never a process, a file or a place. A device has at most 60 series beside its findings, and the whole is bounded; the metrics
//! say how many series were left out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use plumb_geometry::{Bounds, SmallSort};
use plumb_model::facts::GridSource;
use plumb_model::{RuleId, Severity};
use plumb_profile::histogram::log_linear_bounds;
use plumb_profile::profile::OpTotals;
use plumb_trace::{Layer, Op};

use super::exposition::{Exposition, Kind, Latencies, MetricsFormat};

/// Devices with series; those of further ones are counted as left out.
const DEVICES_MAX: usize = 256;
/// Findings with a series.
const FINDINGS_MAX: usize = 1000;

/// Upper ends of latency buckets: powers of two of ns, from 16 µs to 17 s. Latencies are whole ns, and one of exactly the upper end
/// counts in the next bucket.
const LATENCY_POWERS: std::ops::RangeInclusive<u32> = 14..=34;
const LATENCY_STEP: usize = 2;

/// The measurements of an agent since it started.
#[derive(Debug, Default)]
pub struct AgentMetrics {
    /// By name, as the kernel spells it.
    pub devices: BTreeMap<String, DeviceMetrics>,
    /// The findings that are present.
    pub findings: BTreeSet<FindingMetrics>,
    /// I/O that are in no figure: there was no room for their events, their place and length, or their device.
    pub events_lost: u64,
    /// Calls of the programs that the kernel skipped: each may hide an I/O or its latency.
    pub calls_skipped: u64,
    /// The reason for which the last checkpoint of the history is not stored; `None` if it is.
    pub history_fault: Option<String>,
    /// The history; `None` while it cannot be read.
    pub history: Option<HistoryMetrics>,
    /// Triggered recordings; `None` if nothing triggers one.
    pub recordings: Option<RecordingMetrics>,
    /// The export of windows; `None` without one.
    pub export: Option<ExportMetrics>,
}

/// The export of windows since the agent started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportMetrics {
    /// Objects that the target took.
    pub objects: u64,
    /// Tries that failed.
    pub failures: u64,
    /// End of the last try after which no window waited, ns of Unix time; `None` before the first.
    pub last_success_ns: Option<i64>,
    /// Length of the object that waits on the disk for the command, bytes.
    pub spool_bytes: u64,
}

/// Triggers of recordings, by their result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordingMetrics {
    /// Recordings that have become whole files.
    pub made: u64,
    /// Triggers that came too early for a further recording, or during one.
    pub refused: u64,
    /// Triggers whose recording could not begin, or not be written.
    pub failed: u64,
}

/// A finding that is present.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FindingMetrics {
    /// Its rule.
    pub rule: RuleId,
    /// Its severity.
    pub severity: Severity,
    /// The device.
    pub device: String,
    /// A partition of it; empty for the whole.
    pub part: String,
}

/// The history of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryMetrics {
    /// Length of its files.
    pub bytes: u64,
    /// Begin of its oldest window, ns of Unix time; `None` without any.
    pub oldest_ns: Option<i64>,
}

/// A device.
#[derive(Debug)]
pub struct DeviceMetrics {
    /// WWN, serial number or UUID; the name for want of them.
    pub identity: String,
    /// The layer at which its I/O are counted.
    pub layer: Layer,
    /// I/O that are in flight now.
    pub in_flight: u64,
    /// Totals of each operation.
    pub ops: [OpTotals; 6],
    /// Sum of the latencies of each operation, ns.
    pub latency_ns_sums: [u128; 6],
    /// The fit on the grid that is asked about.
    pub fit: GridMetrics,
}

impl DeviceMetrics {
    fn ios(&self) -> u64 {
        self.ops.iter().map(|op| op.ios).sum()
    }

    /// Number of its series: two of the device, three of each operation, one histogram and four counters of fit of reads and of writes.
    fn series(&self) -> u64 {
        let buckets = LATENCY_POWERS.step_by(LATENCY_STEP).count() as u64;
        let of_data = buckets + 3 + 4;
        2 + 3 * seen_ops(self).count() as u64 + 2 * of_data
    }
}

/// Counts of reads and writes on one grid.
#[derive(Debug)]
pub struct GridMetrics {
    /// Bytes of a cell.
    pub unit_bytes: u64,
    /// Source of the grid.
    pub source: GridSource,
    /// Reads, then writes.
    pub ops: [FitMetrics; 2],
}

/// Counts of one operation on one grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FitMetrics {
    /// I/O that start off the grid.
    pub unfit_ios: u64,
    /// I/O that may start off the grid, or on it: the table has lost the detail.
    pub undecided_ios: u64,
    /// Cells that the decided I/O touched, at least.
    pub cells_touched: u128,
    /// Cells that their lengths need, at least.
    pub cells_needed: u128,
}

impl FitMetrics {
    /// Adds the counts of an interval.
    pub fn add(&mut self, unfit: Bounds<u64>, touched: Bounds<u128>, needed: Bounds<u128>) {
        self.unfit_ios = self.unfit_ios.saturating_add(unfit.low);
        let undecided = unfit.high.saturating_sub(unfit.low);
        self.undecided_ios = self.undecided_ios.saturating_add(undecided);
        self.cells_touched = self.cells_touched.saturating_add(touched.low);
        self.cells_needed = self.cells_needed.saturating_add(needed.low);
    }
}

/// The metrics of an agent of this version.
#[must_use]
pub fn agent_metrics(metrics: &AgentMetrics, version: &str, format: MetricsFormat) -> Vec<u8> {
    let mut out = Exposition::new(format);
    out.begin("plumb_build", Kind::Info, "Version of Plumb.");
    out.series(&[("version", version)], 1);

    // The devices with most I/O, in the order of their names.
    let mut shown: Vec<_> = metrics.devices.iter().collect();
    shown.small_sort_by_key(|(_, device)| Reverse(device.ios()));
    let beyond = shown.split_off(shown.len().min(DEVICES_MAX));
    shown.small_sort_by_key(|(name, _)| *name);
    devices(&mut out, &shown);
    let beyond = beyond.iter().map(|(_, device)| device.series());
    let mut dropped: u64 = beyond.sum();

    out.begin("plumb_finding", Kind::Gauge, "Findings that are present.");
    for finding in metrics.findings.iter().take(FINDINGS_MAX) {
        let labels = [
            ("finding", finding.rule.name()),
            ("severity", finding.severity.word()),
            ("device", &finding.device),
            ("part", &finding.part),
        ];
        // An empty label is none.
        let has_part = !finding.part.is_empty();
        out.series(&labels[..labels.len() - usize::from(!has_part)], 1);
    }
    dropped += metrics.findings.len().saturating_sub(FINDINGS_MAX) as u64;

    out.begin(
        "plumb_events_lost",
        Kind::Counter,
        "I/O in no figure, because a buffer, a table or the list of devices was full.",
    );
    out.series(&[], metrics.events_lost);
    out.begin(
        "plumb_calls_skipped",
        Kind::Counter,
        "Calls of Plumb's programs that the kernel skipped: each may hide an I/O or its latency.",
    );
    out.series(&[], metrics.calls_skipped);
    out.begin(
        "plumb_history_stored",
        Kind::Gauge,
        "1 while the history is stored, 0 while it is in memory alone.",
    );
    out.series(&[], u8::from(metrics.history_fault.is_none()));
    history(&mut out, metrics.history);
    if let Some(recordings) = metrics.recordings {
        out.begin(
            "plumb_recordings",
            Kind::Counter,
            "Triggers of recordings by their result: made, refused (too early, or another one ran), failed.",
        );
        let RecordingMetrics {
            made,
            refused,
            failed,
        } = recordings;
        for (result, count) in [("made", made), ("refused", refused), ("failed", failed)] {
            out.series(&[("result", result)], count);
        }
    }
    if let Some(export) = metrics.export {
        exports(&mut out, export);
    }
    out.begin(
        "plumb_metrics_dropped_series",
        Kind::Gauge,
        "Series left out of this text, because it has too many devices or findings.",
    );
    out.series(&[], dropped);
    out.into_bytes()
}

fn exports(out: &mut Exposition, export: ExportMetrics) {
    let counters = [
        (
            "plumb_export_objects",
            "Objects with windows that the target of the export took.",
            export.objects,
        ),
        (
            "plumb_export_failures",
            "Tries of an export that failed.",
            export.failures,
        ),
    ];
    for (family, help, count) in counters {
        out.begin(family, Kind::Counter, help);
        out.series(&[], count);
    }
    if let Some(at_ns) = export.last_success_ns {
        out.begin(
            "plumb_export_last_success_timestamp_seconds",
            Kind::Gauge,
            "End of the last export after which no window waited, Unix time.",
        );
        out.series(&[], at_ns / 1_000_000_000);
    }
    out.begin(
        "plumb_export_spool_bytes",
        Kind::Gauge,
        "Length of the object on the disk that the command of the export reads.",
    );
    out.series(&[], export.spool_bytes);
}

fn history(out: &mut Exposition, history: Option<HistoryMetrics>) {
    let Some(history) = history else {
        return;
    };
    out.begin(
        "plumb_history_bytes",
        Kind::Gauge,
        "Length of the files of the history.",
    );
    out.series(&[], history.bytes);
    if let Some(oldest_ns) = history.oldest_ns {
        out.begin(
            "plumb_history_oldest_timestamp_seconds",
            Kind::Gauge,
            "Begin of the oldest window of the history, Unix time.",
        );
        out.series(&[], oldest_ns / 1_000_000_000);
    }
}

fn devices(out: &mut Exposition, devices: &[(&String, &DeviceMetrics)]) {
    out.begin(
        "plumb_device",
        Kind::Info,
        "Identity of a device, and the layer at which its I/O are counted.",
    );
    for (name, device) in devices {
        let labels = [
            ("device", name.as_str()),
            ("identity", &device.identity),
            ("layer", device.layer.word()),
        ];
        out.series(&labels, 1);
    }
    out.begin("plumb_ios_in_flight", Kind::Gauge, "I/O in flight.");
    for (name, device) in devices {
        out.series(&[("device", name)], device.in_flight);
    }
    let counter = |out: &mut Exposition, family, help, of: fn(&OpTotals) -> u64| {
        out.begin(family, Kind::Counter, help);
        for (name, device) in devices {
            for (op, totals) in seen_ops(device) {
                out.series(&[("device", name), ("op", op.word())], of(totals));
            }
        }
    };
    counter(out, "plumb_ios", "I/O issued.", |op| op.ios);
    counter(out, "plumb_io_bytes", "Bytes of I/O.", |op| op.bytes);
    counter(
        out,
        "plumb_ios_failed",
        "I/O that completed with an error.",
        |op| op.failed,
    );
    latencies(out, devices);
    queues(out, devices);
    lengths(out, devices);
    fits(out, devices);
}

/// Reads and writes, and the other operations that were seen.
fn seen_ops(device: &DeviceMetrics) -> impl Iterator<Item = (Op, &OpTotals)> {
    let all = Op::ALL.into_iter().zip(&device.ops);
    all.filter(|(op, totals)| matches!(op, Op::Read | Op::Write) || totals.ios + totals.failed > 0)
}

fn latencies(out: &mut Exposition, devices: &[(&String, &DeviceMetrics)]) {
    out.begin(
        "plumb_io_latency_seconds",
        Kind::Histogram,
        "Time from the issue of a read or write to its completion.",
    );
    let ends = LATENCY_POWERS.step_by(LATENCY_STEP).map(|power| 1 << power);
    let ends_ns: Vec<u64> = ends.collect();
    for (name, device) in devices {
        for op in [Op::Read, Op::Write] {
            let latencies = Latencies {
                counts: &device.ops[op as usize].device_ns,
                sum_ns: device.latency_ns_sums[op as usize],
                ends_ns: &ends_ns,
            };
            out.histogram(&[("device", name), ("op", op.word())], &latencies);
        }
    }
}

/// The times in the queue, for formats in which a histogram costs one series. The kernel's counts have no sum: it is that of the middles of the
/// buckets.
fn queues(out: &mut Exposition, devices: &[(&String, &DeviceMetrics)]) {
    if !out.is_native() {
        return;
    }
    out.begin(
        "plumb_io_queue_seconds",
        Kind::Histogram,
        "Time from the making of a read or write request to its issue; the sum is an estimate.",
    );
    for (name, device) in devices {
        for op in [Op::Read, Op::Write] {
            let counts = &device.ops[op as usize].queue_ns;
            let middles = counts.iter().map(|(bucket, ios)| {
                let (low, high) = log_linear_bounds(bucket);
                (u128::from(low) + u128::from(high)) * u128::from(ios) / 2
            });
            let times = Latencies {
                counts,
                sum_ns: middles.sum(),
                ends_ns: &[],
            };
            out.histogram(&[("device", name), ("op", op.word())], &times);
        }
    }
}

/// The lengths of reads and writes, for formats in which a histogram costs one series.
fn lengths(out: &mut Exposition, devices: &[(&String, &DeviceMetrics)]) {
    if !out.is_native() {
        return;
    }
    out.begin(
        "plumb_io_size_bytes",
        Kind::Histogram,
        "Length of reads and writes.",
    );
    for (name, device) in devices {
        for op in [Op::Read, Op::Write] {
            let labels = [("device", name.as_str()), ("op", op.word())];
            out.lengths(&labels, &device.ops[op as usize]);
        }
    }
}

fn fits(out: &mut Exposition, devices: &[(&String, &DeviceMetrics)]) {
    let counter = |out: &mut Exposition, family, help, of: fn(&FitMetrics) -> u128| {
        out.begin(family, Kind::Counter, help);
        for (name, device) in devices {
            let unit = device.fit.unit_bytes.to_string();
            for (op, fit) in [Op::Read, Op::Write].into_iter().zip(&device.fit.ops) {
                let labels = [
                    ("device", name.as_str()),
                    ("op", op.word()),
                    ("grid", &unit),
                    ("source", device.fit.source.word()),
                ];
                out.series(&labels, of(fit));
            }
        }
    };
    counter(
        out,
        "plumb_unfit_ios",
        "I/O that start off a grid, at least; undecided ones are not in it.",
        |fit| fit.unfit_ios.into(),
    );
    counter(
        out,
        "plumb_undecided_ios",
        "I/O that start on a grid or off it: their table has lost the detail.",
        |fit| fit.undecided_ios.into(),
    );
    counter(
        out,
        "plumb_cells_touched",
        "Cells of a grid that I/O touched, at least.",
        |fit| fit.cells_touched,
    );
    counter(
        out,
        "plumb_cells_needed",
        "Cells of a grid that the lengths of I/O need, at least.",
        |fit| fit.cells_needed,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(ios: u64, ops: &[Op]) -> DeviceMetrics {
        let mut device = DeviceMetrics {
            identity: String::new(),
            layer: Layer::Request,
            in_flight: 0,
            ops: Default::default(),
            latency_ns_sums: [0; 6],
            fit: GridMetrics {
                unit_bytes: 4096,
                source: GridSource::Assumed,
                ops: [FitMetrics::default(); 2],
            },
        };
        for op in ops {
            device.ops[*op as usize].ios = ios;
        }
        device
    }

    /// Of too many devices those with most I/O are shown, and the series of the others are counted.
    #[test]
    fn devices_beyond_the_limit_are_counted() {
        let mut metrics = AgentMetrics::default();
        for number in 0..300 {
            let name = format!("sd{number:03}");
            let busy = if number < 45 { 1 } else { 2 };
            metrics.devices.insert(name, device(busy, &[Op::Read]));
        }
        metrics
            .devices
            .insert("sd043".to_owned(), device(1, &Op::ALL));
        let text = agent_metrics(&metrics, "1", MetricsFormat::Classic);
        let text = String::from_utf8(text).expect("text");
        assert!(text.contains("{device=\"sd045\"") && text.contains("{device=\"sd299\""));
        // Six I/O of six operations are more than two.
        assert!(text.contains("{device=\"sd043\"") && !text.contains("{device=\"sd044\""));
        let of = |name: &str| {
            let label = format!("{{device=\"{name}\"");
            text.lines().filter(|line| line.contains(&label)).count()
        };
        assert_eq!(of("sd299") as u64, device(2, &[Op::Read]).series());
        assert_eq!(of("sd043") as u64, device(1, &Op::ALL).series());
        assert!(of("sd043") <= 60);
        let dropped = 44 * device(1, &[Op::Read]).series();
        let line = format!("\nplumb_metrics_dropped_series {dropped}\n");
        assert!(text.contains(&line), "{line} in {text}");
    }

    /// Names of devices and identities have the three escapes of the format, and no other sign ends a label or a line.
    #[test]
    fn hostile_names_stay_within_their_labels() {
        let mut metrics = AgentMetrics::default();
        let mut hostile = device(1, &[Op::Read]);
        hostile.identity = "a\"} 1\nplumb_ios_total{b=\"\\n\r\u{1b}[2J\u{202e}".to_owned();
        let name = "d\"\n\\m".to_owned();
        metrics.devices.insert(name, hostile);
        for format in [MetricsFormat::Classic, MetricsFormat::OpenMetrics] {
            let text = agent_metrics(&metrics, "1", format);
            let text = String::from_utf8(text).expect("text");
            let expected = concat!(
                r#"{device="d\"\n\\m",identity="a\"} 1\nplumb_ios_total{b=\"\\n"#,
                "\r\u{1b}[2J\u{202e}\""
            );
            assert!(text.contains(expected), "{expected:?} in {text:?}");
            let foreign = text.split('\n').filter(|line| {
                !line.starts_with('#') && !line.starts_with("plumb_") && !line.is_empty()
            });
            assert_eq!(foreign.count(), 0, "{text:?}");
            let series = text.lines().filter(|line| line.contains("identity=\""));
            assert_eq!(series.count(), 1);
        }
    }
}
