//! `plumb replay`: from a trace and a target to I/O, and to their results.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use plumb_geometry::group_digits;
use plumb_load::replay::{
    self as load, Compared, Comparison, Order, Progress, Remap, ReplayError, ReplayVerdict,
    Replayed, Speed, TraceSurvey,
};
use plumb_load::result::replay as result;
use plumb_load::{Ended, LoadError, Target};
use plumb_report::replay as report;
use plumb_stats::Level;
use plumb_trace::{Layer, SourceInfo};

use crate::bench::medium;
use crate::bench::targets::{self, Opened};
use crate::bench::traced::TraceFile;
use crate::cli::Replay;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::notes::notes_of;
use crate::output;
use crate::signals::stop_flag;
use crate::status::{StatusLine, count_of};

mod shown;
mod source;

use source::TraceSource;

/// Runs the command.
///
/// # Errors
/// When the trace cannot be sent, or the target not be loaded.
pub fn run(args: &Replay) -> Result<Exit, Failure> {
    let planned = remap(args)?;
    let outputs: Vec<&Path> = args
        .trace
        .iter()
        .chain(&args.html)
        .map(PathBuf::as_path)
        .collect();
    output::must_be_apart(&[args.trace_in.clone(), args.target.clone()], &outputs)?;
    output::may_write(
        &[],
        &args.html.iter().map(PathBuf::as_path).collect::<Vec<_>>(),
    )?;
    let Opened { target, may_write } = targets::open_one(&args.target, &args.yes, args.write)?;
    let stop = stop_flag()?;
    let replay = load::Replay {
        target: &target,
        may_write: may_write.as_ref(),
        remap: planned.clone(),
        speed: args.speed,
        order: args.depth.map_or(Order::Threads, Order::Depth),
        engine: args.engine.into(),
    };
    let (survey, device, info) = survey(args, &replay)?;
    let mut all = result::Replay {
        trace: &info,
        device,
        target: target.name().to_owned(),
        how: shown::how(&replay),
        replayed: None,
        comparison: None,
        notes: notes(args, &target, &survey, &info),
    };
    let exit = if args.compare {
        let today = load::Replay {
            remap: planned.unmoved(),
            ..replay
        };
        let compared = compare(args, &today, &planned, &stop)?;
        all.notes
            .extend(shown::notes_of_comparison(&compared, args.margin));
        all.comparison = Some(shown::comparison(&compared, args.margin));
        exit_of(&compared)
    } else {
        let (replayed, note) = send(args, &replay, &survey, &stop)?;
        all.notes
            .extend(shown::notes_of_replay(&replayed, replay.order));
        all.notes.extend(note);
        all.replayed = Some(shown::replayed(&replayed, &survey));
        exit_of_replay(&replayed)
    };
    show(args, &all)?;
    Ok(if exit == Exit::Clean && !info.is_whole() {
        Exit::Unknown
    } else {
        exit
    })
}

fn remap(args: &Replay) -> Result<Remap, Failure> {
    let remap = Remap::new(args.layout.clone(), args.shift.unwrap_or(0), args.modulus.0)
        .map_err(refused)?;
    if args.compare && remap.is_unmoved() {
        return Err(Failure::usage(
            "--compare: found nothing to compare with, expected --shift or --layout",
        )
        .with_help("for instance --shift +1s, or --layout 63s=2048s"));
    }
    Ok(remap)
}

/// Looks through the trace, and returns its device.
fn survey(
    args: &Replay,
    replay: &load::Replay<'_>,
) -> Result<(TraceSurvey, String, SourceInfo), Failure> {
    let mut source = TraceSource::open(args)?;
    let surveyed = load::survey(replay, &mut source);
    let device = source.device(args);
    let survey = match surveyed {
        Ok(survey) => survey,
        // The reason of an empty result is better known there; faults of an I/O of another device are no reason.
        Err(LoadError::Replay(error)) => {
            return Err(device.err().unwrap_or_else(|| refused(error)));
        }
        Err(error) => return Err(of_load(error)),
    };
    Ok((survey, device?, source.info().clone()))
}

/// Sends the trace, and reports the fate of a requested file.
fn send(
    args: &Replay,
    replay: &load::Replay<'_>,
    survey: &TraceSurvey,
    stop: &AtomicBool,
) -> Result<(Replayed, Option<String>), Failure> {
    let mut source = TraceSource::open(args)?;
    let mut file = args.trace.as_deref().map(TraceFile::begin).transpose()?;
    let mut line = StatusLine::new();
    let all = survey.counts.sent();
    let mut tell = |progress: &Progress| {
        line.show(|| {
            let sent = count_of(progress.ios, all, "I/O", progress.at);
            format!("{sent}, {} failed", group_digits(progress.failed))
        });
    };
    let sent = match &mut file {
        None => load::replay(replay, survey, &mut source, stop, &mut tell, None),
        Some(file) => load::replay(
            replay,
            survey,
            &mut source,
            stop,
            &mut tell,
            Some(&mut |batch| file.write(batch)),
        ),
    };
    line.clear();
    let replayed = sent.map_err(of_load)?;
    let note = file
        .map(|file| file.finish(replayed.not_traced))
        .transpose()?;
    Ok((replayed, note))
}

fn compare(
    args: &Replay,
    today: &load::Replay<'_>,
    planned: &Remap,
    stop: &AtomicBool,
) -> Result<Compared, Failure> {
    let survey = load::survey(today, &mut TraceSource::open(args)?).map_err(of_load)?;
    let comparison = Comparison {
        pairs: args.pairs,
        margin: args.margin,
        level: Level::P95,
        seed: args.seed,
    };
    let mut line = StatusLine::new();
    let began = Instant::now();
    let mut tell = |pairs: usize| {
        line.show(|| {
            let made = count_of(pairs as u64, args.pairs as u64, "pairs", began.elapsed());
            format!("{made}, fewer if they decide it")
        });
    };
    let mut source = TraceSource::open(args)?;
    let compared = load::compare(
        today,
        planned,
        &survey,
        comparison,
        &mut source,
        stop,
        &mut tell,
    );
    line.clear();
    compared.map_err(of_load)
}

/// Notes that a reader of the numbers must know, for any numbers.
fn notes(args: &Replay, target: &Target, survey: &TraceSurvey, info: &SourceInfo) -> Vec<String> {
    let mut notes: Vec<String> = medium::cached(target).into_iter().collect();
    notes.extend(medium::unwritten(target).filter(|_| !args.write));
    let by_thread = args.depth.is_none();
    if by_thread && survey.timed == 0 {
        notes.push("the trace tells no latencies: no I/O waited for another".to_owned());
    }
    if by_thread && survey.timed > 0 && survey.known_senders == 0 {
        notes.push("the trace tells no senders: its I/O count as one thread's".to_owned());
    }
    if info.completions_only && args.speed != Speed::Max {
        notes.push("the trace has times of completion alone: I/O were due at those".to_owned());
    }
    if info.layers == [Layer::Vfs] {
        notes.push("the trace is of the vfs layer: its starts are those within files".to_owned());
    }
    if !info.is_whole() {
        notes.extend(notes_of(info));
    }
    notes.extend(args.select.note());
    notes
}

fn show(args: &Replay, all: &result::Replay<'_>) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let text = match args.json {
        true => {
            report::json(&crate::this_run::now(), all).map_err(|error| Failure::failed(&error))?
                + "\n"
        }
        false => output::drawn(report::text(all, output::paper(args.color))),
    };
    // A file that could not be written is no reason to keep the answer back.
    let written = args.html.as_ref().map_or(Ok(()), |path| {
        output::write_file(path, plumb_report::html::replayed(all, version).as_bytes())
    });
    output::print(&text)?;
    written
}

fn exit_of(compared: &Compared) -> Exit {
    match compared.verdict {
        ReplayVerdict::Better | ReplayVerdict::NoDifference => Exit::Clean,
        ReplayVerdict::Worse => Exit::Findings,
        ReplayVerdict::Inconclusive(_) => Exit::Unknown,
    }
}

fn exit_of_replay(replayed: &Replayed) -> Exit {
    let is_whole =
        replayed.tally.failed() == 0 && matches!(replayed.ended, Ended::Ios | Ended::Stopped);
    match (is_whole, replayed.tally.ios() + replayed.flushes.count()) {
        (true, _) => Exit::Clean,
        (false, 0) => Exit::Failed,
        (false, _) => Exit::Unknown,
    }
}

fn of_load(error: LoadError) -> Failure {
    match error {
        LoadError::Replay(error) => refused(error),
        LoadError::Workload(error) => Failure::usage(error.to_string()),
        error => Failure::failed(&error),
    }
}

fn refused(error: ReplayError) -> Failure {
    match error {
        ReplayError::Nothing { .. } => Failure::unknown(error.to_string()),
        error => Failure::usage(error.to_string()),
    }
}
