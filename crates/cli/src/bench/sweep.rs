//! The verdict of a sweep of offsets, for display.

use plumb_load::series::{self, OffsetRun, Series, SweepVerdict};
use plumb_report::bench as report;

use super::series::Made;
use crate::exit::Exit;

/// Judges the runs of a sweep.
pub fn judge(made: &Made, series: &Series, unit: u64) -> report::Sweep {
    let part = &series.runs[0].parts[0];
    let offsets = series.runs.iter().map(|run| run.parts[0].offset);
    let measured = offsets.zip(&made.rates).map(|(offset, rates)| OffsetRun {
        offset,
        rates: rates.clone(),
    });
    let runs: Vec<OffsetRun> = measured.collect();
    let inconclusive = |why: &str| SweepVerdict::Inconclusive {
        why: why.to_owned(),
    };
    let verdict = match (made.is_broken, made.is_stopped) {
        (true, _) => inconclusive("I/O failed"),
        (_, true) => inconclusive("a signal ended it before all offsets were measured"),
        _ => series::judge(&runs, unit),
    };
    let ops = match part.read_percent {
        100 => "reads",
        0 => "writes",
        _ => "reads and writes",
    };
    let offsets = runs.iter().map(|run| report::Offset {
        offset_bytes: run.offset,
        ios_per_second: run.rates.iter().sum::<f64>() / run.rates.len().max(1) as f64,
        intervals: run.rates.len(),
    });
    let sweep = report::Sweep {
        target: part.path.display().to_string(),
        ops,
        len_bytes: part.length_max(),
        unit_bytes: unit,
        verdict: "inconclusive",
        grid: None,
        penalty: None,
        difference: None,
        why: None,
        offsets: offsets.collect(),
    };
    with_verdict(verdict, sweep)
}

/// Adds a verdict to the measurements.
pub fn with_verdict(verdict: SweepVerdict, sweep: report::Sweep) -> report::Sweep {
    match verdict {
        SweepVerdict::Grid {
            granularity,
            granularity_max,
            offset,
            penalty,
        } => report::Sweep {
            verdict: "grid",
            grid: Some(report::Grid {
                granularity_bytes: granularity,
                granularity_bytes_max: granularity_max,
                offset_bytes: offset,
            }),
            penalty: Some(ratio(penalty.ratio)),
            ..sweep
        },
        SweepVerdict::NoDifference { ratio: found } => report::Sweep {
            verdict: "no-difference",
            difference: Some(ratio(found)),
            ..sweep
        },
        SweepVerdict::Inconclusive { why } => report::Sweep {
            why: Some(why),
            ..sweep
        },
    }
}

/// The exit status of a sweep alone: a grid that starts off offset 0 is a finding.
pub fn exit(sweep: &report::Sweep) -> Exit {
    match &sweep.grid {
        Some(grid) if grid.offset_bytes > 0 => Exit::Findings,
        _ if sweep.verdict == "inconclusive" => Exit::Unknown,
        _ => Exit::Clean,
    }
}

/// Observations of the rate above the line come first.
fn ratio(interval: plumb_stats::Interval<[usize; 2]>) -> report::RateRatio {
    let [below, above] = interval.n;
    let plumb_stats::Interval {
        estimate,
        low,
        high,
        level,
        ..
    } = interval;
    report::RateRatio {
        estimate,
        low,
        high,
        level: level.value(),
        n: [above, below],
    }
}
