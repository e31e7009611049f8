//! The result of `plumb compare`: the comparison of each device, and the devices of one side alone.

use serde::Serialize;

use super::Comparison;

/// Everything that `plumb compare` shows.
#[derive(Debug, Serialize)]
pub struct Compared<'a> {
    /// The arguments BEFORE and AFTER.
    #[serde(skip)]
    pub inputs: [&'a str; 2],
    /// Changes up to this share are none.
    pub margin: f64,
    /// Level of the intervals.
    pub level: f64,
    /// One for each device.
    pub comparisons: &'a [Comparison],
    /// Devices that are not compared.
    pub left_out: &'a [LeftOut],
    /// Sentences that a reader must know.
    pub notes: &'a [String],
}

/// A device of one side that is not compared.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOut {
    /// `before` or `after`.
    pub side: &'static str,
    /// Its name.
    pub device: String,
    /// Why.
    pub why: String,
}
