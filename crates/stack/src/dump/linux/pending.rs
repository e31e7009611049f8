//! Data that readers of Linux's tools keep until the last dump was read.

use std::collections::HashMap;

use super::label::PrintedLabel;
use super::lvm::Volumes;
use super::md::{PrintedArray, Superblock};
use super::mounts::Mounted;
use super::zfs::ZfsPool;
use crate::dm_table::DmLine;
use crate::graph::NodeId;
use crate::grid::Source;
use crate::obstacle::Obstacle;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct PendingLinux {
    /// Whether there was a dump of Linux at all.
    pub(super) is_any: bool,
    /// Devices by major and minor number.
    pub(super) numbers: HashMap<(u32, u32), NodeId>,
    /// Disk labels: the size of a sector may come from another dump.
    pub(super) labels: Vec<PrintedLabel>,
    /// Lines of device mapper tables: they name devices by number.
    pub(super) tables: Vec<DmsetupLine>,
    /// Arrays of md, with the superblocks of members.
    pub(super) arrays: Vec<PrintedArray>,
    pub(super) superblocks: Vec<Superblock>,
    /// Volume groups.
    pub(super) volumes: Volumes,
    /// Pairs of layers without positions.
    pub(super) stacked: Vec<Stacked>,
    /// File systems that are mounted.
    pub(super) mounted: Vec<Mounted>,
    /// File system of a device.
    pub(super) told: HashMap<NodeId, NodeId>,
    /// I/O a second, by the kernel's names.
    pub(super) rates: Vec<(String, [f64; 2], Source)>,
    /// Pools of ZFS: their devices depend on labels.
    pub(super) pools: Vec<ZfsPool>,
}

/// A line of `dmsetup table`.
#[derive(Clone, Debug)]
pub(super) struct DmsetupLine {
    pub(super) name: String,
    pub(super) line: Option<DmLine>,
    pub(super) source: Source,
}

/// A device and a device below it, as lsblk draws them.
#[derive(Clone, Debug)]
pub(super) struct Stacked {
    pub(super) upper: NodeId,
    pub(super) lower: NodeId,
    pub(super) why: Obstacle,
    pub(super) source: Source,
}
