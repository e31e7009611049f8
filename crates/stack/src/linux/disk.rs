//! Devices with nothing below that this host can see.

use super::device::{Family, SysfsDevice};
use super::fabric::Fabric;
use super::sysfs;
use crate::builder::Builder;
use crate::graph::NodeId;
use crate::node::{Kind, keys};
use crate::obstacle::Obstacle;

/// Words in the vendor or model of disks that a hypervisor, a cloud or a software target makes. The layers below such a
/// disk are not in sysfs.
const VIRTUAL: [&str; 12] = [
    "QEMU",
    "VMware",
    "Virtual disk",
    "Virtual Disk",
    "VBOX",
    "VIRTUAL-DISK",
    "Amazon Elastic Block Store",
    "Amazon EC2",
    "PersistentDisk",
    "EphemeralDisk",
    "nvme_card",
    "LIO-ORG",
];

/// The kind of a leaf, by its driver and its vendor and model.
pub(crate) fn kind_of(family: Family, model: &str) -> Kind {
    match family {
        Family::Memory => Kind::Ram,
        Family::Virtual | Family::Network => Kind::VirtualDisk,
        _ if VIRTUAL.iter().any(|word| model.contains(word)) => Kind::VirtualDisk,
        _ => Kind::Disk,
    }
}

/// Sets the kind of a leaf.
pub(super) fn tell(builder: &mut Builder, node: NodeId, device: &SysfsDevice) {
    let source = sysfs(&format!("{}/device", device.name));
    let words = [device.vendor.as_deref(), device.model.as_deref()];
    let model = words.into_iter().flatten().collect::<Vec<_>>().join(" ");
    // A namespace that was joined of paths before is no leaf.
    if builder.get(node).kind != Kind::Multipath {
        let is_remote = device.fabric.as_ref().is_some_and(Fabric::is_software);
        let kind = if is_remote {
            Kind::VirtualDisk
        } else {
            kind_of(device.family, &model)
        };
        builder.kind(node, kind, &source);
    }
    if let Some(fabric) = &device.fabric {
        fabric.tell(builder, node, &source);
    }
    for (key, value) in [
        (keys::MODEL, Some(model)),
        (keys::IDENTITY, device.identity.clone()),
        (keys::SERIAL, device.serial.clone()),
    ] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            builder.fact(node, key, value, &source);
        }
    }
    if device.family == Family::Drbd {
        builder.opaque(node, Obstacle::Drbd);
    }
}
