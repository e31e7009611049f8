//! Rewrites real traces in the variants of their format that no real sample was found of.
//!
//! blktrace: from version 7 little-endian to either version in either byte order, record by record. Only the
//! header is in the host's order, and the notes that hold numbers: the payload of unplug, split and remap is
//! big-endian everywhere, and that of a passthrough request is bytes. vscsi: from version 1 to version 2.
//!
//! Written apart from Plumb's readers and from the writers here, so that each can be held against the other.

use crate::write::blkrecord::{Endian, Put, Version};
use std::io::{self, Read, Write};

/// Why a conversion stopped.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// Reading or writing failed.
    #[error("cannot convert the trace")]
    Io(#[from] io::Error),
    /// Not the format that is converted from.
    #[error(
        "byte {offset}: found {found:#x}, expected {expected:#x}; only unconverted traces are taken"
    )]
    NotTheFormat {
        /// The start of the record.
        offset: u64,
        /// Its magic or version.
        found: u32,
        /// The one converted from.
        expected: u32,
    },
    /// The last record is not whole.
    #[error("byte {offset}: record of {expected} bytes ends after {found}; cut the file there")]
    CutShort {
        /// The start of the record.
        offset: u64,
        /// Bytes there are.
        found: u64,
        /// Bytes it should have.
        expected: u64,
    },
}

const V7_LITTLE_MAGIC: u32 = 0x6561_7407;
const V7_HEADER_BYTES: usize = 48;
const NOTIFY: u32 = 1 << 26;
/// The payload begins with the 8-byte id of a control group.
const CGROUP: u32 = 1 << 8;

/// Rewrites a blktrace of version 7, little-endian. Gives the number of records.
///
/// # Errors
/// [`ConvertError`]; the part before its offset has been written.
pub fn convert_blktrace(
    mut input: impl Read,
    mut output: impl Write,
    version: Version,
    endian: Endian,
) -> Result<u64, ConvertError> {
    let (mut header, mut payload, mut out) = ([0; V7_HEADER_BYTES], Vec::new(), Vec::new());
    let (mut offset, mut records) = (0, 0);
    while read_record(&mut input, &mut header, offset)? {
        let magic = u32_at(&header, 0);
        if magic != V7_LITTLE_MAGIC {
            return Err(ConvertError::NotTheFormat {
                offset,
                found: magic,
                expected: V7_LITTLE_MAGIC,
            });
        }
        let payload_bytes = u16_at(&header, 46);
        payload.resize(usize::from(payload_bytes), 0);
        let found = read_up_to(&mut input, &mut payload)?;
        let whole = (V7_HEADER_BYTES + payload.len()) as u64;
        if found < payload.len() {
            let found = (V7_HEADER_BYTES + found) as u64;
            return Err(ConvertError::CutShort {
                offset,
                found,
                expected: whole,
            });
        }
        out.clear();
        put_header(&header, version, endian, &mut out);
        put_payload(&payload, u32_at(&header, 28), endian, &mut out);
        output.write_all(&out)?;
        offset += whole;
        records += 1;
    }
    output.flush()?;
    Ok(records)
}

/// Offsets on the left are those of version 7.
fn put_header(header: &[u8; V7_HEADER_BYTES], version: Version, endian: Endian, out: &mut Vec<u8>) {
    let mut put = Put { out, endian };
    put.u32(if version == Version::V7 {
        V7_LITTLE_MAGIC
    } else {
        V7_LITTLE_MAGIC + 1
    });
    put.u32(u32_at(header, 4));
    put.u64(u64_at(header, 8));
    put.u64(u64_at(header, 16));
    put.u32(u32_at(header, 24));
    let (action, pid) = (u32_at(header, 28), u32_at(header, 32));
    match version {
        Version::V7 => {
            put.u32(action);
            put.u32(pid);
        }
        Version::V8 => {
            put.u32(pid);
            put.u64(u64::from(action));
        }
    }
    put.u32(u32_at(header, 36));
    put.u32(u32_at(header, 40));
    put.u16(u16_at(header, 44));
    put.u16(u16_at(header, 46));
    if version == Version::V8 {
        put.out.extend_from_slice(&[0; 12]);
    }
}

fn put_payload(mut payload: &[u8], action: u32, endian: Endian, out: &mut Vec<u8>) {
    let mut put = Put { out, endian };
    if action & CGROUP != 0 && payload.len() >= 8 {
        put.u64(u64_at(payload, 0));
        payload = &payload[8..];
    }
    let is_timestamp = action & NOTIFY != 0 && action & 0xff == 1;
    if is_timestamp && payload.len() == 8 {
        put.u32(u32_at(payload, 0));
        put.u32(u32_at(payload, 4));
    } else {
        put.out.extend_from_slice(payload);
    }
}

const VSCSI_V1_BYTES: usize = 32;

/// Rewrites a vscsi trace of version 1 as version 2, with [`made_up_response_us`] for each record. Gives the
/// number of records.
///
/// # Errors
/// [`ConvertError`]; the part before its offset has been written.
pub fn convert_vscsi(mut input: impl Read, mut output: impl Write) -> Result<u64, ConvertError> {
    let mut v1 = [0; VSCSI_V1_BYTES];
    let mut records = 0;
    while read_record(&mut input, &mut v1, records * VSCSI_V1_BYTES as u64)? {
        let found = u32::from(v1[15]);
        if found != 1 {
            let offset = records * VSCSI_V1_BYTES as u64;
            return Err(ConvertError::NotTheFormat {
                offset,
                found,
                expected: 1,
            });
        }
        let mut v2 = [0; 40];
        // Command, then the version with its high byte raised; the three words move behind them.
        v2[0..3].copy_from_slice(&v1[12..15]);
        v2[3] = 2;
        v2[4..16].copy_from_slice(&v1[0..12]);
        v2[16..32].copy_from_slice(&v1[16..32]);
        v2[32..40].copy_from_slice(&made_up_response_us(records).to_le_bytes());
        output.write_all(&v2)?;
        records += 1;
    }
    output.flush()?;
    Ok(records)
}

/// Response time given to record `index`, µs: 100 to 1,098, a different one for each of 999 in a row.
#[must_use]
pub const fn made_up_response_us(index: u64) -> u64 {
    100 + index * 37 % 999
}

/// Fills `record`; false at the end of the input.
fn read_record(
    input: &mut impl Read,
    record: &mut [u8],
    offset: u64,
) -> Result<bool, ConvertError> {
    let found = read_up_to(input, record)?;
    if found != 0 && found < record.len() {
        return Err(ConvertError::CutShort {
            offset,
            found: found as u64,
            expected: record.len() as u64,
        });
    }
    Ok(found != 0)
}

/// Reads until `bytes` is full or the input ends.
fn read_up_to(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match input.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
