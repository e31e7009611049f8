//! The layout of a record of blktrace in the file: two versions, in either byte order.
//!
//! ```text
//! version 7, 48 bytes                     version 8, 64 bytes
//!  0 u32 magic 0x65617400 | version        0 u32 magic
//!  4 u32 sequence, counted by CPU          4 u32 sequence
//!  8 u64 time, ns since boot               8 u64 time
//! 16 u64 sector, of 512 bytes             16 u64 sector
//! 24 u32 bytes                            24 u32 bytes
//! 28 u32 action | category << 16          28 u32 pid
//! 32 u32 pid                              32 u64 action | category << 16
//! 36 u32 device, major << 20 | minor      40 u32 device
//! 40 u32 cpu                              44 u32 cpu
//! 44 u16 error                            48 u16 error
//! 46 u16 length of the data               50 u16 length of the data
//!                                         52 12 bytes of padding
//! ```
//!
//! The data follows at once, without padding. It is big-endian for splits and remaps and in the byte order
//! of the recording host for notes. Bit 8 of the action says that the data begins with the id of a control
//! group. Version 8 follows the kernel's header of 2025; no recording of it was at hand.

use super::record::RawRecord;

/// No kernel runs on more CPUs; a larger number is damage.
pub(super) const CPUS_MAX: u32 = 1 << 16;

/// Layout of the records: one file has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordShape {
    /// 7 or 8.
    pub version: u8,
    /// Byte order of the host that recorded.
    pub big_endian: bool,
}

impl RecordShape {
    /// Detects the layout by the first four bytes of a record.
    #[must_use]
    pub fn detect(bytes: &[u8]) -> Option<RecordShape> {
        let (version, big_endian) = match bytes.first_chunk::<4>()? {
            [version, 0x74, 0x61, 0x65] => (*version, false),
            [0x65, 0x61, 0x74, version] => (*version, true),
            _ => return None,
        };
        matches!(version, 7 | 8).then_some(RecordShape {
            version,
            big_endian,
        })
    }

    /// The four bytes with which each record begins.
    #[must_use]
    pub const fn magic(self) -> [u8; 4] {
        let magic = 0x6561_7400 | self.version as u32;
        if self.big_endian {
            magic.to_be_bytes()
        } else {
            magic.to_le_bytes()
        }
    }

    /// Bytes of a record without its data.
    #[must_use]
    pub const fn header_bytes(self) -> usize {
        if self.version == 7 { 48 } else { 64 }
    }

    /// For messages.
    #[must_use]
    pub fn text(self) -> String {
        let order = if self.big_endian { "big" } else { "little" };
        format!(
            "blktrace records of version {}, {order}-endian",
            self.version
        )
    }

    fn u16(self, bytes: [u8; 2]) -> u16 {
        if self.big_endian {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        }
    }

    pub(super) fn u32(self, bytes: [u8; 4]) -> u32 {
        if self.big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    }

    pub(super) fn u64(self, bytes: [u8; 8]) -> u64 {
        if self.big_endian {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        }
    }

    /// The record at the beginning of `bytes`; `None` when too few are there or it cannot be one.
    #[inline]
    #[must_use]
    pub fn decode(self, bytes: &[u8]) -> Option<RawRecord> {
        if *bytes.first_chunk::<4>()? != self.magic() {
            return None;
        }
        let record = if self.version == 7 {
            self.decode_7(bytes.first_chunk()?)
        } else {
            self.decode_8(bytes.first_chunk()?)
        };
        record.is_plausible().then_some(record)
    }

    #[inline]
    fn decode_7(self, b: &[u8; 48]) -> RawRecord {
        RawRecord {
            sequence: self.u32([b[4], b[5], b[6], b[7]]),
            time_ns: self
                .u64([b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]])
                .cast_signed(),
            sector: self.u64([b[16], b[17], b[18], b[19], b[20], b[21], b[22], b[23]]),
            len_bytes: self.u32([b[24], b[25], b[26], b[27]]),
            action: u64::from(self.u32([b[28], b[29], b[30], b[31]])),
            pid: self.u32([b[32], b[33], b[34], b[35]]),
            device: self.u32([b[36], b[37], b[38], b[39]]),
            cpu: self.u32([b[40], b[41], b[42], b[43]]),
            error: self.u16([b[44], b[45]]),
            data_bytes: self.u16([b[46], b[47]]),
        }
    }

    #[inline]
    fn decode_8(self, b: &[u8; 64]) -> RawRecord {
        RawRecord {
            sequence: self.u32([b[4], b[5], b[6], b[7]]),
            time_ns: self
                .u64([b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]])
                .cast_signed(),
            sector: self.u64([b[16], b[17], b[18], b[19], b[20], b[21], b[22], b[23]]),
            len_bytes: self.u32([b[24], b[25], b[26], b[27]]),
            pid: self.u32([b[28], b[29], b[30], b[31]]),
            action: self.u64([b[32], b[33], b[34], b[35], b[36], b[37], b[38], b[39]]),
            device: self.u32([b[40], b[41], b[42], b[43]]),
            cpu: self.u32([b[44], b[45], b[46], b[47]]),
            error: self.u16([b[48], b[49]]),
            data_bytes: self.u16([b[50], b[51]]),
        }
    }
}
