//! The facts of a finding: one struct for each rule. A sentence may state only a field here.

use plumb_geometry::Bytes;
use plumb_stack::Source;
use serde::{Deserialize, Serialize};

mod change;
mod io;
mod problem;
mod setting;
mod start;
mod stripe;
mod unit;

pub use change::*;
pub use io::*;
pub use problem::*;
pub use setting::*;
pub use start::*;
pub use stripe::*;
pub use unit::*;

/// I/O of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfLength {
    /// The length.
    pub len_bytes: Bytes,
    /// I/O that have it.
    pub ios: u64,
}

/// Why a device counts as a LUN of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ArrayEvidence {
    /// It has the unit of an array.
    Unit {
        /// The unit.
        granularity_bytes: Bytes,
        /// Its source.
        source: Source,
    },
    /// It is one of several paths.
    PathOf {
        /// The multipath device.
        device: String,
    },
    /// Its model is that of an array.
    Model {
        /// The model.
        model: String,
    },
}
