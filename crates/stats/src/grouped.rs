//! One group of observations against the others, where all spread alike: with few in each group the spread of all is known
//! better than that of one.

use crate::error::{StatsError, WhichSample};
use crate::interval::{Interval, Level};
use crate::student;

/// The mean of group `which` less `times` the mean of all others; the spread is that within groups. `n` is that of the group.
///
/// # Errors
/// When the group or the others are empty, no two observations share a group, or one is not finite.
pub fn apart(
    groups: &[Vec<f64>],
    which: usize,
    times: f64,
    level: Level,
) -> Result<Interval, StatsError> {
    let value = groups.iter().flatten().position(|value| !value.is_finite());
    if let Some(at) = value {
        return Err(StatsError::NotFinite {
            at,
            value: f64::NAN,
        });
    }
    let its = groups.get(which).map_or(&[][..], Vec::as_slice);
    let all: usize = groups.iter().map(Vec::len).sum();
    let others = all - its.len();
    let filled = groups.iter().filter(|group| !group.is_empty()).count();
    let (n, need) = (its.len().min(others), 1);
    if n < need || all <= filled {
        return Err(StatsError::TooFew {
            side: WhichSample::Only,
            n,
            need,
        });
    }
    let sum = |values: &[f64]| values.iter().sum::<f64>();
    let within: f64 = groups.iter().map(|group| squares(group)).sum();
    let freedom = (all - filled) as f64;
    let rest: f64 = groups.iter().map(|group| sum(group)).sum::<f64>() - sum(its);
    let estimate = sum(its) / its.len() as f64 - times * rest / others as f64;
    let share = 1.0 / its.len() as f64 + times * times / others as f64;
    let reach =
        student::quantile_above(level.beyond(), freedom) * (within / freedom * share).sqrt();
    Ok(Interval {
        estimate,
        low: estimate - reach,
        high: estimate + reach,
        level,
        n: its.len(),
    })
}

/// Sum of squares around the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    values
        .iter()
        .map(|value| (value - mean) * (value - mean))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two groups are Student's test of two samples with a common variance: Student's sleep data (Biometrika 6, 1908, in
    /// every package of R as `sleep`), difference 1.58, t = 1.8608 with 18 degrees of freedom, so that 95 of 100 is
    /// −0.203874 to 3.363874 (R, t.test with var.equal).
    #[test]
    fn two_groups_are_students_test() {
        let first = vec![0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = vec![1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let found = apart(&[first, second], 1, 1.0, Level::P95).expect("enough");
        assert!((found.estimate - 1.58).abs() < 1e-9, "{found:?}");
        assert!(
            (found.low + 0.203_874).abs() < 2e-6 && (found.high - 3.363_874).abs() < 2e-6,
            "{found:?}"
        );
    }

    #[test]
    fn single_observations_use_the_spread_of_others() {
        let groups = [vec![1.0, 1.2, 0.8], vec![5.0], vec![1.1, 0.9]];
        let found = apart(&groups, 1, 1.0, Level::P99).expect("enough");
        assert!(
            (found.estimate - 4.0).abs() < 1e-12 && found.low > 0.0,
            "{found:?}"
        );
        // Twice the mean of the others, 1: by hand, 5 − 2.
        let twice = apart(&groups, 1, 2.0, Level::P99).expect("enough");
        assert!(
            (twice.estimate - 3.0).abs() < 1e-12 && twice.high - twice.low > found.high - found.low
        );
        assert!(
            apart(&[vec![1.0], vec![2.0]], 0, 1.0, Level::P99).is_err(),
            "no spread is known"
        );
        assert!(apart(&[vec![1.0, 2.0], vec![]], 1, 1.0, Level::P99).is_err());
        assert!(apart(&[vec![1.0, 2.0]], 0, 1.0, Level::P99).is_err());
        assert!(apart(&[vec![1.0, f64::NAN], vec![1.0]], 0, 1.0, Level::P99).is_err());
    }
}
