//! What a check is asked about: a device, a mount point or a file, with all that it stands on and all that stands on it.

use std::collections::HashSet;
use std::path::Path;

use plumb_stack::graph::natural;
use plumb_stack::node::keys;
use plumb_stack::{NodeId, Stack};

use crate::cli::Check;
use crate::failure::Failure;

/// Devices that are named when one asked for is not among them.
const DEVICES_LISTED: usize = 12;

/// The layers to judge and draw; `None` for all.
///
/// # Errors
/// When the target is not in the stack.
pub fn wanted(stack: &Stack, args: &Check) -> Result<Option<HashSet<NodeId>>, Failure> {
    let Some(target) = &args.target else { return Ok(None) };
    let is_dump = !args.from.is_empty();
    if args.image {
        return Err(Failure::unknown(format!("cannot read {} as a disk in this version", target.display()))
            .with_help("give what sfdisk -d or prtvtoc prints of it with --from"));
    }
    let found = named(stack, target).or_else(|| if is_dump { None } else { mounted(stack, target) });
    let Some(id) = found else { return Err(missing(stack, target)) };
    let mut wanted: HashSet<NodeId> = stack.under(id).into_iter().collect();
    let mut next = vec![id];
    while let Some(id) = next.pop() {
        next.extend(stack.above(id).iter().copied().filter(|above| wanted.insert(*above)));
    }
    Ok(Some(wanted))
}

/// A device by any of its names, a file system by its mount point.
fn named(stack: &Stack, target: &Path) -> Option<NodeId> {
    let name = target.to_str()?;
    stack.find(name).or_else(|| {
        let is_it = |mount: Option<&str>| mount.is_some_and(|mount| Path::new(mount) == target);
        let mut nodes = stack.nodes().filter(|(_, node)| is_it(node.word(keys::MOUNT)));
        nodes.next().map(|(id, _)| id)
    })
}

/// The file system that a directory of this host is in.
fn mounted(stack: &Stack, target: &Path) -> Option<NodeId> {
    let whole = std::fs::canonicalize(target).ok().filter(|path| path.is_dir())?;
    let mounts = stack.nodes().filter_map(|(id, node)| Some((id, Path::new(node.word(keys::MOUNT)?))));
    let around = mounts.filter(|(_, mount)| whole.starts_with(mount));
    around.max_by_key(|(_, mount)| mount.components().count()).map(|(id, _)| id)
}

fn missing(stack: &Stack, target: &Path) -> Failure {
    let mut names: Vec<&str> = stack.nodes().map(|(_, node)| node.name.as_str()).collect();
    names.sort_by(|a, b| natural(a, b));
    let more = if names.len() > DEVICES_LISTED { ", …" } else { "" };
    names.truncate(DEVICES_LISTED);
    Failure::unknown(format!("no `{}` in what was read", target.display()))
        .with_help(format!("these are: {}{more}", names.join(", ")))
}
