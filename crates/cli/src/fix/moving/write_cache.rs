//! Whether the flushes of a disk are reliable, by the kernel's facts: everything that must survive a crash depends on
//! them.

use std::fs;
use std::path::Path;

/// The notes about a disk, by its name in this directory: `/sys/class/block`.
pub fn doubts(class: &Path, disk: &str) -> Vec<&'static str> {
    let class = class.join(disk);
    let mut doubts = Vec::new();
    let word = |path: &Path| {
        fs::read_to_string(path)
            .ok()
            .map(|text| text.trim().to_owned())
    };
    match word(&class.join("queue/write_cache")).as_deref() {
        None => doubts.push(
            "nothing tells whether its disk has a write cache: one that does not obey flushes can lose data when the power \
             fails",
        ),
        Some("write through") if has_own_cache(&class) => doubts.push(
            "its disk states a write cache, but queue/write_cache is set to `write through`: the kernel sends no flushes, and \
             data can be lost when the power fails; write `write back` there first",
        ),
        Some(_) => {}
    }
    let path = fs::canonicalize(&class).unwrap_or_default();
    if path
        .components()
        .any(|step| step.as_os_str().to_string_lossy().starts_with("usb"))
    {
        doubts.push(
            "its disk is attached by USB, where some bridges do not pass flushes on: data can be lost when the power fails",
        );
    }
    doubts
}

/// The fact that the driver of SCSI and SATA disks has read from the disk itself.
fn has_own_cache(class: &Path) -> bool {
    let types = fs::read_dir(class.join("device/scsi_disk"))
        .into_iter()
        .flatten()
        .flatten();
    let mut texts =
        types.filter_map(|entry| fs::read_to_string(entry.path().join("cache_type")).ok());
    texts.any(|text| text.starts_with("write back"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreliable_flushes_are_reported() {
        let dir = plumb_testkit::temp_dir("write-cache");
        type CacheCase<'a> = (
            &'a str,
            &'a str,
            Option<&'a str>,
            Option<&'a str>,
            &'a [&'a str],
        );
        let cases: [CacheCase; 6] = [
            (
                "sda",
                "pci/ata1/block",
                Some("write back"),
                Some("write back"),
                &[],
            ),
            (
                "sdb",
                "pci/ata1/block",
                Some("write through"),
                Some("write through"),
                &[],
            ),
            (
                "sdc",
                "pci/ata1/block",
                Some("write through"),
                Some("write back"),
                &["sends no flushes"],
            ),
            (
                "sdd",
                "pci/usb1/1-1/block",
                Some("write back"),
                None,
                &["USB"],
            ),
            ("sde", "pci/block", None, None, &["nothing tells"]),
            (
                "nvme0n1",
                "pci/nvme/block",
                Some("write through"),
                None,
                &[],
            ),
        ];
        let class = dir.path().join("class");
        fs::create_dir(&class).expect("room");
        for (name, place, queue, own, expected) in cases {
            let disk = dir.path().join(place).join(name);
            fs::create_dir_all(disk.join("queue")).expect("room");
            fs::create_dir_all(disk.join("device/scsi_disk/0:0:0:0")).expect("room");
            let write = |file: &str, text: Option<&str>| {
                if let Some(text) = text {
                    fs::write(disk.join(file), format!("{text}\n")).expect("room");
                }
            };
            write("queue/write_cache", queue);
            write("device/scsi_disk/0:0:0:0/cache_type", own);
            std::os::unix::fs::symlink(&disk, class.join(name)).expect("room");
            let found = doubts(&class, name);
            assert_eq!(found.len(), expected.len(), "{name}: {found:?}");
            assert!(
                found
                    .iter()
                    .zip(expected)
                    .all(|(found, words)| found.contains(words)),
                "{name}: {found:?}"
            );
        }
    }
}
