//! Where a journal may lie: on a file system on a disk, not in memory, not on what is moved, and on another disk unless
//! somebody says otherwise. The path is followed down through volumes, arrays and files shown as disks.

use std::path::{Path, PathBuf};

use super::error::MoveRefused;
use crate::failure::Failure;
use crate::fix::here::Here;

/// Looks whether a journal of a partition may lie there; its directory is there already.
///
/// # Errors
/// Why it may not.
pub fn check(journal: &Path, partition: &Here, name: &str, may_be_same_disk: bool) -> Result<(), Failure> {
    let no = |why: String| MoveRefused::Place { path: journal.display().to_string(), why };
    if journal.symlink_metadata().is_ok() {
        return Err(no("found a file of that name, expected none".to_owned()).into());
    }
    let directory = directory_of(journal);
    let directory = directory
        .canonicalize()
        .map_err(|error| no(format!("{}: {error}; make the directory first", directory.display())))?;
    // What has no block device below is in memory, or somewhere on the net.
    let place = Here::of(&directory).map_err(|failure| no(failure.words("")))?;
    if place.is_in_memory() {
        return Err(no("it would be in memory, and lost with the power".to_owned()).into());
    }
    if place.lies_on(name) {
        return Err(no(format!("it would be on {name} itself")).into());
    }
    let (mine, its) = (partition.disks(), place.disks());
    if its.is_empty() {
        return Err(no("nobody knows on which disk it would be".to_owned()).into());
    }
    match its.iter().find(|disk| mine.contains(disk)) {
        Some(disk) if !may_be_same_disk => {
            let why = format!("it would be on {disk}, as what is moved: one broken disk would take both");
            let failure = Failure::from(no(why));
            Err(failure.with_help("give a --journal on another disk, or --journal-same-disk"))
        }
        _ => Ok(()),
    }
}

fn directory_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Makes the directory of files without a place of their own.
///
/// # Errors
/// When it cannot be made.
pub fn must_exist(journal: &Path) -> Result<(), Failure> {
    use crate::fix::act::STATE;
    if !journal.starts_with(STATE) {
        return Ok(());
    }
    let error = |error: std::io::Error| MoveRefused::Place { path: STATE.to_owned(), why: error.to_string() };
    Ok(std::fs::create_dir_all(STATE).map_err(error)?)
}
