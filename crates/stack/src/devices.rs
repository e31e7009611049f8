//! Labels and superblocks on all devices of a host: on those of this host, or on the copies in a collection of another.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use plumb_label::{Disk, FileDisk};

use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::Source;
use crate::linux::{GuestDisk, Host, Root};
use crate::node::{Kind, keys};
use crate::ondisk::{Counted, Scan, image};

/// All bytes of a device, for [`Open::counted`] where the exact runs are unknown.
pub const ALL: (u64, u64) = (0, u64::MAX);

/// Opens devices and files.
pub trait Open {
    /// A device by its name below `/dev`, or a file by its whole path.
    ///
    /// # Errors
    /// The error of the system.
    fn open(&self, name: &str) -> io::Result<Box<dyn Disk + '_>>;

    /// Receives the ranges of an opened device that a reader recognized.
    fn counted(&self, _name: &str, _counted: &Counted) {}
}

/// Those of this host.
#[derive(Clone, Copy, Debug)]
pub struct Here;

impl Open for Here {
    fn open(&self, name: &str) -> io::Result<Box<dyn Disk + '_>> {
        Ok(Box::new(open_disk(&Path::new("/dev").join(name))?))
    }
}

/// Reads labels and superblocks of all devices of a host that can be opened; returns those that the user may not open
/// or that do not answer, with the error of the system.
pub fn of_host(builder: &mut Builder, disks: &dyn Open) -> Vec<(String, io::Error)> {
    let (mut scan, mut refused) = (Scan::default(), Vec::new());
    for id in builder.ids().collect::<Vec<_>>() {
        let Some(way) = way(builder.get(id).kind) else {
            continue;
        };
        let name = builder.get(id).name.clone();
        match disks.open(&name) {
            Ok(disk) => {
                match way {
                    DeviceUse::Labelled => scan.probe(builder, &*disk, id),
                    DeviceUse::Content => scan.probe_content(builder, &*disk, id),
                }
                disks.counted(&name, &scan.take_counted());
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::TimedOut
                ) =>
            {
                refused.push((name, error));
            }
            // Nodes of devices that the kernel shows may be missing: nothing is known then that was not before.
            Err(_) => {}
        }
    }
    scan.finish(builder);
    refused
}

/// Advice to a user who is not root and could not open a device; `None` for root.
#[must_use]
pub fn advice_to_open() -> Option<&'static str> {
    (!plumb_sys::user::is_root()).then_some("run Plumb as root, or as a member of the group disk")
}

/// `EACCES`: the user lacks the right. Root gets `EPERM` instead, from a device cgroup for instance, and no advice helps.
const PERMISSION_DENIED: i32 = 13;

/// Adds one note on all devices that could not be read, with advice if the user lacks the right to open one.
pub fn note(builder: &mut Builder, refused: &[(String, io::Error)], advice: Option<&str>) {
    let (late, closed): (Vec<_>, Vec<_>) = refused
        .iter()
        .partition(|(_, error)| error.kind() == io::ErrorKind::TimedOut);
    let lacks_right =
        |(_, error): &&(String, io::Error)| error.raw_os_error() == Some(PERMISSION_DENIED);
    let advice = match advice {
        Some(advice) if closed.iter().any(lacks_right) => format!("; {advice}"),
        _ => String::new(),
    };
    for (devices, help) in [(late, ""), (closed, advice.as_str())] {
        let Some((name, error)) = devices.first() else {
            continue;
        };
        let more = if devices.len() > 1 {
            format!(" and {} more", devices.len() - 1)
        } else {
            String::new()
        };
        builder.note(format!(
            "labels and superblocks of {name}{more} were not read: {error}{help}"
        ));
    }
}

/// Adds the extents of a file and the layout of the guest's disk in it, without reading the guest's data.
///
/// # Errors
/// When the file cannot be opened.
pub fn image_of_guest(
    path: &str,
    host: &Host,
    root: &Root<'_>,
    builder: &mut Builder,
    disks: &dyn Open,
) -> io::Result<NodeId> {
    let file = disks.open(path)?;
    let id = host.file(root, builder, path);
    if builder.get(id).size.is_none() {
        let source = Source::Kernel {
            path: path.to_owned(),
        };
        builder.size(id, plumb_geometry::Bytes(file.size_bytes()), &source);
    }
    let disk = image::tell_disk_of(builder, &*file, id);
    let runs = if disk.is_some() {
        vec![ALL]
    } else {
        Vec::new()
    };
    let counted = Counted {
        runs,
        ..Counted::default()
    };
    disks.counted(path, &counted);
    Ok(disk.unwrap_or(id))
}

/// Tells of the disks of guests that run on a host, with the identities that they see, and of these images.
///
/// # Errors
/// When one of these images cannot be opened; those of running guests may be closed to the user, which is noted.
pub fn of_guests(
    images: &[String],
    host: &Host,
    root: &Root<'_>,
    builder: &mut Builder,
    disks: &dyn Open,
) -> io::Result<()> {
    let source = Source::Kernel {
        path: "/proc/PID/cmdline".to_owned(),
    };
    let mut known: HashMap<String, NodeId> = HashMap::new();
    let mut shown: BTreeMap<NodeId, Vec<String>> = BTreeMap::new();
    for image in images {
        known.insert(
            image.clone(),
            image_of_guest(image, host, root, builder, disks)?,
        );
    }
    for GuestDisk { path, identity } in root.guests() {
        let node = match (path.strip_prefix("/dev/"), known.get(&path)) {
            (Some(device), _) => builder.find(device),
            (None, Some(known)) => Some(*known),
            (None, None) => match image_of_guest(&path, host, root, builder, disks) {
                Ok(node) => Some(node),
                Err(error) => {
                    builder.note(format!(
                        "{path}, the disk of a guest, was not read: {error}"
                    ));
                    None
                }
            },
        };
        if let Some(node) = node {
            known.insert(path, node);
            shown.entry(node).or_default().push(identity);
        }
    }
    for (node, identities) in shown {
        builder.fact(node, keys::EXPORTED_BY, "qemu", &source);
        builder.fact(node, keys::EXPORTED_AS, identities, &source);
    }
    Ok(())
}

/// How to look at a device.
enum DeviceUse {
    /// It may have a label.
    Labelled,
    /// It is used as a whole.
    Content,
}

/// Partitions are read with their disk, paths with the device they lead to.
fn way(kind: Kind) -> Option<DeviceUse> {
    match kind {
        Kind::Disk | Kind::VirtualDisk | Kind::Multipath | Kind::Loop => Some(DeviceUse::Labelled),
        Kind::Stripe
        | Kind::Mirror
        | Kind::ParityRaid
        | Kind::Concat
        | Kind::Crypt
        | Kind::LogicalVolume
        | Kind::ThinVolume
        | Kind::Cache => Some(DeviceUse::Content),
        _ => None,
    }
}

/// Opens a file or a device as a disk. A pipe is refused: `open` would wait until another program writes to it.
///
/// # Errors
/// If it is a pipe, or cannot be opened.
pub fn open_disk(path: &Path) -> io::Result<FileDisk> {
    if std::fs::metadata(path)?.file_type().is_fifo() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "found a pipe, expected a file or a device that can be read at any place",
        ));
    }
    FileDisk::new(File::open(path)?)
}
