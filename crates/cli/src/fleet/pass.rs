//! One pass over the inputs of a fleet, host by host: each input is profiled by itself, several at a time, and only the profiles of the
//! present host are in memory.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plumb_fleet::{HostIo, Source};
use plumb_profile::profile::TimeBase;
use plumb_profile::{ProfileSet, Settings};

use super::{say_unread, windows};
use crate::collect::profile_alone;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::say;
use crate::side_by_side;
use crate::status::{Meter, count_of};

/// Inputs for each processor that are read ahead of the one whose turn it is. Their profiles are in memory together: up to 16 MB for a device.
const AHEAD: usize = 4;

/// Shows how many inputs are read.
pub struct InputMeter {
    done: Arc<AtomicU64>,
    _meter: Meter,
}

impl InputMeter {
    /// Begins with none of `all`.
    pub fn start(all: usize, unit: &'static str) -> InputMeter {
        let done = Arc::new(AtomicU64::new(0));
        let read = Arc::clone(&done);
        let words =
            move |elapsed| count_of(read.load(Ordering::Relaxed), all as u64, unit, elapsed);
        InputMeter {
            done,
            _meter: Meter::start(words),
        }
    }

    /// Counts one more.
    pub fn advance(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Inputs that are not, or not whole, in the result.
#[derive(Clone, Copy, Debug, Default)]
pub struct PassEnd {
    /// Inputs that could not be read.
    pub unread: u64,
    /// Inputs that could be read only in part.
    pub partial: u64,
}

impl PassEnd {
    /// Adds a host.
    pub fn count(&mut self, host: &HostIo) {
        self.unread += host.facts.unread.len() as u64;
        self.partial += host.facts.partial.len() as u64;
    }

    /// The end of a command that only writes.
    #[must_use]
    pub fn exit(self) -> Exit {
        if self.unread + self.partial > 0 {
            Exit::Unknown
        } else {
            Exit::Clean
        }
    }
}

/// Whether the I/O of a host are those of the report, or earlier ones that it is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostAge {
    /// Those of the report.
    #[default]
    Now,
    /// Those before the time of `--since`.
    Earlier,
}

/// A host on its way, with its earlier inputs apart.
struct PresentHost {
    now: Option<HostIo>,
    earlier: Option<HostIo>,
    name: String,
}

impl PresentHost {
    fn new(name: &str) -> PresentHost {
        PresentHost {
            now: None,
            earlier: None,
            name: name.to_owned(),
        }
    }

    /// The I/O of an age.
    fn of(&mut self, age: HostAge) -> &mut HostIo {
        let place = match age {
            HostAge::Now => &mut self.now,
            HostAge::Earlier => &mut self.earlier,
        };
        place.get_or_insert_with(|| HostIo::new(&self.name))
    }
}

/// The age of an input: earlier if all of its I/O are before a time. Without a time of day it is of now.
fn age_of(profiles: &ProfileSet, since_ns: Option<i64>) -> HostAge {
    match newest_ns(profiles).zip(since_ns) {
        Some((newest, since)) if newest < since => HostAge::Earlier,
        _ => HostAge::Now,
    }
}

/// Unix time of the newest I/O, ns; `None` without a time of day.
pub fn newest_ns(profiles: &ProfileSet) -> Option<i64> {
    let dated = profiles
        .iter()
        .filter(|profile| profile.time_base == TimeBase::Unix);
    dated.filter_map(|profile| profile.last_ns).max()
}

/// Profiles the inputs in the order of their hosts, and passes each host on. Inputs before `since_ns` are a host of their own, passed on before
/// the other.
///
/// # Errors
/// When an input cannot be read, unless those are skipped, and when `take` fails.
pub fn run(
    sources: &[Source],
    settings: &Settings,
    skips_bad: bool,
    since_ns: Option<i64>,
    take: &mut (dyn FnMut(HostIo, HostAge) -> Result<(), Failure> + Send),
) -> Result<PassEnd, Failure> {
    let meter = InputMeter::start(sources.len(), "inputs");
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut end = PassEnd::default();
    let mut present: Option<PresentHost> = None;
    let mut pass_on = |host: PresentHost| -> Result<(), Failure> {
        let ages = [(host.earlier, HostAge::Earlier), (host.now, HostAge::Now)];
        for (host, age) in ages {
            if let Some(host) = host {
                end.count(&host);
                take(host, age)?;
            }
        }
        Ok(())
    };
    let read = |source: &Source| {
        let read = match source.has_windows {
            true => windows::profiles(&source.piece.files),
            false => profile_alone(&source.piece, settings),
        };
        let input = read.and_then(|(profiles, is_whole)| one(source, profiles, is_whole));
        meter.advance();
        input
    };
    let take_input = |source: &Source, input: Result<HostIo, Failure>| {
        if present
            .as_ref()
            .is_some_and(|host| host.name != source.host)
            && let Some(host) = present.take()
        {
            pass_on(host)?;
        }
        let host = present.get_or_insert_with(|| PresentHost::new(&source.host));
        match input {
            Ok(input) => {
                if !input.facts.partial.is_empty() {
                    let path = source.piece.path.display();
                    say(&format!("plumb: {path}: read only in part"));
                }
                let age = age_of(&input.profiles, since_ns);
                host.of(age).absorb(input);
            }
            Err(failure) if skips_bad => {
                say(&format!(
                    "plumb: skipped: {}",
                    named(failure, source).text("")
                ));
                let unread = &mut host.of(HostAge::Now).facts.unread;
                unread.insert(source.name.clone());
            }
            Err(failure) => return Err(named(failure, source)),
        }
        Ok(())
    };
    side_by_side::in_order(sources, AHEAD * processors, read, take_input)?;
    present.map_or(Ok(()), &mut pass_on)?;
    drop(meter);
    if end.unread > 0 {
        say_unread(end.unread);
    }
    Ok(end)
}

/// The I/O of an input.
fn one(source: &Source, profiles: ProfileSet, is_whole: bool) -> Result<HostIo, Failure> {
    let len_bytes = len_bytes(source);
    HostIo::of_input(&source.host, &source.name, len_bytes, is_whole, profiles)
        .map_err(|error| Failure::failed(&error))
}

/// The length of the files of an input; 0 for files that are not there.
pub fn len_bytes(source: &Source) -> u64 {
    let found = files_of(source).iter().map(std::fs::metadata);
    found.flatten().map(|found| found.len()).sum()
}

/// The files of an input.
pub fn files_of(source: &Source) -> &[PathBuf] {
    let piece = &source.piece;
    match piece.files.is_empty() {
        true => std::slice::from_ref(&piece.path),
        false => &piece.files,
    }
}

/// The failure with the path of the input, if it does not have it.
pub fn named(failure: Failure, source: &Source) -> Failure {
    let path = source.piece.path.display().to_string();
    match failure.text("").contains(&path) {
        true => failure,
        false => failure.at(&path),
    }
}
