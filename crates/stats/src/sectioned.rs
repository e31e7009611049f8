//! A statistic of all observations, with its certainty from the same statistic of sections of them, because percentiles
//! have no mean with a variance. Method: sectioning (S. Asmussen, P. W. Glynn, "Stochastic Simulation", 2007, III.5):
//! sections spread around the statistic of the whole, not around their own mean, so that a percentile of few
//! observations, which is too low or too high on average, makes the interval wider and not wrong.

use crate::error::{StatsError, WhichSample};
use crate::interval::{Interval, Level, welch};
use crate::sample::Sample;

/// A statistic of a whole, and of its sections in their order; all above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sectioned<'a> {
    /// Of all observations.
    pub whole: f64,
    /// Of each section.
    pub sections: &'a [f64],
}

/// The statistic after, divided by that before: Welch's interval of the difference of logarithms.
///
/// # Errors
/// When a side has fewer than two sections, or a number is not above 0 and finite.
pub fn ratio_of_sectioned(
    before: Sectioned<'_>,
    after: Sectioned<'_>,
    level: Level,
) -> Result<Interval<[usize; 2]>, StatsError> {
    let both = [(before, WhichSample::Before), (after, WhichSample::After)];
    let mut variances = [0.0; 2];
    for (at, (sectioned, side)) in both.into_iter().enumerate() {
        let sample = Sample::of_side(sectioned.sections, side)?;
        let not_positive = sample
            .values()
            .iter()
            .chain([&sectioned.whole])
            .find(|value| **value <= 0.0);
        if let Some(&value) = not_positive {
            return Err(StatsError::NotPositive { side, value });
        }
        if !sectioned.whole.is_finite() {
            return Err(StatsError::NotFinite {
                at: sample.n(),
                value: sectioned.whole,
            });
        }
        let squares = sample
            .values()
            .iter()
            .map(|value| (value / sectioned.whole).ln().powi(2))
            .sum::<f64>();
        let n = sample.n() as f64;
        variances[at] = squares / (n - 1.0) / n;
    }
    let sides = [
        Sample::of_side(before.sections, WhichSample::Before)?,
        Sample::of_side(after.sections, WhichSample::After)?,
    ];
    let ratio = welch((after.whole / before.whole).ln(), sides, variances, level).map(f64::exp);
    Ok(Interval {
        estimate: after.whole / before.whole,
        ..ratio
    })
}
