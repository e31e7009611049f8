//! Beyond a grid at 0: whether some of its boundaries cost more than others, like those of array blocks over sectors.
//! Then starts have to fit the coarser grid, which may have another offset.
//!
//! All reads that are compared cross equally many boundaries of the known grid. Grids of 2 and 4 times its granularity
//! are decided: by the shortest reads across its boundaries, by their number modulo 4. Only numbers other than 0
//! matter, and of them an even one only beside 0: a grid that costs more at 0, or at 0 and 2, is at 0 as well. For
//! larger ones the search continues with the known granularity in place of the logical block, for a short time.

use std::time::Duration;

use plumb_stats::sequential::{Spending, next_size};
use plumb_stats::{Interval, Level};

use super::confirm::{Candidate, CandidateOutcome, Fine, confirm, has_room};
use super::meter::{Meter, ReadKind, ReadStarts};
use super::scale::{Scale, TRACE};
use super::search::{REFUTED_MAX, ROUNDS, granularities, screen};
use super::space::Residue;
use super::{ProbeReader, Settings, Stop};

/// Times the known granularity that is decided.
const FACTORS: [u64; 2] = [4, 2];
/// Time for these, and for all larger ones.
const NEAR: Duration = Duration::from_secs(10);
const LARGER: Duration = Duration::from_millis(1000);
/// Time for whether lone reads pay as well.
const ALONE: Duration = Duration::from_secs(5);
/// Rounds before the first look.
const ROUNDS_MIN: usize = 12;
/// If time is over and nothing was found, penalties up to this part of the cost of crossing the known grid are named,
/// not decided.
const PART: f64 = 1.0 / 3.0;
/// Error of either statement over all looks.
const ERROR: f64 = 0.01;

/// The grids beyond a grid at 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Beyond {
    /// No coarser grid that begins elsewhere: up to 4 times the granularity none that costs more than the margin.
    Nothing,
    /// None of up to 4 times the granularity was seen, and none costs more than this share, which is above the margin.
    Within(f64),
    /// A coarser grid that begins elsewhere.
    Grid(Candidate),
    /// Not decided.
    Open,
}

/// Looks for coarser grids that begin elsewhere.
///
/// # Errors
/// When a read fails.
pub fn search<R: ProbeReader>(
    meter: &mut Meter<'_, R>,
    (grid, crossing): (Candidate, Option<Interval>),
    settings: &Settings,
) -> Result<Beyond, Stop<R::Error>> {
    let cell_bytes = grid.granularity_bytes;
    let is_sought = |factor: &u64| {
        cell_bytes
            .checked_mul(*factor)
            .is_some_and(|bytes| bytes <= settings.granularity_max)
    };
    let mut sought = FACTORS.into_iter().filter(is_sought).peekable();
    if sought.peek().is_none() {
        return Ok(Beyond::Nothing);
    }
    let Some(factor) = sought.find(|factor| has_room(meter, cell_bytes, *factor)) else {
        return Ok(Beyond::Open);
    };
    let fine = Fine {
        block: settings.block_bytes,
        cell_bytes,
    };
    meter.set_limit(meter.spent + NEAR);
    let bound = PART * crossing.map_or(0.0, |crossing| crossing.low.ln());
    let near = match near(meter, fine, factor, (settings, bound)) {
        Err(Stop::Time | Stop::NoRoom) => Beyond::Open,
        near => near?,
    };
    let found = match near {
        Beyond::Nothing | Beyond::Within(_) => {
            meter.set_limit(meter.spent + LARGER);
            larger(meter, fine, settings)?.map_or(near, Beyond::Grid)
        }
        near => near,
    };
    let Beyond::Grid(coarser) = found else {
        return Ok(found);
    };
    meter.set_limit(meter.spent + ALONE);
    match is_charged_alone(meter, fine, coarser) {
        Ok(true) => Ok(found),
        Ok(false) | Err(Stop::Time | Stop::NoRoom) => Ok(Beyond::Open),
        Err(stop) => Err(stop),
    }
}

/// Whether a lone read pays for the boundaries of the known grid that are not on the coarser one, as one of several
/// does. If it does not, they may separate members that work in parallel, and only for that reason cost less than
/// boundaries within one.
fn is_charged_alone<R: ProbeReader>(
    meter: &mut Meter<'_, R>,
    fine: Fine,
    coarser: Candidate,
) -> Result<bool, Stop<R::Error>> {
    let Fine { block, cell_bytes } = fine;
    let (modulus, len_bytes) = (coarser.granularity_bytes, 2 * block);
    let across = (cell_bytes - block..modulus).step_by(cell_bytes as usize);
    let residues = across
        .filter(|start| start + block != coarser.offset_bytes)
        .collect();
    let within = ReadStarts::At(Residue::new(fine.middle(), cell_bytes));
    let kinds = [ReadStarts::Among { modulus, residues }, within]
        .map(|starts| ReadKind { starts, len_bytes });
    let mut spending = Spending::new(ERROR).ok();
    let (mut apart, mut next_look) = (Vec::new(), ROUNDS_MIN);
    loop {
        let cost = |costs: Vec<f64>| costs[0].ln() - costs[1].ln();
        let together = cost(meter.round(&kinds, apart.len())?);
        let depth = meter.set_depth(1);
        let alone = meter.round(&kinds, apart.len());
        meter.set_depth(depth);
        apart.push(cost(alone?) - together / 2.0);
        if apart.len() < next_look {
            continue;
        }
        next_look = next_size(next_look);
        let level = spending
            .as_mut()
            .map_or(Level::P99, |spending| spending.look(1));
        match plumb_stats::median(&apart, level) {
            Ok(apart) if apart.low > 0.0 => return Ok(true),
            Ok(apart) if apart.high < 0.0 => return Ok(false),
            _ => {}
        }
    }
}

/// Boundaries by their number, first alone; if that shows a trace, against reads beside them, which are on the same
/// members.
fn near<R: ProbeReader>(
    meter: &mut Meter<'_, R>,
    fine: Fine,
    factor: u64,
    (settings, bound): (&Settings, f64),
) -> Result<Beyond, Stop<R::Error>> {
    let margin = settings.margin.ratio().ln();
    let mut numbered = Numbered::new(fine, factor, false);
    let mut refuted = 0;
    loop {
        let decided = match numbered.decide(meter, margin) {
            Err(Stop::Time) if !numbered.is_beside && numbered.most <= bound => {
                return Ok(Beyond::Within(numbered.most.exp_m1()));
            }
            decided => decided?,
        };
        match decided {
            Numbers::Alike => return Ok(Beyond::Nothing),
            Numbers::More(_) if !numbered.is_beside => numbered = Numbered::new(fine, factor, true),
            Numbers::More(number) => {
                let cell_bytes = fine.cell_bytes;
                let candidate = Candidate {
                    granularity_bytes: factor * cell_bytes,
                    offset_bytes: number * cell_bytes,
                };
                match confirm(meter, candidate, fine, settings.margin)? {
                    CandidateOutcome::Confirmed(grid, _) if grid.offset_bytes > 0 => {
                        return Ok(Beyond::Grid(grid));
                    }
                    _ => refuted += 1,
                }
                if refuted > REFUTED_MAX {
                    return Ok(Beyond::Open);
                }
                numbered.next_look = 2 * numbered.rounds.len();
            }
        }
    }
}

enum Numbers {
    /// None costs more than the margin.
    Alike,
    /// This one seems to cost more.
    More(u64),
}

/// The costs of the shortest reads across boundaries, by the number of the boundary.
struct Numbered {
    fine: Fine,
    factor: u64,
    /// Whether they are held against reads beside the boundary.
    is_beside: bool,
    /// ln of cost, by round, then number.
    rounds: Vec<Vec<f64>>,
    /// ln of the largest possible excess of one over another, by the latest look.
    most: f64,
    next_look: usize,
    spending: Option<Spending>,
}

impl Numbered {
    fn new(fine: Fine, factor: u64, is_beside: bool) -> Numbered {
        let spending = Spending::new(ERROR).ok();
        let most = f64::INFINITY;
        Numbered {
            fine,
            factor,
            is_beside,
            rounds: Vec::new(),
            most,
            next_look: ROUNDS_MIN,
            spending,
        }
    }

    fn decide<R: ProbeReader>(
        &mut self,
        meter: &mut Meter<'_, R>,
        margin: f64,
    ) -> Result<Numbers, Stop<R::Error>> {
        loop {
            self.read(meter)?;
            if self.rounds.len() < self.next_look {
                continue;
            }
            self.next_look = next_size(self.next_look);
            if let Some(numbers) = self.look(margin) {
                return Ok(numbers);
            }
        }
    }

    fn read<R: ProbeReader>(&mut self, meter: &mut Meter<'_, R>) -> Result<(), Stop<R::Error>> {
        let Fine { block, cell_bytes } = self.fine;
        let (modulus, len_bytes) = (self.factor * cell_bytes, 2 * block);
        let across = |number: u64| {
            let residue = Residue::new(number * cell_bytes + modulus - block, modulus);
            ReadKind {
                starts: ReadStarts::At(residue),
                len_bytes,
            }
        };
        let middle = self.fine.middle();
        let beside = |number: u64| {
            let behind = number * cell_bytes + middle;
            let residues = vec![behind, (behind + modulus - cell_bytes) % modulus];
            ReadKind {
                starts: ReadStarts::Among { modulus, residues },
                len_bytes,
            }
        };
        let mut kinds: Vec<ReadKind> = (0..self.factor).map(across).collect();
        if self.is_beside {
            kinds.extend((0..self.factor).map(beside));
        }
        let costs = meter.round(&kinds, self.rounds.len())?;
        let (across, beside) = costs.split_at(self.factor as usize);
        let log = |(at, cost): (usize, &f64)| {
            cost.ln() - beside.get(at).map_or(0.0, |beside| beside.ln())
        };
        self.rounds
            .push(across.iter().enumerate().map(log).collect());
        Ok(())
    }

    fn look(&mut self, margin: f64) -> Option<Numbers> {
        let pairs = pairs(self.factor as usize);
        let level = self
            .spending
            .as_mut()
            .map_or(Level::P99, |spending| spending.look(pairs.len()));
        let mut highest = f64::NEG_INFINITY;
        let mut more = None;
        for (number, other) in pairs {
            let apart: Vec<f64> = self
                .rounds
                .iter()
                .map(|round| round[number] - round[other])
                .collect();
            let apart = plumb_stats::median(&apart, level).ok()?;
            highest = highest.max(apart.high);
            let is_most = more.is_none_or(|(_, most)| apart.estimate > most);
            if apart.low > 0.0 && apart.estimate > TRACE && is_most {
                more = Some((number as u64, apart.estimate));
            }
        }
        self.most = highest;
        match more {
            _ if highest <= margin => Some(Numbers::Alike),
            more => more.map(|(number, _)| Numbers::More(number)),
        }
    }
}

/// Pairs of numbers; the first must not cost more than the second, or a coarser grid begins elsewhere than at 0.
fn pairs(factor: usize) -> Vec<(usize, usize)> {
    let all = (1..factor).flat_map(|number| (0..factor).map(move |other| (number, other)));
    all.filter(|(number, other)| number != other && (number % 2 == 1 || *other == 0))
        .collect()
}

/// The first grid elsewhere that larger scales show.
fn larger<R: ProbeReader>(
    meter: &mut Meter<'_, R>,
    fine: Fine,
    settings: &Settings,
) -> Result<Option<Candidate>, Stop<R::Error>> {
    for granularity in granularities(2 * fine.cell_bytes, settings) {
        let mut scale = Scale::new(granularity, fine.cell_bytes);
        match screen(meter, &mut scale, ROUNDS, fine, settings.margin) {
            Ok(Some((grid, _))) if grid.offset_bytes > 0 => return Ok(Some(grid)),
            Ok(None) => {}
            // A boundary at 0 too hides larger ones.
            Ok(Some(_)) | Err(Stop::Time | Stop::NoRoom) => break,
            Err(stop) => return Err(stop),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By counting: of a grid of 2 or 4 cells some pair tells, unless it begins at 0; of one at 0 none does.
    #[test]
    fn pairs_detect_data_elsewhere() {
        for (factor, every) in [(2, 2), (4, 2), (4, 4)] {
            for offset in 0..every {
                let costs: Vec<u32> = (0..factor)
                    .map(|number| u32::from(number % every == offset))
                    .collect();
                let is_told = pairs(factor)
                    .into_iter()
                    .any(|(number, other)| costs[number] > costs[other]);
                assert_eq!(is_told, offset > 0, "{every} at {offset} modulo {factor}");
            }
        }
        assert_eq!(pairs(4).len(), 7);
    }
}
