//! The order of a probe: from small granularities to large ones, until one is found or none is left.

use std::time::Duration;

use plumb_stats::Interval;
use plumb_stats::equivalence::Margin;

use super::beyond::{self, Beyond};
use super::confirm::{CandidateOutcome, Fine, confirm};
use super::meter::{Meter, ReadKind, ReadStarts};
use super::scale::{Scale, ScaleState};
use super::space::{Residue, Space};
use super::{
    Broken, Candidate, ProbeReader, ProbeVerdict, Probed, Reason, Searched, Settings, Stop, cache,
    cost, locate,
};
use crate::random::Random;

/// Windows of the smallest scale are the shortest reads that can cross anything.
const BLOCKS_MIN: u64 = 8;
/// From one scale to the next: see [`scale`](super::scale).
const STEP: u64 = 4;
/// Rounds of a scale before the next one has its turn, and how much more in the next pass.
pub const ROUNDS: usize = 42;
const PASSES: u32 = 4;
/// Of the time for all a scale has this part before the next one has its turn, and more in later passes.
const TURNS: u32 = 10;
/// Candidates of one scale that may turn out to be none.
pub const REFUTED_MAX: u32 = 4;
/// A device may allow a burst at first: reads go on until two spans of this length agree.
const SETTLED: Duration = Duration::from_millis(60);
const SETTLED_WITHIN: f64 = 0.1;
const SETTLING_MAX: Duration = Duration::from_secs(2);
/// A verdict of no penalty covers at least this granularity: the unit of writes of file systems and databases.
pub const COVERED_MIN: u64 = 64 << 10;
/// Time beyond the limit in which a penalty is measured.
const MEASURED: Duration = Duration::from_secs(10);
/// The range is at least this many times as large as a stated cache, which then holds no more than one in this number
/// of places.
const TIMES_THE_CACHE: u64 = 2;

/// Probes a target.
///
/// # Errors
/// When a read fails.
pub fn probe<R: ProbeReader>(
    reader: &mut R,
    settings: &Settings,
) -> Result<Probed, Broken<R::Error>> {
    let mut random = Random::new(settings.seed, 0);
    let space = Space::new(&settings.ranges, &mut random);
    let meter = Meter::new(reader, space, random, settings.depth, settings.limit);
    let block = settings.block_bytes;
    let scales = granularities(block, settings).into_iter();
    let scales = scales
        .map(|granularity| Scale::new(granularity, block))
        .collect();
    let mut search = Search {
        meter,
        settings,
        scales,
        found: FoundGrid::default(),
    };
    match search.run() {
        Err(Stop::Read(error)) => {
            let Meter { reads, bytes, .. } = search.meter;
            return Err(Broken {
                error,
                reads,
                bytes,
            });
        }
        Err(Stop::NoRoom) => search.found.reason = Some(Reason::NoRoom),
        Ok(()) | Err(Stop::Time) => {}
    }
    Ok(search.probed())
}

/// The granularities to search with reads that are multiples of a block, from small to large.
pub fn granularities(block: u64, settings: &Settings) -> Vec<u64> {
    let mut granularities: Vec<u64> =
        std::iter::successors(BLOCKS_MIN.checked_mul(block), |granularity| {
            granularity.checked_mul(STEP)
        })
        .take_while(|granularity| *granularity <= settings.granularity_max)
        .collect();
    // A power of two is found by the scales as they are.
    let others = settings.granularities.iter().copied();
    granularities.extend(others.filter(|granularity| {
        let is_within = (3 * block..=settings.granularity_max).contains(granularity);
        !granularity.is_power_of_two() && is_within && granularity.is_multiple_of(block)
    }));
    granularities.sort_unstable();
    granularities.dedup();
    granularities
}

#[derive(Default)]
struct FoundGrid {
    grid: Option<Candidate>,
    crossing: Option<Interval>,
    penalty: Option<Interval>,
    bars: Vec<super::Bar>,
    reason: Option<Reason>,
    coarser_within: Option<f64>,
    settled_ns: Option<f64>,
    cache: Option<cache::Cache>,
}

struct Search<'r, 's, R: ProbeReader> {
    meter: Meter<'r, R>,
    settings: &'s Settings,
    scales: Vec<Scale>,
    found: FoundGrid,
}

impl<R: ProbeReader> Search<'_, '_, R> {
    fn run(&mut self) -> Result<(), Stop<R::Error>> {
        if let Some(cache_bytes) = self.settings.cache_bytes
            && self.meter.space.total_bytes() / TIMES_THE_CACHE < cache_bytes
        {
            self.found.reason = Some(Reason::Cache);
            return Ok(());
        }
        self.found.settled_ns = Some(self.settle()?);
        self.meter.watch_pace(self.short());
        match self.search() {
            Ok(()) | Err(Stop::Time) => {}
            stop => return stop,
        }
        if let Some(grid) = self.found.grid {
            let block = self.settings.block_bytes;
            // A late candidate still has to be measured.
            self.meter
                .set_limit(self.settings.limit.max(self.meter.spent) + MEASURED);
            self.found.penalty = cost::penalty(&mut self.meter, grid, block)?;
            self.found.bars = cost::sweep(&mut self.meter, grid, block)?;
            if grid.offset_bytes == 0 {
                self.search_beyond(grid)?;
            }
        }
        if self.settings.cache_bytes.is_none() {
            self.found.cache = match cache::sweep(&mut self.meter, self.settings.block_bytes) {
                // A result with room for a verdict keeps it.
                Err(Stop::NoRoom) => None,
                swept => swept?,
            };
        }
        Ok(())
    }

    /// Short reads anywhere.
    fn short(&self) -> ReadKind {
        let block = self.settings.block_bytes;
        ReadKind {
            starts: ReadStarts::At(Residue::new(0, block)),
            len_bytes: 2 * block,
        }
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

    /// Short reads for about this time; ns a read.
    fn short_reads(&mut self, span: Duration) -> Result<f64, Stop<R::Error>> {
        let kind = self.short();
        let (end, before) = (self.meter.spent + span, self.meter.reads);
        let mut timed = Duration::ZERO;
        while self.meter.spent < end {
            timed += self.meter.read(&kind, READS_AT_ONCE)?;
        }
        let reads = (self.meter.reads - before) as f64;
        Ok(timed.as_nanos() as f64 / reads)
    }

    /// Scale by scale, those that are open again and again with more rounds.
    fn search(&mut self) -> Result<(), Stop<R::Error>> {
        for pass in 0..PASSES {
            for at in 0..self.scales.len() {
                // Long reads must not take the time of short ones, which a verdict needs first.
                let turn = self.settings.limit / TURNS * (pass + 1);
                let before = self
                    .meter
                    .set_limit((self.meter.spent + turn).min(self.settings.limit));
                let (fine, margin) = (
                    Fine::blocks(self.settings.block_bytes),
                    self.settings.margin,
                );
                let scale = &mut self.scales[at];
                let screened = screen(&mut self.meter, scale, ROUNDS << (2 * pass), fine, margin);
                self.meter.set_limit(before);
                match screened {
                    Ok(Some((grid, crossing))) => {
                        (self.found.grid, self.found.crossing) = (Some(grid), Some(crossing));
                        return Ok(());
                    }
                    Ok(None) => {}
                    Err(Stop::Time) if self.meter.spent < self.settings.limit => {}
                    // A window that does not fit is no boundary that anybody could miss.
                    Err(Stop::NoRoom) if at > 0 => {}
                    Err(stop) => return Err(stop),
                }
            }
        }
        Ok(())
    }

    /// A grid at 0 does not make a target aligned if there is a coarser one elsewhere.
    fn search_beyond(&mut self, grid: Candidate) -> Result<(), Stop<R::Error>> {
        match beyond::search(&mut self.meter, (grid, self.found.crossing), self.settings)? {
            Beyond::Nothing => {}
            Beyond::Within(share) => self.found.coarser_within = Some(share),
            Beyond::Open => self.found.reason = Some(Reason::Coarser),
            Beyond::Grid(coarser) => {
                let block = self.settings.block_bytes;
                self.found.grid = Some(coarser);
                // Reads across one of its boundaries were compared with reads across one of the finer grid.
                self.found.crossing = None;
                self.meter.set_limit(self.meter.spent + MEASURED);
                self.found.penalty = cost::penalty(&mut self.meter, coarser, block)?;
                self.found.bars = cost::sweep(&mut self.meter, coarser, block)?;
            }
        }
        Ok(())
    }

    fn verdict(&self) -> ProbeVerdict {
        // Checks that would have followed may have refuted any verdict.
        if self.meter.was_ended() {
            return ProbeVerdict::Inconclusive(Reason::Ended);
        }
        match (self.found.grid, self.found.reason) {
            (Some(grid), _) if grid.offset_bytes > 0 => return ProbeVerdict::Misaligned,
            (_, Some(reason)) => return ProbeVerdict::Inconclusive(reason),
            (Some(_), None) => return ProbeVerdict::Aligned,
            (None, None) => {}
        }
        let mut open = self
            .scales
            .iter()
            .filter(|scale| !matches!(scale.state, ScaleState::Flat(_)));
        let covered = COVERED_MIN.max(BLOCKS_MIN * self.settings.block_bytes);
        // Of larger ones that could not be decided the report says so. A trace that was never confirmed is not nothing.
        let is_covered = open.all(|scale| {
            let is_asked = self
                .settings
                .granularities
                .contains(&scale.granularity_bytes);
            scale.granularity_bytes > covered && scale.refuted == 0 && !is_asked
        });
        if is_covered {
            ProbeVerdict::NoPenalty
        } else {
            ProbeVerdict::Inconclusive(Reason::Time)
        }
    }

    fn probed(self) -> Probed {
        let verdict = self.verdict();
        let searched = self.scales.iter().map(|scale| Searched {
            granularity_bytes: scale.granularity_bytes,
            len_bytes: scale.len_bytes,
            flat_within: match scale.state {
                ScaleState::Flat(share) => Some(share.exp_m1()),
                _ => None,
            },
        });
        let FoundGrid {
            grid,
            crossing,
            penalty,
            bars,
            coarser_within,
            settled_ns,
            cache,
            ..
        } = self.found;
        Probed {
            verdict,
            grid,
            penalty,
            penalty_len_bytes: grid
                .map_or(0, |grid| cost::len_bytes(grid, self.settings.block_bytes)),
            crossing,
            coarser_within,
            searched: searched.collect(),
            bars,
            reads: self.meter.reads,
            bytes: self.meter.bytes,
            spent: self.meter.spent,
            settled_ns,
            course: self.meter.course().cloned().unwrap_or_default(),
            cache,
            space_bytes: self.meter.space.total_bytes(),
        }
    }
}

/// The grid that a scale shows, and the cost of crossing it; all reads that are compared cross equally many boundaries
/// of the fine grid.
///
/// # Errors
/// As [`Meter::round`].
pub fn screen<R: ProbeReader>(
    meter: &mut Meter<'_, R>,
    scale: &mut Scale,
    rounds_max: usize,
    fine: Fine,
    margin: Margin,
) -> Result<Option<(Candidate, Interval)>, Stop<R::Error>> {
    loop {
        if scale.refuted > REFUTED_MAX || matches!(scale.state, ScaleState::Flat(_)) {
            return Ok(None);
        }
        scale.screen(meter, rounds_max, margin.share())?;
        let ScaleState::Contrast { slow, fast } = scale.state else {
            return Ok(None);
        };
        let (granularity, window) = (
            scale.granularity_bytes,
            (scale.residues[slow], scale.len_bytes),
        );
        let quiet = scale.residues[fast];
        let offset_bytes = locate::locate(meter, granularity, window, quiet, fine.cell_bytes)?;
        let candidate = Candidate {
            granularity_bytes: granularity,
            offset_bytes,
        };
        match confirm(meter, candidate, fine, margin)? {
            CandidateOutcome::Confirmed(grid, crossing) => return Ok(Some((grid, crossing))),
            CandidateOutcome::Refuted | CandidateOutcome::Open => scale.refute(),
        }
    }
}

/// Reads between two looks at the time while the rate settles.
const READS_AT_ONCE: usize = 32;
