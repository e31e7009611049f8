//! The allowed places of a journal: on a file system on a disk, not in memory, not on the moved partition, and on
//! another disk unless the user says otherwise. The system has followed the path down through volumes, arrays and files
//! shown as disks.

use std::path::Path;

use plumb_geometry::{Bytes, Grid};

use super::PreflightCheck;
use crate::JOURNAL_BLOCK_BYTES_MIN;
use crate::mutation::Mutations;

/// Longer ones are no disk's.
const BLOCK_MAX: Bytes = Bytes(64 << 10);

/// The devices below the directory of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalSite {
    /// Whether a part of it is in memory: gone after a power cut.
    pub is_in_memory: bool,
    /// Whether it is on the partition that is moved.
    pub is_on_partition: bool,
    /// The physical disks below, by the kernel's names; none where that is not known.
    pub disks: Vec<String>,
    /// Physical blocks of these, in bytes of the file system.
    pub physical_blocks: Vec<Grid>,
}

/// The reason against a place for a journal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalPlaceError {
    /// The path is in the marks on the disk and in the commands that continue, a line each.
    #[error("found a control character in its path, expected none")]
    ControlCharacter,
    /// There is something of that name.
    #[error("found a file of that name, expected none")]
    Exists,
    /// The directory, or a layer below it, cannot be read.
    #[error("{why}")]
    Unknown {
        /// The reason, in words.
        why: String,
    },
    /// In memory.
    #[error("it would be in memory, and lost with the power")]
    InMemory,
    /// On the moved partition.
    #[error("it would be on {name} itself")]
    OnPartition {
        /// The partition's name.
        name: String,
    },
    /// On the net, or on something that shows no disk.
    #[error("no disk is known below it: memory or a network may be")]
    NoDisk,
    /// On a disk of the partition, too.
    #[error("it would be on {disk}, like the moved partition: one broken disk would destroy both")]
    SameDisk {
        /// That disk.
        disk: String,
    },
    /// Its file system does not begin on a physical block.
    #[error(
        "found physical blocks of {granularity} that begin {offset} into its file system, expected 0 B: writing one record \
         could spoil the one before it"
    )]
    OffBlocks {
        /// Their length.
        granularity: Bytes,
        /// The start of the first block.
        offset: Bytes,
    },
}

/// That a path can be that of a new journal.
///
/// # Errors
/// Why it cannot.
pub fn must_be_new(journal: &Path) -> Result<(), JournalPlaceError> {
    if journal.to_string_lossy().contains(char::is_control) {
        return Err(JournalPlaceError::ControlCharacter);
    }
    match journal.symlink_metadata().is_ok() {
        true => Err(JournalPlaceError::Exists),
        false => Ok(()),
    }
}

/// Checks whether the journal of a partition may be at a site; returns the write unit of its disk. `disks` are those of
/// the partition.
///
/// # Errors
/// Why it may not.
pub(super) fn must_be_apart(
    site: &JournalSite,
    name: &str,
    disks: &[String],
    may_share_disk: bool,
    mutations: Mutations,
) -> Result<u32, JournalPlaceError> {
    let asks = |check| !mutations.leaves_out(check);
    if site.is_in_memory && asks(PreflightCheck::JournalInMemory) {
        return Err(JournalPlaceError::InMemory);
    }
    if site.is_on_partition && asks(PreflightCheck::JournalOnPartition) {
        let name = name.to_owned();
        return Err(JournalPlaceError::OnPartition { name });
    }
    if site.disks.is_empty() && asks(PreflightCheck::JournalDisk) {
        return Err(JournalPlaceError::NoDisk);
    }
    let shared = site.disks.iter().find(|disk| disks.contains(disk));
    match shared.filter(|_| asks(PreflightCheck::JournalSameDisk)) {
        Some(disk) if !may_share_disk => {
            let disk = disk.clone();
            Err(JournalPlaceError::SameDisk { disk })
        }
        _ => block(&site.physical_blocks),
    }
}

/// Blocks in which no record shares a physical block with the one before it: a power cut during a write to a part of
/// one may destroy all of it.
fn block(physical: &[Grid]) -> Result<u32, JournalPlaceError> {
    let mut of_disks = physical
        .iter()
        .filter(|grid| grid.granularity() <= BLOCK_MAX);
    of_disks.try_fold(JOURNAL_BLOCK_BYTES_MIN, |block, grid| {
        let (granularity, offset) = (grid.granularity(), grid.offset());
        if offset == Bytes(0) && granularity.0.is_power_of_two() {
            return Ok(block.max(granularity.0 as u32));
        }
        Err(JournalPlaceError::OffBlocks {
            granularity,
            offset,
        })
    })
}

#[cfg(test)]
mod tests {
    use plumb_geometry::GridKind;

    use super::*;

    fn block_on(grids: &[(u64, u64)]) -> Result<u32, JournalPlaceError> {
        let grid = |(granularity, offset): &(u64, u64)| {
            Grid::new(Bytes(*granularity), Bytes(*offset), GridKind::Unit).expect("a grid")
        };
        block(&grids.iter().map(grid).collect::<Vec<_>>())
    }

    #[test]
    fn records_share_no_physical_block() {
        for (grids, expected) in [
            (&[][..], 4096),
            (&[(512, 0)], 4096),
            (&[(4096, 0)], 4096),
            (&[(16_384, 0), (512, 0)], 16_384),
            (&[(1 << 20, 0)], 4096),
        ] {
            assert_eq!(block_on(grids).expect("a place"), expected, "{grids:?}");
        }
        // A file system at sector 63 of a disk with blocks of 4 KiB.
        for grids in [
            &[(4096, 512)][..],
            &[(512, 0), (4096, 3584)],
            &[(16_384, 4096)],
        ] {
            let why = block_on(grids).expect_err("off its blocks");
            assert!(matches!(why, JournalPlaceError::OffBlocks { .. }), "{why}");
        }
    }
}
