//! Stripe hints of a file system: commands are made here from the numbers of an action, because a file is not trusted
//! to contain commands. A file system that is unmounted for it comes back unchanged if the hint is refused.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use plumb_geometry::SECTOR;
use plumb_model::Action;
use plumb_model::action::FileSystemKind;
use plumb_stack::linux::{Mount, mounts};
use thiserror::Error;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// Time after which a tool that goes on is named, and between two looks at it.
const LONG: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_millis(20);
const MOUNTS: &str = "/proc/self/mountinfo";
/// Of the superblock of XFS: its magic, its version, and the bit of that which says that it has hints (`xfs_format.h`).
const XFS_MAGIC: &[u8] = b"XFSB";
const XFS_VERSION_AT: usize = 100;
const XFS_HAS_HINTS: u16 = 0x0100;

/// A hint for a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tuning {
    /// One command, whether it is mounted or not.
    Tune2fs(Vec<String>),
    /// XFS takes it when it is mounted.
    Mount {
        /// The device, as the plan calls it.
        device: String,
        /// Its mount point.
        at: String,
        /// Options that are the hint.
        hint: String,
    },
}

/// A hint that was not given.
#[derive(Debug, Error)]
enum NotTuned {
    #[error("{device}: nothing was done: {why}")]
    NotBegun { device: String, why: String },
    #[error("{command}: {why}")]
    Failed { command: String, why: String },
}

impl Tuning {
    /// The hint of an action; `None` for a file system that takes none this way, or XFS that is not mounted.
    pub fn from_action(action: &Action) -> Option<Tuning> {
        let Action::TuneFileSystem {
            device,
            kind,
            mount,
            block_bytes,
            unit_bytes,
            width_bytes,
            ..
        } = action
        else {
            return None;
        };
        let device = &device.device;
        match kind {
            FileSystemKind::Ext => {
                let block = block_bytes.0;
                let stride = unit_bytes.0.checked_div(block)?;
                let width = width_bytes.0.checked_div(block)?;
                let options = format!("stride={stride},stripe_width={width}");
                let words = ["tune2fs", "-E", &options, device];
                Some(Tuning::Tune2fs(words.map(str::to_owned).to_vec()))
            }
            FileSystemKind::Xfs => {
                let (unit, width) = (unit_bytes.0 / SECTOR, width_bytes.0 / SECTOR);
                Some(Tuning::Mount {
                    device: device.clone(),
                    at: mount.clone()?,
                    hint: format!("sunit={unit},swidth={width}"),
                })
            }
            FileSystemKind::Btrfs | FileSystemKind::Ufs => None,
        }
    }

    /// Shows it, or does it.
    ///
    /// # Errors
    /// When it cannot be done, and when a command fails.
    pub fn carry_out(&self, is_wanted: bool) -> Result<Exit, Failure> {
        let mount = match self {
            Tuning::Tune2fs(command) => {
                show(command)?;
                return if is_wanted {
                    done(run(command))
                } else {
                    only_shown()
                };
            }
            Tuning::Mount { device, at, hint } => Remount::prepare(device, at, hint),
        };
        match mount {
            Err(NotTuned::NotBegun { why, .. }) if !is_wanted => {
                output::print_line(&format!("  no way: {why}"))?;
                Ok(Exit::Unknown)
            }
            Err(error) => Err(Failure::failed(&error)),
            Ok(mount) => {
                show(&mount.umount)?;
                show(&mount.with_hint)?;
                if is_wanted {
                    done(mount.carry_out())
                } else {
                    only_shown()
                }
            }
        }
    }
}

fn show(command: &[String]) -> Result<(), Failure> {
    output::print_line(&format!("  {}", shell(command)))
}

fn only_shown() -> Result<Exit, Failure> {
    output::print("nothing was done: --yes with the name of the device does it\n")?;
    Ok(Exit::Clean)
}

fn done(result: Result<(), NotTuned>) -> Result<Exit, Failure> {
    result
        .map(|()| Exit::Clean)
        .map_err(|error| Failure::failed(&error))
}

fn shell(command: &[String]) -> String {
    let line = plumb_quoting::Command::of_words(command).line();
    line.map_or_else(|why| why.to_string(), |line| line.to_string())
}

fn run(command: &[String]) -> Result<(), NotTuned> {
    let failed = |why: String| NotTuned::Failed {
        command: shell(command),
        why,
    };
    let Some((program, arguments)) = command.split_first() else {
        return Ok(());
    };
    let ended = Command::new(program)
        .args(arguments)
        .spawn()
        .and_then(|child| end_of(child, command))
        .map_err(|error| failed(error.to_string()))?;
    if ended.success() {
        Ok(())
    } else {
        Err(failed(ended.to_string()))
    }
}

/// Waits for a tool. It may be writing to the file system, so it is never killed: after a while, a line names the tool.
fn end_of(mut child: Child, command: &[String]) -> io::Result<ExitStatus> {
    let mut next = Instant::now() + LONG;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() >= next {
            eprintln!(
                "plumb: still waiting for `{}` (process {}); let it end, since it may be writing to the file system",
                shell(command),
                child.id()
            );
            next += LONG;
        }
        std::thread::sleep(AGAIN);
    }
}

/// A file system that is unmounted and mounted again with a hint.
#[derive(Debug, PartialEq, Eq)]
struct Remount {
    umount: Vec<String>,
    with_hint: Vec<String>,
    as_before: Vec<String>,
}

impl Remount {
    fn prepare(device: &str, at: &str, hint: &str) -> Result<Remount, NotTuned> {
        let not_begun = |why: String| NotTuned::NotBegun {
            device: device.to_owned(),
            why,
        };
        let cannot =
            |what: &str, error: io::Error| not_begun(format!("{what} cannot be read: {error}"));
        let table = fs::read_to_string(MOUNTS).map_err(|error| cannot(MOUNTS, error))?;
        let number = number_of(device).map_err(|error| cannot("its number", error))?;
        let mut first = [0; 512];
        let superblock = File::open(device).and_then(|file| file.read_exact_at(&mut first, 0));
        superblock.map_err(|error| cannot("its superblock", error))?;
        if !takes_hints(&first) {
            return Err(not_begun(
                "its superblock has no hints, since it was made without any, and it cannot be mounted with one then: only \
                 mkfs.xfs can give it"
                    .to_owned(),
            ));
        }
        let all = mounts(&table);
        let is_own = |mount: &&Mount| format!("{}:{}", mount.number.0, mount.number.1) == number;
        let own: Vec<&Mount> = all.iter().filter(is_own).collect();
        match own[..] {
            [mount] if mount.at == at => Ok(Remount::again(mount, device, hint)),
            [] => Err(not_begun(format!(
                "found it mounted nowhere, expected it at {at}"
            ))),
            _ => {
                let places: Vec<&str> = own.iter().map(|mount| mount.at.as_str()).collect();
                Err(not_begun(format!(
                    "found it mounted at {}, expected it at {at} alone",
                    places.join(", ")
                )))
            }
        }
    }

    /// With the options that it has: only the hint is another one.
    fn again(mount: &Mount, device: &str, hint: &str) -> Remount {
        let mut before: Vec<&str> = Vec::new();
        for option in mount
            .options
            .split(',')
            .chain(mount.super_options.split(','))
        {
            if !option.is_empty() && !before.contains(&option) {
                before.push(option);
            }
        }
        let is_hint = |option: &str| option.starts_with("sunit=") || option.starts_with("swidth=");
        let kept = before.iter().copied().filter(|option| !is_hint(option));
        let with_hint = kept.chain([hint]).collect::<Vec<_>>().join(",");
        let command = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Remount {
            umount: command(&["umount", &mount.at]),
            with_hint: command(&["mount", "-o", &with_hint, device, &mount.at]),
            as_before: command(&["mount", "-o", &before.join(","), device, &mount.at]),
        }
    }

    fn carry_out(&self) -> Result<(), NotTuned> {
        run(&self.umount)?;
        let Err(error) = run(&self.with_hint) else {
            return Ok(());
        };
        let now = match run(&self.as_before) {
            Ok(()) => "it is mounted as before".to_owned(),
            Err(_) => format!("it is not mounted now: {}", shell(&self.as_before)),
        };
        match error {
            NotTuned::Failed { command, why } => Err(NotTuned::Failed {
                command,
                why: format!("{why}; {now}"),
            }),
            other => Err(other),
        }
    }
}

/// Major and minor number of a device, as the kernel writes them.
fn number_of(device: &str) -> io::Result<String> {
    let node = fs::canonicalize(device)?;
    let name = node.file_name().unwrap_or_default();
    let number = fs::read_to_string(Path::new("/sys/class/block").join(name).join("dev"))?;
    Ok(number.trim().to_owned())
}

/// Whether XFS with that first sector can be mounted with another hint than its own: without one, it is refused.
fn takes_hints(first: &[u8; 512]) -> bool {
    let version = u16::from_be_bytes([first[XFS_VERSION_AT], first[XFS_VERSION_AT + 1]]);
    first.starts_with(XFS_MAGIC) && version & XFS_HAS_HINTS != 0
}

#[cfg(test)]
mod tests {
    use plumb_geometry::Bytes;
    use plumb_model::DeviceRef;

    use super::*;

    /// 64 KiB chunks of three members, in blocks of 4 KiB and in sectors: by hand.
    #[test]
    fn hints_are_made_of_numbers() {
        let action = |kind, mount: Option<&str>| Action::TuneFileSystem {
            device: DeviceRef::named("/dev/md0".to_owned()),
            kind,
            mount: mount.map(str::to_owned),
            block_bytes: Bytes(4096),
            unit_bytes: Bytes(64 << 10),
            width_bytes: Bytes(192 << 10),
            was_unit_bytes: None,
            was_width_bytes: None,
        };
        let made = |kind, mount| Tuning::from_action(&action(kind, mount));
        let words = ["tune2fs", "-E", "stride=16,stripe_width=48", "/dev/md0"];
        let expected = Tuning::Tune2fs(words.map(str::to_owned).to_vec());
        assert_eq!(made(FileSystemKind::Ext, None), Some(expected));
        let mount = made(FileSystemKind::Xfs, Some("/srv"));
        assert!(
            matches!(mount, Some(Tuning::Mount { at, hint, .. }) if at == "/srv" && hint == "sunit=128,swidth=384")
        );
        assert_eq!(made(FileSystemKind::Xfs, None), None);
        assert_eq!(made(FileSystemKind::Ufs, None), None);
    }

    #[test]
    fn options_stay_and_hints_are_new() {
        let line = "36 35 9:0 / /srv rw,nosuid,noatime shared:1 - xfs /dev/md0 rw,inode64,sunit=128,swidth=256,noquota";
        let mounts = mounts(line);
        let again = Remount::again(&mounts[0], "/dev/md0", "sunit=128,swidth=384");
        let commands = [&again.umount, &again.with_hint, &again.as_before];
        insta::assert_snapshot!(commands.map(|command| shell(command)).join("\n"));
    }
}
