//! The permission to write to a target. One function grants it, after every check that a write needs.

use std::path::{Path, PathBuf};

use plumb_sys::partitions::sharers;
use plumb_sys::{Directory, Durability, FileId, IoTarget, Opener, SysError, openers_of_any};
use thiserror::Error;

use crate::target::Target;

/// The permission to write to one target. Only [`permit_writes_until`] makes one.
#[derive(Debug)]
pub struct MayWrite {
    of: FileId,
}

impl MayWrite {
    /// Whether it is for this target.
    #[must_use]
    pub fn covers(&self, target: &Target) -> bool {
        self.of == target.id()
    }
}

/// Why nothing may be written there.
#[derive(Debug, Error)]
pub enum WriteRefused {
    /// The name that was typed is another one.
    #[error("{}: found `{typed}` as the name of the target to overwrite, expected `{}`", path.display(), path.display())]
    OtherName {
        /// The target.
        path: PathBuf,
        /// The name typed.
        typed: String,
    },
    /// Somebody has it open, or a device that shares bytes with it.
    #[error("{}: {}is open in process {pid} ({command}): end that first", path.display(), before(sharer))]
    OpenElsewhere {
        /// The target.
        path: PathBuf,
        /// The partition of it, or its disk; `None` where it is the target itself.
        sharer: Option<String>,
        /// A process that has it open.
        pid: u32,
        /// Its command.
        command: String,
    },
    /// A loop device is backed by it, or by a device that shares bytes with it.
    #[error("{}: {}is the file of {device}: detach that first", path.display(), before(sharer))]
    BehindLoop {
        /// The target.
        path: PathBuf,
        /// The partition of it, or its disk; `None` where it is the target itself.
        sharer: Option<String>,
        /// The loop device.
        device: String,
    },
    /// It cannot be opened for writing; a device that is mounted or held is busy.
    #[error(transparent)]
    Open(#[from] SysError),
}

/// A name before its description.
fn before(sharer: &Option<String>) -> String {
    sharer
        .as_ref()
        .map(|name| format!("{name} "))
        .unwrap_or_default()
}

/// Opens a target for writing, and grants the permission for it: if `typed` names it, it is neither mounted nor held by
/// another device, and no other process has it open, or a partition of it, or its whole disk. Nobody can mount a block
/// device as long as the target is open.
///
/// # Errors
/// When any of this does not hold.
pub fn permit_writes(path: &Path, typed: &str) -> Result<(Target, MayWrite), WriteRefused> {
    permit_writes_until(path, typed, Durability::Accepted)
}

/// The same, with writes that are done as soon as is said.
///
/// # Errors
/// As [`permit_writes`].
pub fn permit_writes_until(
    path: &Path,
    typed: &str,
    done: Durability,
) -> Result<(Target, MayWrite), WriteRefused> {
    if !names(path, typed) {
        return Err(WriteRefused::OtherName {
            path: path.to_owned(),
            typed: typed.to_owned(),
        });
    }
    let target = Target::new(IoTarget::open_to_write(path, done)?);
    let of = target.id();
    nobody_else_has(&target)?;
    Ok((target, MayWrite { of }))
}

/// Whether that is its name: as it was given, or the last part of it.
fn names(path: &Path, typed: &str) -> bool {
    let is_last = path.file_name().is_some_and(|name| name == typed);
    !typed.is_empty() && (path == Path::new(typed) || is_last)
}

fn nobody_else_has(target: &Target) -> Result<(), WriteRefused> {
    let path = target.path().to_owned();
    let asking = |errno| SysError::Failed {
        path: path.clone(),
        asked: "looking for its partitions",
        errno,
    };
    let others = Directory::root(Path::new("/"))
        .and_then(|root| sharers(&root, target.id()))
        .map_err(asking)?;
    let (mut names, mut ids) = (vec![None], vec![target.id()]);
    others.into_iter().for_each(|other| {
        names.push(Some(other.name));
        ids.push(other.id);
    });
    if let Some((index, device)) = loop_device_on_any(&ids) {
        return Err(WriteRefused::BehindLoop {
            path,
            sharer: names.swap_remove(index),
            device,
        });
    }
    match openers_of_any(&ids).into_iter().next() {
        Some((index, Opener { pid, command })) => Err(WriteRefused::OpenElsewhere {
            path,
            sharer: names.swap_remove(index),
            pid,
            command,
        }),
        None => Ok(()),
    }
}

/// The loop device whose file one of these is, with the place of that among them: the kernel has it open itself, so that no
/// process shows it.
fn loop_device_on_any(ids: &[FileId]) -> Option<(usize, String)> {
    let disks = std::fs::read_dir("/sys/block").ok()?.flatten();
    let mut loops = disks.filter_map(|disk| {
        let backing = std::fs::read_to_string(disk.path().join("loop/backing_file")).ok()?;
        let found = FileId::from_metadata(&std::fs::metadata(backing.trim_end()).ok()?);
        let index = ids.iter().position(|id| *id == found)?;
        Some((index, disk.file_name().to_string_lossy().into_owned()))
    });
    loops.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_given_or_the_last_part() {
        let path = Path::new("/dev/mapper/data");
        let given = ["/dev/mapper/data", "data"];
        assert!(given.iter().all(|typed| names(path, typed)));
        let others = ["", "dat", "Data", "mapper/data", "/dev/mapper", "yes"];
        assert!(others.iter().all(|typed| !names(path, typed)));
    }

    #[test]
    fn a_file_is_permitted_by_its_name_alone() {
        let dir = plumb_testkit::temp_dir("permission");
        let path = dir.path().join("image");
        std::fs::write(&path, [0; 8192]).expect("a file");
        let refused = permit_writes(&path, "other").expect_err("another name");
        assert!(
            matches!(refused, WriteRefused::OtherName { .. }),
            "{refused}"
        );
        let (target, may_write) = permit_writes(&path, "image").expect("its own name");
        assert!(may_write.covers(&target));
        let twin = dir.path().join("twin");
        std::fs::write(&twin, [0; 8192]).expect("a file");
        assert!(!may_write.covers(&Target::open(&twin).expect("a file")));
    }

    #[test]
    fn a_file_that_another_process_has_open_is_refused() {
        let dir = plumb_testkit::temp_dir("openers");
        let path = dir.path().join("image");
        std::fs::write(&path, [0; 8192]).expect("a file");
        let file = std::fs::File::open(&path).expect("it is there");
        let mut other = std::process::Command::new("sleep")
            .arg("60")
            .stdin(file)
            .spawn()
            .expect("sleep");
        let refused = permit_writes(&path, "image");
        other.kill().expect("it sleeps");
        let pid = other.id();
        other.wait().expect("it was killed");
        let refused = refused.expect_err("another process has it");
        let expected = format!(
            "{}: is open in process {pid} (sleep): end that first",
            path.display()
        );
        assert_eq!(refused.to_string(), expected);
        permit_writes(&path, "image").expect("nobody has it any more");
    }
}
