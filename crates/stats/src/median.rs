//! Medians and other quantiles by order statistics: no shape of the distribution is assumed.
//!
//! The number of n observations below the q-quantile is binomial, so two of the sorted observations enclose it with a
//! probability that is known exactly (David and Nagaraja, Order Statistics, section 7.1).

use crate::error::{StatsError, WhichSample};
use crate::interval::{Interval, Level};
use crate::sample::Sample;
use crate::student::ln_gamma;

/// The median; its level is that wanted or above.
///
/// # Errors
/// When one is not finite, or there are too few for the level: six for 95 of 100.
pub fn median(values: &[f64], level: Level) -> Result<Interval, StatsError> {
    quantile(values, 0.5, level)
}

/// The quantile with a share `q` below it; its level is at least the wanted one.
///
/// # Errors
/// When `q` is no share above 0 and below 1, a value is not finite, or there are too few for the level.
pub fn quantile(values: &[f64], q: f64, level: Level) -> Result<Interval, StatsError> {
    if !(q > 0.0 && q < 1.0) {
        return Err(StatsError::NotProbability { value: q });
    }
    let sample = Sample::new(values)?;
    let n = sample.n();
    let need = fewest(q, level);
    let too_few = StatsError::TooFew {
        side: WhichSample::Only,
        n,
        need,
    };
    let below = Binomial::new(n, q);
    let low = below.largest_with_at_most(level.beyond()).ok_or(too_few)?;
    // From above, the share over the quantile is binomial as well.
    let over = Binomial::new(n, 1.0 - q);
    let high = over.largest_with_at_most(level.beyond()).ok_or(too_few)?;
    let sorted = sample.sorted();
    let missed = below.at_most(low) + over.at_most(high);
    Ok(Interval {
        estimate: value_at(&sorted, q),
        low: sorted[low],
        high: sorted[n - 1 - high],
        level: Level::new(1.0 - missed).unwrap_or(level),
        n,
    })
}

/// The fewest observations whose extremes enclose the quantile often enough.
fn fewest(q: f64, level: Level) -> usize {
    let rarer = q.max(1.0 - q);
    let fewest = (level.beyond().ln() / rarer.ln()).ceil();
    fewest.max(2.0) as usize
}

/// The quantile of sorted numbers, between the two nearest of them in proportion (type 7 of Hyndman and Fan, 1996).
pub(crate) fn value_at(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len() - 1) as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + part * (sorted[high] - sorted[low])
}

/// The number of n below, each with probability q.
struct Binomial {
    n: usize,
    q: f64,
}

impl Binomial {
    fn new(n: usize, q: f64) -> Binomial {
        Binomial { n, q }
    }

    fn exactly(&self, k: usize) -> f64 {
        let (n, k) = (self.n as f64, k as f64);
        let ways = ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0);
        (ways + k * self.q.ln() + (n - k) * (-self.q).ln_1p()).exp()
    }

    fn at_most(&self, k: usize) -> f64 {
        (0..=k).map(|k| self.exactly(k)).sum()
    }

    /// The largest k with P(at most k) ≤ p; `None` where even 0 is likelier.
    fn largest_with_at_most(&self, p: f64) -> Option<usize> {
        let mut sum = 0.0;
        let mut found = None;
        for k in 0..self.n {
            sum += self.exactly(k);
            // The last digits of a sum are not worth an observation.
            if sum > p * (1.0 + 1e-12) {
                break;
            }
            found = Some(k);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks and levels as in W. J. Conover, Practical Nonparametric Statistics, and by plain sums of binomial
    /// coefficients: of n = 10 the 2nd and 9th hold the median with 1 − 2·11/1024 = 0.978 5.
    #[test]
    fn ranks_of_the_median() {
        let level = Level::P95;
        for (n, low, missed) in [
            (6, 1, 2.0 / 64.0),
            (8, 1, 2.0 / 256.0),
            (9, 2, 20.0 / 512.0),
            (10, 2, 22.0 / 1024.0),
        ] {
            let values: Vec<f64> = (1..=n).rev().map(f64::from).collect();
            let found = median(&values, level).expect("enough");
            assert_eq!(
                (found.low, found.high),
                (f64::from(low), f64::from(n + 1 - low)),
                "{n}"
            );
            assert!(
                (found.level.value() - (1.0 - missed)).abs() < 1e-12,
                "{n}: {:?}",
                found.level
            );
            assert_eq!(found.estimate, f64::from(n + 1) / 2.0);
            assert_eq!(found.n, values.len());
        }
    }

    #[test]
    fn too_few_are_refused() {
        let error = median(&[1.0, 2.0, 3.0, 4.0, 5.0], Level::P95).expect_err("five are too few");
        assert_eq!(
            error,
            StatsError::TooFew {
                side: WhichSample::Only,
                n: 5,
                need: 6
            }
        );
        // (99/100)^n ≤ 0.025 from n = 368 on.
        let values: Vec<f64> = (0..368).map(f64::from).collect();
        assert!(quantile(&values, 0.99, Level::P95).is_ok());
        let error = quantile(&values[..367], 0.99, Level::P95).expect_err("one less");
        assert_eq!(
            error,
            StatsError::TooFew {
                side: WhichSample::Only,
                n: 367,
                need: 368
            }
        );
        assert!(matches!(
            quantile(&values, 1.0, Level::P95),
            Err(StatsError::NotProbability { .. })
        ));
    }

    #[test]
    fn quantiles_are_between_neighbours() {
        let sorted = [10.0, 20.0, 40.0];
        for (q, value) in [
            (0.001, 10.02),
            (0.25, 15.0),
            (0.5, 20.0),
            (0.75, 30.0),
            (0.999, 39.96),
        ] {
            assert!((value_at(&sorted, q) - value).abs() < 1e-12, "{q}");
        }
    }
}
