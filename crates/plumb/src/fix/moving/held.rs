//! The neighbours of a move: which the kernel has, and those that have bytes in blocks which a move writes as a whole, kept
//! from others while it runs.

use plumb_label::Label;
use plumb_relocate::labels::kernel::node_of;
use plumb_relocate::moving::Plan;
use plumb_relocate::preflight::{beside, within, without_containers};
use plumb_sys::{Access, DirectDisk, KernelPartition, SysError};

use super::error::MoveRefused;
use super::host::{known, name_of, users_of};
use crate::failure::Failure;
use crate::fix::error::of_system;
use crate::fix::subject::Subject;

/// Partitions of a disk that the kernel knows, without the container of logical ones, which nobody can use.
///
/// # Errors
/// What the system says.
pub fn known_partitions(
    subject: &Subject,
    label: Option<&Label>,
) -> Result<Vec<KernelPartition>, Failure> {
    let known = known(subject).map_err(|error| Failure::failed(&error))?;
    Ok(without_containers(known, label))
}

/// Those that have bytes between the beginning of one place of a move and the end of the other.
///
/// # Errors
/// What the system says.
pub fn within_move(
    plan: &Plan,
    subject: &Subject,
    label: Option<&Label>,
) -> Result<Vec<KernelPartition>, Failure> {
    Ok(within(plan, &known_partitions(subject, label)?))
}

/// Keeps all that have bytes in shared blocks from others until what is returned is dropped. Where the disk is held alone
/// that is done already.
///
/// # Errors
/// When somebody uses one of them.
pub fn keep(
    plan: &Plan,
    subject: &Subject,
    label: Option<&Label>,
    is_alone: bool,
) -> Result<Vec<DirectDisk>, Failure> {
    let beside = beside(plan, &known_partitions(subject, label)?);
    let in_use = |number: u32, users: Vec<String>| MoveRefused::NeighbourInUse {
        partition: plan.partition.clone(),
        neighbour: name_of(&node_of(&subject.path, number)),
        users,
    };
    for one in &beside {
        let users = users_of(subject, one.number);
        if !users.is_empty() {
            return Err(in_use(one.number, users).into());
        }
    }
    if is_alone {
        return Ok(Vec::new());
    }
    let open = |one: &KernelPartition| {
        let node = node_of(&subject.path, one.number);
        DirectDisk::open(&node, Access::Exclusive).map_err(|error| match error {
            SysError::InUse { .. } => {
                let held = format!("a program holds {}", name_of(&node));
                in_use(one.number, vec![held]).into()
            }
            error => of_system(error),
        })
    };
    beside.iter().map(open).collect()
}
