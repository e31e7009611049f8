//! The questions of the preflight, and its reasons to refuse a move. Values: the command line makes the sentences.

use std::io;

use plumb_label::{Problem, ReadError};

use super::boot::{BootGapEvidence, BootSector};
use super::journal_place::JournalPlaceError;
use super::unfinished::Unfinished;
use crate::labels::hidden::LabelMoveError;
use crate::moving::PlanError;
use crate::mutation::{Mutation, Mutations};

/// A question before a move begins. Tests leave them out one by one, to verify that an unsafe move would begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreflightCheck {
    PartitionUnused,
    DiskUnused,
    Writable,
    AnyWrite,
    NoWriters,
    NotUnfinished,
    SoundLabel,
    Movable,
    KernelAgrees,
    BootLoaders,
    NoStrangers,
    NeighboursUnused,
    JournalInMemory,
    JournalOnPartition,
    JournalDisk,
    JournalSameDisk,
    SameAttachment,
    SameIdentity,
    SamePlan,
}

impl Mutations {
    pub(super) fn leaves_out(self, check: PreflightCheck) -> bool {
        self.has(Mutation::NoPreflight(check))
    }
}

/// Why a move does not begin.
#[derive(Debug)]
pub enum Refusal {
    /// Somebody uses the partition, in words.
    InUse {
        /// The users.
        users: Vec<String>,
    },
    /// Somebody uses its disk as a whole, in words.
    DiskInUse {
        /// The users.
        users: Vec<String>,
    },
    /// Processes can write to the disk or to the partition, in words.
    OpenForWriting {
        /// The users.
        users: Vec<String>,
    },
    /// The disk is set read-only.
    ReadOnly,
    /// Its zones have to be written in order.
    OrderedZones,
    /// The system gave no answer.
    System {
        /// The error.
        source: io::Error,
    },
    /// It is not known whether the disk has a label.
    LabelUnread {
        /// Why.
        source: ReadError,
    },
    /// It has none.
    NoLabel,
    /// Something is wrong with it.
    LabelProblem {
        /// The problem.
        problem: Problem,
    },
    /// A move on the disk has not ended.
    Unfinished {
        /// The evidence.
        unfinished: Box<Unfinished>,
    },
    /// The label has no such partition.
    NotInLabel,
    /// It holds the chain of logical partitions.
    Extended,
    /// It holds GRUB's core image, which a boot sector finds by its sector.
    BiosBoot,
    /// It is a slice of a Solaris label.
    SolarisSlice,
    /// Label and kernel disagree about its position.
    KernelDisagrees,
    /// A core image of GRUB would be moved, or overwritten.
    GrubCore {
        /// Its byte on the disk.
        at: u64,
        /// Whether it is in the partition, and not in its new place.
        is_in_partition: bool,
        /// Whose boot sector leads there.
        boot: BootSector,
    },
    /// Bytes before the first partition may be a boot loader.
    BootGap {
        /// First sector of them, of 512 bytes.
        first_sector: u64,
        /// The last one.
        last_sector: u64,
        /// The evidence for one.
        evidence: BootGapEvidence,
    },
    /// The label cannot go along.
    LabelMove {
        /// Why.
        source: LabelMoveError,
    },
    /// The disk cannot be read.
    Unreadable {
        /// The position.
        at: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// A plan that cannot be carried out.
    Plan {
        /// Why.
        source: PlanError,
    },
    /// The kernel has partitions where the move writes, and the label has none there.
    OnlyInKernel {
        /// Their numbers.
        numbers: Vec<u32>,
    },
    /// A neighbour that has bytes in blocks which are written as a whole is in use.
    NeighbourInUse {
        /// Its number.
        number: u32,
        /// The users, in words.
        users: Vec<String>,
    },
    /// A journal is not allowed there.
    JournalPlace {
        /// Why.
        source: JournalPlaceError,
    },
    /// It was checked as a preview, which ignores removable obstacles.
    OnlyShown,
    /// The node leads to another disk than the one that was looked at.
    Exchanged,
    /// The label, or something else that the plan hangs on, was changed since it was looked at.
    Changed {
        /// The position.
        at: u64,
    },
}
