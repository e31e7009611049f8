//! The data that the recording programs share with the reader: the structures of `bpf/record.h`.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use plumb_profile::answers::IoError;
use plumb_trace::{Layer, Op, flags};

/// Constants of the header.
#[allow(dead_code)]
mod constants {
    include!(concat!(env!("OUT_DIR"), "/record.rs"));
}
pub(crate) use constants::*;

/// An I/O as the kernel tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Layer at which it was seen.
    pub layer: Layer,
    /// First issue, ns since boot; of a bio when it was sent.
    pub issued_ns: u64,
    /// From making the request to its issue; `None` when the kernel did not note the first, and of a bio.
    pub queue_ns: Option<u64>,
    /// From issue to completion; `None` without a completion.
    pub device_ns: Option<u64>,
    /// First sector on the disk; of no meaning without a length.
    pub sector: u64,
    /// Control group of the sender, 0 unknown.
    pub cgroup: u64,
    /// Command of the sender, ended by 0.
    pub comm: [u8; 16],
    /// Number of the disk or partition that it was sent to.
    pub dev: u32,
    /// Number of the disk.
    pub disk: u32,
    /// Length; 0 for a flush.
    pub len_bytes: u32,
    /// Operation by its code in the low byte, and above it [`plumb_trace::flags`] but for that of a failure.
    pub op_flags: u32,
    /// Process, 0 unknown.
    pub tgid: u32,
    /// Thread, 0 unknown.
    pub thread: u32,
    /// Why it failed, if it did.
    pub error: Option<IoError>,
}

impl Record {
    /// Decodes a record; `None` if there are too few bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Record> {
        let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let known = |ns: u64| (ns != NEVER as u64).then_some(ns);
        let op_flags = word(68)?;
        let is_bio = op_flags & IS_BIO as u32 != 0;
        Some(Record {
            layer: if is_bio { Layer::Bio } else { Layer::Request },
            issued_ns: long(0)?,
            queue_ns: known(long(8)?),
            device_ns: known(long(16)?),
            sector: long(24)?,
            cgroup: long(32)?,
            comm: bytes.get(40..56)?.try_into().ok()?,
            dev: word(56)?,
            disk: word(60)?,
            len_bytes: word(64)?,
            op_flags: op_flags & !(IS_BIO as u32),
            tgid: word(72)?,
            thread: word(80)?,
            error: IoError::from_kernel(word(76)?.cast_signed()),
        })
    }

    /// Whether a device must accept this operation: it may refuse discards and writes of zeros.
    pub(crate) fn is_never_refused(&self) -> bool {
        let op = Op::from_code(self.op_flags as u8);
        matches!(op, Some(Op::Read | Op::Write | Op::Flush))
    }

    /// First byte on the disk. A flush has no place: its sector has any value that the driver left there.
    pub(crate) fn start_bytes(&self) -> u64 {
        match self.len_bytes {
            0 => 0,
            _ => self.sector << 9,
        }
    }
}

/// A request or bio between issue and completion.
#[repr(C)]
pub(crate) struct Open {
    address: AtomicU64,
    begun_ns: AtomicU64,
    end: AtomicU64,
    tally_unused: AtomicU64,
    record: [AtomicU64; RECORD_BYTES / 8],
    unused: AtomicU64,
}

impl Open {
    fn is_there(&self) -> bool {
        self.address.load(Ordering::Acquire) != 0
    }

    /// When it was issued; `None` when nothing is open there.
    pub(crate) fn issued_ns(&self) -> Option<u64> {
        self.is_there()
            .then(|| self.record[0].load(Ordering::Acquire))
    }

    /// Its record; `None` if nothing is open there.
    pub(crate) fn record(&self) -> Option<Record> {
        let words = self
            .record
            .each_ref()
            .map(|word| word.load(Ordering::Acquire).to_ne_bytes());
        let record = Record::decode(words.as_flattened())?;
        self.is_there().then_some(Record {
            device_ns: None,
            ..record
        })
    }
}

/// Counts of a disk's I/O.
#[repr(C)]
pub(crate) struct KernelTally {
    pub(crate) dev: AtomicU32,
    pub(crate) is_by_bios: AtomicU32,
    pub(crate) sent: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) requeues: AtomicU64,
    pub(crate) partial_completions: AtomicU64,
    pub(crate) unmatched_issues: AtomicU64,
    pub(crate) unmatched_completions: AtomicU64,
    pub(crate) unknown_senders: AtomicU64,
    pub(crate) unseen_failures: [AtomicU64; 8],
}

const _: () = {
    assert!(size_of::<Open>() == OPEN_BYTES);
    assert!(size_of::<KernelTally>() == TALLY_BYTES);
    assert!(NEVER as u64 == u64::MAX);
    assert!(FLAG_SYNC >> 8 == flags::SYNC as usize && FLAG_META >> 8 == flags::META as usize);
    assert!(FLAG_AHEAD >> 8 == flags::AHEAD as usize && FLAG_FUA >> 8 == flags::FUA as usize);
    assert!(FLAG_PREFLUSH >> 8 == flags::PREFLUSH as usize);
};
