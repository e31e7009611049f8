//! Partitions near the moved one. The kernel must have no other partition in the written places; and a neighbour with
//! bytes in a block that is written as a whole has to be unused: such a block is read, changed and written, and by a
//! resume written again, so that changes of others in between would be lost.

use plumb_label::{Label, PartitionPlace};
use plumb_sys::KernelPartition;

use crate::moving::Plan;
use crate::moving::plan::meet;

/// Partitions that the kernel knows, without the container of logical ones, which nobody can use.
#[must_use]
pub fn without_containers(
    mut known: Vec<KernelPartition>,
    label: Option<&Label>,
) -> Vec<KernelPartition> {
    let parts = label.into_iter().flat_map(|label| &label.partitions);
    let containers: Vec<u32> = parts
        .filter(|part| part.place == PartitionPlace::Extended)
        .map(|part| part.id.number)
        .collect();
    known.retain(|known| !containers.contains(&known.number));
    known
}

fn place(known: &KernelPartition) -> std::ops::Range<u64> {
    known.start_bytes..known.start_bytes.saturating_add(known.len_bytes)
}

/// Those of `known` that have bytes between the beginning of one place and the end of the other.
#[must_use]
pub fn within(plan: &Plan, known: &[KernelPartition]) -> Vec<KernelPartition> {
    let union = plan.union();
    let is_within = |known: &&KernelPartition| meet(&place(known), &union);
    known.iter().filter(is_within).copied().collect()
}

/// Numbers of those within, but for the partition that is moved. A label can lack a partition that is mounted: one that
/// was deleted while the kernel could not let it go, a slice within the one that is moved. All of it would be overwritten.
#[must_use]
pub fn strangers(plan: &Plan, number: u32, known: &[KernelPartition]) -> Vec<u32> {
    let within = within(plan, known);
    let numbers = within.iter().map(|known| known.number);
    numbers.filter(|known| *known != number).collect()
}

/// Those of `known` that have bytes in blocks which are written with the partition or with the label.
#[must_use]
pub fn beside(plan: &Plan, known: &[KernelPartition]) -> Vec<KernelPartition> {
    let bystanders = plan.bystanders();
    let has_some = |known: &&KernelPartition| {
        let place = place(known);
        bystanders.iter().any(|range| meet(range, &place))
    };
    known.iter().filter(has_some).copied().collect()
}
