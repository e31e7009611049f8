//! What a SCSI disk returns itself: READ CAPACITY(16) and the pages of vital product data on limits (SBC-4), by SG_IO.
//!
//! The kernel states most of it in sysfs, after checks of its own. Here is the word of the drive, unchecked.

use std::ffi::c_void;
use std::ptr::{from_mut, null_mut};

use rustix::ioctl::Opcode;

use crate::block::BlockDevice;
use crate::error::{Asking, SysError};
use crate::ioctl::{Argument, ioctl};

/// <scsi/sg.h>; older than the scheme by which numbers are made up of parts.
const SG_IO: Opcode = 0x2285;
const FROM_DEVICE: i32 = -3;
/// Room for an answer: the longest page asked for has 64 bytes.
const ANSWER: usize = 255;
const SENSE: usize = 32;
const TIMEOUT_MS: u32 = 5_000;

/// `struct sg_io_hdr` of <scsi/sg.h>.
#[repr(C)]
struct Header {
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
const _: () = assert!(size_of::<Header>() == 88 && std::mem::offset_of!(Header, status) == 64);

/// A command with the buffers that it needs.
struct Request {
    header: Header,
    command: Box<[u8; 16]>,
    answer: Box<[u8; ANSWER]>,
    sense: Box<[u8; SENSE]>,
}

// SAFETY: the kernel writes inside the header, at most `dxfer_len` bytes to `dxferp` and `mx_sb_len` to `sbp`, and reads
// `cmd_len` from `cmdp`: each pointer is set here to a boxed buffer of at least that length, which lives as long as the
// request.
unsafe impl Argument for Request {
    fn address(&mut self) -> *mut c_void {
        self.header.dxferp = self.answer.as_mut_ptr().cast();
        self.header.dxfer_len = ANSWER as u32;
        self.header.cmdp = self.command.as_mut_ptr();
        self.header.sbp = self.sense.as_mut_ptr();
        self.header.mx_sb_len = SENSE as u8;
        from_mut(&mut self.header).cast()
    }
}

/// What READ CAPACITY(16) says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Number of logical blocks.
    pub blocks: u64,
    /// Logical block, bytes.
    pub logical_block_bytes: u32,
    /// Logical blocks in a physical block: a power of two.
    pub logical_per_physical: u32,
    /// First logical block that lies at the beginning of a physical one.
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
    let answer = ask(device, ASKED, command, 16)?;
    decode(&answer).ok_or_else(|| {
        let asking = Asking { path: device.path(), asked: ASKED, capability: "" };
        asking.malformed(format!("{} bytes", answer.len()), "32 bytes and a block of some length")
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
    let answer = ask(device, asked, command, 6)?;
    if answer.get(1) != Some(&code) {
        let asking = Asking { path: device.path(), asked, capability: "" };
        return Err(asking.malformed("another page", "the page that was asked for"));
    }
    Ok(answer)
}

fn ask(
    device: &BlockDevice,
    asked: &'static str,
    command: [u8; 16],
    cmd_len: u8,
) -> Result<Vec<u8>, SysError> {
    let header = Header {
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
    let (answer, sense) = (Box::new([0; ANSWER]), Box::new([0; SENSE]));
    let mut request = Request { header, command: Box::new(command), answer, sense };
    let asking = Asking { path: device.path(), asked, capability: "CAP_SYS_RAWIO" };
    ioctl(device, SG_IO, &mut request).map_err(|errno| asking.error(errno))?;
    let header = &request.header;
    if (header.status, header.host_status, header.driver_status) != (0, 0, 0) {
        let (path, status) = (device.path().to_owned(), header.status);
        return Err(SysError::RefusedScsi { path, asked, status });
    }
    let left = usize::try_from(header.resid).unwrap_or(0).min(ANSWER);
    Ok(request.answer[..ANSWER - left].to_vec())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A drive of 2^21 blocks of 512 bytes on 4096, of which the seventh is aligned; provisioned bits set beside it.
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
}
