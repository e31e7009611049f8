//! Names, numbers and kinds of a host's devices.

use std::collections::HashMap;

use plumb_geometry::{Bytes, SECTOR};

use super::device::{Below, Family, SysfsDevice, head_of_path};
use super::mounts::Mount;
use super::{NoAnswer, Root, disk, limits, md, nvme, sysfs};
use crate::builder::Builder;
use crate::dm_table::lvm_name;
use crate::graph::NodeId;
use crate::node::{Kind, Member, Part, Placing, keys};
use crate::obstacle::Obstacle;

/// The cost of reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCost {
    /// Attributes that were opened, those that are missing included.
    pub files: u64,
    /// Directories that were opened.
    pub directories: u64,
}

/// A host that was collected: the data for further questions about it.
#[derive(Debug)]
pub struct Host {
    by_name: HashMap<String, NodeId>,
    by_number: HashMap<(u32, u32), NodeId>,
    pub(super) mounts: Vec<Mount>,
    pub(super) work: ReadCost,
}

impl Host {
    pub(super) fn new(work: ReadCost) -> Host {
        Host {
            by_name: HashMap::new(),
            by_number: HashMap::new(),
            mounts: Vec::new(),
            work,
        }
    }

    /// The cost of reading sysfs.
    #[must_use]
    pub fn work(&self) -> ReadCost {
        self.work
    }

    /// The node of a device number.
    #[must_use]
    pub fn by_number(&self, number: (u32, u32)) -> Option<NodeId> {
        self.by_number.get(&number).copied()
    }

    /// The node of a device by the kernel's name, with `!` or `/`.
    pub(super) fn device(&self, builder: &mut Builder, name: &str) -> NodeId {
        self.by_name
            .get(name)
            .copied()
            .unwrap_or_else(|| builder.node(&name.replace('!', "/")))
    }

    /// Makes the node of a device. A mapped one is called as in `/dev/mapper`, or `vg/lv`; the kernel's name is another.
    pub(super) fn name(&mut self, builder: &mut Builder, device: &SysfsDevice) {
        let kernels = device.name.replace('!', "/");
        let node = match &device.below {
            Below::Mapped {
                name: Some(name),
                uuid,
                ..
            } => {
                let volume = if uuid.starts_with("LVM-") {
                    lvm_name(name)
                } else {
                    None
                };
                let node = builder.node(volume.as_deref().unwrap_or(name));
                builder.alias(node, name);
                builder.alias(node, &format!("mapper/{name}"));
                builder.alias(node, &kernels);
                node
            }
            _ => builder.node(&kernels),
        };
        // Sizes before all else: bcache is placed by those of two devices.
        let size = Bytes(device.size_sectors.saturating_mul(SECTOR));
        builder.size(node, size, &sysfs(&device.name));
        self.by_name.insert(device.name.clone(), node);
        if let Some(number) = device.number {
            self.by_number.insert(number, node);
        }
    }

    /// Adds the kind of a device, the positions of its bytes, and its limits; except for tables of mapped devices and
    /// files of loop devices, which need all names first.
    pub(super) fn tell(&self, root: &Root<'_>, builder: &mut Builder, device: &SysfsDevice) {
        let node = self.device(builder, &device.name);
        let source = sysfs(&device.name);
        let size = Bytes(device.size_sectors.saturating_mul(SECTOR));
        if device.is_read_only {
            builder.fact(node, keys::READ_ONLY, true, &source);
        }
        if let Some(offset) = device.alignment_offset.filter(|offset| *offset != 0) {
            builder.fact(node, keys::ALIGNMENT_OFFSET, offset, &source);
        }
        match &device.below {
            Below::Partition {
                parent,
                number,
                start_sectors,
            } => {
                builder.kind(node, Kind::Partition, &source);
                if let Some(number) = number {
                    builder.fact(node, keys::PARTITION_NUMBER, *number, &source);
                }
                let disk = self.device(builder, parent);
                let start = Bytes(start_sectors.saturating_mul(SECTOR));
                let part = Part {
                    upper: Bytes(0),
                    node: disk,
                    start,
                    len: Some(size),
                };
                builder.place(node, Placing::Parts { parts: vec![part] }, &source);
                return;
            }
            Below::Md(array) => md::tell(self, builder, node, &device.name, array),
            Below::Loop { .. } => builder.kind(node, Kind::Loop, &source),
            Below::Mapped { .. } => {}
            Below::Bcache { backing, slaves } => {
                self.tell_bcache(builder, node, device, backing.as_deref(), slaves);
            }
            Below::Other { slaves } if !slaves.is_empty() => {
                let members = slaves
                    .iter()
                    .map(|slave| self.device(builder, slave))
                    .collect();
                let why = Obstacle::UnknownUse {
                    device: device.name.clone(),
                };
                builder.place(node, Placing::Unknown { members, why }, &source);
            }
            Below::Nothing | Below::Other { .. } => {
                disk::tell(builder, node, device);
                self.join_path(builder, node, device);
            }
        }
        self.tell_limits(root, builder, node, device);
    }

    fn tell_limits(
        &self,
        root: &Root<'_>,
        builder: &mut Builder,
        node: NodeId,
        device: &SysfsDevice,
    ) {
        match &device.queue {
            Some(queue) => limits::tell(builder, node, device, queue),
            None => match root.kernel.limits(&device.name.replace('!', "/")) {
                Ok(answer) => limits::tell(builder, node, device, &answer.into()),
                // One note for all: a collection may lack the directory of every device.
                Err(NoAnswer::Elsewhere) => {
                    builder.note("devices without a directory `queue` have no known limits")
                }
                Err(why) => builder.note(format!("limits are not known: {why}")),
            },
        }
        self.tell_nvme(root, builder, node, device);
    }

    /// The statements of a namespace are facts of the leaf: of its paths, if it has any. They have no nodes below
    /// `/dev`, and are asked through the namespace that joins them.
    fn tell_nvme(
        &self,
        root: &Root<'_>,
        builder: &mut Builder,
        node: NodeId,
        device: &SysfsDevice,
    ) {
        let joined = head_of_path(&device.name);
        if device.family != Family::Nvme && joined.is_none()
            || builder.get(node).kind == Kind::Multipath
        {
            return;
        }
        match root
            .kernel
            .identify(joined.as_ref().unwrap_or(&device.name))
        {
            Ok(answer) => nvme::tell(builder, node, &answer),
            Err(NoAnswer::Elsewhere) => {}
            Err(why) => builder.note(match why.capability() {
                Some(capability) => {
                    let advice = match plumb_sys::user::is_root() {
                        true => "",
                        false => "; run Plumb as root",
                    };
                    format!("NVMe Identify needs {capability}: NPWG and NPWA are not known{advice}")
                }
                None => format!("NVMe Identify was not read: {why}"),
            }),
        }
    }

    /// bcache does not state the start of its data, but it shows the backing device without its head.
    fn tell_bcache(
        &self,
        builder: &mut Builder,
        node: NodeId,
        device: &SysfsDevice,
        backing: Option<&str>,
        slaves: &[String],
    ) {
        let source = sysfs(&format!("{}/bcache", device.name));
        builder.kind(node, Kind::Cache, &source);
        builder.fact(node, keys::MANAGER, "bcache", &source);
        let backing = backing.map(|name| self.device(builder, name));
        let size = Bytes(device.size_sectors.saturating_mul(SECTOR));
        let head = backing
            .and_then(|node| builder.get(node).size)
            .and_then(|whole| whole.checked_sub(size));
        let placing = match (backing, head) {
            (Some(node), Some(start)) => Placing::Parts {
                parts: vec![Part {
                    upper: Bytes(0),
                    node,
                    start,
                    len: Some(size),
                }],
            },
            _ => Placing::Unknown {
                members: slaves
                    .iter()
                    .map(|slave| self.device(builder, slave))
                    .collect(),
                why: Obstacle::NoBackingDevice,
            },
        };
        builder.place(node, placing, &source);
    }

    /// An NVMe namespace that controllers share is on one hidden device for each. Their names come before it.
    fn join_path(&self, builder: &mut Builder, path: NodeId, device: &SysfsDevice) {
        let Some(head) =
            head_of_path(&device.name).and_then(|head| self.by_name.get(&head).copied())
        else {
            return;
        };
        let source = sysfs(&device.name);
        if builder.get(path).kind == Kind::Disk {
            builder.kind(path, Kind::Path, &source);
        }
        builder.kind(head, Kind::Multipath, &source);
        let mut members = match &builder.get(head).placing {
            Placing::Copies { members } => members.clone(),
            _ => Vec::new(),
        };
        members.push(Member {
            node: path,
            start: Bytes(0),
        });
        builder.replace(head, Placing::Copies { members }, &source);
    }
}
