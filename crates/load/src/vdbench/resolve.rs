//! Runs from definitions: names found, lists repeated, the rate shared out.

use std::path::PathBuf;

use super::definition::{
    Definitions, Order, RateAsked, RunDefinition, RunLoop, Storage, THREADS_MAX, Varied, Workload,
};
use crate::job_file::{JobFileError, listed};
use crate::series::{Area, Edge, Hits, Rate, Run, RunPart, Series};

/// Most runs of a file: at two seconds each they take five hours.
const RUNS_MAX: usize = 10_000;
/// Most workloads on storages over all runs.
const PARTS_MAX: usize = 100_000;

/// Makes runs of definitions.
pub(super) fn resolve(all: Definitions) -> Result<Series, JobFileError> {
    let mut runs = Vec::new();
    let mut parts = 0;
    for rd in &all.runs {
        let pairs = pairs_of(rd, &all)?;
        for repetition in repetitions(rd)? {
            let run = run_of(rd, &pairs, &repetition)?;
            parts += run.parts.len();
            runs.push(run);
            if runs.len() > RUNS_MAX || parts > PARTS_MAX {
                return Err(JobFileError::Shape {
                    place: rd.place.clone(),
                    found: format!("more than {RUNS_MAX} runs, or {PARTS_MAX} workloads in them"),
                    expected: "fewer or shorter lists",
                });
            }
        }
    }
    Ok(Series {
        runs,
        notes: all.notes,
    })
}

/// A workload with the storages that a run gives it.
struct PlacedWorkload<'a> {
    workload: &'a Workload,
    storages: Vec<&'a Storage>,
    /// Percent of the run's rate.
    skew: f64,
}

fn pairs_of<'a>(
    rd: &RunDefinition,
    all: &'a Definitions,
) -> Result<Vec<PlacedWorkload<'a>>, JobFileError> {
    let mut workloads = Vec::new();
    if rd.workloads.is_empty() {
        workloads.push(&all.workload_default);
    }
    for name in &rd.workloads {
        let matching: Vec<&Workload> = all
            .workloads
            .iter()
            .filter(|wd| is_meant(name, &wd.name))
            .collect();
        if matching.is_empty() {
            return Err(no_such(
                rd,
                "wd",
                name,
                all.workloads.iter().map(|wd| &*wd.name),
            ));
        }
        workloads.extend(matching);
    }
    let skews = skews(rd, &workloads)?;
    let pairs = workloads.into_iter().zip(skews);
    pairs
        .map(|(workload, skew)| {
            Ok(PlacedWorkload {
                workload,
                storages: storages_of(rd, workload, all)?,
                skew,
            })
        })
        .collect()
}

/// Those of the run go before those of the workload, which then need not exist.
fn storages_of<'a>(
    rd: &RunDefinition,
    wd: &Workload,
    all: &'a Definitions,
) -> Result<Vec<&'a Storage>, JobFileError> {
    let names = rd.storages.as_ref().unwrap_or(&wd.storages);
    if names.is_empty() {
        return Err(JobFileError::Lacking {
            place: rd.place.clone(),
            owner: format!("rd={} with wd={}", rd.name, wd.name),
            lacking: "sd=",
            expected: "it in one of the two",
        });
    }
    let mut storages: Vec<&Storage> = Vec::new();
    for name in names {
        let matching: Vec<&Storage> = all
            .storages
            .iter()
            .filter(|sd| is_meant(name, &sd.name))
            .collect();
        if matching.is_empty() {
            return Err(no_such(
                rd,
                "sd",
                name,
                all.storages.iter().map(|sd| &*sd.name),
            ));
        }
        for sd in matching {
            if storages.iter().any(|other| other.name == sd.name) {
                let what = format!("sd={} for wd={} in rd={}", sd.name, wd.name, rd.name);
                return Err(JobFileError::Twice {
                    place: rd.place.clone(),
                    what,
                    first: rd.place.line,
                });
            }
            storages.push(sd);
        }
    }
    Ok(storages)
}

/// A name, or the beginning of one before a `*`.
fn is_meant(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}

fn no_such<'a>(
    rd: &RunDefinition,
    kind: &'static str,
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> JobFileError {
    JobFileError::NoSuch {
        place: rd.place.clone(),
        kind,
        name: name.to_owned(),
        known: listed(known),
    }
}

/// Percent of the rate for each workload: as given, and the rest in even parts.
fn skews(rd: &RunDefinition, workloads: &[&Workload]) -> Result<Vec<f64>, JobFileError> {
    let given: Vec<f64> = workloads
        .iter()
        .filter_map(|wd| wd.skew)
        .map(f64::from)
        .collect();
    let others = workloads.len() - given.len();
    let left = 100.0 - given.iter().sum::<f64>();
    let wrong = |expected: &str| JobFileError::Value {
        place: rd.place.clone(),
        parameter: format!("skew of the workloads of rd={}", rd.name),
        found: given
            .iter()
            .map(f64::to_string)
            .collect::<Vec<_>>()
            .join(", "),
        expected: expected.to_owned(),
    };
    if left < 0.0 || (others == 0 && left != 0.0) {
        return Err(wrong("percentages that add up to 100"));
    }
    let has_rate = matches!(&rd.rate, Some(RateAsked::Each(rates)) if rates.iter().all(|rate| rate.value.is_finite()));
    if !given.is_empty() && !has_rate {
        return Err(wrong("none without a rate to share out: iorate=NUMBER"));
    }
    let even = left / others.max(1) as f64;
    Ok(workloads
        .iter()
        .map(|wd| wd.skew.map_or(even, f64::from))
        .collect())
}

/// Values of each list for one run, outermost first.
type Repetition = Vec<(Varied, f64)>;

/// Every combination of the lists' values, the last list fastest, as Vdbench goes through them. A list of rates that was
/// given as `iorate=` is the last one.
fn repetitions(rd: &RunDefinition) -> Result<Vec<Repetition>, JobFileError> {
    let mut loops = rd.loops.clone();
    match &rd.rate {
        Some(RateAsked::Each(rates)) => {
            let signed = |rate: &super::value::Number| {
                if rate.is_percent {
                    -rate.value
                } else {
                    rate.value
                }
            };
            loops.retain(|other| other.what != Varied::Rate);
            loops.push(RunLoop {
                what: Varied::Rate,
                values: rates.iter().map(signed).collect(),
            });
        }
        Some(RateAsked::Max) if !has_rates(&loops) => {
            loops.push(RunLoop {
                what: Varied::Rate,
                values: vec![f64::INFINITY],
            });
        }
        Some(RateAsked::Curve) => {
            loops.retain(|other| other.what != Varied::Rate);
            let points = rd.curve.iter().map(|percent| -percent);
            loops.push(RunLoop {
                what: Varied::Rate,
                values: std::iter::once(f64::INFINITY).chain(points).collect(),
            });
        }
        _ if !has_rates(&loops) => {
            return Err(JobFileError::Lacking {
                place: rd.place.clone(),
                owner: format!("rd={}", rd.name),
                lacking: "iorate=",
                expected: "iorate=max, iorate=curve or I/O a second",
            });
        }
        _ => {}
    }
    let runs = loops
        .iter()
        .try_fold(1_usize, |runs, list| runs.checked_mul(list.values.len()));
    if runs.is_none_or(|runs| runs > RUNS_MAX) {
        return Err(JobFileError::Shape {
            place: rd.place.clone(),
            found: format!("more than {RUNS_MAX} runs of rd={}", rd.name),
            expected: "fewer or shorter lists",
        });
    }
    let mut all: Vec<Repetition> = vec![Vec::new()];
    for RunLoop { what, values } in &loops {
        let longer = |before: &Repetition| {
            values
                .iter()
                .map(|value| [&before[..], &[(*what, *value)]].concat())
                .collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    Ok(all)
}

fn has_rates(loops: &[RunLoop]) -> bool {
    loops.iter().any(|list| list.what == Varied::Rate)
}

fn run_of(
    rd: &RunDefinition,
    pairs: &[PlacedWorkload<'_>],
    repetition: &Repetition,
) -> Result<Run, JobFileError> {
    let mut rate = Rate::Max;
    let mut overrides = Vec::new();
    for (what, value) in repetition {
        if *what == Varied::Rate {
            rate = match *value {
                value if value.is_infinite() => Rate::Max,
                value if value < 0.0 => Rate::PercentOfMax(-value),
                value => Rate::PerSecond(value),
            };
        }
        overrides.extend(shown(*what, *value, rd));
    }
    let is_to_end = ends_at_end(rd, pairs, repetition)?;
    let mut parts = Vec::new();
    for pair in pairs {
        let share = pair.skew / 100.0 / pair.storages.len() as f64;
        for sd in &pair.storages {
            let users = pairs
                .iter()
                .filter(|other| other.storages.iter().any(|same| same.name == sd.name));
            parts.push(part_of(
                rd,
                pair.workload,
                sd,
                share,
                repetition,
                users.count() as u32,
            )?);
        }
    }
    let [elapsed, interval, warmup, pause] = rd.times();
    Ok(Run {
        name: rd.name.clone(),
        overrides,
        parts,
        rate,
        arrivals: Some(rd.arrivals),
        elapsed: Some(elapsed),
        is_one_pass: is_to_end,
        interval,
        warmup,
        pause,
        seed: None,
    })
}

/// The order of a workload in a run: a list of the run overrides the workload.
fn order(wd: &Workload, repetition: &Repetition) -> Order {
    let listed = repetition
        .iter()
        .find(|(what, _)| *what == Varied::RandomPercent);
    listed.map_or(wd.order, |(_, percent)| Order::Random(*percent as u8))
}

/// Whether a run is over when its workloads have reached the end of their storages. That is known beforehand where I/O are of
/// one length and no other goes between them.
fn ends_at_end(
    rd: &RunDefinition,
    pairs: &[PlacedWorkload<'_>],
    repetition: &Repetition,
) -> Result<bool, JobFileError> {
    let is_to_end = |pair: &&PlacedWorkload<'_>| order(pair.workload, repetition) == Order::ToEnd;
    let Some(PlacedWorkload { workload: wd, .. }) = pairs.iter().find(is_to_end) else {
        return Ok(false);
    };
    let has_list = |what: Varied| repetition.iter().any(|(other, _)| *other == what);
    let has_hits = wd.read_hits > 0 || wd.write_hits > 0;
    let expected = if !pairs.iter().all(|pair| is_to_end(&pair)) {
        "eof for all workloads of a run, or for none"
    } else if wd.lengths.len() > 1 && !has_list(Varied::Length) {
        "a single xfersize with it"
    } else if has_hits || has_list(Varied::ReadHits) || has_list(Varied::WriteHits) {
        "no rhpct and no whpct with it"
    } else if rd.warmup > 0 {
        "no warmup with it: its I/O would be missing at the end"
    } else {
        return Ok(true);
    };
    Err(JobFileError::Value {
        place: rd.place.clone(),
        parameter: format!("seekpct of wd={} in rd={}", wd.name, rd.name),
        found: "eof".to_owned(),
        expected: expected.to_owned(),
    })
}

/// The difference that a list makes, in the words of the file. One rate for all runs makes none.
fn shown(what: Varied, value: f64, rd: &RunDefinition) -> Option<(&'static str, String)> {
    let size = |value: f64| match value as u64 {
        bytes if bytes > 0 && bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        bytes if bytes > 0 && bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        bytes => bytes.to_string(),
    };
    match what {
        Varied::Length => Some(("xfersize", size(value))),
        Varied::HitArea => Some(("hitarea", size(value))),
        Varied::Threads => Some(("threads", value.to_string())),
        Varied::ReadPercent => Some(("rdpct", value.to_string())),
        Varied::ReadHits => Some(("rhpct", value.to_string())),
        Varied::WriteHits => Some(("whpct", value.to_string())),
        Varied::RandomPercent => Some(("seekpct", value.to_string())),
        Varied::Rate => {
            let is_one = match &rd.rate {
                Some(RateAsked::Max) => !has_rates(&rd.loops),
                Some(RateAsked::Each(rates)) => rates.len() == 1,
                _ => false,
            };
            let word = match value {
                value if value.is_infinite() => "max".to_owned(),
                value if value < 0.0 => format!("{}%", -value),
                value => value.to_string(),
            };
            (!is_one).then_some(("iorate", word))
        }
    }
}

fn part_of(
    rd: &RunDefinition,
    wd: &Workload,
    sd: &Storage,
    share: f64,
    repetition: &Repetition,
    users: u32,
) -> Result<RunPart, JobFileError> {
    let varied = |what: Varied| {
        repetition
            .iter()
            .find(|(other, _)| *other == what)
            .map(|(_, value)| *value)
    };
    let percent = |what: Varied, own: u8| varied(what).map_or(own, |value| value as u8);
    let lengths = varied(Varied::Length)
        .map_or_else(|| wd.lengths.clone(), |bytes| vec![(bytes as u64, 1.0)]);
    let threads = varied(Varied::Threads).map_or(sd.threads, |threads| threads as u32);
    let (from, to) = wd
        .range
        .or(sd.range)
        .unwrap_or((Edge::Bytes(0), Edge::Percent(100.0)));
    let order = order(wd, repetition);
    let read_hits = percent(Varied::ReadHits, wd.read_hits);
    let write_hits = percent(Varied::WriteHits, wd.write_hits);
    let hit_area = varied(Varied::HitArea).map_or(sd.hit_area, |bytes| bytes as u64);
    let lun = sd.lun.clone().unwrap_or_default();
    Ok(RunPart {
        workload: wd.name.clone(),
        storage: sd.name.clone(),
        place: sd.place.clone(),
        streams: 1,
        // Threads are of a storage: its workloads share them.
        depth: (threads / users.max(1)).clamp(1, THREADS_MAX as u32),
        read_percent: percent(Varied::ReadPercent, wd.read_percent),
        random_percent: if let Order::Random(percent) = order {
            percent
        } else {
            0
        },
        from_anywhere: order == Order::FromAnywhere,
        zipf: None,
        stride: stride(rd, wd, order, &lengths)?,
        area: Area {
            size: sd.size.map(Edge::Bytes),
            from,
            to,
            spares_first: lun.starts_with("/dev/"),
        },
        path: PathBuf::from(lun),
        lengths,
        offset: sd.offset,
        align: sd.align,
        hits: (read_hits > 0 || write_hits > 0).then_some(Hits {
            bytes: hit_area,
            read_percent: read_hits,
            write_percent: write_hits,
        }),
        share,
    })
}

/// Vdbench adds a stride to the end of the I/O before, in place of seeking.
fn stride(
    rd: &RunDefinition,
    wd: &Workload,
    order: Order,
    lengths: &[(u64, f64)],
) -> Result<Option<u64>, JobFileError> {
    match (wd.stride, lengths) {
        (None, _) => Ok(None),
        (Some(skipped), [(bytes, _)]) if order == Order::Random(100) => Ok(Some(skipped + bytes)),
        (Some(skipped), _) => Err(JobFileError::Value {
            place: rd.place.clone(),
            parameter: format!("stride of wd={}", wd.name),
            found: skipped.to_string(),
            expected: "a single xfersize and seekpct=100 with it".to_owned(),
        }),
    }
}
