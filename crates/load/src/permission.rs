//! The permission to write to a target. There is one function that gives it, after every check that there is.

use std::path::{Path, PathBuf};

use plumb_sys::{FileId, IoTarget, SysError};
use thiserror::Error;

use crate::target::Target;

/// The permission to write to one target. Only [`permit_writes`] makes one.
#[derive(Debug)]
pub struct MayWrite {
    of: FileId,
}

impl MayWrite {
    /// Whether it is for this target.
    #[must_use]
    pub fn covers(&self, target: &Target) -> bool {
        self.of == target.id()
    }
}

/// Why nothing may be written there.
#[derive(Debug, Error)]
pub enum WriteRefused {
    /// The name that was typed is another one.
    #[error("{}: found `{typed}` as the name of what may be overwritten, expected `{}`", path.display(), path.display())]
    OtherName {
        /// The target.
        path: PathBuf,
        /// What was typed.
        typed: String,
    },
    /// Somebody has it open.
    #[error("{}: is open in process {pid} ({command}): end that first", path.display())]
    OpenElsewhere {
        /// The target.
        path: PathBuf,
        /// A process that has it open.
        pid: u32,
        /// Its command.
        command: String,
    },
    /// A loop device stands on it.
    #[error("{}: is the file of {device}: detach that first", path.display())]
    BehindLoop {
        /// The target.
        path: PathBuf,
        /// The loop device.
        device: String,
    },
    /// It cannot be opened for writing; a device that is mounted or held is busy.
    #[error(transparent)]
    Open(#[from] SysError),
}

/// Opens a target for writing, and gives the permission for it: when `typed` names it, it is neither mounted nor held by
/// another device, and no other process has it open. A block device stays closed to mounts as long as the target is open.
///
/// # Errors
/// When any of this does not hold.
pub fn permit_writes(path: &Path, typed: &str) -> Result<(Target, MayWrite), WriteRefused> {
    if !names(path, typed) {
        return Err(WriteRefused::OtherName { path: path.to_owned(), typed: typed.to_owned() });
    }
    let target = Target::new(IoTarget::open_to_write(path)?);
    let of = target.id();
    nobody_else_has(&target)?;
    Ok((target, MayWrite { of }))
}

/// Whether that is its name: as it was given, or the last part of it.
fn names(path: &Path, typed: &str) -> bool {
    let is_last = path.file_name().is_some_and(|name| name == typed);
    !typed.is_empty() && (path == Path::new(typed) || is_last)
}
