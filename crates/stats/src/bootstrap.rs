//! The bootstrap: an interval for any statistic, by drawing from the observations again and again.
//!
//! This is the percentile interval (B. Efron, 1979). With few observations it is too narrow; for a mean or a median,
//! [`crate::mean`] and [`crate::median()`] keep their level from two and six observations on.

use crate::error::StatsError;
use crate::interval::{Interval, Level};
use crate::median::value_at;
use crate::sample::Sample;

/// The interval of `statistic`. `random` gives 64 random bits a call, so that a seed repeats the result; it is called
/// `resamples` × n times.
///
/// # Errors
/// When there are fewer than two observations or resamples, or a number, given or computed, is not finite.
pub fn bootstrap(
    values: &[f64],
    statistic: impl Fn(&[f64]) -> f64,
    resamples: usize,
    level: Level,
    mut random: impl FnMut() -> u64,
) -> Result<Interval, StatsError> {
    let sample = Sample::new(values)?;
    let mut drawn = vec![0.0; sample.n()];
    let mut statistics = Vec::new();
    for _ in 0..resamples {
        drawn
            .iter_mut()
            .for_each(|place| *place = values[below(random(), sample.n())]);
        statistics.push(statistic(&drawn));
    }
    let sorted = Sample::new(&statistics)?.sorted();
    Ok(Interval {
        estimate: statistic(values),
        low: value_at(&sorted, level.beyond()),
        high: value_at(&sorted, 1.0 - level.beyond()),
        level,
        n: sample.n(),
    })
}

/// A number below a bound out of 64 random bits; the bias is under bound / 2^64.
fn below(bits: u64, bound: usize) -> usize {
    ((u128::from(bits) * bound as u128) >> 64) as usize
}
