//! Looking at a growing sample more than once, without the error growing with the looks.
//!
//! Each look spends a part of the total permitted error: 6/π² · 1/k² of it at the k-th, which sum to 1 for any number
//! of looks. By the union bound the error of all looks together stays below the permitted one, for any stopping rule
//! and any dependence of the observations. That costs some width compared with boundaries for one rule (Lan and DeMets,
//! Biometrika 70, 1983) and needs no assumption.

use crate::error::StatsError;
use crate::interval::Level;

/// An error that is spent look by look.
#[derive(Clone, Debug, PartialEq)]
pub struct Spending {
    error: f64,
    looks: u32,
}

impl Spending {
    /// `error` is the total to spend: above 0, below 1.
    ///
    /// # Errors
    /// When it is no such share.
    pub fn new(error: f64) -> Result<Spending, StatsError> {
        Level::new(error)?;
        Ok(Spending { error, looks: 0 })
    }

    /// The level of the next look, shared among this number of intervals looked at together (Bonferroni).
    pub fn look(&mut self, intervals: usize) -> Level {
        self.looks += 1;
        let k = f64::from(self.looks);
        let spent = self.error * 6.0 / (std::f64::consts::PI * k).powi(2);
        // A level of 1 is none: after some million looks no interval is wide enough, and this one is as good.
        let share = (spent / intervals.max(1) as f64).max(f64::EPSILON);
        Level::new(1.0 - share).unwrap_or(Level::P99)
    }

    /// Looks so far.
    #[must_use]
    pub fn looks(&self) -> u32 {
        self.looks
    }
}

/// The sample size at which to look after `n`: half as much again. Of looks at such sizes few are needed, and none comes much
/// later than it could.
#[must_use]
pub fn next_size(n: usize) -> usize {
    n + (n / 2).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Σ 1/k² = π²/6: all looks together spend the permitted error, and never more.
    #[test]
    fn all_looks_together_spend_the_allowed_error() {
        let mut spending = Spending::new(0.01).expect("a share");
        let mut spent = 0.0;
        for _ in 0..100_000 {
            spent += 4.0 * (1.0 - spending.look(4).value());
        }
        assert!(spent < 0.01 && spent > 0.009_999, "{spent}");
        assert_eq!(spending.looks(), 100_000);
    }

    #[test]
    fn no_share_no_spending() {
        for error in [0.0, 1.0, -0.1, f64::NAN] {
            assert!(Spending::new(error).is_err(), "{error}");
        }
    }

    #[test]
    fn looks_come_later_and_later() {
        let mut sizes = vec![4];
        while sizes.len() < 8 {
            sizes.push(next_size(sizes[sizes.len() - 1]));
        }
        assert_eq!(sizes, [4, 6, 9, 13, 19, 28, 42, 63]);
        assert_eq!(next_size(0), 1);
    }
}
