//! The system around a partition that is to be moved, as the preflight asks for it.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use plumb_geometry::Grid;
use plumb_label::Label;
use plumb_relocate::labels::kernel::node_of;
use plumb_relocate::moving::Plan;
use plumb_relocate::preflight::{
    Attachment, Host, JournalPlaceError, JournalSite, RecoveryHost, within, without_containers,
};
use plumb_sys::{Directory, FileId, KernelPartition, Limits, openers, partitions};

use crate::fix::act::STATE;
use crate::fix::here::Here;
use crate::fix::subject::Subject;

/// This host, around one partition.
pub struct SystemHost<'a> {
    /// The kernel's facts about the partition.
    pub partition: &'a Here,
    /// Node of the partition.
    pub node: &'a Path,
    /// Its disk.
    pub subject: &'a Subject,
}

impl Host for SystemHost<'_> {
    fn partition_users(&self) -> Vec<String> {
        self.partition.users()
    }

    fn disk_users(&self) -> Vec<String> {
        self.subject.here.own_users()
    }

    fn writers(&self) -> io::Result<Vec<String>> {
        self.subject.writers(&[self.node])
    }

    fn neighbour_users(&self, number: u32) -> Vec<String> {
        users_of(self.subject, number)
    }

    fn partitions(&self) -> io::Result<Vec<KernelPartition>> {
        known(self.subject)
    }

    fn is_read_only(&self) -> bool {
        self.subject.must_be_writable().is_err()
    }

    fn has_ordered_zones(&self) -> bool {
        self.subject.must_take_any_write().is_err()
    }

    fn limits(&self) -> Limits {
        self.subject.disk.limits()
    }

    fn write_units(&self) -> Vec<Grid> {
        self.subject.here.write_units()
    }

    fn identity(&self) -> String {
        self.subject.here.identity()
    }

    fn attachment(&self) -> Option<Attachment> {
        Attachment::of_disk(&self.subject.disk)
    }

    fn disks(&self) -> Vec<String> {
        self.partition.disks()
    }

    fn journal_site(&self, journal: &Path) -> Result<JournalSite, JournalPlaceError> {
        let unknown = |why| JournalPlaceError::Unknown { why };
        let directory = directory_of(journal);
        let directory = directory.canonicalize().map_err(|error| {
            unknown(format!(
                "{}: {error}; make the directory first",
                directory.display()
            ))
        })?;
        // A place without a block device below is in memory, or on the network.
        let place = Here::find(&directory).map_err(|failure| unknown(failure.text("")))?;
        let name = self.node.file_name().unwrap_or_default().to_string_lossy();
        Ok(JournalSite {
            is_in_memory: place.is_in_memory(),
            is_on_partition: place.lies_on(&name),
            disks: place.disks(),
            physical_blocks: place.physical_blocks(),
        })
    }
}

/// This host, around a disk whose move goes on.
pub struct RecoveringHost<'a> {
    /// The disk.
    pub subject: &'a Subject,
    /// The plan of its move.
    pub plan: &'a Plan,
    /// Its label, where that can be read.
    pub label: Option<&'a Label>,
}

impl RecoveryHost for RecoveringHost<'_> {
    fn is_read_only(&self) -> bool {
        self.subject.must_be_writable().is_err()
    }

    fn limits(&self) -> Limits {
        self.subject.disk.limits()
    }

    fn writers(&self) -> io::Result<Vec<String>> {
        let within = within(self.plan, &self.partitions()?);
        let nodes: Vec<PathBuf> = within
            .iter()
            .map(|part| node_of(&self.subject.path, part.number))
            .collect();
        let nodes: Vec<&Path> = nodes.iter().map(PathBuf::as_path).collect();
        self.subject.writers(&nodes)
    }

    fn partitions(&self) -> io::Result<Vec<KernelPartition>> {
        Ok(without_containers(known(self.subject)?, self.label))
    }

    fn neighbour_users(&self, number: u32) -> Vec<String> {
        users_of(self.subject, number)
    }
}

/// Partitions of a disk that the kernel knows.
///
/// # Errors
/// The error of the system.
pub fn known(subject: &Subject) -> io::Result<Vec<KernelPartition>> {
    let root = Directory::root(Path::new("/"))?;
    Ok(partitions::known(&root, &subject.name)?)
}

/// Users of a partition of a disk, and processes with it open: a database on a raw device holds nothing else that the
/// kernel shows.
pub fn users_of(subject: &Subject, number: u32) -> Vec<String> {
    let node = node_of(&subject.path, number);
    let name = name_of(&node);
    let mut users = subject.here.users_on(&name);
    let device = std::fs::metadata(&node).map(|found| found.rdev());
    let open = device
        .into_iter()
        .flat_map(|device| openers(FileId::Device(device)));
    users.extend(open.map(|by| format!("{name} is open in {} ({})", by.command, by.pid)));
    users
}

/// The kernel's name of a node.
pub fn name_of(node: &Path) -> String {
    node.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The directory of a file; if it does not exist yet, the one that will contain it.
fn directory_of(file: &Path) -> PathBuf {
    let directory = match file.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory.to_owned(),
        _ => PathBuf::from("."),
    };
    let is_there = |directory: &&Path| !directory.starts_with(STATE) || directory.exists();
    directory
        .ancestors()
        .find(is_there)
        .map_or(directory.clone(), Path::to_owned)
}
