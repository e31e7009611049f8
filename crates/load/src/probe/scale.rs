//! Screening: whether reads of one length cost differently by where they start.
//!
//! A scale has windows of a quarter of its granularity, beginning at every eighth of it. A boundary that occurs once in
//! that granularity, at any place, is crossed by one or two of the eight; one that occurs twice by some as well; more
//! frequent ones by all alike, and rarer ones by some of the reads of one window. Scales a factor of 4 apart miss none.

use plumb_stats::sequential::{Spending, next_size};
use plumb_stats::{Interval, Level};

use super::meter::{Meter, ReadKind, ReadStarts};
use super::space::Residue;
use super::{ProbeReader, Stop};

/// Windows of a scale.
const WINDOWS: u64 = 8;
/// Rounds before the first look.
const ROUNDS_MIN: usize = 4;
/// Error of either statement over all looks of one scale.
const ERROR: f64 = 0.01;
/// A contrast that counts as a trace of a boundary: rare ones leave little. It is confirmed separately.
pub const TRACE: f64 = 0.015;

/// The state of a scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScaleState {
    /// Not decided.
    Open,
    /// No window costs this share more or less than the mean of all.
    Flat(f64),
    /// The windows that cost most and least.
    Contrast {
        /// Index of the slowest.
        slow: usize,
        /// Index of the fastest.
        fast: usize,
    },
}

/// A granularity that is looked for.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Bytes.
    pub granularity_bytes: u64,
    /// Length of its reads.
    pub len_bytes: u64,
    /// The starts of its windows, modulo the granularity.
    pub residues: Vec<u64>,
    /// Its result so far.
    pub state: ScaleState,
    /// Candidates that turned out to be none.
    pub refuted: u32,
    /// ln of cost less the mean of the round: by round, then window.
    rounds: Vec<Vec<f64>>,
    next_look: usize,
    flat: Option<Spending>,
    trace: Option<Spending>,
}

impl Scale {
    /// `block` is the logical block: starts and lengths are multiples of it.
    #[must_use]
    pub fn new(granularity_bytes: u64, block: u64) -> Scale {
        let round_down = |bytes: u64| bytes / block * block;
        let len_bytes = round_down(granularity_bytes / 4 + block - 1).max(2 * block);
        let mut residues: Vec<u64> = (0..WINDOWS)
            .map(|at| round_down(at * granularity_bytes / WINDOWS))
            .collect();
        residues.dedup();
        Scale {
            granularity_bytes,
            len_bytes,
            residues,
            state: ScaleState::Open,
            refuted: 0,
            rounds: Vec::new(),
            next_look: ROUNDS_MIN,
            flat: Spending::new(ERROR).ok(),
            trace: Spending::new(ERROR).ok(),
        }
    }

    /// Reads until there is a result, or for a number of rounds.
    ///
    /// # Errors
    /// As [`Meter::round`].
    pub fn screen<R: ProbeReader>(
        &mut self,
        meter: &mut Meter<'_, R>,
        rounds_max: usize,
        margin: f64,
    ) -> Result<(), Stop<R::Error>> {
        let kinds: Vec<ReadKind> = self
            .residues
            .iter()
            .map(|&residue| self.kind(residue))
            .collect();
        while self.rounds.len() < rounds_max {
            let costs = meter.round(&kinds, self.rounds.len())?;
            let logs: Vec<f64> = costs.iter().map(|cost| cost.ln()).collect();
            let mean = logs.iter().sum::<f64>() / logs.len() as f64;
            self.rounds
                .push(logs.iter().map(|log| log - mean).collect());
            if self.rounds.len() >= self.next_look {
                self.next_look = next_size(self.next_look);
                self.look(margin);
                if self.state != ScaleState::Open {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// A candidate was none: on with more reads, so that chance has less of a say.
    pub fn refute(&mut self) {
        self.state = ScaleState::Open;
        self.refuted += 1;
        self.next_look = self.next_look.max(2 * self.rounds.len());
    }

    fn kind(&self, residue: u64) -> ReadKind {
        let starts = ReadStarts::At(Residue::new(residue, self.granularity_bytes));
        ReadKind {
            starts,
            len_bytes: self.len_bytes,
        }
    }

    fn look(&mut self, margin: f64) {
        let windows = self.residues.len();
        let (Some(flat), Some(trace)) = (&mut self.flat, &mut self.trace) else {
            return;
        };
        let (flat, trace) = (flat.look(windows), trace.look(windows));
        let columns: Vec<Vec<f64>> = (0..windows)
            .map(|at| self.rounds.iter().map(|round| round[at]).collect())
            .collect();
        if let Some(widest) = widest(&columns, flat)
            // Two windows differ by at most twice the difference of each from the mean.
            && 2.0 * widest < (1.0 + margin).ln()
        {
            self.state = ScaleState::Flat(2.0 * widest);
            return;
        }
        let medians: Vec<f64> = columns.iter().map(|column| middle(column)).collect();
        let by_median = |a: &usize, b: &usize| medians[*a].total_cmp(&medians[*b]);
        let Some(slow) = (0..windows).max_by(by_median) else {
            return;
        };
        let Some(fast) = (0..windows).min_by(by_median) else {
            return;
        };
        // Few rounds tell by their mean, which a disturbance moves; more of them by their median, which it does not.
        let is_apart = |interval: Interval| interval.low > 0.0 || interval.high < 0.0;
        let is_shown = columns.iter().any(|column| {
            plumb_stats::mean(column, trace).is_ok_and(is_apart)
                || plumb_stats::median(column, trace).is_ok_and(is_apart)
        });
        if is_shown && medians[slow] - medians[fast] > TRACE {
            self.state = ScaleState::Contrast { slow, fast };
        }
    }
}

/// The median of some numbers.
pub fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// The farthest end of all intervals from 0; `None` with too few rounds.
fn widest(columns: &[Vec<f64>], level: Level) -> Option<f64> {
    let mut widest: f64 = 0.0;
    for column in columns {
        let median = plumb_stats::median(column, level).ok()?;
        widest = widest.max(-median.low).max(median.high);
    }
    Some(widest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether reads of a scale can show boundaries: not all windows cross equally many.
    fn shows(scale: &Scale, granularity: u64, offset: u64) -> bool {
        let crossed = |start: u64| {
            let (first, last) = (start + 1, start + scale.len_bytes - 1);
            (first..=last)
                .step_by(1)
                .filter(|at| at % granularity == offset)
                .count()
        };
        let period = granularity.max(scale.granularity_bytes);
        let of_window = |residue: &u64| -> usize {
            (0..period / scale.granularity_bytes)
                .map(|k| crossed(residue + k * scale.granularity_bytes))
                .sum()
        };
        let all: Vec<usize> = scale.residues.iter().map(of_window).collect();
        all.iter().any(|one| *one != all[0])
    }

    /// By counting bytes: every grid of a power of two is shown by the scale of its own granularity or the next one.
    #[test]
    fn every_boundary_has_a_scale() {
        for power in 10..=16 {
            let granularity = 1u64 << power;
            let wanted =
                (4096u64 << (2 * (granularity.max(4096) / 4096).ilog2().div_ceil(2))).max(4096);
            let scale = Scale::new(wanted, 512);
            assert!((wanted / granularity.max(4096)) <= 2 && scale.residues.len() == 8);
            for offset in (0..granularity).step_by(512) {
                assert!(
                    shows(&scale, granularity, offset),
                    "{granularity} @ {offset} by {wanted}"
                );
            }
        }
    }

    #[test]
    fn lengths_are_blocks() {
        for (granularity, block, len) in [
            (4096, 512, 1024),
            (32_768, 4096, 8192),
            (48 << 10, 512, 12 << 10),
            (1536, 512, 1024),
        ] {
            let scale = Scale::new(granularity, block);
            assert_eq!(scale.len_bytes, len, "{granularity}");
            assert!(
                scale
                    .residues
                    .iter()
                    .all(|residue| residue % block == 0 && *residue < granularity)
            );
        }
        assert_eq!(Scale::new(1536, 512).residues, [0, 512, 1024]);
    }
}
