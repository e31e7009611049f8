//! Statistics of measurements with their certainty: intervals, sequential tests and tests of equivalence. Pure
//! arithmetic: no clock, no input, and no randomness except the argument.

#![forbid(unsafe_code)]

pub mod bootstrap;
pub mod equivalence;
pub mod error;
pub mod grouped;
pub mod interval;
pub mod lift;
pub mod median;
pub mod paired;
pub mod sample;
pub mod sectioned;
pub mod sequential;
pub mod step;
pub mod student;

pub use error::StatsError;
pub use grouped::apart;
pub use interval::{Interval, Level, difference_of_means, mean, ratio_of_means};
pub use lift::Contrast;
pub use median::{median, quantile};
pub use paired::{mean_ratio, median_ratio};
pub use sample::Sample;
pub use sectioned::{Sectioned, ratio_of_sectioned};
pub use step::{Step, best_cut, find_step};
