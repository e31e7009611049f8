//! Identities of disks: by them the history follows a disk whose name changes.
//!
//! Two paths to one LUN have one WWN. While two present disks share an identity, each has its SCSI address (`naa.5/2:0:0:0`) or else its
//! name behind it: the history would otherwise see one disk that changes its name with each reading.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The disks of the host.
pub const DISKS: &str = "/sys/block";

/// Files of a disk with an identity: WWN, UUID or serial number.
const FILES: [&str; 6] = [
    "wwid",
    "device/wwid",
    "dm/uuid",
    "md/uuid",
    "serial",
    "device/serial",
];

/// A disk that is present and has an identity.
struct PresentDisk {
    name: String,
    identity: String,
    /// Its SCSI address, or its name without one.
    path: String,
    /// Whether the kernel hides it below another disk, as it hides the paths of a multipath NVMe disk.
    is_hidden: bool,
}

/// The identities of the present disks that have one, by name.
pub fn present(disks: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(disks).into_iter().flatten().flatten();
    let disks: Vec<PresentDisk> = entries
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().replace('!', "/");
            read_disk(&entry.path(), name)
        })
        .collect();
    let mut visible: BTreeMap<&str, u32> = BTreeMap::new();
    for disk in disks.iter().filter(|disk| !disk.is_hidden) {
        *visible.entry(&disk.identity).or_default() += 1;
    }
    let identity_of = |disk: &PresentDisk| {
        let visible = visible.get(disk.identity.as_str()).copied().unwrap_or(0);
        // The disk above hidden paths keeps its identity.
        let is_shared = visible > u32::from(!disk.is_hidden);
        match is_shared {
            true => format!("{}/{}", disk.identity, disk.path),
            false => disk.identity.clone(),
        }
    };
    disks
        .iter()
        .map(|disk| (disk.name.clone(), identity_of(disk)))
        .collect()
}

/// Whether an identity is that of a disk, or of a path to it.
pub fn is_path_of(identity: &str, disk: &str) -> bool {
    let behind = identity.strip_prefix(disk);
    behind.is_some_and(|behind| behind.is_empty() || behind.starts_with('/'))
}

fn read_disk(folder: &Path, name: String) -> Option<PresentDisk> {
    let read = |file: &str| {
        let text = fs::read_to_string(folder.join(file)).ok()?;
        Some(text.trim().to_owned())
    };
    let identity = FILES
        .into_iter()
        .filter_map(read)
        .find(|text| !text.is_empty())?;
    Some(PresentDisk {
        identity,
        path: scsi_address(folder).unwrap_or_else(|| name.clone()),
        is_hidden: read("hidden").is_some_and(|text| text == "1"),
        name,
    })
}

/// Host, channel, target and LUN: the name of the folder behind `device`.
fn scsi_address(folder: &Path) -> Option<String> {
    let target = fs::read_link(folder.join("device")).ok()?;
    let address = target.file_name()?.to_str()?;
    let numbers: Vec<&str> = address.split(':').collect();
    let is_number = |text: &&str| text.parse::<u64>().is_ok();
    (numbers.len() == 4 && numbers.iter().all(is_number)).then(|| address.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn disks_with_one_identity_are_kept_apart() {
        let root = plumb_testkit::temp_dir("identities");
        let write = |file: &str, text: &str| {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().expect("a folder")).expect("room");
            fs::write(file, format!("{text}\n")).expect("room");
        };
        for (name, address, wwn) in [
            ("sda", "2:0:0:1", "naa.1"),
            ("sdb", "3:0:0:1", "naa.1"),
            ("sdc", "3:0:0:2", "naa.2"),
        ] {
            write(&format!("devices/{address}/wwid"), wwn);
            fs::create_dir_all(root.path().join("block").join(name)).expect("room");
            let device = root.path().join("block").join(name).join("device");
            symlink(format!("../../devices/{address}"), device).expect("room");
        }
        // Paths below a disk, and two disks of a guest with one serial number.
        for (name, hidden) in [("nvme0n1", "0"), ("nvme0c0n1", "1"), ("nvme0c1n1", "1")] {
            write(&format!("block/{name}/wwid"), "eui.3");
            write(&format!("block/{name}/hidden"), hidden);
        }
        write("block/vda/serial", "4");
        write("block/cciss!c0d0/serial", "4");
        write("block/loop0/size", "8");
        let found = present(&root.path().join("block"));
        let expected = [
            ("cciss/c0d0", "4/cciss/c0d0"),
            ("nvme0c0n1", "eui.3/nvme0c0n1"),
            ("nvme0c1n1", "eui.3/nvme0c1n1"),
            ("nvme0n1", "eui.3"),
            ("sda", "naa.1/2:0:0:1"),
            ("sdb", "naa.1/3:0:0:1"),
            ("sdc", "naa.2"),
            ("vda", "4/vda"),
        ];
        let expected = expected.map(|(name, identity)| (name.to_owned(), identity.to_owned()));
        assert_eq!(found, BTreeMap::from(expected));
        // With one path left it is one disk.
        fs::remove_dir_all(root.path().join("block/sdb")).expect("removed");
        let found = present(&root.path().join("block"));
        assert_eq!(found["sda"], "naa.1");
    }

    #[test]
    fn a_path_belongs_to_its_disk() {
        for (identity, is_of_disk) in [
            ("naa.1", true),
            ("naa.1/2:0:0:1", true),
            ("naa.11", false),
            ("naa", false),
        ] {
            assert_eq!(is_path_of(identity, "naa.1"), is_of_disk, "{identity}");
        }
    }
}
