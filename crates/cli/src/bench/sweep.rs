//! The verdict of a sweep of offsets, for display.

use plumb_load::result::bench as result;
use plumb_load::series::{self, OffsetRun, Series, SweepVerdict};

use super::series::Made;
use crate::exit::Exit;

/// Judges the runs of a sweep.
pub fn judge(made: &Made, series: &Series, unit: u64) -> result::Sweep {
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
    result::Sweep {
        target: part.path.display().to_string(),
        ops,
        len_bytes: part.length_max(),
        unit_bytes: unit,
        verdict,
        offsets: runs,
    }
}

/// The exit status of a sweep alone: a grid that starts off offset 0 is a finding.
pub fn exit(sweep: &result::Sweep) -> Exit {
    match &sweep.verdict {
        SweepVerdict::Grid { offset, .. } if *offset > 0 => Exit::Findings,
        SweepVerdict::Inconclusive { .. } => Exit::Unknown,
        SweepVerdict::Grid { .. } | SweepVerdict::NoDifference { .. } => Exit::Clean,
    }
}
