//! Numbers and names of block devices, as sysfs has them.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use plumb_geometry::SmallSort;
use rustix::fs::{major, minor};

use crate::error::CaptureError;

/// A block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Name below /dev.
    pub name: String,
    /// Length, 0 when sysfs does not say.
    pub size_bytes: u64,
    /// Logical block, 0 when sysfs does not say.
    pub logical_block_bytes: u32,
    /// The start of a partition on its disk.
    pub first_byte: u64,
    /// Whether it is a partition.
    pub is_partition: bool,
    /// Whether sysfs knows it: a device that has gone is named by its number.
    pub is_there: bool,
}

/// As the kernel packs it.
const MINOR_BITS: u32 = 20;

/// The device of a number, as far as sysfs knows it: one that has gone is named by its number.
#[must_use]
pub fn name_of(dev: u32) -> Device {
    let number = number(dev);
    let directory = directory(dev);
    let read = |name: &str| fs::read_to_string(directory.join(name)).ok();
    let number_in = |name: &str| read(name).and_then(|text| text.trim().parse::<u64>().ok());
    let event = read("uevent").unwrap_or_default();
    let name = event.lines().find_map(|line| line.strip_prefix("DEVNAME="));
    let is_partition = directory.join("partition").exists();
    let block = if is_partition {
        "../queue/logical_block_size"
    } else {
        "queue/logical_block_size"
    };
    Device {
        name: name.unwrap_or(&number).to_owned(),
        is_there: name.is_some(),
        size_bytes: number_in("size").unwrap_or(0) * 512,
        logical_block_bytes: number_in(block).unwrap_or(0) as u32,
        first_byte: number_in("start").unwrap_or(0) * 512,
        is_partition,
    }
}

/// The number of a disk by its name below /dev, or its path; that of its disk for a partition.
///
/// # Errors
/// When sysfs has no such device.
pub fn disk_of(name: &str) -> Result<u32, CaptureError> {
    let missing = || CaptureError::NoDevice(name.to_owned());
    let class = Path::new("/sys/class/block")
        .join(name.strip_prefix("/dev/").unwrap_or(name).replace('/', "!"));
    // A node may have any name: its device number counts.
    let node = fs::metadata(name)
        .ok()
        .filter(|found| found.file_type().is_block_device());
    let device = match node {
        Some(node) => Path::new("/sys/dev/block").join(format!(
            "{}:{}",
            major(node.rdev()),
            minor(node.rdev())
        )),
        None => class,
    };
    disk_at(&device).ok_or_else(missing)
}

/// The number of the disk of a device's directory.
fn disk_at(device: &Path) -> Option<u32> {
    number_in(&if device.join("partition").exists() {
        device.join("../dev")
    } else {
        device.join("dev")
    })
}

/// The number that a file holds as `MAJOR:MINOR`.
fn number_in(file: &Path) -> Option<u32> {
    number_of(fs::read_to_string(file).ok()?.trim())
}

/// The number of a device that is written as `MAJOR:MINOR`. A device that went away before anybody learned its name has this in
/// place of a name.
#[must_use]
pub fn number_of(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    Some(packed(major.parse().ok()?, minor.parse().ok()?))
}

/// A number of a device as the kernel packs it.
pub(crate) fn packed(major: u32, minor: u32) -> u32 {
    major << MINOR_BITS | minor
}

/// The number of the disk of a disk or partition; a number that sysfs does not know is treated as a disk.
pub(crate) fn disk_of_number(dev: u32) -> u32 {
    disk_at(&directory(dev)).unwrap_or(dev)
}

/// Numbers of a disk's partitions.
pub(crate) fn numbers_of_partitions(dev: u32) -> Vec<u32> {
    let entries = fs::read_dir(directory(dev))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    entries
        .filter(|path| path.join("partition").exists())
        .filter_map(|path| number_in(&path.join("dev")))
        .collect()
}

/// A disk's partitions with their numbers, in the order in which they begin.
pub(crate) fn partitions_of(dev: u32) -> Vec<(u32, Device)> {
    let numbers = numbers_of_partitions(dev).into_iter();
    let mut partitions: Vec<(u32, Device)> =
        numbers.map(|number| (number, name_of(number))).collect();
    partitions.small_sort_by_key(|(_, part)| part.first_byte);
    partitions
}

/// Whether a disk takes bios as they come and makes no requests of them: dm, md, zram, heads of NVMe paths. One that sysfs
/// does not know is taken for one that makes requests.
#[must_use]
pub fn is_bio_based(dev: u32) -> bool {
    let disk = directory(dev);
    disk.exists() && !disk.join("mq").exists()
}

/// Whether one of these disks, or of all if the list is empty, is the head of NVMe paths: its bios become requests of a
/// path.
pub(crate) fn have_heads_of_paths(devices: &[u32]) -> bool {
    let is_head = |dev: &u32| is_bio_based(*dev) && name_of(*dev).name.starts_with("nvme");
    if devices.is_empty() {
        disks().iter().any(is_head)
    } else {
        devices.iter().any(is_head)
    }
}

/// Names of the disks that a disk hands its I/O on to, through all layers, as far as sysfs tells.
#[must_use]
pub fn names_below(name: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut next: Vec<u32> = disk_of(name).into_iter().collect();
    while let Some(dev) = next.pop() {
        let slaves = fs::read_dir(directory(dev).join("slaves"))
            .into_iter()
            .flatten()
            .flatten();
        for below in slaves.filter_map(|slave| disk_of(slave.file_name().to_str()?).ok()) {
            let name = name_of(below).name;
            if !found.contains(&name) {
                found.push(name);
                next.push(below);
            }
        }
    }
    found.sort();
    found
}

/// Numbers of all disks.
pub(crate) fn disks() -> Vec<u32> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| disk_of(entry.file_name().to_str()?).ok())
        .collect()
}

fn directory(dev: u32) -> PathBuf {
    Path::new("/sys/dev/block").join(number(dev))
}

/// `MAJOR:MINOR`.
fn number(dev: u32) -> String {
    format!("{}:{}", dev >> MINOR_BITS, dev & ((1 << MINOR_BITS) - 1))
}
