//! Neighbours that have bytes in blocks which a move writes as a whole. Such a block is read, changed and written, and by a
//! resume written again: what somebody else puts there meanwhile would be lost. So they have to be unused, and are kept so.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use plumb_label::{Label, PartitionPlace};
use plumb_quoting::Command;
use plumb_relocate::labels::kernel::node_of;
use plumb_relocate::moving::Plan;
use plumb_sys::{
    Access, DirectDisk, Directory, FileId, KernelPartition, SysError, openers, partitions,
};

use super::error::MoveRefused;
use crate::failure::Failure;
use crate::fix::error::of_system;
use crate::fix::here::Here;
use crate::fix::subject::Subject;

/// A partition beside the one that is moved.
pub struct Neighbour {
    /// The kernel's name.
    pub name: String,
    node: PathBuf,
}

/// Partitions of a disk that the kernel knows, without the container of logical ones, which nobody can use.
///
/// # Errors
/// What the system says.
pub fn known(subject: &Subject, label: Option<&Label>) -> Result<Vec<KernelPartition>, Failure> {
    let root =
        Directory::root(std::path::Path::new("/")).map_err(|errno| Failure::failed(&errno))?;
    let mut known =
        partitions::known(&root, &subject.name).map_err(|errno| Failure::failed(&errno))?;
    let containers = label.into_iter().flat_map(|label| &label.partitions);
    let containers: Vec<u32> = containers
        .filter(|part| part.place == PartitionPlace::Extended)
        .map(|part| part.id.number)
        .collect();
    known.retain(|known| !containers.contains(&known.number));
    Ok(known)
}

/// Those that have bytes between the beginning of one place and the end of the other.
///
/// # Errors
/// What the system says.
pub fn within(
    plan: &Plan,
    subject: &Subject,
    label: Option<&Label>,
) -> Result<Vec<KernelPartition>, Failure> {
    let (start, end) = (
        plan.from.min(plan.to),
        plan.from.max(plan.to).saturating_add(plan.len),
    );
    let mut within = known(subject, label)?;
    within.retain(|known| {
        known.start_bytes < end && start < known.start_bytes.saturating_add(known.len_bytes)
    });
    Ok(within)
}

/// That the kernel has nothing else between the beginning of one place and the end of the other. A label can lack a
/// partition that is mounted: one that was deleted while the kernel could not let it go, a slice within the one that is
/// moved. All of it would be overwritten, or be where it was.
///
/// # Errors
/// What it has there.
pub fn must_be_all(
    plan: &Plan,
    number: u32,
    subject: &Subject,
    label: Option<&Label>,
) -> Result<(), Failure> {
    let mut found: Vec<u32> = within(plan, subject, label)?
        .iter()
        .map(|known| known.number)
        .collect();
    found.retain(|known| *known != number);
    let Some(first) = found.first() else {
        return Ok(());
    };
    let names = found
        .iter()
        .map(|number| Neighbour::at(node_of(&subject.path, *number)).name);
    Err(MoveRefused::OnlyInKernel {
        partition: plan.partition.clone(),
        found: names.collect(),
        command: Box::new(
            Command::new("partx --delete --nr")
                .arg(first)
                .path(subject.device()),
        ),
    }
    .into())
}

/// Those that have bytes in blocks which are written with the partition or with the label.
///
/// # Errors
/// What the system says.
pub fn beside(
    plan: &Plan,
    subject: &Subject,
    label: Option<&Label>,
) -> Result<Vec<Neighbour>, Failure> {
    let bystanders = plan.bystanders();
    let has_some = |known: &&KernelPartition| {
        let end = known.start_bytes.saturating_add(known.len_bytes);
        bystanders
            .iter()
            .any(|range| range.start < end && known.start_bytes < range.end)
    };
    let known = known(subject, label)?;
    let node = |known: &KernelPartition| node_of(&subject.path, known.number);
    Ok(known
        .iter()
        .filter(has_some)
        .map(node)
        .map(Neighbour::at)
        .collect())
}

impl Neighbour {
    fn at(node: PathBuf) -> Neighbour {
        Neighbour {
            name: node
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            node,
        }
    }

    /// That nobody uses it, or has it open: a database on a raw device holds nothing that the kernel shows otherwise.
    ///
    /// # Errors
    /// Who does.
    pub fn must_be_unused(&self, partition: &str, here: &Here) -> Result<(), MoveRefused> {
        let mut users = here.users_on(&self.name);
        let number = std::fs::metadata(&self.node).map(|found| found.rdev());
        let open = number
            .into_iter()
            .flat_map(|number| openers(FileId::Device(number)));
        users
            .extend(open.map(|by| format!("{} is open in {} ({})", self.name, by.command, by.pid)));
        match users.is_empty() {
            true => Ok(()),
            false => Err(self.in_use(partition, users)),
        }
    }

    fn in_use(&self, partition: &str, users: Vec<String>) -> MoveRefused {
        MoveRefused::NeighbourInUse {
            partition: partition.to_owned(),
            neighbour: self.name.clone(),
            users,
        }
    }
}

/// Keeps all of them from others until what is returned is dropped. Where the disk is held alone that is done already.
///
/// # Errors
/// When somebody uses one of them.
pub fn keep(
    plan: &Plan,
    subject: &Subject,
    label: Option<&Label>,
    is_alone: bool,
) -> Result<Vec<DirectDisk>, Failure> {
    let beside = beside(plan, subject, label)?;
    beside
        .iter()
        .try_for_each(|one| one.must_be_unused(&plan.partition, &subject.here))?;
    if is_alone {
        return Ok(Vec::new());
    }
    let open = |one: &Neighbour| {
        DirectDisk::open(&one.node, Access::Exclusive).map_err(|error| match error {
            SysError::InUse { .. } => one
                .in_use(
                    &plan.partition,
                    vec![format!("a program holds {}", one.name)],
                )
                .into(),
            error => of_system(error),
        })
    };
    beside.iter().map(open).collect()
}
