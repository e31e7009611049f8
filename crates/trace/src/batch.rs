//! Events in columns: the form in which all readers pass on their results.
//!
//! A batch holds some thousand events, small enough for the cache and large enough that calls cost nothing.
//! Positions are bytes; a block source multiplies its sectors, so that one column serves every layer.

use std::sync::Arc;

use crate::names::{DeviceId, NameId, Names};
use crate::op::{Layer, Op};

/// Stands for "unknown" in the time columns. No latency and no time of day takes this value.
pub const UNKNOWN_NS: i64 = i64::MIN;

/// Stands for "unknown" in the pid and tid columns.
pub const UNKNOWN_PID: i32 = i32::MIN;

/// How many events a reader puts into a batch before it hands it on.
pub const BATCH_EVENTS: usize = 4096;

/// One I/O as a row; [`Batch::push`] takes it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time of issue in ns of the source's clock.
    pub time_ns: i64,
    /// Device, see [`Names`].
    pub device: DeviceId,
    /// The layer that recorded it.
    pub layer: Layer,
    /// Its operation.
    pub op: Op,
    /// Bits of [`crate::op::flags`].
    pub flags: i32,
    /// First byte, in the address space of the device (of the file at `vfs`).
    pub start_bytes: u64,
    /// Length in bytes; 0 for a flush.
    pub len_bytes: u64,
    /// Insert to issue; `None` when the source does not tell.
    pub queue_ns: Option<i64>,
    /// Issue to complete; `None` when the source does not tell.
    pub device_ns: Option<i64>,
    /// Process; `None` when the source does not tell.
    pub pid: Option<i32>,
    /// Thread of the process, if the source has both; `None` also if [`Event::pid`] is that of the thread.
    pub tid: Option<i32>,
    /// Command of the process; 0 unknown.
    pub comm: NameId,
    /// Control group (inode of its v2 directory); `None` when the source does not tell.
    pub cgroup: Option<i64>,
    /// File; 0 unknown.
    pub file: NameId,
}

impl Event {
    /// An event with only the facts that every source has.
    #[must_use]
    pub fn new(
        time_ns: i64,
        device: DeviceId,
        layer: Layer,
        op: Op,
        start_bytes: u64,
        len_bytes: u64,
    ) -> Event {
        Event {
            time_ns,
            device,
            layer,
            op,
            flags: 0,
            start_bytes,
            len_bytes,
            queue_ns: None,
            device_ns: None,
            pid: None,
            tid: None,
            comm: 0,
            cgroup: None,
            file: 0,
        }
    }
}

/// The facts that every source has of an event of one layer.
#[derive(Clone, Copy, Debug)]
pub struct PlainEvent {
    /// Time of issue in ns of the source's clock.
    pub time_ns: i64,
    /// Device, see [`Names`].
    pub device: DeviceId,
    /// Its operation.
    pub op: Op,
    /// First byte.
    pub start_bytes: u64,
    /// Length in bytes.
    pub len_bytes: u64,
}

/// Columns of equal length, one entry an event. The optional ones ([`Batch::queue_ns`] and those after it)
/// may be empty instead, which means unknown throughout.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Time of issue, ns of the source's clock.
    pub time_ns: Vec<i64>,
    /// Device.
    pub device: Vec<DeviceId>,
    /// Layer.
    pub layer: Vec<Layer>,
    /// Operation.
    pub op: Vec<Op>,
    /// Bits of [`crate::op::flags`].
    pub flags: Vec<i32>,
    /// First byte.
    pub start_bytes: Vec<u64>,
    /// Length in bytes.
    pub len_bytes: Vec<u64>,
    /// Insert to issue, [`UNKNOWN_NS`] where unknown.
    pub queue_ns: Vec<i64>,
    /// Issue to complete, [`UNKNOWN_NS`] where unknown.
    pub device_ns: Vec<i64>,
    /// Process, [`UNKNOWN_PID`] where unknown.
    pub pid: Vec<i32>,
    /// Thread of the process, [`UNKNOWN_PID`] where unknown.
    pub tid: Vec<i32>,
    /// Command, 0 where unknown.
    pub comm: Vec<NameId>,
    /// Control group, [`UNKNOWN_NS`] where unknown.
    pub cgroup: Vec<i64>,
    /// File, 0 where unknown.
    pub file: Vec<NameId>,
    /// The meaning of the ids; as of the last event of this batch.
    pub names: Arc<Names>,
}

impl Batch {
    /// How many events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.time_ns.len()
    }

    /// Whether it has no events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.time_ns.is_empty()
    }

    /// Takes all events out and keeps the memory.
    pub fn clear(&mut self) {
        self.time_ns.clear();
        self.device.clear();
        self.layer.clear();
        self.op.clear();
        self.flags.clear();
        self.start_bytes.clear();
        self.len_bytes.clear();
        self.queue_ns.clear();
        self.device_ns.clear();
        self.pid.clear();
        self.tid.clear();
        self.comm.clear();
        self.cgroup.clear();
        self.file.clear();
    }

    /// Adds an event. An optional column stays absent until an event has a value for it.
    #[inline]
    pub fn push(&mut self, event: &Event) {
        let rows = self.len();
        push_known(&mut self.queue_ns, rows, event.queue_ns, UNKNOWN_NS);
        push_known(&mut self.device_ns, rows, event.device_ns, UNKNOWN_NS);
        push_known(&mut self.pid, rows, event.pid, UNKNOWN_PID);
        push_known(&mut self.tid, rows, event.tid, UNKNOWN_PID);
        push_known(
            &mut self.comm,
            rows,
            Some(event.comm).filter(|&id| id != 0),
            0,
        );
        push_known(&mut self.cgroup, rows, event.cgroup, UNKNOWN_NS);
        push_known(
            &mut self.file,
            rows,
            Some(event.file).filter(|&id| id != 0),
            0,
        );
        self.time_ns.push(event.time_ns);
        self.device.push(event.device);
        self.layer.push(event.layer);
        self.op.push(event.op);
        self.flags.push(event.flags);
        self.start_bytes.push(event.start_bytes);
        self.len_bytes.push(event.len_bytes);
    }

    /// Adds events without further facts, column by column.
    pub fn extend_plain(&mut self, layer: Layer, events: &[PlainEvent]) {
        self.time_ns
            .extend(events.iter().map(|event| event.time_ns));
        self.device.extend(events.iter().map(|event| event.device));
        self.op.extend(events.iter().map(|event| event.op));
        self.start_bytes
            .extend(events.iter().map(|event| event.start_bytes));
        self.len_bytes
            .extend(events.iter().map(|event| event.len_bytes));
        let rows = self.len();
        self.layer.resize(rows, layer);
        self.flags.resize(rows, 0);
        pad(&mut self.queue_ns, rows, UNKNOWN_NS);
        pad(&mut self.device_ns, rows, UNKNOWN_NS);
        pad(&mut self.pid, rows, UNKNOWN_PID);
        pad(&mut self.tid, rows, UNKNOWN_PID);
        pad(&mut self.comm, rows, 0);
        pad(&mut self.cgroup, rows, UNKNOWN_NS);
        pad(&mut self.file, rows, 0);
    }

    /// The event in a row. Panics when `row` is not below [`Batch::len`].
    #[must_use]
    pub fn event(&self, row: usize) -> Event {
        let known = |column: &[i64]| column.get(row).copied().filter(|&ns| ns != UNKNOWN_NS);
        Event {
            time_ns: self.time_ns[row],
            device: self.device[row],
            layer: self.layer[row],
            op: self.op[row],
            flags: self.flags[row],
            start_bytes: self.start_bytes[row],
            len_bytes: self.len_bytes[row],
            queue_ns: known(&self.queue_ns),
            device_ns: known(&self.device_ns),
            pid: self.pid.get(row).copied().filter(|&pid| pid != UNKNOWN_PID),
            tid: self.tid.get(row).copied().filter(|&tid| tid != UNKNOWN_PID),
            comm: self.comm.get(row).copied().unwrap_or(0),
            cgroup: known(&self.cgroup),
            file: self.file.get(row).copied().unwrap_or(0),
        }
    }

    /// All events, in order.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        (0..self.len()).map(|row| self.event(row))
    }

    /// Whether the times never go back.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        self.time_ns.is_sorted()
    }

    /// Appends rows of this batch to another one, which keeps its names.
    pub fn copy_rows(&self, rows: std::ops::Range<usize>, to: &mut Batch) {
        for row in rows {
            to.push(&self.event(row));
        }
    }

    /// Appends all events of another batch, column by column; this one keeps its names.
    pub fn append(&mut self, from: &Batch) {
        let rows = (self.len(), from.len());
        append_column(&mut self.queue_ns, &from.queue_ns, rows, UNKNOWN_NS);
        append_column(&mut self.device_ns, &from.device_ns, rows, UNKNOWN_NS);
        append_column(&mut self.pid, &from.pid, rows, UNKNOWN_PID);
        append_column(&mut self.tid, &from.tid, rows, UNKNOWN_PID);
        append_column(&mut self.comm, &from.comm, rows, 0);
        append_column(&mut self.cgroup, &from.cgroup, rows, UNKNOWN_NS);
        append_column(&mut self.file, &from.file, rows, 0);
        self.time_ns.extend_from_slice(&from.time_ns);
        self.device.extend_from_slice(&from.device);
        self.layer.extend_from_slice(&from.layer);
        self.op.extend_from_slice(&from.op);
        self.flags.extend_from_slice(&from.flags);
        self.start_bytes.extend_from_slice(&from.start_bytes);
        self.len_bytes.extend_from_slice(&from.len_bytes);
    }

    /// Replaces all events of another batch, and its names, by rows of this one. Panics when a row is not below
    /// [`Batch::len`].
    pub fn pick_rows(&self, rows: &[u32], to: &mut Batch) {
        pick_rows(&self.time_ns, rows, &mut to.time_ns);
        pick_rows(&self.device, rows, &mut to.device);
        pick_rows(&self.layer, rows, &mut to.layer);
        pick_rows(&self.op, rows, &mut to.op);
        pick_rows(&self.flags, rows, &mut to.flags);
        pick_rows(&self.start_bytes, rows, &mut to.start_bytes);
        pick_rows(&self.len_bytes, rows, &mut to.len_bytes);
        pick_rows(&self.queue_ns, rows, &mut to.queue_ns);
        pick_rows(&self.device_ns, rows, &mut to.device_ns);
        pick_rows(&self.pid, rows, &mut to.pid);
        pick_rows(&self.tid, rows, &mut to.tid);
        pick_rows(&self.comm, rows, &mut to.comm);
        pick_rows(&self.cgroup, rows, &mut to.cgroup);
        pick_rows(&self.file, rows, &mut to.file);
        to.names = Arc::clone(&self.names);
    }

    /// Keeps the rows for which `keep` says so; the order stays.
    pub fn retain(&mut self, mut keep: impl FnMut(&Batch, usize) -> bool) {
        let rows: Vec<bool> = (0..self.len()).map(|row| keep(self, row)).collect();
        if rows.iter().all(|&kept| kept) {
            return;
        }
        retain_rows(&mut self.time_ns, &rows);
        retain_rows(&mut self.device, &rows);
        retain_rows(&mut self.layer, &rows);
        retain_rows(&mut self.op, &rows);
        retain_rows(&mut self.flags, &rows);
        retain_rows(&mut self.start_bytes, &rows);
        retain_rows(&mut self.len_bytes, &rows);
        retain_rows(&mut self.queue_ns, &rows);
        retain_rows(&mut self.device_ns, &rows);
        retain_rows(&mut self.pid, &rows);
        retain_rows(&mut self.tid, &rows);
        retain_rows(&mut self.comm, &rows);
        retain_rows(&mut self.cgroup, &rows);
        retain_rows(&mut self.file, &rows);
    }
}

/// Appends to a column that may be absent, which has `rows` rows otherwise.
#[inline]
fn push_known<T: Copy>(column: &mut Vec<T>, rows: usize, value: Option<T>, unknown: T) {
    match value {
        Some(value) => {
            if column.len() != rows {
                column.resize(rows, unknown);
            }
            column.push(value);
        }
        None if column.is_empty() => {}
        None => column.push(unknown),
    }
}

/// Makes the new rows of a column unknown; an absent one stays absent.
fn pad<T: Copy>(column: &mut Vec<T>, rows: usize, unknown: T) {
    if !column.is_empty() {
        column.resize(rows, unknown);
    }
}

/// Appends to a column that may be absent, as the other may: rows of a column that is absent are unknown.
fn append_column<T: Copy>(to: &mut Vec<T>, from: &[T], rows: (usize, usize), unknown: T) {
    let (before, added) = rows;
    if to.is_empty() && from.is_empty() {
        return;
    }
    to.resize(before, unknown);
    to.extend_from_slice(from);
    to.resize(before + added, unknown);
}

fn pick_rows<T: Copy>(column: &[T], rows: &[u32], to: &mut Vec<T>) {
    to.clear();
    if !column.is_empty() {
        to.extend(rows.iter().map(|&row| column[row as usize]));
    }
}

fn retain_rows<T>(column: &mut Vec<T>, rows: &[bool]) {
    let mut row = 0;
    column.retain(|_| {
        row += 1;
        rows[row - 1]
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_comes_back_as_it_went_in() {
        let mut batch = Batch::default();
        let mut event = Event::new(-5, 2, Layer::Bio, Op::Write, 512, 1024);
        batch.push(&event);
        event.device_ns = Some(7);
        event.pid = Some(0);
        event.comm = 3;
        batch.push(&event);
        assert_eq!(batch.event(1), event);
        assert_eq!(batch.event(0).device_ns, None);
        assert!(batch.queue_ns.is_empty() && batch.file.is_empty());
        event.pid = None;
        batch.push(&event);
        assert_eq!(batch.event(2), event);
        assert_eq!(batch.pid, [UNKNOWN_PID, 0, UNKNOWN_PID]);
        batch.retain(|batch, row| batch.device_ns[row] == 7 && batch.pid[row] == UNKNOWN_PID);
        assert_eq!(batch.events().collect::<Vec<_>>(), [event]);
    }
}
