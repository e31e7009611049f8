//! The names that a trace's columns refer to by number: devices, commands, files.

use rustc_hash::FxHashMap;

/// Number of a device within one trace; an index into [`Names::devices`].
pub type DeviceId = u32;

/// Number of a command or file within one trace; 0 means unknown.
pub type NameId = u32;

/// The facts about a device beyond its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// As the source names it: `8,16`, `sda`, `hm_0`.
    pub name: String,
    /// Size in bytes; `None` when the source does not say.
    pub size_bytes: Option<u64>,
    /// Logical block in bytes; `None` when the source does not say.
    pub logical_block_bytes: Option<u32>,
    /// Partitions that the source itself revealed, as (name, first byte), by first byte.
    pub partitions: Vec<(String, u64)>,
}

/// Number of a partition: the distance of minor numbers (`8,2` of `8,0`), or the digits after the disk's name.
/// `None` where the names do not tell.
#[must_use]
pub fn partition_number(disk: &str, partition: &str) -> Option<u32> {
    if let (Some((major, first)), Some((same, minor))) =
        (disk.split_once(','), partition.split_once(','))
    {
        let (first, minor): (u32, u32) = (first.parse().ok()?, minor.parse().ok()?);
        return if major == same {
            minor.checked_sub(first)
        } else {
            None
        };
    }
    partition
        .strip_prefix(disk)?
        .trim_start_matches('p')
        .parse()
        .ok()
}

/// Dictionaries of one trace. They only grow, so an id stays valid.
#[derive(Clone, Debug, Default)]
pub struct Names {
    devices: Vec<Device>,
    device_ids: FxHashMap<String, DeviceId>,
    words: Vec<String>,
    word_ids: FxHashMap<String, NameId>,
}

impl Names {
    /// The id of a device, new or known.
    pub fn device(&mut self, name: &str) -> DeviceId {
        if let Some(&id) = self.device_ids.get(name) {
            return id;
        }
        let id = u32::try_from(self.devices.len()).unwrap_or(u32::MAX);
        self.devices.push(Device {
            name: name.to_owned(),
            ..Device::default()
        });
        self.device_ids.insert(name.to_owned(), id);
        id
    }

    /// The id of a device that is already known.
    #[must_use]
    pub fn find_device(&self, name: &str) -> Option<DeviceId> {
        self.device_ids.get(name).copied()
    }

    /// The id (1 or more) of a command or file name, new or known; an empty one is 0, unknown.
    pub fn word(&mut self, word: &str) -> NameId {
        if word.is_empty() {
            return 0;
        }
        if let Some(&id) = self.word_ids.get(word) {
            return id;
        }
        self.words.push(word.to_owned());
        let id = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
        self.word_ids.insert(word.to_owned(), id);
        id
    }

    /// The id of a name that is already known: lets a reader avoid copying its dictionaries.
    #[must_use]
    pub fn find_word(&self, word: &str) -> Option<NameId> {
        if word.is_empty() {
            Some(0)
        } else {
            self.word_ids.get(word).copied()
        }
    }

    /// The name behind an id; `None` for 0 and for ids of another trace.
    #[must_use]
    pub fn word_of(&self, id: NameId) -> Option<&str> {
        self.words
            .get((id as usize).checked_sub(1)?)
            .map(String::as_str)
    }

    /// All devices, by id.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// A device for changing its facts; `None` for ids of another trace.
    pub fn device_mut(&mut self, id: DeviceId) -> Option<&mut Device> {
        self.devices.get_mut(id as usize)
    }

    /// How many different names of commands and files there are.
    #[must_use]
    pub fn word_count(&self) -> usize {
        self.words.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_partitions() {
        assert_eq!(partition_number("8,0", "8,2"), Some(2));
        assert_eq!(partition_number("259,1", "259,2"), Some(1));
        assert_eq!(partition_number("sda", "sda12"), Some(12));
        assert_eq!(partition_number("nvme0n1", "nvme0n1p3"), Some(3));
        assert_eq!(partition_number("8,0", "253,0"), None);
        assert_eq!(partition_number("sda", "sdb1"), None);
    }
}
