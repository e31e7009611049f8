//! `plumb watch`: what the disks of this host receive, interval by interval.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use plumb_capture::{Block, CaptureError, Filter, Layers, Misses, Options, Process, Reading};
use plumb_diagnose::{Analysis, Diagnosis, Questions, analyze, diagnose};
use plumb_geometry::Grid;
use plumb_profile::Profile;
use plumb_profile::codec::{self, Saved};
use plumb_report::text::{Apart, Interval, SeenAgain, Sender};
use plumb_report::{Report, Section, json, text};
use plumb_trace::Layer;

use self::app::App;
use crate::cli::Watch;
use crate::exit::Exit;
use crate::failure::{self, Failure};
use crate::{output, privilege};

mod app;
mod below;
mod notes;
mod screen;
mod terminal;

use notes::notes;

/// How often a wait looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(50);

/// Runs the command.
///
/// # Errors
/// When nothing can be watched, or what was asked for could not be written.
pub fn run(args: &Watch) -> Result<Exit, Failure> {
    args.save.as_deref().map_or(Ok(()), |path| output::may_write(&[], &[path]))?;
    let questions = Questions { grids: args.grids(), ..Questions::default() };
    let options = options(args, &questions)?;
    let ended = told_to_end()?;
    let mut block = Block::attach(&options).map_err(refused)?;
    let mut whole = Whole::new(&block, &options.filter);
    if args.app {
        whole.app = Some(App::attach(&options.devices, args.sync).map_err(refused)?);
        // What writing out the cache took is not part of the time.
        block.read();
    }
    // Which files processes have mapped, and writing out the cache, takes privileges to the end.
    if !args.app {
        privilege::drop_all(args.save.as_slice())?;
    }
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

/// Becomes true with the signal that ends a watch.
///
/// # Errors
/// When signals cannot be heard.
pub(crate) fn told_to_end() -> Result<Arc<AtomicBool>, Failure> {
    let ended = Arc::new(AtomicBool::new(false));
    let signals = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP];
    for signal in signals {
        signal_hook::flag::register(signal, ended.clone()).map_err(|error| Failure::failed(&error))?;
    }
    Ok(ended)
}

fn options(args: &Watch, questions: &Questions) -> Result<Options, Failure> {
    let layers = args.layer.into();
    let devices = args.devices.iter().map(|name| disk_at(name, layers, "plumb watch"));
    let (ops, pid) = (args.op.clone(), args.pid);
    let filter = Filter { ops, pid, comm: args.comm.clone(), cgroup: args.cgroup.clone() };
    Ok(Options {
        devices: devices.collect::<Result<_, Failure>>()?,
        modulus_bytes: questions.modulus_bytes(),
        layers,
        filter,
        ..Options::default()
    })
}

/// The number of a disk that has I/O at the layer asked for; what a command that leaves the layer open does is told of others.
pub(crate) fn disk_at(name: &str, layers: Layers, command: &str) -> Result<u32, Failure> {
    let dev = plumb_capture::disk_of(name).map_err(refused)?;
    tell_of_disk(name, dev);
    if layers != Layers::Request || !plumb_capture::is_bio_based(dev) {
        return Ok(dev);
    }
    let below = plumb_capture::names_below(name);
    let mut what = format!("{name} hands its I/O on as it comes, and makes no requests");
    if !below.is_empty() {
        what += &format!(": those are made by {}", below.join(", "));
    }
    Err(Failure::unknown(what).with_command(format!("{command} {name}")))
}

/// Says so where a partition was named: I/O are watched by disk, and told apart by partition.
fn tell_of_disk(name: &str, dev: u32) {
    let base = name.strip_prefix("/dev/").unwrap_or(name);
    if Path::new("/sys/class/block").join(base).join("partition").exists() {
        let disk = plumb_capture::name_of(dev).name;
        failure::tell(
            "plumb: ",
            &format!("{base} is a partition: what is watched is its whole disk, {disk}"),
        );
    }
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
        wait_until(next, ended, || block.keep_up());
        whole.before_reading(block, ended.load(Ordering::Relaxed) || args.count == Some(number));
        let reading = block.read();
        whole.add(&reading);
        let now = Instant::now();
        let app = whole.app.as_ref().map(|app| &app.last);
        let span = now - std::mem::replace(&mut last, now);
        let is_read = show(args, &reading, app, (questions, &whole.filter), span)?;
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

/// Waits, unless it is to end; meanwhile does again and again what is not to be left until then.
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
        CaptureError::NotPermitted => {
            let again: Vec<String> = std::env::args().collect();
            Failure::not_permitted(&error, format!("sudo {}", again.join(" ")))
        }
        CaptureError::NoDevice(_) | CaptureError::NoCgroup { .. } => Failure::usage(error.to_string()),
        _ => Failure::failed(&error),
    }
}

/// What was seen since the beginning.
pub(crate) struct Whole {
    pub(crate) saved: Saved,
    /// Layers, and how they are watched.
    how: String,
    filter: Filter,
    /// Of all readings together, without their profiles.
    missed: Reading,
    /// What was asked of file systems, where that is watched.
    app: Option<App>,
}

impl Whole {
    pub(crate) fn new(block: &Block, filter: &Filter) -> Whole {
        let layers: Vec<&str> = block.layers().into_iter().map(Layer::word).collect();
        let many = if layers.len() > 1 { "layers" } else { "layer" };
        let how = format!("{} {many} by {}", layers.join(" and "), block.attached().words());
        let (saved, missed) = (Saved::default(), Reading::default());
        Whole { saved, how, filter: filter.clone(), missed, app: None }
    }

    /// Before the last reading the cache is written out, where it was at the beginning.
    fn before_reading(&mut self, block: &mut Block, is_last: bool) {
        if is_last {
            block.end();
        }
        if let Some(app) = self.app.as_mut().filter(|app| is_last && app.is_to_sync()) {
            app.sync();
        }
    }

    pub(crate) fn add(&mut self, reading: &Reading) {
        self.saved.profiles.merge(&reading.profiles);
        self.missed.add_misses(reading);
        if let Some(app) = &mut self.app {
            self.saved.profiles.merge(&app.add(reading));
        }
    }

    /// Notes where the profiles are from, and what a reader must know of them.
    pub(crate) fn close(&mut self, span: Duration) {
        let filter = self.filter.words().map_or(String::new(), |words| format!(", only {words}"));
        let source = format!("this host: {}, {:.1} s{filter}", self.how, span.as_secs_f64());
        self.saved.sources.insert(source);
        self.saved.notes.extend(notes(&self.missed, &self.filter));
    }

    /// Whether some I/O are in no figure.
    pub(crate) fn is_partial(&self) -> bool {
        self.missed.unlisted + self.missed.lost > 0
            || self.missed.misses.values().any(|misses| misses.unplaced > 0)
    }

    /// Saves the profiles.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(crate) fn save(&self, path: &Path) -> Result<(), Failure> {
        let bytes = codec::encode(&self.saved).map_err(|error| Failure::failed(&error))?;
        output::write_file(path, &bytes)
    }

    /// The totals, and how the command ends.
    fn end(mut self, args: &Watch, questions: &Questions, span: Duration) -> Result<Exit, Failure> {
        self.close(span);
        // Places in files are judged when the profile is analyzed.
        let is_shown = |profile: &&Profile| profile.ios() > 0 && profile.layer != Layer::Vfs;
        let profiles: Vec<_> = self.saved.profiles.iter().filter(is_shown).collect();
        let analyses: Vec<Analysis> =
            profiles.iter().map(|profile| analyze(profile, None, questions)).collect();
        let mut diagnosis = Diagnosis::default();
        for (profile, analysis) in profiles.iter().zip(&analyses) {
            diagnosis.absorb(diagnose(profile, analysis, questions));
        }
        if let Some(app) = &self.app {
            diagnosis.absorb(app.diagnose(&self.saved.profiles, questions));
            self.saved.sources.insert(format!("this host: {}", app.how()));
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
            false => {
                let color = output::color(args.color);
                let asked = self.app.as_ref().map(|app| text::asked(&app.whole(), color));
                output::print(&(text::text(&report, color) + &asked.unwrap_or_default()))
            }
        };
        if let Some(path) = &args.save {
            self.save(path)?;
        }
        printed?;
        let found = diagnosis.worst().is_some_and(|worst| args.fail_on.covers(worst));
        Ok(match (found, profiles.is_empty() || self.is_partial() || !diagnosis.unknown.is_empty()) {
            (true, _) => Exit::Findings,
            (false, true) => Exit::Unknown,
            (false, false) => Exit::Clean,
        })
    }
}

/// Prints an interval; tells whether anybody reads it.
fn show(
    args: &Watch,
    reading: &Reading,
    app: Option<&text::App>,
    (questions, filter): (&Questions, &Filter),
    span: Duration,
) -> Result<bool, Failure> {
    let devices: Vec<Analysis> = reading
        .profiles
        .iter()
        .filter(|profile| profile.ios() > 0)
        .map(|profile| analyze(profile, None, questions))
        .collect();
    let grid = questions.grids().first().map_or(Grid::ASSUMED, |(grid, _)| *grid);
    let senders: Vec<Sender<'_>> =
        reading.processes.iter().map(|process| sender(process, &reading.seen_again, &grid)).collect();
    let notes: Vec<String> = notes(reading, filter);
    let seen_again: Vec<SeenAgain<'_>> =
        reading.seen_again.iter().map(|(device, on)| SeenAgain { device, on }).collect();
    let filter = filter.words();
    let apart: Vec<Apart<'_>> = reading.misses.iter().map(apart).collect();
    let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let seconds = span.as_secs_f64();
    let heading = format!("{time}, {seconds:.1} s");
    let interval = Interval {
        heading,
        devices: &devices,
        senders: &senders,
        apart: &apart,
        seen_again: &seen_again,
        filter: filter.as_deref(),
        notes: &notes,
        app,
    };
    let shown = if args.json {
        let line = json::watch(env!("CARGO_PKG_VERSION"), &time, seconds, &interval);
        line.map_err(|error| Failure::failed(&error))? + "\n"
    } else {
        text::interval(&interval, output::color(args.color))
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

/// What a process sent, with how much of it starts off a grid.
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
