//! Intervals for means, their differences and their ratios.

use crate::error::{StatsError, WhichSample};
use crate::sample::Sample;
use crate::student;

/// How often an interval of its kind holds the true value: above 0, below 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Level(f64);

impl Level {
    /// 95 of 100.
    pub const P95: Level = Level(0.95);
    /// 99 of 100.
    pub const P99: Level = Level(0.99);

    /// Takes a probability.
    ///
    /// # Errors
    /// If it is not a share, or certain.
    pub fn new(value: f64) -> Result<Level, StatsError> {
        if value > 0.0 && value < 1.0 {
            Ok(Level(value))
        } else {
            Err(StatsError::NotProbability { value })
        }
    }

    /// The probability.
    #[must_use]
    pub const fn value(self) -> f64 {
        self.0
    }

    /// The rest on either side.
    #[must_use]
    pub fn beyond(self) -> f64 {
        (1.0 - self.0) / 2.0
    }
}

/// An estimate with the interval around it, and its number of observations: a count, or one of each side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval<N = usize> {
    /// The estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How often such an interval holds the true value, or more often.
    pub level: Level,
    /// Observations.
    pub n: N,
}

impl<N> Interval<N> {
    /// Whether it contains a value, the ends included.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The same of a function that grows, for instance from logarithms back.
    #[must_use]
    pub(crate) fn map(self, grow: impl Fn(f64) -> f64) -> Interval<N> {
        Interval {
            estimate: grow(self.estimate),
            low: grow(self.low),
            high: grow(self.high),
            ..self
        }
    }

    /// An estimate with so much on either side.
    pub(crate) fn around(estimate: f64, reach: f64, level: Level, n: N) -> Interval<N> {
        Interval {
            estimate,
            low: estimate - reach,
            high: estimate + reach,
            level,
            n,
        }
    }
}

/// The mean of observations that do not hang on each other.
///
/// # Errors
/// When there are fewer than two, or one is not finite.
pub fn mean(values: &[f64], level: Level) -> Result<Interval, StatsError> {
    let sample = Sample::new(values)?;
    let freedom = (sample.n() - 1) as f64;
    let reach = student::quantile_above(level.beyond(), freedom) * sample.variance_of_mean().sqrt();
    Ok(Interval::around(sample.mean(), reach, level, sample.n()))
}

/// The mean after less that before, where the two sides may spread differently (B. L. Welch, Biometrika 34, 1947).
///
/// # Errors
/// When a side has fewer than two observations, or one is not finite.
pub fn difference_of_means(
    before: &[f64],
    after: &[f64],
    level: Level,
) -> Result<Interval<[usize; 2]>, StatsError> {
    let sides = [
        Sample::of_side(before, WhichSample::Before)?,
        Sample::of_side(after, WhichSample::After)?,
    ];
    let difference = sides[1].mean() - sides[0].mean();
    Ok(welch(
        difference,
        sides,
        sides.map(|side| side.variance_of_mean()),
        level,
    ))
}

/// The mean after, divided by that before: Welch's interval of the difference of the logarithms of both means, with the
/// spread of each relative to its mean (the delta method). It holds where that spread is small, as that of means is.
///
/// # Errors
/// When a side has fewer than two observations, one is not finite, or a mean is not above 0.
pub fn ratio_of_means(
    before: &[f64],
    after: &[f64],
    level: Level,
) -> Result<Interval<[usize; 2]>, StatsError> {
    let sides = [
        Sample::of_side(before, WhichSample::Before)?,
        Sample::of_side(after, WhichSample::After)?,
    ];
    for (sample, side) in sides.iter().zip([WhichSample::Before, WhichSample::After]) {
        let value = sample.mean();
        if value <= 0.0 {
            return Err(StatsError::NotPositive { side, value });
        }
    }
    let logs = sides.map(|side| side.mean().ln());
    let relative = sides.map(|side| side.variance_of_mean() / (side.mean() * side.mean()));
    let ratio = welch(logs[1] - logs[0], sides, relative, level).map(f64::exp);
    // From the means themselves: no digit is lost on the way through logarithms.
    Ok(Interval {
        estimate: sides[1].mean() / sides[0].mean(),
        ..ratio
    })
}

/// Around a difference of two estimates with variances of their own; degrees of freedom after Welch and Satterthwaite.
pub(crate) fn welch(
    difference: f64,
    sides: [Sample<'_>; 2],
    variances: [f64; 2],
    level: Level,
) -> Interval<[usize; 2]> {
    let variance = variances[0] + variances[1];
    let below: f64 = (0..2)
        .map(|side| variances[side] * variances[side] / (sides[side].n() - 1) as f64)
        .sum();
    let n = sides.map(|side| side.n());
    // Without any spread the interval is a point, for any degrees of freedom.
    let freedom = if below > 0.0 {
        variance * variance / below
    } else {
        f64::INFINITY
    };
    let reach = student::quantile_above(level.beyond(), freedom) * variance.sqrt();
    Interval::around(difference, reach, level, n)
}
