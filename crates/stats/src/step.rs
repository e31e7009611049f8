//! Steps in a series: the level from one observation on differs from that before.
//!
//! The model is a level for each stratum, plus a height from the step on, plus a spread. A stratum holds observations that may be
//! compared, for instance those at equal load. Observations hang on each other: the autocorrelation of the spread, corrected for its
//! known bias (F. H. C. Marriott, J. A. Pope, Biometrika 41, 1954), makes the interval wider and the degrees of freedom fewer. Every place
//! at which a step could be is a test of its own: the error is divided by their number (Bonferroni). Rare bursts spread a mean more than
//! Student's t allows for: the ranks of the observations, as normal scores, have to show the same step (B. L. van der Waerden, 1952).

use crate::error::{StatsError, WhichSample};
use crate::interval::{Interval, Level};
use crate::sample::Sample;
use crate::student;

/// Most of the autocorrelation that is believed: beyond it a series is one long swing, and has no level.
const CORRELATION_MAX: f64 = 0.99;

/// Part of the squares that rounding may leave: values of 53 bits, some hundred of them.
const ROUNDING: f64 = 1e-20;

/// Standard errors that are added to an estimate of the autocorrelation for the width of an interval. With 3 of them a series of 10 to 365
/// observations with an autocorrelation of 0 to 0.95 shows a step by chance at most twice as often as `error` says, with 2 five times as
/// often (`coverage.rs`).
const CORRELATION_ERRORS: f64 = 3.0;

/// A step in a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Index of the first observation of the new level.
    pub at: usize,
    /// The new level less the old one.
    pub height: Interval<[usize; 2]>,
}

/// The most probable step of a series, if it is larger than the spread makes by chance.
///
/// `strata` has a number for each observation. At least `side_min` observations of each side of a step have one of their stratum on the other side. In a series without a step
/// one is found with a probability of about `error`, at most twice that; the interval of the height has the level 1 − `error` for all places together.
///
/// # Errors
/// If an observation is not finite, the lengths differ, or `error` is no probability.
pub fn find_step(
    values: &[f64],
    strata: &[u32],
    side_min: usize,
    error: f64,
) -> Result<Option<Step>, StatsError> {
    let level = Level::new(1.0 - error)?;
    if strata.len() != values.len() {
        return Err(StatsError::NotPaired {
            before: values.len(),
            after: strata.len(),
        });
    }
    let side_min = side_min.max(2);
    if values.len() < 2 * side_min {
        return Ok(None);
    }
    Sample::of_side(values, WhichSample::Only)?;
    let places = values.len() - 2 * side_min + 1;
    let level = Level::new(1.0 - error / places as f64).unwrap_or(level);
    let strata = Strata::new(strata);
    let around = strata.centred(values);
    let Some(fit) = best_fit(&around, &strata, side_min) else {
        return Ok(None);
    };
    let scores = strata.centred(&normal_scores(values));
    let of_scores = Fit::new(fit.at, &scores, &strata);
    // Only against bursts: in ranks a step of any height is a small one, so that the correlation would hide it.
    let in_scores = of_scores.and_then(|fit| fit.tested(&scores, &strata, level, |_| [0.0; 2]));
    let step = fit.tested(&around, &strata, level, correlation);
    Ok(step.filter(|_| in_scores.is_some()))
}

/// The place at which a series can best be cut in two levels, and the height of the second above the first, whether chance makes it or not.
/// `None` if the series is too short.
#[must_use]
pub fn best_cut(values: &[f64], strata: &[u32], side_min: usize) -> Option<(usize, f64)> {
    let side_min = side_min.max(2);
    if strata.len() != values.len() || values.len() < 2 * side_min {
        return None;
    }
    let strata = Strata::new(strata);
    let fit = best_fit(&strata.centred(values), &strata, side_min)?;
    Some((fit.at, fit.height))
}

fn best_fit(around: &[f64], strata: &Strata, side_min: usize) -> Option<Fit> {
    (side_min..=around.len() - side_min)
        .filter(|at| strata.has_both_sides(*at, side_min))
        .filter_map(|at| Fit::new(at, around, strata))
        // A step in two halves of a swing fits as well as it can: the first of equals is taken.
        .reduce(|best, fit| if fit.gain > best.gain { fit } else { best })
}

/// The quantile of the normal distribution at the rank of each observation; equal ones share the mean of their ranks.
fn normal_scores(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let score = |value: &f64| {
        let below = sorted.partition_point(|one| one < value);
        let up_to = sorted.partition_point(|one| one <= value);
        // The mean of the ranks below + 1 to up_to.
        let rank = (below + up_to + 1) as f64 / 2.0;
        let share = rank / (sorted.len() + 1) as f64;
        let above = student::quantile_above(share.min(1.0 - share), f64::INFINITY);
        if share < 0.5 { -above } else { above }
    };
    values.iter().map(score).collect()
}

/// Numbers of strata, from 0 on without a gap.
struct Strata {
    of: Vec<usize>,
    sizes: Vec<usize>,
}

impl Strata {
    fn new(numbers: &[u32]) -> Strata {
        let mut known = numbers.to_vec();
        known.sort_unstable();
        known.dedup();
        let of: Vec<usize> = numbers
            .iter()
            .map(|number| known.partition_point(|one| one < number))
            .collect();
        let mut sizes = vec![0; known.len()];
        of.iter().for_each(|stratum| sizes[*stratum] += 1);
        Strata { of, sizes }
    }

    /// Whether enough observations of each side have one of their stratum on the other side. Others tell nothing of a step.
    fn has_both_sides(&self, at: usize, side_min: usize) -> bool {
        let mut counts = vec![[0; 2]; self.sizes.len()];
        for (index, stratum) in self.of.iter().enumerate() {
            counts[*stratum][usize::from(index >= at)] += 1;
        }
        let pairs: usize = counts.iter().map(|[before, after]| before.min(after)).sum();
        pairs >= side_min
    }

    /// Each value less the mean of its stratum.
    fn centred(&self, values: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.sizes.len()];
        for (stratum, value) in self.of.iter().zip(values) {
            sums[*stratum] += value;
        }
        let mean = |stratum: usize| sums[stratum] / self.sizes[stratum] as f64;
        let all = self.of.iter().zip(values);
        all.map(|(stratum, value)| value - mean(*stratum)).collect()
    }
}

/// The best height at one place, by least squares.
struct Fit {
    at: usize,
    height: f64,
    /// Part of the squares that the step explains.
    gain: f64,
    /// Squares of the step around the means of the strata.
    squares: f64,
}

impl Fit {
    /// `None` if no stratum has observations on both sides.
    fn new(at: usize, around: &[f64], strata: &Strata) -> Option<Fit> {
        let step: Vec<f64> = (0..around.len())
            .map(|index| f64::from(u8::from(index >= at)))
            .collect();
        let step = strata.centred(&step);
        let squares: f64 = step.iter().map(|one| one * one).sum();
        let product: f64 = step
            .iter()
            .zip(around)
            .map(|(one, value)| one * value)
            .sum();
        (squares > 0.0).then_some(Fit {
            at,
            height: product / squares,
            gain: product * product / squares,
            squares,
        })
    }

    /// The step, if its interval does not hold 0. `correlation` computes the autocorrelation of the rest.
    fn tested(
        &self,
        around: &[f64],
        strata: &Strata,
        level: Level,
        correlation: fn(&[f64]) -> [f64; 2],
    ) -> Option<Step> {
        let n = around.len() as f64;
        let step: Vec<f64> = (0..around.len())
            .map(|index| self.height * f64::from(u8::from(index >= self.at)))
            .collect();
        let mut rest: Vec<f64> = strata
            .centred(&step)
            .iter()
            .zip(around)
            .map(|(step, value)| value - step)
            .collect();
        // Two levels without any spread leave rounding, which hangs on itself.
        let squares_of = |values: &[f64]| values.iter().map(|one| one * one).sum::<f64>();
        if squares_of(&rest) <= ROUNDING * (squares_of(around) + n * self.height * self.height) {
            rest.fill(0.0);
        }
        // Observations that hang on each other tell as much as a smaller number of independent ones.
        let [likely, widening] = correlation(&rest).map(|one| (1.0 + one) / (1.0 - one));
        let parameters = strata.sizes.len() as f64 + 1.0;
        let freedom = n / likely - parameters;
        if freedom < 1.0 {
            return None;
        }
        let variance = squares_of(&rest) / (n - parameters);
        let reach = student::quantile_above(level.beyond(), freedom)
            * (variance * widening / self.squares).sqrt();
        let sides = [self.at, around.len() - self.at];
        let height = Interval::around(self.height, reach, level, sides);
        (!height.holds(0.0)).then_some(Step {
            at: self.at,
            height,
        })
    }
}

/// The most that the autocorrelation of a rest at lag 1 may be, at least 0. An estimate from few observations is too low, and that of the
/// rest beside the best of all steps is lower still.
fn correlation(rest: &[f64]) -> [f64; 2] {
    let Some(found) = Sample::new(rest)
        .ok()
        .and_then(|sample| sample.autocorrelation())
    else {
        return [0.0; 2];
    };
    let n = rest.len() as f64;
    let corrected = found + (1.0 + 4.0 * found) / n;
    let error = ((1.0 - corrected * corrected).max(0.0) / n).sqrt();
    [corrected, corrected + CORRELATION_ERRORS * error].map(|one| one.clamp(0.0, CORRELATION_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(values: &[f64], side_min: usize) -> Option<Step> {
        find_step(values, &vec![0; values.len()], side_min, 0.01).expect("numbers")
    }

    /// By hand: the levels are 1 and 4, the spread is ±0.1, and no stratum but one is there.
    #[test]
    fn a_step_is_found_at_its_place() {
        let values: Vec<f64> = (0..20)
            .map(|n| if n < 13 { 1.0 } else { 4.0 } + if n % 2 == 0 { 0.1 } else { -0.1 })
            .collect();
        let step = found(&values, 3).expect("a step");
        assert_eq!((step.at, step.height.n), (13, [13, 7]));
        // The means of 13 and 7 observations: 1 + 0.1/13 and 4 − 0.1/7.
        let by_hand = 3.0 - 0.1 / 7.0 - 0.1 / 13.0;
        assert!((step.height.estimate - by_hand).abs() < 1e-12, "{step:?}");
        assert!(step.height.low > 2.5 && step.height.high < 3.5, "{step:?}");
    }

    #[test]
    fn a_level_has_no_step() {
        let values: Vec<f64> = (0..40).map(|n| f64::from(n * 7919 % 13)).collect();
        assert_eq!(found(&values, 5), None);
        assert_eq!(found(&[3.0; 20], 5), None);
        // Too short for two sides.
        assert_eq!(found(&[0.0, 0.0, 9.0, 9.0], 3), None);
    }

    /// A swing of one period looks like two levels, and its observations tell nothing new.
    #[test]
    fn a_slow_swing_is_no_step() {
        let values: Vec<f64> = (0..96)
            .map(|hour| (f64::from(hour) * std::f64::consts::TAU / 24.0).sin())
            .collect();
        assert_eq!(found(&values, 5), None);
    }

    /// The load doubles, and the latency of each load stays: only within strata nothing changed.
    #[test]
    fn strata_are_compared_with_themselves() {
        let spread = |n: usize| [0.02, -0.01, 0.03, -0.04][n * 7 % 4];
        let load = |n: usize| u32::from((n < 30) == n.is_multiple_of(5));
        let strata: Vec<u32> = (0..60).map(load).collect();
        let same: Vec<f64> = (0..60).map(|n| f64::from(load(n)) + spread(n)).collect();
        assert_eq!(find_step(&same, &strata, 5, 0.01), Ok(None));
        assert!(found(&same, 5).is_some(), "without strata it is a step");
        let grown: Vec<f64> = (0..60)
            .map(|n| same[n] + if n < 40 { 0.0 } else { 0.5 })
            .collect();
        let step = find_step(&grown, &strata, 5, 0.01).expect("numbers");
        let step = step.expect("a step");
        assert_eq!(step.at, 40);
        assert!((step.height.estimate - 0.5).abs() < 0.05, "{step:?}");
    }

    /// Levels without any spread, which rounding must not hide; and one observation alone is no side.
    #[test]
    fn clean_steps_are_found() {
        for (before, after) in [
            (0.0, 0.7),
            (0.1, 0.8),
            (1e5_f64.ln(), 2e5_f64.ln()),
            (1.0, 4.0),
        ] {
            for n in 20..60 {
                for at in 5..=n - 5 {
                    let values: Vec<f64> = (0..n)
                        .map(|index| if index < at { before } else { after })
                        .collect();
                    let step = found(&values, 5).unwrap_or_else(|| panic!("{before}: {at} of {n}"));
                    assert_eq!(step.at, at, "{before} of {n}");
                    let height = after - before;
                    assert!((step.height.estimate - height).abs() < 1e-9, "{step:?}");
                }
            }
        }
        // Of the second load, 7 observations have nothing to be compared with.
        let values: Vec<f64> = (0..48)
            .map(|n| [1.0, 3.0, 2.0][usize::from(n >= 40) + usize::from(n == 47)])
            .collect();
        let strata: Vec<u32> = (0..48).map(|n| u32::from((40..47).contains(&n))).collect();
        assert_eq!(find_step(&values, &strata, 5, 0.01), Ok(None));
    }

    /// If no load occurs on both sides, nothing can be compared.
    #[test]
    fn strata_of_one_side_tell_nothing() {
        let values: Vec<f64> = (0..40).map(|n| f64::from(n / 20 * 5 + n % 2)).collect();
        let strata: Vec<u32> = (0..40).map(|n| n / 20).collect();
        assert_eq!(find_step(&values, &strata, 5, 0.01), Ok(None));
    }

    #[test]
    fn invalid_series_are_rejected() {
        let find = |values: &[f64], strata: &[u32], error| find_step(values, strata, 2, error);
        assert!(find(&[1.0; 8], &[0; 7], 0.01).is_err());
        assert!(find(&[1.0; 8], &[0; 8], 0.0).is_err());
        assert!(find(&[f64::NAN; 8], &[0; 8], 0.01).is_err());
    }
}
