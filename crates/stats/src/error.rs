//! Why an interval cannot be had.

use std::fmt;

/// The question that the numbers cannot answer.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum StatsError {
    /// Too few observations.
    #[error("found {} {side}, expected at least {need}", plural(*n))]
    TooFew {
        /// The sample.
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
        /// The value found.
        value: f64,
    },
    /// A ratio was asked for, and something is not above 0.
    #[error("found {value} {side}, expected a number above 0: a ratio needs that")]
    NotPositive {
        /// The sample.
        side: WhichSample,
        /// The value found.
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
        /// The value found.
        value: f64,
    },
}

/// The sample of an error.
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
