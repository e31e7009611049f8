//! From files to profiles: opens the inputs, reads pieces in parallel, keeps the facts of each about itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use plumb_geometry::SmallSort;
use plumb_profile::codec::Saved;
use plumb_profile::profile::{Losses, ProfileSet, TimeBase};
use plumb_profile::{Collector, Profile, Settings};
use plumb_trace::ahead::ReadAhead;
use plumb_trace::input::Input;
use plumb_trace::open::{self, Piece};
use plumb_trace::reader::Columns;
use plumb_trace::{Batch, Clock, Fill, Layer, ReadOptions, SourceInfo};

use crate::cli::Selection;
use crate::failure::Failure;
use crate::history::span::ReadSpans;
use crate::inputs;
use crate::notes::{notes_of, source_line};
use crate::recordings::{ClockZero, Recordings};
use crate::select::Filter;
use crate::side_by_side;
use crate::status::Meter;

/// Why a selection cannot be made from sums.
const NEED_EVENTS: &str = "--op, --partition, --range, --since and --until need the events";

/// Everything that was read.
#[derive(Default)]
pub struct Collected {
    /// The profiles, with lines on their sources.
    pub saved: Saved,
    /// The facts of each trace about itself, in the order given.
    pub infos: Vec<SourceInfo>,
    /// Inputs that could not be read at all.
    pub failures: Vec<Failure>,
    /// Whether something was read only in part.
    pub partial: bool,
    /// The losses, by device and layer. A source does not have the device of its lost events, so each device in it has
    /// all its losses.
    pub losses: BTreeMap<(String, Layer), Losses>,
    /// Devices that were seen, those that were not asked for too.
    devices: BTreeSet<String>,
    /// Inputs by the devices that they share.
    recordings: Recordings,
}

/// The work on each piece.
struct Job<'a> {
    selection: &'a Selection,
    settings: &'a Settings,
    options: &'a ReadOptions,
}

/// The result of one piece.
enum PieceOutcome {
    Trace(Box<Traced>),
    Saved(Box<Saved>),
}

/// The result of a trace.
struct Traced {
    profiles: ProfileSet,
    info: SourceInfo,
    devices: BTreeSet<String>,
}

impl PieceOutcome {
    /// The Unix time of the first I/O; `None` if it is not known.
    fn first_unix_ns(&self) -> Option<i64> {
        let (profiles, zero_ns) = match self {
            PieceOutcome::Trace(traced) => {
                let zero_ns = match traced.info.clock {
                    Clock::Unix => Some(0),
                    _ => traced.info.unix_ns_at_zero,
                };
                (&traced.profiles, zero_ns?)
            }
            PieceOutcome::Saved(saved) => (&saved.profiles, 0),
        };
        let is_unix = |profile: &&Profile| match self {
            PieceOutcome::Trace(_) => true,
            PieceOutcome::Saved(_) => profile.time_base == TimeBase::Unix,
        };
        let times = profiles.iter().filter(is_unix);
        let first_ns = times.filter_map(|profile| profile.first_ns).min()?;
        first_ns.checked_add(zero_ns)
    }

    /// Gives the devices the names under which they count.
    fn name_devices(&mut self, input: &str, recordings: &mut Recordings) {
        let (profiles, zero) = match self {
            PieceOutcome::Trace(traced) => {
                let zero = ClockZero::of_trace(&traced.info);
                (&mut traced.profiles, zero)
            }
            PieceOutcome::Saved(saved) => (&mut saved.profiles, None),
        };
        *profiles = recordings.name(input, std::mem::take(profiles), zero);
    }
}

/// The places of the pieces, those whose time is known in the order of their times: the pieces of a recording follow each
/// other then, in any order of the command line.
fn in_order_of_time(outcomes: &[Result<PieceOutcome, Failure>]) -> Vec<usize> {
    let first_ns: Vec<Option<i64>> = outcomes
        .iter()
        .map(|outcome| outcome.as_ref().ok()?.first_unix_ns())
        .collect();
    let all = 0..outcomes.len();
    let mut timed: Vec<usize> = all.clone().filter(|at| first_ns[*at].is_some()).collect();
    timed.small_sort_by_key(|at| first_ns[*at]);
    let mut timed = timed.into_iter();
    all.map(|at| match first_ns[at] {
        Some(_) => timed.next().unwrap_or(at),
        None => at,
    })
    .collect()
}

/// Reads everything that was named. Devices of equal names are one device if the inputs are pieces of one recording, or
/// if `are_all_one` says so.
pub fn collect(
    files: &[PathBuf],
    spans: ReadSpans,
    selection: &Selection,
    settings: &Settings,
    are_all_one: bool,
) -> Collected {
    let mut collected = Collected::default();
    collected.recordings.are_all_one = are_all_one;
    let files = without_repeats(files, &mut collected.failures);
    for (name, (mut saved, is_partial)) in spans {
        let name = name.display().to_string();
        if selection.needs_events() {
            let words = format!("{name} has sums: {NEED_EVENTS}");
            collected.failures.push(Failure::usage(words));
            continue;
        }
        collected.partial |= is_partial;
        saved.profiles = collected.recordings.name(&name, saved.profiles, None);
        collected.add_saved(saved);
    }
    let pieces = open::pieces(&files);
    let progress = Arc::default();
    let meter = Meter::of_reading(&progress);
    let options = ReadOptions {
        columns: Columns::PROFILE,
        progress: Some(progress),
        ..selection.read_options()
    };
    let job = Job {
        selection,
        settings,
        options: &options,
    };
    let mut outcomes =
        side_by_side::each(&pieces, |piece| read_piece(piece, &job, pieces.len() == 1));
    drop(meter);
    for at in in_order_of_time(&outcomes) {
        let name = pieces[at].path.display().to_string();
        if let Ok(outcome) = &mut outcomes[at] {
            outcome.name_devices(&name, &mut collected.recordings);
        }
    }
    for outcome in outcomes {
        match outcome {
            Ok(PieceOutcome::Trace(traced)) => collected.add(*traced),
            Ok(PieceOutcome::Saved(saved)) => collected.add_saved(*saved),
            Err(failure) => collected.failures.push(failure),
        }
    }
    if !collected.saved.sources.is_empty() {
        collected.saved.notes.extend(selection.note());
        if collected.infos.len() > 1 && selection.counts_from_first() {
            let words = "--since and --until count from the first I/O of each file by itself";
            collected.saved.notes.insert(words.to_owned());
        }
        let notes = collected.recordings.notes();
        collected.saved.notes.extend(notes);
        collected
            .failures
            .extend(selection.missing_devices(&collected.devices));
    }
    collected
}

/// Files without those that were named before, which would count twice.
fn without_repeats(files: &[PathBuf], failures: &mut Vec<Failure>) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    let mut once = Vec::new();
    for file in files {
        if std::fs::canonicalize(file).is_ok_and(|whole| whole.is_file() && !seen.insert(whole)) {
            let twice = format!(
                "{}: given twice, and its I/O would count twice",
                file.display()
            );
            failures.push(Failure::usage(twice));
        } else {
            once.push(file.clone());
        }
    }
    once
}

/// The profiles of one recording by itself, and whether all of it could be read.
///
/// # Errors
/// When it cannot be read.
pub fn profile_alone(piece: &Piece, settings: &Settings) -> Result<(ProfileSet, bool), Failure> {
    let selection = Selection::default();
    let options = ReadOptions {
        columns: Columns::PROFILE,
        ..selection.read_options()
    };
    let job = Job {
        selection: &selection,
        settings,
        options: &options,
    };
    Ok(match read_piece(piece, &job, false)? {
        PieceOutcome::Trace(traced) => (traced.profiles, traced.info.is_whole()),
        PieceOutcome::Saved(saved) => {
            let is_whole = !is_part_missing(&saved.profiles);
            (saved.profiles, is_whole)
        }
    })
}

/// Whether a source of the profiles was read only in part.
fn is_part_missing(profiles: &ProfileSet) -> bool {
    profiles
        .iter()
        .any(|profile| profile.losses.is_part_missing())
}

fn read_piece(piece: &Piece, job: &Job<'_>, alone: bool) -> Result<PieceOutcome, Failure> {
    let failed = |error: plumb_trace::Error| Failure::failed(&error);
    let Job {
        selection,
        settings,
        options,
    } = *job;
    let mut reader = if piece.files.is_empty() {
        let mut input =
            Input::open_watched(&piece.path, options.progress.as_ref()).map_err(failed)?;
        if inputs::is_profile(&mut input)? {
            return read_saved(input, selection);
        }
        open::open_input(input, options).map_err(failed)?
    } else {
        open::open(piece, options).map_err(failed)?
    };
    if alone {
        reader = ReadAhead::wrap(reader);
    }
    let mut collector =
        Collector::new(settings).map_err(|error| Failure::usage(error.to_string()))?;
    collector.set_clock(reader.info().clock);
    let mut filter = Filter::new(selection);
    let mut batch = Batch::default();
    loop {
        match reader.fill(&mut batch).map_err(failed)? {
            Fill::Events => {
                filter
                    .apply(&mut batch, reader.info())
                    .map_err(|error| Failure::failed(&error))?;
                collector.fold(&batch);
            }
            Fill::End => break,
            _ if selection.needs_events() => {
                let path = &reader.info().path;
                return Err(Failure::usage(format!(
                    "{path} holds ready-made counts: {NEED_EVENTS}"
                )));
            }
            ready_made => {
                let layer = reader
                    .info()
                    .layers
                    .last()
                    .copied()
                    .unwrap_or(Layer::Request);
                collector.fold_ready_made(&ready_made, layer);
            }
        }
    }
    let info = reader.info().clone();
    if let Some(missing) = selection.missing_partition(&filter, &info.path) {
        return Err(missing);
    }
    Ok(PieceOutcome::Trace(Box::new(Traced {
        profiles: collector.finish(&info),
        info,
        devices: filter.devices,
    })))
}

fn read_saved(input: Input, selection: &Selection) -> Result<PieceOutcome, Failure> {
    let name = input.path.clone();
    if selection.needs_events() {
        return Err(Failure::usage(format!(
            "{name} is a saved profile: {NEED_EVENTS}"
        )));
    }
    let saved =
        inputs::saved(input).map_err(|failure| failure.with_help(format!("the file is {name}")))?;
    Ok(PieceOutcome::Saved(Box::new(saved)))
}

impl Collected {
    fn add(&mut self, outcome: Traced) {
        self.partial |= !outcome.info.is_whole();
        self.saved.sources.insert(source_line(&outcome.info));
        for note in notes_of(&outcome.info) {
            self.saved.notes.insert(note);
        }
        self.devices.extend(outcome.devices);
        self.lose(&outcome.profiles);
        for profile in outcome.profiles {
            self.saved.profiles.absorb(profile);
        }
        self.infos.push(outcome.info);
    }

    fn add_saved(&mut self, saved: Saved) {
        self.partial |= is_part_missing(&saved.profiles);
        for profile in saved.profiles.iter() {
            let name = self.recordings.original(&profile.device);
            self.devices.insert(name.to_owned());
        }
        self.lose(&saved.profiles);
        self.saved.merge(&saved);
    }

    /// Whether a profile is of a device and layer that are meant.
    pub fn is_wanted(&self, selection: &Selection, profile: &Profile) -> bool {
        selection.wants(&profile.device, profile.layer)
            || selection.wants(self.recordings.original(&profile.device), profile.layer)
    }

    /// Records the losses of these profiles' sources.
    fn lose(&mut self, profiles: &ProfileSet) {
        let mut all = Losses::default();
        profiles
            .iter()
            .for_each(|profile| all.merge(&profile.losses));
        for profile in profiles.iter() {
            self.devices.insert(profile.device.clone());
            self.losses
                .entry((profile.device.clone(), profile.layer))
                .or_default()
                .merge(&all);
        }
    }
}
