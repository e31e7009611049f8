//! The cost of misaligned reads, once the grid is known: aligned and misaligned reads of one length, and the sweep of
//! starts over the granularity.

use plumb_stats::{Interval, Level};

use super::confirm::Candidate;
use super::meter::{Meter, ReadKind, ReadStarts};
use super::space::Residue;
use super::{Bar, ProbeReader, Stop};

/// Longest read by which a miss is measured; of longer grids those that cross a boundary against those that do not.
const LEN_BYTES_MAX: u64 = 64 << 10;
/// Rounds of the ratio, and how often as many are added while its interval is wide.
const ROUNDS: usize = 14;
const BATCHES: usize = 8;
/// An interval this narrow, as a share of the ratio, is narrow enough; or a tenth of the cost.
const WIDTH: f64 = 0.02;
/// Starts of a sweep, and the slices that it is made of: it is a picture.
const BARS: u64 = 16;
const SWEEP_SLICES: usize = 16;

/// The length of reads by which a miss of this grid is measured.
#[must_use]
pub fn len_bytes(grid: Candidate, block: u64) -> u64 {
    grid.granularity_bytes.min(LEN_BYTES_MAX) / block * block
}

/// The ratio of reads off the grid to reads on it, 99 of 100; `None` without time for the fewest rounds.
///
/// # Errors
/// When a read fails or has no room.
pub fn penalty<R: ProbeReader>(
    meter: &mut Meter<'_, R>,
    grid: Candidate,
    block: u64,
) -> Result<Option<Interval>, Stop<R::Error>> {
    let Candidate {
        granularity_bytes: granularity,
        offset_bytes: offset,
    } = grid;
    let len_bytes = len_bytes(grid, block);
    // Those that cross no boundary: the start on it, or so far before the next one that the read ends there.
    let on: Vec<u64> = (0..=granularity - len_bytes)
        .step_by(block as usize)
        .map(|past| (offset + past) % granularity)
        .collect();
    let off = ReadStarts::Besides {
        modulus: granularity,
        step: block,
        but: on,
    };
    let on = ReadStarts::At(Residue::new(offset, granularity));
    let kinds = [on, off].map(|starts| ReadKind { starts, len_bytes });
    let (mut fitting, mut missing) = (Vec::new(), Vec::new());
    let mut ratio = None;
    for _ in 0..BATCHES {
        for _ in 0..ROUNDS {
            let costs = match meter.round(&kinds, fitting.len()) {
                Err(Stop::Time) => return Ok(ratio),
                costs => costs?,
            };
            fitting.push(costs[0]);
            missing.push(costs[1]);
        }
        ratio = plumb_stats::median_ratio(&fitting, &missing, Level::P99).ok();
        let width = ratio.map_or(f64::INFINITY, |ratio| {
            (ratio.high - ratio.low) / ratio.estimate
        });
        let enough = ratio.map_or(0.0, |ratio| (ratio.estimate - 1.0) / 10.0);
        if width < WIDTH.max(enough) {
            break;
        }
    }
    Ok(ratio)
}

/// Reads of the granularity's length from each start: the picture of the grid.
///
/// # Errors
/// When a read fails or has no room.
pub fn sweep<R: ProbeReader>(
    meter: &mut Meter<'_, R>,
    grid: Candidate,
    block: u64,
) -> Result<Vec<Bar>, Stop<R::Error>> {
    let granularity = grid.granularity_bytes;
    let step = (granularity / BARS / block * block).max(block);
    let offsets: Vec<u64> = (0..granularity).step_by(step as usize).collect();
    let len_bytes = len_bytes(grid, block);
    let kind = |offset: &u64| ReadKind {
        starts: ReadStarts::At(Residue::new(*offset, granularity)),
        len_bytes,
    };
    let kinds: Vec<ReadKind> = offsets.iter().map(kind).collect();
    let mut costs = vec![Vec::new(); kinds.len()];
    for _ in 0..(SWEEP_SLICES / kinds.len().max(1)).max(1) {
        match meter.round(&kinds, 0) {
            Err(Stop::Time) => break,
            round => costs
                .iter_mut()
                .zip(round?)
                .for_each(|(costs, cost)| costs.push(cost)),
        }
    }
    let bar = |(offset_bytes, costs): (u64, Vec<f64>)| {
        // Disturbances make a read longer, never shorter.
        let ns = costs.into_iter().min_by(f64::total_cmp)?;
        Some(Bar { offset_bytes, ns })
    };
    Ok(offsets.into_iter().zip(costs).filter_map(bar).collect())
}
