//! Columns of the events of one device and layer: those of a batch itself where it has no others, or gathered.

use std::ops::Range;

use plumb_trace::{Batch, Op, UNKNOWN_NS, UNKNOWN_PID};

use crate::in_flight::thread_of;

/// How many events go through one measure after the other while their columns stay in the first cache.
pub(crate) const BLOCK_EVENTS: usize = 512;

/// Columns of equal length. The last five may be empty instead, which means unknown throughout.
#[derive(Clone, Copy)]
pub(crate) struct Ios<'a> {
    pub(crate) time_ns: &'a [i64],
    pub(crate) op: &'a [Op],
    pub(crate) flags: &'a [i32],
    pub(crate) start_bytes: &'a [u64],
    pub(crate) len_bytes: &'a [u64],
    queue_ns: &'a [i64],
    device_ns: &'a [i64],
    pid: &'a [i32],
    tid: &'a [i32],
    comm: &'a [u32],
}

impl<'a> Ios<'a> {
    /// All events of a batch.
    pub(crate) fn from_batch(batch: &'a Batch) -> Ios<'a> {
        let rows = batch.len();
        Ios {
            time_ns: &batch.time_ns,
            op: &batch.op,
            flags: &batch.flags,
            start_bytes: &batch.start_bytes,
            len_bytes: &batch.len_bytes,
            queue_ns: whole(&batch.queue_ns, rows),
            device_ns: whole(&batch.device_ns, rows),
            pid: whole(&batch.pid, rows),
            tid: whole(&batch.tid, rows),
            comm: whole(&batch.comm, rows),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.time_ns.len()
    }

    /// Some of the events.
    pub(crate) fn part(&self, rows: Range<usize>) -> Ios<'a> {
        Ios {
            time_ns: &self.time_ns[rows.clone()],
            op: &self.op[rows.clone()],
            flags: &self.flags[rows.clone()],
            start_bytes: &self.start_bytes[rows.clone()],
            len_bytes: &self.len_bytes[rows.clone()],
            queue_ns: part(self.queue_ns, &rows),
            device_ns: part(self.device_ns, &rows),
            pid: part(self.pid, &rows),
            tid: part(self.tid, &rows),
            comm: part(self.comm, &rows),
        }
    }

    /// Issue to complete; [`UNKNOWN_NS`] where unknown.
    #[inline(always)]
    pub(crate) fn device_ns(&self, row: usize) -> i64 {
        self.device_ns.get(row).copied().unwrap_or(UNKNOWN_NS)
    }

    /// Issue to complete; [`UNKNOWN_NS`] where unknown, and empty where it is throughout.
    pub(crate) fn devices_ns(&self) -> &'a [i64] {
        self.device_ns
    }

    /// Insert to issue; [`UNKNOWN_NS`] where unknown, and empty where it is throughout.
    pub(crate) fn queues_ns(&self) -> &'a [i64] {
        self.queue_ns
    }

    /// Process; [`UNKNOWN_PID`] where unknown.
    #[inline(always)]
    pub(crate) fn pid(&self, row: usize) -> i32 {
        self.pid.get(row).copied().unwrap_or(UNKNOWN_PID)
    }

    /// Process above and thread below, or the process alone where no thread is known; see [`thread_of`].
    ///
    /// Several sources have the number of the thread where others have that of the process: such a number is
    /// as good a thread.
    #[inline(always)]
    pub(crate) fn thread(&self, row: usize) -> i64 {
        let tid = self.tid.get(row).copied().unwrap_or(UNKNOWN_PID);
        thread_of(self.pid(row), tid)
    }

    /// Command; 0 where unknown.
    #[inline(always)]
    pub(crate) fn comm(&self, row: usize) -> u32 {
        self.comm.get(row).copied().unwrap_or(0)
    }

    /// Insert to issue; [`UNKNOWN_NS`] where unknown.
    #[inline(always)]
    pub(crate) fn queue_ns(&self, row: usize) -> i64 {
        self.queue_ns.get(row).copied().unwrap_or(UNKNOWN_NS)
    }

    /// Whether any latency may be known.
    pub(crate) fn may_be_timed(&self) -> bool {
        !self.device_ns.is_empty()
    }

    /// Whether any process may be known.
    pub(crate) fn may_have_processes(&self) -> bool {
        !self.comm.is_empty() || !self.pid.is_empty()
    }
}

/// A column that is there for every row; one that is not is as good as absent.
fn whole<T>(column: &[T], rows: usize) -> &[T] {
    if column.len() == rows { column } else { &[] }
}

fn part<'a, T>(column: &'a [T], rows: &Range<usize>) -> &'a [T] {
    column.get(rows.clone()).unwrap_or(&[])
}

/// Rows of one device and layer, taken out of a batch that mixes them.
#[derive(Default)]
pub(crate) struct GatheredRows {
    time_ns: Vec<i64>,
    op: Vec<Op>,
    flags: Vec<i32>,
    start_bytes: Vec<u64>,
    len_bytes: Vec<u64>,
    queue_ns: Vec<i64>,
    device_ns: Vec<i64>,
    pid: Vec<i32>,
    tid: Vec<i32>,
    comm: Vec<u32>,
}

impl GatheredRows {
    /// The rows given, which are rows of the batch.
    pub(crate) fn take(&mut self, batch: &Batch, rows: &[u32]) -> Ios<'_> {
        let from = Ios::from_batch(batch);
        take(&mut self.time_ns, from.time_ns, rows);
        take(&mut self.op, from.op, rows);
        take(&mut self.flags, from.flags, rows);
        take(&mut self.start_bytes, from.start_bytes, rows);
        take(&mut self.len_bytes, from.len_bytes, rows);
        take(&mut self.queue_ns, from.queue_ns, rows);
        take(&mut self.device_ns, from.device_ns, rows);
        take(&mut self.pid, from.pid, rows);
        take(&mut self.tid, from.tid, rows);
        take(&mut self.comm, from.comm, rows);
        Ios {
            time_ns: &self.time_ns,
            op: &self.op,
            flags: &self.flags,
            start_bytes: &self.start_bytes,
            len_bytes: &self.len_bytes,
            queue_ns: &self.queue_ns,
            device_ns: &self.device_ns,
            pid: &self.pid,
            tid: &self.tid,
            comm: &self.comm,
        }
    }
}

fn take<T: Copy>(to: &mut Vec<T>, column: &[T], rows: &[u32]) {
    to.clear();
    if !column.is_empty() {
        to.extend(rows.iter().map(|&row| column[row as usize]));
    }
}
