//! Why an interval cannot be had.

use std::fmt;

/// What was asked of numbers that cannot answer it.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum StatsError {
    /// Too few observations.
    #[error("found {} {side}, expected at least {need}", plural(*n))]
    TooFew {
        /// Of which side.
        side: WhichSample,
        /// Observations found.
        n: usize,
        /// The fewest that can answer.
        need: usize,
    },
    /// A number that is none.
    #[error("observation {at} is {value}, expected a finite number")]
    NotFinite {
        /// Its index, from 0.
        at: usize,
        /// What stands there.
        value: f64,
    },
    /// A ratio was asked for, and something is not above 0.
    #[error("found {value} {side}, expected a number above 0: a ratio needs that")]
    NotPositive {
        /// Of which side.
        side: WhichSample,
        /// What was found.
        value: f64,
    },
    /// Sides that are no pairs.
    #[error(
        "found {before} observations before and {after} after, expected as many: they are pairs"
    )]
    NotPaired {
        /// Observations before.
        before: usize,
        /// Observations after.
        after: usize,
    },
    /// A level, or a share, that is no probability.
    #[error("found {value}, expected a number above 0 and below 1")]
    NotProbability {
        /// What was found.
        value: f64,
    },
}

/// Of which of two samples an error speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhichSample {
    /// There is only one.
    Only,
    /// The first.
    Before,
    /// The second.
    After,
}

impl fmt::Display for WhichSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WhichSample::Only => "in all",
            WhichSample::Before => "before",
            WhichSample::After => "after",
        })
    }
}

fn plural(n: usize) -> String {
    if n == 1 {
        "1 observation".to_owned()
    } else {
        format!("{n} observations")
    }
}
