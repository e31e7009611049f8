//! A file as a loop device with its partitions, taken down again when the test ends, well or not.
//!
//! Every program may open a device that it finds in `/dev`: udev and `blkid` read labels, `losetup` looks for a free one,
//! and `plumb check` of another test reads all disks. A test that counts I/O takes [`LoopDevice::attach_hidden`].

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::wait;

/// The nodes of hidden devices, in a directory for each process and device.
const HIDDEN: &str = "/dev/plumb-hidden";
/// Settings of the queue of a loop device, as the kernel makes them.
const QUEUE: [(&str, &str); 3] = [
    ("nr_requests", "128"),
    ("max_sectors_kb", "1280"),
    ("nomerges", "0"),
];
/// Time for programs that look at every new device to close it again.
const LOOKS: Duration = Duration::from_secs(60);

/// An attached loop device.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    name: String,
    /// Settings that the test changed, with their values before.
    changed: Mutex<Vec<(PathBuf, String)>>,
}

impl LoopDevice {
    /// Attaches a file to a free device; `options` are those of losetup: `--sector-size 4096`.
    ///
    /// # Panics
    /// If losetup refuses, or partitions of an earlier use of the device do not go: a test asks for `Loop` first.
    #[must_use]
    pub fn attach(file: &Path, options: &[&str]) -> LoopDevice {
        let shown = run(Command::new("losetup")
            .args(["--find", "--show"])
            .args(options)
            .arg(file));
        let path = PathBuf::from(shown.trim());
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let device = LoopDevice {
            path,
            name,
            changed: Mutex::default(),
        };
        // A device that was detached while a partition of it was open has kept that one, for as long as it is open.
        let what = format!("the partitions of an earlier use of {} go", device.name);
        wait::until(&what, LOOKS, || {
            device.partitions().is_empty() || {
                device.delete_partitions();
                device.partitions().is_empty()
            }
        });
        device.reset_queue();
        device
    }

    /// A loop device keeps the settings of its earlier use, also of a test that was killed. One that the kernel refuses stays: it may have
    /// another limit.
    fn reset_queue(&self) {
        for (name, value) in QUEUE {
            let _ = fs::write(format!("/sys/block/{}/queue/{name}", self.name), value);
        }
    }

    /// Changes a setting of the queue until the device is detached.
    ///
    /// # Panics
    /// If the kernel refuses the value.
    pub fn set_queue(&self, setting: &str, value: &str) {
        let path = PathBuf::from(format!("/sys/block/{}/queue/{setting}", self.name));
        let before = fs::read_to_string(&path).expect("a setting of the queue");
        fs::write(&path, value).expect("a setting of the queue that may be changed");
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        changed.push((path, before));
    }

    /// As [`LoopDevice::attach`], with the node moved to a directory where no program looks for devices, and after every
    /// program that has opened it meanwhile has closed it: all I/O from now on are the test's own.
    ///
    /// The kernel's name stays; programs that make a path of it find nothing. The device is attached while its node is
    /// moved, so that no other process gets it, also after a test that was killed.
    ///
    /// # Panics
    /// If losetup refuses, or another program keeps the device open.
    #[must_use]
    pub fn attach_hidden(file: &Path, options: &[&str]) -> LoopDevice {
        restore_left_behind();
        let mut device = LoopDevice::attach(file, options);
        let room = Path::new(HIDDEN).join(format!("{}-{}", std::process::id(), device.name));
        // Of a process that was killed and had the same number.
        let _ = fs::remove_dir_all(&room);
        let hidden = room.join(&device.name);
        // The directory of all of them may go between two steps.
        wait::until("the node is moved", LOOKS, || {
            fs::create_dir_all(&room).is_ok() && fs::rename(&device.path, &hidden).is_ok()
        });
        device.path = hidden;
        wait_until_closed(&device.path);
        device
    }

    fn is_hidden(&self) -> bool {
        self.path.starts_with(HIDDEN)
    }

    /// Tells the kernel the partitions of the label on it, since some kernels read none themselves, and returns their
    /// number. Nodes may be missing where no udev runs; sysfs has them.
    ///
    /// # Panics
    /// If partx finds no label.
    pub fn add_partitions(&self) -> usize {
        run(Command::new("partx").arg("--add").arg(&self.path));
        self.hide_partitions();
        self.partitions().len()
    }

    /// Moves the nodes of its partitions to its own, if that is hidden: after another program than
    /// [`LoopDevice::add_partitions`] has added them to the kernel.
    ///
    /// # Panics
    /// If another program keeps one open.
    pub fn hide_partitions(&self) {
        if !self.is_hidden() {
            return;
        }
        for name in self.partitions() {
            let hidden = self.path.with_file_name(&name);
            if fs::rename(Path::new("/dev").join(&name), &hidden).is_ok() {
                wait_until_closed(&hidden);
            }
        }
    }

    /// Names of the partitions that the kernel knows.
    fn partitions(&self) -> Vec<String> {
        let entries = fs::read_dir(Path::new("/sys/class/block").join(&self.name));
        let names = entries
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with(&self.name)).collect()
    }

    fn delete_partitions(&self) {
        // Fails without partitions, which is as good, and while one is open.
        let _ = Command::new("partx")
            .arg("--delete")
            .arg(&self.path)
            .output();
    }

    /// `/dev/loop3`; of a hidden one a path that ends like that.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `/dev/loop3p1`, as soon as its node is there.
    ///
    /// # Panics
    /// When there is no such partition.
    #[must_use]
    pub fn partition(&self, number: u32) -> PathBuf {
        let path = PathBuf::from(format!("{}p{number}", self.path.display()));
        let what = format!("{} is a block device", path.display());
        wait::until(&what, LOOKS, || {
            fs::metadata(&path).is_ok_and(|found| found.file_type().is_block_device())
        });
        path
    }

    /// `loop3`.
    #[must_use]
    pub fn name(&self) -> String {
        self.name.clone()
    }
}

/// Moves nodes back that tests hid which were killed: their devices are still attached, and can be detached then.
fn restore_left_behind() {
    for room in fs::read_dir(HIDDEN).into_iter().flatten().flatten() {
        let name = room.file_name().to_string_lossy().into_owned();
        let Some((process, device)) = name.split_once('-') else {
            continue;
        };
        if !Path::new("/proc").join(process).exists() {
            // Another test may do the same at this moment.
            let _ = fs::rename(room.path().join(device), Path::new("/dev").join(device));
            let _ = fs::remove_dir_all(room.path());
        }
    }
}

/// Waits until no process has a node open. Links tell the path of a node that was moved; nothing is asked of a file system
/// that may hang.
fn wait_until_closed(node: &Path) {
    let what = format!("other programs close {}", node.display());
    wait::until(&what, LOOKS, || !is_open(node));
}

/// Whether any process has a file open.
fn is_open(path: &Path) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut files = processes.flat_map(|process| {
        let files = fs::read_dir(process.path().join("fd"));
        files.into_iter().flatten().flatten()
    });
    files.any(|file| fs::read_link(file.path()).is_ok_and(|target| target == path))
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let changed = self.changed.get_mut();
        for (path, before) in changed
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
            .rev()
        {
            let _ = fs::write(path, before.trim());
        }
        self.delete_partitions();
        if self.is_hidden() {
            let shown = Path::new("/dev").join(&self.name);
            let room = self.path.with_file_name("");
            // Before it is free for others, because they look for it there.
            if fs::rename(&self.path, &shown).is_ok() {
                self.path = shown;
                let _ = fs::remove_dir_all(room);
                // Fails while another one is hidden.
                let _ = fs::remove_dir(HIDDEN);
            }
        }
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(&self.path)
            .output();
    }
}

/// A mounted file system, unmounted when the test ends.
#[derive(Debug)]
pub struct Mounted {
    at: PathBuf,
}

impl Mounted {
    /// Mounts a device on a directory.
    ///
    /// # Panics
    /// When mount refuses.
    #[must_use]
    pub fn mount(device: &Path, at: &Path) -> Mounted {
        Self::mount_with("defaults", device, at)
    }

    /// The same with options as in /etc/fstab: `ro`.
    ///
    /// # Panics
    /// When mount refuses.
    #[must_use]
    pub fn mount_with(options: &str, device: &Path, at: &Path) -> Mounted {
        run(Command::new("mount")
            .args(["-o", options])
            .arg(device)
            .arg(at));
        Mounted { at: at.to_owned() }
    }

    /// Mounts a file system of this size in memory.
    ///
    /// # Panics
    /// When mount refuses.
    #[must_use]
    pub fn tmpfs(bytes: u64, at: &Path) -> Mounted {
        run(Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"])
            .arg(at));
        Mounted { at: at.to_owned() }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let done = Command::new("umount")
            .arg(&self.at)
            .status()
            .is_ok_and(|status| status.success());
        if !done {
            // Out of sight at least, and gone when its last user is.
            let _ = Command::new("umount").arg("--lazy").arg(&self.at).status();
        }
    }
}

/// Runs a tool and returns its output.
///
/// # Panics
/// If it cannot be run, fails, or does not end within [`wait::PATIENCE`].
#[track_caller]
pub fn run(command: &mut Command) -> String {
    let out = wait::output_of(command);
    assert!(
        out.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_device_is_invisible_and_comes_back() {
        crate::require!(Loop, Tool("sgdisk"), Tool("partx"), Tool("dd"));
        let dir = crate::temp_dir("hidden");
        let image = dir.path().join("image");
        fs::File::create(&image)
            .and_then(|file| file.set_len(8 << 20))
            .expect("room");
        run(Command::new("sgdisk")
            .args(["-a1", "-n1:34:2047"])
            .arg(&image));
        let device = LoopDevice::attach_hidden(&image, &[]);
        assert_eq!(device.add_partitions(), 1);
        let (name, hidden) = (device.name(), device.path().to_owned());
        let shown = [name.clone(), format!("{name}p1")].map(|name| Path::new("/dev").join(name));
        assert!(shown.iter().all(|node| !node.exists()), "{shown:?}");
        let input = format!("if={}", hidden.display());
        run(Command::new("dd").args([&input, "of=/dev/null", "count=1", "status=none"]));
        assert!(!is_open(&hidden));
        let held = fs::File::open(&hidden).expect("root");
        assert!(is_open(&hidden));
        drop(held);
        drop(device);
        assert!(shown[0].exists() && !shown[1].exists(), "{shown:?}");
        assert!(!hidden.exists());
    }
}
