//! A run of a series as the engine takes it.

use std::time::Duration;

use plumb_geometry::Bytes;

use super::{Run, RunPart, SeriesError, Targets};
use crate::draw::WorkloadLayout;
use crate::permission::MayWrite;
use crate::plan::{Job, LoadPlan, Pace};
use crate::random::Random;
use crate::target::Target;
use crate::workload::{Hits, Lengths, Spread, Starts, Workload, WorkloadError};

/// Weights of lengths are kept to this fraction of a percent.
const WEIGHT: f64 = 1_000.0;

/// Plans a run. `limit` is the rate of all parts together; `seed` is taken where the run has none of its own.
///
/// # Errors
/// When a part does not fit its target.
pub fn plan<'a>(
    run: &Run,
    targets: &'a Targets,
    limit: Option<f64>,
    seed: u64,
) -> Result<LoadPlan<'a>, SeriesError> {
    let mut jobs = Vec::new();
    for part in &run.parts {
        let place = || part.place.clone();
        let open = targets.get(&part.path);
        let not_open = || SeriesError::NotOpen {
            place: place(),
            path: part.path.clone(),
        };
        let (target, may_write) = open.ok_or_else(not_open)?;
        let unfit = |source| SeriesError::Workload {
            place: place(),
            source,
        };
        let workload = workload(part, target).map_err(unfit)?;
        // Errors that the engine would report only at the start of this run.
        WorkloadLayout::new(&workload, target, &mut Random::new(seed, 0)).map_err(unfit)?;
        jobs.extend(jobs_of(run, part, &workload, target, may_write, limit));
    }
    Ok(LoadPlan {
        jobs,
        warmup: run.warmup,
        duration: run.elapsed,
        interval: run.interval.max(Duration::from_millis(1)),
        seed: run.seed.unwrap_or(seed),
        engine: crate::EngineChoice::Ring,
    })
}

/// Independent streams are jobs of their own where each has a place or an end; else they are threads of one.
fn jobs_of<'a>(
    run: &Run,
    part: &RunPart,
    workload: &Workload,
    target: &'a Target,
    may_write: Option<&'a MayWrite>,
    limit: Option<f64>,
) -> Vec<Job<'a>> {
    let is_apart = run.is_one_pass || !matches!(workload.starts, Starts::Random(_));
    let (jobs, threads) = if is_apart {
        (part.streams, 1)
    } else {
        (1, part.streams)
    };
    let pace = limit.map_or(Pace::Max, |limit| {
        let per_second = limit * part.share / f64::from(jobs);
        match run.arrivals {
            Some(arrivals) => Pace::Open {
                per_second,
                arrivals,
            },
            None => Pace::Closed { per_second },
        }
    });
    let ios_max = run.is_one_pass.then(|| ios_of_one_pass(part, workload));
    let job = Job {
        may_write,
        threads,
        depth: part.depth,
        pace,
        ios_max,
        ..Job::new(target, workload.clone())
    };
    vec![job; jobs as usize]
}

fn workload(part: &RunPart, target: &Target) -> Result<Workload, WorkloadError> {
    let unit = part.length_max();
    let (from, to) = part.area.on(target.size_bytes(), unit);
    if to <= from {
        return Err(WorkloadError::TooSmall {
            target: target.name().to_owned(),
            found_bytes: 0,
            len_bytes: u32::try_from(unit).unwrap_or(u32::MAX),
            at: String::new(),
        });
    }
    let weighted = part.lengths.iter().map(|(bytes, weight)| {
        (
            u32::try_from(*bytes).unwrap_or(u32::MAX),
            (weight * WEIGHT).round().max(1.0) as u32,
        )
    });
    let spread = part
        .zipf
        .map_or(Spread::Uniform, |theta| Spread::Zipf { theta });
    Ok(Workload {
        read_percent: part.read_percent,
        lengths: Lengths::new(weighted.collect())?,
        starts: match (part.stride, part.random_percent) {
            (Some(stride_bytes), _) => Starts::Strided { stride_bytes },
            (None, 0) => Starts::Sequential {
                from_anywhere: part.from_anywhere,
            },
            (None, 100) => Starts::Random(spread),
            (None, percent) => Starts::Seeks { percent, spread },
        },
        align_bytes: part.align,
        shift_bytes: i64::try_from(part.offset).unwrap_or(i64::MAX),
        range: Some((Bytes(from), Bytes(to))),
        hits: part.hits.map(|hits| Hits {
            area_bytes: hits.bytes,
            read_percent: hits.read_percent,
            write_percent: hits.write_percent,
        }),
    })
}

/// I/O that move as many bytes as the range has.
fn ios_of_one_pass(part: &RunPart, workload: &Workload) -> u64 {
    let (from, to) = workload.range.unwrap_or_default();
    let weights: f64 = part.lengths.iter().map(|(_, weight)| weight).sum();
    let mean = part
        .lengths
        .iter()
        .map(|(bytes, weight)| *bytes as f64 * weight / weights)
        .sum::<f64>();
    (((to.0 - from.0).saturating_sub(part.offset) as f64 / mean) as u64).max(1)
}
