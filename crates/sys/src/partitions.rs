//! Telling the kernel which partitions a disk has, one by one, and asking it to read the table itself.
//!
//! Partitions are added and removed by number (BLKPG): some kernels parse no labels, and would forget all of them when
//! asked to read again. Left out: writing a label.

use std::ffi::c_void;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::io::Errno;
use rustix::ioctl::{Opcode, opcode};

use crate::directory::Directory;
use crate::error::{Asking, SysError};
use crate::ioctl::{Argument, ioctl};

const BLKPG: Opcode = opcode::none(0x12, 105);
const BLKRRPART: Opcode = opcode::none(0x12, 95);

/// Operations of <linux/blkpg.h>.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
enum Operation {
    Add = 1,
    Delete = 2,
    Resize = 3,
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
struct Request {
    call: Call,
    partition: Box<Partition>,
}

// SAFETY: the kernel reads the call and `datalen` bytes at `data`, which are set here to the boxed partition and its size;
// the box lives as long as the request, and nothing is written.
unsafe impl Argument for Request {
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
/// sysfs counts in these, whatever the blocks of the disk are.
const SECTOR: u64 = 512;

/// The partitions of a disk, by its name in `/sys/class/block` below `root`; in order of their numbers.
///
/// # Errors
/// When there is no such disk.
pub fn known(root: &Directory, disk: &str) -> rustix::io::Result<Vec<KernelPartition>> {
    let dir = root.below(&format!("sys/class/block/{disk}"))?;
    let mut found: Vec<KernelPartition> = dir.names()?.iter().filter_map(|name| read(&dir, name)).collect();
    found.sort_unstable();
    Ok(found)
}

/// `None` for what is no partition, or went away meanwhile.
fn read(disk: &Directory, name: &str) -> Option<KernelPartition> {
    let dir = disk.child(name).ok()?;
    let number = |file: &str| {
        let mut buffer = [0; NUMBER_MAX];
        let text = std::str::from_utf8(dir.read(file, &mut buffer).ok()?).ok()?;
        text.trim().parse::<u64>().ok()
    };
    Some(KernelPartition {
        number: u32::try_from(number("partition")?).ok()?,
        start_bytes: number("start")?.checked_mul(SECTOR)?,
        len_bytes: number("size")?.checked_mul(SECTOR)?,
    })
}

/// Adds a partition. Its node appears a moment later.
///
/// # Errors
/// When the number is taken, the range is, or the process is not permitted.
pub fn add(disk: impl AsFd, path: &Path, partition: KernelPartition) -> Result<(), SysError> {
    ask(disk, path, Operation::Add, partition, "adding a partition (BLKPG)")
}

/// Removes a partition.
///
/// # Errors
/// [`SysError::InUse`] when it is open, mounted or held; or when the process is not permitted.
pub fn delete(disk: impl AsFd, path: &Path, number: u32) -> Result<(), SysError> {
    let partition = KernelPartition { number, start_bytes: 0, len_bytes: 0 };
    ask(disk, path, Operation::Delete, partition, "removing a partition (BLKPG)")
}

/// Gives a partition another length; it may be in use.
///
/// # Errors
/// When its start differs, something lies there, or the process is not permitted.
pub fn resize(disk: impl AsFd, path: &Path, partition: KernelPartition) -> Result<(), SysError> {
    ask(disk, path, Operation::Resize, partition, "resizing a partition (BLKPG)")
}

/// Lets the kernel forget all partitions and read the label by itself, where it can.
///
/// # Errors
/// [`SysError::InUse`] when a partition is; or when the process is not permitted.
pub fn read_again(disk: impl AsFd, path: &Path) -> Result<(), SysError> {
    let asking = Asking { path, asked: "reading the label again (BLKRRPART)", capability: "CAP_SYS_ADMIN" };
    ioctl(disk, BLKRRPART, &mut 0u64).map(|_| ()).map_err(|errno| asking.error(errno))
}

fn ask(
    disk: impl AsFd,
    path: &Path,
    operation: Operation,
    partition: KernelPartition,
    asked: &'static str,
) -> Result<(), SysError> {
    let asking = Asking { path, asked, capability: "CAP_SYS_ADMIN" };
    let signed = |bytes: u64| i64::try_from(bytes).map_err(|_| asking.error(Errno::OVERFLOW));
    let described = Partition {
        start: signed(partition.start_bytes)?,
        length: signed(partition.len_bytes)?,
        pno: i32::try_from(partition.number).map_err(|_| asking.error(Errno::OVERFLOW))?,
        devname: [0; 64],
        volname: [0; 64],
    };
    let call = Call { op: operation as i32, flags: 0, datalen: 0, data: std::ptr::null_mut() };
    let mut request = Request { call, partition: Box::new(described) };
    ioctl(disk, BLKPG, &mut request).map(|_| ()).map_err(|errno| asking.error(errno))
}
