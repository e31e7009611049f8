//! Names of Linux's block devices, as far as its drivers fix them (`Documentation/admin-guide/devices.rst`).

use crate::builder::{Builder, device_name};
use crate::dm_table::lvm_name;
use crate::graph::NodeId;
use crate::grid::Source;
use crate::node::{Kind, Placing, keys};
use crate::obstacle::Obstacle;

/// Drivers whose disks are lettered.
const LETTERED: [&str; 4] = ["sd", "vd", "xvd", "hd"];
/// Drivers whose disks end in a number, so that a `p` parts it from that of a partition.
const NUMBERED: [&str; 8] = ["nvme", "mmcblk", "loop", "md", "nbd", "rbd", "pmem", "zd"];

/// Directories of `/dev` that are no volume groups.
const NOT_GROUPS: [&str; 8] = [
    "mapper", "md", "disk", "zvol", "block", "gpt", "label", "loop",
];

/// Notes that the host runs Linux.
pub(super) fn on_linux(builder: &mut Builder, source: &Source) {
    let host = builder.host();
    builder.fact(host, keys::SYSTEM, "linux", source);
    builder.linux.is_any = true;
}

/// The node of a device by any path below `/dev`. A mapped device has a name in `/dev/mapper`, and a volume of LVM
/// another in the directory of its group; the first dump makes the node under both.
pub(super) fn device(builder: &mut Builder, path: &str) -> NodeId {
    let name = device_name(path).into_owned();
    if let Some(mapped) = name.strip_prefix("mapper/") {
        return self::mapped(builder, mapped, false);
    }
    match name.split_once('/') {
        Some((group, volume)) if !NOT_GROUPS.contains(&group) && !volume.contains('/') => {
            let mapped = mapped_name(group, volume);
            self::mapped(builder, &mapped, true)
        }
        _ => builder.node(&name),
    }
}

/// The node of a mapped device by its name in `/dev/mapper`.
pub(super) fn mapped(builder: &mut Builder, name: &str, is_volume: bool) -> NodeId {
    let is_group =
        |volume: &String| !NOT_GROUPS.contains(&volume.split('/').next().unwrap_or_default());
    let volume = lvm_name(name).filter(is_group);
    let in_directory = format!("mapper/{name}");
    let names = [volume.as_deref(), Some(name), Some(&in_directory)];
    let known = names.iter().flatten().find_map(|name| builder.find(name));
    let node = known.unwrap_or_else(|| {
        let first = if is_volume { volume.as_deref() } else { None };
        builder.node(first.unwrap_or(name))
    });
    for name in names.into_iter().flatten() {
        builder.alias(node, name);
    }
    node
}

/// How the device mapper calls a volume of a group: hyphens are doubled, a single one parts the names.
fn mapped_name(group: &str, volume: &str) -> String {
    format!("{}-{}", group.replace('-', "--"), volume.replace('-', "--"))
}

/// The name of a partition.
pub(super) fn partition(disk: &str, number: u32) -> String {
    let part = if disk.ends_with(|c: char| c.is_ascii_digit()) {
        "p"
    } else {
        ""
    };
    format!("{disk}{part}{number}")
}

/// The disk of a partition, where names alone tell.
pub(super) fn disk_of(name: &str) -> Option<&str> {
    let disk = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if disk.len() == name.len() {
        return None;
    }
    if let Some(whole) = disk
        .strip_suffix('p')
        .filter(|whole| whole.ends_with(|c: char| c.is_ascii_digit()))
    {
        return NUMBERED
            .iter()
            .any(|driver| whole.starts_with(driver))
            .then_some(whole);
    }
    is_lettered(disk).then_some(disk)
}

fn is_lettered(name: &str) -> bool {
    let letters = LETTERED.iter().find_map(|driver| name.strip_prefix(driver));
    letters
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_lowercase()))
}

fn is_numbered(name: &str) -> bool {
    let rest = NUMBERED.iter().find_map(|driver| name.strip_prefix(driver));
    let is_numbers = |rest: &str| {
        rest.starts_with(|c: char| c.is_ascii_digit())
            && rest
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'n')
            && rest.ends_with(|c: char| c.is_ascii_digit())
    };
    rest.is_some_and(is_numbers)
}

/// The device in a file's name, `dumpe2fs-sda1.txt`: some tools do not print their device.
pub(super) fn in_file_name(file: &str) -> Option<&str> {
    let name = file.rsplit('/').next().unwrap_or(file);
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let is_device = |word: &str| is_lettered(word) || is_numbered(word) || disk_of(word).is_some();
    words.rev().find(|word| is_device(word))
}

/// The name of a device number that never belongs to another: SCSI disks and md arrays.
pub(super) fn of_number((major, minor): (u32, u32)) -> Option<String> {
    let group = match major {
        8 => 0,
        65..=71 => major - 64,
        128..=135 => major - 120,
        9 => return Some(format!("md{minor}")),
        _ => return None,
    };
    if minor > 255 {
        return None;
    }
    let disk = format!("sd{}", letters(group * 16 + minor / 16));
    Some(if minor % 16 == 0 {
        disk
    } else {
        partition(&disk, minor % 16)
    })
}

/// `a` to `z`, `aa`, `ab`, …
fn letters(mut index: u32) -> String {
    let mut letters = Vec::new();
    loop {
        letters.push(char::from(b'a' + (index % 26) as u8));
        if index < 26 {
            return letters.into_iter().rev().collect();
        }
        index = index / 26 - 1;
    }
}

/// Marks devices that were named and never described as unknown.
pub(super) fn tell_undescribed(builder: &mut Builder) {
    if !builder.linux.is_any {
        return;
    }
    let host = builder.host();
    for id in builder.ids() {
        let node = builder.get(id);
        let is_told = node.placing != Placing::Leaf || node.opaque.is_some() || node.kind.is_leaf();
        if is_told || id == host || node.kind == Kind::Path {
            continue;
        }
        let why = match disk_of(&node.name) {
            Some(disk) => Obstacle::LabelNotDumped {
                disk: disk.to_owned(),
            },
            None => Obstacle::NotDescribed,
        };
        builder.opaque(id, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_and_their_disks() {
        for (name, disk) in [
            ("sda1", Some("sda")),
            ("sdab12", Some("sdab")),
            ("nvme0n1p3", Some("nvme0n1")),
            ("md127p2", Some("md127")),
            ("mmcblk0p1", Some("mmcblk0")),
            ("vda1", Some("vda")),
            ("sda", None),
            ("nvme0n1", None),
            ("md0", None),
            ("sdA1", None),
            ("sd1", None),
            ("disk12", None),
            ("lp1", None),
            ("", None),
            ("1", None),
            ("p1", None),
        ] {
            assert_eq!(disk_of(name), disk, "{name}");
            if let Some(disk) = disk {
                let number = name[disk.len()..]
                    .trim_start_matches('p')
                    .parse()
                    .expect("a number");
                assert_eq!(partition(disk, number), name);
            }
        }
    }

    /// A volume is one node, in any order of the dumps.
    #[test]
    fn names_of_one_volume() {
        let names = ["/dev/mapper/my--vg-my--lv", "/dev/my-vg/my-lv"];
        for names in [names, [names[1], names[0]]] {
            let mut builder = Builder::default();
            let nodes = names.map(|name| device(&mut builder, name));
            assert_eq!(nodes[0], nodes[1]);
            assert_eq!(builder.find("my-vg/my-lv"), Some(nodes[0]));
            assert_eq!(mapped(&mut builder, "my--vg-my--lv", true), nodes[0]);
        }
        let mut builder = Builder::default();
        assert_ne!(
            device(&mut builder, "/dev/md/a"),
            device(&mut builder, "/dev/mapper/md-a")
        );
    }

    /// Numbers from devices.rst: 8:0 is sda, 8:17 sdb1, 65:0 sdq, 128:0 sddy, 9:127 md127.
    #[test]
    fn numbers_that_are_fixed() {
        for (number, name) in [
            ((8, 0), Some("sda")),
            ((8, 17), Some("sdb1")),
            ((8, 255), Some("sdp15")),
            ((65, 0), Some("sdq")),
            ((71, 240), Some("sddx")),
            ((128, 0), Some("sddy")),
            ((9, 127), Some("md127")),
            ((253, 0), None),
            ((259, 1), None),
            ((8, 256), None),
        ] {
            assert_eq!(of_number(number).as_deref(), name, "{number:?}");
        }
    }

    #[test]
    fn devices_in_names_of_files() {
        for (file, device) in [
            ("/tmp/out/dumpe2fs-sda1.txt", Some("sda1")),
            ("nvme1n1.idns", Some("nvme1n1")),
            ("id-ns_nvme0n1p2", Some("nvme0n1p2")),
            ("tune2fs.md127.out", Some("md127")),
            ("host-db1.txt", None),
            ("sda/dumpe2fs.txt", None),
        ] {
            assert_eq!(in_file_name(file), device, "{file}");
        }
    }
}
