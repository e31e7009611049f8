//! A candidate is held against fresh reads, shortest ones across a boundary: whether its boundaries cost more than other
//! places, whether all of them do, and whether there is one half way between them.
//!
//! Of boundaries that are rarer than the candidate's only every second, third, fifth or seventh costs more. The reads of a
//! slice cross only such whose numbers are alike modulo one of these, so that they all do or none does. Modulo all of them at
//! once they would all be on a few members of an array, which are busier for it.

use plumb_stats::equivalence::{Margin, Standing, standing};
use plumb_stats::sequential::{Spending, next_size};
use plumb_stats::{Interval, Level};
use serde::Serialize;

use super::meter::{Meter, ReadKind, ReadStarts};
use super::space::Residue;
use super::{ProbeReader, Stop};

/// How often boundaries may be rarer than they seem.
const FACTORS: [u64; 4] = [2, 3, 5, 7];
/// Boundaries of one kind that must have room.
const PLACES_MIN: u64 = 8;
/// Rounds before the first look at whether boundaries are rarer, and at everything: with fewer rounds, a median has no
/// interval at the first look's level. Also the rounds before an end without an answer.
const ROUNDS_RARER: usize = 8;
const ROUNDS_MIN: usize = 16;
const ROUNDS_MAX: usize = 400;
/// Error of each of the three questions over all looks. Whether boundaries are rarer is asked of four factors in every step: at
/// 0.002 six of 4,800 simulated probes took every fifth or seventh for all where a miss costs a tenth, at a tenth of that two.
const ERROR: f64 = 0.002;
const ERROR_RARER: f64 = ERROR / 10.0;
/// Steps from one candidate to the next.
const STEPS_MAX: u32 = 24;
/// The outermost of this number on either side counts no more than the next one: a disturbance, and never all of the
/// rarest boundaries that are searched.
const OUTER: usize = 10;
/// Reads across boundaries in a round.
const ON: usize = 2;

/// The candidate to confirm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// Bytes from one boundary to the next.
    pub granularity_bytes: u64,
    /// Of the first boundary.
    pub offset_bytes: u64,
}

/// The known grid from 0 on; all reads that are compared cross equally many of its boundaries: at first that of the
/// logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fine {
    /// The logical block.
    pub block: u64,
    /// Bytes from one boundary to the next.
    pub cell_bytes: u64,
}

impl Fine {
    /// No grid is known.
    #[must_use]
    pub const fn blocks(block: u64) -> Fine {
        Fine {
            block,
            cell_bytes: block,
        }
    }

    /// The starts of the shortest reads within a cell, from its start on.
    #[must_use]
    pub const fn middle(self) -> u64 {
        (self.cell_bytes / 2 / self.block * self.block).saturating_sub(self.block)
    }
}

/// The result for a candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CandidateOutcome {
    /// These are the boundaries: the ratio of reads across one to others.
    Confirmed(Candidate, Interval),
    /// No boundary: crossing costs nothing, or less than the margin.
    Refuted,
    /// Not to be decided.
    Open,
}

enum CandidateStep {
    Confirmed(Interval),
    Refuted,
    Open,
    Other(Candidate),
}

/// Tests a candidate with reads, and the candidates derived from it.
///
/// # Errors
/// As [`Meter::round`].
pub fn confirm<R: ProbeReader>(
    meter: &mut Meter<'_, R>,
    mut candidate: Candidate,
    fine: Fine,
    margin: Margin,
) -> Result<CandidateOutcome, Stop<R::Error>> {
    for _ in 0..STEPS_MAX {
        match Trial::new(meter, candidate, fine).decide(meter, margin)? {
            CandidateStep::Confirmed(ratio) => {
                return Ok(CandidateOutcome::Confirmed(candidate, ratio));
            }
            CandidateStep::Refuted => return Ok(CandidateOutcome::Refuted),
            CandidateStep::Open => return Ok(CandidateOutcome::Open),
            CandidateStep::Other(other) => candidate = other,
        }
    }
    Ok(CandidateOutcome::Open)
}

/// Whether there is room for boundaries of one number modulo a factor, so that no place is read all the time.
#[must_use]
pub fn has_room<R: ProbeReader>(meter: &Meter<'_, R>, granularity: u64, factor: u64) -> bool {
    let places_min = PLACES_MIN.max(meter.places_min());
    let starts = granularity
        .checked_mul(factor)
        .map(|modulus| Residue::new(0, modulus));
    starts.is_some_and(|starts| meter.space.count(starts) >= places_min)
}

/// The reads of a candidate.
struct Trial {
    candidate: Candidate,
    fine: Fine,
    /// The factors that there is room for, or 1; of each the number of the boundaries that are read next, modulo it. A round is
    /// for one of them.
    factors: Vec<(u64, u64)>,
    /// The costs of reads across boundaries.
    on: Vec<Across>,
    /// The same, half way between boundaries; `None` where that is no multiple of the block.
    half: Option<Vec<f64>>,
}

impl Trial {
    fn new<R: ProbeReader>(meter: &mut Meter<'_, R>, candidate: Candidate, fine: Fine) -> Trial {
        let granularity = candidate.granularity_bytes;
        let mut factors: Vec<u64> = FACTORS
            .into_iter()
            .filter(|factor| has_room(meter, granularity, *factor))
            .collect();
        if factors.is_empty() {
            factors.push(1);
        }
        let factors = factors
            .into_iter()
            .map(|factor| (factor, meter.random.below(factor)))
            .collect();
        let cell_bytes = fine.cell_bytes;
        let half = (granularity / 2).is_multiple_of(cell_bytes) && granularity >= 2 * cell_bytes;
        Trial {
            candidate,
            fine,
            factors,
            on: Vec::new(),
            half: half.then(Vec::new),
        }
    }

    fn decide<R: ProbeReader>(
        mut self,
        meter: &mut Meter<'_, R>,
        margin: Margin,
    ) -> Result<CandidateStep, Stop<R::Error>> {
        let mut spending = [ERROR, ERROR, ERROR_RARER].map(|error| Spending::new(error).ok());
        let mut level = |at: usize, intervals: usize| {
            spending[at]
                .as_mut()
                .map_or(Level::P99, |spending| spending.look(intervals))
        };
        let numbers = self.factors().sum::<u64>() as usize;
        let mut next_look = ROUNDS_RARER;
        for round in 1..=ROUNDS_MAX {
            self.read(meter)?;
            if round < next_look {
                continue;
            }
            next_look = if round < ROUNDS_MIN {
                ROUNDS_MIN
            } else {
                next_size(next_look)
            };
            let rarer = self.rarer(level(2, numbers));
            if let Rarer::By(factor, number) = rarer {
                return Ok(CandidateStep::Other(self.rarer_by(factor, number)));
            }
            if round >= ROUNDS_MIN
                && let Some(step) = self.look([level(0, 1), level(1, 1)], rarer, margin)
            {
                return Ok(step);
            }
        }
        Ok(CandidateStep::Open)
    }

    /// One round: elsewhere, half way, and across some boundaries.
    fn read<R: ProbeReader>(&mut self, meter: &mut Meter<'_, R>) -> Result<(), Stop<R::Error>> {
        let Candidate {
            granularity_bytes: granularity,
            offset_bytes: offset,
        } = self.candidate;
        let across = |at: u64| (at + granularity - self.fine.block) % granularity;
        let (on, half) = (across(offset), across(offset + granularity / 2));
        let len_bytes = 2 * self.fine.block;
        let mut kinds = vec![ReadKind {
            starts: self.elsewhere(on, half),
            len_bytes,
        }];
        let round = self.on.len() / ON;
        let turn = round % self.factors.len();
        let (factor, next) = &mut self.factors[turn];
        let factor = *factor;
        let mut numbers = [0; ON];
        for number in &mut numbers {
            *number = *next;
            *next = (*next + 1) % factor;
            let residue = Residue::new(on + *number * granularity, granularity * factor);
            kinds.push(ReadKind {
                starts: ReadStarts::At(residue),
                len_bytes,
            });
        }
        if self.half.is_some() {
            kinds.push(ReadKind {
                starts: ReadStarts::At(Residue::new(half, granularity)),
                len_bytes,
            });
        }
        let costs = meter.round(&kinds, round)?;
        let elsewhere = costs[0].ln();
        let across = |(number, cost): (u64, &f64)| Across {
            factor,
            number,
            log: cost.ln() - elsewhere,
        };
        self.on
            .extend(numbers.into_iter().zip(&costs[1..]).map(across));
        if let Some(half) = &mut self.half {
            half.push(costs[1 + ON].ln() - elsewhere);
        }
        Ok(())
    }

    /// Reads that cross one boundary of the fine grid, and none of the candidate's.
    fn elsewhere(&self, on: u64, half: u64) -> ReadStarts {
        let (Fine { block, cell_bytes }, modulus) = (self.fine, self.candidate.granularity_bytes);
        let but = if modulus > 2 * cell_bytes {
            vec![on, half]
        } else {
            vec![on]
        };
        if cell_bytes == block {
            return ReadStarts::Besides {
                modulus,
                step: block,
                but,
            };
        }
        let across = (cell_bytes - block..modulus).step_by(cell_bytes as usize);
        ReadStarts::Among {
            modulus,
            residues: across.filter(|residue| !but.contains(residue)).collect(),
        }
    }

    /// The candidate that is left of this one where only the boundaries of one number cost more.
    fn rarer_by(&self, factor: u64, number: u64) -> Candidate {
        let Candidate {
            granularity_bytes: granularity,
            offset_bytes: offset,
        } = self.candidate;
        // A boundary at 0 is crossed by the read that starts at the end of the cell before.
        let carried = if offset < self.fine.block { 1 } else { 0 };
        let granularity_bytes = granularity * factor;
        let offset_bytes = (offset + (number + carried) % factor * granularity) % granularity_bytes;
        Candidate {
            granularity_bytes,
            offset_bytes,
        }
    }

    fn look(&self, levels: [Level; 2], rarer: Rarer, margin: Margin) -> Option<CandidateStep> {
        let logs: Vec<f64> = self.on.iter().map(|across| across.log).collect();
        let ratio = exp(plumb_stats::median(&pairs(&logs), levels[0]).ok()?);
        match standing(&ratio, margin) {
            Standing::Within | Standing::Below => return Some(CandidateStep::Refuted),
            Standing::Open => return None,
            Standing::Above => {}
        }
        match self.half_way(&logs, levels[1]) {
            Some(true) => {
                let granularity_bytes = self.candidate.granularity_bytes / 2;
                let offset_bytes = self.candidate.offset_bytes % granularity_bytes;
                Some(CandidateStep::Other(Candidate {
                    granularity_bytes,
                    offset_bytes,
                }))
            }
            Some(false) if rarer == Rarer::No => {
                let shown = plumb_stats::median(&pairs(&logs), Level::P99).map_or(ratio, exp);
                Some(CandidateStep::Confirmed(shown))
            }
            _ => None,
        }
    }

    /// Whether there is a boundary half way: whether reads there cost more than half of those across one.
    fn half_way(&self, on: &[f64], level: Level) -> Option<bool> {
        let Some(half) = &self.half else {
            return Some(false);
        };
        let past: Vec<f64> = half
            .iter()
            .zip(pairs(on))
            .map(|(half, on)| half - on / 2.0)
            .collect();
        let past = plumb_stats::median(&past, level).ok()?;
        if past.low > 0.0 {
            Some(true)
        } else if past.high < 0.0 {
            Some(false)
        } else {
            None
        }
    }

    /// Whether only every n-th of the boundaries costs more: then the others cost nothing, else as much.
    fn rarer(&self, level: Level) -> Rarer {
        let on = self.undisturbed();
        let mut answer = Rarer::No;
        for factor in self.factors() {
            let by_number = by_number(&on, factor);
            // Half way between the two: of n boundaries one costs n + 1 times as much as the mean of the others.
            let times = factor as f64 + 1.0;
            for number in 0..factor {
                match plumb_stats::apart(&by_number, number as usize, times, level) {
                    Ok(apart) if apart.low > 0.0 => return Rarer::By(factor, number),
                    Ok(apart) if apart.high < 0.0 => {}
                    _ => answer = Rarer::Unknown,
                }
            }
        }
        answer
    }

    /// The costs of reads across boundaries, the outermost reduced to the next ones.
    fn undisturbed(&self) -> Vec<Across> {
        let mut sorted: Vec<f64> = self.on.iter().map(|across| across.log).collect();
        sorted.sort_by(f64::total_cmp);
        let outer = sorted.len() / OUTER;
        let (low, high) = (sorted[outer], sorted[sorted.len() - 1 - outer]);
        self.on
            .iter()
            .map(|across| Across {
                log: across.log.clamp(low, high),
                ..*across
            })
            .collect()
    }

    /// The factors that are asked for.
    fn factors(&self) -> impl Iterator<Item = u64> {
        self.factors
            .iter()
            .map(|(factor, _)| *factor)
            .filter(|factor| *factor > 1)
    }
}

/// Reads across boundaries of one number, modulo a factor.
#[derive(Clone, Copy, Debug)]
struct Across {
    factor: u64,
    number: u64,
    /// ln of their cost, less ln of cost elsewhere.
    log: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rarer {
    No,
    Unknown,
    /// By this factor; the number of those that cost more.
    By(u64, u64),
}

/// The costs of reads across boundaries, by the number of the boundary modulo a factor.
fn by_number(on: &[Across], factor: u64) -> Vec<Vec<f64>> {
    let mut groups = vec![Vec::new(); factor as usize];
    for across in on.iter().filter(|across| across.factor == factor) {
        groups[across.number as usize].push(across.log);
    }
    groups
}

/// The mean of the reads across boundaries of each round.
fn pairs(on: &[f64]) -> Vec<f64> {
    on.chunks(ON)
        .map(|round| round.iter().sum::<f64>() / round.len() as f64)
        .collect()
}

fn exp(logs: Interval) -> Interval {
    Interval {
        estimate: logs.estimate.exp(),
        low: logs.low.exp(),
        high: logs.high.exp(),
        ..logs
    }
}
