//! One side of a comparison: profiles, a capture of iostat, or a benchmark.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use plumb_diagnose::compare::{BenchDocument, Observed, of_bench, of_profile, of_series};
use plumb_diagnose::{Questions, analyze};
use plumb_profile::Profile;
use plumb_quoting::json;
use plumb_trace::input::Input;
use plumb_trace::series::{self, FirstReport, Series};

use crate::cli::{Compare, Selection};
use crate::collect::{Collected, collect};
use crate::failure::Failure;
use crate::history::span::ReadSpans;
use crate::inputs::{self, DUMP_BYTES_MAX};

use super::stretches::{self, Told};

/// The input of a side.
pub struct Side {
    path: String,
    file: PathBuf,
    questions: Questions,
    first: FirstReport,
    contents: Contents,
    /// Percentiles of devices whose trace was read again.
    percentiles: BTreeMap<String, Told>,
}

enum Contents {
    Profiles(Box<Collected>),
    Series(Box<Series>),
    Bench(Box<BenchDocument>),
}

impl Side {
    /// Reads a path, or standard input.
    ///
    /// # Errors
    /// When it cannot be read, or is nothing that can be compared.
    pub fn read(path: &Path, spans: &ReadSpans, args: &Compare) -> Result<Side, Failure> {
        let questions = Questions {
            grids: args.grids(),
            ..Questions::default()
        };
        let contents = match printed(path)? {
            Some(contents) => contents,
            None => Contents::Profiles(Box::new(profiles(path, spans, args, &questions)?)),
        };
        let percentiles = BTreeMap::new();
        Ok(Side {
            path: path.display().to_string(),
            file: path.to_owned(),
            questions,
            first: args.first.into(),
            contents,
            percentiles,
        })
    }

    /// Reads a trace once more, for percentiles of these devices in stretches of its time.
    ///
    /// # Errors
    /// When it cannot be read any more.
    pub fn read_again<'d>(
        &mut self,
        args: &Compare,
        devices: impl Iterator<Item = &'d str>,
    ) -> Result<(), Failure> {
        if let Contents::Profiles(collected) = &self.contents {
            let devices: BTreeSet<&str> = devices.collect();
            let wanted =
                lowest(collected).filter(|profile| devices.contains(profile.device.as_str()));
            self.percentiles = stretches::read_percentiles(&self.file, &selection(args), wanted)?;
        }
        Ok(())
    }

    /// The figures by interval, where a tool printed such.
    pub fn series(&self) -> Option<&Series> {
        match &self.contents {
            Contents::Series(series) => Some(series),
            Contents::Profiles(_) | Contents::Bench(_) => None,
        }
    }

    /// As it was named.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The devices with how many I/O each has, or had a second.
    pub fn devices(&self) -> BTreeMap<String, f64> {
        let mut devices = BTreeMap::new();
        let mut add = |name: &str, ios: f64| *devices.entry(name.to_owned()).or_insert(0.0) += ios;
        match &self.contents {
            Contents::Profiles(collected) => {
                for profile in lowest(collected) {
                    add(&profile.device, profile.ios() as f64);
                }
            }
            Contents::Bench(bench) => bench
                .runs
                .iter()
                .for_each(|run| add(&run.device(), run.ios() as f64)),
            Contents::Series(series) => {
                for (name, row) in series.reports.iter().flat_map(|report| &report.rows) {
                    add(name, row.per_second());
                }
            }
        }
        devices
    }

    /// The measurements of a device.
    pub fn observed(&self, device: &str) -> Observed {
        match &self.contents {
            Contents::Series(series) => of_series(series, device, self.first),
            Contents::Bench(bench) => {
                let found = bench.runs.iter().find(|run| run.device() == device);
                of_bench(found.expect("pairs are made of the runs of both sides"))
            }
            Contents::Profiles(collected) => {
                let found = lowest(collected).find(|profile| profile.device == device);
                let profile = found.expect("pairs are made of the devices of both sides");
                let mut analysis = analyze(profile, None, &self.questions);
                if let Some(losses) = collected
                    .losses
                    .get(&(profile.device.clone(), profile.layer))
                {
                    analysis.losses = losses.clone();
                }
                let mut observed = of_profile(profile, &analysis);
                if let Some(told) = self.percentiles.get(device) {
                    told.put(&mut observed);
                }
                observed
            }
        }
    }

    /// Sentences on the source.
    pub fn notes(&self) -> Vec<String> {
        match &self.contents {
            Contents::Profiles(collected) => collected.saved.notes.iter().cloned().collect(),
            Contents::Series(_) | Contents::Bench(_) => Vec::new(),
        }
    }

    /// Whether something of it could not be read, or was not measured to its end.
    pub fn is_partial(&self) -> bool {
        match &self.contents {
            Contents::Profiles(collected) => collected.partial,
            Contents::Series(series) => series.damaged > 0,
            Contents::Bench(bench) => !bench.runs.iter().all(|run| run.is_whole()),
        }
    }
}

/// The start of `plumb bench --json`, without white space.
const BENCH: &str = "{\"schema\":\"plumb.bench/";

/// The document of a benchmark, as far as it is read here.
#[derive(serde::Deserialize)]
struct SideDocument {
    result: BenchDocument,
}

/// Of any version.
#[derive(serde::Deserialize)]
struct DocumentSchema {
    schema: String,
}

/// The schema that is read.
const BENCH_SCHEMA: &str = "plumb.bench/2";

/// The capture of iostat or the benchmark that is there; `None` for anything else.
fn printed(path: &Path) -> Result<Option<Contents>, Failure> {
    let is_stdin = path == Path::new("-");
    if !is_stdin && !path.is_file() {
        return Ok(None);
    }
    let failed = |error: plumb_trace::Error| Failure::failed(&error);
    let mut input = Input::open(path).map_err(failed)?;
    let head = input.peek(series::SNIFF_BYTES).map_err(failed)?;
    let is_bench = is_bench(head);
    if !is_bench && !series::sniff(head) {
        return match is_stdin {
            true => Err(Failure::usage(
                "-: found neither output of iostat, sar, fio or Vdbench nor of plumb bench --json",
            )
            .with_help("give traces and profiles as files")),
            false => Ok(None),
        };
    }
    let name = input.path.clone();
    let bytes = inputs::whole(input, DUMP_BYTES_MAX)?;
    if is_bench {
        return bench(&name, &bytes).map(|bench| Some(Contents::Bench(Box::new(bench))));
    }
    series::read(&name, &bytes)
        .map(|series| Some(Contents::Series(Box::new(series))))
        .map_err(failed)
}

fn is_bench(head: &[u8]) -> bool {
    let bare: Vec<u8> = head
        .iter()
        .copied()
        .filter(|byte| !byte.is_ascii_whitespace())
        .take(BENCH.len())
        .collect();
    bare == BENCH.as_bytes()
}

fn bench(name: &str, bytes: &[u8]) -> Result<BenchDocument, Failure> {
    let damaged = |source| {
        Failure::failed(&NoBench {
            name: name.to_owned(),
            source,
        })
    };
    // A document of another version may lack fields of this one.
    let found = json::from_slice::<DocumentSchema>(bytes)
        .map_err(damaged)?
        .schema;
    if found != BENCH_SCHEMA {
        return Err(Failure::failed(&OtherSchema {
            name: name.to_owned(),
            found,
        }));
    }
    let document: SideDocument = json::from_slice(bytes).map_err(damaged)?;
    Ok(document.result)
}

/// A damaged document.
#[derive(Debug, thiserror::Error)]
#[error("{name}: expected a whole document of plumb bench --json")]
struct NoBench {
    name: String,
    source: serde_json::Error,
}

/// A document of another version.
#[derive(Debug, thiserror::Error)]
#[error("{name}: found schema {found}, expected {BENCH_SCHEMA}")]
struct OtherSchema {
    name: String,
    found: String,
}

fn selection(args: &Compare) -> Selection {
    Selection {
        layer: args.layer,
        format: args.format.clone(),
        ..Selection::default()
    }
}

fn profiles(
    path: &Path,
    spans: &ReadSpans,
    args: &Compare,
    questions: &Questions,
) -> Result<Collected, Failure> {
    let selection = selection(args);
    let settings = questions.settings();
    let (files, mine) = match spans.get(path) {
        Some(read) => (
            Vec::new(),
            ReadSpans::from([(path.to_owned(), read.clone())]),
        ),
        None => (vec![path.to_owned()], ReadSpans::new()),
    };
    let mut collected = collect(&files, mine, &selection, &settings, false);
    match Failure::first_of(std::mem::take(&mut collected.failures)) {
        Some(failure) => Err(failure),
        None => {
            collected.saved.profiles = only_wanted(&collected, &selection);
            Ok(collected)
        }
    }
}

fn only_wanted(collected: &Collected, selection: &Selection) -> plumb_profile::ProfileSet {
    let mut wanted = plumb_profile::ProfileSet::default();
    let profiles = collected
        .saved
        .profiles
        .iter()
        .filter(|profile| collected.is_wanted(selection, profile));
    profiles.for_each(|profile| wanted.add(profile));
    wanted
}

/// Of each device the profile of its lowest layer.
fn lowest(collected: &Collected) -> impl Iterator<Item = &Profile> {
    let mut of_device: BTreeMap<&str, &Profile> = BTreeMap::new();
    for profile in collected.saved.profiles.iter() {
        let known = of_device.entry(&profile.device).or_insert(profile);
        if profile.layer > known.layer {
            *known = profile;
        }
    }
    of_device.into_values()
}
