//! Other processes that have a file or device open, as far as this process may see.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::fs::{AtFlags, CWD, FileType, OFlags, StatxFlags, makedev, statx};

use crate::io_target::FileId;

/// A process that has it open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opener {
    /// Its number.
    pub pid: u32,
    /// Its command, as the kernel shortens it.
    pub command: String,
}

/// Minimum time that a real user has a file open: programs that scan every disk, such as those of udev and `losetup`,
/// close it again after some milliseconds.
const IN_USE: Duration = Duration::from_millis(400);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Processes other than this one that have a file open, and keep it so. Those of other users are seen by root only.
#[must_use]
pub fn openers(id: FileId) -> Vec<Opener> {
    openers_of_any(&[id])
        .into_iter()
        .map(|(_, opener)| opener)
        .collect()
}

/// As [`openers`], of several files in one look: with the index of the first that a process has open.
#[must_use]
pub fn openers_of_any(ids: &[FileId]) -> Vec<(usize, Opener)> {
    lasting(ids, false)
}

/// Like [`openers_of_any`], for processes that can write to it through their descriptors.
#[must_use]
pub fn writers_of_any(ids: &[FileId]) -> Vec<(usize, Opener)> {
    lasting(ids, true)
}

fn lasting(ids: &[FileId], to_write: bool) -> Vec<(usize, Opener)> {
    let until = Instant::now() + IN_USE;
    loop {
        let found = look(ids, to_write);
        if found.is_empty() || Instant::now() > until {
            return found;
        }
        thread::sleep(BETWEEN_LOOKS);
    }
}

fn look(ids: &[FileId], to_write: bool) -> Vec<(usize, Opener)> {
    let own = std::process::id();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let others = pids.filter(|&pid| pid != own).filter_map(|pid| {
        let index = first_open(pid, ids, to_write)?;
        let command = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Some((
            index,
            Opener {
                pid,
                command: command.trim_end().to_owned(),
            },
        ))
    });
    others.collect()
}

fn first_open(pid: u32, ids: &[FileId], to_write: bool) -> Option<usize> {
    let files = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    let index_of = |file: fs::DirEntry| {
        let id = id_of(&file.path())?;
        let index = ids.iter().position(|known| *known == id)?;
        (!to_write || can_write(pid, &file)).then_some(index)
    };
    files.filter_map(index_of).min()
}

/// Whether the descriptor was opened for writing. One whose flags cannot be read may have been.
fn can_write(pid: u32, file: &fs::DirEntry) -> bool {
    let number = file.file_name();
    let info = format!("/proc/{pid}/fdinfo/{}", number.to_string_lossy());
    let text = fs::read_to_string(info).unwrap_or_default();
    let flags = text
        .lines()
        .find_map(|line| line.strip_prefix("flags:"))
        .and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_none_or(|flags| OFlags::from_bits_retain(flags) & OFlags::ACCMODE != OFlags::RDONLY)
}

/// Asks nobody but the kernel: the server of a file system may hang.
fn id_of(path: &Path) -> Option<FileId> {
    let found = statx(
        CWD,
        path,
        AtFlags::STATX_DONT_SYNC,
        StatxFlags::TYPE | StatxFlags::INO,
    )
    .ok()?;
    Some(match FileType::from_raw_mode(found.stx_mode.into()) {
        FileType::BlockDevice => {
            FileId::Device(makedev(found.stx_rdev_major, found.stx_rdev_minor))
        }
        _ => FileId::File(
            makedev(found.stx_dev_major, found.stx_dev_minor),
            found.stx_ino,
        ),
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use plumb_testkit::wait;

    use super::*;

    fn sleeping(seconds: &str, file: &Path) -> std::process::Child {
        let stdin = Stdio::from(fs::File::open(file).expect("it is there"));
        Command::new("sleep")
            .arg(seconds)
            .stdin(stdin)
            .spawn()
            .expect("sleep")
    }

    #[test]
    fn openers_are_listed_and_former_readers_are_not() {
        let dir = plumb_testkit::temp_dir("openers");
        let path = dir.path().join("file");
        fs::write(&path, "it").expect("room");
        let id = FileId::from_metadata(&fs::metadata(&path).expect("it is there"));
        assert_eq!(openers(id), Vec::new());

        let mut brief = sleeping("0.1", &path);
        assert_eq!(openers(id), Vec::new());
        wait::exit("a brief reader", wait::PATIENCE, &mut brief);

        let mut lasting = sleeping("60", &path);
        let told = openers(id);
        wait::killed("sleep", &mut lasting);
        assert_eq!(
            told,
            [Opener {
                pid: lasting.id(),
                command: "sleep".to_owned()
            }]
        );
    }

    /// A reader is no writer, and a writer is both.
    #[test]
    fn writers_are_distinguished_from_readers() {
        let dir = plumb_testkit::temp_dir("writers");
        let path = dir.path().join("file");
        fs::write(&path, "it").expect("room");
        let id = FileId::from_metadata(&fs::metadata(&path).expect("it is there"));
        let mut reader = sleeping("60", &path);
        let of_reader = (openers(id).len(), writers_of_any(&[id]).len());
        let file = fs::OpenOptions::new().append(true).open(&path);
        let mut writer = Command::new("sleep")
            .arg("60")
            .stdout(Stdio::from(file.expect("it is there")))
            .spawn()
            .expect("sleep");
        let writers: Vec<u32> = writers_of_any(&[id]).iter().map(|(_, by)| by.pid).collect();
        for child in [&mut reader, &mut writer] {
            wait::killed("sleep", child);
        }
        assert_eq!(of_reader, (1, 0));
        assert_eq!(writers, [writer.id()]);
    }
}
