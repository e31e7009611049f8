//! A disk of zram, which makes no requests of its bios; removed when the test ends, well or not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::loop_device::run;
use crate::tempdir::{TempDir, temp_dir};

/// A disk in compressed memory, with a node of its own: no udev runs everywhere.
#[derive(Debug)]
pub struct Zram {
    number: String,
    node: PathBuf,
    _room: TempDir,
}

impl Zram {
    /// A disk of this size; `None` on kernels without zram.
    ///
    /// # Panics
    /// When the kernel gives one and takes no size for it.
    #[must_use]
    pub fn new(size_bytes: u64) -> Option<Zram> {
        let number = fs::read_to_string("/sys/class/zram-control/hot_add")
            .ok()?
            .trim()
            .to_owned();
        let name = format!("zram{number}");
        let sysfs = Path::new("/sys/block").join(&name);
        fs::write(sysfs.join("disksize"), size_bytes.to_string()).expect("its size");
        let dev = fs::read_to_string(sysfs.join("dev")).expect("its number");
        let (major, minor) = dev.trim().split_once(':').expect("two numbers");
        let room = temp_dir("zram");
        let node = room.path().join(name);
        run(Command::new("mknod").arg(&node).args(["b", major, minor]));
        Some(Zram {
            number,
            node,
            _room: room,
        })
    }

    /// `zram1`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("zram{}", self.number)
    }

    /// Its node, which is not below /dev.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.node
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        // The kernel does both or says why; a test can do nothing about it.
        let _ = fs::write(Path::new("/sys/block").join(self.name()).join("reset"), "1");
        let _ = fs::write("/sys/class/zram-control/hot_remove", &self.number);
    }
}
