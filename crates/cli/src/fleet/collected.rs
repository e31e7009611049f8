//! The inventory of a fleet: files of attributes, and collections of hosts (`plumb check --collect`) with kernels, models, schedulers and file systems.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use plumb_fleet::inventory::{InventoryError, LEN_BYTES_MAX};
use plumb_fleet::{Attributes, HostAttributes, Inventory};
use plumb_geometry::SmallSort;
use plumb_stack::node::keys;
use plumb_stack::{Kind, NodeId, Stack, collection};

use crate::check::sources::CollectedHost;
use crate::check::target;
use crate::failure::Failure;

/// Reads inventories: files, and all files of folders.
///
/// # Errors
/// When one cannot be read or is damaged, or has a host that an earlier one has.
pub fn inventory(paths: &[PathBuf]) -> Result<Inventory, Failure> {
    let mut inventory = Inventory::default();
    for path in paths {
        if !path.is_dir() {
            add(&mut inventory, path)?;
            continue;
        }
        let entries = fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let mut files: Vec<PathBuf> = entries
            .map_err(|error| failed(path, &error))?
            .into_iter()
            .map(|entry| entry.path())
            .filter(|file| file.is_file())
            .collect();
        files.small_sort_by(PathBuf::cmp);
        files
            .iter()
            .try_for_each(|file| add(&mut inventory, file))?;
    }
    Ok(inventory)
}

fn failed(path: &Path, error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure::failed(error).at(&path.display().to_string())
}

fn add(inventory: &mut Inventory, path: &Path) -> Result<(), Failure> {
    let of_file = |error| failed(path, &error);
    let len = fs::metadata(path).map_err(of_file)?.len();
    if len > LEN_BYTES_MAX {
        return Err(failed(path, &InventoryError::TooLong(len)));
    }
    let bytes = fs::read(path).map_err(of_file)?;
    if collection::is_archive(&bytes) {
        let host = CollectedHost::open(path, &bytes)?;
        let stack = host.gathered.builder.finish();
        inventory.add_facts(&host.name, attributes(&stack, host.kernel));
        return Ok(());
    }
    let added = inventory.add_file(&bytes);
    added.map_err(|error| failed(path, &error))
}

/// The facts of a host that are attributes.
pub fn attributes(stack: &Stack, kernel: Option<String>) -> HostAttributes {
    let mut attributes = HostAttributes::default();
    attributes
        .own
        .extend(kernel.map(|kernel| ("kernel".to_owned(), kernel)));
    for (id, node) in stack.nodes() {
        let facts = [("model", keys::MODEL), ("scheduler", keys::SCHEDULER)];
        let mut of_device: Attributes = facts
            .into_iter()
            .filter_map(|(name, key)| Some((name.to_owned(), node.word(key)?.to_owned())))
            .collect();
        let kind = file_system(stack, id).filter(|_| stack.is_leaf(id));
        of_device.extend(kind.map(|kind| ("file_system".to_owned(), kind)));
        if !of_device.is_empty() {
            attributes
                .devices
                .insert(node.own_name().to_owned(), of_device);
        }
    }
    attributes
}

/// The kind of the file systems above a device; `None` without any, and if they differ.
fn file_system(stack: &Stack, id: NodeId) -> Option<String> {
    let above = target::around(stack, id).into_iter();
    let mut kinds: BTreeSet<String> = above
        .map(|id| stack.node(id))
        .filter(|node| node.kind == Kind::FileSystem)
        .filter_map(|node| Some(node.value(keys::CONTENT)?.to_string()))
        .collect();
    kinds.pop_first().filter(|_| kinds.is_empty())
}
