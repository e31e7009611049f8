//! Everything that a report says of one profile, computed once. Reports only print it.

use serde::Serialize;

use plumb_geometry::{Bounds, Bytes, Grid, SmallSort};
use plumb_model::{Part, Reason, Target};
use plumb_profile::answers::Answers;
use plumb_profile::fit::{FitTally, Select, Unknown};
use plumb_profile::histogram::{Counts, log_linear_bounds};
use plumb_profile::infer::{Inference, infer};
use plumb_profile::latency_fit::LatencyByFit;
use plumb_profile::profile::{Losses, Places, Profile};
use plumb_profile::what_if::{self, Class, Recorded, Refusal, Striped};
use plumb_trace::Op;

use crate::question::{GridSource, Questions};

/// At most this percentage of the I/O may have come without their order before streams are unknown.
const UNORDERED_PERCENT_MAX: u64 = 1;

/// Request sizes for the classes of random I/O, in bytes.
pub const SIZE_THRESHOLDS: [u64; 5] = [0, 8 << 10, 32 << 10, 64 << 10, 128 << 10];

/// The fit of the I/O on one grid.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GridFit {
    /// The grid, in the address space of the device.
    pub grid: Grid,
    /// Its source.
    pub source: GridSource,
    /// Reads and writes together, or why that is unknown.
    #[serde(serialize_with = "answer")]
    pub all: Result<FitTally, Unknown>,
    /// Reads; absent without any.
    pub reads: Option<FitTally>,
    /// Writes; absent without any.
    pub writes: Option<FitTally>,
    /// Bytes moved per byte read, an upper bound; absent when not known.
    pub read_amplification: Option<Bounds<f64>>,
    /// Bytes moved per byte written, those read first included, an upper bound; absent when not known.
    pub write_amplification: Option<Bounds<f64>>,
    /// Latency of unfitting against fitting I/O; absent when the fit is unknown.
    pub latency: Option<LatencyByFit>,
}

/// An answer or the reason for none.
fn answer<S: serde::Serializer, T: Serialize, E: std::fmt::Display>(
    answer: &Result<T, E>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct No {
        unknown: String,
    }
    match answer {
        Ok(value) => value.serialize(serializer),
        Err(why) => No {
            unknown: why.to_string(),
        }
        .serialize(serializer),
    }
}

/// Latency of one operation, ns: bounds of the bucket in which each share is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// I/O that were timed.
    pub timed: u64,
    /// Half are below.
    pub p50_ns: u64,
    /// 90 % are below.
    pub p90_ns: u64,
    /// 99 % are below.
    pub p99_ns: u64,
    /// 99.9 % are below.
    pub p999_ns: u64,
    /// The largest.
    pub max_ns: u64,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpSummary {
    /// Its operation.
    pub op: &'static str,
    /// I/O.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
    /// Failed I/O.
    pub failed: u64,
    /// Classes of lengths by powers of two, rising.
    pub sizes: Vec<LengthClass>,
    /// Issue to complete; absent when unknown.
    pub device: Option<Quantiles>,
    /// Insert to issue; absent when unknown.
    pub queue: Option<Quantiles>,
}

/// Sequential against random, for requests of at least one size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RandomBySize {
    /// Requests of at least this number of bytes.
    pub len_bytes_min: u64,
    /// How many.
    pub ios: u64,
    /// Of these, stream heads: random.
    pub heads: u64,
}

/// One place: the device or a partition of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlaceAnalysis {
    /// Name of the partition; absent for the device.
    pub name: Option<String>,
    /// Its start.
    pub first_byte: u64,
    /// The fit of the I/O on each requested grid.
    pub grids: Vec<GridFit>,
    /// The offset of the I/O.
    pub inference: Inference,
}

/// The effect of another layout.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WhatIf {
    /// All starts moved.
    pub shifted: Vec<Shifted>,
    /// A stripe; the refusal says why not.
    #[serde(serialize_with = "optional_answer")]
    pub striped: Option<Result<Striped, Unknown>>,
    /// Records; the refusal says why not.
    #[serde(serialize_with = "optional_answer")]
    pub recorded: Option<Result<Recorded, Refusal>>,
}

fn optional_answer<S: serde::Serializer, T: Serialize, E: std::fmt::Display>(
    value: &Option<Result<T, E>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => answer(value, serializer),
        None => serializer.serialize_none(),
    }
}

/// All starts moved, on one grid.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shifted {
    /// By how many bytes.
    pub by_bytes: i64,
    /// On which grid.
    pub grid: Grid,
    /// Class of the answer.
    pub class: Class,
    /// The fit then, or why it is unknown.
    #[serde(serialize_with = "answer")]
    pub tally: Result<FitTally, Unknown>,
}

/// I/O and threads in flight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InFlightSummary {
    /// Mean number of I/O in flight over the time observed.
    pub depth_mean: f64,
    /// Most at once.
    pub depth_max: u64,
    /// Mean number of distinct threads with I/O in flight while there was any; absent when threads are unknown.
    pub threads_mean: Option<f64>,
    /// Most at once; absent when threads are unknown.
    pub threads_max: Option<u64>,
}

/// Everything about one profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// Its subject.
    pub target: Target,
    /// Size of the device in bytes; absent when unknown.
    pub size_bytes: Option<u64>,
    /// I/O.
    pub ios: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// From the first to the last issue, ns; absent when unknown.
    pub span_ns: Option<u64>,
    /// I/O a second over that span; absent when unknown.
    pub ios_per_second: Option<f64>,
    /// I/O with a known latency.
    pub timed: u64,
    /// Whether the latencies may belong to other I/O, because many completions are missing. Then there are no
    /// percentiles, no depths in flight and no comparison by fit.
    pub pairing_unsound: bool,
    /// How many recordings.
    pub pieces: u64,
    /// Largest granularity that the table can answer.
    pub modulus_bytes: u64,
    /// Whether that is less than was asked for, for want of rows.
    pub modulus_lowered: bool,
    /// Whether lengths had to be rounded, so that some are not known exactly.
    pub lengths_rounded: bool,
    /// By operation; operations without an issue or a completion are absent.
    pub ops: Vec<OpSummary>,
    /// The device, then its partitions by their start.
    pub places: Vec<PlaceAnalysis>,
    /// Commonest lengths of reads and writes.
    pub lengths: Vec<LengthCount>,
    /// Stream heads, continuations and runs: see the profile.
    pub continuing: u64,
    /// Runs of at least three I/O.
    pub runs: u64,
    /// I/O in them.
    pub run_ios: u64,
    /// Random I/O by request size.
    pub random_by_size: Vec<RandomBySize>,
    /// In flight; absent when no latency is known.
    pub in_flight: Option<InFlightSummary>,
    /// How the device answered while it was watched; absent where nobody watched.
    pub answers: Option<Answers>,
    /// Processes with the most I/O.
    pub processes: Vec<ProcessCount>,
    /// Whether names were shortened, so that these counts are upper bounds.
    pub processes_shortened: bool,
    /// The effect of another layout.
    pub what_if: WhatIf,
    /// The losses. A source does not have the device of its lost events, so the losses of a source belong to the
    /// analysis of each device in it.
    pub losses: Losses,
}

/// I/O of a class of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LengthClass {
    /// Largest length of the class: a power of two.
    pub len_max_bytes: u64,
    /// I/O.
    pub ios: u64,
}

/// I/O of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LengthCount {
    /// The length.
    pub len_bytes: u64,
    /// Whether it was rounded up.
    pub is_rounded: bool,
    /// I/O.
    pub ios: u64,
}

/// I/O of the processes of one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessCount {
    /// The name; empty for all others.
    pub comm: String,
    /// I/O.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
}

/// How many lengths and processes are listed.
const LISTED: usize = 12;

/// Computes everything about a profile. `part` names the part of the device that the events were filtered to.
#[must_use]
pub fn analyze(profile: &Profile, part: Option<Part>, questions: &Questions) -> Analysis {
    let table = &profile.places.table;
    let span_ns = match (profile.first_ns, profile.last_ns) {
        (Some(first), Some(last)) if last > first => Some(last.abs_diff(first)),
        _ => None,
    };
    let mut lengths = table.lengths(Select::DATA);
    lengths.truncate(LISTED);
    let random_by_size = SIZE_THRESHOLDS
        .into_iter()
        .zip(table.count_by_length(SIZE_THRESHOLDS))
        .map(|(len_bytes_min, (ios, heads))| RandomBySize {
            len_bytes_min,
            ios,
            heads,
        });
    let most = profile.top.most(LISTED);
    let pairing_unsound = profile.is_pairing_unsound();
    Analysis {
        target: Target::seen(&profile.device, part, profile.layer),
        size_bytes: profile.size_bytes,
        ios: profile.ios(),
        bytes: profile.bytes(),
        span_ns,
        ios_per_second: span_ns.map(|ns| profile.ios() as f64 * 1e9 / ns as f64),
        timed: profile.timed_ios(),
        pairing_unsound,
        pieces: profile.pieces,
        modulus_bytes: table.modulus_bytes(),
        modulus_lowered: table.is_modulus_lowered(),
        lengths_rounded: table.are_lengths_rounded(),
        ops: Op::ALL
            .iter()
            .filter_map(|&op| summary_of(profile, op, pairing_unsound))
            .collect(),
        places: places(profile, questions, pairing_unsound),
        lengths: lengths
            .into_iter()
            .map(|(len_bytes, is_rounded, ios)| LengthCount {
                len_bytes,
                is_rounded,
                ios,
            })
            .collect(),
        continuing: profile.ordered.continuing,
        runs: profile.ordered.runs(),
        run_ios: profile.ordered.run_ios,
        random_by_size: random_by_size.collect(),
        in_flight: in_flight(profile).filter(|_| !pairing_unsound),
        answers: profile.answers.as_deref().cloned(),
        processes: most
            .into_iter()
            .map(|(comm, share)| ProcessCount {
                comm: comm.to_owned(),
                ios: share.ios,
                bytes: share.bytes,
            })
            .collect(),
        processes_shortened: profile.top.is_shortened(),
        what_if: what_if(profile, questions),
        losses: profile.losses.clone(),
    }
}

fn places(profile: &Profile, questions: &Questions, pairing_unsound: bool) -> Vec<PlaceAnalysis> {
    let mut parts: Vec<(&String, &Places)> = profile.partitions.iter().collect();
    parts.small_sort_by_key(|(_, places)| places.first_byte);
    let device = std::iter::once((None, &profile.places));
    device
        .chain(
            parts
                .into_iter()
                .map(|(name, places)| (Some(name.clone()), places)),
        )
        .filter(|(name, places)| name.is_none() || !places.table.is_empty())
        .map(|(name, places)| PlaceAnalysis {
            name,
            first_byte: places.first_byte,
            grids: questions
                .grids()
                .iter()
                .map(|&(grid, source)| {
                    let fit = grid_fit(places, grid, source, !profile.imported.is_empty());
                    let latency = fit.latency.filter(|_| !pairing_unsound);
                    GridFit { latency, ..fit }
                })
                .collect(),
            inference: infer(places),
        })
        .collect()
}

fn grid_fit(places: &Places, grid: Grid, source: GridSource, is_counted: bool) -> GridFit {
    let table = &places.table;
    let reads = table.fit(&grid, Select::op(Op::Read));
    let writes = table.fit(&grid, Select::op(Op::Write));
    // A source of ready-made counts saw I/O, but not their starts.
    let all = together(&reads, &writes).map_err(|why| match why {
        Unknown::NoIo if is_counted => Unknown::NoStarts,
        why => why,
    });
    let (reads, writes) = (reads.ok(), writes.ok());
    let amplification =
        |tally: &Option<FitTally>| tally.as_ref().and_then(|tally| tally.amplification(&grid));
    GridFit {
        grid,
        source,
        read_amplification: amplification(&reads),
        write_amplification: amplification(&writes),
        latency: if all.is_ok() {
            table.latency_by_fit(&grid).ok()
        } else {
            None
        },
        all,
        reads,
        writes,
    }
}

/// The sums of both; without reads and writes, the reason for that.
fn together(
    reads: &Result<FitTally, Unknown>,
    writes: &Result<FitTally, Unknown>,
) -> Result<FitTally, Unknown> {
    match (reads, writes) {
        (Ok(reads), Ok(writes)) => {
            let mut all = reads.clone();
            all.merge(writes);
            Ok(all)
        }
        (Ok(one), Err(_)) | (Err(_), Ok(one)) => Ok(one.clone()),
        (Err(why), Err(_)) => Err(why.clone()),
    }
}

fn what_if(profile: &Profile, questions: &Questions) -> WhatIf {
    let table = &profile.places.table;
    let shifted = questions.shift_bytes.map(|by_bytes| {
        let on = |(grid, _): &(Grid, GridSource)| {
            let tally = what_if::shifted(table, grid, by_bytes, Select::DATA);
            let class = tally.as_ref().map(Class::of_moved);
            Shifted {
                by_bytes,
                grid: *grid,
                class: class.unwrap_or(Class::ExactForTheseRequests),
                tally,
            }
        };
        questions.grids().iter().map(on).collect()
    });
    WhatIf {
        shifted: shifted.unwrap_or_default(),
        striped: questions
            .chunk
            .map(|chunk| what_if::striped(table, &chunk, questions.members)),
        recorded: questions
            .record
            .map(|record| what_if::recorded(table, profile.layer, &record)),
    }
}

fn summary_of(profile: &Profile, op: Op, pairing_unsound: bool) -> Option<OpSummary> {
    let totals = profile.op(op);
    if !totals.has_io() {
        return None;
    }
    Some(OpSummary {
        op: op.word(),
        ios: totals.ios,
        bytes: totals.bytes,
        failed: totals.failed,
        sizes: totals
            .sizes
            .iter()
            .map(|(index, ios)| LengthClass {
                len_max_bytes: power(index),
                ios,
            })
            .collect(),
        device: quantiles(&totals.device_ns).filter(|_| !pairing_unsound),
        queue: quantiles(&totals.queue_ns),
    })
}

/// Two to the power of an index; the largest number for 64.
fn power(index: usize) -> u64 {
    1u64.checked_shl(index as u32).unwrap_or(u64::MAX)
}

fn quantiles(counts: &Counts) -> Option<Quantiles> {
    let at = |part, whole| {
        counts
            .log_linear_quantile(part, whole)
            .map(|(_, high)| high)
    };
    Some(Quantiles {
        timed: counts.total(),
        p50_ns: at(50, 100)?,
        p90_ns: at(90, 100)?,
        p99_ns: at(99, 100)?,
        p999_ns: at(999, 1000)?,
        max_ns: at(1, 1)?,
    })
}

fn in_flight(profile: &Profile) -> Option<InFlightSummary> {
    let sums = &profile.ordered.in_flight;
    let depth_mean = mean(&sums.depth_ns, 0)?;
    let threads_mean = mean(&sums.threads_ns, 1);
    Some(InFlightSummary {
        depth_mean,
        depth_max: sums.depth_max,
        threads_mean,
        threads_max: threads_mean.map(|_| sums.threads_max),
    })
}

/// Mean value of a log-linear histogram from a bucket on, each bucket taken at its middle.
fn mean(counts: &Counts, from: usize) -> Option<f64> {
    let (mut sum, mut weight) = (0.0, 0.0);
    for (index, ns) in counts.iter().filter(|(index, _)| *index >= from) {
        let (low, high) = log_linear_bounds(index);
        sum += ns as f64 * (low as f64 + high as f64) / 2.0;
        weight += ns as f64;
    }
    (weight > 0.0).then(|| sum / weight)
}

impl Analysis {
    /// The device itself, without its partitions.
    #[must_use]
    pub fn device(&self) -> Option<&PlaceAnalysis> {
        self.places.first()
    }

    /// Why nothing can be said of streams; `None` when it can.
    #[must_use]
    pub fn streams_unknown(&self, profile: &Profile) -> Option<Reason> {
        if profile.completion_order {
            return Some(Reason::CompletionsOnly);
        }
        if self.losses.missing_files > 0 {
            let files = self.losses.missing_files;
            return Some(Reason::MissingFiles { files });
        }
        let ordered = profile
            .ordered
            .interarrival_ns
            .total()
            .saturating_add(profile.pieces);
        let unordered = u128::from(profile.ios().saturating_sub(ordered));
        let too_many =
            unordered * 100 > u128::from(profile.ios()) * u128::from(UNORDERED_PERCENT_MAX);
        too_many.then_some(Reason::Unordered)
    }

    /// Mean length of a read or write in bytes; absent without any.
    #[must_use]
    pub fn len_bytes_mean(&self) -> Option<Bytes> {
        let data: u64 = self
            .ops
            .iter()
            .filter(|op| matches!(op.op, "read" | "write"))
            .map(|op| op.ios)
            .sum();
        (data > 0).then(|| Bytes(self.bytes / data))
    }
}
