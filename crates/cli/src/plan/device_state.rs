//! The state of the device that a partition is planned on, if it is a device of this host: absent, mounted or full of data, with its
//! label and its partitions.
//!
//! Plumb reads labels and superblocks like `plumb check`. It opens nothing for a device of another host.

use std::path::{Path, PathBuf};

use plumb_plan::of_stack;
use plumb_plan::partition::PartitionRequest;
use plumb_plan::plan::PlanWarning;
use plumb_stack::node::keys;
use plumb_stack::node_facts::LabelWord;
use plumb_stack::{Kind, NodeId, Stack};

use crate::check::sources::{self, GatheredHost};
use crate::cli::plan::LabelKind;
use crate::failure::Failure;

/// A device that a partition is planned on.
pub enum PlannedDevice {
    /// An image, or a device of another host: nothing is opened for it.
    Elsewhere,
    /// A device that this host would have, and has not.
    Missing,
    /// A device of this host.
    Here(Box<DeviceHere>),
}

/// A device of this host, and everything on it.
pub struct DeviceHere {
    stack: Stack,
    id: NodeId,
    /// Why its labels and superblocks could not be read.
    unread: Option<String>,
}

/// Looks for a device on this host.
///
/// # Errors
/// When this is no host that can be looked at.
pub fn find(device: &str) -> Result<PlannedDevice, Failure> {
    let Some(path) = path_here(device) else {
        return Ok(PlannedDevice::Elsewhere);
    };
    if !path.exists() {
        return Ok(PlannedDevice::Missing);
    }
    let mut gathered = GatheredHost::default();
    sources::live(Some(&path), &mut gathered, &[])?;
    let target = gathered.target;
    let stack = std::mem::take(&mut gathered.builder).finish();
    let Some(id) = target.or_else(|| stack.find(device)) else {
        return Ok(PlannedDevice::Missing);
    };
    let name = &stack.node(id).name;
    let unread = gathered.unread.iter().find(|(unread, _)| unread == name);
    let unread = unread.map(|(_, error)| error.to_string());
    Ok(PlannedDevice::Here(Box::new(DeviceHere {
        stack,
        id,
        unread,
    })))
}

impl PlannedDevice {
    /// Reasons for care with it; none for an empty one, an image, and a device of another host.
    pub fn warnings(&self, device: &str) -> Vec<PlanWarning> {
        let named = device.to_owned();
        match self {
            PlannedDevice::Elsewhere => Vec::new(),
            PlannedDevice::Missing => vec![PlanWarning::NotFound { device: named }],
            PlannedDevice::Here(here) => here.warnings(&named),
        }
    }

    /// The partition of a number, or the device if it is a partition, as a request to move it; `None` without it, or if its
    /// label is not sound.
    pub fn partition(&self, number: u32) -> Option<PartitionRequest> {
        let PlannedDevice::Here(here) = self else {
            return None;
        };
        let stack = &here.stack;
        let is_it = |id: &NodeId| {
            let node = stack.node(*id);
            node.kind == Kind::Partition
                && node.number(keys::PARTITION_NUMBER) == Some(u64::from(number))
        };
        let id = match stack.node(here.id).kind {
            Kind::Partition => here.id,
            _ => stack.above(here.id).iter().copied().find(is_it)?,
        };
        of_stack::partition(stack, id).ok()
    }

    /// The label of the disk, if it has one of Linux.
    pub fn label(&self) -> Option<LabelKind> {
        let PlannedDevice::Here(here) = self else {
            return None;
        };
        match here.stack.node(here.id).value(keys::LABEL)? {
            LabelWord::Gpt => Some(LabelKind::Gpt),
            LabelWord::Dos => Some(LabelKind::Dos),
            _ => None,
        }
    }
}

impl DeviceHere {
    fn warnings(&self, named: &str) -> Vec<PlanWarning> {
        let stack = &self.stack;
        let above = above(stack, self.id);
        let mut at: Vec<String> = above
            .iter()
            .filter_map(|id| stack.node(*id).word(keys::MOUNT))
            .map(str::to_owned)
            .collect();
        at.dedup();
        let device = || named.to_owned();
        let mut warnings = Vec::new();
        if !at.is_empty() {
            warnings.push(PlanWarning::Mounted {
                device: device(),
                at,
            });
        }
        let holds = holds(stack, self.id, &above);
        if !holds.is_empty() {
            warnings.push(PlanWarning::HasData {
                device: device(),
                holds,
            });
        }
        if let Some(why) = &self.unread {
            warnings.push(PlanWarning::NotRead {
                device: device(),
                why: why.clone(),
            });
        }
        warnings
    }
}

/// The path of a device of this host: `/dev/sda1` and `sda1`, but not `disk.img` and `c1t0d0s0`.
fn path_here(device: &str) -> Option<PathBuf> {
    let given = Path::new(device);
    if given.starts_with("/dev") {
        return Some(given.to_owned());
    }
    let is_elsewhere = device.contains('/') || is_solaris_disk(device) || given.exists();
    (!is_elsewhere).then(|| Path::new("/dev").join(device))
}

/// `c1t0d0`, `c0d1s2`: a controller, then a target or a disk.
fn is_solaris_disk(name: &str) -> bool {
    let Some(behind) = name.strip_prefix('c') else {
        return false;
    };
    let rest = behind.trim_start_matches(|letter: char| letter.is_ascii_digit());
    rest.len() < behind.len() && rest.starts_with(['t', 'd'])
}

/// All nodes above a device, through all layers.
fn above(stack: &Stack, id: NodeId) -> Vec<NodeId> {
    let (mut found, mut at) = (vec![id], 0);
    while let Some(id) = found.get(at).copied() {
        at += 1;
        for above in stack.above(id) {
            if !found.contains(above) {
                found.push(*above);
            }
        }
    }
    found.remove(0);
    found
}

/// Layers on a device, each with its kind, and the format of its own contents.
fn holds(stack: &Stack, id: NodeId, above: &[NodeId]) -> Vec<String> {
    let content = stack.node(id).fact(keys::CONTENT);
    let content = content.map(|content| content.value.to_string());
    let layers = above.iter().map(|id| {
        let node = stack.node(*id);
        match node.kind {
            Kind::Unknown => node.name.clone(),
            kind => format!("{} {}", kind.text(), node.name),
        }
    });
    content.into_iter().chain(layers).collect()
}
