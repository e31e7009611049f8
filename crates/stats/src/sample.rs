//! Observations of one quantity, checked once.

use crate::error::{StatsError, WhichSample};

/// Finite numbers in the order in which they were observed; at least two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample<'a> {
    values: &'a [f64],
}

impl<'a> Sample<'a> {
    /// Takes observations.
    ///
    /// # Errors
    /// When there are fewer than two, or one is not finite.
    pub fn new(values: &'a [f64]) -> Result<Sample<'a>, StatsError> {
        Sample::of_side(values, WhichSample::Only)
    }

    /// The same, with a name for errors.
    ///
    /// # Errors
    /// As [`Sample::new`].
    pub fn of_side(values: &'a [f64], side: WhichSample) -> Result<Sample<'a>, StatsError> {
        if values.len() < 2 {
            return Err(StatsError::TooFew {
                side,
                n: values.len(),
                need: 2,
            });
        }
        match values.iter().position(|value| !value.is_finite()) {
            Some(at) => Err(StatsError::NotFinite {
                at,
                value: values[at],
            }),
            None => Ok(Sample { values }),
        }
    }

    /// The observations.
    #[must_use]
    pub fn values(&self) -> &'a [f64] {
        self.values
    }

    /// How many there are.
    #[must_use]
    pub fn n(&self) -> usize {
        self.values.len()
    }

    /// The arithmetic mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.n() as f64
    }

    /// The sample variance, with n − 1 below.
    #[must_use]
    pub fn variance(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self
            .values
            .iter()
            .map(|value| (value - mean) * (value - mean))
            .sum();
        squares / (self.n() - 1) as f64
    }

    /// The variance of the mean.
    #[must_use]
    pub fn variance_of_mean(&self) -> f64 {
        self.variance() / self.n() as f64
    }

    /// The observations from the smallest to the largest.
    #[must_use]
    pub fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// How much an observation tells of the next one, −1 to 1: the autocorrelation at lag 1. `None` where all are equal.
    #[must_use]
    pub fn autocorrelation(&self) -> Option<f64> {
        let mean = self.mean();
        let square = |value: f64| (value - mean) * (value - mean);
        let all: f64 = self.values.iter().map(|&value| square(value)).sum();
        let beside: f64 = self
            .values
            .windows(2)
            .map(|pair| (pair[0] - mean) * (pair[1] - mean))
            .sum();
        (all > 0.0).then(|| beside / all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        let sample = Sample::new(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).expect("eight numbers");
        assert_eq!(sample.mean(), 5.0);
        assert!((sample.variance() - 32.0 / 7.0).abs() < 1e-15);
        assert!((sample.variance_of_mean() - 32.0 / 56.0).abs() < 1e-15);
    }

    #[test]
    fn invalid_samples_are_rejected() {
        for values in [&[][..], &[1.0]] {
            let error = Sample::new(values).expect_err("too few");
            assert_eq!(
                error,
                StatsError::TooFew {
                    side: WhichSample::Only,
                    n: values.len(),
                    need: 2
                }
            );
        }
        let error = Sample::of_side(&[1.0], WhichSample::After).expect_err("too few");
        assert_eq!(
            error,
            StatsError::TooFew {
                side: WhichSample::After,
                n: 1,
                need: 2
            }
        );
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(matches!(
                Sample::new(&[1.0, bad, 2.0]),
                Err(StatsError::NotFinite { at: 1, .. })
            ));
        }
    }

    #[test]
    fn a_trend_is_seen() {
        let trend: Vec<f64> = (0..100).map(f64::from).collect();
        let seen = Sample::new(&trend).expect("numbers").autocorrelation();
        assert!(seen.is_some_and(|seen| seen > 0.9), "{seen:?}");
        let swing: Vec<f64> = (0..100).map(|n| f64::from(n % 2)).collect();
        let seen = Sample::new(&swing).expect("numbers").autocorrelation();
        assert!(seen.is_some_and(|seen| seen < -0.9), "{seen:?}");
        assert_eq!(
            Sample::new(&[3.0; 5]).expect("numbers").autocorrelation(),
            None
        );
    }
}
