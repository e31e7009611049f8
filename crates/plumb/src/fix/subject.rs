//! The disk that a fix is about: opened for no more than is asked, with its label.

use std::path::{Path, PathBuf};

use plumb_label::{Label, read};
use plumb_relocate::Raw;
use plumb_relocate::labels::Change;
use plumb_relocate::labels::change::Changed;
use plumb_stack::Kind;
use plumb_sys::{Access, DirectDisk, SysError};

use super::error::{FixError, of_system};
use super::here::Here;
use crate::failure::Failure;

/// A disk or an image.
pub struct Subject {
    /// The open disk.
    pub disk: DirectDisk,
    /// Its node or file, links resolved.
    pub path: PathBuf,
    /// What `--yes` has to name.
    pub name: String,
    /// What the kernel says.
    pub here: Here,
}

impl Subject {
    /// Opens a disk by its node or its name, or an image in a file. To be written to alone it must be used by nobody.
    ///
    /// # Errors
    /// When there is none, it is a part of a disk, somebody uses it, or the process may not.
    pub fn open(device: &Path, access: Access) -> Result<Subject, Failure> {
        let (path, here) = found(device)?;
        let disk = DirectDisk::open(&path, access).map_err(|error| match (&error, here.users()) {
            (SysError::InUse { .. }, users) if !users.is_empty() => {
                FixError::InUse { device: path.display().to_string(), users }.into()
            }
            _ => of_system(error),
        })?;
        Subject::of(disk, path, here, access)
    }

    /// As [`Subject::open`]; that somebody uses a part of it is no failure yet.
    ///
    /// # Errors
    /// As there.
    pub fn try_open(device: &Path, access: Access) -> Result<Result<Subject, SysError>, Failure> {
        let (path, here) = found(device)?;
        match DirectDisk::open(&path, access) {
            Ok(disk) => Subject::of(disk, path, here, access).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    fn of(disk: DirectDisk, path: PathBuf, here: Here, access: Access) -> Result<Subject, Failure> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if access != Access::Read {
            disk.lock().map_err(of_system)?;
        }
        Ok(Subject { disk, path, name, here })
    }

    /// As errors and reports call it.
    pub fn device(&self) -> String {
        self.path.display().to_string()
    }

    /// That nobody uses it, by what the kernel shows.
    ///
    /// # Errors
    /// Who does.
    pub fn must_be_unused(&self) -> Result<(), FixError> {
        match self.here.users() {
            users if users.is_empty() => Ok(()),
            users => Err(FixError::InUse { device: self.device(), users }),
        }
    }

    /// The disk as readers of labels want it.
    pub fn raw(&self) -> Raw<'_> {
        Raw(&self.disk)
    }

    /// Its label as it is now; `None` where it has none. Of an image, whose block nobody knows, by what the label says.
    ///
    /// # Errors
    /// When it is not known whether there is one.
    pub fn label(&self) -> Result<Option<Label>, FixError> {
        self.label_of(&self.raw(), None)
    }

    /// Its label as a change would leave it.
    ///
    /// # Errors
    /// As [`Subject::label`].
    pub fn label_after(&self, change: &Change, block: Option<u32>) -> Result<Option<Label>, FixError> {
        let raw = self.raw();
        self.label_of(&Changed::new(&raw, change), block)
    }

    fn label_of(&self, disk: &dyn plumb_label::Disk, block: Option<u32>) -> Result<Option<Label>, FixError> {
        let own = (!self.disk.is_image()).then(|| self.disk.limits().logical_block_bytes);
        read(disk, own.or(block)).map_err(|source| FixError::Label { device: self.device(), source })
    }
}

/// The path of a whole disk by its node or its name in `/sys/class/block`, and what the kernel says of it.
fn found(device: &Path) -> Result<(PathBuf, Here), Failure> {
    let nowhere = || {
        let what =
            format!("{}: found no such device or file, expected a disk or an image of one", device.display());
        Failure::usage(what)
    };
    let is_name = device.components().count() == 1;
    let in_dev = || is_name.then(|| std::fs::canonicalize(Path::new("/dev").join(device)).ok()).flatten();
    let path = std::fs::canonicalize(device).ok().or_else(in_dev).ok_or_else(nowhere)?;
    let here = Here::of(&path)?;
    match here.kind() {
        kind @ (Kind::Partition | Kind::SoftPartition) => {
            Err(FixError::NotADisk { device: path.display().to_string(), found: kind.words() }.into())
        }
        _ => Ok((path, here)),
    }
}
