//! The disk that a fix is about: opened for no more than is asked, with its label.

use std::path::{Path, PathBuf};

use plumb_label::{Label, read};
use plumb_relocate::Raw;
use plumb_relocate::labels::Change;
use plumb_relocate::labels::change::Changed;
use plumb_stack::Kind;
use plumb_stack::node::keys;
use plumb_stack::node_facts::ZoneModel;
use plumb_sys::partitions::sharers;
use plumb_sys::{
    Access, DirectDisk, Directory, Errno, FileId, Sharer, SysError, openers_of_any, writers_of_any,
};

use super::error::{FixError, of_system};
use super::here::Here;
use crate::failure::Failure;

/// A disk or an image.
pub struct Subject {
    /// The open disk.
    pub disk: DirectDisk,
    /// Its node or file, links resolved.
    pub path: PathBuf,
    /// The required name of `--yes`.
    pub name: String,
    /// The kernel's facts.
    pub here: Here,
}

/// A disk that opens for writing, and fails at the first write.
#[derive(Debug, thiserror::Error)]
#[error(
    "{device}: found a read-only disk, expected one that can be written to: nothing was written"
)]
pub struct ReadOnly {
    /// The disk.
    device: String,
}

impl From<ReadOnly> for Failure {
    fn from(error: ReadOnly) -> Failure {
        let device = &error.device;
        Failure::failed(&error).with_help(format!(
            "blockdev --setrw {device} makes a disk writable that was set read-only; detach a loop device made with losetup -r and \
             attach it again without -r"
        ))
    }
}

impl Subject {
    /// Opens a disk by its node or its name, or an image in a file, and locks it where it is to be written to. To be written
    /// to alone it must be used by nobody.
    ///
    /// # Errors
    /// If it does not exist, is a part of a disk, is used or locked, or the process may not.
    pub fn open(device: &Path, access: Access) -> Result<Subject, Failure> {
        let subject = Subject::open_unlocked(device, access)?;
        if access != Access::Read {
            subject.lock()?;
        }
        Ok(subject)
    }

    /// As [`Subject::open`], where the lock is held already or comes later.
    ///
    /// # Errors
    /// As there.
    pub fn open_unlocked(device: &Path, access: Access) -> Result<Subject, Failure> {
        let (path, here) = found(device)?;
        must_be_writable(&path, &here, access)?;
        let disk =
            DirectDisk::open(&path, access).map_err(|error| match (&error, here.users()) {
                (SysError::InUse { .. }, users) if !users.is_empty() => FixError::InUse {
                    device: path.display().to_string(),
                    users,
                }
                .into(),
                _ => of_system(error),
            })?;
        Ok(Subject::new(disk, path, here))
    }

    /// As [`Subject::open_unlocked`]; that somebody uses a part of it is no failure yet.
    ///
    /// # Errors
    /// As there.
    pub fn try_open_unlocked(
        device: &Path,
        access: Access,
    ) -> Result<Result<Subject, SysError>, Failure> {
        let (path, here) = found(device)?;
        must_be_writable(&path, &here, access)?;
        Ok(DirectDisk::open(&path, access).map(|disk| Subject::new(disk, path, here)))
    }

    /// Opens a disk for a change that leaves its partitions where they are, and locks it: alone, or beside them where they
    /// are in use.
    ///
    /// # Errors
    /// As [`Subject::open`], but for users of its partitions.
    pub fn open_beside_partitions(device: &Path) -> Result<Subject, Failure> {
        let subject = match Subject::try_open_unlocked(device, Access::Exclusive)? {
            Ok(subject) => subject,
            Err(error @ SysError::InUse { .. }) => {
                let subject = Subject::open_unlocked(device, Access::Write)?;
                match subject.must_be_unused() {
                    Err(FixError::InUse { .. }) => subject,
                    Err(error) => return Err(error.into()),
                    // An invisible user may have all of it.
                    Ok(()) => return Err(of_system(error)),
                }
            }
            Err(error) => return Err(of_system(error)),
        };
        subject.lock()?;
        Ok(subject)
    }

    fn new(disk: DirectDisk, path: PathBuf, here: Here) -> Subject {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        Subject {
            disk,
            path,
            name,
            here,
        }
    }

    /// Locks the node until the disk is closed: udev then looks neither at it nor at its partitions.
    ///
    /// # Errors
    /// When somebody keeps it.
    pub fn lock(&self) -> Result<(), Failure> {
        self.disk.lock().map_err(of_system)
    }

    /// Whether somebody who names a disk means this one: by its name or its node.
    pub fn has_name(&self, name: &str) -> bool {
        name == self.name || Path::new(name) == self.path
    }

    /// As errors and reports call it.
    pub fn device(&self) -> String {
        self.path.display().to_string()
    }

    /// Checks that it and its partitions are unused: by the kernel's facts, and by the open files of processes, because
    /// a database on a raw device shows nothing else, and O_EXCL does not see it.
    ///
    /// # Errors
    /// The users.
    pub fn must_be_unused(&self) -> Result<(), FixError> {
        let read = |errno: Errno| FixError::Read {
            device: self.device(),
            source: errno.into(),
        };
        let id = self.id()?;
        let others = Directory::root(Path::new("/"))
            .and_then(|root| sharers(&root, id))
            .map_err(read)?;
        self.must_be_without(self.here.users(), others)
    }

    /// That no other process has the disk as a whole open for writing, nor any of these nodes of partitions: a virtual
    /// machine or a database on a raw device shows nothing else. Partitions of it may be in use otherwise.
    ///
    /// # Errors
    /// The writers.
    pub fn must_have_no_writers(&self, partitions: &[&Path]) -> Result<(), FixError> {
        let users = self.writers(partitions).map_err(|source| FixError::Read {
            device: self.device(),
            source,
        })?;
        match users.is_empty() {
            true => Ok(()),
            false => Err(FixError::InUse {
                device: self.device(),
                users,
            }),
        }
    }

    /// Processes that have the disk as a whole, or one of these nodes, open for writing, in words.
    ///
    /// # Errors
    /// When the disk's node cannot be looked at.
    pub fn writers(&self, partitions: &[&Path]) -> std::io::Result<Vec<String>> {
        let found = std::fs::metadata(&self.path)?;
        let mut ids = vec![FileId::from_metadata(&found)];
        let mut names = vec![self.device()];
        for node in partitions {
            // A node that is gone has no users.
            if let Ok(found) = std::fs::metadata(node) {
                ids.push(FileId::from_metadata(&found));
                names.push(node.display().to_string());
            }
        }
        let open = writers_of_any(&ids).into_iter();
        let words = |(at, by): (usize, plumb_sys::Opener)| {
            format!(
                "{} is open for writing in {} ({})",
                names[at], by.command, by.pid
            )
        };
        Ok(open.map(words).collect())
    }

    /// The same of it as a whole; its partitions may be in use.
    ///
    /// # Errors
    /// The users.
    pub fn must_be_unused_as_a_whole(&self) -> Result<(), FixError> {
        self.must_be_without(self.here.own_users(), Vec::new())
    }

    fn must_be_without(
        &self,
        mut users: Vec<String>,
        sharers: Vec<Sharer>,
    ) -> Result<(), FixError> {
        let itself = Sharer {
            name: self.name.clone(),
            id: self.id()?,
        };
        let (names, ids): (Vec<_>, Vec<_>) = [itself]
            .into_iter()
            .chain(sharers)
            .map(|sharer| (sharer.name, sharer.id))
            .unzip();
        let open = openers_of_any(&ids).into_iter();
        users.extend(
            open.map(|(at, by)| format!("{} is open in {} ({})", names[at], by.command, by.pid)),
        );
        match users.is_empty() {
            true => Ok(()),
            false => Err(FixError::InUse {
                device: self.device(),
                users,
            }),
        }
    }

    fn id(&self) -> Result<FileId, FixError> {
        let found = std::fs::metadata(&self.path);
        let found = found.map_err(|source| FixError::Read {
            device: self.device(),
            source,
        })?;
        Ok(FileId::from_metadata(&found))
    }

    /// That it is not set read-only, where it was opened to be looked at.
    ///
    /// # Errors
    /// When it is.
    pub fn must_be_writable(&self) -> Result<(), ReadOnly> {
        must_be_writable(&self.path, &self.here, Access::Write)
    }

    /// The error of a disk that is set read-only.
    pub fn read_only(&self) -> ReadOnly {
        ReadOnly {
            device: self.device(),
        }
    }

    /// That any of its blocks can be written at any time.
    ///
    /// # Errors
    /// When the host has to write its zones in order, from their beginning.
    pub fn must_take_any_write(&self) -> Result<(), FixError> {
        match self.here.value(keys::ZONED) {
            Some(ZoneModel::HostManaged) => Err(FixError::Zoned {
                device: self.device(),
            }),
            _ => Ok(()),
        }
    }

    /// The disk as readers of labels want it.
    pub fn raw(&self) -> Raw<'_> {
        Raw(&self.disk)
    }

    /// Its present label; `None` without one. For an image, whose block is unknown, by the label's own facts.
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
    pub fn label_after(
        &self,
        change: &Change,
        block: Option<u32>,
    ) -> Result<Option<Label>, FixError> {
        let raw = self.raw();
        self.label_of(&Changed::new(&raw, change), block)
    }

    fn label_of(
        &self,
        disk: &dyn plumb_label::Disk,
        block: Option<u32>,
    ) -> Result<Option<Label>, FixError> {
        let own = (!self.disk.is_image()).then(|| self.disk.limits().logical_block_bytes);
        read(disk, own.or(block)).map_err(|source| FixError::Label {
            device: self.device(),
            source,
        })
    }
}

/// A node for a name in `/sys/class/block`: `sdb` is `/dev/sdb`, unless there is a file of that name.
pub fn by_name(device: &Path) -> PathBuf {
    match device.components().count() == 1 && !device.exists() {
        true => Path::new("/dev").join(device),
        false => device.to_owned(),
    }
}

/// The path of a whole disk by its node or its name in `/sys/class/block`, and the kernel's facts about it.
fn found(device: &Path) -> Result<(PathBuf, Here), Failure> {
    let nowhere = || {
        let what = format!(
            "{}: found no such device or file, expected a disk or an image of one",
            device.display()
        );
        Failure::missing(what)
    };
    let path = std::fs::canonicalize(by_name(device)).map_err(|_| nowhere())?;
    let here = Here::find(&path)?;
    match here.kind() {
        kind @ (Kind::Partition | Kind::SoftPartition) => Err(FixError::NotADisk {
            device: path.display().to_string(),
            found: kind.text(),
        }
        .into()),
        _ => Ok((path, here)),
    }
}

fn must_be_writable(path: &Path, here: &Here, access: Access) -> Result<(), ReadOnly> {
    match here.value(keys::READ_ONLY) {
        Some(true) if access != Access::Read => Err(ReadOnly {
            device: path.display().to_string(),
        }),
        _ => Ok(()),
    }
}
