//! The state of the device that a partition is planned on, if it is a device of this host: absent, mounted, or full of data.
//!
//! Plumb reads labels and superblocks like `plumb check`. It opens nothing for a device of another host.

use std::path::{Path, PathBuf};

use plumb_plan::plan::PlanWarning;
use plumb_stack::node::keys;
use plumb_stack::{Kind, NodeId, Stack};

use crate::check::sources::{self, GatheredHost};
use crate::failure::Failure;

/// Reasons for care with a device; none for an empty one, an image, and a device of another host.
///
/// # Errors
/// When this is no host that can be looked at.
pub fn warnings(device: &str) -> Result<Vec<PlanWarning>, Failure> {
    let Some(path) = path_here(device) else {
        return Ok(Vec::new());
    };
    let named = device.to_owned();
    if !path.exists() {
        return Ok(vec![PlanWarning::NotFound { device: named }]);
    }
    let mut gathered = GatheredHost::default();
    sources::live(Some(&path), &mut gathered, &[])?;
    let target = gathered.target;
    let stack = std::mem::take(&mut gathered.builder).finish();
    let Some(id) = target.or_else(|| stack.find(device)) else {
        return Ok(vec![PlanWarning::NotFound { device: named }]);
    };
    let above = above(&stack, id);
    let mut at: Vec<String> = above
        .iter()
        .filter_map(|id| stack.node(*id).word(keys::MOUNT))
        .map(str::to_owned)
        .collect();
    at.dedup();
    let mut warnings = Vec::new();
    if !at.is_empty() {
        let device = named.clone();
        warnings.push(PlanWarning::Mounted { device, at });
    }
    let holds = holds(&stack, id, &above);
    if !holds.is_empty() {
        let device = named.clone();
        warnings.push(PlanWarning::HasData { device, holds });
    }
    let name = &stack.node(id).name;
    if let Some((_, error)) = gathered.unread.iter().find(|(unread, _)| unread == name) {
        warnings.push(PlanWarning::NotRead {
            device: named,
            why: error.to_string(),
        });
    }
    Ok(warnings)
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
