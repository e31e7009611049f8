//! `misstated-grid` in words.

use plumb_model::Target;
use plumb_model::facts::{Fault, MisstatedGrid};

use super::phrase::place;
use super::{Sentences, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &MisstatedGrid) -> Sentences {
    Sentences::new(summary(on, facts))
        .say(meaning(facts.fault))
        .and(format!(
            "{} Labels and file systems created by the old statement keep it, so change it before there are data.",
            remedy(facts)
        ))
}

fn summary(on: &Target, facts: &MisstatedGrid) -> String {
    let (name, told) = (target::name(on), facts.stated_bytes);
    let grid = &facts.grid;
    let (what, of, unit) = (grid.what.text(), &grid.on, grid.granularity_bytes);
    match facts.fault {
        Fault::Refused => {
            format!("{name} states blocks of {told}, and {of} takes no I/O of less than {unit}.")
        }
        Fault::Hidden => {
            format!("{name} states blocks of {told} and hides the {what} of {unit} of {of}.")
        }
        Fault::Shifted => format!(
            "{name} states that blocks start at {}, and the {what} of {of} starts at {}.",
            place(facts.stated_offset_bytes),
            place(grid.offset_bytes)
        ),
        Fault::Larger => {
            format!("{name} states blocks of {told}, and the largest below are of {unit}.")
        }
    }
}

const fn meaning(fault: Fault) -> &'static str {
    match fault {
        Fault::Refused => {
            "Each I/O that is no multiple of the block below, or starts off it, ends with an error."
        }
        Fault::Hidden => {
            "Users of it have no reason not to write single blocks: ZFS takes the stated block for its ashift, XFS for its \
             sector, databases for their log, and for each such write the device below reads first."
        }
        Fault::Shifted => {
            "Data that start at a stated boundary start off the unit, also partitions at 1 MiB."
        }
        Fault::Larger => {
            "Nothing is unaligned because of it, but pools and file systems take larger blocks than they need: ZFS by its \
             ashift, for good."
        }
    }
}

fn remedy(facts: &MisstatedGrid) -> &'static str {
    match (facts.backstore.as_deref(), facts.fault) {
        (Some("iblock" | "pscsi"), Fault::Refused | Fault::Larger) => {
            "Leave attrib/block_size of the backstore as the device has it: LIO counts the physical block in that size."
        }
        (Some("iblock"), Fault::Shifted) => {
            "Start the export at a boundary of the unit: blocks larger than those of the device cannot state the start of the \
             first unit."
        }
        (Some("fileio"), Fault::Hidden) => {
            "Give a device to LIO as iblock, which states its physical block, and not as fileio; for a file set \
             attrib/block_size to 4096."
        }
        (Some("nvmet"), _) => {
            "Start the export at a boundary of the unit: NVMe has no field for the start of the first unit."
        }
        (None, Fault::Hidden) => {
            "Let the hypervisor state the physical block (QEMU: physical_block_size=)."
        }
        _ => "Start the export at a boundary of the unit, and let its target state it.",
    }
}
