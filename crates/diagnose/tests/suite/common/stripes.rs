//! Volumes on stripes and arrays, for the rules on them.

use plumb_geometry::Bytes;
use plumb_model::{IoSize, IoSizeBasis};
use plumb_stack::node::keys;
use plumb_stack::{CellKind, Kind, NodeId, Source};

use crate::common::lab::{JudgedLayout, Lab};

/// The size that is taken where nothing states one.
pub(crate) const ASSUMED: IoSize = IoSize {
    bytes: Bytes(4096),
    basis: IoSizeBasis::Assumed,
};

/// A volume that begins `start` sectors into a stripe over `members` disks.
pub(crate) fn volume(lab: &mut Lab, chunk: u64, members: usize, start: u64) -> NodeId {
    let disks: Vec<NodeId> = (0..members)
        .map(|at| lab.disk(&format!("sd{at}"), 512, 0))
        .collect();
    let stripe = lab.stripe("d10", chunk, &disks);
    lab.runs(Kind::SoftPartition, "d11", &[(stripe, start, 1 << 21)])
}

pub(crate) fn judge_volume(chunk: u64, start: u64, page: Option<u64>) -> JudgedLayout {
    let mut lab = Lab::default();
    lab.known.page = page.map(Bytes);
    volume(&mut lab, chunk, 2, start);
    lab.judge()
}

pub(crate) fn on_array(chunk: u64, segment: Option<u64>, known: Option<u64>) -> JudgedLayout {
    let mut lab = Lab::default();
    lab.known.segment = known.map(Bytes);
    let luns = ["c5t0d0", "c5t1d0"].map(|name| lab.disk(name, 512, 0));
    for lun in luns {
        lab.fact(lun, keys::MODEL, "SUN StorEdge 9980");
        if let Some(segment) = segment {
            lab.grid(lun, CellKind::ArrayUnit, segment, 0, Source::User);
        }
    }
    lab.stripe("d10", chunk, &luns);
    lab.judge()
}

pub(crate) fn raid(parity: u32, members: usize, manager: Option<&str>, page: Option<u64>) -> Lab {
    let mut lab = Lab::default();
    lab.known.page = page.map(Bytes);
    let disks: Vec<(NodeId, u64)> = (0..members)
        .map(|at| (lab.disk(&format!("sd{at}"), 512, 0), 0))
        .collect();
    let id = lab.chunks("md0", 64 << 10, parity, &disks);
    if let Some(manager) = manager {
        lab.fact(id, keys::MANAGER, manager);
    }
    lab
}
