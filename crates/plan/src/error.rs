//! Why there is no plan.

use plumb_geometry::{Bytes, Grid, group_digits};
use plumb_model::RuleId;
use thiserror::Error;

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// Two grids have no boundary in common.
    #[error(
        "no position is on both {one} and {other}: their offsets never meet; leave one of them out"
    )]
    NoCommonBoundary {
        /// One grid.
        one: Grid,
        /// The other.
        other: Grid,
    },
    /// Numbers that exceed 64 bits.
    #[error("{what} exceeds 64 bits: expected smaller sizes or positions")]
    TooLarge {
        /// The fault.
        what: &'static str,
    },
    /// An aligned start exists, but not in the wanted range.
    #[error(
        "no room: the first aligned start from {} on is {}, and {needed} from there on end beyond {}; \
         make the partition smaller",
        position(*from), position(*start), position(*end)
    )]
    NoRoom {
        /// The start of the search.
        from: Bytes,
        /// The first aligned start.
        start: Bytes,
        /// Bytes that must follow it.
        needed: Bytes,
        /// First byte that may not be used.
        end: Bytes,
    },
    /// A size or position of the request that is not a multiple of its unit.
    #[error("{what} is {}, no multiple of {of} of {}", position(*found), position(*unit))]
    NotAMultiple {
        /// Its name.
        what: &'static str,
        /// The value given.
        found: Bytes,
        /// Its unit.
        of: &'static str,
        /// Its length.
        unit: Bytes,
    },
    /// A number of the request that cannot be.
    #[error("{what} is {found}, expected {expected}")]
    OutOfRange {
        /// Its name.
        what: &'static str,
        /// The value given.
        found: String,
        /// The allowed value.
        expected: &'static str,
    },
    /// Numbers that make sense, and for which there is nothing.
    #[error("{what} would be {found}: {expected} may do")]
    Unreachable {
        /// The wanted result.
        what: &'static str,
        /// The actual result.
        found: String,
        /// The condition that would have to change.
        expected: &'static str,
    },
    /// Two extents of soft partitions over each other, or without room for a header between them.
    #[error(
        "{} overlap: {one} takes sectors {} to {}, and {} begins at sector {} with a header in front; find the right one \
         (metastat -p)",
        if one == other { format!("two extents of {one}") } else { format!("{one} and {other}") },
        group_digits(*first), group_digits(*last),
        if one == other { "another of them" } else { other.as_str() }, group_digits(*start)
    )]
    Overlap {
        /// The soft partition in front.
        one: String,
        /// The first sector of its extent.
        first: u64,
        /// The last.
        last: u64,
        /// The soft partition behind.
        other: String,
        /// The start of its extent.
        start: u64,
    },
    /// A layer that shares bytes with another, or ends beyond the layer below: commands would write over data of
    /// others.
    #[error("{found}; find out which is right before anything is written or moved")]
    Conflict {
        /// The layers in conflict, with their positions.
        found: String,
    },
    /// Nothing to plan with.
    #[error("{what} is not known: {give}")]
    Missing {
        /// The missing fact.
        what: &'static str,
        /// How to give it.
        give: &'static str,
    },
    /// A label that is not to be written before it is whole.
    #[error("repair the label of {disk} first ({problem})")]
    LabelProblem {
        /// The device with the label.
        disk: String,
        /// The rule that found it.
        problem: RuleId,
    },
    /// A disk whose label says less than the journal of its unfinished move.
    #[error(
        "a move on {disk} has not ended: run `plumb fix status` for it, then end the move with resume or rollback"
    )]
    UnfinishedMove {
        /// The disk with the label.
        disk: String,
    },
    /// A profile that cannot tell.
    #[error(transparent)]
    Profile(#[from] plumb_profile::what_if::Refusal),
    /// No number of disks reaches the wanted response.
    #[error(
        "a response of {limit_ms} ms cannot be reached: the disk alone takes {service_ms} ms, at {} I/O a second",
        group_digits(*disk_per_second)
    )]
    ResponseBelowService {
        /// Response wanted, whole milliseconds or their fraction in text.
        limit_ms: String,
        /// Service time of a disk.
        service_ms: String,
        /// Rate of a disk.
        disk_per_second: u64,
    },
}

impl PlanError {
    /// Whether the request itself is wrong, and not only without an answer.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        !matches!(
            self,
            PlanError::NoRoom { .. }
                | PlanError::LabelProblem { .. }
                | PlanError::UnfinishedMove { .. }
                | PlanError::Conflict { .. }
                | PlanError::Profile(_)
                | PlanError::ResponseBelowService { .. }
                | PlanError::Unreachable { .. }
        )
    }
}

/// A position with both units that a person may need: `17,408 B (34 sectors)`.
#[must_use]
pub fn position(bytes: Bytes) -> String {
    match bytes.to_sectors_exact() {
        Some(sectors) if bytes.0 > 0 => format!("{bytes} ({sectors})"),
        _ => bytes.to_string(),
    }
}
