//! From a window that costs more to the boundary within it: windows half as long, again and again, down to the shortest
//! read that can cross.

use plumb_stats::Interval;
use plumb_stats::sequential::{Spending, next_size};

use super::meter::{Meter, ReadKind, ReadStarts};
use super::scale::middle;
use super::space::Residue;
use super::{ProbeReader, Stop};

/// Rounds of one halving.
const ROUNDS: std::ops::RangeInclusive<usize> = 5..=40;
/// Error of one halving. A wrong turn is noticed at the confirmation; it only costs time.
const ERROR: f64 = 0.02;

/// The offset of the boundary in a window of `len_bytes` from `residue` on, modulo `granularity`. `quiet` is where a window
/// of the same length costs least.
///
/// # Errors
/// As [`Meter::round`].
pub fn locate<R: ProbeReader>(
    meter: &mut Meter<'_, R>,
    granularity: u64,
    (mut residue, mut len_bytes): (u64, u64),
    quiet: u64,
    block: u64,
) -> Result<u64, Stop<R::Error>> {
    while len_bytes > 2 * block {
        let half = (len_bytes / 2).div_ceil(block) * block;
        let quarter = len_bytes / 4 / block * block;
        let mut begins = vec![0, quarter, len_bytes - half];
        begins.dedup();
        residue += begins[slowest(meter, granularity, residue, &begins, quiet, half)?];
        len_bytes = half;
    }
    Ok((residue + block) % granularity)
}

/// The most expensive window.
fn slowest<R: ProbeReader>(
    meter: &mut Meter<'_, R>,
    granularity: u64,
    residue: u64,
    begins: &[u64],
    quiet: u64,
    len_bytes: u64,
) -> Result<usize, Stop<R::Error>> {
    let at = |residue: u64| ReadKind {
        starts: ReadStarts::At(Residue::new(residue, granularity)),
        len_bytes,
    };
    let mut kinds: Vec<ReadKind> = begins.iter().map(|begin| at(residue + begin)).collect();
    kinds.push(at(quiet));
    let mut logs: Vec<Vec<f64>> = vec![Vec::new(); begins.len()];
    let mut spending = Spending::new(ERROR).ok();
    let mut next_look = *ROUNDS.start();
    for round in 1..=*ROUNDS.end() {
        let costs = meter.round(&kinds, round)?;
        let quiet = costs[begins.len()].ln();
        logs.iter_mut()
            .zip(&costs)
            .for_each(|(logs, cost)| logs.push(cost.ln() - quiet));
        if round < next_look {
            continue;
        }
        next_look = next_size(next_look);
        let best = best_of(&logs);
        let level = spending
            .as_mut()
            .map(|spending| spending.look(begins.len()));
        let is_above = |interval: Interval| interval.low > 0.0;
        let is_shown = level.is_some_and(|level| {
            plumb_stats::mean(&logs[best], level).is_ok_and(is_above)
                || plumb_stats::median(&logs[best], level).is_ok_and(is_above)
        });
        if is_shown {
            return Ok(best);
        }
    }
    Ok(best_of(&logs))
}

fn best_of(logs: &[Vec<f64>]) -> usize {
    (0..logs.len())
        .max_by(|a, b| middle(&logs[*a]).total_cmp(&middle(&logs[*b])))
        .unwrap_or(0)
}
