//! One blktrace record, and its bytes in either version and either byte order.
//!
//! Layouts: `struct blk_io_trace` (version 7, 48 bytes) and `struct blk_io_trace2` (version 8, 64 bytes)
//! of the kernel's `blktrace_api.h`. Version 8 widens `action` to 64 bits, and so moves `pid` before it.

pub use super::blkcategory as category;

/// The event of a record. Only the actions that this crate writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlkAction {
    /// A bio was queued.
    Queue,
    /// A bio was merged at the back of a request.
    BackMerge,
    /// A request was allocated.
    Get,
    /// A request was put back.
    Requeue,
    /// A request was issued.
    Issue,
    /// A request was completed.
    Complete,
    /// A request entered the scheduler.
    Insert,
    /// A bio was split.
    Split,
    /// A bio was remapped to another device.
    Remap,
    /// Note: the name of a process.
    NoteProcess,
    /// Note: wall clock at the start.
    NoteTimestamp,
    /// Note: free text.
    NoteMessage,
}

impl BlkAction {
    /// The action number and its own category bits.
    #[must_use]
    pub const fn word(self) -> u64 {
        use category::{COMPLETE, ISSUE, NOTIFY, QUEUE, REQUEUE};
        match self {
            Self::Queue => 1 | QUEUE,
            Self::BackMerge => 2 | QUEUE,
            Self::Get => 4 | QUEUE,
            Self::Requeue => 6 | REQUEUE,
            Self::Issue => 7 | ISSUE,
            Self::Complete => 8 | COMPLETE,
            Self::Insert => 12 | QUEUE,
            // The kernel gives a split no category of its own.
            Self::Split => 13,
            Self::Remap => 15 | QUEUE,
            Self::NoteProcess => NOTIFY,
            Self::NoteTimestamp => 1 | NOTIFY,
            Self::NoteMessage => 2 | NOTIFY,
        }
    }

    /// The letter blkparse prints.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Queue => 'Q',
            Self::BackMerge => 'M',
            Self::Get => 'G',
            Self::Requeue => 'R',
            Self::Issue => 'D',
            Self::Complete => 'C',
            Self::Insert => 'I',
            Self::Split => 'X',
            Self::Remap => 'A',
            Self::NoteProcess | Self::NoteTimestamp | Self::NoteMessage => 'm',
        }
    }

    /// Whether the record is a note and no I/O.
    #[must_use]
    pub const fn is_note(self) -> bool {
        self.word() & category::NOTIFY != 0
    }
}

/// The payload after the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pdu {
    /// Nothing.
    None,
    /// First sector of the second part of a split: big-endian in every file.
    SplitAt(u64),
    /// Origin of a remapped bio: big-endian in every file.
    Remap {
        /// Device the bio came from.
        from_dev: u32,
        /// Device it goes to.
        to_dev: u32,
        /// Sector on the device it came from.
        from_sector: u64,
    },
    /// Name of a process: 16 bytes, padded with zeros.
    Comm(&'static str),
    /// Wall clock: seconds and nanoseconds in the byte order of the file.
    Clock {
        /// Seconds since 1970.
        seconds: u32,
        /// And nanoseconds.
        nanos: u32,
    },
    /// Free text, no terminator.
    Text(&'static str),
    /// The command bytes of a passthrough request.
    Bytes([u8; 16]),
}

/// Byte order of the host that made the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endian {
    /// x86, Arm.
    Little,
    /// s390x, SPARC.
    Big,
}

/// Version of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// 48-byte header.
    V7,
    /// 64-byte header, from the kernels of 2026 on.
    V8,
}

/// One record before it has bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlkRecord {
    /// Number on its CPU from 1; 0 for a note.
    pub sequence: u32,
    /// Monotonic clock, ns.
    pub time_ns: u64,
    /// First sector.
    pub sector: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// The event.
    pub action: BlkAction,
    /// READ, WRITE, SYNC, FS… of [`category`].
    pub flags: u64,
    /// The process.
    pub pid: u32,
    /// Name of `pid`: not in the header, but blkparse prints it.
    pub comm: &'static str,
    /// Linux device number, 20 bits of minor.
    pub dev: u32,
    /// On which CPU.
    pub cpu: u32,
    /// Completion status as the kernel stores it.
    pub error: u16,
    /// Payload.
    pub pdu: Pdu,
}

/// Appends integers in one byte order.
pub(crate) struct Put<'a> {
    pub out: &'a mut Vec<u8>,
    pub endian: Endian,
}

impl Put<'_> {
    pub fn u16(&mut self, v: u16) {
        let bytes = if self.endian == Endian::Big {
            v.to_be_bytes()
        } else {
            v.to_le_bytes()
        };
        self.out.extend_from_slice(&bytes);
    }

    pub fn u32(&mut self, v: u32) {
        let bytes = if self.endian == Endian::Big {
            v.to_be_bytes()
        } else {
            v.to_le_bytes()
        };
        self.out.extend_from_slice(&bytes);
    }

    pub fn u64(&mut self, v: u64) {
        let bytes = if self.endian == Endian::Big {
            v.to_be_bytes()
        } else {
            v.to_le_bytes()
        };
        self.out.extend_from_slice(&bytes);
    }
}

impl BlkRecord {
    /// Appends the header and the payload to `out`.
    pub fn encode(&self, version: Version, endian: Endian, out: &mut Vec<u8>) {
        let action = self.action.word() | self.flags;
        let header = out.len();
        let mut put = Put { out, endian };
        put.u32(0x6561_7400 | if version == Version::V7 { 7 } else { 8 });
        put.u32(self.sequence);
        put.u64(self.time_ns);
        put.u64(self.sector);
        put.u32(self.bytes);
        match version {
            Version::V7 => {
                put.u32(action as u32);
                put.u32(self.pid);
            }
            Version::V8 => {
                put.u32(self.pid);
                put.u64(action);
            }
        }
        put.u32(self.dev);
        put.u32(self.cpu);
        put.u16(self.error);
        let length_at = put.out.len();
        put.u16(0);
        if version == Version::V8 {
            put.out.extend_from_slice(&[0; 12]);
        }
        debug_assert_eq!(
            out.len() - header,
            if version == Version::V7 { 48 } else { 64 }
        );
        self.encode_pdu(length_at, endian, out);
    }

    fn encode_pdu(&self, length_at: usize, endian: Endian, out: &mut Vec<u8>) {
        let start = out.len();
        match self.pdu {
            Pdu::None => return,
            Pdu::SplitAt(sector) => out.extend_from_slice(&sector.to_be_bytes()),
            Pdu::Remap {
                from_dev,
                to_dev,
                from_sector,
            } => {
                out.extend_from_slice(&from_dev.to_be_bytes());
                out.extend_from_slice(&to_dev.to_be_bytes());
                out.extend_from_slice(&from_sector.to_be_bytes());
            }
            Pdu::Comm(comm) => {
                let kept = &comm.as_bytes()[..comm.len().min(15)];
                out.extend_from_slice(kept);
                out.resize(start + 16, 0);
            }
            Pdu::Clock { seconds, nanos } => {
                let mut put = Put { out, endian };
                put.u32(seconds);
                put.u32(nanos);
            }
            Pdu::Text(text) => out.extend_from_slice(text.as_bytes()),
            Pdu::Bytes(bytes) => out.extend_from_slice(&bytes),
        }
        let length = (out.len() - start) as u16;
        let bytes = if endian == Endian::Big {
            length.to_be_bytes()
        } else {
            length.to_le_bytes()
        };
        out[length_at..length_at + 2].copy_from_slice(&bytes);
    }
}
