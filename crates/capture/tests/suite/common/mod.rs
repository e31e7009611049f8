//! A disk on a loop device, and I/O on it that pass the cache.

#![allow(dead_code, reason = "each test file takes what it needs")]

mod process_one;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_capture::{BlockWatch, Misses, Options, Reading, disk_of};
use plumb_profile::Profile;
use plumb_testkit::loop_device::{LoopDevice, run};
use plumb_trace::{Layer, Op};
pub use process_one::ProcessOne;
use tempfile::TempDir;

pub const MODULUS: u64 = 1 << 20;
pub const SIZE: u64 = 64 << 20;
/// Behind an EFI label.
pub const FIRST_SECTOR: u64 = 34;

/// A loop device on a sparse file, with its keepers.
pub struct LoopDisk {
    pub device: LoopDevice,
    _room: TempDir,
}

impl LoopDisk {
    pub fn new() -> LoopDisk {
        let room = tempfile::tempdir().expect("a directory");
        let image = room.path().join("disk");
        File::create(&image)
            .and_then(|file| file.set_len(SIZE))
            .expect("room for a sparse file");
        LoopDisk {
            device: LoopDevice::attach_hidden(&image, &[]),
            _room: room,
        }
    }

    pub fn watch(&self) -> BlockWatch {
        self.watch_with(Options::default())
    }

    /// Watches it alone.
    pub fn watch_with(&self, options: Options) -> BlockWatch {
        let devices = vec![disk_of(&self.device.name()).expect("its number")];
        BlockWatch::attach(&Options { devices, ..options })
            .expect("programs that this kernel takes")
    }

    pub fn open(&self) -> Direct {
        Direct::open(self.device.path())
    }

    pub fn process_one(&self) -> ProcessOne {
        ProcessOne::watch(disk_of(&self.device.name()).expect("its number"))
    }

    pub fn set(&self, setting: &str, value: &str) {
        self.device.set_queue(setting, value);
    }

    pub fn profile<'a>(&self, reading: &'a Reading) -> &'a Profile {
        self.profile_at(Layer::Request, reading)
    }

    pub fn profile_at<'a>(&self, layer: Layer, reading: &'a Reading) -> &'a Profile {
        reading
            .profiles
            .find(&self.device.name(), layer)
            .expect("a profile of the disk")
    }

    pub fn misses(&self, reading: &Reading) -> Misses {
        reading.misses[&self.device.name()]
    }
}

/// A file that is read and written past the cache, from a buffer that begins at a page.
pub struct Direct {
    pub file: File,
    buffer: Vec<u8>,
    first: usize,
}

impl Direct {
    pub fn open(path: &Path) -> Direct {
        let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(direct)
            .open(path);
        let buffer = vec![0; (1 << 20) + 4096];
        let first = buffer.as_ptr().align_offset(4096);
        Direct {
            file: file.expect("the device"),
            buffer,
            first,
        }
    }

    pub fn io(&mut self, op: Op, start: u64, len: u64) {
        let buffer = &mut self.buffer[self.first..self.first + len as usize];
        match op {
            Op::Write => self.file.write_all_at(buffer, start).expect("a write"),
            _ => self.file.read_exact_at(buffer, start).expect("a read"),
        }
    }
}

/// (operation, residue, length) to I/O.
pub type RowCounts = BTreeMap<(u8, u64, u64), u64>;

pub fn table(profile: &Profile) -> RowCounts {
    let mut counted = RowCounts::new();
    for (key, row) in profile.places.table.iter() {
        *counted
            .entry((key.op() as u8, key.residue() * 512, key.length() * 512))
            .or_default() += row.ios;
    }
    counted
}

/// The node of the partition of a disk, in a directory of its own: no udev runs everywhere.
pub fn partition(disk: &LoopDisk) -> (String, TempDir, PathBuf) {
    let name = format!("{}p1", disk.device.name());
    let room = tempfile::tempdir().expect("a directory");
    let node = room.path().join(&name);
    let number = std::fs::read_to_string(Path::new("/sys/class/block").join(&name).join("dev"))
        .expect("its number");
    let (major, minor) = number.trim().split_once(':').expect("two numbers");
    run(Command::new("mknod").arg(&node).args(["b", major, minor]));
    (name, room, node)
}

/// A label with one partition behind it, at a sector that no tool would choose.
pub fn label(device: &Path) {
    run(Command::new("sgdisk")
        .args(["-a", "1", "-n", &format!("1:{FIRST_SECTOR}:100000")])
        .arg(device));
}
