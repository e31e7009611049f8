//! From the records of the kernel's block layer to I/O: which record is one I/O, and how long it took.
//!
//! Serves every source of such records: binary blktrace, the text of blkparse, ftrace and perf.
//! At the bio layer one I/O is one Q; at the request layer one D, ended by its C. A source that holds only
//! completions gives those, without latency. An issue waits in a ring until its completion has come, so that
//! events leave in issue order with their latency; the ring is bounded, and what leaves it without a latency
//! is counted.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::batch::{Batch, Event};
use crate::names::{DeviceId, NameId, Names};
use crate::op::{Layer, Op, flags};
use crate::reader::LayerChoice;
use crate::source::{Latency, SourceInfo};

/// Most issues that wait for their completion. At 300,000 I/O a second this is almost a second of I/O
/// behind a single one that hangs; a longer wait ends without a latency and is counted.
pub const WAITING_MAX: usize = 1 << 18;

/// How many records are looked at to find which layers a source holds.
pub const PEEK_RECORDS: usize = 1 << 16;

/// What a record of the block layer says happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A bio was queued.
    Queue,
    /// A request went into the scheduler.
    Insert,
    /// A request went to the driver.
    Issue,
    /// A request (or, on a driver without requests, a bio) completed.
    Complete,
    /// A request went back from the driver.
    Requeue,
    /// A partition's or stacked device's I/O was mapped to another device.
    Remap,
    /// Anything else: counted only.
    Other,
}

/// One record, as far as I/O are made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What happened.
    pub action: Action,
    /// When, ns.
    pub time_ns: i64,
    /// Device.
    pub device: DeviceId,
    /// First sector; meaningless without a length.
    pub sector: u64,
    /// Length in bytes.
    pub len_bytes: u64,
    /// Operation.
    pub op: Op,
    /// Bits of [`flags`].
    pub flags: i32,
    /// Process, where known.
    pub pid: Option<i32>,
    /// Command, 0 unknown.
    pub comm: NameId,
    /// Whether a completion reports an error.
    pub failed: bool,
}

/// What a source was found to hold, which decides what one I/O is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Present {
    /// Q was seen.
    pub queues: bool,
    /// D was seen.
    pub issues: bool,
    /// C was seen.
    pub completions: bool,
}

impl Present {
    /// Takes note of a record.
    pub fn saw(&mut self, action: Action) {
        match action {
            Action::Queue => self.queues = true,
            Action::Issue => self.issues = true,
            Action::Complete => self.completions = true,
            _ => {}
        }
    }

    /// Layers that the source holds. A source of completions alone counts as the request layer.
    #[must_use]
    pub fn layers(self) -> Vec<Layer> {
        let mut layers = Vec::new();
        if self.queues {
            layers.push(Layer::Bio);
        }
        if self.issues || (self.completions && !self.queues) {
            layers.push(Layer::Request);
        }
        layers
    }

    /// The lowest layer; the request layer when nothing was seen.
    #[must_use]
    pub fn lowest(self) -> Layer {
        self.layers().last().copied().unwrap_or(Layer::Request)
    }
}

#[derive(Clone, Copy)]
struct Waiting {
    event: Event,
    /// Bytes that have not completed yet; 0 once it is done.
    open_bytes: u64,
    done: bool,
}

/// What identifies an I/O between issue and completion.
type Key = (DeviceId, u64, bool);

/// Makes I/O of block-layer records.
pub struct BlockEvents {
    take_bio: bool,
    take_request: bool,
    from_completions: bool,
    /// The layer whose issues a C ends.
    completed_layer: Layer,
    timed: bool,
    waiting: VecDeque<Waiting>,
    first_waiting: u64,
    by_place: FxHashMap<Key, u64>,
    overdue: FxHashMap<Key, i64>,
    inserted: FxHashMap<Key, i64>,
    remaps: FxHashMap<(DeviceId, DeviceId), ()>,
}

impl BlockEvents {
    /// Decides, from what the source holds and what is wanted, what one I/O is; says so in `info`.
    ///
    /// `latency` is why latencies cannot be trusted, if they cannot.
    #[must_use]
    pub fn new(
        present: Present,
        choice: LayerChoice,
        latency: Option<String>,
        info: &mut SourceInfo,
    ) -> BlockEvents {
        let lowest = present.lowest();
        let takes = |layer| choice.takes(layer, lowest);
        for layer in present.layers() {
            info.saw_layer(layer);
        }
        let from_completions = !present.issues && !present.queues;
        let completed_layer = if present.issues || from_completions { Layer::Request } else { Layer::Bio };
        let timed = latency.is_none() && present.completions && !from_completions && takes(completed_layer);
        info.completions_only = from_completions && present.completions;
        if !timed {
            let reason = latency.unwrap_or_else(|| no_latency_reason(present, from_completions));
            info.latency = Latency::None(reason);
        }
        BlockEvents {
            take_bio: takes(Layer::Bio),
            take_request: takes(Layer::Request),
            from_completions,
            completed_layer,
            timed,
            waiting: VecDeque::new(),
            first_waiting: 0,
            by_place: FxHashMap::default(),
            overdue: FxHashMap::default(),
            inserted: FxHashMap::default(),
            remaps: FxHashMap::default(),
        }
    }

    /// Takes a record in. Events come out by [`BlockEvents::drain`].
    pub fn accept(&mut self, record: &Record, info: &mut SourceInfo) {
        match record.action {
            Action::Queue if self.take_bio => self.issue(record, Layer::Bio),
            Action::Issue if self.take_request => self.issue(record, Layer::Request),
            Action::Insert if self.take_request && self.inserted.len() < WAITING_MAX => {
                self.inserted.insert(key(record), record.time_ns);
            }
            Action::Complete if self.from_completions => {
                if self.take_request {
                    self.push(record, Layer::Request, None);
                }
            }
            Action::Complete if self.timed => self.complete(record, info),
            Action::Requeue if self.take_request => self.requeue(record),
            _ => {}
        }
    }

    /// Learns from a remap where a partition begins on its disk, and says what lies on what.
    pub fn remap(&mut self, from: DeviceId, from_sector: u64, record: &Record, names: &mut Names) {
        if self.remaps.insert((from, record.device), ()).is_some() {
            return;
        }
        let Some(name) = names.devices().get(from as usize).map(|device| device.name.clone()) else { return };
        let Some(start) = record.sector.checked_sub(from_sector).and_then(|sectors| sectors.checked_mul(512))
        else {
            return;
        };
        if let Some(disk) = names.device_mut(record.device) {
            // A stacked device maps its blocks to many places of a disk; a partition to one.
            disk.partitions.push((name, start));
            disk.partitions.sort_by_key(|partition| partition.1);
        }
    }

    /// Moves finished events into the batch, oldest first, until one still waits.
    pub fn drain(&mut self, batch: &mut Batch, most: usize, info: &mut SourceInfo) {
        while batch.len() < most {
            let Some(front) = self.waiting.front() else { return };
            if !front.done {
                if self.waiting.len() <= WAITING_MAX {
                    return;
                }
                self.give_up_front();
            }
            self.pop_front(batch, info);
        }
    }

    /// Moves everything into the batch that is left at the end of the source; call until nothing comes.
    pub fn drain_rest(&mut self, batch: &mut Batch, most: usize, info: &mut SourceInfo) {
        while batch.len() < most && !self.waiting.is_empty() {
            self.pop_front(batch, info);
        }
    }

    fn pop_front(&mut self, batch: &mut Batch, info: &mut SourceInfo) {
        if let Some(front) = self.waiting.pop_front() {
            self.first_waiting += 1;
            if !front.done {
                info.counts.unmatched_issues += 1;
            }
            batch.push(&front.event);
        }
    }

    fn give_up_front(&mut self) {
        let Some(front) = self.waiting.front() else { return };
        let key = (front.event.device, front.event.start_bytes / 512, front.event.op == Op::Flush);
        if self.by_place.get(&key) == Some(&self.first_waiting) {
            self.by_place.remove(&key);
            self.overdue.insert(key, front.event.time_ns);
        }
    }

    fn issue(&mut self, record: &Record, layer: Layer) {
        let awaited = self.timed && layer == self.completed_layer;
        let seq = self.first_waiting + self.waiting.len() as u64;
        let queue_ns = if layer == Layer::Request { self.inserted.remove(&key(record)) } else { None };
        self.push(record, layer, queue_ns.map(|inserted| record.time_ns.saturating_sub(inserted)));
        if awaited {
            if let Some(last) = self.waiting.back_mut() {
                last.done = false;
                last.open_bytes = record.len_bytes;
            }
            if let Some(before) = self.by_place.insert(key(record), seq) {
                self.supersede(before, seq);
            }
        }
    }

    /// Two issues of the same place: the first can no longer be told from the second.
    fn supersede(&mut self, before: u64, by: u64) {
        if before == by {
            return;
        }
        if let Some(index) = before.checked_sub(self.first_waiting)
            && let Some(old) = self.waiting.get_mut(usize::try_from(index).unwrap_or(usize::MAX))
        {
            old.open_bytes = 0;
        }
    }

    fn push(&mut self, record: &Record, layer: Layer, queue_ns: Option<i64>) {
        let has_extent = record.len_bytes > 0;
        let mut event = Event::new(
            record.time_ns,
            record.device,
            layer,
            record.op,
            if has_extent { record.sector.saturating_mul(512) } else { 0 },
            record.len_bytes,
        );
        event.flags = record.flags;
        event.queue_ns = queue_ns;
        event.pid = record.pid;
        event.comm = record.comm;
        if record.failed {
            event.flags |= flags::FAILED;
        }
        self.waiting.push_back(Waiting { event, open_bytes: 0, done: true });
    }

    fn complete(&mut self, record: &Record, info: &mut SourceInfo) {
        let key = key(record);
        let Some(&seq) = self.by_place.get(&key) else {
            match self.overdue.remove(&key) {
                Some(issued_ns) => {
                    info.counts.late_completions += 1;
                    let late_ns = record.time_ns.saturating_sub(issued_ns);
                    info.counts.late_ns_max = info.counts.late_ns_max.max(late_ns);
                }
                None => info.counts.unmatched_completions += 1,
            }
            return;
        };
        self.by_place.remove(&key);
        let index = usize::try_from(seq.wrapping_sub(self.first_waiting)).unwrap_or(usize::MAX);
        let Some(waiting) = self.waiting.get_mut(index) else { return };
        if record.len_bytes < waiting.open_bytes && record.len_bytes > 0 {
            // The rest of it completes later, under the sector at which it begins.
            waiting.open_bytes -= record.len_bytes;
            self.by_place.insert((key.0, key.1 + record.len_bytes / 512, key.2), seq);
            return;
        }
        waiting.done = true;
        waiting.event.device_ns = Some(record.time_ns.saturating_sub(waiting.event.time_ns).max(0));
        if record.failed {
            waiting.event.flags |= flags::FAILED;
        }
    }

    /// A requeued request is issued again under the same sector: the first issue is withdrawn.
    fn requeue(&mut self, record: &Record) {
        if let Some(seq) = self.by_place.remove(&key(record)) {
            let index = usize::try_from(seq.wrapping_sub(self.first_waiting)).unwrap_or(usize::MAX);
            if let Some(waiting) = self.waiting.get_mut(index) {
                waiting.done = true;
            }
        }
    }
}

fn key(record: &Record) -> Key {
    // A flush has no place of its own; the driver may report any sector for it.
    if record.op == Op::Flush || record.len_bytes == 0 {
        (record.device, 0, true)
    } else {
        (record.device, record.sector, false)
    }
}

fn no_latency_reason(present: Present, from_completions: bool) -> String {
    if from_completions && present.completions {
        "only completions were recorded".to_owned()
    } else if !present.completions {
        "no completions were recorded".to_owned()
    } else {
        "completions are those of another layer".to_owned()
    }
}
