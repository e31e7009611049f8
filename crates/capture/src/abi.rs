//! The data that the programs share with the reader: the structures of `bpf/abi.h`.
//!
//! The kernel adds to these words while they are read, so each is an atomic.

use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64};

use crate::reading::ALIGNMENTS;

/// Constants of the header.
#[allow(dead_code)]
mod constants {
    include!(concat!(env!("OUT_DIR"), "/abi.rs"));
}
pub(crate) use constants::*;

/// I/O with the same residue and the like.
#[repr(C)]
pub(crate) struct KernelRow {
    pub(crate) key: AtomicU64,
    pub(crate) ios: AtomicU64,
    pub(crate) timed: AtomicU64,
    pub(crate) ns_sum: AtomicU64,
    pub(crate) ns_squared_low: AtomicU64,
    pub(crate) ns_squared_high: AtomicU64,
    pub(crate) regions: AtomicU64,
    pub(crate) sectors: AtomicU64,
}

/// A disk.
#[repr(C)]
pub(crate) struct KernelDevice {
    pub(crate) dev: AtomicU32,
    pub(crate) by_bios: AtomicU32,
    pub(crate) region_shift: AtomicU32,
    unused: AtomicU32,
    pub(crate) flushes: AtomicU64,
    pub(crate) requeues: AtomicU64,
    pub(crate) partial_completions: AtomicU64,
    pub(crate) unmatched_issues: AtomicU64,
    pub(crate) unmatched_completions: AtomicU64,
    pub(crate) unplaced: AtomicU64,
    pub(crate) issues: AtomicU64,
    pub(crate) last_issue_ns: AtomicU64,
    last_end: AtomicU64,
    pub(crate) first_ns: AtomicU64,
    pub(crate) continuing: AtomicU64,
    pub(crate) run_ios: AtomicU64,
    pub(crate) splits: AtomicU64,
    pub(crate) cached_reads: AtomicU64,
    depth: AtomicI64,
    depth_changed_ns: AtomicU64,
    slow_floor: AtomicU64,
    failures_kept: AtomicU64,
    unused_as_well: [AtomicU64; 4],
    pub(crate) failed: [AtomicU64; 8],
}

/// A disk or a partition: its number in the low half, the index of its disk in the high one.
#[repr(C)]
pub(crate) struct KernelPlace {
    pub(crate) dev_device: AtomicU64,
}

/// A process on one disk or partition.
#[repr(C)]
pub(crate) struct Process {
    pub(crate) dev_tgid: AtomicU64,
    pub(crate) comm: [AtomicU64; 2],
    pub(crate) cgroup: AtomicU64,
    is_own: AtomicU64,
    unused: [AtomicU64; 3],
}

/// When a thread last sent an I/O.
#[repr(C)]
pub(crate) struct Thread {
    pub(crate) process_thread: AtomicU64,
    pub(crate) seen_ns: AtomicU64,
}

/// The I/O of a process in one lane.
#[repr(C)]
pub(crate) struct Sent {
    pub(crate) bytes: AtomicU64,
    pub(crate) by_alignment: [AtomicU64; ALIGNMENTS],
    pub(crate) written_back: AtomicU64,
    unused: [AtomicU64; 2],
}

/// A request or bio between issue and completion.
#[repr(C)]
pub(crate) struct Flight {
    pub(crate) address: AtomicU64,
    begun_ns: AtomicU64,
    pub(crate) issued_ns: AtomicU64,
    pub(crate) end: AtomicU64,
    key: AtomicU64,
    pub(crate) device: AtomicU32,
    pub(crate) op: AtomicU32,
    pub(crate) sectors: AtomicU32,
    pub(crate) process: AtomicU32,
    unused: AtomicU64,
}

/// An I/O that is kept by itself.
#[repr(C)]
pub(crate) struct Kept {
    pub(crate) ns: AtomicU64,
    pub(crate) end: AtomicU64,
    pub(crate) ended_ns: AtomicU64,
    pub(crate) sectors: AtomicU32,
    pub(crate) op: AtomicU32,
    pub(crate) process: AtomicU32,
    pub(crate) error: AtomicI32,
    pub(crate) inode: AtomicU64,
    pub(crate) name: [AtomicU64; 4],
}

/// A process on one file system.
#[repr(C)]
pub(crate) struct Asker {
    pub(crate) tgid: AtomicU64,
    pub(crate) file_system: AtomicU64,
    pub(crate) comm: [AtomicU64; 2],
    pub(crate) ways: AtomicU64,
    pub(crate) unplaced: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) calls: [AtomicU64; KINDS],
    pub(crate) asked_bytes: [AtomicU64; KINDS],
    pub(crate) moved_bytes: [AtomicU64; KINDS],
    pub(crate) faults: AtomicU64,
    pub(crate) stores: AtomicU64,
    unused: [AtomicU64; 3],
}

/// Counts that do not belong to a device.
#[repr(C)]
pub(crate) struct Totals {
    pub(crate) unlisted_devices: AtomicU64,
    pub(crate) unknown_senders: AtomicU64,
    pub(crate) processes_lost: AtomicU64,
}

const _: () = {
    assert!(size_of::<KernelRow>() == ROW_BYTES);
    assert!(size_of::<KernelDevice>() == DEVICE_BYTES);
    assert!(size_of::<KernelPlace>() == PLACE_BYTES);
    assert!(std::mem::offset_of!(KernelDevice, issues) == 64);
    assert!(std::mem::offset_of!(KernelDevice, depth) == 128);
    assert!(std::mem::offset_of!(KernelDevice, failed) == 192);
    assert!(size_of::<Process>() == PROCESS_BYTES);
    assert!(size_of::<Thread>() == THREAD_BYTES);
    assert!(size_of::<Sent>() == SENT_BYTES);
    assert!(size_of::<Flight>() == FLIGHT_BYTES);
    assert!(size_of::<Kept>() == KEPT_BYTES);
    // Room for the longest name, and for the zero behind it.
    assert!(size_of::<[AtomicU64; 4]>() == plumb_profile::answers::IoFile::NAME_BYTES + 1);
    assert!(size_of::<Asker>() == ASKER_BYTES);
    assert!(size_of::<Totals>() == TOTALS_BYTES);
    assert!(RUNS_AT > 2 * SEEK_BUCKETS && RUNS_AT + 64 <= BUCKETS);
};

/// The fields of a row's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockKey {
    pub(crate) place: usize,
    pub(crate) continues: bool,
    pub(crate) op: usize,
    pub(crate) residue: u64,
    pub(crate) sectors: u64,
    /// Whether it is that of I/O of about that length.
    pub(crate) is_coarse: bool,
}

impl BlockKey {
    pub(crate) fn decode(key: u64) -> BlockKey {
        let mut fields = BitFields(key);
        BlockKey {
            sectors: fields.next(KEY_LENGTH_BITS),
            residue: fields.next(KEY_RESIDUE_BITS),
            op: fields.next(KEY_OP_BITS) as usize,
            continues: fields.next(KEY_STREAM_BITS) == 1,
            place: fields.next(KEY_PLACE_BITS) as usize,
            is_coarse: fields.next(KEY_COARSE_BITS) == 1,
        }
    }
}

/// The fields of a row's key at the vfs layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VfsKey {
    pub(crate) place: usize,
    pub(crate) continues: bool,
    pub(crate) op: usize,
    pub(crate) residue: u64,
    pub(crate) len_bytes: u64,
}

impl VfsKey {
    pub(crate) fn decode(key: u64) -> VfsKey {
        let mut fields = BitFields(key);
        VfsKey {
            len_bytes: fields.next(VFS_LENGTH_BITS),
            residue: fields.next(VFS_RESIDUE_BITS),
            op: fields.next(VFS_OP_BITS) as usize,
            continues: fields.next(VFS_STREAM_BITS) == 1,
            place: fields.next(VFS_PLACE_BITS) as usize,
        }
    }
}

/// A number that is taken apart from its lowest bit.
struct BitFields(u64);

impl BitFields {
    fn next(&mut self, bits: usize) -> u64 {
        let field = self.0 & ((1 << bits) - 1);
        self.0 >>= bits;
        field
    }
}
