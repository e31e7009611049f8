//! A share that was counted.

use plumb_geometry::Bounds;
use serde::{Deserialize, Serialize};

/// A count of a total, with the 95 % interval of the share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountedShare {
    /// The number with the defect: a range if a table dropped the necessary detail.
    pub count: Bounds<u64>,
    /// Of how many.
    pub of: u64,
    /// Lower end of the interval, 0 to 1.
    pub share_low: f64,
    /// Upper end of the interval.
    pub share_high: f64,
    /// Events that the source lost; absent if it lost none.
    pub lost: Option<LostEvents>,
}

/// Events that no count includes, and the share that they leave possible.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LostEvents {
    /// How many.
    pub events: u64,
    /// The share if no lost event has the defect.
    pub share_low: f64,
    /// The share if all of them have it.
    pub share_high: f64,
}

impl CountedShare {
    /// The share, 0 to 1, or the lower end of its range; 0 of nothing is 0.
    #[must_use]
    pub fn value(&self) -> f64 {
        if self.of == 0 {
            0.0
        } else {
            self.count.low as f64 / self.of as f64
        }
    }
}
