//! The partitions that the kernel knows, and changes to them, one by one.
//!
//! They are added and removed by number (BLKPG): some kernels parse no labels, and would forget all of them when asked to
//! read again. Left out: writing a label.

use std::ffi::c_void;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{major, makedev, minor};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, opcode};

use crate::directory::Directory;
use crate::error::{Asking, SysError};
use crate::io_target::FileId;
use crate::ioctl::{Argument, ioctl};

const BLKPG: Opcode = opcode::none(0x12, 105);

/// Operations of <linux/blkpg.h>.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
enum Operation {
    Add = 1,
    Delete = 2,
}

/// `struct blkpg_partition`; the names are not used any more.
#[repr(C)]
struct Partition {
    start: i64,
    length: i64,
    pno: i32,
    devname: [u8; 64],
    volname: [u8; 64],
}

/// `struct blkpg_ioctl_arg`.
#[repr(C)]
struct Call {
    op: i32,
    flags: i32,
    datalen: i32,
    data: *mut c_void,
}

const _: () = assert!(size_of::<Partition>() == 152);
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Call>() == 24 && std::mem::offset_of!(Call, data) == 16);

/// A call with the partition that it is about.
struct PartitionRequest {
    call: Call,
    partition: Box<Partition>,
}

// SAFETY: the kernel reads the call and `datalen` bytes at `data`, which are set here to the boxed partition and its size;
// the box lives as long as the request, and nothing is written.
unsafe impl Argument for PartitionRequest {
    fn address(&mut self) -> *mut c_void {
        self.call.data = std::ptr::from_mut(&mut *self.partition).cast();
        self.call.datalen = size_of::<Partition>() as i32;
        std::ptr::from_mut(&mut self.call).cast()
    }
}

/// A partition as the kernel knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelPartition {
    /// From 1.
    pub number: u32,
    /// First byte on the disk.
    pub start_bytes: u64,
    /// Length in bytes.
    pub len_bytes: u64,
}

/// Longest number of sysfs.
const NUMBER_MAX: usize = 32;
/// The unit of sysfs, for any block size of the disk.
const SECTOR: u64 = 512;

/// The partitions of a disk, by its name in `/sys/class/block` below `root`; in order of their numbers.
///
/// # Errors
/// When there is no such disk.
pub fn known(root: &Directory, disk: &str) -> rustix::io::Result<Vec<KernelPartition>> {
    let dir = root.below(&format!("sys/class/block/{disk}"))?;
    let mut found: Vec<KernelPartition> = dir
        .names()?
        .iter()
        .filter_map(|name| read(&dir, name))
        .collect();
    found.sort_unstable();
    Ok(found)
}

/// A block device that shares bytes with another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharer {
    /// The kernel's name.
    pub name: String,
    /// Its identity for programs that open it.
    pub id: FileId,
}

/// The other block devices that have bytes of this one, by sysfs below `root`: the partitions of a disk, the disk of a
/// partition. None of a file.
///
/// # Errors
/// When there is no such device.
pub fn sharers(root: &Directory, id: FileId) -> rustix::io::Result<Vec<Sharer>> {
    let FileId::Device(device) = id else {
        return Ok(Vec::new());
    };
    let path = root.resolved(&format!(
        "sys/dev/block/{}:{}",
        major(device),
        minor(device)
    ))?;
    let dir = root.below(&path)?;
    let sharer = |name: &str, dir: &Directory| {
        Some(Sharer {
            name: name.to_owned(),
            id: id_of(dir)?,
        })
    };
    if number(&dir, "partition").is_none() {
        let part = |name: &String| {
            let part = dir
                .child(name)
                .ok()
                .filter(|part| number(part, "partition").is_some())?;
            sharer(name, &part)
        };
        return Ok(dir.names()?.iter().filter_map(part).collect());
    }
    let (disk, _) = path.rsplit_once('/').unwrap_or_default();
    let name = disk.rsplit('/').next().unwrap_or_default();
    Ok(sharer(name, &root.below(disk)?).into_iter().collect())
}

fn id_of(dir: &Directory) -> Option<FileId> {
    let mut buffer = [0; NUMBER_MAX];
    let text = std::str::from_utf8(dir.read("dev", &mut buffer).ok()?).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some(FileId::Device(makedev(
        major.parse().ok()?,
        minor.parse().ok()?,
    )))
}

/// `None` if it is no partition, or disappeared in the meantime.
fn read(disk: &Directory, name: &str) -> Option<KernelPartition> {
    let dir = disk.child(name).ok()?;
    Some(KernelPartition {
        number: u32::try_from(number(&dir, "partition")?).ok()?,
        start_bytes: number(&dir, "start")?.checked_mul(SECTOR)?,
        len_bytes: number(&dir, "size")?.checked_mul(SECTOR)?,
    })
}

fn number(dir: &Directory, file: &str) -> Option<u64> {
    let mut buffer = [0; NUMBER_MAX];
    let text = std::str::from_utf8(dir.read(file, &mut buffer).ok()?).ok()?;
    text.trim().parse().ok()
}

/// Adds a partition. Its node appears a moment later.
///
/// # Errors
/// When the number is taken, the range is, or the process is not permitted.
pub fn add(disk: impl AsFd, path: &Path, partition: KernelPartition) -> Result<(), SysError> {
    ask(
        disk,
        path,
        Operation::Add,
        partition,
        "adding a partition (BLKPG)",
    )
}

/// Removes a partition.
///
/// # Errors
/// [`SysError::InUse`] when it is open, mounted or held; or when the process is not permitted.
pub fn delete(disk: impl AsFd, path: &Path, number: u32) -> Result<(), SysError> {
    let partition = KernelPartition {
        number,
        start_bytes: 0,
        len_bytes: 0,
    };
    ask(
        disk,
        path,
        Operation::Delete,
        partition,
        "removing a partition (BLKPG)",
    )
}

fn ask(
    disk: impl AsFd,
    path: &Path,
    operation: Operation,
    partition: KernelPartition,
    asked: &'static str,
) -> Result<(), SysError> {
    let asking = Asking {
        path,
        asked,
        capability: "CAP_SYS_ADMIN",
    };
    let signed = |bytes: u64| i64::try_from(bytes).map_err(|_| asking.error(Errno::OVERFLOW));
    let described = Partition {
        start: signed(partition.start_bytes)?,
        length: signed(partition.len_bytes)?,
        pno: i32::try_from(partition.number).map_err(|_| asking.error(Errno::OVERFLOW))?,
        devname: [0; 64],
        volname: [0; 64],
    };
    let call = Call {
        op: operation as i32,
        flags: 0,
        datalen: 0,
        data: std::ptr::null_mut(),
    };
    let mut request = PartitionRequest {
        call,
        partition: Box::new(described),
    };
    ioctl(disk, BLKPG, &mut request)
        .map(|_| ())
        .map_err(|errno| asking.error(errno))
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_disk_and_its_partitions_share_bytes() {
        let dir = plumb_testkit::temp_dir("sharers");
        let by_number = dir.path().join("sys/dev/block");
        create_dir_all(&by_number).expect("room");
        let known = [
            ("sdb", "8:16"),
            ("sdb/sdb1", "8:17"),
            ("sdb/sdb2", "259:3"),
            ("sdc", "8:32"),
        ];
        for (path, number) in known {
            let device = dir.path().join("sys/devices/pci0/block").join(path);
            create_dir_all(device.join("queue")).expect("room");
            write(device.join("dev"), format!("{number}\n")).expect("room");
            if path.contains('/') {
                write(device.join("partition"), &path[path.len() - 1..]).expect("room");
            }
            symlink(
                format!("../../devices/pci0/block/{path}"),
                by_number.join(number),
            )
            .expect("room");
        }
        let root = Directory::root(dir.path()).expect("the root");
        let of = |major, minor| {
            let found = sharers(&root, FileId::Device(makedev(major, minor)))?;
            let mut found: Vec<_> = found
                .into_iter()
                .map(|sharer| (sharer.name, sharer.id))
                .collect();
            found.sort_by(|a, b| a.0.cmp(&b.0));
            rustix::io::Result::Ok(found)
        };
        let named =
            |name: &str, major, minor| (name.to_owned(), FileId::Device(makedev(major, minor)));
        assert_eq!(
            of(8, 16),
            Ok(vec![named("sdb1", 8, 17), named("sdb2", 259, 3)])
        );
        assert_eq!(of(8, 17), Ok(vec![named("sdb", 8, 16)]));
        assert_eq!(of(259, 3), Ok(vec![named("sdb", 8, 16)]));
        assert_eq!(of(8, 32), Ok(Vec::new()));
        assert_eq!(of(8, 33), Err(Errno::NOENT));
        assert_eq!(sharers(&root, FileId::File(8, 16)), Ok(Vec::new()));
    }
}
