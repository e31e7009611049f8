//! A device in an interval series: each report is an observation.

use plumb_geometry::plural;
use plumb_trace::Op;
use plumb_trace::series::{DeviceRow, FirstReport, Series, Span};

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
    let seen = rows.len() as u64;
    let present: Vec<&DeviceRow> = rows.iter().copied().flatten().collect();
    Observed {
        device: device.to_owned(),
        source: series.tool.title().to_owned(),
        size_bytes: None,
        layer: None,
        span: present.first().map_or(Span::Response, |row| row.span),
        is_closed_loop: false,
        sampling: Sampling {
            unit: "report",
            seconds: None,
            seen,
        },
        slices: batched(
            rows.iter()
                .map(|row| row.map_or(idle(&present), slice))
                .collect(),
        ),
        strata: strata(&present),
        has_lengths: false,
        quantiles: [None, None],
        stretches: [Vec::new(), Vec::new()],
        random: None,
        grids: Vec::new(),
        law: law(&present),
        lost: Share::new(0, 0),
        doubts,
    }
}

/// A report counts as one second: they are equally long, and tell rates.
fn slice(row: &DeviceRow) -> TimeSlice {
    let ios = row.data.map(|op| op.per_second.value);
    let ns = row.data_ms().map(|ms| ms * 1e6);
    let timed = if ns.is_some() { ios[0] + ios[1] } else { 0.0 };
    TimeSlice {
        seconds: 1.0,
        ios,
        bytes: row.data.map(|op| op.bytes_per_second),
        timed,
        ns_sum: ns.unwrap_or(0.0) * timed,
        in_flight_seconds: row.in_flight.map(|in_flight| in_flight.value),
    }
}

/// A report in which the device did nothing: what others tell is 0 there.
fn idle(present: &[&DeviceRow]) -> TimeSlice {
    let known =
        |is_known: fn(&DeviceRow) -> bool| present.iter().all(|row| is_known(row)).then_some(0.0);
    TimeSlice {
        seconds: 1.0,
        bytes: [
            known(|row| row.data[0].bytes_per_second.is_some()),
            known(|row| row.data[1].bytes_per_second.is_some()),
        ],
        in_flight_seconds: known(|row| row.in_flight.is_some()),
        ..TimeSlice::default()
    }
}

/// Reads and writes, with their mean lengths.
fn strata(present: &[&DeviceRow]) -> Vec<Stratum> {
    let of = |op: Op| {
        let rows = present.iter().map(|row| row.data[op as usize]);
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
