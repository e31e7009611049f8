//! Facts about the place where something starts.

use plumb_geometry::Bytes;
use plumb_stack::{CellKind, Obstacle, Source};
use serde::{Deserialize, Serialize};

use crate::grid::GridOf;
use crate::rule::PlanKind;

/// `misaligned-partition`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MisalignedPartition {
    /// The grid that the target is off.
    pub grid: GridOf,
    /// Distance of the start from the boundary before it; absent where it differs from chunk to chunk.
    pub past_bytes: Option<Bytes>,
    /// Step by which that distance differs from chunk to chunk; absent where it is the same everywhere.
    pub varies_by_bytes: Option<Bytes>,
    /// The byte of the target that was judged.
    pub byte: Bytes,
    /// Its place on the device that has the grid; absent where it has several places.
    pub start_bytes: Option<Bytes>,
    /// The largest unit that the user gave for the device; absent unless the grid is assumed.
    pub given_bytes: Option<Bytes>,
    /// Grids below that the target is off.
    pub grids_off: u64,
    /// Grids below.
    pub grids: u64,
    /// Layers on the way down that start off the unit, where there are several layers.
    pub movers: Vec<Mover>,
    /// Other grids that the target is off.
    pub also_off: Vec<OtherGrid>,
    /// Why not all layers below are known.
    pub not_known: Vec<Obstacle>,
    /// The place where it should start.
    pub wanted: WantedStart,
}

rule! {
    MISALIGNED_PARTITION: MisalignedPartition(MisalignedPartition) "misaligned-partition", Layout, true, Some(PlanKind::Start),
        "data start off a grid of a layer below", "nothing; `--grid` confirms it";
}

/// A layer that starts off a unit of the layer below.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mover {
    /// The layer.
    pub device: String,
    /// The layer below.
    pub on: String,
    /// Start on the layer below.
    pub start_bytes: Bytes,
    /// Distance from the boundary before.
    pub past_bytes: Bytes,
}

/// Another grid that a target is off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherGrid {
    /// Length of a cell.
    pub granularity_bytes: Bytes,
    /// The kind of the cells.
    pub what: CellKind,
    /// The device that has the grid.
    pub on: String,
}

/// The place where a layer should start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum WantedStart {
    /// No start helps: chunks or extents between are no multiples of the unit.
    NoStart,
    /// The layers below differ, so one of them must move first.
    BelowFirst {
        /// Member on which the same bytes are elsewhere in a cell.
        differs_on: String,
        /// The layer that should move.
        mover: String,
        /// Bytes by which it should move up.
        up_bytes: Bytes,
    },
    /// A slice that starts on cylinders.
    Cylinder {
        /// The disk with the label.
        disk: String,
        /// The next cylinder on the unit; absent if none was found.
        next_bytes: Option<Bytes>,
    },
    /// A partition.
    Partition {
        /// Bytes by which the start moves up.
        up_bytes: Bytes,
        /// Bytes by which it moves down; absent where that room is taken, or not known to be free.
        down_bytes: Option<Bytes>,
        /// The next start.
        next: Option<NextStart>,
    },
    /// A soft partition.
    SoftPartition {
        /// Bytes by which the offset moves up.
        up_bytes: Bytes,
        /// Bytes by which it moves down; absent as for a partition.
        down_bytes: Option<Bytes>,
    },
    /// Any layer between.
    Layer {
        /// Bytes by which the start moves up.
        up_bytes: Bytes,
    },
}

/// The next start on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextStart {
    /// The device.
    pub on: String,
    /// The start.
    pub start_bytes: Bytes,
}

/// `soft-partition-drift`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftPartitionDrift {
    /// The device that the soft partition is cut from.
    pub component: String,
    /// Offset of the extent.
    pub start_bytes: Bytes,
    /// Distance from the boundary before.
    pub past_bytes: Bytes,
    /// The unit, at its position in the component.
    pub grid: GridOf,
    /// The largest unit that the user gave; absent unless the unit is assumed.
    pub given_bytes: Option<Bytes>,
    /// The soft partition that ends one header before; absent at the beginning of the component.
    pub behind: Option<String>,
    /// The next offset on the unit.
    pub wanted_bytes: Option<Bytes>,
    /// The result of last offset + last size + unit, if that is off the unit.
    pub rule_of_thumb_bytes: Option<Bytes>,
    /// Offset for a new soft partition; absent where not all lengths are known.
    pub next_free_bytes: Option<Bytes>,
    /// The source of the offset.
    pub source: Option<Source>,
}

rule! {
    SOFT_PARTITION_DRIFT: SoftPartitionDrift(SoftPartitionDrift) "soft-partition-drift", Layout, true, Some(PlanKind::Start),
        "headers push extents off the unit", "`metastat -p`";
}

/// `discard-misaligned`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscardMisaligned {
    /// The unit of discards.
    pub grid: GridOf,
    /// Distance of the start from the boundary before.
    pub past_bytes: Bytes,
}

rule! {
    DISCARD_MISALIGNED: DiscardMisaligned(DiscardMisaligned) "discard-misaligned", Layout, true, None,
        "data start off the unit of discards", "nothing";
}
