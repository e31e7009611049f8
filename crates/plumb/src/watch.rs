//! `plumb watch`: what the disks of this host receive, interval by interval.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use plumb_capture::{Block, CaptureError, Misses, Options, Process, Reading};
use plumb_diagnose::{Analysis, Diagnosis, Questions, analyze, diagnose};
use plumb_geometry::{Grid, group_digits};
use plumb_profile::codec::{self, Saved};
use plumb_report::text::{Apart, Interval, Sender};
use plumb_report::{Report, Section, json, text};

use crate::cli::Watch;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

mod screen;
mod terminal;

/// How often a wait looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(50);

/// Runs the command.
///
/// # Errors
/// When nothing can be watched, or what was asked for could not be written.
pub fn run(args: &Watch) -> Result<Exit, Failure> {
    args.save.as_deref().map_or(Ok(()), |path| output::may_write(&[], &[path]))?;
    let questions = Questions { grids: args.grids(), ..Questions::default() };
    let devices = args.devices.iter().map(|name| watched(name)).collect::<Result<Vec<u32>, Failure>>()?;
    let options = Options { devices, modulus_bytes: questions.modulus_bytes(), attach: None };
    let ended = Arc::new(AtomicBool::new(false));
    let signals = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP];
    for signal in signals {
        signal_hook::flag::register(signal, ended.clone()).map_err(|error| Failure::failed(&error))?;
    }
    let mut block = Block::attach(&options).map_err(refused)?;
    let mut whole = Whole::new(&block);
    let began = Instant::now();
    let on_screen =
        !args.json && !args.plain && std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    let shown = if on_screen {
        terminal::run(args, &mut block, &mut whole, &ended)
    } else {
        print_intervals(args, &mut block, &mut whole, &questions, &ended)
    };
    // What was counted is kept also where it could not be shown.
    let exit = whole.end(args, &questions, began.elapsed());
    shown.and(exit)
}

/// The number of a disk that makes requests.
fn watched(name: &str) -> Result<u32, Failure> {
    let Some(below) = plumb_capture::handed_on_to(name).map_err(refused)? else {
        return plumb_capture::disk_of(name).map_err(refused);
    };
    let what = format!("{name} hands its I/O on as it comes, and requests are made below it");
    Err(match below.is_empty() {
        true => Failure::unknown(what),
        false => Failure::unknown(what).with_help(format!("run: plumb watch {}", below.join(" "))),
    })
}

fn print_intervals(
    args: &Watch,
    block: &mut Block,
    whole: &mut Whole,
    questions: &Questions,
    ended: &AtomicBool,
) -> Result<(), Failure> {
    let mut last = Instant::now();
    let mut next = last + args.interval;
    for number in 1.. {
        wait_until(next, ended);
        let reading = block.read();
        whole.add(&reading);
        let now = Instant::now();
        let is_read = show(args, &reading, questions, now - std::mem::replace(&mut last, now))?;
        if ended.load(Ordering::Relaxed) || args.count == Some(number) || !is_read {
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

fn wait_until(deadline: Instant, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(GLANCE));
    }
}

fn refused(error: CaptureError) -> Failure {
    match error {
        CaptureError::NotPermitted => {
            let again: Vec<String> = std::env::args().collect();
            Failure::not_permitted(&error, format!("sudo {}", again.join(" ")))
        }
        CaptureError::NoDevice(_) => Failure::usage(error.to_string()),
        _ => Failure::failed(&error),
    }
}

/// What was seen since the beginning.
struct Whole {
    saved: Saved,
    how: &'static str,
    /// Of all readings together, without their profiles.
    missed: Reading,
}

impl Whole {
    fn new(block: &Block) -> Whole {
        Whole { saved: Saved::default(), how: block.attached().words(), missed: Reading::default() }
    }

    fn add(&mut self, reading: &Reading) {
        self.saved.profiles.merge(&reading.profiles);
        self.missed.add_misses(reading);
    }

    fn save(&self, path: &Path) -> Result<(), Failure> {
        let bytes = codec::encode(&self.saved).map_err(|error| Failure::failed(&error))?;
        output::write_file(path, &bytes)
    }

    /// The totals, and how the command ends.
    fn end(mut self, args: &Watch, questions: &Questions, span: Duration) -> Result<Exit, Failure> {
        let ios: u64 = self.saved.profiles.iter().map(plumb_profile::Profile::ios).sum();
        let source = format!("this host: request layer by {}, {:.1} s", self.how, span.as_secs_f64());
        self.saved.sources.insert(source);
        self.saved.notes.extend(notes(&self.missed));
        let profiles: Vec<_> = self.saved.profiles.iter().filter(|profile| profile.ios() > 0).collect();
        let analyses: Vec<Analysis> =
            profiles.iter().map(|profile| analyze(profile, None, questions)).collect();
        let mut diagnosis = Diagnosis::default();
        for (profile, analysis) in profiles.iter().zip(&analyses) {
            diagnosis.absorb(diagnose(profile, analysis, questions));
        }
        let sources: Vec<String> = self.saved.sources.iter().cloned().collect();
        let notes: Vec<String> = self.saved.notes.iter().cloned().collect();
        let sections = profiles.iter().zip(&analyses);
        let report = Report {
            title: "this host".to_owned(),
            version: env!("CARGO_PKG_VERSION"),
            command: std::env::args().collect::<Vec<_>>().join(" "),
            sources: &sources,
            notes: &notes,
            sections: sections.map(|(profile, analysis)| Section { profile, analysis }).collect(),
            diagnosis: &diagnosis,
        };
        let printed = match args.json {
            true => Ok(()),
            false => output::print(&text::text(&report, output::color(args.color))),
        };
        if let Some(path) = &args.save {
            self.save(path)?;
        }
        printed?;
        let found = diagnosis.worst().is_some_and(|worst| args.fail_on.covers(worst));
        let is_partial =
            self.missed.unlisted > 0 || self.missed.misses.values().any(|misses| misses.unplaced > 0);
        Ok(match (found, ios == 0 || is_partial || !diagnosis.unknown.is_empty()) {
            (true, _) => Exit::Findings,
            (false, true) => Exit::Unknown,
            (false, false) => Exit::Clean,
        })
    }
}

/// Prints an interval; tells whether anybody reads it.
fn show(args: &Watch, reading: &Reading, questions: &Questions, span: Duration) -> Result<bool, Failure> {
    let devices: Vec<Analysis> = reading
        .profiles
        .iter()
        .filter(|profile| profile.ios() > 0)
        .map(|profile| analyze(profile, None, questions))
        .collect();
    let senders: Vec<Sender<'_>> =
        reading.processes.iter().map(|process| sender(process, questions)).collect();
    let notes: Vec<String> = notes(reading);
    let apart: Vec<Apart<'_>> = reading.misses.iter().map(apart).collect();
    let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let seconds = span.as_secs_f64();
    let heading = format!("{time}, {seconds:.1} s");
    let interval = Interval { heading, devices: &devices, senders: &senders, apart: &apart, notes: &notes };
    let shown = if args.json {
        let line = json::watch(env!("CARGO_PKG_VERSION"), &time, seconds, &interval);
        line.map_err(|error| Failure::failed(&error))? + "\n"
    } else {
        text::interval(&interval, output::color(args.color))
    };
    output::print_if_read(&shown)
}

fn apart<'a>((device, misses): (&'a String, &Misses)) -> Apart<'a> {
    let Misses { flushes, requeues, partial_completions, unmatched_issues, unmatched_completions, unplaced } =
        *misses;
    Apart {
        device,
        flushes,
        requeues,
        partial_completions,
        unmatched_issues,
        unmatched_completions,
        unplaced,
    }
}

fn sender<'a>(process: &'a Process, questions: &Questions) -> Sender<'a> {
    let grid = questions.grids().first().map_or(Grid::ASSUMED, |(grid, _)| *grid);
    Sender {
        device: &process.device,
        comm: &process.comm,
        pid: process.pid,
        ios: process.ios,
        bytes: process.bytes,
        misaligned: misaligned(process, &grid),
    }
}

/// Requests of a process are counted by the power of two that divides their start, which tells of these grids only.
fn misaligned(process: &Process, grid: &Grid) -> Option<u64> {
    let sectors = grid.granularity().0 / 512;
    let is_counted = grid.offset().0 == 0 && sectors.is_power_of_two() && sectors <= 1 << 11;
    is_counted.then(|| process.misaligned(sectors.trailing_zeros() as usize))
}

/// What a reader must know of an interval.
fn notes(reading: &Reading) -> Vec<String> {
    let mut all: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (device, misses) in &reading.misses {
        let told = [
            (misses.requeues, "I/O issued more than once, counted once"),
            (misses.partial_completions, "completions of a part of an I/O"),
            (misses.unmatched_issues, "I/O whose completion never came, so without latency"),
            (misses.unplaced, "some I/O are in no figure: too many different ones"),
        ];
        for (_, words) in told.iter().filter(|(count, _)| *count > 0) {
            all.entry(words).or_default().push(device.clone());
        }
    }
    let of_devices = all.into_iter().map(|(words, devices)| format!("{words}: {}", devices.join(", ")));
    let of_all = [
        (reading.unlisted, "I/O of devices for which there was no room, in no figure"),
        (reading.of_unlisted_process, "bios of processes for which there was no room, in the list of none"),
        (
            reading.of_unknown_sender,
            "I/O of which nobody knows who sent them, such as later parts of one that was split",
        ),
    ];
    let of_all = of_all.into_iter().filter(|(count, _)| *count > 0);
    of_devices.chain(of_all.map(|(count, words)| format!("{} {words}", group_digits(count)))).collect()
}
