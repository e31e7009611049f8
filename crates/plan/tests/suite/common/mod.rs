//! Requests that tests begin with.

use plumb_geometry::{Bytes, Grid, SECTOR};
use plumb_plan::partition::{LabelScheme, PartitionRequest};

/// The first partition of a disk that is there, on a grid, from a sector on.
pub fn partition(device: &str, label: LabelScheme, grid: Grid, after: u64) -> PartitionRequest {
    PartitionRequest {
        device: device.to_owned(),
        label,
        is_new_label: false,
        sector_bytes: 512,
        disk_bytes: None,
        grids: vec![grid],
        are_grids_assumed: false,
        after: Bytes(after * SECTOR),
        before: None,
        size: None,
        number: 1,
        current: None,
        content: None,
        file_system: None,
        reserved_from: None,
        smaller_by: None,
    }
}
