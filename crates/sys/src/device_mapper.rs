//! Tables of mapped devices, by the ioctls of `/dev/mapper/control` (<linux/dm-ioctl.h>, version 4.0 of the interface).
//!
//! A table of dm-crypt or dm-integrity may hold a key. It is cut out before the text leaves this module, and the kernel
//! is asked to wipe its copy. Left out: everything that changes a device. Opening the control node may make the kernel
//! load the driver: callers look for `dm-*` devices first.

use std::ffi::c_void;
use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, opcode};

use crate::error::{Asking, SysError};
use crate::ioctl::{Argument, ioctl};

/// The driver's node.
pub const CONTROL: &str = "/dev/mapper/control";

/// Length of `struct dm_ioctl`.
const HEADER: usize = 312;
/// Length of `struct dm_target_spec`.
const SPEC: usize = 40;
/// First buffer, and the largest: a table of a hundred thousand segments.
const BUFFER_MIN: usize = 16 << 10;
const BUFFER_MAX: usize = 16 << 20;

const TABLE_STATUS: Opcode = opcode::read_write::<[u8; HEADER]>(0xfd, 12);

/// Table lines instead of the devices' state.
const STATUS_TABLE: u32 = 1 << 4;
const ACTIVE_PRESENT: u32 = 1 << 5;
const BUFFER_FULL: u32 = 1 << 8;
/// Do not wait for I/O to be flushed.
const NO_FLUSH: u32 = 1 << 11;
/// Wipe buffers in the kernel after use.
const SECURE_DATA: u32 = 1 << 15;

/// The driver, opened.
#[derive(Debug)]
pub struct DeviceMapper {
    control: File,
}

/// A mapped device with its live table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapped {
    /// Its name in `/dev/mapper`.
    pub name: String,
    /// Prefixed by its owner: `LVM-`, `CRYPT-LUKS2-`, `mpath-`; empty where it has none.
    pub uuid: String,
    /// The table; empty where none is loaded.
    pub targets: Vec<MappedTarget>,
}

/// One line of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedTarget {
    /// First sector of 512 bytes.
    pub start_sectors: u64,
    /// Length.
    pub len_sectors: u64,
    /// `linear`, `striped`, …
    pub kind: String,
    /// As `dmsetup table` prints it, keys replaced by `-`.
    pub params: String,
}

/// A buffer that begins with a `struct dm_ioctl`.
struct Buffer(Vec<u64>);

// SAFETY: the kernel stays inside `data_size` bytes, which `Buffer::new` sets to the length of the vector and nobody else
// changes before the call; u64 takes any bytes and is aligned as the structure is.
unsafe impl Argument for Buffer {
    fn address(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }
}

impl Buffer {
    /// A request about one device; `len_bytes` is a multiple of 8 and longer than the header.
    fn new(len_bytes: usize, flags: u32, device: u64) -> Buffer {
        let mut words = vec![0u64; len_bytes / 8];
        let pair = |low: u32, high: u32| {
            let (low, high) = (low.to_ne_bytes(), high.to_ne_bytes());
            u64::from_ne_bytes([
                low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3],
            ])
        };
        // version[0..2]; version[2], data_size; data_start, target_count; open_count, flags; event_nr, padding; dev
        words[0] = pair(4, 0);
        words[1] = pair(0, len_bytes as u32);
        words[2] = pair(HEADER as u32, 0);
        words[3] = pair(0, flags);
        words[5] = device;
        Buffer(words)
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }
}

impl DeviceMapper {
    /// Opens the control node.
    ///
    /// # Errors
    /// When the kernel has no device mapper, or the process is not permitted.
    pub fn open() -> Result<DeviceMapper, SysError> {
        let path = Path::new(CONTROL);
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let asking = asking(path, "opening the device mapper");
        let fd = open(path, flags, Mode::empty()).map_err(|errno| asking.error(errno))?;
        Ok(DeviceMapper {
            control: File::from(fd),
        })
    }

    /// The live table of the device of this number.
    ///
    /// # Errors
    /// When the device is gone, the process is not permitted, or the table is beyond all reason.
    pub fn table(&self, major: u32, minor: u32) -> Result<Mapped, SysError> {
        let path = PathBuf::from(format!("/dev/block/{major}:{minor}"));
        let asking = asking(&path, "the device mapper's table");
        let mut len_bytes = BUFFER_MIN;
        loop {
            let flags = STATUS_TABLE | NO_FLUSH | SECURE_DATA;
            let mut buffer = Buffer::new(len_bytes, flags, device_number(major, minor));
            ioctl(&self.control, TABLE_STATUS, &mut buffer).map_err(|errno| asking.error(errno))?;
            let bytes = buffer.bytes();
            match decode(&bytes) {
                Ok(mapped) => return Ok(mapped),
                Err(AnswerFault::Full) if len_bytes < BUFFER_MAX => len_bytes *= 8,
                Err(AnswerFault::Full) => return Err(asking.error(Errno::FBIG)),
                Err(AnswerFault::At(offset)) => {
                    return Err(asking.malformed(
                        format!("an entry at byte {offset}"),
                        "entries inside the buffer",
                    ));
                }
            }
        }
    }
}

fn asking<'a>(path: &'a Path, asked: &'static str) -> Asking<'a> {
    Asking {
        path,
        asked,
        capability: "CAP_SYS_ADMIN",
    }
}

/// `huge_encode_dev` of the kernel.
fn device_number(major: u32, minor: u32) -> u64 {
    let (major, minor) = (u64::from(major), u64::from(minor));
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

/// Why an answer is no table.
#[derive(Debug, PartialEq, Eq)]
enum AnswerFault {
    Full,
    At(usize),
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, AnswerFault> {
    let field = bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk::<4>())
        .ok_or(AnswerFault::At(at))?;
    Ok(u32::from_ne_bytes(*field))
}

fn u64_at(bytes: &[u8], at: usize) -> Result<u64, AnswerFault> {
    let field = bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk::<8>())
        .ok_or(AnswerFault::At(at))?;
    Ok(u64::from_ne_bytes(*field))
}

/// Text up to a zero byte, or to the end of the field.
fn text_at(bytes: &[u8], at: usize, len_max: usize) -> Result<String, AnswerFault> {
    let field = bytes.get(at..).ok_or(AnswerFault::At(at))?;
    let field = &field[..field.len().min(len_max)];
    let end = field
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(field.len());
    Ok(String::from_utf8_lossy(&field[..end]).into_owned())
}

/// Takes the answer to `DM_TABLE_STATUS` apart.
fn decode(bytes: &[u8]) -> Result<Mapped, AnswerFault> {
    let flags = u32_at(bytes, 28)?;
    if flags & BUFFER_FULL != 0 {
        return Err(AnswerFault::Full);
    }
    let mut mapped = Mapped {
        name: text_at(bytes, 48, 128)?,
        uuid: text_at(bytes, 48 + 128, 129)?,
        targets: Vec::new(),
    };
    let count = if flags & ACTIVE_PRESENT == 0 {
        0
    } else {
        u32_at(bytes, 20)?
    };
    let first = u32_at(bytes, 16)? as usize;
    let mut at = first;
    for _ in 0..count {
        let next = u32_at(bytes, at + 20)? as usize;
        let kind = text_at(bytes, at + 24, 16)?;
        let params = text_at(bytes, at + SPEC, usize::MAX)?;
        mapped.targets.push(MappedTarget {
            start_sectors: u64_at(bytes, at)?,
            len_sectors: u64_at(bytes, at + 8)?,
            params: without_keys(&kind, &params),
            kind,
        });
        // Counted from the first entry; one that does not lead forward would go on for ever.
        let next = first.checked_add(next).ok_or(AnswerFault::At(at))?;
        if next <= at {
            return if mapped.targets.len() as u32 == count {
                Ok(mapped)
            } else {
                Err(AnswerFault::At(at))
            };
        }
        at = next;
    }
    Ok(mapped)
}

/// A table's parameters without the keys that dm-crypt and dm-integrity print.
#[must_use]
pub fn without_keys(kind: &str, params: &str) -> String {
    let words = params
        .split(' ')
        .enumerate()
        .map(|(at, word)| match (kind, at) {
            ("crypt", 1) => "-".to_owned(),
            ("integrity", _) if KEYED.iter().any(|option| word.starts_with(option)) => {
                let mut pieces = word.splitn(3, ':');
                let (option, algorithm) =
                    (pieces.next().unwrap_or(""), pieces.next().unwrap_or(""));
                if pieces.next().is_some() {
                    format!("{option}:{algorithm}:-")
                } else {
                    word.to_owned()
                }
            }
            _ => word.to_owned(),
        });
    words.collect::<Vec<_>>().join(" ")
}

/// Options of dm-integrity that end in a key.
const KEYED: [&str; 3] = ["internal_hash:", "journal_crypt:", "journal_mac:"];

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer as <linux/dm-ioctl.h> draws it, built here field by field.
    fn answer(flags: u32, targets: &[(u64, u64, &str, &str)]) -> Vec<u8> {
        let mut bytes = vec![0u8; HEADER];
        bytes[16..20].copy_from_slice(&(HEADER as u32).to_ne_bytes());
        bytes[20..24].copy_from_slice(&(targets.len() as u32).to_ne_bytes());
        bytes[28..32].copy_from_slice(&flags.to_ne_bytes());
        bytes[48..52].copy_from_slice(b"home");
        bytes[176..185].copy_from_slice(b"LVM-abcde");
        for (start, len, kind, params) in targets {
            let mut entry = vec![0u8; SPEC];
            entry[0..8].copy_from_slice(&start.to_ne_bytes());
            entry[8..16].copy_from_slice(&len.to_ne_bytes());
            entry[24..24 + kind.len()].copy_from_slice(kind.as_bytes());
            entry.extend_from_slice(params.as_bytes());
            entry.push(0);
            entry.resize(entry.len().next_multiple_of(8), 0);
            let next = (bytes.len() - HEADER + entry.len()) as u32;
            entry[20..24].copy_from_slice(&next.to_ne_bytes());
            bytes.extend(entry);
        }
        bytes
    }

    #[test]
    fn tables_are_taken_apart() {
        let targets = [
            (0, 100, "linear", "8:0 2048"),
            (100, 50, "striped", "2 128 8:1 0 8:2 0"),
        ];
        let mapped = decode(&answer(ACTIVE_PRESENT, &targets)).expect("a table");
        assert_eq!(
            (mapped.name.as_str(), mapped.uuid.as_str()),
            ("home", "LVM-abcde")
        );
        let found: Vec<_> = mapped
            .targets
            .iter()
            .map(|one| {
                (
                    one.start_sectors,
                    one.len_sectors,
                    one.kind.as_str(),
                    one.params.as_str(),
                )
            })
            .collect();
        assert_eq!(found, targets);
        let without_table = decode(&answer(0, &targets)).expect("an answer");
        assert_eq!(without_table.targets, []);
        assert_eq!(
            decode(&answer(ACTIVE_PRESENT | BUFFER_FULL, &targets)),
            Err(AnswerFault::Full)
        );
    }

    #[test]
    fn damaged_answers_end() {
        let whole = answer(
            ACTIVE_PRESENT,
            &[(0, 100, "linear", "8:0 2048"), (100, 50, "zero", "")],
        );
        for len in 0..whole.len() {
            let _ = decode(&whole[..len]);
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut broken = whole.clone();
                broken[at] = value;
                let _ = decode(&broken);
            }
        }
        let mut circle = whole;
        circle[HEADER + 20..HEADER + 24].copy_from_slice(&0u32.to_ne_bytes());
        assert_eq!(decode(&circle), Err(AnswerFault::At(HEADER)));
    }

    #[test]
    fn keys_do_not_leave() {
        let check = |kind, params, expected: &str| assert_eq!(without_keys(kind, params), expected);
        check(
            "crypt",
            "aes-xts-plain64 00ff00ff 0 8:1 4096",
            "aes-xts-plain64 - 0 8:1 4096",
        );
        check(
            "integrity",
            "8:1 0 32 J 1 internal_hash:hmac(sha256):c0ffee",
            "8:1 0 32 J 1 internal_hash:hmac(sha256):-",
        );
        check(
            "integrity",
            "8:1 0 4 J 1 internal_hash:crc32c",
            "8:1 0 4 J 1 internal_hash:crc32c",
        );
        check("linear", "8:1 2048", "8:1 2048");
    }

    /// By hand, after `new_encode_dev` in <linux/kdev_t.h>.
    #[test]
    fn device_numbers_are_the_kernels() {
        assert_eq!(device_number(8, 1), 0x0801);
        assert_eq!(device_number(253, 0x12345), 0x1230_fd45);
    }
}
