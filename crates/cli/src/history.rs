//! `plumb history`: questions to the history that `plumb agent` writes, and its care.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirBuilder;
use std::ops::ControlFlow;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use plumb_geometry::SmallSort;
use plumb_history::{
    DeviceIncrement, FindingInterval, FindingKey, Glance, GlanceRow, HistoryError, Reader,
    SeriesFacts, Span, Tier, Window, Writer,
};
use plumb_model::Finding;
use plumb_model::result::history::{
    HistoryAnswer, HistoryCourse, HistoryDevice, HistoryFile, HistoryFinding, HistorySize,
    HistoryTier, HistoryWindow, NameSince,
};
use plumb_profile::Profile;
use plumb_profile::codec::{self, Saved};
use plumb_profile::profile::TimeBase;
use plumb_quoting::json;
use plumb_report::history as report;
use plumb_trace::input::Input;

use crate::agent::config::AgentConfig;
use crate::agent::judge;
use crate::cli::{
    AgentStore, History, HistoryBackup, HistoryCommand, HistoryDump, HistoryFilter, HistoryImport,
    HistoryPrune, StateDir,
};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{inputs, moment, output};

mod changes;
mod export;
pub mod objects;
mod rrd;
pub mod senders;
pub mod span;

use span::{DeviceSpan, time_words};

/// Windows that a person still reads; finer ones are added up to coarser ones.
const ROWS: i64 = 60;

/// Runs the command.
///
/// # Errors
/// When the history cannot be read or written.
pub fn run(args: &History) -> Result<Exit, Failure> {
    match &args.command {
        HistoryCommand::List(store) => {
            let answer = HistoryAnswer::Devices(list(&span::open(&store.folder.find()?)?)?);
            print(&answer, store.json, Exit::Clean)
        }
        HistoryCommand::Show(shown) => {
            let courses = courses(&shown.span, &shown.store.folder.find()?, ROWS)?;
            print(
                &HistoryAnswer::Courses(courses),
                shown.store.json,
                Exit::Clean,
            )
        }
        HistoryCommand::Senders(wanted) => {
            let lists = senders::list(wanted)?;
            let exit = match lists.iter().any(|list| list.damaged > 0) {
                true => Exit::Unknown,
                false => Exit::Clean,
            };
            print(&HistoryAnswer::Senders(lists), wanted.store.json, exit)
        }
        HistoryCommand::Findings(wanted) => {
            let answer = HistoryAnswer::Findings(findings(wanted)?);
            print(&answer, wanted.store.json, Exit::Clean)
        }
        HistoryCommand::Changes(wanted) => {
            let found = changes::search(wanted)?;
            let exit = found.exit();
            print(
                &HistoryAnswer::Changes(found.devices),
                wanted.store.json,
                exit,
            )
        }
        HistoryCommand::Export(wanted) => export::run(wanted),
        HistoryCommand::Import(import) => import_files(import),
        HistoryCommand::Dump(wanted) => dump(wanted),
        HistoryCommand::Backup(backup) => back_up(backup),
        HistoryCommand::Prune(wanted) => prune(wanted),
        HistoryCommand::Verify(care) => {
            let state = opened(&configured(&care.store)?)?
                .verify()
                .map_err(failed)?;
            let exit = match state.files.iter().all(plumb_history::FileState::is_sound) {
                true => Exit::Clean,
                false => Exit::Unknown,
            };
            let files = state.files.into_iter().map(|file| HistoryFile {
                file: file.file.display().to_string(),
                faults: file.faults,
                sound: file.sound,
                damaged: file.damaged,
                differing: file.differing,
            });
            print(&HistoryAnswer::Files(files.collect()), care.json, exit)
        }
        HistoryCommand::Estimate(care) => {
            let answer = HistoryAnswer::Size(estimate(&configured(&care.store)?)?);
            print(&answer, care.json, Exit::Clean)
        }
    }
}

impl StateDir {
    /// The folder of the history.
    ///
    /// # Errors
    /// As [`span::folder`].
    fn find(&self) -> Result<PathBuf, Failure> {
        span::folder(self.state_dir.as_deref())
    }
}

/// The folder and the bounds of a history, as its agent has them.
fn configured(store: &AgentStore) -> Result<AgentConfig, Failure> {
    AgentConfig::of_store(store.config.as_deref(), store.state_dir.as_deref())
}

fn opened(config: &AgentConfig) -> Result<Reader, Failure> {
    span::open_with(&config.state_dir, &config.history)
}

fn failed(error: HistoryError) -> Failure {
    Failure::failed(&error)
}

/// The JSON document of an answer.
fn document(answer: &HistoryAnswer) -> Result<String, Failure> {
    let document = report::json(&crate::this_run::now(), answer);
    Ok(document.map_err(|error| Failure::failed(&error))? + "\n")
}

fn print(answer: &HistoryAnswer, is_json: bool, exit: Exit) -> Result<Exit, Failure> {
    let text = match is_json {
        true => document(answer)?,
        false => output::drawn(report::text(
            answer,
            output::paper(crate::cli::ColorChoice::Auto),
        )),
    };
    output::print(&text)?;
    Ok(exit)
}

/// The devices of a history.
///
/// # Errors
/// When the history cannot be read.
pub fn list(reader: &Reader) -> Result<Vec<HistoryDevice>, Failure> {
    let mut devices: Vec<HistoryDevice> = reader
        .series()
        .map_err(failed)?
        .iter()
        .map(|series| HistoryDevice {
            device: series.name().to_owned(),
            identity: series.identity.clone(),
            layer: series.layer.word(),
            names: series
                .names
                .iter()
                .map(|(since, name)| NameSince {
                    since: time_words(*since),
                    name: name.clone(),
                })
                .collect(),
            from: series.span.map(|span| time_words(span.from_ns)),
            to: series.span.map(|span| time_words(span.to_ns)),
        })
        .collect();
    devices.small_sort_by(|one, other| plumb_geometry::natural(&one.device, &other.device));
    Ok(devices)
}

/// The findings of the agent, or those of a device in a time.
fn findings(wanted: &HistoryFilter) -> Result<Vec<HistoryFinding>, Failure> {
    let reader = span::open(&wanted.store.folder.find()?)?;
    let span = wanted.span.as_deref().map(DeviceSpan::parse).transpose();
    let span = span.map_err(Failure::usage)?;
    // A partition and a disk without I/O have findings about the layout, and no series.
    let series = span.as_ref().map(|span| span.series(&reader)).transpose();
    let all = series.as_ref().ok().and_then(Option::as_deref);
    let device = span
        .as_ref()
        .map(|span| (span.device.as_str(), all.unwrap_or_default()));
    let time = span.as_ref().map(|span| span.within(span::EVER));
    match (
        findings_in(&reader, device, time.unwrap_or(span::EVER), &WHOLE)?,
        series,
    ) {
        (Some((found, _)), _) => Ok(found),
        (None, Err(unknown)) => Err(unknown),
        (None, Ok(_)) => Ok(Vec::new()),
    }
}

/// The rows of an answer with findings.
pub struct FindingPage<'p> {
    /// Rows that an earlier answer had.
    pub skip: usize,
    /// Most rows.
    pub rows: usize,
    /// Whether nobody waits for the answer any more.
    pub is_late: &'p dyn Fn() -> bool,
}

/// All rows.
const WHOLE: FindingPage<'static> = FindingPage {
    skip: 0,
    rows: usize::MAX,
    is_late: &|| false,
};

/// The findings of a time: all of them, or those of a device with these series; and whether there are more than the page has. `None` if
/// nothing is known of the device.
///
/// # Errors
/// When the history cannot be read, or has a finding of a newer version.
pub fn findings_in(
    reader: &Reader,
    device: Option<(&str, &[SeriesFacts])>,
    time: Span,
    page: &FindingPage<'_>,
) -> Result<Option<(Vec<HistoryFinding>, bool)>, Failure> {
    let is_on_device = |key: &FindingKey, finding: Option<&Finding>| {
        let Some((device, series)) = device else {
            return true;
        };
        let place = judge::Location::parse(&key.place);
        let is_of_series = |place: judge::Location| {
            series
                .iter()
                .any(|one| place.is_on(&one.identity) || place.is_on_disk_of(&one.identity))
        };
        let name = device.trim_start_matches("/dev/");
        finding.is_some_and(|finding| finding.target.device == name)
            || place.is_some_and(|place| place.is_on(device) || is_of_series(place))
    };
    let mut found = Vec::new();
    let mut is_known = device.is_none_or(|(_, series)| !series.is_empty());
    let mut of_time = 0usize;
    let mut is_cut = false;
    let mut fault = None;
    let take = |interval: FindingInterval| -> ControlFlow<()> {
        if (page.is_late)() {
            return ControlFlow::Break(());
        }
        // A finding of a newer version is an error only if the answer has it.
        let finding = json::from_slice::<Finding>(interval.facts.as_bytes());
        if !is_on_device(&interval.key, finding.as_ref().ok()) {
            return ControlFlow::Continue(());
        }
        is_known = true;
        of_time += 1;
        if of_time <= page.skip {
            return ControlFlow::Continue(());
        }
        if found.len() == page.rows {
            is_cut = true;
            return ControlFlow::Break(());
        }
        match finding {
            Ok(finding) => {
                found.push(report::finding(
                    finding,
                    time_words(interval.appeared_ns),
                    time_words(interval.changed_ns),
                    interval.went_ns.map(time_words),
                ));
                ControlFlow::Continue(())
            }
            Err(error) => {
                fault = Some(Failure::unknown(format!(
                    "the finding {} of {} is not one that this version knows: {error}",
                    interval.key.rule,
                    time_words(interval.appeared_ns)
                )));
                ControlFlow::Break(())
            }
        }
    };
    reader.each_finding(time, take).map_err(failed)?;
    if !is_known && fault.is_none() {
        // A name that only a finding of another time has is no unknown device.
        let take = |interval: FindingInterval| -> ControlFlow<()> {
            let finding = json::from_slice::<Finding>(interval.facts.as_bytes()).ok();
            is_known = is_on_device(&interval.key, finding.as_ref());
            match is_known || (page.is_late)() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        reader.each_finding(span::EVER, take).map_err(failed)?;
    }
    match fault {
        Some(fault) => Err(fault),
        None => Ok(is_known.then_some((found, is_cut))),
    }
}

/// The I/O of a device in windows of the finest tier that has all of the time and at most `rows` windows in it.
fn courses(text: &str, state_dir: &Path, rows: i64) -> Result<Vec<HistoryCourse>, Failure> {
    let wanted = DeviceSpan::parse(text).map_err(Failure::usage)?;
    let reader = span::open(state_dir)?;
    let series = wanted.series(&reader)?;
    series
        .iter()
        .map(|series| course(&reader, series, &wanted, rows))
        .collect()
}

fn course(
    reader: &Reader,
    series: &SeriesFacts,
    wanted: &DeviceSpan,
    rows: i64,
) -> Result<HistoryCourse, Failure> {
    let known = series.span.unwrap_or(span::NEVER);
    course_of(reader, series, wanted.within(known), rows)
}

/// The I/O of a device in a time.
fn course_of(
    reader: &Reader,
    series: &SeriesFacts,
    time: Span,
    rows: i64,
) -> Result<HistoryCourse, Failure> {
    let span = time.common(series.span.unwrap_or(span::NEVER));
    course_in(reader, series, span, tier_for(reader, span, rows)?)
}

/// The I/O of a device in a time of its history, in windows of a tier.
///
/// # Errors
/// When the history cannot be read.
pub fn course_in(
    reader: &Reader,
    series: &SeriesFacts,
    span: Span,
    tier: Tier,
) -> Result<HistoryCourse, Failure> {
    let windows = reader
        .glance(tier, span, Some(series.number))
        .map_err(failed)?;
    Ok(HistoryCourse {
        device: series.name().to_owned(),
        identity: series.identity.clone(),
        layer: series.layer.word(),
        window_seconds: seconds(tier),
        windows: windows
            .iter()
            .map(|row| stored_window(reader, series, row))
            .collect::<Result<_, Failure>>()?,
        open: open_window(reader, series, span, &windows)?,
    })
}

/// The finest tier that has all of a time, in at most a number of windows.
///
/// # Errors
/// When the history cannot be read.
pub fn tier_for(reader: &Reader, span: Span, rows: i64) -> Result<Tier, Failure> {
    let mut oldest = [None; 3];
    for tier in Tier::ALL {
        oldest[tier as usize] = reader.oldest(tier).map_err(failed)?;
    }
    let is_fine = |tier: &Tier| {
        let windows = (span.to_ns - span.from_ns) / tier.width_ns();
        windows <= rows && has_all(*tier, &oldest, span.from_ns)
    };
    let fitting = Tier::ALL.into_iter().find(is_fine);
    // Of a young history only the fine windows are closed.
    let stored = |tier: &Tier| oldest[*tier as usize].is_some();
    let coarsest = || Tier::ALL.into_iter().rev().find(stored);
    Ok(fitting.or_else(coarsest).unwrap_or(Tier::FiveMinutes))
}

/// Whether a tier has everything since a time: its oldest window begins before it, or within the window of the next coarser tier
/// in which the history begins.
fn has_all(tier: Tier, oldest: &[Option<i64>; 3], from_ns: i64) -> bool {
    let Some(own) = oldest[tier as usize] else {
        return false;
    };
    let in_first = |coarser: Tier| {
        let begin = oldest[coarser as usize].unwrap_or(own).max(from_ns);
        has_all(coarser, oldest, from_ns) && own < Window::at(coarser, begin).span().to_ns
    };
    own <= from_ns || tier.coarser().is_some_and(in_first)
}

/// The I/O of a span behind the last window that is over.
fn open_window(
    reader: &Reader,
    series: &SeriesFacts,
    span: Span,
    closed: &[GlanceRow],
) -> Result<Option<HistoryWindow>, Failure> {
    let end = closed
        .last()
        .map_or(span.from_ns, |row| row.window.span().to_ns);
    let rest = Span {
        from_ns: end,
        to_ns: span.to_ns,
    };
    if rest.is_empty() {
        return Ok(None);
    }
    let found = reader.profile(series, rest).map_err(failed)?;
    let found = found.map(|found| HistoryWindow {
        averages: rrd::averages(&found.profile),
        ..window(rest.from_ns, &Glance::of_profile(&found.profile))
    });
    Ok(found.filter(|found| found.ios > 0 || found.averages.is_some()))
}

/// A window of the history. One without I/O may have means.
fn stored_window(
    reader: &Reader,
    series: &SeriesFacts,
    row: &GlanceRow,
) -> Result<HistoryWindow, Failure> {
    let span = row.window.span();
    let mut window = window(span.from_ns, &row.glance);
    if window.ios == 0 {
        let found = reader.profile(series, span).map_err(failed)?;
        window.averages = found.and_then(|found| rrd::averages(&found.profile));
    }
    Ok(window)
}

/// The totals of a window that begins at a time.
pub fn window(from_ns: i64, glance: &Glance) -> HistoryWindow {
    HistoryWindow {
        from: time_words(from_ns),
        ios: glance.ios,
        reads: glance.reads,
        writes: glance.writes,
        read_bytes: glance.read_bytes,
        write_bytes: glance.write_bytes,
        misaligned_4k: glance.off_4k,
        timed: glance.timed,
        p50_ns: glance.p50_ns,
        p99_ns: glance.p99_ns,
        max_ns: glance.max_ns,
        lengths: glance.mix,
        averages: None,
    }
}

fn estimate(config: &AgentConfig) -> Result<HistorySize, Failure> {
    let estimate = opened(config)?.estimate(&config.history).map_err(failed)?;
    let tiers = Tier::ALL.map(|tier| HistoryTier {
        window_seconds: seconds(tier),
        reach_days: (estimate.reach_ns[tier as usize] / Tier::Day.width_ns()) as u64,
        oldest: estimate.oldest_ns[tier as usize].map(time_words),
    });
    Ok(HistorySize {
        used_bytes: estimate.used_bytes,
        cap_bytes: estimate.cap_bytes,
        full_bytes: estimate.full_bytes,
        tiers: tiers.to_vec(),
    })
}

/// Length of a window.
const fn seconds(tier: Tier) -> u64 {
    (tier.width_ns() / 1_000_000_000) as u64
}

/// Adds saved profiles. Each is added whole or not at all: the first failure ends the command.
fn import_files(args: &HistoryImport) -> Result<Exit, Failure> {
    let config = configured(&args.store)?;
    let kept_ns = config.history.tier(Tier::Day).keep_ns;
    let oldest_ns = now_ns().saturating_sub(kept_ns);
    let mut profiles = Vec::new();
    for file in &args.files {
        let mut input = Input::open(file).map_err(|error| Failure::failed(&error))?;
        if rrd::is_dump(&mut input)? {
            profiles.extend(rrd::profiles(input, file, args, (oldest_ns, now_ns()))?);
            continue;
        }
        if !inputs::is_profile(&mut input)? {
            let found = format!("{}: no saved profile and no RRD", file.display());
            return Err(Failure::usage(found).with_help(
                "`plumb analyze TRACE --save FILE` makes a profile of a trace, and `rrdtool dump` the XML of an RRD",
            ));
        }
        for profile in inputs::saved(input)?.profiles.iter() {
            let span = time_of(profile, &file.display().to_string())?;
            profiles.push((span, profile.clone()));
        }
    }
    if let Some((span, profile)) = profiles.iter().find(|(span, _)| span.to_ns < oldest_ns) {
        return Err(Failure::usage(format!(
            "the profile of {} ends at {}; expected one of the last {} days, which the history keeps",
            profile.device,
            time_words(span.to_ns),
            kept_ns / Tier::Day.width_ns()
        )));
    }
    // Older ones first: names are stored with the time from which they were seen.
    profiles.small_sort_by_key(|(span, _)| span.from_ns);
    let names: BTreeSet<&str> = profiles
        .iter()
        .map(|(_, profile)| profile.device.as_str())
        .collect();
    if args.identity.is_some() && names.len() > 1 {
        let names: Vec<&str> = names.into_iter().collect();
        return Err(Failure::usage(format!(
            "--as: found profiles of {}, expected those of one device",
            names.join(", ")
        )));
    }
    make_folder(&config.state_dir)?;
    let known = known_devices(&config)?;
    let devices: Vec<ImportedDevice> = profiles
        .iter()
        .map(|(span, profile)| device_of(&known, profile, span.from_ns, args.identity.as_deref()))
        .collect();
    let mut writer = Writer::open(&config.state_dir, config.history.clone()).map_err(failed)?;
    for ((span, profile), device) in profiles.iter().zip(&devices) {
        let increment = DeviceIncrement {
            identity: &device.identity,
            name: &device.name,
            profile,
            senders: None,
        };
        writer.import(*span, &increment).map_err(failed)?;
    }
    writer.checkpoint(now_ns()).map_err(failed)?;
    output::say(&format!(
        "added {} to the history in {}",
        plumb_geometry::plural(profiles.len() as u64, "profile"),
        config.state_dir.display()
    ));
    let owners = profiles.iter().zip(&devices);
    let owners: BTreeSet<(&str, &str)> = owners
        .map(|((_, profile), device)| (profile.device.as_str(), device.identity.as_str()))
        .collect();
    for (name, identity) in owners {
        if name != identity {
            output::say(&format!("the I/O of {name} belong to {identity} now"));
        }
    }
    Ok(Exit::Clean)
}

/// The devices of a history that may be absent yet.
fn known_devices(config: &AgentConfig) -> Result<Vec<SeriesFacts>, Failure> {
    match Reader::open(&config.state_dir, &config.history) {
        Err(HistoryError::Missing { .. }) => Ok(Vec::new()),
        opened => opened.and_then(|reader| reader.series()).map_err(failed),
    }
}

/// Identity and name of a device.
struct ImportedDevice {
    identity: String,
    name: String,
}

/// The device that an imported profile belongs to: the named one, else the one that had the name of the profile at its time.
fn device_of(
    known: &[SeriesFacts],
    profile: &Profile,
    at_ns: i64,
    identity: Option<&str>,
) -> ImportedDevice {
    let name = profile.device.as_str();
    if let Some(identity) = identity {
        let series = known.iter().find(|series| series.identity == identity);
        let known_name = series.and_then(|series| series.name_at(at_ns));
        return ImportedDevice {
            identity: identity.to_owned(),
            // The profile may be from another host: its name is no news about this device.
            name: known_name.unwrap_or(name).to_owned(),
        };
    }
    // A disk that went away keeps its last name, so the one that took the name last before that time counts.
    let since = |series: &SeriesFacts| {
        let names = series.names.iter().filter(|(_, known)| known == name);
        let taken = names.map(|(from_ns, _)| *from_ns);
        taken.filter(|from_ns| *from_ns <= at_ns).max()
    };
    let had_name = known
        .iter()
        .filter(|series| series.name_at(at_ns) == Some(name));
    let identity = had_name
        .max_by_key(|series| since(series))
        .map_or(name, |series| &series.identity);
    ImportedDevice {
        identity: identity.to_owned(),
        name: name.to_owned(),
    }
}

/// The time of a profile, if it has the time of day.
fn time_of(profile: &Profile, file: &str) -> Result<Span, Failure> {
    match (profile.time_base, profile.first_ns, profile.last_ns) {
        (TimeBase::Unix, Some(first), Some(last)) => Ok(Span {
            from_ns: first,
            to_ns: last.saturating_add(1),
        }),
        _ => Err(Failure::usage(format!(
            "{file}: the profile of {} has no time of day, expected one to store it at its time",
            profile.device
        ))),
    }
}

/// Makes the folder of a history for its owner alone.
///
/// # Errors
/// When it cannot be made.
pub fn make_folder(folder: &Path) -> Result<(), Failure> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| Failure::failed(&error).at(&format!("cannot make {}", folder.display())))
}

fn back_up(args: &HistoryBackup) -> Result<Exit, Failure> {
    let made = opened(&configured(&args.store)?)?
        .back_up(&args.to)
        .map_err(failed)?;
    for file in made {
        output::say(&format!("wrote {}", file.display()));
    }
    Ok(Exit::Clean)
}

/// Writes the profiles of spans to one file.
fn dump(args: &HistoryDump) -> Result<Exit, Failure> {
    let state_dir = &args.folder.find()?;
    let reader = span::open(state_dir)?;
    let wanted = match &args.last {
        Some(last) => last_of_all(&reader, last)?,
        None => named(&reader, &args.spans, false)?,
    };
    let (mut all, mut is_partial) = (Saved::default(), false);
    let mut added: BTreeMap<(String, &'static str), String> = BTreeMap::new();
    for (series, time) in &wanted {
        let before = all.sources.len();
        is_partial |= span::add_series(&reader, series, *time, state_dir, &mut all)?;
        if all.sources.len() == before {
            continue;
        }
        // A profile has the name alone: two disks would become one.
        let key = (series.name().to_owned(), series.layer.word());
        if let Some(other) = added.insert(key, series.identity.clone()) {
            return Err(Failure::usage(format!(
                "{} was the name of two devices in that time, {other} and {}: dump each by its identity into a file of its own",
                series.name(),
                series.identity
            )));
        }
    }
    if added.is_empty() {
        return Err(span::no_ios("any device"));
    }
    let bytes = codec::encode(&all).map_err(|error| Failure::failed(&error))?;
    output::write_file(&args.output, &bytes)?;
    output::say(&format!(
        "wrote {} to {}",
        plumb_geometry::plural(added.len() as u64, "profile"),
        args.output.display()
    ));
    Ok(match is_partial {
        true => Exit::Unknown,
        false => Exit::Clean,
    })
}

/// The argument of `--last`, ns.
fn last_ns(last: &str) -> Result<i64, Failure> {
    span::parse_length(last).ok_or_else(|| {
        Failure::usage(format!(
            "--last: found `{last}`, expected a time (15m, 2h, 7d)"
        ))
    })
}

/// All devices, and the time before now.
fn last_of_all(reader: &Reader, last: &str) -> Result<Vec<(SeriesFacts, Span)>, Failure> {
    let ns = last_ns(last)?;
    let to_ns = now_ns();
    let time = Span {
        from_ns: to_ns.saturating_sub(ns),
        to_ns,
    };
    let all = reader.series().map_err(failed)?;
    Ok(all.into_iter().map(|series| (series, time)).collect())
}

/// The devices that spans name, each once. A span without I/O is an error unless an empty answer is one.
fn named(
    reader: &Reader,
    spans: &[String],
    may_be_empty: bool,
) -> Result<Vec<(SeriesFacts, Span)>, Failure> {
    let mut all: Vec<(SeriesFacts, Span)> = Vec::new();
    for words in spans {
        let span = DeviceSpan::parse(words).map_err(Failure::usage)?;
        let mut has_any = false;
        for series in span.series(reader)? {
            if all.iter().any(|(known, _)| known.number == series.number) {
                let found = format!("{words}: found the same device twice, expected each once");
                return Err(Failure::usage(found));
            }
            let time = span.within(series.span.unwrap_or(span::EVER));
            has_any |= !time.common(series.span.unwrap_or(time)).is_empty();
            all.push((series, time));
        }
        if !has_any && !may_be_empty {
            return Err(span::no_ios(&span.device));
        }
    }
    Ok(all)
}

/// Shortest time that a prune keeps.
const KEEP_MIN_NS: i64 = 3_600_000_000_000;

/// Deletes old windows.
fn prune(args: &HistoryPrune) -> Result<Exit, Failure> {
    // A bare number would be seconds.
    let has_unit = args.keep.ends_with(['d', 'h']);
    let keep_ns = span::parse_length(&args.keep).filter(|ns| has_unit && *ns >= KEEP_MIN_NS);
    let keep_ns = keep_ns.ok_or_else(|| {
        Failure::usage(format!(
            "--keep: found `{}`, expected hours or days, an hour at least (12h, 90d)",
            args.keep
        ))
    })?;
    // A new store in an empty folder would be no answer.
    let config = configured(&args.store)?;
    let reader = opened(&config)?;
    let before_ns = now_ns().saturating_sub(keep_ns);
    let spans = reader.series().map_err(failed)?;
    let newest_ns = spans
        .iter()
        .filter_map(|series| series.span)
        .map(|span| span.to_ns)
        .max();
    drop(reader);
    if let Some(newest_ns) = newest_ns.filter(|newest_ns| *newest_ns <= before_ns) {
        return Err(Failure::usage(format!(
            "--keep {} would delete all: the history ends at {}; check the clock, or delete the folder",
            args.keep,
            time_words(newest_ns)
        )));
    }
    let mut writer = Writer::open(&config.state_dir, config.history).map_err(failed)?;
    let notices = writer.take_notices();
    for notice in &notices {
        output::say(&crate::agent::notice_words(notice));
    }
    let windows = writer.prune(before_ns).map_err(failed)?;
    output::say(&format!(
        "deleted {} that ended before {}; the history uses the room again, and its files keep their length",
        plumb_geometry::plural(windows, "window"),
        time_words(before_ns)
    ));
    Ok(match notices.is_empty() {
        true => Exit::Clean,
        false => Exit::Unknown,
    })
}

/// Now, in ns since 1970; 0 if the clock is set to a time before.
pub fn now_ns() -> i64 {
    moment::now_ns().unwrap_or(0)
}
