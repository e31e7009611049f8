//! `plumb watch`: the I/O of this host's disks, interval by interval.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_capture::{BlockWatch, CaptureError, Filter, Misses, Options, Process, Reading};
use plumb_diagnose::{Analysis, Questions, analyze};
use plumb_geometry::Grid;
use plumb_quoting::Command;
use plumb_report::json::{self, WholeTime};
use plumb_report::text::{self, Apart, SeenAgain, Sender, WatchInterval};

use self::app::App;
use crate::cli::Watch;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::signals::stop_flag;
use crate::{output, privilege, typed};

mod app;
mod below;
mod named;
mod notes;
mod screen;
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
        ..Questions::default()
    };
    let options = options(args, &questions)?;
    let ended = stop_flag()?;
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
    let began = Instant::now();
    let on_screen = !args.json
        && !args.plain
        && std::io::stdout().is_terminal()
        && std::io::stdin().is_terminal();
    let shown = if on_screen {
        terminal::run(args, &mut block, &mut whole, &ended)
    } else {
        print_intervals(args, &mut block, &mut whole, &questions, &ended)
    };
    // The counts are kept even if they could not be shown.
    let exit = whole.end(args, &questions, began.elapsed(), on_screen);
    shown.and(exit)
}

fn options(args: &Watch, questions: &Questions) -> Result<Options, Failure> {
    let layers = args.layer.into();
    let command = Command::new("plumb watch");
    let devices = args
        .devices
        .iter()
        .map(|name| disk_at(name, layers, &command));
    tell_of_processes(args.pid.as_slice());
    let (ops, pid) = (args.op.clone(), args.pid);
    let filter = Filter {
        ops,
        pid,
        comm: args.comm.clone(),
        cgroup: args.cgroup.clone(),
    };
    Ok(Options {
        devices: devices.collect::<Result<_, Failure>>()?,
        modulus_bytes: questions.modulus_bytes(),
        layers,
        filter,
        ..Options::default()
    })
}

fn print_intervals(
    args: &Watch,
    block: &mut BlockWatch,
    whole: &mut Whole,
    questions: &Questions,
    ended: &AtomicBool,
) -> Result<(), Failure> {
    let began = Instant::now();
    let mut last = began;
    let mut next = last + args.interval;
    for number in 1.. {
        wait_until(next, ended, || block.keep_up());
        let is_last = ended.load(Ordering::Relaxed) || args.count == Some(number);
        whole.before_reading(block, is_last);
        let reading = block.read();
        whole.add(&reading);
        let now = Instant::now();
        let span = now - std::mem::replace(&mut last, now);
        let told = (is_last && args.json).then(|| whole.summary(args, questions, began.elapsed()));
        let is_read = show(args, &reading, whole, (questions, told.as_ref()), span)?;
        if is_last || !is_read {
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
        _ => Failure::failed(&error),
    }
}

/// Prints an interval; tells whether anybody reads it.
fn show(
    args: &Watch,
    reading: &Reading,
    whole: &Whole,
    (questions, told): (&Questions, Option<&WholeTime>),
    span: Duration,
) -> Result<bool, Failure> {
    let devices: Vec<Analysis> = reading
        .profiles
        .iter()
        .filter(|profile| profile.ios() > 0)
        .map(|profile| analyze(profile, None, questions))
        .collect();
    let grid = questions
        .grids()
        .first()
        .map_or(Grid::ASSUMED, |(grid, _)| *grid);
    let senders: Vec<Sender<'_>> = reading
        .processes
        .iter()
        .map(|process| sender(process, &reading.seen_again, &grid))
        .collect();
    let notes: Vec<String> = notes(reading, &whole.filter);
    let seen_again: Vec<SeenAgain<'_>> = reading
        .seen_again
        .iter()
        .map(|(device, on)| SeenAgain { device, on })
        .collect();
    let filter = whole.filter.text();
    let apart: Vec<Apart<'_>> = reading.misses.iter().map(apart).collect();
    let run = crate::this_run::now();
    let seconds = span.as_secs_f64();
    let heading = format!("{}, {seconds:.1} s", run.time);
    let interval = WatchInterval {
        heading,
        devices: &devices,
        senders: &senders,
        apart: &apart,
        seen_again: &seen_again,
        filter: filter.as_deref(),
        notes: &notes,
        app: whole.app.as_ref().map(|app| &app.last),
    };
    let shown = if args.json {
        let line = json::watch(&run, (seconds, told), &interval);
        line.map_err(|error| Failure::failed(&error))? + "\n"
    } else {
        output::drawn(text::interval(&interval, output::color(args.color)))
    };
    output::print_if_read(&shown)
}

fn apart<'a>((device, misses): (&'a String, &Misses)) -> Apart<'a> {
    let Misses {
        flushes,
        requeues,
        partial_completions,
        unmatched_issues,
        unmatched_completions,
        unplaced,
        splits,
    } = *misses;
    Apart {
        device,
        flushes,
        requeues,
        partial_completions,
        unmatched_issues,
        unmatched_completions,
        unplaced,
        splits,
    }
}

/// The I/O of a process, with the share that starts off a grid.
pub(crate) fn sender<'a>(
    process: &'a Process,
    seen_again: &BTreeMap<String, Vec<String>>,
    grid: &Grid,
) -> Sender<'a> {
    Sender {
        device: &process.device,
        comm: &process.comm,
        pid: process.pid,
        ios: process.ios,
        bytes: process.bytes,
        threads: process.threads,
        misaligned: misaligned(process, grid),
        is_seen_again: seen_again.contains_key(&process.disk),
    }
}

/// I/O of a process are counted by the power of two that divides their start, which tells of these grids only.
fn misaligned(process: &Process, grid: &Grid) -> Option<u64> {
    let sectors = grid.granularity().0 / 512;
    let is_counted = grid.offset().0 == 0 && sectors.is_power_of_two() && sectors <= 1 << 11;
    is_counted.then(|| process.misaligned(sectors.trailing_zeros() as usize))
}
