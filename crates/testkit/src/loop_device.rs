//! A file as a loop device with its partitions, taken down again when the test ends, well or not.

use std::path::{Path, PathBuf};
use std::process::Command;

/// An attached loop device.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
}

impl LoopDevice {
    /// Attaches a file to a free device; `options` are those of losetup: `--sector-size 4096`.
    ///
    /// # Panics
    /// When losetup refuses: a test asks for `Loop` first.
    #[must_use]
    pub fn attach(file: &Path, options: &[&str]) -> LoopDevice {
        let shown = run(Command::new("losetup")
            .args(["--find", "--show"])
            .args(options)
            .arg(file));
        let device = LoopDevice {
            path: PathBuf::from(shown.trim()),
        };
        // A device that was detached while a partition of it was open has kept that.
        let _ = Command::new("partx")
            .arg("--delete")
            .arg(&device.path)
            .output();
        device
    }

    /// Tells the kernel the partitions of the label on it, since some kernels read none themselves, and returns their
    /// number. Nodes may be missing where no udev runs; sysfs has them.
    ///
    /// # Panics
    /// When partx finds no label.
    pub fn add_partitions(&self) -> usize {
        run(Command::new("partx").arg("--add").arg(&self.path));
        let name = self.name();
        let entries = std::fs::read_dir(Path::new("/sys/class/block").join(&name))
            .expect("the device in sysfs");
        entries
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&name))
            .count()
    }

    /// `/dev/loop3`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `loop3`.
    #[must_use]
    pub fn name(&self) -> String {
        self.path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // Fails where there are none, which is as good.
        let _ = Command::new("partx")
            .arg("--delete")
            .arg(&self.path)
            .output();
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

    /// Mounts a file system in memory of so many bytes.
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

/// Runs a tool and returns what it printed.
///
/// # Panics
/// When it cannot be run, or fails.
pub fn run(command: &mut Command) -> String {
    let out = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(
        out.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8_lossy(&out.stdout).into_owned()
}
