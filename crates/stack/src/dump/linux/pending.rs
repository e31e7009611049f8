//! What readers of Linux's tools keep until the last dump was read.

use std::collections::HashMap;

use super::label::Label;
use super::lvm::Volumes;
use super::md::{Array, Superblock};
use super::mounts::Mounted;
use super::zfs::Pool;
use crate::dm_table::Line;
use crate::graph::NodeId;
use crate::grid::Source;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Whether there was a dump of Linux at all.
    pub(super) is_any: bool,
    /// Devices by major and minor number.
    pub(super) numbers: HashMap<(u32, u32), NodeId>,
    /// Disk labels: the size of a sector may come from another dump.
    pub(super) labels: Vec<Label>,
    /// Lines of device mapper tables: they name devices by number.
    pub(super) tables: Vec<Table>,
    /// Arrays of md, and what superblocks of members say.
    pub(super) arrays: Vec<Array>,
    pub(super) superblocks: Vec<Superblock>,
    /// Volume groups.
    pub(super) volumes: Volumes,
    /// What stands on what, without saying where.
    pub(super) stacked: Vec<Stacked>,
    /// File systems that are mounted.
    pub(super) mounted: Vec<Mounted>,
    /// File system of a device.
    pub(super) told: HashMap<NodeId, NodeId>,
    /// I/O a second, by the kernel's names.
    pub(super) rates: Vec<(String, [f64; 2], Source)>,
    /// Pools of ZFS: what they stand on depends on labels.
    pub(super) pools: Vec<Pool>,
}

/// A line of `dmsetup table`.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) line: Option<Line>,
    pub(super) source: Source,
}

/// A device and one that it stands on, as lsblk draws them.
#[derive(Clone, Debug)]
pub(super) struct Stacked {
    pub(super) upper: NodeId,
    pub(super) lower: NodeId,
    pub(super) why: &'static str,
    pub(super) source: Source,
}
