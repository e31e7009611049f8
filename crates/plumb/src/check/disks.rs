//! What is on the disks themselves: labels and superblocks, read from the devices of this host or from an image.

use std::fs::File;
use std::path::Path;

use plumb_label::FileDisk;
use plumb_stack::grid::Source;
use plumb_stack::ondisk::Scan;
use plumb_stack::{Builder, Kind, NodeId};

use crate::failure::Failure;

/// Reads labels and superblocks of all devices of this host that can be opened; what cannot be is noted once.
pub fn of_host(builder: &mut Builder) {
    let (mut scan, mut refused) = (Scan::default(), 0);
    for id in builder.ids().collect::<Vec<_>>() {
        let Some(way) = way(builder.get(id).kind) else { continue };
        let path = Path::new("/dev").join(&builder.get(id).name);
        match open(&path) {
            Ok(disk) => match way {
                Way::Labelled => scan.probe(builder, &disk, id),
                Way::Content => scan.probe_content(builder, &disk, id),
            },
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => refused += 1,
            // Nodes of devices that the kernel shows may be missing: nothing is known then that was not before.
            Err(_) => {}
        }
    }
    scan.finish(builder);
    if refused > 0 {
        builder.note(format!(
            "labels and superblocks of {refused} devices were not read: that takes root, or the group of disks"
        ));
    }
}

/// Reads a file as a disk, also one in a format of virtual disks.
///
/// # Errors
/// When it cannot be read.
pub fn of_image(path: &Path, builder: &mut Builder) -> Result<NodeId, Failure> {
    let file = open(path).map_err(|error| {
        Failure::failed(&error).with_help(format!("{} must be a file that can be read", path.display()))
    })?;
    let id = builder.node(&path.display().to_string());
    builder.kind(id, Kind::File, &Source::User);
    let mut scan = Scan::default();
    scan.probe_image(builder, &file, id);
    scan.finish(builder);
    Ok(id)
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
