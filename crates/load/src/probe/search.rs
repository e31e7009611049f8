//! The order of a probe: from small granularities to large ones, until one is found or none is left.

use std::time::Duration;

use super::confirm::{Outcome, confirm};
use super::meter::{Kind, Meter, Starts};
use super::scale::{Scale, State};
use super::space::{Residue, Space};
use super::{Candidate, Probed, Reader, Reason, Searched, Settings, Stop, Verdict, cost, locate};
use crate::random::Random;

/// Windows of the smallest scale are the shortest reads that can cross anything.
const BLOCKS_MIN: u64 = 8;
/// From one scale to the next: see [`scale`](super::scale).
const STEP: u64 = 4;
/// Rounds of a scale before the next one has its turn, and how much more in the next pass.
const ROUNDS: usize = 42;
const PASSES: u32 = 4;
/// Of the time for all a scale has this part before the next one has its turn, and more in later passes.
const TURNS: u32 = 10;
/// Candidates of one scale that may turn out to be none.
const REFUTED_MAX: u32 = 4;
/// A device may allow a burst at first: reads go on until two spans of this length agree.
const SETTLED: Duration = Duration::from_millis(60);
const SETTLED_WITHIN: f64 = 0.1;
const SETTLING_MAX: Duration = Duration::from_secs(2);
/// A verdict that there is no penalty covers at least this granularity: what file systems and databases write.
pub const COVERED_MIN: u64 = 64 << 10;
/// Time beyond the limit in which a penalty is measured.
const MEASURED: Duration = Duration::from_secs(10);
/// What larger boundaries may take once smaller ones are found at 0.
const BEYOND: Duration = Duration::from_millis(1500);

/// Probes a target.
///
/// # Errors
/// When a read fails.
pub fn probe<R: Reader>(reader: &mut R, settings: &Settings) -> Result<Probed, R::Error> {
    let mut random = Random::new(settings.seed, 0);
    let space = Space::new(&settings.ranges, &mut random);
    let meter = Meter::new(reader, space, random, settings.depth, settings.limit);
    let mut search = Search { meter, settings, scales: scales(settings), found: Found::default() };
    match search.run() {
        Err(Stop::Read(error)) => return Err(error),
        Err(Stop::NoRoom) => search.found.reason = Some(Reason::NoRoom),
        Ok(()) | Err(Stop::Time) => {}
    }
    Ok(search.probed())
}

/// What is looked for, from small to large.
fn scales(settings: &Settings) -> Vec<Scale> {
    let block = settings.block_bytes;
    let mut granularities: Vec<u64> =
        std::iter::successors(Some(BLOCKS_MIN * block), |granularity| granularity.checked_mul(STEP))
            .take_while(|granularity| *granularity <= settings.granularity_max)
            .collect();
    // A power of two is found by the scales as they are.
    let others = settings.granularities.iter().copied();
    granularities.extend(others.filter(|granularity| {
        !granularity.is_power_of_two() && *granularity >= 3 * block && granularity.is_multiple_of(block)
    }));
    granularities.sort_unstable();
    granularities.dedup();
    granularities.into_iter().map(|granularity| Scale::new(granularity, block)).collect()
}

#[derive(Default)]
struct Found {
    grid: Option<Candidate>,
    crossing: Option<plumb_stats::Interval>,
    penalty: Option<plumb_stats::Interval>,
    bars: Vec<super::Bar>,
    reason: Option<Reason>,
    settled_ns: Option<f64>,
    last_ns: Option<f64>,
}

struct Search<'r, 's, R: Reader> {
    meter: Meter<'r, R>,
    settings: &'s Settings,
    scales: Vec<Scale>,
    found: Found,
}

impl<R: Reader> Search<'_, '_, R> {
    fn run(&mut self) -> Result<(), Stop<R::Error>> {
        self.found.settled_ns = Some(self.settle()?);
        self.search()?;
        if let Some(grid) = self.found.grid {
            let block = self.settings.block_bytes;
            // What was found late has still to be measured.
            self.meter.set_limit(self.settings.limit.max(self.meter.spent) + MEASURED);
            self.found.penalty = cost::penalty(&mut self.meter, grid, block)?;
            self.found.bars = cost::sweep(&mut self.meter, grid, block)?;
            if grid.offset_bytes == 0 {
                self.search_beyond(grid)?;
            }
        }
        self.found.last_ns = Some(self.short_reads(SETTLED)?);
        Ok(())
    }

    /// Reads until the rate is steady; ns a read.
    fn settle(&mut self) -> Result<f64, Stop<R::Error>> {
        let until = (self.meter.spent + SETTLING_MAX).min(self.settings.limit);
        let mut before = self.short_reads(SETTLED)?;
        loop {
            let now = self.short_reads(SETTLED)?;
            if (now / before - 1.0).abs() < SETTLED_WITHIN || self.meter.spent >= until {
                return Ok(now);
            }
            before = now;
        }
    }

    /// Short reads anywhere, for about so long; ns a read.
    fn short_reads(&mut self, span: Duration) -> Result<f64, Stop<R::Error>> {
        let block = self.settings.block_bytes;
        let anywhere = Starts::At(Residue::new(0, block));
        let kind = Kind { starts: anywhere, len_bytes: 2 * block };
        let (end, before) = (self.meter.spent + span, self.meter.reads);
        let from = self.meter.spent;
        while self.meter.spent < end {
            self.meter.read(&kind, READS_AT_ONCE)?;
        }
        let reads = (self.meter.reads - before) as f64;
        Ok((self.meter.spent - from).as_nanos() as f64 / reads)
    }

    /// Scale by scale, those that are open again and again with more rounds.
    fn search(&mut self) -> Result<(), Stop<R::Error>> {
        for pass in 0..PASSES {
            for at in 0..self.scales.len() {
                // Long reads must not take the time of short ones, which a verdict needs first.
                let turn = self.settings.limit / TURNS * (pass + 1);
                let before = self.meter.set_limit((self.meter.spent + turn).min(self.settings.limit));
                let screened = self.screen(at, ROUNDS << (2 * pass));
                self.meter.set_limit(before);
                match screened {
                    Ok(true) => return Ok(()),
                    Err(Stop::Time) if self.meter.spent < self.settings.limit => {}
                    screened => {
                        screened?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether one scale shows a grid.
    fn screen(&mut self, at: usize, rounds_max: usize) -> Result<bool, Stop<R::Error>> {
        let (block, margin) = (self.settings.block_bytes, self.settings.margin);
        loop {
            let scale = &mut self.scales[at];
            if scale.refuted > REFUTED_MAX || matches!(scale.state, State::Flat(_)) {
                return Ok(false);
            }
            match scale.screen(&mut self.meter, rounds_max, margin.share()) {
                // A window that does not fit is no boundary that anybody could miss.
                Err(Stop::NoRoom) if at > 0 => return Ok(false),
                screened => screened?,
            }
            let State::Contrast { slow, fast } = scale.state else { return Ok(false) };
            let (granularity, window) = (scale.granularity_bytes, (scale.residues[slow], scale.len_bytes));
            let quiet = scale.residues[fast];
            let offset_bytes = locate::locate(&mut self.meter, granularity, window, quiet, block)?;
            let candidate = Candidate { granularity_bytes: granularity, offset_bytes };
            match confirm(&mut self.meter, candidate, block, margin)? {
                Outcome::Confirmed(grid, crossing) => {
                    self.found.grid = Some(grid);
                    self.found.crossing = Some(crossing);
                    return Ok(true);
                }
                Outcome::Refuted | Outcome::Open => self.scales[at].refute(),
            }
        }
    }

    /// A grid at 0 is no reason to call a target aligned when a larger one lies elsewhere: larger scales, as far as their
    /// windows are alike on the grid that is known, have a short time.
    fn search_beyond(&mut self, grid: Candidate) -> Result<(), Stop<R::Error>> {
        let crossing = self.found.crossing;
        let before = self.meter.set_limit((self.meter.spent + BEYOND).min(self.settings.limit));
        for at in 0..self.scales.len() {
            let is_beyond = |scale: &Scale| {
                scale.residues.iter().all(|residue| residue % grid.granularity_bytes == 0)
                    && scale.granularity_bytes > grid.granularity_bytes
            };
            if !is_beyond(&self.scales[at]) {
                continue;
            }
            match self.screen(at, ROUNDS) {
                Ok(false) => {}
                Ok(true) => break,
                Err(Stop::Time | Stop::NoRoom) => break,
                Err(stop) => return Err(stop),
            }
        }
        self.meter.set_limit(before);
        match self.found.grid {
            // The larger one lies at 0 as well: the smaller one is what everything has to fit.
            Some(larger) if larger.offset_bytes == 0 || larger == grid => {
                self.found.grid = Some(grid);
                self.found.crossing = crossing;
            }
            Some(larger) => {
                let block = self.settings.block_bytes;
                self.found.penalty = cost::penalty(&mut self.meter, larger, block)?;
                self.found.bars = cost::sweep(&mut self.meter, larger, block)?;
            }
            None => {}
        }
        Ok(())
    }

    fn verdict(&self) -> Verdict {
        if let Some(grid) = self.found.grid {
            return if grid.offset_bytes == 0 { Verdict::Aligned } else { Verdict::Misaligned };
        }
        if let Some(reason) = self.found.reason {
            return Verdict::Inconclusive(reason);
        }
        let mut open = self.scales.iter().filter(|scale| !matches!(scale.state, State::Flat(_)));
        let covered = COVERED_MIN.max(BLOCKS_MIN * self.settings.block_bytes);
        // Of larger ones that could not be decided the report says so. A trace that was never confirmed is not nothing.
        let is_covered = open.all(|scale| {
            let is_asked = self.settings.granularities.contains(&scale.granularity_bytes);
            scale.granularity_bytes > covered && scale.refuted == 0 && !is_asked
        });
        if is_covered { Verdict::NoPenalty } else { Verdict::Inconclusive(Reason::Time) }
    }

    fn probed(self) -> Probed {
        let verdict = self.verdict();
        let searched = self.scales.iter().map(|scale| Searched {
            granularity_bytes: scale.granularity_bytes,
            len_bytes: scale.len_bytes,
            flat_within: match scale.state {
                State::Flat(share) => Some(share.exp_m1()),
                _ => None,
            },
        });
        let Found { grid, crossing, penalty, bars, settled_ns, last_ns, .. } = self.found;
        Probed {
            verdict,
            grid,
            penalty,
            penalty_len_bytes: grid.map_or(0, |grid| cost::len_bytes(grid, self.settings.block_bytes)),
            crossing,
            searched: searched.collect(),
            bars,
            reads: self.meter.reads,
            bytes: self.meter.bytes,
            spent: self.meter.spent,
            settled_ns,
            last_ns,
            space_bytes: self.meter.space.total_bytes(),
        }
    }
}

/// Reads between two looks at the time while the rate settles.
const READS_AT_ONCE: usize = 32;
