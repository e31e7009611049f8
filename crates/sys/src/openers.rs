//! Which other processes have a file or device open, as far as this process may see.

use std::fs;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, makedev, statx};

use crate::io_target::FileId;

/// A process that has it open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opener {
    /// Its number.
    pub pid: u32,
    /// Its command, as the kernel shortens it.
    pub command: String,
}

/// Processes other than this one that have a file open. Those of other users are seen by root only.
pub fn openers(id: FileId) -> impl Iterator<Item = Opener> {
    openers_of_any(vec![id]).map(|(_, opener)| opener)
}

/// As [`openers`], of several files in one look: with the index of the first that a process has open.
pub fn openers_of_any(ids: Vec<FileId>) -> impl Iterator<Item = (usize, Opener)> {
    let own = std::process::id();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(move |&pid| pid != own).filter_map(move |pid| {
        let index = first_open(pid, &ids)?;
        let command = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Some((index, Opener { pid, command: command.trim_end().to_owned() }))
    })
}

fn first_open(pid: u32, ids: &[FileId]) -> Option<usize> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let opened = files.filter_map(|file| id_of(&file.path()));
    opened.filter_map(|id| ids.iter().position(|known| *known == id)).min()
}

/// Asks nobody but the kernel: the server of a file system may hang.
fn id_of(path: &Path) -> Option<FileId> {
    let found = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE | StatxFlags::INO).ok()?;
    Some(match FileType::from_raw_mode(found.stx_mode.into()) {
        FileType::BlockDevice => FileId::Device(makedev(found.stx_rdev_major, found.stx_rdev_minor)),
        _ => FileId::File(makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino),
    })
}
