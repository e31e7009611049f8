//! Trees of `/sys` and `/proc` as a Linux kernel shows them, for hosts that do not exist.
//!
//! Directories, links and files are laid as the kernel's `Documentation/ABI` describes them and real hosts have them: the
//! devices below `/sys/devices`, `/sys/class/block` full of links, partitions inside the directory of their disk. Only
//! files that say something about layout are written.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A disk and its queue limits; the default is a drive of 1 TiB with 512-byte blocks on 4 KiB.
#[derive(Clone, Debug)]
pub struct FakeDisk {
    /// Kernel's name.
    pub name: String,
    /// Length in sectors of 512 bytes.
    pub sectors: u64,
    /// Logical block, bytes.
    pub logical: u32,
    /// Physical block, bytes.
    pub physical: u32,
    /// `alignment_offset`.
    pub alignment_offset: i64,
    /// `minimum_io_size`.
    pub minimum_io: u64,
    /// `optimal_io_size`.
    pub optimal_io: u64,
    /// `chunk_sectors`.
    pub chunk_sectors: u64,
    /// `discard_granularity`; discards are off at 0.
    pub discard_granularity: u64,
    /// `discard_alignment`.
    pub discard_alignment: u64,
    /// `zoned`.
    pub zoned: String,
    /// Vendor; none where empty.
    pub vendor: String,
    /// Model; none where empty.
    pub model: String,
    /// Directory below the root, where the name alone does not say it: disks that come by a fabric.
    pub place: Option<String>,
}

impl FakeDisk {
    /// A disk of this name.
    #[must_use]
    pub fn named(name: &str) -> FakeDisk {
        FakeDisk {
            name: name.to_owned(),
            sectors: 1 << 31,
            logical: 512,
            physical: 4096,
            alignment_offset: 0,
            minimum_io: 4096,
            optimal_io: 0,
            chunk_sectors: 0,
            discard_granularity: 0,
            discard_alignment: 0,
            zoned: "none".to_owned(),
            vendor: "ATA".to_owned(),
            model: "PLAIN DRIVE".to_owned(),
            place: None,
        }
    }
}

/// An array of md.
#[derive(Clone, Debug)]
pub struct FakeArray<'a> {
    /// Kernel's name.
    pub name: &'a str,
    /// `level`.
    pub level: &'a str,
    /// `layout`.
    pub layout: i64,
    /// `chunk_size`, bytes.
    pub chunk: u64,
    /// `raid_disks`.
    pub disks: u64,
    /// Members: kernel's name, slot (`None` for a spare), first sector of data, size in KiB.
    pub members: &'a [(&'a str, Option<u32>, u64, u64)],
}

/// A host under construction.
#[derive(Debug)]
pub struct FakeHost {
    root: PathBuf,
    numbers: HashMap<String, (u32, u32)>,
    places: HashMap<String, PathBuf>,
}

impl FakeHost {
    /// Begins a host in an empty directory.
    #[must_use]
    pub fn new(root: &Path) -> FakeHost {
        let host = FakeHost {
            root: root.to_owned(),
            numbers: HashMap::new(),
            places: HashMap::new(),
        };
        fs::create_dir_all(root.join("sys/class/block")).expect("a directory for the devices");
        host.write("proc/self/mountinfo", "1 1 0:2 / / rw - rootfs rootfs rw\n");
        host.write(
            "proc/swaps",
            "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
        );
        host
    }

    /// Its path.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Writes any file of the host; its directory is made.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a file in a directory")).expect("the directory");
        // A file that is written over is flushed by ext4 when it is closed, which takes longer than all the rest.
        let _ = fs::remove_file(&path);
        fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }

    /// Writes an attribute of a device.
    pub fn attribute(&self, device: &str, name: &str, text: &str) {
        let place = self.places[device].join(name);
        self.write(place.to_str().expect("a plain path"), &format!("{text}\n"));
    }

    /// `8:1` of a device.
    #[must_use]
    pub fn number(&self, device: &str) -> String {
        let (major, minor) = self.numbers[device];
        format!("{major}:{minor}")
    }

    /// A device's directory, its number, its link in the class.
    fn device(&mut self, name: &str, place: String, sectors: u64) {
        let number = (259, self.numbers.len() as u32);
        self.numbers.insert(name.to_owned(), number);
        let up = "../../";
        symlink(
            format!("{up}{}", &place["sys/".len()..]),
            self.root.join("sys/class/block").join(name),
        )
        .expect("a link in the class");
        self.places.insert(name.to_owned(), PathBuf::from(place));
        self.attribute(name, "dev", &format!("{}:{}", number.0, number.1));
        self.attribute(name, "size", &sectors.to_string());
        self.attribute(name, "ro", "0");
        self.attribute(name, "alignment_offset", "0");
        self.attribute(name, "discard_alignment", "0");
    }

    /// A disk.
    pub fn disk(&mut self, disk: &FakeDisk) {
        let name = &disk.name;
        let is_virtual = ["loop", "zram", "ram", "md", "dm-", "bcache"]
            .iter()
            .any(|it| name.starts_with(it));
        let place = if let Some(place) = &disk.place {
            place.clone()
        } else if is_virtual {
            format!("sys/devices/virtual/block/{name}")
        } else if name.starts_with("nvme") {
            format!("sys/devices/pci0000:00/nvme-{name}/{name}")
        } else {
            format!("sys/devices/pci0000:00/{name}-host/block/{name}")
        };
        let parent = if name.starts_with("nvme") {
            ".."
        } else {
            "../.."
        };
        self.device(name, place, disk.sectors);
        let place = self.root.join(&self.places[name]);
        if !is_virtual {
            symlink(parent, place.join("device")).expect("a link to the drive");
            for (file, text) in [("vendor", &disk.vendor), ("model", &disk.model)] {
                if !text.is_empty() {
                    let path = place.join(parent).join(file);
                    fs::write(path, format!("{text:<16}\n")).expect("a file of the drive");
                }
            }
        }
        self.attribute(name, "alignment_offset", &disk.alignment_offset.to_string());
        self.attribute(
            name,
            "discard_alignment",
            &disk.discard_alignment.to_string(),
        );
        let discard_max = if disk.discard_granularity > 0 {
            1u64 << 30
        } else {
            0
        };
        for (file, value) in [
            ("logical_block_size", u64::from(disk.logical)),
            ("physical_block_size", u64::from(disk.physical)),
            ("minimum_io_size", disk.minimum_io),
            ("optimal_io_size", disk.optimal_io),
            ("chunk_sectors", disk.chunk_sectors),
            ("discard_granularity", disk.discard_granularity),
            ("discard_max_bytes", discard_max),
            ("max_sectors_kb", 1280),
            ("max_hw_sectors_kb", 32767),
            ("read_ahead_kb", 128),
            ("nr_requests", 64),
            ("rotational", 1),
        ] {
            self.attribute(name, &format!("queue/{file}"), &value.to_string());
        }
        self.attribute(name, "queue/zoned", &disk.zoned);
        self.attribute(name, "queue/scheduler", "none [mq-deadline] kyber bfq ");
        self.attribute(name, "queue/write_cache", "write back");
        fs::create_dir_all(place.join("slaves")).expect("a directory");
    }

    /// A partition, in 512-byte sectors for any block of the disk.
    pub fn partition(&mut self, disk: &str, number: u32, start: u64, sectors: u64) -> String {
        let p = if disk.ends_with(|c: char| c.is_ascii_digit()) {
            "p"
        } else {
            ""
        };
        let name = format!("{disk}{p}{number}");
        let place = format!("{}/{name}", self.places[disk].display());
        self.device(&name, place, sectors);
        self.attribute(&name, "partition", &number.to_string());
        self.attribute(&name, "start", &start.to_string());
        name
    }

    /// Puts a device above others.
    pub fn slaves(&self, name: &str, slaves: &[&str]) {
        for slave in slaves {
            let link = self
                .root
                .join(&self.places[name])
                .join("slaves")
                .join(slave);
            fs::create_dir_all(link.parent().expect("a parent")).expect("a directory");
            symlink(format!("/{}", self.places[*slave].display()), link)
                .expect("a link to a member");
        }
    }

    /// A mapped device.
    pub fn mapped(&mut self, name: &str, mapped: &str, uuid: &str, sectors: u64, slaves: &[&str]) {
        self.disk(&FakeDisk {
            sectors,
            ..FakeDisk::named(name)
        });
        self.attribute(name, "dm/name", mapped);
        self.attribute(name, "dm/uuid", uuid);
        self.slaves(name, slaves);
    }

    /// An array of md; limits as the kernel stacks them: the chunk as minimum.
    pub fn array(&mut self, array: &FakeArray<'_>, sectors: u64) {
        let limits = FakeDisk {
            sectors,
            minimum_io: array.chunk.max(4096),
            ..FakeDisk::named(array.name)
        };
        self.disk(&limits);
        for (file, text) in [
            ("level", array.level.to_owned()),
            ("layout", array.layout.to_string()),
            ("chunk_size", array.chunk.to_string()),
            ("raid_disks", array.disks.to_string()),
            ("metadata_version", "1.2".to_owned()),
            ("array_state", "clean".to_owned()),
            ("reshape_position", "none".to_owned()),
        ] {
            self.attribute(array.name, &format!("md/{file}"), &text);
        }
        for (member, slot, offset, size_kb) in array.members {
            let place = format!("md/dev-{member}");
            let text = slot.map_or("none".to_owned(), |slot| slot.to_string());
            self.attribute(array.name, &format!("{place}/slot"), &text);
            self.attribute(array.name, &format!("{place}/offset"), &offset.to_string());
            self.attribute(array.name, &format!("{place}/size"), &size_kb.to_string());
            self.attribute(array.name, &format!("{place}/state"), "in_sync");
            if let Some(slot) = slot {
                let link = self
                    .root
                    .join(&self.places[array.name])
                    .join(format!("md/rd{slot}"));
                symlink(format!("dev-{member}"), link).expect("a link to a member");
            }
        }
        let members: Vec<&str> = array.members.iter().map(|member| member.0).collect();
        self.slaves(array.name, &members);
    }

    /// Links a path of the host to another, as the link is to say it.
    pub fn link(&self, path: &str, target: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a link in a directory")).expect("the directory");
        symlink(target, &path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }

    /// A backstore of LIO, `iblock_0/NAME`, with `info` as its driver prints it and the attributes that say something of
    /// layout.
    pub fn backstore(&self, name: &str, info: &str, block: u32, serial: &str) {
        let at = format!("sys/kernel/config/target/core/{name}");
        let head = format!(
            "Status: ACTIVATED  Max Queue Depth: 128  SectorSize: {block}  HwMaxSectors: 16384"
        );
        self.write(&format!("{at}/info"), &format!("{head}\n        {info}\n"));
        self.write(&format!("{at}/udev_path"), "\n");
        self.write(
            &format!("{at}/wwn/vpd_unit_serial"),
            &format!("T10 VPD Unit Serial Number: {serial}\n"),
        );
        self.write(&format!("{at}/wwn/company_id"), "0x001405\n");
        for (file, value) in [
            ("block_size", u64::from(block)),
            ("hw_block_size", 512),
            ("optimal_sectors", 16384),
            ("unmap_granularity", 8),
            ("unmap_granularity_alignment", 0),
            ("emulate_tpu", 0),
            ("emulate_write_cache", 1),
        ] {
            self.write(&format!("{at}/attrib/{file}"), &format!("{value}\n"));
        }
    }

    /// A LUN of LIO that shows a backstore: `FABRIC/WWN/GROUP`, number of the LUN, backstore.
    pub fn lun(&self, group: &str, number: u32, backstore: &str) {
        let lun = format!("sys/kernel/config/target/{group}/lun/lun_{number}");
        self.write(&format!("{lun}/alua_tg_pt_offline"), "0\n");
        let link = format!("../../../../../../target/core/{backstore}");
        self.link(&format!("{lun}/0a1b2c3d4e"), &link);
    }

    /// A namespace of nvmet, enabled, on port 1.
    pub fn namespace(&self, nqn: &str, nsid: u32, path: &str, uuid: &str) {
        let nvmet = "sys/kernel/config/nvmet";
        let at = format!("{nvmet}/subsystems/{nqn}/namespaces/{nsid}");
        for (file, text) in [
            ("enable", "1"),
            ("device_path", path),
            ("device_uuid", uuid),
            ("device_nguid", "00000000-0000-0000-0000-000000000000"),
        ] {
            self.write(&format!("{at}/{file}"), &format!("{text}\n"));
        }
        for (file, text) in [
            ("addr_trtype", "tcp"),
            ("addr_traddr", "192.0.2.1"),
            ("addr_trsvcid", "4420"),
        ] {
            self.write(&format!("{nvmet}/ports/1/{file}"), &format!("{text}\n"));
        }
        let subsystem = format!("{nvmet}/ports/1/subsystems/{nqn}");
        if !self.root.join(&subsystem).is_symlink() {
            self.link(&subsystem, &format!("../../../../nvmet/subsystems/{nqn}"));
        }
    }

    /// A loop device on a file.
    pub fn loop_device(&mut self, name: &str, file: &str, offset: u64, sectors: u64) {
        self.disk(&FakeDisk {
            sectors,
            physical: 512,
            minimum_io: 512,
            ..FakeDisk::named(name)
        });
        self.attribute(name, "loop/backing_file", file);
        self.attribute(name, "loop/offset", &offset.to_string());
        self.attribute(name, "loop/sizelimit", "0");
        self.attribute(name, "loop/dio", "0");
    }

    /// Adds a mount of a device that was described before.
    pub fn mount(&self, device: &str, at: &str, kind: &str, options: &str) {
        let number = self.number(device);
        self.mount_line(&format!(
            "40 1 {number} / {at} rw shared:1 - {kind} /dev/{device} {options}"
        ));
    }

    /// Adds a line of mountinfo unchanged.
    pub fn mount_line(&self, line: &str) {
        self.append("proc/self/mountinfo", line);
    }

    /// Adds a swap partition or file.
    pub fn swap(&self, path: &str, kind: &str) {
        self.append(
            "proc/swaps",
            &format!("{path}                              {kind}\t1048572\t\t0\t\t-2"),
        );
    }

    fn append(&self, path: &str, line: &str) {
        let text = fs::read_to_string(self.root.join(path)).expect("the table");
        self.write(path, &format!("{text}{line}\n"));
    }
}
