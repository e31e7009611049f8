//! Reads a file as a disk: an image, or a virtual disk.

use std::io;
use std::path::Path;

use plumb_geometry::Bytes;
use plumb_label::Disk;
use plumb_stack::grid::Source;
use plumb_stack::node::keys;
use plumb_stack::ondisk::Scan;
use plumb_stack::{Builder, Kind, NodeId};

use crate::failure::Failure;

/// Reads a file as a disk, also one in a format of virtual disks.
///
/// # Errors
/// When it cannot be read.
pub fn read(path: &Path, builder: &mut Builder) -> Result<NodeId, Failure> {
    // The whole path, so that no command that is printed means another file, or a device of the same name.
    let name = std::fs::canonicalize(path)
        .unwrap_or_else(|_| path.to_owned())
        .display()
        .to_string();
    let failed = |source| {
        Failure::failed(&NoDisk {
            name: path.display().to_string(),
            source,
        })
    };
    if path.is_dir() {
        return Err(Failure::usage(format!(
            "{} is a directory, expected a file to be read as a disk",
            path.display()
        ))
        .with_help("without --image the file system that it is on is checked"));
    }
    let file = plumb_stack::devices::open_disk(path).map_err(failed)?;
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
    let is_empty = builder.ids().count() == 1 && builder.get(id).fact(keys::CONTENT).is_none();
    if is_empty {
        let size = Bytes(file.size_bytes());
        let found = format!(
            "{name}: found nothing known in {size}, expected a label, a file system or a virtual disk"
        );
        return Err(Failure::unknown(found).with_help("docs/ondisk.md lists the supported formats"));
    }
    Ok(id)
}

/// A file that cannot be read as a disk.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {name} as a disk")]
pub struct NoDisk {
    /// Its name, as the user gave it.
    pub name: String,
    /// The error of the system.
    pub source: io::Error,
}
