//! Where a journal may lie: on a file system on a disk, not in memory, not on what is moved, and on another disk unless
//! somebody says otherwise. The path is followed down through volumes, arrays and files shown as disks.

use std::io;
use std::path::{Path, PathBuf};

use plumb_geometry::{Bytes, Grid};
use plumb_relocate::{JOURNAL_BLOCK_BYTES_MIN, JournalFile};

use super::error::{MoveRefused, UNWRITTEN_HELP};
use crate::failure::Failure;
use crate::fix::act::STATE;
use crate::fix::durable::make_directory;
use crate::fix::here::Here;

/// Longer ones are no disk's.
const BLOCK_MAX: Bytes = Bytes(64 << 10);

/// Looks whether a journal of a partition may lie there; what its disk writes as a whole.
///
/// # Errors
/// Why it may not.
pub fn check(
    journal: &Path,
    partition: &Here,
    name: &str,
    may_be_same_disk: bool,
) -> Result<u32, Failure> {
    let no = |why: String| MoveRefused::Place {
        path: journal.display().to_string(),
        why,
    };
    // The path stands in the marks on the disk and in the commands that go on, a line each.
    if journal.to_string_lossy().contains(char::is_control) {
        return Err(no("found a control character in its path, expected none".to_owned()).into());
    }
    if journal.symlink_metadata().is_ok() {
        let failure = Failure::from(no("found a file of that name, expected none".to_owned()));
        let is_unwritten =
            JournalFile::open_to_look(journal).is_ok_and(|mut found| found.is_unwritten());
        return Err(match is_unwritten {
            true => failure.with_help(format!(
                "its start is zeros, as of a journal whose move never began: {UNWRITTEN_HELP}"
            )),
            false => failure,
        });
    }
    let directory = directory_of(journal);
    let directory = directory.canonicalize().map_err(|error| {
        no(format!(
            "{}: {error}; make the directory first",
            directory.display()
        ))
    })?;
    // What has no block device below is in memory, or somewhere on the net.
    let place = Here::find(&directory).map_err(|failure| no(failure.text("")))?;
    if place.is_in_memory() {
        return Err(no("it would be in memory, and lost with the power".to_owned()).into());
    }
    if place.lies_on(name) {
        return Err(no(format!("it would be on {name} itself")).into());
    }
    let (mine, its) = (partition.disks(), place.disks());
    if its.is_empty() {
        return Err(no("no disk is known below it: memory or a network may be".to_owned()).into());
    }
    match its.iter().find(|disk| mine.contains(disk)) {
        Some(disk) if !may_be_same_disk => {
            let why =
                format!("it would be on {disk}, as what is moved: one broken disk would take both");
            let failure = Failure::from(no(why));
            Err(failure.with_help("give a --journal on another disk, or --journal-same-disk"))
        }
        _ => block(&place.physical_blocks()).map_err(|why| {
            Failure::from(no(why))
                .with_help("give a --journal on a file system that begins on a physical block")
        }),
    }
}

/// Blocks in which no record shares a physical block with the one before it: whoever writes to a part of one may, where the
/// power goes meanwhile, spoil all of it.
fn block(physical: &[Grid]) -> Result<u32, String> {
    let mut of_disks = physical
        .iter()
        .filter(|grid| grid.granularity() <= BLOCK_MAX);
    of_disks.try_fold(JOURNAL_BLOCK_BYTES_MIN, |block, grid| {
        let (granularity, offset) = (grid.granularity(), grid.offset());
        if offset == Bytes(0) && granularity.0.is_power_of_two() {
            return Ok(block.max(granularity.0 as u32));
        }
        Err(format!(
            "found physical blocks of {granularity} that begin {offset} into its file system, expected 0 B: writing one record \
             could spoil the one before it"
        ))
    })
}

/// Its directory; where that is not made yet, the one that it will be made in.
fn directory_of(file: &Path) -> PathBuf {
    let directory = match file.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory.to_owned(),
        _ => PathBuf::from("."),
    };
    let is_there = |directory: &&Path| !directory.starts_with(STATE) || directory.exists();
    directory
        .ancestors()
        .find(is_there)
        .map_or(directory.clone(), Path::to_owned)
}

/// Makes the directory of files without a place of their own.
///
/// # Errors
/// When it cannot be made.
pub fn must_exist(journal: &Path) -> Result<(), Failure> {
    if !journal.starts_with(STATE) {
        return Ok(());
    }
    let error = |error: io::Error| MoveRefused::Place {
        path: STATE.to_owned(),
        why: error.to_string(),
    };
    Ok(make_directory(Path::new(STATE)).map_err(error)?)
}

#[cfg(test)]
mod tests {
    use plumb_geometry::GridKind;

    use super::*;

    fn block_on(grids: &[(u64, u64)]) -> Result<u32, String> {
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
            assert_eq!(block_on(grids), Ok(expected), "{grids:?}");
        }
        // A file system at sector 63 of a disk with blocks of 4 KiB.
        for grids in [
            &[(4096, 512)][..],
            &[(512, 0), (4096, 3584)],
            &[(16_384, 4096)],
        ] {
            let why = block_on(grids).expect_err("off its blocks");
            assert!(why.contains("expected 0 B"), "{why}");
        }
    }
}
