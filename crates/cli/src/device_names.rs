//! Names of devices that go away while they are watched: the kernel then has only their number, `7:5`.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use plumb_capture::Reading;
use plumb_profile::{Places, Profile, ProfileSet};

/// The folder that lists devices by name.
const CLASS: &str = "/sys/class/block";

/// The folder of a device.
pub fn sysfs_folder(name: &str) -> PathBuf {
    Path::new(CLASS).join(name.replace('/', "!"))
}

/// Whether the host has a device.
pub fn is_present(name: &str) -> bool {
    sysfs_folder(name).exists()
}

/// The names of devices by their number.
#[derive(Default)]
pub struct DeviceNames {
    names: HashMap<String, String>,
}

impl DeviceNames {
    /// The devices of this moment.
    pub fn of_present() -> DeviceNames {
        let mut names = DeviceNames::default();
        names.learn();
        names
    }

    /// Adds the devices of this moment to those of before.
    pub fn learn(&mut self) {
        let entries = fs::read_dir(CLASS).into_iter().flatten().flatten();
        self.names.extend(entries.filter_map(|entry| {
            let number = fs::read_to_string(entry.path().join("dev")).ok()?;
            let name = entry.file_name().to_string_lossy().replace('!', "/");
            Some((number.trim().to_owned(), name))
        }));
    }

    /// Gives devices that went away the names that they had.
    pub fn restore(&self, reading: &mut Reading) {
        let name = |known: &str| {
            let name = self.names.get(known);
            name.cloned().unwrap_or_else(|| known.to_owned())
        };
        for process in &mut reading.processes {
            (process.device, process.disk) = (name(&process.device), name(&process.disk));
        }
        reading.misses = std::mem::take(&mut reading.misses)
            .into_iter()
            .map(|(key, misses)| (name(&key), misses))
            .collect();
        let is_gone = |profile: &Profile| self.names.contains_key(&profile.device);
        if !reading.profiles.iter().any(is_gone) {
            return;
        }
        let mut renamed = ProfileSet::default();
        for profile in reading.profiles.iter() {
            let partitions = profile
                .partitions
                .iter()
                .map(|(key, places): (&String, &Places)| (name(key), places.clone()));
            renamed.add(&Profile {
                device: name(&profile.device),
                partitions: partitions.collect(),
                ..profile.clone()
            });
        }
        reading.profiles = renamed;
    }
}
