//! The device that a partition is planned on, where it is one of this host: absent, mounted, or full of data.
//!
//! Labels and superblocks are read as `plumb check` reads them. Nothing is opened for a device of another host.

use std::path::Path;

use plumb_plan::plan::PlanWarning;
use plumb_stack::node::keys;
use plumb_stack::{Kind, NodeId, Stack};

use crate::check::sources::{self, GatheredHost};
use crate::failure::Failure;

/// Reasons for care with a device; none for one that is there and empty, or whose name is not of a device below `/dev`.
///
/// # Errors
/// When this is no host that can be looked at.
pub fn warnings(device: &str) -> Result<Vec<PlanWarning>, Failure> {
    let path = Path::new(device);
    if !path.starts_with("/dev") {
        return Ok(Vec::new());
    }
    let named = device.to_owned();
    if !path.exists() {
        return Ok(vec![PlanWarning::NotFound { device: named }]);
    }
    let mut gathered = GatheredHost::default();
    sources::live(Some(path), &mut gathered, &[])?;
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
