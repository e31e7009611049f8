//! A device in an interval series, or a run of a benchmark: each report is an observation.

use plumb_geometry::plural;
use plumb_trace::Op;
use plumb_trace::series::{DeviceRow, FirstReport, OpRow, Printed, Series, Span};

use super::law::Law;
use super::slice::{TimeSlice, batched};
use super::{Observed, Sampling, Stratum};
use crate::share::Share;

/// The device in the series; a report without it is one in which it had no I/O.
#[must_use]
pub fn of_series(series: &Series, device: &str, first: FirstReport) -> Observed {
    let since_boot = series.since_boot(device, first);
    let rows: Vec<Option<&DeviceRow>> = series
        .rows_of(device)
        .skip(usize::from(since_boot.is_some()))
        .collect();
    let mut doubts = Vec::new();
    if let Some(why) = since_boot {
        doubts.push(format!("the first report is left out: {}", why.text()));
    }
    if let Some(damage) = &series.damage {
        let lines = plural(series.damaged, "line");
        doubts.push(format!("{lines} not understood, the first: {damage}"));
    }
    if series.warm_up_left_out > 0 {
        let intervals = plural(series.warm_up_left_out, "interval");
        doubts.push(format!(
            "{intervals} of warm-up are left out, as in the averages of {}",
            series.tool.title()
        ));
    }
    let seen = rows.len() as u64;
    let present: Vec<&DeviceRow> = rows.iter().copied().flatten().collect();
    if present.iter().any(|row| row.undivided.is_some()) {
        let has_shares = present
            .iter()
            .all(|row| row.data.iter().all(|op| op.bytes_per_second.is_some()));
        let shares = match has_shares {
            true => "their shares are estimated from their bytes",
            false => "all I/O count as reads",
        };
        doubts.push(format!(
            "the source does not separate reads from writes: {shares}"
        ));
    }
    if present.iter().any(|row| {
        row.undivided.is_some()
            && row.others[0]
                .bytes_per_second
                .is_some_and(|bytes| bytes > 0.0)
    }) {
        doubts.push("the I/O include discards".to_owned());
    }
    let is_benchmark = series.tool.is_benchmark();
    let seconds: Option<f64> = present.iter().map(|row| row.seconds).sum();
    let seconds = seconds.filter(|_| !present.is_empty());
    Observed {
        device: device.to_owned(),
        source: series.tool.title().to_owned(),
        size_bytes: None,
        layer: None,
        span: present.first().map_or(Span::Response, |row| row.span),
        is_closed_loop: is_benchmark && present.iter().all(|row| !row.is_limited),
        sampling: Sampling {
            unit: if is_benchmark { "interval" } else { "report" },
            seconds: seconds.map(|seconds| seconds / present.len() as f64),
            seen,
        },
        slices: batched(
            rows.iter()
                .map(|row| row.map_or(idle(&present), slice))
                .collect(),
        ),
        strata: strata(&present),
        has_lengths: false,
        are_lengths_rounded: false,
        quantiles: [None, None],
        stretches: [Vec::new(), Vec::new()],
        random: None,
        grids: Vec::new(),
        law: law(&present),
        lost: Share::new(0, 0),
        doubts,
    }
}

/// A report counts as one second where it does not tell its length: they are equally long, and tell rates.
fn slice(row: &DeviceRow) -> TimeSlice {
    let seconds = row.seconds.unwrap_or(1.0);
    let ios = row.data.map(|op| op.per_second.value * seconds);
    let undivided = row.undivided.unwrap_or_default();
    let bytes = row
        .data
        .map(|op| op.bytes_per_second.map(|bytes| bytes * seconds));
    let all_ios = row.per_second() * seconds;
    let ns = row.data_ms().map(|ms| ms * 1e6);
    let timed = if ns.is_some() { all_ios } else { 0.0 };
    TimeSlice {
        seconds,
        ios,
        undivided: undivided.per_second.value * seconds,
        bytes: match undivided.bytes_per_second {
            Some(_) => [Some(0.0); 2],
            None => bytes,
        },
        undivided_bytes: undivided.bytes_per_second.unwrap_or(0.0) * seconds,
        timed,
        ns_sum: ns.unwrap_or(0.0) * timed,
        in_flight_seconds: row.in_flight.map(|in_flight| in_flight.value * seconds),
    }
}

/// A report in which the device did nothing: measured values are 0 there.
fn idle(present: &[&DeviceRow]) -> TimeSlice {
    let known =
        |is_known: fn(&DeviceRow) -> bool| present.iter().all(|row| is_known(row)).then_some(0.0);
    let has_bytes = |row: &DeviceRow, op: usize| {
        row.data[op].bytes_per_second.is_some()
            || row
                .undivided
                .is_some_and(|all| all.bytes_per_second.is_some())
    };
    TimeSlice {
        seconds: present.first().and_then(|row| row.seconds).unwrap_or(1.0),
        bytes: [
            present.iter().all(|row| has_bytes(row, 0)).then_some(0.0),
            present.iter().all(|row| has_bytes(row, 1)).then_some(0.0),
        ],
        in_flight_seconds: known(|row| row.in_flight.is_some()),
        ..TimeSlice::default()
    }
}

/// Reads and writes, with their mean lengths. If they are not separate, they count as equally long, and their bytes
/// then separate them.
fn strata(present: &[&DeviceRow]) -> Vec<Stratum> {
    let divided: Vec<[OpRow; 2]> = present.iter().map(|row| divided(row)).collect();
    let of = |op: Op| {
        let rows = divided.iter().map(|data| data[op as usize]);
        let ios: f64 = rows.clone().map(|row| row.per_second.value).sum();
        let bytes: Option<f64> = rows.clone().map(|row| row.bytes_per_second).sum();
        let busy = rows.filter(|row| row.per_second.value > 0.0);
        let ms_sum: Option<f64> = busy
            .map(|row| row.ms.map(|ms| ms.value * row.per_second.value))
            .sum();
        (ios > 0.0).then(|| Stratum {
            op,
            len_bytes: bytes.map_or(0, |bytes| (bytes / ios) as u64),
            ios,
            mean_ns: ms_sum.map(|sum| sum / ios * 1e6),
            ns_mean_variance: None,
        })
    };
    [Op::Read, Op::Write].into_iter().filter_map(of).collect()
}

fn divided(row: &DeviceRow) -> [OpRow; 2] {
    let Some(all) = row.undivided else {
        return row.data;
    };
    let bytes = row.data.map(|op| op.bytes_per_second.unwrap_or(0.0));
    let whole = bytes[0] + bytes[1];
    // Without bytes apart all count as reads.
    let reads = if whole > 0.0 { bytes[0] / whole } else { 1.0 };
    [reads, 1.0 - reads].map(|share| OpRow {
        per_second: Printed {
            value: all.per_second.value * share,
            half_step: all.per_second.half_step,
        },
        bytes_per_second: row.bytes_per_second().map(|bytes| bytes * share),
        ms: row.ms,
    })
}

fn law(present: &[&DeviceRow]) -> Option<Law> {
    let checks: Vec<_> = present
        .iter()
        .filter_map(|row| row.littles_law().map(|check| (row.line, check)))
        .collect();
    let n = checks.len() as f64;
    let mut broken = checks.iter().filter(|(_, check)| !check.holds()).peekable();
    let line = broken
        .peek()
        .map(|(line, _)| *line)
        .filter(|line| *line > 0);
    let law = Law {
        in_flight: checks.iter().map(|(_, check)| check.printed).sum::<f64>() / n,
        expected: checks.iter().map(|(_, check)| check.expected).sum::<f64>() / n,
        checked: checks.len() as u64,
        broken: broken.count() as u64,
        line,
    };
    (!checks.is_empty()).then_some(law)
}
