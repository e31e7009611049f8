//! `plumb bench`: loads devices and files, and says how fast they are.

use std::io::IsTerminal;
use std::time::Duration;

use plumb_load::result::bench as result;
use plumb_load::{
    Hits, IntervalReport, Job, LoadError, LoadPlan, Pace, RunOutcome, Spread, Starts, Workload,
    check, run as load,
};
use plumb_report::bench as report;
use plumb_report::verdict::{Outcome, WhyUnknown};

use crate::cli::{Bench, Study};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::signals::stop_flag;
use crate::status::StatusLine;

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
    let mut lines = IntervalLines::new(args);
    lines.put(&report::heading(lines.columns))?;
    let mut course = BenchCourse::new();
    let outcome = {
        let mut tell = |interval: &IntervalReport<'_>| {
            lines.interval(course.take(interval), &plan, interval);
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
    lines.end_run()?;
    let outcome = outcome.map_err(refused)?;
    let mut notes = notes(&opened, &outcome);
    if let Some(trace) = trace {
        notes.push(trace.finish(outcome.not_traced)?);
    }
    let shown = result::Bench {
        runs: vec![shown_run(&plan, &outcome, course)],
        sweep: None,
        study: None,
        notes,
    };
    let ended = exit(&outcome);
    show(args, &shown, ended, lines)?;
    Ok(ended)
}

/// Prints a line for each interval, and the time left on a terminal. A report that goes elsewhere than to a terminal begins with its
/// verdict, so its lines are held until then.
pub(crate) struct IntervalLines {
    is_live: bool,
    /// Lines that wait for the verdict; `None` on a terminal.
    held: Option<String>,
    columns: report::IntervalColumns,
    line: StatusLine,
    printed: Result<(), Failure>,
}

impl IntervalLines {
    fn new(args: &Bench) -> IntervalLines {
        IntervalLines {
            is_live: !args.json,
            held: (!std::io::stdout().is_terminal()).then(String::new),
            columns: columns(),
            line: StatusLine::new(),
            printed: Ok(()),
        }
    }

    /// Prints lines, or holds them.
    ///
    /// # Errors
    /// When standard output cannot be written.
    fn put(&mut self, text: &str) -> Result<(), Failure> {
        match (&mut self.held, self.is_live) {
            (_, false) => Ok(()),
            (Some(held), true) => {
                held.push_str(text);
                Ok(())
            }
            (None, true) => output::print(&output::drawn(text.to_owned())),
        }
    }

    fn interval(
        &mut self,
        shown: &plumb_load::figures::IntervalFigures,
        plan: &LoadPlan<'_>,
        interval: &IntervalReport<'_>,
    ) {
        if self.is_live && self.printed.is_ok() {
            self.line.clear();
            let words = report::interval_line(shown, self.columns) + "\n";
            self.printed = self.put(&words);
        }
        self.line.show(|| measured::progress(plan, interval, shown));
    }

    /// Takes the time left away.
    ///
    /// # Errors
    /// When an interval could not be printed.
    fn end_run(&mut self) -> Result<(), Failure> {
        self.line.clear();
        std::mem::replace(&mut self.printed, Ok(()))
    }

    /// The held lines, for the report.
    fn take_held(mut self) -> String {
        self.held.take().unwrap_or_default()
    }
}

impl Drop for IntervalLines {
    /// Prints the lines of a benchmark that failed before its report.
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            // The failure itself follows on standard error.
            let _ = output::print(&output::drawn(held));
        }
    }
}

/// The columns for the width of the terminal.
fn columns() -> report::IntervalColumns {
    report::IntervalColumns::within(output::columns(&std::io::stdout()))
}

fn show(
    args: &Bench,
    bench: &result::Bench,
    ended: Exit,
    lines: IntervalLines,
) -> Result<(), Failure> {
    let outcome = outcome(ended);
    if let Some(path) = &args.html {
        output::write_file(path, plumb_report::html::benched(bench).as_bytes())?;
    }
    let text = match args.json {
        true => {
            report::json(&crate::this_run::now(), bench, outcome)
                .map_err(|error| Failure::failed(&error))?
                + "\n"
        }
        false => output::drawn(report::summary(
            bench,
            outcome,
            &lines.take_held(),
            output::paper(args.color),
        )),
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

/// The outcome behind an exit status. Nothing was measured where a benchmark failed.
const fn outcome(ended: Exit) -> Outcome {
    match ended {
        Exit::Clean => Outcome::Clean,
        Exit::Findings => Outcome::Findings,
        _ => Outcome::Unknown(WhyUnknown::ReadInPart),
    }
}

fn refused(error: LoadError) -> Failure {
    match error {
        LoadError::Workload(error) => Failure::usage(error.to_string()),
        error => Failure::failed(&error),
    }
}
