//! `plumb watch`: the I/O of this host's disks, of a recording or of a history, interval by interval.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_capture::{ALIGNMENTS, BlockWatch, CaptureError, Filter, Options, OwnReads, Process};
use plumb_diagnose::{Analysis, Questions, analyze};
use plumb_geometry::Grid;
use plumb_model::result::watch::{Apart, IntervalSender, SeenAgain};
use plumb_profile::Owner;
use plumb_quoting::Command;
use plumb_report::json::{self, WholeTime};
use plumb_report::text::{self, WatchInterval};

use self::app::App;
use self::feed::{FedInterval, Feed};
use self::recorded::Recorded;
use self::stored::Stored;
use crate::cli::Watch;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::history::span::{self, DeviceSpan};
use crate::signals::stop_flag;
use crate::{output, privilege, typed};

mod app;
mod below;
mod feed;
mod named;
mod notes;
mod recorded;
mod screen;
mod stored;
mod terminal;
mod whole;

pub(crate) use named::{disk_at, tell_of_processes};
use notes::notes;
pub(crate) use whole::Whole;

/// How often a wait looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(50);

/// Runs the command.
///
/// # Errors
/// When nothing can be watched, or a requested file could not be written.
pub fn run(args: &Watch) -> Result<Exit, Failure> {
    args.save
        .as_deref()
        .map_or(Ok(()), |path| output::may_write(&[], &[path]))?;
    let questions = Questions {
        grids: args.grids(),
        command: args
            .from
            .as_ref()
            .map(|path| analyzing(path, args.state_dir.as_deref())),
        ..Questions::default()
    };
    let ended = stop_flag()?;
    let (mut feed, mut whole) = match &args.from {
        Some(path) => match DeviceSpan::of_path(path) {
            Some(span) => open_history(args, path, &span?)?,
            None => open_recording(args, path, &questions)?,
        },
        None => attach(args, &questions)?,
    };
    let began = Instant::now();
    let on_screen = !args.json
        && !args.plain
        && std::io::stdout().is_terminal()
        && std::io::stdin().is_terminal()
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let shown = if on_screen {
        terminal::run(args, &mut feed, &mut whole, &ended)
    } else {
        print_intervals(args, &mut feed, &mut whole, &questions, &ended)
    };
    let span = match &args.from {
        Some(_) => Duration::from_secs_f64(whole.seconds),
        None => began.elapsed(),
    };
    // The counts are kept even if they could not be shown.
    let exit = whole.end(args, &questions, span, on_screen);
    shown.and(exit)
}

/// Begins to watch this host.
fn attach(args: &Watch, questions: &Questions) -> Result<(Feed, Whole), Failure> {
    let options = options(args, questions)?;
    let mut block = BlockWatch::attach(&options).map_err(refused)?;
    let mut whole = Whole::new(&block, &options.filter);
    if args.app {
        whole.app = Some(App::attach(&options.devices, args.sync).map_err(refused)?);
        // The time of writing out the cache does not count.
        block.read();
    }
    // Looking at mapped files of processes, and writing out the cache, takes privileges to the end.
    if !args.app {
        privilege::drop_all(args.save.as_slice())?;
    }
    Ok((Feed::live(block), whole))
}

/// The command that analyzes the same I/O.
fn analyzing(path: &Path, state_dir: Option<&Path>) -> Command {
    let command = Command::new("plumb analyze").path(path);
    match state_dir {
        Some(folder) => command.option("--state-dir", folder),
        None => command,
    }
}

fn open_history(args: &Watch, path: &Path, span: &DeviceSpan) -> Result<(Feed, Whole), Failure> {
    let is_part =
        !args.op.is_empty() || args.pid.is_some() || args.comm.is_some() || args.cgroup.is_some();
    if is_part || !args.devices.is_empty() {
        return Err(Failure::usage(format!(
            "{} names the device, and the history has all of its I/O together: found another DEVICE, --op, --pid or --comm",
            path.display()
        ))
        .with_help("`plumb history senders` lists the processes of a time"));
    }
    let state_dir = span::folder(args.state_dir.as_deref())?;
    let stored = Stored::open(span, &state_dir)?;
    let files = ["history.db", "recent.db"].map(|file| state_dir.join(file));
    privilege::drop_to(&files, args.save.as_slice())?;
    let whole = Whole::of_history(path, &stored);
    Ok((Feed::Stored(Box::new(stored)), whole))
}

fn open_recording(
    args: &Watch,
    path: &Path,
    questions: &Questions,
) -> Result<(Feed, Whole), Failure> {
    if args.json {
        return Err(Failure::usage(format!(
            "--json: found the recording {}, expected this host or history:DEVICE@FROM..TO",
            path.display()
        ))
        .with_help("`plumb analyze --json` reads recordings"));
    }
    let filter = filter(args);
    let settings = questions.settings();
    let disks = args.devices.clone();
    let recorded = Recorded::open(path, disks, filter.clone(), &settings)?;
    privilege::drop_all(args.save.as_slice())?;
    let whole = Whole::of_recording(path, &recorded, &filter);
    Ok((Feed::Recorded(Box::new(recorded)), whole))
}

fn filter(args: &Watch) -> Filter {
    Filter {
        ops: args.op.clone(),
        pid: args.pid,
        comm: args.comm.clone(),
        cgroup: args.cgroup.clone(),
    }
}

fn options(args: &Watch, questions: &Questions) -> Result<Options, Failure> {
    let layers = args.layer.into();
    let command = Command::new("plumb watch");
    let devices = args
        .devices
        .iter()
        .map(|name| disk_at(name, layers, &command));
    tell_of_processes(args.pid.as_slice());
    Ok(Options {
        devices: devices.collect::<Result<_, Failure>>()?,
        tables: questions.settings(),
        layers,
        filter: filter(args),
        own_reads: OwnReads::LeftOut,
        command_lines: true,
        ..Options::default()
    })
}

fn print_intervals(
    args: &Watch,
    feed: &mut Feed,
    whole: &mut Whole,
    questions: &Questions,
    ended: &AtomicBool,
) -> Result<(), Failure> {
    let began = Instant::now();
    let mut next = began + args.interval;
    for number in 1.. {
        // A recording is printed as fast as it can be read.
        if feed.is_live() {
            wait_until(next, ended, || feed.keep_up());
        }
        let is_last = ended.load(Ordering::Relaxed) || args.count == Some(number);
        let fed = feed.next(args.interval, whole, is_last)?;
        let span = match feed.is_live() {
            true => began.elapsed(),
            false => Duration::from_secs_f64(whole.seconds),
        };
        let told = (fed.is_last || !args.json).then(|| whole.summary(args, questions, span));
        let is_read = show(args, &fed, whole, (questions, told.as_ref()))?;
        if fed.is_last || !is_read {
            break;
        }
        next = following(next, args.interval);
    }
    Ok(())
}

/// When the next interval ends: those that went by while the program was stopped are one.
fn following(deadline: Instant, interval: Duration) -> Instant {
    let next = deadline + interval;
    let now = Instant::now();
    if next > now { next } else { now + interval }
}

/// Waits, unless it is to end; meanwhile repeats the work that cannot wait until then.
pub(crate) fn wait_until(deadline: Instant, ended: &AtomicBool, mut meanwhile: impl FnMut()) {
    while !ended.load(Ordering::Relaxed) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(GLANCE));
        meanwhile();
    }
}

/// Why the kernel gives no account of its I/O.
pub fn refused(error: CaptureError) -> Failure {
    match error {
        CaptureError::NotPermitted => Failure::not_permitted(&error, typed::as_root()),
        CaptureError::NoDevice(_) | CaptureError::NoCgroup { .. } => {
            Failure::missing(error.to_string())
        }
        CaptureError::Types(_) | CaptureError::Refused { .. } | CaptureError::NoWay { .. } => {
            let release = rustix::system::uname();
            let release = release.release().to_string_lossy();
            match is_before_atomics(&release) {
                true => Failure::failed(&error).with_help(format!(
                    "this kernel is Linux {release}; record, watch --app and watch --cgroup need {}.{} or later. plumb watch and plumb \
                     diagnose work on it",
                    WITH_ATOMICS.0, WITH_ATOMICS.1
                )),
                false => Failure::failed(&error),
            }
        }
        _ => Failure::failed(&error),
    }
}

/// The first Linux whose BPF programs have atomic operations that return a value.
const WITH_ATOMICS: (u32, u32) = (5, 12);

/// Whether a release, as in `5.10.0-39-cloud-amd64`, is an earlier one. One that cannot be read is not.
fn is_before_atomics(release: &str) -> bool {
    let mut numbers = release
        .split(|letter: char| !letter.is_ascii_digit())
        .map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < WITH_ATOMICS,
        _ => false,
    }
}

/// Prints an interval; tells whether anybody reads it.
fn show(
    args: &Watch,
    fed: &FedInterval,
    whole: &Whole,
    (questions, told): (&Questions, Option<&WholeTime>),
) -> Result<bool, Failure> {
    let reading = &fed.reading;
    let devices: Vec<Analysis> = reading
        .profiles
        .iter()
        .filter(|profile| profile.has_io())
        .map(|profile| analyze(profile, None, questions))
        .collect();
    let grid = questions
        .grids()
        .first()
        .map_or(Grid::ASSUMED, |(grid, _)| *grid);
    let senders: Vec<IntervalSender<'_>> = reading
        .processes
        .iter()
        .map(|process| sender(process, &reading.seen_again, &grid))
        .collect();
    let mut notes: Vec<String> = notes(reading, &whole.filter);
    notes.extend(fed.notes.iter().cloned());
    let seen_again: Vec<SeenAgain<'_>> = reading
        .seen_again
        .iter()
        .map(|(device, on)| SeenAgain { device, on })
        .collect();
    let filter = whole.filter.text();
    let apart = reading.misses.iter();
    let apart: Vec<Apart<'_>> = apart
        .map(|(device, misses)| Apart { device, misses })
        .collect();
    let seconds = fed.seconds;
    let heading = format!("{}, {seconds:.1} s", fed.time);
    let interval = WatchInterval {
        heading,
        until: fed.position.as_ref().map(|_| fed.time.as_str()),
        verdict: told.map(|whole| &whole.verdict),
        devices: &devices,
        senders: &senders,
        apart: &apart,
        seen_again: &seen_again,
        filter: filter.as_deref(),
        notes: &notes,
        app: whole.app.as_ref().map(|app| &app.last),
    };
    let shown = if args.json {
        let run = crate::this_run::now();
        let line = json::watch(&run, (seconds, told), &interval);
        line.map_err(|error| Failure::failed(&error))? + "\n"
    } else {
        output::drawn(text::interval(&interval, output::paper(args.color)))
    };
    output::print_if_read(&shown)
}

/// The I/O of a process, with the share that starts off a grid.
pub(crate) fn sender<'a>(
    process: &'a Process,
    seen_again: &BTreeMap<String, Vec<String>>,
    grid: &Grid,
) -> IntervalSender<'a> {
    IntervalSender {
        device: &process.device,
        comm: &process.comm,
        pid: process.pid,
        cgroup: process.cgroup.as_deref(),
        owner: process.cgroup.as_deref().and_then(Owner::of_cgroup),
        command_line: process.command_line.as_deref(),
        ios: process.ios,
        written_back: process.written_back,
        bytes: process.bytes,
        threads: process.threads,
        misaligned: misaligned(process, grid),
        is_seen_again: seen_again.contains_key(&process.disk),
    }
}

/// I/O of a process that start off a grid; `None` for a grid that alignments do not judge, and for I/O of a history, which has no
/// alignments of a process.
pub(crate) fn misaligned(process: &Process, grid: &Grid) -> Option<u64> {
    let is_known = process.bytes == 0 || process.by_alignment.iter().any(|ios| *ios > 0);
    let power = alignment_power(grid).filter(|_| is_known);
    power.map(|power| process.misaligned(power))
}

/// The power of two of a grid in sectors. Starts are counted by the power of two that divides them, which judges grids of
/// a power of two at offset 0 alone.
fn alignment_power(grid: &Grid) -> Option<usize> {
    let sectors = grid.granularity().0 / 512;
    let is_counted = grid.offset().0 == 0 && sectors.is_power_of_two();
    let power = sectors.trailing_zeros() as usize;
    (is_counted && power < ALIGNMENTS).then_some(power)
}

#[cfg(test)]
mod tests {
    use super::is_before_atomics;

    #[test]
    fn releases_are_compared_by_number() {
        for release in ["5.10.0-39-cloud-amd64", "5.11.22", "4.19.0", "5.4"] {
            assert!(is_before_atomics(release), "{release}");
        }
        for release in ["5.12.0", "5.100.1", "6.1.0-1-amd64", "10.2", "x", ""] {
            assert!(!is_before_atomics(release), "{release}");
        }
    }
}
