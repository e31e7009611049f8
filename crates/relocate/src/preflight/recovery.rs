//! Whether a move that was begun may go on, or back, on a disk: everything that is asked while the disk is held and before the
//! first write. Only this makes the [`Checked`] recovery without which no move goes on.

use std::io;

use plumb_sys::{KernelPartition, Limits};

use super::blocks::must_make_up;
use super::evidence::{CurrentDisk, NotThisDisk, must_be_as_long};
use super::neighbours::beside;
use super::{Checked, JournalId};
use crate::labels::{NotDerived, must_be_derived};
use crate::moving::OnLoss;
use crate::{Ending, Status, Unit};

/// The direction of a move that was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the new place.
    Forward,
    /// To the old one.
    Back,
}

/// The system around a disk whose move goes on. Each answer is that of the moment in which it is asked for.
pub trait RecoveryHost {
    /// Whether the disk is set read-only.
    fn is_read_only(&self) -> bool;

    /// Size and blocks of the disk.
    fn limits(&self) -> Limits;

    /// Processes that can write to the disk as a whole, or to a partition in either place, in words.
    ///
    /// # Errors
    /// The error of the system.
    fn writers(&self) -> io::Result<Vec<String>>;

    /// Partitions of the disk that the kernel knows, without containers of logical ones.
    ///
    /// # Errors
    /// The error of the system.
    fn partitions(&self) -> io::Result<Vec<KernelPartition>>;

    /// Everything that uses another partition of the disk or has it open, by its number.
    fn neighbour_users(&self, number: u32) -> Vec<String>;
}

/// A move that may continue, or go back: the direction, and the treatment of bytes that cannot be read or proven.
#[derive(Debug)]
pub struct Recovery {
    pub(crate) journal: JournalId,
    pub(crate) direction: Direction,
    pub(crate) on_loss: OnLoss,
}

/// Why a move does not go on.
#[derive(Debug)]
pub enum RecoveryRefusal {
    /// It has ended.
    Ended {
        /// How.
        ending: Ending,
    },
    /// The disk is not shown to be the one of the move.
    NotThisDisk {
        /// Why not.
        source: NotThisDisk,
    },
    /// The partition may be in use at its new place: no way leads back.
    MayBeInUse,
    /// The disk is longer or shorter than when the move began.
    OtherSize {
        /// Its length in bytes.
        found: u64,
    },
    /// Blocks that the disk states now reach beyond those of the move.
    OtherBlocks {
        /// Those.
        stated: Unit,
    },
    /// The changes of the label in the journal do not follow from the label that the disk had.
    NotDerived {
        /// Why.
        source: NotDerived,
    },
    /// The disk is set read-only.
    ReadOnly,
    /// Processes can write to the disk or to a partition in either place, in words.
    OpenForWriting {
        /// The users.
        users: Vec<String>,
    },
    /// A neighbour that has bytes in blocks which are written as a whole is in use.
    NeighbourInUse {
        /// Its number.
        number: u32,
        /// The users, in words.
        users: Vec<String>,
    },
    /// The system gave no answer.
    System {
        /// The error.
        source: io::Error,
    },
}

impl Recovery {
    /// Makes all checks. `status` is the content of the journal while the disk is held.
    ///
    /// # Errors
    /// The first thing that keeps the move from going on.
    pub fn check(
        status: &Status,
        direction: Direction,
        on_loss: OnLoss,
        disk: &CurrentDisk<'_>,
        host: &dyn RecoveryHost,
    ) -> Result<Checked<Recovery>, RecoveryRefusal> {
        let plan = &status.plan;
        if let Some(ending) = status.ending {
            return Err(RecoveryRefusal::Ended { ending });
        }
        let note = disk.must_be_of(status);
        note.map_err(|source| RecoveryRefusal::NotThisDisk { source })?;
        if direction == Direction::Back && status.may_be_in_use {
            return Err(RecoveryRefusal::MayBeInUse);
        }
        must_be_as_long(status, disk.disk).map_err(|found| RecoveryRefusal::OtherSize { found })?;
        must_make_up(plan.unit, host.limits())
            .map_err(|stated| RecoveryRefusal::OtherBlocks { stated })?;
        must_be_derived(plan, status.torn.as_ref(), disk.disk)
            .map_err(|source| RecoveryRefusal::NotDerived { source })?;
        if host.is_read_only() {
            return Err(RecoveryRefusal::ReadOnly);
        }
        let system = |source| RecoveryRefusal::System { source };
        let users = host.writers().map_err(system)?;
        if !users.is_empty() {
            return Err(RecoveryRefusal::OpenForWriting { users });
        }
        let known = host.partitions().map_err(system)?;
        for number in beside(plan, &known).iter().map(|one| one.number) {
            let users = host.neighbour_users(number);
            if !users.is_empty() {
                return Err(RecoveryRefusal::NeighbourInUse { number, users });
            }
        }
        Ok(Checked(Recovery {
            journal: plan.journal,
            direction,
            on_loss,
        }))
    }
}
