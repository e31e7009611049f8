//! The rules about layouts. Each reads a stack, the user's facts and, if there are any, profiles of its devices. Their
//! common input, the positions of the bytes of each top layer, is computed once.

use plumb_model::Target;
use plumb_profile::ProfileSet;
use plumb_stack::Stack;

use crate::rules::{Diagnosis, Judge, Outcome};

mod cached_reads;
pub mod context;
mod cylinder;
pub mod discard_misaligned;
pub mod double_counted;
pub mod geometry_mismatch;
mod hole;
pub mod implausible_hint;
pub mod indirection_unit;
mod io_size;
pub mod known;
pub mod mirror_write_copy;
pub mod misaligned_partition;
pub mod misstated_grid;
pub mod narrow_stripe;
pub mod no_direct_io;
pub mod no_logging;
pub mod parity_small_writes;
pub mod problems;
pub mod queue_setting;
mod rates;
pub mod read_ahead_off;
pub mod read_ahead_too_large;
pub mod read_policy;
pub mod record_mismatch;
mod seen;
pub mod single_path;
mod sizes;
pub mod small_maxphys;
pub mod small_resync_io;
pub mod small_segmap;
pub mod soft_partition_drift;
pub mod software_raid5;
pub mod software_stripe_on_hardware_raid;
mod solaris;
pub mod split_io;
pub mod stripe_segment_mismatch;
pub mod too_few_disks;
pub mod too_many_metadevices;

pub use context::{Context, Top};
pub use known::{Known, Sender, Watch};

/// A rule on layouts.
pub type LayoutRule = Judge<for<'a, 'b> fn(&'a Context<'b>) -> Vec<Outcome>>;

/// All rules, in the order in which findings of one severity are shown.
pub static RULES: &[LayoutRule] = &[
    problems::BROKEN_LABEL,
    problems::BEYOND_DEVICE,
    problems::CONTRADICTION,
    problems::STRANDED_BACKUP_LABEL,
    problems::OVERLAPPING_PARTITIONS,
    problems::UNFINISHED_MOVE,
    problems::SECTOR_SIZE_MISMATCH,
    problems::BROKEN_SUPERBLOCK,
    problems::HIDDEN_SECTORS,
    problems::ASHIFT_BELOW_BLOCK,
    misaligned_partition::RULE,
    soft_partition_drift::RULE,
    split_io::RULE,
    narrow_stripe::RULE,
    stripe_segment_mismatch::RULE,
    parity_small_writes::RULE,
    record_mismatch::RULE,
    indirection_unit::RULE,
    geometry_mismatch::RULE,
    discard_misaligned::RULE,
    implausible_hint::RULE,
    misstated_grid::RULE,
    queue_setting::RULE,
    read_ahead_off::RULE,
    read_ahead_too_large::RULE,
    too_few_disks::RULE,
    single_path::RULE,
    software_stripe_on_hardware_raid::RULE,
    software_raid5::RULE,
    read_policy::RULE,
    mirror_write_copy::RULE,
    small_resync_io::RULE,
    small_maxphys::RULE,
    no_direct_io::RULE,
    no_logging::RULE,
    small_segmap::RULE,
    too_many_metadevices::RULE,
    double_counted::RULE,
];

/// Applies all rules to a stack.
#[must_use]
pub fn diagnose(stack: &Stack, known: &Known, profiles: Option<&ProfileSet>) -> Diagnosis {
    diagnose_in(&Context::new(stack, known, profiles))
}

/// As [`diagnose`], of a context that was worked out before.
pub(crate) fn diagnose_in(context: &Context<'_>) -> Diagnosis {
    let mut diagnosis = Diagnosis::default();
    for rule in RULES {
        for outcome in (rule.judge)(context) {
            diagnosis.take(rule.id, &Target::host(), outcome);
        }
    }
    if context.known.watch.is_some() {
        diagnosis
            .findings
            .iter_mut()
            .for_each(|finding| seen::add(context, finding));
    }
    diagnosis.settle();
    diagnosis
}
