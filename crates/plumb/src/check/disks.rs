//! What is on the disks themselves: labels and superblocks, read from the devices of this host or from an image.

use std::fs::File;
use std::path::Path;

use plumb_geometry::Bytes;
use plumb_label::{Disk, FileDisk};
use plumb_stack::grid::Source;
use plumb_stack::node::keys;
use plumb_stack::ondisk::Scan;
use plumb_stack::{Builder, Kind, NodeId};

use crate::failure::Failure;

/// Reads labels and superblocks of all devices of this host that can be opened; what cannot be is noted once.
pub fn of_host(builder: &mut Builder) {
    let (mut scan, mut refused) = (Scan::default(), Vec::new());
    for id in builder.ids().collect::<Vec<_>>() {
        let Some(way) = way(builder.get(id).kind) else { continue };
        let path = Path::new("/dev").join(&builder.get(id).name);
        match open(&path) {
            Ok(disk) => match way {
                Way::Labelled => scan.probe(builder, &disk, id),
                Way::Content => scan.probe_content(builder, &disk, id),
            },
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                refused.push((builder.get(id).name.clone(), error));
            }
            // Nodes of devices that the kernel shows may be missing: nothing is known then that was not before.
            Err(_) => {}
        }
    }
    scan.finish(builder);
    if let Some((name, error)) = refused.first() {
        let more = if refused.len() > 1 { format!(" and {} more", refused.len() - 1) } else { String::new() };
        builder.note(format!(
            "labels and superblocks of {name}{more} were not read: {error}; that takes root, or the group of disks"
        ));
    }
}

/// Reads a file as a disk, also one in a format of virtual disks.
///
/// # Errors
/// When it cannot be read.
pub fn of_image(path: &Path, builder: &mut Builder) -> Result<NodeId, Failure> {
    // The whole path, so that no command that is printed means another file, or a device of the same name.
    let name = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()).display().to_string();
    let failed = |source| Failure::failed(&NoDisk { name: path.display().to_string(), source });
    if path.is_dir() {
        return Err(Failure::usage(format!(
            "{} is a directory, expected a file to be read as a disk",
            path.display()
        ))
        .with_help("without --image the file system that it is on is checked"));
    }
    let file = open(path).map_err(failed)?;
    if file.size_bytes() == 0 {
        return Err(Failure::unknown(format!(
            "{name} is empty, expected a label, a file system or a virtual disk"
        )));
    }
    let id = builder.node(&name);
    builder.kind(id, Kind::File, &Source::User);
    let mut scan = Scan::default();
    scan.probe_image(builder, &file, id);
    scan.finish(builder);
    let is_empty = builder.ids().count() == 1 && builder.get(id).word(keys::CONTENT).is_none();
    if is_empty {
        let size = Bytes(file.size_bytes());
        let found = format!(
            "{name}: found nothing known in {size}, expected a label, a file system or a virtual disk"
        );
        return Err(Failure::unknown(found).with_help("docs/ondisk.md lists what is read"));
    }
    Ok(id)
}

/// A file that cannot be read as a disk.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {name} as a disk")]
struct NoDisk {
    name: String,
    source: std::io::Error,
}

/// How to look at a device.
enum Way {
    /// It may have a label.
    Labelled,
    /// It is used as a whole.
    Content,
}

/// Partitions are looked at with their disk, paths with what they lead to.
fn way(kind: Kind) -> Option<Way> {
    match kind {
        Kind::Disk | Kind::VirtualDisk | Kind::Multipath | Kind::Loop => Some(Way::Labelled),
        Kind::Stripe
        | Kind::Mirror
        | Kind::ParityRaid
        | Kind::Concat
        | Kind::Crypt
        | Kind::LogicalVolume
        | Kind::ThinVolume
        | Kind::Cache => Some(Way::Content),
        _ => None,
    }
}

fn open(path: &Path) -> std::io::Result<FileDisk> {
    FileDisk::new(File::open(path)?)
}
