//! Runs of a parameter file or a study, one after the other, and their joint conclusion.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_load::job_file::JobFileError;
use plumb_load::result::bench as result;
use plumb_load::series::{self, Average, Run, Series, Targets};
use plumb_load::{Ended, RunOutcome, fio, run as load, vdbench};
use plumb_report::bench as report;

use super::measured::{BenchCourse, is_whole, shown_average, shown_run};
use super::traced::{self, TraceFile};
use super::{IntervalLines, medium, refused, show, sweep, targets};
use crate::cli::Bench;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::signals::stop_flag;

/// How often a pause looks whether it is to end.
const TICK: Duration = Duration::from_millis(50);

/// Runs a parameter file of Vdbench.
///
/// # Errors
/// When it asks for an impossible run, or a target cannot be loaded.
pub fn vdbench(args: &Bench, path: &Path) -> Result<Exit, Failure> {
    files(
        args,
        vdbench::read(path, &args.set).map_err(not_understood)?,
        path,
    )
}

/// Runs a job file of fio.
///
/// # Errors
/// As [`vdbench()`].
pub fn fio(args: &Bench, path: &Path) -> Result<Exit, Failure> {
    files(args, fio::read(path).map_err(not_understood)?, path)
}

fn not_understood(error: JobFileError) -> Failure {
    match error {
        JobFileError::Unreadable { .. } => Failure::failed(&error),
        error => Failure::usage(error.to_string()),
    }
}

fn files(args: &Bench, mut series: Series, path: &Path) -> Result<Exit, Failure> {
    for run in &mut series.runs {
        // A run without its own time gets the given one; otherwise the earlier of the two ends counts.
        run.is_one_pass &= args.duration.is_none() || run.elapsed.is_some();
        run.elapsed = args.duration.or(run.elapsed);
        run.interval = args.interval.unwrap_or(run.interval);
        run.warmup = args.warmup.unwrap_or(run.warmup);
    }
    let mut lines = IntervalLines::new(args);
    let made = Made::all(args, &series, &[path.to_owned()], &mut lines)?;
    let sweep = series::offsets(&series).map(|found| sweep::judge(&made, &series, found.unit));
    let exit = exit(&made, sweep.as_ref());
    let (runs, mut notes) = (made.shown, series.notes);
    notes.extend(made.notes);
    show(
        args,
        &result::Bench {
            runs,
            sweep,
            study: None,
            notes,
        },
        exit,
        lines,
    )?;
    Ok(exit)
}

/// Runs that were made.
#[derive(Default)]
pub struct Made {
    pub shown: Vec<result::BenchRun>,
    /// Rates of each run, interval by interval.
    pub rates: Vec<Vec<f64>>,
    pub notes: Vec<String>,
    /// Whether I/O failed, or a target went away.
    pub is_broken: bool,
    /// Whether a signal ended it.
    pub is_stopped: bool,
    /// Whether no target of a run answered any more: no later run would measure anything.
    is_dead: bool,
}

impl Made {
    /// Opens the targets and makes all runs; a signal ends the series and keeps the finished runs.
    pub fn all(
        args: &Bench,
        series: &Series,
        inputs: &[PathBuf],
        lines: &mut IntervalLines,
    ) -> Result<Made, Failure> {
        let outputs: Vec<_> = args.html.iter().map(PathBuf::as_path).collect();
        let paths = Targets::needed(series)
            .into_iter()
            .map(|needed| needed.path);
        let inputs: Vec<PathBuf> = inputs.iter().cloned().chain(paths).collect();
        output::may_write(&inputs, &outputs)?;
        let traces = args
            .trace
            .as_deref()
            .map(|path| traced::names(path, series.runs.len()))
            .unwrap_or_default();
        traces
            .iter()
            .try_for_each(|path| output::must_be_new(path))?;
        let targets = targets::open_series(args, series)?;
        // Mistakes are reported before anything is loaded.
        for run in &series.runs {
            series::plan(run, &targets, run.rate.limit(None), args.seed).map_err(unfit)?;
        }
        let stop = stop_flag()?;
        let mut made = Made::default();
        for target in targets.iter() {
            made.notes.extend(
                medium::cached(target)
                    .into_iter()
                    .chain(medium::unwritten(target)),
            );
        }
        let mut last_max = None;
        for (at, run) in series.runs.iter().enumerate() {
            let many = series.runs.len();
            let heading = report::run_heading(at + 1, many, &title(run), lines.columns);
            lines.put(&heading)?;
            let trace = traces
                .get(at)
                .map(|path| TraceFile::begin(path))
                .transpose()?;
            let rate = made.one(
                args,
                run,
                &targets,
                run.rate.limit(last_max),
                trace,
                (&stop, lines),
            )?;
            if run.rate == series::Rate::Max {
                last_max = Some(rate);
            }
            if stop.load(Ordering::Relaxed) {
                made.is_stopped = true;
                made.notes.push(format!(
                    "ended by a signal in run {} of {}",
                    at + 1,
                    series.runs.len()
                ));
                break;
            }
            if made.is_dead {
                let (at, many) = (at + 1, series.runs.len());
                made.notes.push(format!(
                    "ended in run {at} of {many}: its targets do not answer any more"
                ));
                break;
            }
            pause(run.pause, &stop);
        }
        Ok(made)
    }

    /// Makes a run; returns its rate.
    fn one(
        &mut self,
        args: &Bench,
        run: &Run,
        targets: &Targets,
        limit: Option<f64>,
        mut trace: Option<TraceFile>,
        (stop, lines): (&AtomicBool, &mut IntervalLines),
    ) -> Result<f64, Failure> {
        let mut plan = series::plan(run, targets, limit, args.seed).map_err(unfit)?;
        plan.engine = args.engine.into();
        let mut course = BenchCourse::new();
        let mut average = Average::default();
        let mut tell = |interval: &plumb_load::IntervalReport<'_>| {
            average.add(
                interval.number,
                interval.jobs,
                interval.length,
                plan.interval,
                interval.is_warmup,
            );
            lines.interval(course.take(interval), &plan, interval);
        };
        let outcome = match &mut trace {
            Some(trace) => load(
                &plan,
                stop,
                &mut tell,
                Some(&mut |batch| trace.write(batch)),
            ),
            None => load(&plan, stop, &mut tell, None),
        };
        lines.end_run()?;
        let outcome = outcome.map_err(refused)?;
        let shown_average = shown_average(&average, &course);
        if let Some(average) = &shown_average {
            lines.put(&(report::average_line(average, lines.columns) + "\n"))?;
        }
        self.remark(run, &outcome);
        if let Some(trace) = trace {
            self.notes.push(trace.finish(outcome.not_traced)?);
        }
        let shown = result::BenchRun {
            name: Some(title(run)),
            average: shown_average,
            ..shown_run(&plan, &outcome, course)
        };
        let rate = shown.total.ios_per_second;
        self.shown.push(shown);
        self.rates.push(average.rates().to_vec());
        Ok(rate)
    }

    /// Takes note of failures.
    fn remark(&mut self, run: &Run, outcome: &RunOutcome) {
        if !outcome.jobs.iter().all(is_whole) {
            self.is_broken = true;
            let title = title(run);
            self.notes.push(format!(
                "{title}: I/O failed, or a target went away: rates are those of the others"
            ));
        }
        let is_dead = |ended: Ended| {
            matches!(
                ended,
                Ended::OnlyFailures(_) | Ended::TargetGone(_) | Ended::Stuck
            )
        };
        self.is_dead = outcome.jobs.iter().all(|job| is_dead(job.ended));
        let late: u64 = outcome.jobs.iter().map(|job| job.not_issued).sum();
        if late > 0 {
            let (title, late) = (title(run), plumb_geometry::group_digits(late));
            self.notes.push(format!(
                "{title}: {late} I/O were due and found no free slot: the target could not follow"
            ));
        }
    }
}

/// Name of a run, with the settings that differ.
fn title(run: &Run) -> String {
    let overrides = run
        .overrides
        .iter()
        .map(|(name, value)| format!(" {name}={value}"));
    std::iter::once(run.name.clone()).chain(overrides).collect()
}

fn unfit(error: series::SeriesError) -> Failure {
    Failure::usage(error.to_string())
}

fn pause(time: Duration, stop: &AtomicBool) {
    let began = Instant::now();
    while began.elapsed() < time && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(TICK.min(time));
    }
}

fn exit(made: &Made, sweep: Option<&result::Sweep>) -> Exit {
    let has_any = made.shown.iter().any(|run| run.total.ios > 0);
    match sweep.map(sweep::exit) {
        _ if !has_any => Exit::Failed,
        Some(Exit::Findings) => Exit::Findings,
        _ if made.is_broken => Exit::Unknown,
        Some(exit) => exit,
        None => Exit::Clean,
    }
}
