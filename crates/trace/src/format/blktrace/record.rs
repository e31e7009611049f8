//! One record of blktrace: the meaning of its bits. [`super::shape`] describes its layout in the file.

use super::shape::{CPUS_MAX, RecordShape};
use crate::blk::Action;
use crate::op::{Op, flags};

/// Categories: the bits above the action.
mod category {
    pub const WRITE: u64 = 1 << 1;
    pub const FLUSH: u64 = 1 << 2;
    pub const SYNC: u64 = 1 << 3;
    pub const PASSTHROUGH: u64 = 1 << 9;
    pub const NOTIFY: u64 = 1 << 10;
    pub const AHEAD: u64 = 1 << 11;
    pub const META: u64 = 1 << 12;
    pub const DISCARD: u64 = 1 << 13;
    pub const FUA: u64 = 1 << 15;
    /// Reset, reset all, finish, open and close of a zone; version 8 only.
    pub const ZONE_MANAGEMENT: u64 = 0b11111 << 17;
    /// Version 8 only: version 7 has no bit for it and such I/O looks like a write.
    pub const WRITE_ZEROES: u64 = 1 << 22;
}

const CGROUP_BIT: u64 = 1 << 8;

/// Letters as blkparse prints them, by action.
pub const LETTERS: [&str; 20] = [
    "unknown", "Q", "M", "F", "G", "S", "R", "D", "C", "P", "U", "UT", "I", "X", "B", "A", "ABORT",
    "DRV", "ZP", "ZU",
];

/// A remap has the most data, 16 bytes, before them the id of a control group.
const IO_DATA_MAX: u16 = 24;

/// Notes (at most 128 bytes of text), commands of applications and data of drivers are far below this.
const DATA_MAX: u16 = 4096;

/// From here even the longest I/O ends before 2^64 bytes.
const SECTOR_MAX: u64 = (u64::MAX - u32::MAX as u64) / 512;

/// A record as in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawRecord {
    /// Number of the record among those of its CPU; notes have none.
    pub sequence: u32,
    /// Time in ns since boot, 0 or more.
    pub time_ns: i64,
    /// First sector, of 512 bytes.
    pub sector: u64,
    /// Length in bytes.
    pub len_bytes: u32,
    /// Action in the low 16 bits, categories above.
    pub action: u64,
    /// Process, or the interrupted one.
    pub pid: u32,
    /// Device as the kernel packs it.
    pub device: u32,
    /// CPU that wrote the record.
    pub cpu: u32,
    /// Error of a completion; 0 is none.
    pub error: u16,
    /// Bytes of data after the record.
    pub data_bytes: u16,
}

/// The content of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// Command of a process.
    Process,
    /// Time of day.
    Timestamp,
    /// Text of a driver or scheduler.
    Message,
    /// Not known here.
    Other,
}

impl RawRecord {
    const fn categories(&self) -> u64 {
        self.action >> 16
    }

    /// The action without its categories and flags; the index into [`LETTERS`], 0 for one that is not there.
    #[inline]
    #[must_use]
    pub fn action_index(&self) -> usize {
        let index = (self.action & 0xff) as usize;
        if index < LETTERS.len() { index } else { 0 }
    }

    /// The content of a record beside I/O; `None` for a record of I/O.
    #[inline]
    #[must_use]
    pub const fn note(&self) -> Option<Note> {
        if self.categories() & category::NOTIFY == 0 {
            return None;
        }
        Some(match self.action & 0xff {
            0 => Note::Process,
            1 => Note::Timestamp,
            2 => Note::Message,
            _ => Note::Other,
        })
    }

    /// Whether it is a command that the application wrote itself: sector and length are not those of data.
    #[inline]
    #[must_use]
    pub const fn is_passthrough(&self) -> bool {
        self.categories() & category::PASSTHROUGH != 0
    }

    /// Whether the numbers can be those of a record: a damaged length of data could hide the records after it.
    #[inline]
    pub(super) const fn is_plausible(&self) -> bool {
        let known = matches!(self.action & 0xff, 1..=16 | 18 | 19);
        let bounded = known && self.note().is_none() && !self.is_passthrough();
        let data_fits = self.data_bytes <= if bounded { IO_DATA_MAX } else { DATA_MAX };
        // A flush may have any sector, all others end before 2^64 bytes.
        let place_fits = !bounded || self.len_bytes == 0 || self.sector <= SECTOR_MAX;
        self.time_ns >= 0 && self.cpu < CPUS_MAX && data_fits && place_fits
    }

    /// The event, as far as I/O are made of it.
    #[inline]
    #[must_use]
    pub const fn kind(&self) -> Action {
        match self.action & 0xff {
            1 => Action::Queue,
            3 => Action::FrontMerge,
            6 => Action::Requeue,
            7 => Action::Issue,
            8 => Action::Complete,
            12 => Action::Insert,
            15 => Action::Remap,
            _ => Action::Other,
        }
    }

    /// Operation and bits of [`flags`].
    #[inline]
    #[must_use]
    pub fn op_and_flags(&self) -> (Op, i32) {
        let has = |bit: u64, flag: i32| {
            if self.categories() & bit != 0 {
                flag
            } else {
                0
            }
        };
        let bits = has(category::FLUSH, flags::PREFLUSH)
            | has(category::FUA, flags::FUA)
            | has(category::AHEAD, flags::AHEAD)
            | has(category::SYNC, flags::SYNC)
            | has(category::META, flags::META);
        let categories = self.categories();
        let op = if self.len_bytes == 0 && bits & (flags::PREFLUSH | flags::FUA) != 0 {
            Op::Flush
        } else if categories & category::DISCARD != 0 {
            Op::Discard
        } else if categories & category::WRITE_ZEROES != 0 {
            Op::WriteZeroes
        } else if categories & category::ZONE_MANAGEMENT != 0 {
            Op::Other
        } else if categories & category::WRITE != 0 {
            Op::Write
        } else if self.len_bytes > 0 {
            Op::Read
        } else {
            Op::Other
        };
        (op, bits)
    }

    /// Major and minor number of a packed device.
    #[must_use]
    pub const fn major_minor(device: u32) -> (u32, u32) {
        (device >> 20, device & 0xf_ffff)
    }

    /// Takes the control group, if there is one, off the data.
    #[must_use]
    pub fn split_cgroup<'data>(
        &self,
        shape: RecordShape,
        data: &'data [u8],
    ) -> (Option<i64>, &'data [u8]) {
        match data.split_first_chunk::<8>() {
            Some((id, rest)) if self.action & CGROUP_BIT != 0 => {
                (i64::try_from(shape.u64(*id)).ok(), rest)
            }
            _ => (None, data),
        }
    }
}

/// First sector of the second part of a split, from the data of an X.
#[must_use]
pub fn split_sector(data: &[u8]) -> Option<u64> {
    data.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

/// Packed device and sector from which a remap came, from the data of an A.
#[must_use]
pub fn remap_source(data: &[u8]) -> Option<(u32, u64)> {
    let device = u32::from_be_bytes(*data.first_chunk()?);
    let sector = u64::from_be_bytes(*data.get(8..)?.first_chunk()?);
    Some((device, sector))
}
