//! Disks of this host that are exports of this host.

use std::collections::{HashMap, HashSet};

use plumb_geometry::{Bytes, SmallSort};

use super::Export;
use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::Source;
use crate::linux::device::SysfsDevice;
use crate::linux::sysfs;
use crate::node::{Kind, Part, Placing};

/// Puts each disk on the export that it is: by its address on an adapter of this host, or by an identity that no other
/// export has.
pub(super) fn join(
    builder: &mut Builder,
    devices: &HashMap<NodeId, &SysfsDevice>,
    exports: &[(NodeId, &Export)],
) {
    let mut by_address: HashMap<&str, NodeId> = HashMap::new();
    let mut by_identity: HashMap<&str, Vec<NodeId>> = HashMap::new();
    for (node, export) in exports {
        by_address.extend(
            export
                .addresses
                .iter()
                .map(|address| (address.as_str(), *node)),
        );
        if let Some(identity) = &export.identity {
            by_identity.entry(identity).or_default().push(*node);
        }
    }
    let mut disks: Vec<(NodeId, &SysfsDevice)> = devices
        .iter()
        .map(|(node, device)| (*node, *device))
        .collect();
    disks.small_sort_by_key(|(node, _)| *node);
    for (disk, device) in disks {
        if builder.get(disk).kind != Kind::VirtualDisk || builder.get(disk).placing != Placing::Leaf
        {
            continue;
        }
        let address = device
            .address
            .as_deref()
            .and_then(|address| by_address.get(address).copied());
        let same = device
            .identity
            .as_deref()
            .and_then(|identity| by_identity.get(identity));
        let (export, file) = match (address, same.map(Vec::as_slice)) {
            (Some(export), _) => (export, "device"),
            (None, Some([only])) => (*only, "wwid"),
            (None, Some([_, _, ..])) => {
                let name = builder.get(disk).name.clone();
                builder.note(format!(
                    "{name}: several exports have its identity, so that it was put on none"
                ));
                continue;
            }
            (None, _) => continue,
        };
        if !stands_on(builder, export, disk) {
            put_on(
                builder,
                disk,
                export,
                &sysfs(&format!("{}/{file}", device.name)),
            );
        }
    }
}

fn put_on(builder: &mut Builder, disk: NodeId, export: NodeId, source: &Source) {
    let len = builder.get(disk).size;
    let part = Part {
        upper: Bytes(0),
        node: export,
        start: Bytes(0),
        len,
    };
    builder.place(disk, Placing::Parts { parts: vec![part] }, source);
}

/// Whether a node is above another, through any number of layers: a LUN of another host that is passed on under its own
/// identity would be above itself.
fn stands_on(builder: &Builder, upper: NodeId, lower: NodeId) -> bool {
    let (mut next, mut known) = (vec![upper], HashSet::new());
    while let Some(node) = next.pop() {
        if node == lower {
            return true;
        }
        if known.insert(node) {
            next.extend(builder.get(node).placing.below());
        }
    }
    false
}
