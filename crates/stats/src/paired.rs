//! Pairs: each observation after belongs to one before, for example if both alternate on one device. Slow drift moves
//! both of a pair, and is not in their ratio.

use crate::error::{StatsError, WhichSample};
use crate::interval::{self, Interval, Level};
use crate::median;

/// The geometric mean of after ÷ before, by t on the logarithms. `n` is the number of pairs.
///
/// # Errors
/// When there are fewer than two pairs, the sides are of different length, or a number is not above 0 and finite.
pub fn mean_ratio(before: &[f64], after: &[f64], level: Level) -> Result<Interval, StatsError> {
    Ok(interval::mean(&log_ratios(before, after)?, level)?.map(f64::exp))
}

/// The median of after ÷ before, by order statistics. `n` is the number of pairs.
///
/// # Errors
/// As [`mean_ratio`], and when there are too few pairs for the level: six for 95 of 100.
pub fn median_ratio(before: &[f64], after: &[f64], level: Level) -> Result<Interval, StatsError> {
    let ratios: Vec<f64> = log_ratios(before, after)?
        .into_iter()
        .map(f64::exp)
        .collect();
    median::median(&ratios, level)
}

fn log_ratios(before: &[f64], after: &[f64]) -> Result<Vec<f64>, StatsError> {
    if before.len() != after.len() {
        return Err(StatsError::NotPaired {
            before: before.len(),
            after: after.len(),
        });
    }
    for (values, side) in [(before, WhichSample::Before), (after, WhichSample::After)] {
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(StatsError::NotFinite {
                at,
                value: values[at],
            });
        }
        if let Some(&value) = values.iter().find(|value| **value <= 0.0) {
            return Err(StatsError::NotPositive { side, value });
        }
    }
    Ok(before
        .iter()
        .zip(after)
        .map(|(before, after)| after.ln() - before.ln())
        .collect())
}
