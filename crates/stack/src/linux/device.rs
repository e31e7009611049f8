//! One entry of `/sys/class/block`, read and not yet judged.

use plumb_geometry::{SmallSort, natural};
use plumb_sys::Directory;

use super::Root;
use super::fabric::{self, Fabric};
use super::guests::of_virtio;
use super::host::ReadCost;
use super::limits::{self, Queue};
use super::md::{self, Md};
use super::reader::SysfsReader;

/// Directory of block devices.
pub(super) const CLASS: &str = "sys/class/block";
/// The UUID of a machine, which its hypervisor gave it; for root alone.
const MACHINE: &str = "sys/devices/virtual/dmi/id/product_uuid";
/// Devices from which on a second thread pays.
const SHARE: usize = 256;
/// Threads at most: reading sysfs is short, and locks of the kernel are shared.
const THREADS_MAX: usize = 4;

/// The driver of a device, by its name. Names are fixed by the drivers; every other name is a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Mapped,
    Md,
    Loop,
    /// zram and brd.
    Memory,
    Bcache,
    Nvme,
    /// One controller's view of a shared NVMe namespace: `nvme0c1n1`.
    NvmePath,
    /// virtio and Xen.
    Virtual,
    /// Disks on another host: nbd, rbd.
    Network,
    Drbd,
    /// Optical and floppy drives.
    Removable,
    Disk,
}

impl Family {
    pub(crate) fn from_name(name: &str) -> Family {
        const PREFIXES: [(&str, Family); 14] = [
            ("dm-", Family::Mapped),
            ("md", Family::Md),
            ("loop", Family::Loop),
            ("zram", Family::Memory),
            ("ram", Family::Memory),
            ("bcache", Family::Bcache),
            ("vd", Family::Virtual),
            ("xvd", Family::Virtual),
            ("nbd", Family::Network),
            ("rbd", Family::Network),
            ("drbd", Family::Drbd),
            ("sr", Family::Removable),
            ("fd", Family::Removable),
            ("nvme", Family::Nvme),
        ];
        let found = PREFIXES
            .iter()
            .find(|(prefix, _)| name.starts_with(prefix))
            .map(|(_, family)| *family);
        match found {
            Some(Family::Nvme) if head_of_path(name).is_some() => Family::NvmePath,
            family => family.unwrap_or(Family::Disk),
        }
    }

    /// Whether it is on other block devices of this host, so that its limits are derived.
    pub(crate) fn is_stacked(self) -> bool {
        matches!(
            self,
            Family::Mapped | Family::Md | Family::Bcache | Family::Drbd
        )
    }
}

/// `nvme0n1` of `nvme0c1n1`.
pub(super) fn head_of_path(name: &str) -> Option<String> {
    let rest = name.strip_prefix("nvme")?;
    let (subsystem, rest) = rest.split_once('c')?;
    let (controller, namespace) = rest.split_once('n')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    [subsystem, controller, namespace]
        .into_iter()
        .all(digits)
        .then(|| format!("nvme{subsystem}n{namespace}"))
}

/// The devices below a device, by its driver.
#[derive(Debug, Default)]
pub(super) enum Below {
    #[default]
    Nothing,
    Partition {
        parent: String,
        number: Option<u32>,
        start_sectors: u64,
    },
    Mapped {
        name: Option<String>,
        uuid: String,
        slaves: Vec<String>,
    },
    Md(Box<Md>),
    Loop {
        file: String,
        offset_bytes: u64,
        is_direct: bool,
    },
    Bcache {
        backing: Option<String>,
        slaves: Vec<String>,
    },
    Other {
        slaves: Vec<String>,
    },
}

/// A device as its files describe it.
#[derive(Debug)]
pub(super) struct SysfsDevice {
    /// As the kernel names it, `!` for `/`.
    pub(super) name: String,
    pub(super) family: Family,
    pub(super) number: Option<(u32, u32)>,
    pub(super) size_sectors: u64,
    pub(super) is_read_only: bool,
    /// Bytes to the first aligned one; -1 where the kernel gave up.
    pub(super) alignment_offset: Option<i64>,
    /// As [`SysfsDevice::alignment_offset`], of discards.
    pub(super) discard_alignment: Option<i64>,
    pub(super) queue: Option<Queue>,
    pub(super) vendor: Option<String>,
    pub(super) model: Option<String>,
    pub(super) identity: Option<String>,
    /// Its origin, if it comes from another host.
    pub(super) fabric: Option<Fabric>,
    /// `host:channel:target:lun` of a SCSI disk.
    pub(super) address: Option<String>,
    /// The serial that the hypervisor gave a virtual disk.
    pub(super) serial: Option<String>,
    pub(super) below: Below,
}

/// All devices, by name.
pub(super) struct Read {
    pub(super) devices: Vec<SysfsDevice>,
    pub(super) notes: Vec<String>,
    pub(super) work: ReadCost,
}

/// Reads every device that has a size.
pub(super) fn read_all(root: &Root<'_>, mut names: Vec<String>) -> Read {
    names.small_sort_by(|one, other| natural(one, other));
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = threads.min(THREADS_MAX).min(names.len() / SHARE + 1);
    let share = names.len().div_ceil(threads).max(1);
    let pieces: Vec<(Vec<SysfsDevice>, SysfsReader)> = if threads == 1 {
        vec![read_some(root, &names)]
    } else {
        std::thread::scope(|scope| {
            let tasks: Vec<_> = names
                .chunks(share)
                .map(|names| scope.spawn(move || read_some(root, names)))
                .collect();
            tasks
                .into_iter()
                .filter_map(|task| task.join().ok())
                .collect()
        })
    };
    let mut read = Read {
        devices: Vec::new(),
        notes: Vec::new(),
        work: ReadCost::default(),
    };
    for (devices, reader) in pieces {
        read.devices.extend(devices);
        read.work.files += reader.files;
        read.work.directories += reader.directories;
        read.notes.extend(reader.into_notes());
    }
    read
}

fn read_some(root: &Root<'_>, names: &[String]) -> (Vec<SysfsDevice>, SysfsReader) {
    let mut reader = SysfsReader::new();
    let devices = names
        .iter()
        .filter_map(|name| read(root, &mut reader, name))
        .collect();
    (devices, reader)
}

/// `None` for a device without a medium: a loop device without a file, an empty drive.
fn read(root: &Root<'_>, reader: &mut SysfsReader, name: &str) -> Option<SysfsDevice> {
    let family = Family::from_name(name);
    if family == Family::Removable {
        return None;
    }
    let path = format!("{CLASS}/{name}");
    reader.directories += 1;
    let dir = match root.directory.below(&path) {
        Ok(dir) => dir,
        Err(why) => {
            reader.note(format!("/{path} cannot be opened ({why})"));
            return None;
        }
    };
    let size_sectors = reader.number(&dir, "size", name).unwrap_or(0);
    if size_sectors == 0 {
        return None;
    }
    let mut device = SysfsDevice {
        name: name.to_owned(),
        family,
        number: reader
            .text(&dir, "dev")
            .and_then(crate::dm_table::number_of),
        size_sectors,
        is_read_only: reader.text(&dir, "ro") == Some("1"),
        alignment_offset: reader.number(&dir, "alignment_offset", name),
        discard_alignment: None,
        queue: None,
        vendor: None,
        model: None,
        identity: None,
        fabric: None,
        address: None,
        serial: None,
        below: Below::Nothing,
    };
    if let Some(number) = reader
        .text(&dir, "partition")
        .map(|number| number.parse().ok())
    {
        let parent = parent_of(root, name);
        let start_sectors = reader.number(&dir, "start", name)?;
        device.below = Below::Partition {
            parent,
            number,
            start_sectors,
        };
        return Some(device);
    }
    device.discard_alignment = reader.number(&dir, "discard_alignment", name);
    device.queue = reader
        .child(&dir, "queue")
        .map(|queue| limits::read(reader, &queue, name));
    device.below = below(reader, &dir, &device);
    if matches!(family, Family::Disk | Family::Nvme | Family::NvmePath) {
        describe(root, reader, &dir, &path, &mut device);
    }
    if family == Family::Virtual {
        device.serial = reader.word(&dir, "serial");
        let machine = device
            .serial
            .as_ref()
            .and_then(|_| root.directory.read_below(MACHINE, 64).ok());
        let machine = machine.map(|uuid| String::from_utf8_lossy(&uuid).into_owned());
        device.identity = machine
            .zip(device.serial.as_ref())
            .map(|(uuid, serial)| of_virtio(&uuid, serial));
    }
    Some(device)
}

/// A partition's directory is in that of its disk: `…/block/sda/sda1`. If the tree has no links, its name decides.
fn parent_of(root: &Root<'_>, name: &str) -> String {
    let link = root
        .directory
        .link(&format!("{CLASS}/{name}"))
        .unwrap_or_default();
    if let Some(parent) = link
        .rsplit('/')
        .nth(1)
        .filter(|parent| name.starts_with(parent))
    {
        return parent.to_owned();
    }
    let disk = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match disk.strip_suffix('p') {
        Some(whole) if whole.ends_with(|c: char| c.is_ascii_digit()) => whole.to_owned(),
        _ => disk.to_owned(),
    }
}

fn below(reader: &mut SysfsReader, dir: &Directory, device: &SysfsDevice) -> Below {
    let name = &device.name;
    match device.family {
        Family::Mapped => {
            let mapped = reader.child(dir, "dm");
            let mut word = |name| mapped.as_ref().and_then(|mapped| reader.word(mapped, name));
            let (name, uuid) = (word("name"), word("uuid").unwrap_or_default());
            Below::Mapped {
                name,
                uuid,
                slaves: reader.names(dir, "slaves"),
            }
        }
        Family::Md => match reader.child(dir, "md") {
            Some(array) => Below::Md(Box::new(md::read(reader, &array, dir, name))),
            None => Below::Other {
                slaves: reader.names(dir, "slaves"),
            },
        },
        Family::Loop => {
            let Some(attached) = reader.child(dir, "loop") else {
                return Below::Nothing;
            };
            let Some(file) = reader.word(&attached, "backing_file") else {
                return Below::Nothing;
            };
            let offset_bytes = reader.number(&attached, "offset", name).unwrap_or(0);
            Below::Loop {
                file,
                offset_bytes,
                is_direct: reader.text(&attached, "dio") == Some("1"),
            }
        }
        Family::Bcache => {
            let link = dir.link("bcache").unwrap_or_default();
            let backing = link.rsplit('/').nth(1).map(str::to_owned);
            Below::Bcache {
                backing,
                slaves: reader.names(dir, "slaves"),
            }
        }
        // SCSI disks are many, and have nothing below.
        Family::Disk if name.starts_with("sd") => Below::Nothing,
        Family::Disk | Family::Drbd => Below::Other {
            slaves: reader.names(dir, "slaves"),
        },
        _ => Below::Nothing,
    }
}

/// Model and identity of a drive, in the directory of its transport, and its origin.
fn describe(
    root: &Root<'_>,
    reader: &mut SysfsReader,
    dir: &Directory,
    path: &str,
    device: &mut SysfsDevice,
) {
    reader.directories += 1;
    let Ok(transport) = root.directory.below(&format!("{path}/device")) else {
        return;
    };
    device.model = reader.word(&transport, "model");
    if device.family == Family::Disk {
        device.vendor = reader.word(&transport, "vendor");
        device.identity = reader.word(&transport, "wwid");
    } else {
        device.identity = reader.word(dir, "wwid");
    }
    let link = root
        .directory
        .link(&format!("{CLASS}/{}", device.name))
        .unwrap_or_default();
    device.address = fabric::address_of(&link).map(str::to_owned);
    device.fabric = fabric::read(root, reader, &link, (dir, &transport));
}
