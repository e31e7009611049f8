//! From the records of the kernel's block layer to I/O: the record that counts as one I/O, and its duration.
//!
//! Serves every source of such records: binary blktrace, the text of blkparse, ftrace and perf.
//! At the bio layer one I/O is one Q; at the request layer one D, ended by its C. A source that holds only
//! completions gives those, without latency. An issue waits in [`Pending`] until its completion has come.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use crate::batch::{Batch, Event};
use crate::error::Error;
use crate::names::{DeviceId, NameId, Names};
use crate::op::{Layer, Op, flags};
use crate::pending::{IoKey, Pending, Recent};
use crate::reader::LayerChoice;
use crate::source::{Latency, SourceInfo};

/// Number of records that are read to find the layers of a source.
pub const PEEK_RECORDS: usize = 1 << 16;

/// The event of a record of the block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A bio was queued.
    Queue,
    /// A request went into the scheduler.
    Insert,
    /// A bio was put before a request that waits in the scheduler, which now begins with it.
    FrontMerge,
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
pub struct BlockRecord {
    /// The event.
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
    /// Control group, where known.
    pub cgroup: Option<i64>,
    /// Whether a completion reports an error.
    pub failed: bool,
}

/// The content of a source, which decides about the record that counts as one I/O.
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

    /// Refuses a choice of a layer that is not there.
    ///
    /// # Errors
    /// [`Error::NoLayer`] when one was asked for that the source does not hold.
    pub fn check(self, choice: LayerChoice, path: &str) -> Result<(), Error> {
        match choice {
            LayerChoice::Only(asked) if !self.layers().contains(&asked) => {
                let present = self
                    .layers()
                    .iter()
                    .map(|layer| layer.word())
                    .collect::<Vec<_>>()
                    .join(", ");
                Err(Error::NoLayer {
                    path: path.to_owned(),
                    asked,
                    present,
                })
            }
            _ => Ok(()),
        }
    }

    /// The lowest layer; the request layer when nothing was seen.
    #[must_use]
    pub fn lowest(self) -> Layer {
        self.layers().last().copied().unwrap_or(Layer::Request)
    }
}

/// The start of a device on the one below it.
enum Remap {
    At(u64),
    /// At several places, so that it is no partition.
    Scattered,
}

/// Requests that went back from the driver. Issued again they are the same I/O, which counts once, by its last issue that
/// was seen; one that is not seen again counts by the issue that was.
#[derive(Default)]
struct Requeues {
    /// Issued I/O, if no completion is expected.
    issued: Recent,
    back: Recent,
}

/// Makes I/O of block-layer records.
pub struct BlockEvents {
    take_bio: bool,
    take_request: bool,
    from_completions: bool,
    /// The layer whose issues a C ends.
    completed_layer: Layer,
    timed: bool,
    pending: Pending,
    inserted: Recent,
    requeues: Requeues,
    remaps: FxHashMap<(DeviceId, DeviceId), Remap>,
}

impl BlockEvents {
    /// Decides, from the content of the source and the wish, about the record that counts as one I/O; records it in
    /// `info`.
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
        let completed_layer = if present.issues || from_completions {
            Layer::Request
        } else {
            Layer::Bio
        };
        let timed =
            latency.is_none() && present.completions && !from_completions && takes(completed_layer);
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
            pending: Pending::default(),
            inserted: Recent::default(),
            requeues: Requeues::default(),
            remaps: FxHashMap::default(),
        }
    }

    /// Takes a record in. Events come out by [`BlockEvents::drain`].
    #[inline]
    pub fn accept(&mut self, record: &BlockRecord, info: &mut SourceInfo) {
        match record.action {
            Action::Queue if self.take_bio => self.issue(record, Layer::Bio, None),
            Action::Issue if self.take_request => {
                let inserted = self.inserted.remove(key(record));
                if self.is_new(record) {
                    self.issue(record, Layer::Request, inserted);
                }
            }
            Action::Insert if self.take_request => {
                self.inserted.insert(key(record), record.time_ns)
            }
            Action::FrontMerge if self.take_request => self.front_merge(record),
            Action::Complete if self.from_completions && self.take_request => {
                // The task that a completion interrupts has nothing to do with the I/O.
                let record = BlockRecord {
                    pid: None,
                    comm: 0,
                    ..*record
                };
                self.pending.push(event(&record, Layer::Request));
            }
            Action::Complete if self.timed => {
                if record.len_bytes == 0 && !self.pending.awaits_empty(key(record)) {
                    // A bio that asked for a flush completes once more by itself, when its parts have.
                    info.tally("completion without length");
                    return;
                }
                let failed = if record.failed { flags::FAILED } else { 0 };
                let counts = &mut info.counts;
                self.pending.complete(
                    key(record),
                    record.len_bytes,
                    record.time_ns,
                    failed,
                    counts,
                );
            }
            Action::Requeue if self.take_request => self.requeue(record),
            _ => {}
        }
    }

    /// Records were lost here: open I/O may have completed unnoticed.
    pub fn lost_some(&mut self) {
        self.pending.doubt();
    }

    /// I/O that were issued before a time are passed on without latency from here on.
    pub fn give_up_before(&mut self, time_ns: i64) {
        self.pending.give_up_before(time_ns);
    }

    /// Completions of a part of an I/O so far.
    #[must_use]
    pub fn partial_completions(&self) -> u64 {
        self.pending.partial_completions()
    }

    fn requeue(&mut self, record: &BlockRecord) {
        let key = key(record);
        let is_known = if self.timed {
            self.pending.is_open(key)
        } else {
            self.requeues.issued.remove(key).is_some()
        };
        if is_known {
            self.requeues.back.insert(key, record.time_ns);
        }
    }

    /// Whether an issue is to be handed on: not when it was before it went back and came again.
    fn is_new(&mut self, record: &BlockRecord) -> bool {
        let key = key(record);
        if !self.timed {
            self.requeues.issued.insert(key, record.time_ns);
        }
        let is_again = self.requeues.back.remove(key).is_some();
        !is_again || (self.timed && self.pending.withdraw(key, record.len_bytes))
    }

    fn issue(&mut self, record: &BlockRecord, layer: Layer, inserted_ns: Option<i64>) {
        let mut event = event(record, layer);
        event.queue_ns = inserted_ns
            .and_then(|ns| record.time_ns.checked_sub(ns))
            .filter(|&ns| ns >= 0);
        if self.timed && layer == self.completed_layer {
            self.pending.push_open(event, key(record));
        } else {
            self.pending.push(event);
        }
    }

    /// The request that was inserted at the end of this bio now begins where the bio does.
    fn front_merge(&mut self, record: &BlockRecord) {
        let behind = record.sector.wrapping_add(record.len_bytes / 512);
        if let Some(ns) = self.inserted.remove(IoKey::place(record.device, behind)) {
            self.inserted.insert(key(record), ns);
        }
    }

    /// Learns from a remap where a partition begins on its disk.
    ///
    /// A stacked device has another driver, and so another major number, than its target, and it may map to many
    /// places; a partition has that of its disk, and maps to one.
    pub fn remap(
        &mut self,
        from: DeviceId,
        from_sector: u64,
        record: &BlockRecord,
        names: &mut Names,
    ) {
        let Some(sectors) = record
            .sector
            .checked_sub(from_sector)
            .filter(|_| from != record.device)
        else {
            return;
        };
        let start = sectors.saturating_mul(512);
        match self.remaps.entry((from, record.device)) {
            Entry::Occupied(mut known) => {
                if matches!(known.get(), Remap::At(at) if *at != start) {
                    known.insert(Remap::Scattered);
                    set_partition(names, from, record.device, None);
                }
            }
            Entry::Vacant(unknown) => {
                unknown.insert(Remap::At(start));
                set_partition(names, from, record.device, Some(start));
            }
        }
    }

    /// Moves finished events into the batch, oldest first, until one still waits.
    #[inline]
    pub fn drain(&mut self, batch: &mut Batch, most: usize, info: &mut SourceInfo) {
        self.pending.drain(batch, most, &mut info.counts);
    }

    /// Moves everything into the batch that is left at the end of the source; call until nothing comes.
    pub fn drain_rest(&mut self, batch: &mut Batch, most: usize, info: &mut SourceInfo) {
        self.pending.drain_rest(batch, most, &mut info.counts);
    }
}

fn event(record: &BlockRecord, layer: Layer) -> Event {
    let start = if record.len_bytes > 0 {
        record.sector.saturating_mul(512)
    } else {
        0
    };
    let mut event = Event::new(
        record.time_ns,
        record.device,
        layer,
        record.op,
        start,
        record.len_bytes,
    );
    event.flags = record.flags | if record.failed { flags::FAILED } else { 0 };
    event.pid = record.pid;
    event.comm = record.comm;
    event.cgroup = record.cgroup;
    event
}

fn key(record: &BlockRecord) -> IoKey {
    if record.op == Op::Flush {
        IoKey::flush(record.device)
    } else {
        IoKey::place(record.device, record.sector)
    }
}

/// Puts a partition of a disk in its place among the others, or takes it away.
fn set_partition(names: &mut Names, from: DeviceId, disk: DeviceId, start: Option<u64>) {
    let name_of = |id: DeviceId| {
        names
            .devices()
            .get(id as usize)
            .map(|device| device.name.clone())
    };
    let (Some(from), Some(disk_name)) = (name_of(from), name_of(disk)) else {
        return;
    };
    if major(&from) != major(&disk_name) {
        return;
    }
    let Some(disk) = names.device_mut(disk) else {
        return;
    };
    disk.partitions.retain(|(name, _)| *name != from);
    disk.partitions.extend(start.map(|start| (from, start)));
    disk.partitions.sort_by_key(|partition| partition.1);
}

fn major(device: &str) -> &str {
    device.split_once(',').map_or(device, |(major, _)| major)
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
