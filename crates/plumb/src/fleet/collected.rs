//! The inventory of a fleet: files of attributes, and collections of hosts (`plumb check --collect`) with kernels, models and schedulers.

use std::fs;
use std::path::{Path, PathBuf};

use plumb_fleet::inventory::{InventoryError, LEN_BYTES_MAX};
use plumb_fleet::{Attributes, HostAttributes, Inventory};
use plumb_geometry::SmallSort;
use plumb_stack::builder::Builder;
use plumb_stack::collection::{self, Contents};
use plumb_stack::linux;
use plumb_stack::node::keys;

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
        let (host, facts) = facts(path, &bytes)?;
        inventory.add_facts(&host, facts);
        return Ok(());
    }
    let added = inventory.add_file(&bytes);
    added.map_err(|error| failed(path, &error))
}

/// The facts of a collection that are attributes, and the name of its host: its own one, or that of the file.
fn facts(path: &Path, bytes: &[u8]) -> Result<(String, HostAttributes), Failure> {
    // Its errors name the file.
    let fault = |error: &(dyn std::error::Error + 'static)| Failure::failed(error);
    let name = path.display().to_string();
    let contents = Contents::read(&name, bytes).map_err(|error| fault(&error))?;
    let collected = contents.collected().map_err(|error| fault(&error))?;
    let root = contents.root(&collected.answers);
    let root = root.map_err(|error| fault(&error))?;
    let mut builder = Builder::default();
    linux::collect(&root, &mut builder).map_err(|error| fault(&error))?;
    let mut attributes = HostAttributes::default();
    let kernel = contents.kernel();
    attributes
        .own
        .extend(kernel.map(|kernel| ("kernel".to_owned(), kernel)));
    for (_, node) in builder.finish().nodes() {
        let facts = [("model", keys::MODEL), ("scheduler", keys::SCHEDULER)];
        let of_device: Attributes = facts
            .into_iter()
            .filter_map(|(name, key)| Some((name.to_owned(), node.word(key)?.to_owned())))
            .collect();
        if !of_device.is_empty() {
            attributes
                .devices
                .insert(node.own_name().to_owned(), of_device);
        }
    }
    let of_file = path.file_name().unwrap_or_default().to_string_lossy();
    let of_file = of_file.trim_end_matches(".tar.zst").to_owned();
    let host = contents.own_name().map(|name| name.trim().to_owned());
    Ok((
        host.filter(|name| !name.is_empty()).unwrap_or(of_file),
        attributes,
    ))
}
