//! The name of a file system, and the disks and partitions below it: `/proc/self/mountinfo` and sysfs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use plumb_capture::{FileSystem, disk_of, is_bio_based, name_of};
use plumb_stack::linux::{Mount, mounts};

/// Layers between a file system and a disk that are followed.
const DEPTH_MAX: usize = 16;

/// The mounts at the last look.
#[derive(Default)]
pub(super) struct MountsInUse {
    mounts: Vec<Mount>,
    /// Devices of each file system that somebody used or mounted.
    devices: BTreeMap<FileSystem, Vec<String>>,
}

impl MountsInUse {
    /// Looks again: mounts change.
    pub(super) fn refresh(&mut self) {
        let text = fs::read("/proc/self/mountinfo").unwrap_or_default();
        self.mounts = mounts(&String::from_utf8_lossy(&text));
        let numbers: BTreeSet<u32> = self.mounts.iter().map(number).collect();
        self.devices
            .retain(|file_system, _| file_system.is_node || numbers.contains(&file_system.dev));
        for dev in numbers {
            self.devices(FileSystem {
                dev,
                is_node: false,
            });
        }
    }

    /// The mount point of the whole, else of a part; the name of the device if it is mounted nowhere here.
    pub(super) fn name(&self, file_system: FileSystem) -> String {
        let of_it = || {
            self.mounts
                .iter()
                .filter(|mount| number(mount) == file_system.dev)
        };
        let mount = of_it()
            .find(|mount| mount.root == "/")
            .or_else(|| of_it().next());
        match mount {
            Some(mount) if !file_system.is_node => mount.at.clone(),
            _ => name_of(file_system.dev).name,
        }
    }

    pub(super) fn is_mounted(&self, file_system: FileSystem) -> bool {
        !file_system.is_node
            && self
                .mounts
                .iter()
                .any(|mount| number(mount) == file_system.dev)
    }

    /// Disks and partitions that make requests for it; none where they are not known.
    pub(super) fn devices(&mut self, file_system: FileSystem) -> Vec<String> {
        if let Some(known) = self.devices.get(&file_system) {
            return known.clone();
        }
        let mut found = BTreeSet::new();
        for device in self.directly_below(file_system) {
            collect(&device, &mut found, DEPTH_MAX);
        }
        let found: Vec<String> = found.into_iter().collect();
        self.devices.insert(file_system, found.clone());
        found
    }

    /// Whether it is on one of these disks, all or in part; all in use count if none is named.
    pub(super) fn is_known(&self, file_system: FileSystem, disks: &[String]) -> bool {
        let devices = self.devices.get(&file_system);
        disks.is_empty() || devices.is_some_and(|all| all.iter().any(|device| is_on(device, disks)))
    }

    /// The mount points of file systems with devices on these disks, each once.
    pub(super) fn on_disks(&self, disks: &[String]) -> Vec<String> {
        let known = self.devices.iter().filter(|(file_system, devices)| {
            !file_system.is_node && !devices.is_empty() && self.is_known(**file_system, disks)
        });
        known
            .map(|(file_system, _)| self.name(*file_system))
            .collect()
    }

    fn directly_below(&self, file_system: FileSystem) -> Vec<String> {
        let name = name_of(file_system.dev).name;
        if Path::new("/sys/class/block")
            .join(name.replace('/', "!"))
            .exists()
        {
            return vec![name];
        }
        let mount = self
            .mounts
            .iter()
            .find(|mount| number(mount) == file_system.dev);
        mount.map_or_else(Vec::new, of_btrfs)
    }

    /// The user of its bytes; users of a file system and of its device are not the same.
    fn user(&self, file_system: FileSystem) -> String {
        let name = self.name(file_system);
        if file_system.is_node {
            format!("those who use /dev/{name} itself")
        } else {
            name
        }
    }

    /// The reason why not all I/O of these devices are for this file system; `None` if all are.
    pub(super) fn shared(&self, file_system: FileSystem, devices: &[String]) -> Option<String> {
        let others = self
            .devices
            .iter()
            .filter(|(other, _)| **other != file_system);
        for (other, used) in others {
            if let Some(device) = devices
                .iter()
                .find(|device| used.iter().any(|used| overlap(device, used)))
            {
                return Some(format!(
                    "{device} moves bytes for {} as well",
                    self.user(*other)
                ));
            }
        }
        let held = |device: &&String| {
            fs::read_dir(Path::new("/sys/class/block").join(device).join("holders"))
                .is_ok_and(|holders| holders.count() > 1)
        };
        devices
            .iter()
            .find(held)
            .map(|device| format!("{device} moves bytes for several volumes"))
    }
}

/// Whether a disk or partition is on one of these disks; all are when none is named.
pub(super) fn is_on(device: &str, disks: &[String]) -> bool {
    let disk = disk_of(device).map(|disk| name_of(disk).name);
    disks.is_empty() || disk.is_ok_and(|disk| disks.contains(&disk))
}

fn number(mount: &Mount) -> u32 {
    mount.number.0 << 20 | mount.number.1
}

/// Whether one is the other, or a partition of it.
fn overlap(one: &str, other: &str) -> bool {
    let holds =
        |disk: &str, part: &str| Path::new("/sys/class/block").join(disk).join(part).exists();
    one == other || holds(one, other) || holds(other, one)
}

fn collect(device: &str, found: &mut BTreeSet<String>, depth: usize) {
    let Ok(disk) = disk_of(device) else { return };
    if !is_bio_based(disk) {
        found.insert(device.to_owned());
    } else if depth > 0 {
        let slaves = Path::new("/sys/class/block")
            .join(name_of(disk).name)
            .join("slaves");
        for slave in fs::read_dir(slaves).into_iter().flatten().flatten() {
            collect(&slave.file_name().to_string_lossy(), found, depth - 1);
        }
    }
}

/// All devices of the btrfs that is mounted by one of them.
fn of_btrfs(mount: &Mount) -> Vec<String> {
    let Some(source) = fs::canonicalize(&mount.source)
        .ok()
        .filter(|_| mount.kind == "btrfs")
    else {
        return Vec::new();
    };
    let Some(name) = source
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
    else {
        return Vec::new();
    };
    let names = |directory: &Path| -> Vec<String> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    };
    let all = Path::new("/sys/fs/btrfs");
    let mut lists = names(all)
        .into_iter()
        .map(|uuid| names(&all.join(uuid).join("devices")));
    lists
        .find(|list| list.contains(&name))
        .unwrap_or_else(|| vec![name])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The device of a file system that is used by its node as well: each names the other.
    #[test]
    fn a_device_is_not_shared_with_itself() {
        let [mounted, node] = [false, true].map(|is_node| FileSystem {
            dev: 7 << 20 | 999,
            is_node,
        });
        let text = "36 25 7:999 / /srv/a rw,relatime shared:1 - ext4 /dev/loop999 rw\n";
        let devices = vec!["loop999".to_owned()];
        let all = BTreeMap::from([(mounted, devices.clone()), (node, devices.clone())]);
        let known = MountsInUse {
            mounts: mounts(text),
            devices: all,
        };
        // No such device is there, so that it goes by its number.
        let reasons = [node, mounted].map(|of| known.shared(of, &devices).expect("a reason"));
        insta::assert_snapshot!(reasons.join("\n\n"));
    }
}
