//! A Linux host: facts about its block devices from sysfs, procfs and ioctls.
//!
//! Files are read below a [`Root`], which may be `/`, a tree that a test has made, or the files of another host in
//! memory. Other questions go to a [`Kernel`]: the live one, the [`Answers`] that one gave before, or [`Elsewhere`],
//! which never answers. One pass reads, a second one fills the [`Builder`]: `/sys/class/block` names every device, and
//! most need some twenty small files.
//!
//! Missing and senseless files become notes and not errors: sysfs differs from one kernel to the next. Left out: labels
//! and superblocks, which are on the disk and not in sysfs.

mod answers;
mod device;
mod disk;
mod fabric;
mod file;
mod guests;
mod host;
mod kernel;
mod limits;
mod mapped;
mod md;
mod mounts;
mod nvme;
mod reader;
mod target;

use std::path::Path;
use std::sync::Arc;

use plumb_sys::{Directory, FileTree};
use thiserror::Error;

use crate::builder::Builder;
use crate::grid::Source;
use crate::node::keys;

pub use answers::{Answers, Recorder, Refusal};
pub(crate) use device::Family;
pub(crate) use disk::kind_of;
pub use guests::GuestDisk;
pub use host::{Host, ReadCost};
pub use kernel::{Elsewhere, Identified, Kernel, Live, NoAnswer};
pub use limits::{implausible_optimal, stated_optimal};
pub use mounts::{Mount, mounts};
pub(crate) use mounts::{tell_xfs_stripe, unescape};
pub(crate) use nvme::tell as tell_identified;

/// A directory used as `/`, and the kernel that answers other questions.
pub struct Root<'k> {
    directory: Directory,
    kernel: &'k dyn Kernel,
}

/// Why a host cannot be read at all.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LinuxError {
    /// The root is no directory, or is closed.
    #[error("{root}: cannot be opened ({why})")]
    Root {
        /// The path.
        root: String,
        /// The answer of the kernel.
        why: String,
    },
    /// There is no list of block devices.
    #[error(
        "/sys/class/block cannot be read ({why}): is sysfs mounted, or missing in the collected files"
    )]
    NoDevices {
        /// The answer of the kernel.
        why: String,
    },
}

impl<'k> Root<'k> {
    /// Opens a root. No link below it leads out of it.
    ///
    /// # Errors
    /// When it is no directory, or is closed.
    pub fn open(path: &Path, kernel: &'k dyn Kernel) -> Result<Root<'k>, LinuxError> {
        let directory = Directory::root(path).map_err(|why| LinuxError::Root {
            root: path.display().to_string(),
            why: why.to_string(),
        })?;
        Ok(Root { directory, kernel })
    }

    /// A directory of files in memory as the root, by its path without links.
    ///
    /// # Errors
    /// When it is missing or no directory.
    pub fn in_tree(
        tree: &Arc<FileTree>,
        path: &str,
        kernel: &'k dyn Kernel,
    ) -> Result<Root<'k>, LinuxError> {
        let directory = Directory::in_tree(tree, path).map_err(|why| LinuxError::Root {
            root: path.to_owned(),
            why: why.to_string(),
        })?;
        Ok(Root { directory, kernel })
    }

    /// Disks of guests that run on the host.
    #[must_use]
    pub fn guests(&self) -> Vec<GuestDisk> {
        self.kernel.guests()
    }
}

/// Tells a builder of every block device, mounted file system and swap of a host.
///
/// # Errors
/// When the host has no list of block devices.
pub fn collect(root: &Root<'_>, builder: &mut Builder) -> Result<Host, LinuxError> {
    let class = root.directory.below(device::CLASS);
    let names = class.and_then(|class| class.names());
    let names = names.map_err(|why| LinuxError::NoDevices {
        why: why.to_string(),
    })?;
    let read = device::read_all(root, names);
    let mut host = Host::new(read.work);
    let system = builder.host();
    builder.fact(system, keys::SYSTEM, "linux", &sysfs(""));
    for note in read.notes {
        builder.note(note);
    }
    for device in &read.devices {
        host.name(builder, device);
    }
    for device in &read.devices {
        host.tell(root, builder, device);
    }
    mapped::place_all(root, &host, builder, &read.devices);
    host.read_mounts(root, builder);
    host.place_loops(root, builder, &read.devices);
    target::tell_all(root, &mut host, builder, &read.devices);
    Ok(host)
}

/// The source of a file of sysfs, by its path below `/sys/class/block`.
fn sysfs(path: &str) -> Source {
    let path = if path.is_empty() {
        "/sys/class/block".to_owned()
    } else {
        format!("/sys/class/block/{path}")
    };
    Source::Kernel { path }
}
