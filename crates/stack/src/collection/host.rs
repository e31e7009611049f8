//! Gathers the files and the output of tools that a check reads of a Linux host.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::kept::Watching;
use super::{LEVEL, Packer, collected};
use crate::builder::Builder;
use crate::devices::{self, Open};
use crate::linux::{self, Kernel, Recorder, Root};

mod targets;

/// No file of sysfs is longer than a page, and mountinfo of a busy host has some hundred KiB.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Files of a block device.
const DEVICE: [&str; 11] = [
    "alignment_offset",
    "dev",
    "discard_alignment",
    "hidden",
    "partition",
    "removable",
    "ro",
    "serial",
    "size",
    "start",
    "wwid",
];
/// Directories of a block device that are collected completely, with the directories in them.
const ALL_OF: [&str; 6] = ["queue", "loop", "dm", "md", "bcache", "integrity"];
/// Directories of links to other block devices.
const LINKS_OF: [&str; 2] = ["slaves", "holders"];
/// Files of the hardware behind a block device. Its identity tells disks of guests and paths to one disk apart from
/// others.
const HARDWARE: [&str; 5] = ["model", "vendor", "rev", "firmware_rev", "wwid"];

/// Files of the host as a whole.
const FILES: [&str; 6] = [
    "proc/self/mountinfo",
    "proc/swaps",
    "proc/mdstat",
    OSRELEASE,
    HOSTNAME,
    "sys/devices/virtual/dmi/id/product_uuid",
];
/// The host's name for itself.
pub const HOSTNAME: &str = "proc/sys/kernel/hostname";
/// The file with the version of the kernel, below the root.
pub const OSRELEASE: &str = "proc/sys/kernel/osrelease";

/// Devices of each btrfs.
const BTRFS: &str = "sys/fs/btrfs";
/// Tools, and the name of the file for their output. No tool writes. They provide the facts that a check does not read
/// itself: the data sets of ZFS.
const TOOLS: [(&str, &[&str]); 3] = [
    ("zpool-status", &["zpool", "status"]),
    ("zdb-C", &["zdb", "-C"]),
    (
        "zfs-get",
        &["zfs", "get", "-Hp", "recordsize,volblocksize,mountpoint"],
    ),
];

/// Longest time that a tool may take: one that asks a pool whose devices are gone waits for them.
const TOOL_TIME_MAX: Duration = Duration::from_secs(20);

/// The source of a collection.
pub struct Origin<'a> {
    /// The directory used as `/`.
    pub root: &'a Path,
    /// Whose ioctls are asked.
    pub kernel: &'a dyn Kernel,
    /// Opens devices.
    pub disks: &'a dyn Open,
    /// Images of guests, by their paths without links.
    pub images: &'a [String],
    /// Whether tools are asked as well: only of the host that this runs on.
    pub asks_tools: bool,
}

/// Counts of collected entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveCounts {
    /// Block devices.
    pub devices: u64,
    /// Bytes of labels and superblocks, and of the tables of images.
    pub bytes: u64,
    /// Devices and images that these are of.
    pub read: u64,
    /// Files with known extents.
    pub files: u64,
    /// NVMe namespaces that identified themselves.
    pub identified: u64,
    /// Outputs of tools.
    pub dumps: u64,
}

/// Packs everything that a check reads of a host: makes a check, and keeps its reads.
///
/// # Errors
/// When there are no block devices, an image cannot be opened, or the archive cannot be written.
pub fn collect(origin: &Origin<'_>, out: impl Write) -> io::Result<ArchiveCounts> {
    let mut frame = zstd::stream::write::Encoder::new(out, LEVEL)?;
    frame.include_checksum(true)?;
    let mut packer = Packer::new(frame)?;
    let mut gathered = ArchiveCounts {
        devices: take_files(&mut packer, origin.root)?,
        ..ArchiveCounts::default()
    };
    let (recorder, watching) = (Recorder::new(origin.kernel), Watching::new(origin.disks));
    ask(origin, &recorder, &watching)?;
    let answers = recorder.into_answers();
    (gathered.files, gathered.identified) =
        (answers.files() as u64, answers.identified().count() as u64);
    let images = origin.images.to_vec();
    (gathered.bytes, gathered.read) =
        collected::pack(&mut packer, &answers, watching.into_kept(), images)?;
    if origin.asks_tools {
        for (name, command) in TOOLS {
            if let Some(output) = output_of(command) {
                packer.file(&Path::new("dumps").join(name), &output)?;
                gathered.dumps += 1;
            }
        }
    }
    packer.tar.into_inner()?.finish()?;
    Ok(gathered)
}

/// Asks all that a check asks.
fn ask(origin: &Origin<'_>, kernel: &dyn Kernel, disks: &dyn Open) -> io::Result<()> {
    let mut builder = Builder::default();
    let root = Root::open(origin.root, kernel).map_err(io::Error::other)?;
    let host = linux::collect(&root, &mut builder).map_err(io::Error::other)?;
    devices::of_guests(origin.images, &host, &root, &mut builder, disks)?;
    devices::of_host(&mut builder, disks);
    Ok(())
}

/// Packs files; tells how many block devices there are.
fn take_files<W: Write>(packer: &mut Packer<W>, root: &Path) -> io::Result<u64> {
    let mut devices = 0;
    let class = Path::new("sys/class/block");
    for entry in fs::read_dir(root.join(class))? {
        let link = class.join(entry?.file_name());
        if let Some(device) = take_link(packer, root, &link)? {
            take_device(packer, root, &device)?;
            targets::take_origin(packer, root, &device)?;
            devices += 1;
        }
    }
    for file in FILES {
        take_file(packer, root, Path::new(file))?;
    }
    for uuid in names_in(&root.join(BTRFS)) {
        let list = Path::new(BTRFS).join(uuid).join("devices");
        for link in names_in(&root.join(&list)) {
            take_link(packer, root, &list.join(link))?;
        }
    }
    targets::take(packer, root)?;
    Ok(devices)
}

/// Packs a link; returns its target, as a path below the root.
fn take_link<W: Write>(
    packer: &mut Packer<W>,
    root: &Path,
    link: &Path,
) -> io::Result<Option<PathBuf>> {
    let Ok(target) = fs::read_link(root.join(link)) else {
        return Ok(root.join(link).is_dir().then(|| link.to_owned()));
    };
    packer.link(&Path::new("root").join(link), &target)?;
    let whole = fs::canonicalize(root.join(link)).ok();
    let above = fs::canonicalize(root)?;
    Ok(whole.and_then(|whole| whole.strip_prefix(above).map(Path::to_owned).ok()))
}

fn take_device<W: Write>(packer: &mut Packer<W>, root: &Path, device: &Path) -> io::Result<()> {
    for file in DEVICE {
        take_file(packer, root, &device.join(file))?;
    }
    for folder in ALL_OF {
        take_all(packer, root, &device.join(folder), 2)?;
    }
    for folder in LINKS_OF {
        for link in names_in(&root.join(device.join(folder))) {
            take_link(packer, root, &device.join(folder).join(link))?;
        }
    }
    if let Some(hardware) = take_link(packer, root, &device.join("device"))? {
        for file in HARDWARE {
            take_file(packer, root, &hardware.join(file))?;
        }
    }
    Ok(())
}

/// Packs the files of a directory and of those in it, down to a depth; links as links.
fn take_all<W: Write>(
    packer: &mut Packer<W>,
    root: &Path,
    folder: &Path,
    depth: u32,
) -> io::Result<()> {
    if root.join(folder).is_symlink() {
        return take_link(packer, root, folder).map(drop);
    }
    for name in names_in(&root.join(folder)) {
        let path = folder.join(name);
        match fs::symlink_metadata(root.join(&path)) {
            Ok(found) if found.is_symlink() => drop(take_link(packer, root, &path)?),
            Ok(found) if found.is_dir() && depth > 0 => take_all(packer, root, &path, depth - 1)?,
            Ok(found) if found.is_file() => take_file(packer, root, &path)?,
            _ => {}
        }
    }
    Ok(())
}

/// Names in a directory; none where there is no such directory.
fn names_in(folder: &Path) -> Vec<std::ffi::OsString> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .collect();
    names.sort();
    names
}

/// Packs a file, if it can be read: files of sysfs come and go, and some are for root alone.
fn take_file<W: Write>(packer: &mut Packer<W>, root: &Path, path: &Path) -> io::Result<()> {
    let mut bytes = Vec::new();
    let file = fs::File::open(root.join(path));
    match file.and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)) {
        Ok(_) => packer.file(&Path::new("root").join(path), &bytes),
        Err(_) => Ok(()),
    }
}

/// The output of a tool; `None` if it is missing, fails or takes too long.
fn output_of(command: &[&str]) -> Option<Vec<u8>> {
    let (tool, args) = command.split_first()?;
    let mut child = Command::new(tool)
        .args(args)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let stdout = child.stdout.take()?;
    let (printed, read) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let all = stdout.take(super::FILE_BYTES_MAX).read_to_end(&mut bytes);
        // Nobody waits any more where it took too long.
        let _ = printed.send(all.map(|_| bytes));
    });
    let until = Instant::now() + TOOL_TIME_MAX;
    let status = loop {
        match child.try_wait().ok()? {
            Some(status) => break Some(status),
            None if Instant::now() > until => break None,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let Some(status) = status else {
        // A tool that waits for a device that never answers ends with that only: its end is not waited for.
        let _ = child.kill();
        let _ = child.try_wait();
        return None;
    };
    // Another process that it has started may keep the pipe open.
    let left = until.saturating_duration_since(Instant::now());
    let bytes = read.recv_timeout(left).ok()?.ok()?;
    (status.success() && !bytes.is_empty()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use plumb_testkit::fake_sysfs::{FakeArray, FakeDisk, FakeHost};

    use super::super::Contents;
    use super::super::kept::Kept;
    use super::*;
    use crate::linux::Elsewhere;
    use crate::{GridFact, Placing, Stack};

    /// A tree of files, without a kernel or devices.
    fn origin(root: &Path) -> Origin<'_> {
        const NONE: &Kept = &Kept::NONE;
        Origin {
            root,
            kernel: &Elsewhere,
            disks: NONE,
            images: &[],
            asks_tools: false,
        }
    }

    fn stack(root: &Path) -> Stack {
        stack_of(&Root::open(root, &Elsewhere).expect("a root"))
    }

    fn stack_of(root: &Root<'_>) -> Stack {
        let mut builder = Builder::default();
        linux::collect(root, &mut builder).expect("a host");
        builder.finish()
    }

    /// The facts that a check uses.
    fn layers(stack: &Stack) -> Vec<(String, &'static str, Placing, Vec<GridFact>)> {
        let nodes = stack.nodes();
        let mut layers: Vec<_> = nodes
            .map(|(_, node)| {
                (
                    node.name.clone(),
                    node.kind.text(),
                    node.placing.clone(),
                    node.grids.clone(),
                )
            })
            .collect();
        layers.sort_by(|a, b| a.0.cmp(&b.0));
        layers
    }

    /// Another host sees exactly the same as this one.
    #[test]
    fn a_collection_represents_its_host() {
        let folder = plumb_testkit::temp_dir("host");
        let here = folder.path().join("here");
        let mut host = FakeHost::new(&here);
        for name in ["sda", "sdb"] {
            host.disk(&FakeDisk {
                alignment_offset: 3584,
                ..FakeDisk::named(name)
            });
            host.partition(name, 1, 2047, 1 << 20);
        }
        let members = [
            ("sda1", Some(0), 2048, 500_000),
            ("sdb1", Some(1), 2048, 500_000),
        ];
        let array = FakeArray {
            name: "md0",
            level: "raid0",
            layout: 0,
            chunk: 65_536,
            disks: 2,
            members: &members,
        };
        host.array(&array, 2_000_000);
        let mut bytes = Vec::new();
        let gathered = collect(&origin(&here), &mut bytes).expect("a collection");
        assert_eq!(
            gathered,
            ArchiveCounts {
                devices: 5,
                ..ArchiveCounts::default()
            }
        );
        let there = Contents::read("c.tar.zst", &bytes).expect("a whole collection");
        let its = there.root(&Elsewhere).expect("a root");
        let (mine, its) = (stack(&here), stack_of(&its));
        assert_eq!(layers(&mine), layers(&its));
        assert!(
            its.find("md0")
                .is_some_and(|id| matches!(its.node(id).placing, Placing::Chunks(_)))
        );
    }

    #[test]
    fn no_devices_is_an_error() {
        let folder = plumb_testkit::temp_dir("host");
        assert!(collect(&origin(folder.path()), Vec::new()).is_err());
    }

    #[test]
    fn tools_that_fail_or_are_missing_say_nothing() {
        assert_eq!(output_of(&["echo", "hi"]), Some(b"hi\n".to_vec()));
        for command in [&["false"][..], &["true"], &["no-such-tool-at-all"]] {
            assert_eq!(output_of(command), None, "{command:?}");
        }
    }
}
