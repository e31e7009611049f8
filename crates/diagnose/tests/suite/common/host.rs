//! A host with mirrors and mounts, for the rules of the paper on Solaris Volume Manager.

use plumb_geometry::Bytes;
use plumb_stack::node::keys;
use plumb_stack::{Kind, NodeId};

use crate::common::lab::{JudgedLayout, Lab};

/// A host with one mirror of two sides.
pub(crate) fn mirrored(lab: &mut Lab) -> NodeId {
    let sides = ["c1t0d0s0", "c2t0d0s0"].map(|name| lab.bare(name));
    let mirror = lab.copies(Kind::Mirror, "d0", &sides);
    lab.fact(mirror, keys::MANAGER, "svm");
    mirror
}

pub(crate) fn with_settings(state: impl Fn(&mut Lab)) -> JudgedLayout {
    let mut lab = Lab::default();
    mirrored(&mut lab);
    state(&mut lab);
    lab.judge()
}

pub(crate) fn mounted(
    options: Option<&str>,
    segmap_percent: Option<u64>,
    page: Option<u64>,
) -> JudgedLayout {
    let mut lab = Lab::default();
    lab.known.page = page.map(Bytes);
    let slice = lab.bare("c0t0d0s6");
    let system = lab.runs(Kind::FileSystem, "/db", &[(slice, 0, 1 << 20)]);
    lab.fact(system, keys::CONTENT, "ufs");
    lab.fact(system, keys::MOUNT, "/db");
    lab.fact(system, keys::FS_BLOCK, Bytes(8192));
    if let Some(options) = options {
        lab.fact(system, keys::MOUNT_OPTIONS, options);
    }
    if let Some(percent) = segmap_percent {
        lab.host(keys::SEGMAP_PERCENT, percent);
    }
    lab.judge()
}
