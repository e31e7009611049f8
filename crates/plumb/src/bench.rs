//! `plumb bench`: loads devices and files, and says how fast they are.

use std::time::Duration;

use plumb_load::{
    Hits, Job, LoadError, LoadPlan, Pace, RunOutcome, Spread, Starts, Workload, check, run as load,
};
use plumb_report::bench as report;

use crate::cli::{Bench, Study};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::signals::stop_flag;

mod cpu;
pub mod measured;
pub mod medium;
mod series;
mod study;
pub mod sweep;
pub mod targets;
pub mod traced;

use measured::{BenchCourse, is_whole, shown_run};
use targets::Opened;
use traced::TraceFile;

/// How long to measure where nothing says.
const DURATION: Duration = Duration::from_secs(30);
/// How long an interval is where nothing says.
const INTERVAL: Duration = Duration::from_secs(1);

/// Runs the command.
///
/// # Errors
/// When a target cannot be loaded, or a file not be written.
pub fn run(args: &Bench) -> Result<Exit, Failure> {
    match (&args.vdbench, &args.fio, args.study) {
        (Some(path), ..) => series::vdbench(args, path),
        (_, Some(path), _) => series::fio(args, path),
        (.., Some(Study::Gather)) => study::gather(args),
        _ => by_flags(args),
    }
}

/// One run, as the flags say.
fn by_flags(args: &Bench) -> Result<Exit, Failure> {
    let outputs: Vec<_> = args.html.iter().map(std::path::PathBuf::as_path).collect();
    output::may_write(&args.targets, &outputs)?;
    let workload = workload(args)?;
    let opened = targets::open(args, workload.writes())?;
    let stop = stop_flag()?;
    let plan = plan(args, &workload, &opened);
    check(&plan).map_err(refused)?;
    let mut trace = args.trace.as_deref().map(TraceFile::begin).transpose()?;
    let is_live = !args.json;
    let columns = columns();
    if is_live {
        output::print(&report::heading(columns))?;
    }
    let mut course = BenchCourse::new();
    let mut printed = Ok(());
    let outcome = {
        let mut tell = |interval: &plumb_load::IntervalReport<'_>| {
            let shown = course.take(interval);
            if is_live && printed.is_ok() {
                printed = output::print(&(report::interval_line(shown, columns) + "\n"));
            }
        };
        match &mut trace {
            Some(trace) => load(
                &plan,
                &stop,
                &mut tell,
                Some(&mut |batch| trace.write(batch)),
            ),
            None => load(&plan, &stop, &mut tell, None),
        }
    };
    printed?;
    let outcome = outcome.map_err(refused)?;
    let mut notes = notes(&opened, &outcome);
    if let Some(trace) = trace {
        notes.push(trace.finish(outcome.not_traced)?);
    }
    let shown = report::Bench {
        runs: vec![shown_run(&plan, &outcome, course)],
        sweep: None,
        study: None,
        notes,
    };
    show(args, &shown)?;
    Ok(exit(&outcome))
}

/// The columns for the width of the terminal.
fn columns() -> report::IntervalColumns {
    report::IntervalColumns::within(output::columns(&std::io::stdout()))
}

fn show(args: &Bench, bench: &report::Bench) -> Result<(), Failure> {
    if let Some(path) = &args.html {
        output::write_file(path, plumb_report::html::benched(bench).as_bytes())?;
    }
    let text = match args.json {
        true => {
            report::json(&crate::this_run::now(), bench).map_err(|error| Failure::failed(&error))?
                + "\n"
        }
        false => report::summary(bench, output::color(args.color)),
    };
    output::print(&text)
}

/// The workload for each target.
fn workload(args: &Bench) -> Result<Workload, Failure> {
    let writes = args.read < 100;
    if writes && !args.write {
        return Err(Failure::usage(format!(
            "--read {}: found writes, expected --write with them",
            args.read
        ))
        .with_help("writes destroy the data on the targets: add --write if you want that"));
    }
    if args.write && !writes {
        return Err(Failure::usage(
            "--write: found reads alone, expected --read with less than 100",
        )
        .with_help("for writes alone, add --read 0"));
    }
    let spread = args
        .zipf
        .map_or(Spread::Uniform, |theta| Spread::Zipf { theta });
    let starts = match (args.sequential, args.stride, args.random) {
        (_, Some(stride), _) => Starts::Strided {
            stride_bytes: stride.0,
        },
        (true, ..) | (.., 0) => Starts::Sequential {
            from_anywhere: false,
        },
        (.., 100) => Starts::Random(spread),
        (.., percent) => Starts::Seeks { percent, spread },
    };
    Ok(Workload {
        read_percent: args.read,
        lengths: args.size.clone(),
        starts,
        align_bytes: args.align.map(|align| align.0),
        shift_bytes: args.shift.unwrap_or(0),
        range: args.range,
        hits: args
            .hit_area
            .zip(args.hit_percent)
            .map(|(area, percent)| Hits {
                area_bytes: area.0,
                read_percent: percent,
                write_percent: percent,
            }),
    })
}

fn plan<'a>(args: &Bench, workload: &Workload, opened: &'a [Opened]) -> LoadPlan<'a> {
    let pace = match (args.rate, args.open) {
        (None, _) => Pace::Max,
        (Some(per_second), None) => Pace::Closed { per_second },
        (Some(per_second), Some(arrivals)) => Pace::Open {
            per_second,
            arrivals: arrivals.into(),
        },
    };
    let job = |Opened { target, may_write }: &'a Opened| Job {
        may_write: may_write.as_ref(),
        threads: args.threads,
        depth: args.depth,
        batch: args.batch,
        pace,
        ios_max: args.ios,
        ..Job::new(target, workload.clone())
    };
    // A number of I/O is an end of its own.
    let duration = args
        .duration
        .or_else(|| args.ios.is_none().then_some(DURATION));
    LoadPlan {
        warmup: args.warmup.unwrap_or_default(),
        duration,
        interval: args.interval.unwrap_or(INTERVAL),
        seed: args.seed,
        engine: args.engine.into(),
        ..LoadPlan::new(opened.iter().map(job).collect(), DURATION)
    }
}

/// Notes that a reader of the numbers must know.
fn notes(opened: &[Opened], outcome: &RunOutcome) -> Vec<String> {
    let mut notes = Vec::new();
    for Opened { target, may_write } in opened {
        notes.extend(medium::cached(target));
        // Blocks that were written meanwhile are not the ones that were read.
        notes.extend(medium::unwritten(target).filter(|_| may_write.is_none()));
    }
    if outcome.jobs.iter().any(|job| job.tally.failed() > 0) {
        notes.push("some I/O failed: times and rates are those of the others".to_owned());
    }
    notes
}

fn exit(outcome: &RunOutcome) -> Exit {
    match (
        outcome.jobs.iter().all(is_whole),
        outcome.jobs.iter().any(|job| job.tally.ios() > 0),
    ) {
        (true, _) => Exit::Clean,
        (false, true) => Exit::Unknown,
        (false, false) => Exit::Failed,
    }
}

fn refused(error: LoadError) -> Failure {
    match error {
        LoadError::Workload(error) => Failure::usage(error.to_string()),
        error => Failure::failed(&error),
    }
}
