//! From records of the kernel to batches of events: numbers become names.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use plumb_geometry::SmallSort;
use plumb_trace::{Batch, DeviceId, Event, NameId, Names, Op, flags};

use super::abi::Record;
use crate::devices::name_of;

/// Most commands that are kept apart; those of further ones are unknown.
const COMMS_MAX: usize = 1 << 16;

/// Makes batches. Its knowledge of devices and commands stays valid from one batch to the next.
#[derive(Default)]
pub struct Batches {
    names: Names,
    shared: Arc<Names>,
    devices: BTreeMap<(u32, u32), DeviceId>,
    /// The last one asked for, which mostly is the next one too.
    device: Option<((u32, u32), DeviceId)>,
    comms: HashMap<[u8; 16], NameId>,
    comm: ([u8; 16], NameId),
}

impl Batches {
    /// Puts records into a batch, which is emptied first.
    pub fn fill(&mut self, records: &[Record], batch: &mut Batch) {
        batch.clear();
        let known = (self.devices.len(), self.comms.len());
        for record in records {
            let event = self.event(record);
            batch.push(&event);
        }
        if known != (self.devices.len(), self.comms.len()) {
            self.shared = Arc::new(self.names.clone());
        }
        batch.names = Arc::clone(&self.shared);
    }

    /// Whether commands were met for which there was no room.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.comms.len() >= COMMS_MAX
    }

    fn event(&mut self, record: &Record) -> Event {
        let time = |ns: Option<u64>| ns.and_then(|ns| i64::try_from(ns).ok());
        Event {
            time_ns: record.issued_ns.cast_signed(),
            device: self.device(record),
            layer: record.layer,
            op: Op::from_code(record.op_flags as u8).unwrap_or(Op::Other),
            flags: flags_of(record),
            start_bytes: record.start_bytes(),
            len_bytes: u64::from(record.len_bytes),
            queue_ns: time(record.queue_ns),
            device_ns: time(record.device_ns),
            pid: (record.tgid > 0).then_some(record.tgid.cast_signed()),
            tid: (record.thread > 0).then_some(record.thread.cast_signed()),
            comm: self.comm(record.comm),
            cgroup: (record.cgroup > 0).then_some(record.cgroup.cast_signed()),
            file: 0,
        }
    }

    fn device(&mut self, record: &Record) -> DeviceId {
        let key = (record.disk, record.dev);
        match self.device {
            Some((last, id)) if last == key => return id,
            _ => {}
        }
        let id = match self.devices.get(&key) {
            Some(id) => *id,
            None => self.meet(key),
        };
        self.device = Some((key, id));
        id
    }

    /// A disk or a partition that was not seen before.
    fn meet(&mut self, (disk, dev): (u32, u32)) -> DeviceId {
        let known = name_of(disk);
        let id = self.names.device(&known.name);
        if let Some(device) = self.names.device_mut(id) {
            device.size_bytes = Some(known.size_bytes).filter(|&bytes| bytes > 0);
            device.logical_block_bytes = Some(known.logical_block_bytes).filter(|&bytes| bytes > 0);
            let part = name_of(dev);
            if part.is_partition && device.partitions.iter().all(|(name, _)| *name != part.name) {
                device.partitions.push((part.name, part.first_byte));
                device
                    .partitions
                    .small_sort_by_key(|(_, first_byte)| *first_byte);
            }
        }
        self.devices.insert((disk, dev), id);
        id
    }

    fn comm(&mut self, comm: [u8; 16]) -> NameId {
        if self.comm.0 == comm {
            return self.comm.1;
        }
        let id = match self.comms.get(&comm) {
            Some(id) => *id,
            None if self.is_full() => 0,
            None => {
                let len = comm
                    .iter()
                    .position(|&letter| letter == 0)
                    .unwrap_or(comm.len());
                let id = self.names.word(&String::from_utf8_lossy(&comm[..len]));
                self.comms.insert(comm, id);
                id
            }
        };
        self.comm = (comm, id);
        id
    }
}

fn flags_of(record: &Record) -> i32 {
    let failed = match record.error {
        Some(_) => flags::FAILED,
        None => 0,
    };
    (record.op_flags >> 8).cast_signed() | failed
}
