//! The data of a SCSI disk: READ CAPACITY(16), GET LBA STATUS and the pages of vital product data on limits (SBC-4), by
//! SG_IO.
//!
//! The kernel states some of it in sysfs, after checks of its own. Here is the word of the drive, unchecked.

use std::ffi::c_void;
use std::os::fd::AsFd;
use std::path::Path;
use std::ptr::{from_mut, null_mut};

use rustix::fs::{major, minor};
use rustix::ioctl::Opcode;

use crate::block::BlockDevice;
use crate::directory::Directory;
use crate::error::{Asking, SysError};
use crate::io_target::IoTarget;
use crate::ioctl::{Argument, ioctl};

/// <scsi/sg.h>; older than the scheme by which numbers are made up of parts.
const SG_IO: Opcode = 0x2285;
const FROM_DEVICE: i32 = -3;
/// Room for a page: the longest that is asked for has 64 bytes.
const ANSWER: usize = 255;
/// Room for states of blocks: a header, and a descriptor for each of some runs.
const STATES: usize = STATES_HEADER + 255 * STATE;
const STATES_HEADER: usize = 8;
const STATE: usize = 16;
const SENSE: usize = 32;
const TIMEOUT_MS: u32 = 5_000;

/// `struct sg_io_hdr` of <scsi/sg.h>.
#[repr(C)]
struct SgIoHeader {
    interface_id: i32,
    dxfer_direction: i32,
    cmd_len: u8,
    mx_sb_len: u8,
    iovec_count: u16,
    dxfer_len: u32,
    dxferp: *mut c_void,
    cmdp: *mut u8,
    sbp: *mut u8,
    timeout: u32,
    flags: u32,
    pack_id: i32,
    usr_ptr: *mut c_void,
    status: u8,
    masked_status: u8,
    msg_status: u8,
    sb_len_wr: u8,
    host_status: u16,
    driver_status: u16,
    resid: i32,
    duration: u32,
    info: u32,
}

#[cfg(target_pointer_width = "64")]
const _: () =
    assert!(size_of::<SgIoHeader>() == 88 && std::mem::offset_of!(SgIoHeader, status) == 64);

/// A command with the buffers that it needs.
struct Request {
    header: SgIoHeader,
    command: Box<[u8; 16]>,
    answer: Box<[u8]>,
    sense: Box<[u8; SENSE]>,
}

// SAFETY: the kernel writes inside the header, at most `dxfer_len` bytes to `dxferp` and `mx_sb_len` to `sbp`, and reads
// `cmd_len` from `cmdp`: each pointer is set here to a boxed buffer of at least that length, which lives as long as the
// request.
unsafe impl Argument for Request {
    fn address(&mut self) -> *mut c_void {
        self.header.dxferp = self.answer.as_mut_ptr().cast();
        // None is longer than some KiB.
        self.header.dxfer_len = self.answer.len() as u32;
        self.header.cmdp = self.command.as_mut_ptr();
        self.header.sbp = self.sense.as_mut_ptr();
        self.header.mx_sb_len = SENSE as u8;
        from_mut(&mut self.header).cast()
    }
}

/// The result of READ CAPACITY(16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Number of logical blocks.
    pub blocks: u64,
    /// Logical block, bytes.
    pub logical_block_bytes: u32,
    /// Logical blocks in a physical block: a power of two.
    pub logical_per_physical: u32,
    /// First logical block at the start of a physical one.
    pub lowest_aligned_block: u16,
}

/// A page of vital product data on limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// B0h: transfer lengths, granularity of unmap.
    BlockLimits,
    /// B1h: rotation rate, form, zones.
    BlockCharacteristics,
}

/// Asks for capacity and physical block.
///
/// # Errors
/// When the device speaks no SCSI, the process is not permitted, or the drive refuses.
pub fn capacity(device: &BlockDevice) -> Result<Capacity, SysError> {
    const ASKED: &str = "READ CAPACITY(16)";
    let mut command = [0; 16];
    // SERVICE ACTION IN(16), service action 10h, and how many bytes may come.
    (command[0], command[1], command[13]) = (0x9e, 0x10, 32);
    let answer = ask(device, device.path(), ASKED, (command, 16), ANSWER)?;
    decode(&answer).ok_or_else(|| {
        let asking = Asking {
            path: device.path(),
            asked: ASKED,
            capability: "",
        };
        asking.malformed(
            format!("{} bytes", answer.len()),
            "32 bytes and a block of some length",
        )
    })
}

/// Asks for a page; the bytes as they came, header included.
///
/// # Errors
/// As [`capacity`].
pub fn page(device: &BlockDevice, page: Page) -> Result<Vec<u8>, SysError> {
    let (code, asked) = match page {
        Page::BlockLimits => (0xb0, "VPD page B0h"),
        Page::BlockCharacteristics => (0xb1, "VPD page B1h"),
    };
    let mut command = [0; 16];
    // INQUIRY with EVPD.
    (command[0], command[1], command[2], command[4]) = (0x12, 1, code, ANSWER as u8);
    let answer = ask(device, device.path(), asked, (command, 6), ANSWER)?;
    if answer.get(1) != Some(&code) {
        let asking = Asking {
            path: device.path(),
            asked,
            capability: "",
        };
        return Err(asking.malformed("another page", "the page that was asked for"));
    }
    Ok(answer)
}

/// Blocks of a disk that are all in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRun {
    /// The first one.
    pub first: u64,
    /// How many.
    pub blocks: u32,
    /// Whether they may have a medium behind them: neither deallocated nor anchored.
    pub is_mapped: bool,
}

/// Asks for the state of the blocks from `first` on, counted in logical blocks from the start of the disk, even if the
/// target is a partition. Returns as many runs as the drive reports at once.
///
/// # Errors
/// As [`capacity`].
pub fn lba_status(target: &IoTarget, first: u64) -> Result<Vec<BlockRun>, SysError> {
    const ASKED: &str = "GET LBA STATUS";
    let mut command = [0; 16];
    // SERVICE ACTION IN(16), service action 12h, the block, and how many bytes may come.
    (command[0], command[1]) = (0x9e, 0x12);
    command[2..10].copy_from_slice(&first.to_be_bytes());
    command[10..14].copy_from_slice(&(STATES as u32).to_be_bytes());
    let answer = ask(target, target.path(), ASKED, (command, 16), STATES)?;
    decode_states(&answer).ok_or_else(|| {
        let asking = Asking {
            path: target.path(),
            asked: ASKED,
            capability: "",
        };
        asking.malformed(
            format!("{} bytes", answer.len()),
            "a length, and descriptors of 16 bytes",
        )
    })
}

/// The start of a device of this number on its disk, in bytes, if that is a SCSI disk with thin provisioning (LBPME):
/// the whole disk, or a partition. `None` for all others, mapped devices among them: the kernel passes a command for
/// these to a disk below, with other addresses. Reads sysfs below `root`.
#[must_use]
pub fn thin_start(root: &Directory, number: u64) -> Option<u64> {
    /// The unit of sysfs, for any block size of the disk.
    const SECTOR: u64 = 512;
    let place = format!("sys/dev/block/{}:{}", major(number), minor(number));
    let device = root.below(&place).ok()?;
    let partition = number_in(&device, "partition");
    let (disk, start) = match partition {
        None => (place, 0),
        Some(_) => (
            format!("{place}/.."),
            number_in(&device, "start")?.checked_mul(SECTOR)?,
        ),
    };
    let disks = root.below(&format!("{disk}/device/scsi_disk")).ok()?;
    let own = disks.child(disks.names().ok()?.first()?).ok()?;
    (number_in(&own, "thin_provisioning") == Some(1)).then_some(start)
}

fn number_in(directory: &Directory, name: &str) -> Option<u64> {
    let mut buffer = [0; 32];
    std::str::from_utf8(directory.read(name, &mut buffer).ok()?)
        .ok()?
        .trim()
        .parse()
        .ok()
}

fn ask(
    device: impl AsFd,
    path: &Path,
    asked: &'static str,
    (command, cmd_len): ([u8; 16], u8),
    room: usize,
) -> Result<Vec<u8>, SysError> {
    let header = SgIoHeader {
        interface_id: i32::from(b'S'),
        dxfer_direction: FROM_DEVICE,
        cmd_len,
        mx_sb_len: 0,
        iovec_count: 0,
        dxfer_len: 0,
        dxferp: null_mut(),
        cmdp: null_mut(),
        sbp: null_mut(),
        timeout: TIMEOUT_MS,
        flags: 0,
        pack_id: 0,
        usr_ptr: null_mut(),
        status: 0,
        masked_status: 0,
        msg_status: 0,
        sb_len_wr: 0,
        host_status: 0,
        driver_status: 0,
        resid: 0,
        duration: 0,
        info: 0,
    };
    let (answer, sense) = (vec![0; room].into_boxed_slice(), Box::new([0; SENSE]));
    let mut request = Request {
        header,
        command: Box::new(command),
        answer,
        sense,
    };
    let asking = Asking {
        path,
        asked,
        capability: "CAP_SYS_RAWIO",
    };
    ioctl(device, SG_IO, &mut request).map_err(|errno| asking.error(errno))?;
    let header = &request.header;
    if (header.status, header.host_status, header.driver_status) != (0, 0, 0) {
        let (path, status) = (path.to_owned(), header.status);
        return Err(SysError::RefusedScsi {
            path,
            asked,
            status,
        });
    }
    let left = usize::try_from(header.resid).unwrap_or(0).min(room);
    Ok(request.answer[..room - left].to_vec())
}

/// Big-endian fields: last block at 0, block length at 8, exponent in the low half of byte 13, lowest aligned block in the
/// low 14 bits at 14.
fn decode(answer: &[u8]) -> Option<Capacity> {
    let last = u64::from_be_bytes(*answer.first_chunk()?);
    let logical_block_bytes = u32::from_be_bytes(*answer.get(8..)?.first_chunk()?);
    let exponent = answer.get(13)? & 0xf;
    let lowest = u16::from_be_bytes(*answer.get(14..)?.first_chunk()?) & 0x3fff;
    Some(Capacity {
        blocks: last.checked_add(1)?,
        logical_block_bytes: (logical_block_bytes > 0).then_some(logical_block_bytes)?,
        logical_per_physical: 1 << exponent,
        lowest_aligned_block: lowest,
    })
}

/// Big-endian: at 0 the length of all that follows; from 8 on descriptors with the first block at 0, their number at 8 and
/// the state in the low half of byte 12. Only 1 (deallocated) and 2 (anchored) say that there is nothing.
fn decode_states(answer: &[u8]) -> Option<Vec<BlockRun>> {
    let follows = usize::try_from(u32::from_be_bytes(*answer.first_chunk()?)).ok()?;
    let end = follows.checked_add(size_of::<u32>())?.min(answer.len());
    let decoded = answer
        .get(STATES_HEADER..end)?
        .chunks_exact(STATE)
        .map(|state| {
            Some(BlockRun {
                first: u64::from_be_bytes(*state.first_chunk()?),
                blocks: u32::from_be_bytes(*state.get(8..)?.first_chunk()?),
                is_mapped: !matches!(state.get(12)? & 0xf, 1 | 2),
            })
        });
    decoded.collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::makedev;

    use super::*;

    /// A drive of 2^21 blocks of 512 bytes on 4096, the seventh of them aligned; provisioned bits set beside it.
    #[test]
    fn capacity_is_taken_apart() {
        let mut answer = [0u8; 32];
        answer[..8].copy_from_slice(&0x001f_ffffu64.to_be_bytes());
        answer[8..12].copy_from_slice(&512u32.to_be_bytes());
        (answer[13], answer[14], answer[15]) = (0x13, 0xc0, 7);
        let expected = Capacity {
            blocks: 1 << 21,
            logical_block_bytes: 512,
            logical_per_physical: 8,
            lowest_aligned_block: 7,
        };
        assert_eq!(decode(&answer), Some(expected));
        for len in 0..16 {
            assert_eq!(decode(&answer[..len]), None, "{len} bytes");
        }
        assert_eq!(decode(&[0xff; 32]), None, "more blocks than can be counted");
        assert_eq!(decode(&[0; 32]), None, "blocks of no length");
    }

    /// The bytes after the length, in the layout of the standard.
    fn states(follows: u32, states: &[(u64, u32, u8)]) -> Vec<u8> {
        let mut answer = follows.to_be_bytes().to_vec();
        answer.extend([0; 4]);
        for (first, blocks, state) in states {
            answer.extend(first.to_be_bytes());
            answer.extend(blocks.to_be_bytes());
            answer.extend([*state, 0, 0, 0]);
        }
        answer
    }

    #[test]
    fn states_are_taken_apart() {
        let run = |first, blocks, is_mapped| BlockRun {
            first,
            blocks,
            is_mapped,
        };
        // The upper half of the byte is reserved.
        let four = [
            (1 << 40, 8, 0),
            ((1 << 40) + 8, u32::MAX, 1),
            (7, 0, 0xf2),
            (9, 1, 3),
        ];
        let all = states(4 + 4 * 16, &four);
        let expected = [
            run(1 << 40, 8, true),
            run((1 << 40) + 8, u32::MAX, false),
            run(7, 0, false),
            run(9, 1, true),
        ];
        assert_eq!(decode_states(&all).as_deref(), Some(&expected[..]));
        // Cut off anywhere: whole descriptors, as many as came.
        for len in 0..all.len() {
            let found = decode_states(&all[..len]).map(|runs| runs.len());
            assert_eq!(found, len.checked_sub(8).map(|len| len / 16), "{len} bytes");
        }
        // The drive says itself how much of it counts.
        assert_eq!(
            decode_states(&states(4 + 16, &four)).as_deref(),
            Some(&expected[..1])
        );
        assert_eq!(
            decode_states(&states(4 + 31, &four)).as_deref(),
            Some(&expected[..1])
        );
        assert_eq!(decode_states(&states(4, &four)).as_deref(), Some(&[][..]));
        assert_eq!(decode_states(&states(3, &four)), None);
        assert_eq!(
            decode_states(&states(u32::MAX, &four)).map(|runs| runs.len()),
            Some(4)
        );
    }

    #[test]
    fn only_thin_scsi_disks_have_a_place() {
        let tree = plumb_testkit::temp_dir("thin");
        let sys = tree.path().join("sys");
        let disk = |name: &str, number: &str, thin: Option<&str>| {
            let own = sys.join("devices").join(name);
            fs::create_dir_all(&own).expect("a directory");
            fs::create_dir_all(sys.join("dev/block")).expect("a directory");
            symlink(
                format!("../../devices/{name}"),
                sys.join("dev/block").join(number),
            )
            .expect("a link");
            if let Some(thin) = thin {
                let scsi = own.join("scsi/scsi_disk/2:0:0:0");
                fs::create_dir_all(&scsi).expect("a directory");
                fs::write(scsi.join("thin_provisioning"), thin).expect("a file");
                symlink("scsi", own.join("device")).expect("a link");
            }
            own
        };
        disk("sda", "8:0", Some("1\n"));
        disk("sdb", "8:16", Some("0\n"));
        disk("dm-0", "253:0", None);
        for (disk, number) in [("sda", "8:1"), ("sdb", "8:17")] {
            let partition = sys.join("devices").join(disk).join(format!("{disk}1"));
            fs::create_dir_all(&partition).expect("a directory");
            fs::write(partition.join("partition"), "1\n").expect("a file");
            fs::write(partition.join("start"), "63\n").expect("a file");
            symlink(
                format!("../../devices/{disk}/{disk}1"),
                sys.join("dev/block").join(number),
            )
            .expect("a link");
        }
        let root = Directory::root(tree.path()).expect("a root");
        for (number, expected) in [
            (makedev(8, 0), Some(0)),
            (makedev(8, 1), Some(63 * 512)),
            (makedev(8, 16), None),
            (makedev(8, 17), None),
            (makedev(253, 0), None),
            (makedev(9, 9), None),
        ] {
            assert_eq!(
                thin_start(&root, number),
                expected,
                "{}:{}",
                major(number),
                minor(number)
            );
        }
    }
}
