//! A grid as a finding states it.

use plumb_geometry::Bytes;
use plumb_stack::{CellKind, GridFact, Source};
use serde::{Deserialize, Serialize};

/// A grid of a layer below, with its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GridOf {
    /// Length of a cell.
    pub granularity_bytes: Bytes,
    /// Start of the first cell in the address space of the device.
    pub offset_bytes: Bytes,
    /// The kind of the cells.
    pub what: CellKind,
    /// The source of the grid.
    pub source: Source,
    /// Whether Plumb relies on it: not if it is only assumed.
    pub believed: bool,
    /// The device that has the grid.
    pub on: String,
}

impl GridOf {
    /// The grid of a fact about a device.
    #[must_use]
    pub fn new(fact: &GridFact, on: &str) -> GridOf {
        GridOf {
            granularity_bytes: fact.granularity(),
            offset_bytes: fact.grid.offset(),
            what: fact.what,
            source: fact.source.clone(),
            believed: fact.is_believed() && fact.what != CellKind::Assumed,
            on: on.to_owned(),
        }
    }
}
