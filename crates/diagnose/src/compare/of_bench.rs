//! A run of `plumb bench`, as its JSON document has it: each interval after the warm-up is an observation.
//!
//! Only the fields that a comparison needs are read; all targets of a run count together, as its intervals do.

use serde::Deserialize;

use plumb_geometry::group_digits;
use plumb_trace::Op;
use plumb_trace::series::Span;

use super::slice::{TimeSlice, batched};
use super::{Observed, Sampling, Stratum, Stretch};
use crate::analysis::Quantiles;
use crate::share::Share;

/// The content of the document's `result`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct BenchDocument {
    /// Runs in the order in which they were made.
    pub runs: Vec<DocumentRun>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct DocumentRun {
    /// Its name; `None` where there is one run only.
    pub name: Option<String>,
    /// The workload, in words.
    pub workload: String,
    intervals: Vec<DocumentInterval>,
    total: DocumentMeasured,
    targets: Vec<DocumentTarget>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct DocumentInterval {
    seconds: f64,
    is_warmup: bool,
    /// Documents of older versions do not say it.
    #[serde(default)]
    is_partial: bool,
    ios: f64,
    bytes: f64,
    time: Option<Time>,
    read_time: Option<Brief>,
    write_time: Option<Brief>,
    read_share: Option<f64>,
    in_flight_mean: f64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Time {
    ios: f64,
    mean_ns: f64,
}

/// Percentiles of one operation; documents of older versions have none.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Brief {
    ios: u64,
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct DocumentTarget {
    target: String,
    size_bytes: u64,
    is_whole: bool,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct DocumentMeasured {
    ios: u64,
    all: DocumentDirection,
    reads: DocumentDirection,
    writes: DocumentDirection,
    failures: Vec<Failures>,
    never_back: u64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct DocumentDirection {
    ios: u64,
    bytes: u64,
    latency: Option<Times>,
    response: Option<Times>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Times {
    mean_ns: f64,
    deviation_ns: f64,
    p50_ns: u64,
    p90_ns: u64,
    p99_ns: u64,
    #[serde(rename = "p999_ns")]
    p999_ns: u64,
    max_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Failures {
    ios: u64,
}

/// Anything shorter is no interval, but a rest of the clock: its rates mean nothing.
const SECONDS_MIN: f64 = 1e-3;

/// The last interval is left out where it is shorter than this share of the one before it.
const WHOLE_SHARE_MIN: f64 = 0.9;

impl DocumentRun {
    /// Its name in the comparison: its own, or those of its targets.
    #[must_use]
    pub fn device(&self) -> String {
        let targets = || {
            self.targets
                .iter()
                .map(|target| target.target.as_str())
                .collect::<Vec<_>>()
                .join("+")
        };
        self.name.clone().unwrap_or_else(targets)
    }

    /// Whether no target ended it, and none of its I/O failed.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.lost() == 0 && self.targets.iter().all(|target| target.is_whole)
    }

    /// I/O that failed or never came back.
    fn lost(&self) -> u64 {
        let failed = self.total.failures.iter().map(|failures| failures.ios);
        failed.fold(self.total.never_back, u64::saturating_add)
    }

    /// I/O that succeeded.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.total.ios
    }

    /// Intervals after the warm-up, without a last one that was cut short.
    fn measured(&self) -> Vec<&DocumentInterval> {
        let is_measured = |interval: &&DocumentInterval| {
            !interval.is_warmup && !interval.is_partial && interval.seconds >= SECONDS_MIN
        };
        let mut measured: Vec<&DocumentInterval> =
            self.intervals.iter().filter(is_measured).collect();
        if let [.., before, last] = &measured[..]
            && last.seconds < WHOLE_SHARE_MIN * before.seconds
        {
            measured.pop();
        }
        measured
    }
}

/// The measurements of a run.
#[must_use]
pub fn of_bench(run: &DocumentRun) -> Observed {
    let measured = run.measured();
    let seconds = measured.first().map(|interval| interval.seconds);
    let seen = measured.len() as u64;
    let lost = run.lost();
    let mut doubts = Vec::new();
    if lost > 0 {
        doubts.push(format!(
            "{} I/O failed or never came back",
            group_digits(lost)
        ));
    }
    if run.targets.iter().any(|target| !target.is_whole) {
        doubts.push("the run ended early for a target's sake, or had failures".to_owned());
    }
    Observed {
        device: run.device(),
        source: format!("plumb bench, {}", run.workload),
        size_bytes: match &run.targets[..] {
            [target] => Some(target.size_bytes),
            _ => None,
        },
        layer: None,
        span: Span::Device,
        is_closed_loop: run.total.all.response.is_none(),
        sampling: Sampling {
            unit: "interval",
            seconds,
            seen,
        },
        stretches: [
            stretches(&measured, |interval| &interval.read_time),
            stretches(&measured, |interval| &interval.write_time),
        ],
        slices: batched(
            measured
                .into_iter()
                .map(|interval| slice(interval, &run.total))
                .collect(),
        ),
        strata: [(Op::Read, &run.total.reads), (Op::Write, &run.total.writes)]
            .into_iter()
            .filter_map(|(op, side)| stratum(op, side))
            .collect(),
        has_lengths: false,
        are_lengths_rounded: false,
        quantiles: [quantiles(&run.total.reads), quantiles(&run.total.writes)],
        random: None,
        grids: Vec::new(),
        law: None,
        lost: Share::new(lost, run.total.ios.saturating_add(lost)),
        doubts,
    }
}

fn slice(interval: &DocumentInterval, total: &DocumentMeasured) -> TimeSlice {
    let reads = interval.ios * interval.read_share.unwrap_or(0.0).clamp(0.0, 1.0);
    let ios = [reads, interval.ios - reads];
    // Bytes of an interval are not separate by operation: they are split by the mean lengths of the run.
    let len = |side: &DocumentDirection| side.bytes.checked_div(side.ios).unwrap_or(0) as f64;
    let by_length = [ios[0] * len(&total.reads), ios[1] * len(&total.writes)];
    let whole = by_length[0] + by_length[1];
    let share = if whole > 0.0 {
        by_length[0] / whole
    } else {
        0.0
    };
    TimeSlice {
        seconds: interval.seconds,
        ios,
        bytes: [
            Some(interval.bytes * share),
            Some(interval.bytes * (1.0 - share)),
        ],
        timed: interval.time.as_ref().map_or(0.0, |time| time.ios),
        ns_sum: interval
            .time
            .as_ref()
            .map_or(0.0, |time| time.ios * time.mean_ns),
        in_flight_seconds: Some(interval.in_flight_mean * interval.seconds),
        ..TimeSlice::default()
    }
}

fn stretches(
    measured: &[&DocumentInterval],
    of: fn(&DocumentInterval) -> &Option<Brief>,
) -> Vec<Stretch> {
    let told = measured.iter().filter_map(|interval| {
        let brief = of(interval).as_ref()?;
        let ns = [brief.p50_ns?, brief.p90_ns?, brief.p99_ns?].map(|ns| ns as f64);
        Some(Stretch { ios: brief.ios, ns })
    });
    told.collect()
}

/// As users wait for it: since an I/O was due, where it was due at a time.
fn waited(side: &DocumentDirection) -> Option<&Times> {
    side.response.as_ref().or(side.latency.as_ref())
}

fn stratum(op: Op, side: &DocumentDirection) -> Option<Stratum> {
    let times = waited(side);
    let ios = side.ios as f64;
    (side.ios > 0).then(|| Stratum {
        op,
        len_bytes: side.bytes / side.ios,
        ios,
        mean_ns: times.map(|times| times.mean_ns),
        ns_mean_variance: times.map(|times| times.deviation_ns * times.deviation_ns / ios),
    })
}

fn quantiles(side: &DocumentDirection) -> Option<Quantiles> {
    let times = waited(side)?;
    Some(Quantiles {
        timed: side.ios,
        p50_ns: times.p50_ns,
        p90_ns: times.p90_ns,
        p99_ns: times.p99_ns,
        p999_ns: times.p999_ns,
        max_ns: times.max_ns,
    })
}
