//! Whether a cache is in front of the medium, and its reach: earlier reads are repeated, beside new ones.
//!
//! A probe never returns to a place while there are others, so a cache that starts empty has no effect. But it may hold
//! reads of others, or read ahead; and a small target is read completely in the end. Then first reads are as fast as
//! second ones. This is tested last, when the cache holds most.
//!
//! The tested sizes are those of the probe itself: the reads between a read and its repetition. Nothing else has to be
//! read for it. Each first read has the phase of a second one, so that boundaries cost both alike.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Serialize;

use super::meter::Meter;
use super::space::Residue;
use super::{ProbeReader, Stop};

/// How many reads ago a place was read that is read again.
const AGO: [usize; 5] = [64, 256, 1024, 4096, 16_384];
/// Reads that are remembered: the farthest with all that are read again from there on.
const REMEMBERED: usize = 20_000;
/// Rounds, and reads of a kind in each, after one that is not timed. Of slow reads fewer.
const ROUNDS: usize = 8;
const READS: usize = 3;
const SLOW: Duration = Duration::from_millis(2);
/// Repetitions this much faster than first reads came from a cache, and other first reads came from the same source as
/// repetitions.
const FASTER: f64 = 1.5;
/// In this number of four rounds they must be.
const ROUNDS_OF_FOUR: usize = 3;
/// Reads of one phase: larger granularities have too few boundaries to matter here.
const PHASE: u64 = 64 << 10;
/// Caches keep pages of this length at least.
const PAGE: u64 = 4096;

/// The reads to repeat.
#[derive(Clone, Debug, Default)]
pub(super) struct Trail {
    steps: VecDeque<TrailStep>,
    /// Reads and bytes of pages before the next one.
    reads: u64,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct TrailStep {
    start: u64,
    reads_before: u64,
    bytes_before: u64,
}

impl Trail {
    /// A read at a place that was not read before.
    pub(super) fn push(&mut self, start: u64, len_bytes: u64) {
        if self.steps.len() == REMEMBERED {
            self.steps.pop_front();
        }
        self.steps.push_back(TrailStep {
            start,
            reads_before: self.reads,
            bytes_before: self.bytes,
        });
        self.reads += 1;
        self.bytes += (start + len_bytes).next_multiple_of(PAGE) - start / PAGE * PAGE;
    }
}

/// A distance: the reads in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Reach {
    /// Reads.
    pub reads: u64,
    /// Bytes of the pages that they touched.
    pub bytes: u64,
}

/// The cache found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cache {
    /// Median ns of a first read, alone.
    pub first_ns: u64,
    /// Median ns of a repetition, alone: of those that are held, else of the nearest.
    pub again_ns: u64,
    /// The farthest distance over which places are held; `None` where repetitions take as long as first reads.
    pub held: Option<Reach>,
    /// The nearest over which they are not; `None` where all that were tried are.
    pub lost: Option<Reach>,
    /// Share of first reads that were as fast as repetitions that are held; 0 where none are.
    pub fast_share: f64,
}

/// Repetitions from one distance.
struct DistanceRepeats {
    steps: Vec<TrailStep>,
    reach: Reach,
    /// Rounds in which they were faster than first reads.
    faster: usize,
    latencies_ns: Vec<u64>,
}

impl DistanceRepeats {
    fn is_held(&self) -> bool {
        4 * self.faster >= ROUNDS_OF_FOUR * ROUNDS
    }
}

/// Repeats reads; `None` if there were too few.
///
/// # Errors
/// When a read fails or has no room.
pub(super) fn sweep<R: ProbeReader>(
    meter: &mut Meter<'_, R>,
    block: u64,
) -> Result<Option<Cache>, Stop<R::Error>> {
    let len_bytes = 2 * block;
    let mut kinds = kinds(&meter.trail);
    if kinds.is_empty() {
        return Ok(None);
    }
    let mut firsts_ns = Vec::new();
    let mut latencies_ns = Vec::new();
    let mut reads = READS;
    for round in 0..ROUNDS {
        let from = round * (1 + READS);
        let taken = |kind: &DistanceRepeats| kind.steps[from..=from + reads].to_vec();
        // First reads take turns with whose phase they have.
        let twins = taken(&kinds[round % kinds.len()]);
        let mut order: Vec<Option<usize>> = std::iter::once(None)
            .chain((0..kinds.len()).map(Some))
            .collect();
        for last in (1..order.len()).rev() {
            order.swap(last, meter.random.below(last as u64 + 1) as usize);
        }
        let mut again = vec![Duration::ZERO; kinds.len()];
        let mut first = Duration::ZERO;
        for which in order {
            let starts = match which {
                Some(at) => taken(&kinds[at]).iter().map(|step| step.start).collect(),
                None => fresh(meter, &twins, len_bytes)?,
            };
            let elapsed = one_by_one(meter, &starts, len_bytes, &mut latencies_ns)?;
            let (elapsed_of, all_ns) = match which {
                Some(at) => (&mut again[at], &mut kinds[at].latencies_ns),
                None => (&mut first, &mut firsts_ns),
            };
            *elapsed_of = elapsed;
            all_ns.extend_from_slice(&latencies_ns);
        }
        for (kind, again) in kinds.iter_mut().zip(again) {
            kind.faster += usize::from(again.mul_f64(FASTER) < first);
        }
        if first > SLOW * reads as u32 {
            reads = 1;
        }
    }
    Ok(Some(found(&kinds, firsts_ns)))
}

/// The kinds that the trail is long enough for.
fn kinds(trail: &Trail) -> Vec<DistanceRepeats> {
    let needed = ROUNDS * (1 + READS);
    let kind = |ago: usize| {
        let first = trail.steps.len().checked_sub(ago + needed)?;
        let steps: Vec<TrailStep> = trail.steps.range(first..first + needed).copied().collect();
        let last = steps.last()?;
        let reach = Reach {
            reads: trail.reads - last.reads_before,
            bytes: trail.bytes - last.bytes_before,
        };
        Some(DistanceRepeats {
            steps,
            reach,
            faster: 0,
            latencies_ns: Vec::new(),
        })
    };
    AGO.into_iter().map_while(kind).collect()
}

/// Places that were not read, of the phases of some that were.
fn fresh<R: ProbeReader>(
    meter: &mut Meter<'_, R>,
    twins: &[TrailStep],
    len_bytes: u64,
) -> Result<Vec<u64>, Stop<R::Error>> {
    let mut next = |step: &TrailStep| meter.space.next(Residue::new(step.start, PHASE), len_bytes);
    twins
        .iter()
        .map(|step| next(step).ok_or(Stop::NoRoom))
        .collect()
}

/// Time of all but the first.
fn one_by_one<R: ProbeReader>(
    meter: &mut Meter<'_, R>,
    starts: &[u64],
    len_bytes: u64,
    latencies_ns: &mut Vec<u64>,
) -> Result<Duration, Stop<R::Error>> {
    meter.read_alone(&starts[..1], len_bytes, latencies_ns)?;
    meter.read_alone(&starts[1..], len_bytes, latencies_ns)
}

fn found(kinds: &[DistanceRepeats], mut firsts_ns: Vec<u64>) -> Cache {
    let held = kinds.iter().take_while(|kind| kind.is_held()).count();
    let mut again_ns: Vec<u64> = kinds[..held.max(1)]
        .iter()
        .flat_map(|kind| kind.latencies_ns.iter().copied())
        .collect();
    let (first_ns, again_ns) = (median(&mut firsts_ns), median(&mut again_ns));
    let is_fast = |ns: &&u64| (**ns as f64) < again_ns as f64 * FASTER;
    let fast = if held == 0 {
        0
    } else {
        firsts_ns.iter().filter(is_fast).count()
    };
    Cache {
        first_ns,
        again_ns,
        held: held.checked_sub(1).map(|last| kinds[last].reach),
        lost: kinds.get(held).map(|kind| kind.reach),
        fast_share: fast as f64 / firsts_ns.len().max(1) as f64,
    }
}

fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}
