//! The neighbours of a move: those that the kernel has, and those with bytes in blocks that a move writes as a whole,
//! kept from other users while it runs.

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
/// The error of the system.
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
/// The error of the system.
pub fn within_move(
    plan: &Plan,
    subject: &Subject,
    label: Option<&Label>,
) -> Result<Vec<KernelPartition>, Failure> {
    Ok(within(plan, &known_partitions(subject, label)?))
}

/// Keeps all with bytes in shared blocks from other users until the result is dropped. An exclusively held disk needs
/// no more.
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
