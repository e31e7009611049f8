//! The target of a check: a device, a mount point or a file, with all layers below and above it.

use std::collections::HashSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use plumb_geometry::{SmallSort, natural};
use plumb_stack::linux::{Host, Root};
use plumb_stack::node::keys;
use plumb_stack::{Builder, NodeId, Stack};

use super::image::NoDisk;
use crate::failure::Failure;

/// Devices that are named when one asked for is not among them.
const DEVICES_LISTED: usize = 12;

/// The target; `None` for everything.
///
/// # Errors
/// When the target is not in the stack.
pub fn find(
    stack: &Stack,
    target: Option<&Path>,
    known: Option<NodeId>,
) -> Result<Option<NodeId>, Failure> {
    let Some(target) = target else {
        return Ok(None);
    };
    known
        .or_else(|| named(stack, target))
        .map(Some)
        .ok_or_else(|| missing(stack, target))
}

/// The layers to judge and draw with a target: all layers below it, and all layers above it.
pub fn around(stack: &Stack, id: NodeId) -> HashSet<NodeId> {
    let mut wanted: HashSet<NodeId> = stack.under(id).into_iter().collect();
    let mut next = vec![id];
    while let Some(id) = next.pop() {
        next.extend(
            stack
                .above(id)
                .iter()
                .copied()
                .filter(|above| wanted.insert(*above)),
        );
    }
    wanted
}

/// The node of a path of this host: of a block device by its number, of a directory that of its file system, of a file
/// one that is made. `None` for anything else than a path.
///
/// # Errors
/// When there is such a path and nothing can be found under it.
pub fn on_host(
    target: &Path,
    host: &Host,
    root: &Root<'_>,
    builder: &mut Builder,
) -> Result<Option<NodeId>, Failure> {
    let Ok(path) = std::fs::canonicalize(target) else {
        return Ok(None);
    };
    let found = std::fs::metadata(&path).map_err(|error| Failure::failed(&error))?;
    let none = |what: &str| Failure::unknown(format!("{} is {what}", target.display()));
    let kind = found.file_type();
    if kind.is_block_device() {
        let number = (major(found.rdev()), minor(found.rdev()));
        return host
            .by_number(number)
            .map(Some)
            .ok_or_else(|| none("no device of /sys/class/block"));
    }
    let Some(path) = path.to_str() else {
        return Err(none("no path in UTF-8"));
    };
    if kind.is_dir() {
        let mounted = host.file_system_of(builder, path);
        return mounted
            .map(Some)
            .ok_or_else(|| none("on a file system without a block device of this host"));
    }
    if kind.is_file() {
        return Ok(Some(host.file(root, builder, path)));
    }
    Err(none("no block device, directory or file"))
}

/// The path of a file without links, as text.
///
/// # Errors
/// When there is no such file, or its path is no text.
pub fn whole_path(path: &Path) -> Result<String, Failure> {
    let failed = |source| {
        Failure::failed(&NoDisk {
            name: path.display().to_string(),
            source,
        })
    };
    let whole = std::fs::canonicalize(path).map_err(failed)?;
    if !whole.is_file() {
        return Err(Failure::usage(format!(
            "{}: found no regular file, expected an image",
            path.display()
        )));
    }
    let text = whole.into_os_string().into_string();
    text.map_err(|_| Failure::usage(format!("{}: found a path that is no UTF-8", path.display())))
}

/// As glibc takes device numbers apart (makedev(3)).
fn major(number: u64) -> u32 {
    ((number >> 8) & 0xfff) as u32 | (number >> 32) as u32 & !0xfff
}

/// The other part.
fn minor(number: u64) -> u32 {
    (number & 0xff) as u32 | (number >> 12) as u32 & !0xff
}

/// A device by any of its names, a file system by its mount point.
fn named(stack: &Stack, target: &Path) -> Option<NodeId> {
    let name = target.to_str()?;
    stack.find(name).or_else(|| {
        let is_it = |mount: Option<&str>| mount.is_some_and(|mount| Path::new(mount) == target);
        let mut nodes = stack
            .nodes()
            .filter(|(_, node)| is_it(node.word(keys::MOUNT)));
        nodes.next().map(|(id, _)| id)
    })
}

fn missing(stack: &Stack, target: &Path) -> Failure {
    let mut names: Vec<&str> = stack.nodes().map(|(_, node)| node.name.as_str()).collect();
    names.small_sort_by(|a, b| natural(a, b));
    let more = if names.len() > DEVICES_LISTED {
        ", …"
    } else {
        ""
    };
    names.truncate(DEVICES_LISTED);
    Failure::missing(format!("no `{}` in the input", target.display()))
        .with_help(format!("these are: {}{more}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers() {
        // makedev(8, 17), makedev(259, 1), makedev(253, 0x12345) of glibc.
        for (number, parts) in [
            (0x811, (8, 17)),
            (0x10301, (259, 1)),
            ((0x123 << 20) | (253 << 8) | 0x45, (253, 0x12345)),
        ] {
            assert_eq!((major(number), minor(number)), parts);
        }
    }
}
