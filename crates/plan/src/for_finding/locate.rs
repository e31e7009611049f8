//! Names in the actions of a plan, found again in the stack of the plan: nodes for the prover, hosts and identities for
//! `plumb fix plan`.

use plumb_model::action::FileSystemKind;
use plumb_model::{Action, DeviceRef, LocalNode, PartitionRef};
use plumb_stack::node::keys;
use plumb_stack::{Kind, NodeId, Placing, Stack};

use super::Answer;

/// Completes the actions of all remedies of an answer.
pub(super) fn actions(stack: &Stack, answer: &mut Answer) {
    let changes = answer.changes;
    for remedy in &mut answer.plan.remedies {
        for action in &mut remedy.actions {
            complete(stack, changes, action);
        }
    }
}

fn complete(stack: &Stack, changes: NodeId, action: &mut Action) {
    match action {
        Action::Move { partition, .. }
        | Action::Relabel { partition, .. }
        | Action::Shrink { partition, .. }
        | Action::Shift { partition, .. }
        | Action::Migrate { partition, .. }
        | Action::RecreatePhysicalVolume { partition, .. } => {
            complete_partition(stack, changes, partition);
        }
        Action::BackupLabel { disk } | Action::SetQueue { disk, .. } => {
            complete_device(stack, changes, disk);
        }
        Action::TuneFileSystem {
            device,
            kind,
            was_unit_bytes,
            was_width_bytes,
            ..
        } => {
            let id = device_of(stack, changes);
            complete_device(stack, id, device);
            let told = |key| {
                let of = |id: NodeId| stack.node(id).number(key);
                of(changes).or_else(|| of(id))
            };
            // UFS has no hint that could be known.
            if *kind != FileSystemKind::Ufs {
                *was_unit_bytes = told(keys::FS_STRIPE_UNIT);
                *was_width_bytes = told(keys::FS_STRIPE_WIDTH);
            }
        }
        Action::RecreateFileSystem { device, .. } => {
            complete_device(stack, device_of(stack, changes), device);
        }
        Action::RecreateStripe {
            volume, members, ..
        } => {
            volume.device = stack.node(changes).own_name().to_owned();
            complete_device(stack, changes, volume);
            if let Placing::Chunks(chunks) = &stack.node(changes).placing {
                for (known, member) in chunks.members.iter().zip(members) {
                    complete_device(stack, known.node, member);
                }
            }
        }
        Action::RecreateSoftPartitions { component, moves }
        | Action::ResyncSoftPartitions { component, moves } => {
            complete_device(stack, changes, component);
            for change in moves {
                complete_volume(stack, changes, &mut change.volume);
            }
        }
        Action::CopySoftPartition { component, change } => {
            complete_device(stack, changes, component);
            complete_volume(stack, changes, &mut change.volume);
        }
        Action::SetRecord { dataset, .. } => complete_device(stack, changes, dataset),
        Action::SetHost { .. } | Action::Command { .. } => {}
    }
}

fn complete_device(stack: &Stack, id: NodeId, device: &mut DeviceRef) {
    device.host.clone_from(&stack.node(id).host);
    device.identity = stack.identity(id);
    device.node = LocalNode(Some(id));
}

fn complete_partition(stack: &Stack, id: NodeId, partition: &mut PartitionRef) {
    partition.node = LocalNode(Some(id));
    if let Some(disk) = stack.node(id).placing.below().first() {
        complete_device(stack, *disk, &mut partition.disk);
    }
}

/// A soft partition by its name among those of a component.
fn complete_volume(stack: &Stack, component: NodeId, volume: &mut DeviceRef) {
    let above = stack.above(component).iter();
    let mut named = above.filter(|id| stack.node(**id).own_name() == volume.device);
    if let Some(id) = named.next() {
        complete_device(stack, *id, volume);
    }
}

/// The device that a file system is on; any other node is its own.
fn device_of(stack: &Stack, id: NodeId) -> NodeId {
    let is_device = |at: &NodeId| stack.node(*at).kind != Kind::FileSystem;
    stack.under(id).into_iter().find(is_device).unwrap_or(id)
}
