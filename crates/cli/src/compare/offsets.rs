//! A sweep of offsets in the results of Vdbench: one file whose runs differ in their offset alone.
//!
//! The results name no offset, so the names of the runs have to: `offset=512`, or one prefix and a number with leading
//! zeros, `rd_0512`, as in the parameter file that Vdbench's author published. Limits of the rate make a sweep useless.

use std::collections::BTreeSet;

use plumb_geometry::SECTOR;
use plumb_load::result::bench::Sweep;
use plumb_load::series::{self, OffsetRun};
use plumb_trace::series::{DeviceRow, Series, SeriesTool};

use crate::failure::Failure;

/// A file that holds no sweep.
#[derive(Debug, thiserror::Error)]
#[error("{path}: found {found}, expected {expected}")]
struct NoSweep {
    path: String,
    found: String,
    expected: &'static str,
}

const NAMES: &str = "runs of Vdbench with their offsets in their names: `offset=512` or `rd_0512`";

/// A run of the file.
struct NamedRun<'a> {
    name: &'a str,
    rows: Vec<&'a DeviceRow>,
}

/// Judges the sweep that a file holds.
///
/// # Errors
/// When the file holds other results, or its runs differ in more than their offsets.
pub fn judge(path: &str, series: &Series) -> Result<Sweep, Failure> {
    let refused = |found: String, expected: &'static str| {
        Failure::failed(&NoSweep {
            path: path.to_owned(),
            found,
            expected,
        })
        .with_help("to compare two measurements, name two files: BEFORE and AFTER")
    };
    if series.tool != SeriesTool::Vdbench {
        return Err(refused(
            format!("results of {}", series.tool.title()),
            NAMES,
        ));
    }
    let runs = runs_of(series);
    let names: Vec<&str> = runs.iter().map(|run| run.name).collect();
    let Some(offsets) = offsets_of(&names) else {
        return Err(refused(format!("runs {}", names.join(", ")), NAMES));
    };
    if let Some(limited) = runs
        .iter()
        .find(|run| run.rows.iter().any(|row| row.is_limited))
    {
        return Err(refused(
            format!("run {} with a limit on its rate", limited.name),
            "runs without a limit: iorate=max",
        ));
    }
    let lengths: BTreeSet<u64> = runs
        .iter()
        .flat_map(|run| &run.rows)
        .filter_map(|row| io_bytes(row))
        .collect();
    let (1, Some(&len_bytes)) = (lengths.len(), lengths.first()) else {
        return Err(refused(
            format!("{} lengths of I/O", lengths.len()),
            "one length of I/O in all runs",
        ));
    };
    let measured: Vec<OffsetRun> = runs
        .iter()
        .zip(&offsets)
        .map(|(run, offset)| OffsetRun {
            offset: *offset,
            rates: run.rows.iter().map(|row| row.per_second()).collect(),
        })
        .collect();
    Ok(Sweep {
        target: path.to_owned(),
        ops: operations(&runs),
        len_bytes,
        unit_bytes: len_bytes,
        verdict: series::judge(&measured, len_bytes),
        offsets: measured,
    })
}

fn runs_of(series: &Series) -> Vec<NamedRun<'_>> {
    let mut runs: Vec<NamedRun<'_>> = Vec::new();
    for (name, row) in series.reports.iter().flat_map(|report| &report.rows) {
        match runs.iter_mut().find(|run| run.name == name) {
            Some(run) => run.rows.push(row),
            None => runs.push(NamedRun {
                name,
                rows: vec![row],
            }),
        }
    }
    runs
}

/// Offsets in bytes, in the order of the names; `None` where a name holds none or all are equal.
fn offsets_of(names: &[&str]) -> Option<Vec<u64>> {
    let stated: Option<Vec<u64>> = names.iter().map(|name| stated_offset(name)).collect();
    let offsets = stated.or_else(|| numbered_offsets(names))?;
    let distinct: BTreeSet<u64> = offsets.iter().copied().collect();
    (distinct.len() > 1).then_some(offsets)
}

/// `512` of `offset=0512`.
fn stated_offset(name: &str) -> Option<u64> {
    let (_, behind) = name.split_once("offset=")?;
    let digits = behind
        .split(|letter: char| !letter.is_ascii_digit())
        .next()?;
    digits.parse().ok()
}

/// 512 of `rd_0512`: names with one prefix, a number of equal width behind it, and whole sectors in all of them.
fn numbered_offsets(names: &[&str]) -> Option<Vec<u64>> {
    const DIGITS_MIN: usize = 4;
    let prefix_of = |name: &str| {
        name.trim_end_matches(|letter: char| letter.is_ascii_digit())
            .len()
    };
    let first = names.first()?;
    let prefix = &first[..prefix_of(first)];
    names
        .iter()
        .map(|name| {
            let digits = name.strip_prefix(prefix)?;
            let is_number = digits.len() == first.len() - prefix.len()
                && digits.len() >= DIGITS_MIN
                && digits.bytes().all(|byte| byte.is_ascii_digit());
            let offset: u64 = is_number.then(|| digits.parse().ok())??;
            offset.is_multiple_of(SECTOR).then_some(offset)
        })
        .collect()
}

/// Mean length of the I/O of a row; `None` without I/O.
fn io_bytes(row: &DeviceRow) -> Option<u64> {
    let rate = row.per_second();
    let mean = row.bytes_per_second()? / rate;
    // Rates and bytes are rounded to two digits behind the point, and lengths are whole sectors.
    (rate > 0.0 && mean.is_finite()).then(|| (mean / SECTOR as f64).round() as u64 * SECTOR)
}

fn operations(runs: &[NamedRun<'_>]) -> &'static str {
    let has = |op: usize| {
        let mut rows = runs.iter().flat_map(|run| &run.rows);
        rows.any(|row| row.data[op].per_second.value > 0.0)
    };
    match [has(0), has(1)] {
        [true, false] => "reads",
        [false, true] => "writes",
        _ => "reads and writes",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_runs_have_offsets() {
        assert_eq!(
            offsets_of(&["offset=0000", "offset=0512", "offset=4096"]),
            Some(vec![0, 512, 4096])
        );
        assert_eq!(
            offsets_of(&["rd_0000", "rd_0512", "rd_1024"]),
            Some(vec![0, 512, 1024])
        );
        for names in [
            &["rd1", "rd2"][..],
            &["rd_0001", "rd_0002"],
            &["rd_0512", "other_1024"],
            &["rd_512", "rd_1024"],
            &["offset=512", "offset=512"],
            &["run"],
            &[],
        ] {
            assert_eq!(offsets_of(names), None, "{names:?}");
        }
    }
}
