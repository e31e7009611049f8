//! `--study gather`: the gain from threads, order and gathering for an application of small records.

use std::time::Duration;

use plumb_geometry::group_digits;
use plumb_load::result::bench as result;
use plumb_load::series::gather::Gather;

use super::series::Made;
use super::{IntervalLines, show, targets};
use crate::cli::Bench;
use crate::exit::Exit;
use crate::failure::Failure;

/// Time of each run where nothing says.
const DURATION: Duration = Duration::from_secs(2);
/// Interval of the reports of a run, so that its cold start can be left out.
const INTERVAL: Duration = Duration::from_millis(500);

/// Runs the study.
///
/// # Errors
/// When the target cannot be loaded.
pub fn gather(args: &Bench) -> Result<Exit, Failure> {
    let [target] = &args.targets[..] else {
        let found = args.targets.len();
        return Err(Failure::usage(format!(
            "--study gather: found {found} targets, expected one"
        )));
    };
    // A record is no shorter than the target's block.
    let block = u64::from(targets::block_bytes(target)?);
    let study = Gather {
        record_bytes: args.record.0.max(1).next_multiple_of(block),
        threads: args.at_threads.clone(),
        records: args.gather.clone(),
        writes: args.write,
        elapsed: args.duration.unwrap_or(DURATION),
        warmup: args.warmup.unwrap_or_default(),
        interval: args.interval.unwrap_or(INTERVAL),
    };
    let mut lines = IntervalLines::new(args);
    let Made {
        shown,
        mut notes,
        is_broken,
        ..
    } = Made::all(args, &study.series(target), &[], &mut lines)?;
    let rates: Vec<f64> = shown.iter().map(rate).collect();
    if study.record_bytes != args.record.0 {
        let found = group_digits(study.record_bytes);
        notes.push(format!(
            "records of {found} bytes: the target takes no less than {block} bytes at once"
        ));
    }
    let table = table(&study, &rates);
    let ended = match (is_broken, rates.iter().any(|rate| *rate > 0.0)) {
        (false, true) => Exit::Clean,
        (true, true) => Exit::Unknown,
        (_, false) => Exit::Failed,
    };
    show(
        args,
        &result::Bench {
            runs: shown,
            sweep: None,
            study: Some(table),
            notes,
        },
        ended,
        lines,
    )?;
    Ok(ended)
}

fn table(study: &Gather, rates: &[f64]) -> result::Study {
    let ops = if study.writes { "writes" } else { "reads" };
    result::Study {
        record_bytes: study.record_bytes,
        ops,
        rows: study.gains(rates),
    }
}

/// Without the cold start where there is enough behind it.
fn rate(run: &result::BenchRun) -> f64 {
    let average = run.average.as_ref().map(|average| average.ios_per_second);
    average.unwrap_or(run.total.ios_per_second)
}
