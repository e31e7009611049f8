//! One disk: its events become I/O, and those its profile, as the events of a trace would.

use std::collections::BTreeMap;
use std::sync::Arc;

use plumb_model::result::watch::Misses;
use plumb_profile::ProfileSet;
use plumb_profile::collector::{Collector, Settings};
use plumb_trace::blk::{Action, BlockEvents, BlockRecord, Present};
use plumb_trace::{Batch, Clock, Layer, LayerChoice, Names, Op, SourceInfo};

use super::event::{Event, EventKind};
use super::open_bios::OpenBios;
use super::senders::{Processes, Senders, comm_text};
use crate::devices::{Device, name_of, partitions_of};
use crate::filter::Filter;
use crate::reading::{Process, Reading};

/// Most commands that are kept apart; those of further ones are unknown.
const COMMS_MAX: usize = 1 << 16;
const BATCH_EVENTS: usize = 4096;
/// I/O in flight for longer hold up no later ones.
const HANGING_NS: u64 = 5_000_000_000;
/// I/O in flight for longer have lost their end.
const IN_FLIGHT_NS_MAX: u64 = 30_000_000_000;

/// A disk that is watched.
pub(super) struct TracedDisk {
    dev: u32,
    name: String,
    layer: Layer,
    tables: Settings,
    events: BlockEvents,
    info: SourceInfo,
    collector: Collector,
    names: Names,
    shared: Arc<Names>,
    are_names_new: bool,
    batch: Batch,
    /// Partitions by number.
    partitions: Vec<(u32, Device)>,
    bios: OpenBios,
    senders: Senders,
    /// Counted here; others are in `info` and `events`.
    misses: Misses,
    of_unknown_sender: u64,
    told: Told,
}

/// Total counts at the last report.
#[derive(Default)]
struct Told {
    partial_completions: u64,
    unmatched_issues: u64,
    unmatched_completions: u64,
}

impl TracedDisk {
    pub(super) fn new(dev: u32, layer: Layer, tables: &Settings) -> TracedDisk {
        let name = name_of(dev).name;
        let present = Present {
            queues: layer == Layer::Bio,
            issues: layer == Layer::Request,
            completions: true,
        };
        let mut info = SourceInfo::default();
        // A modulus that a table cannot have is none of a reading by programs either.
        let collector = Collector::new(tables).or_else(|_| Collector::new(&Settings::default()));
        let mut collector =
            collector.unwrap_or_else(|_| unreachable!("the usual modulus is one of a table"));
        collector.set_clock(Clock::Boot);
        let mut names = Names::default();
        names.device(&name);
        let mut disk = TracedDisk {
            dev,
            layer,
            tables: tables.clone(),
            events: BlockEvents::new(present, LayerChoice::Only(layer), None, &mut info),
            info,
            collector,
            names,
            shared: Arc::default(),
            are_names_new: true,
            batch: Batch::default(),
            partitions: Vec::new(),
            bios: OpenBios::default(),
            senders: Senders::default(),
            misses: Misses::default(),
            of_unknown_sender: 0,
            told: Told::default(),
            name,
        };
        disk.look();
        disk
    }

    /// Looks at its size and partitions, which may have changed.
    fn look(&mut self) {
        let found = name_of(self.dev);
        self.partitions = partitions_of(self.dev);
        let Some(device) = self.names.device_mut(0) else {
            return;
        };
        let before = device.clone();
        device.size_bytes = Some(found.size_bytes).filter(|&bytes| bytes > 0);
        device.logical_block_bytes = Some(found.logical_block_bytes).filter(|&bytes| bytes > 0);
        let places = self
            .partitions
            .iter()
            .map(|(_, part)| (part.name.clone(), part.first_byte));
        device.partitions = places.collect();
        self.are_names_new |= *device != before;
    }

    pub(super) fn accept(&mut self, event: &Event, filter: &Filter, processes: &mut Processes) {
        let is_wanted = filter.ops.is_empty() || filter.ops.contains(&event.op);
        if event.is_passthrough || !is_wanted && event.kind != EventKind::QueueBio {
            return;
        }
        match event.kind {
            EventKind::QueueBio => self.queue(event, is_wanted, filter, processes),
            EventKind::Split => self.split(event, filter),
            EventKind::Issue => self.issue(event, filter),
            EventKind::Requeue if event.sectors > 0 => self.requeue(event, filter),
            EventKind::Complete if self.layer == Layer::Bio => self.complete_bios(event),
            EventKind::Complete if event.sectors > 0 => self.complete(event),
            EventKind::CompleteBio if self.layer == Layer::Bio => self.complete_bio(event),
            _ => {}
        }
        if self.batch.len() >= BATCH_EVENTS {
            self.fold();
        }
    }

    fn queue(
        &mut self,
        event: &Event,
        is_wanted: bool,
        filter: &Filter,
        processes: &mut Processes,
    ) {
        let event = &Event {
            dev: self.place_of(event),
            ..*event
        };
        let sender = self.senders.queue(event, filter, processes);
        if self.layer != Layer::Bio || !is_wanted || !sender.is_wanted {
            return;
        }
        if event.sectors == 0 {
            self.misses.flushes += u64::from(event.op == Op::Flush);
            return;
        }
        self.senders.begin(event, &sender);
        self.bios.insert(event);
        let pid = Some(sender.process.cast_signed());
        let comm = self.comm(&comm_text(sender.comm));
        self.take(&BlockRecord {
            pid,
            comm,
            ..record(Action::Queue, event)
        });
    }

    /// The partition of a bio, because most kernels name its disk alone.
    fn place_of(&self, event: &Event) -> u32 {
        let first_byte = event.sector.saturating_mul(512);
        let is_at = |part: &Device| {
            (part.first_byte..part.first_byte + part.size_bytes).contains(&first_byte)
        };
        let part = self
            .partitions
            .iter()
            .find(|(_, part)| event.sectors > 0 && is_at(part));
        part.map_or(event.dev, |(number, _)| *number)
    }

    fn split(&mut self, event: &Event, filter: &Filter) {
        let is_wanted = self
            .senders
            .at(event.sector)
            .is_some_and(|sender| sender.is_wanted);
        self.misses.splits += u64::from(is_wanted || !filter.is_by_sender());
        self.senders.split(event.sector, event.rest_sector);
    }

    fn issue(&mut self, event: &Event, filter: &Filter) {
        if self.layer != Layer::Request {
            return;
        }
        if event.sectors == 0 {
            // Whose it is nobody knows.
            self.misses.flushes += u64::from(!filter.is_by_sender());
            return;
        }
        let sender = self.senders.at(event.sector);
        self.of_unknown_sender += u64::from(sender.is_none());
        if filter.is_by_sender() && !sender.is_some_and(|sender| sender.is_wanted) {
            return;
        }
        let mut issued = record(Action::Issue, event);
        if let Some(sender) = sender {
            self.senders.begin(event, &sender);
            issued.pid = Some(sender.process.cast_signed());
            issued.comm = self.comm(&comm_text(sender.comm));
        }
        self.take(&issued);
    }

    fn requeue(&mut self, event: &Event, filter: &Filter) {
        let is_wanted = self
            .senders
            .at(event.sector)
            .is_some_and(|sender| sender.is_wanted);
        if self.layer == Layer::Request && (is_wanted || !filter.is_by_sender()) {
            self.misses.requeues += 1;
            self.senders.back(event.sector);
            self.take(&record(Action::Requeue, event));
        }
    }

    fn complete(&mut self, event: &Event) {
        self.senders.end(event.sector);
        self.take(&record(Action::Complete, event));
    }

    /// Bios end with the request that has their end.
    fn complete_bios(&mut self, event: &Event) {
        for bio in self.bios.take_ending_within(event.sector, event.end()) {
            self.complete(&Event {
                sector: bio.sector,
                sectors: bio.sectors,
                op: bio.op,
                ..*event
            });
        }
    }

    /// Some drivers move a bio's beginning on to its end before they complete it.
    fn complete_bio(&mut self, event: &Event) {
        let bio = match event.sectors {
            0 => self.bios.take_ending_at(event.sector),
            _ => self.bios.take(event.sector, event.end()),
        };
        match bio {
            Some(bio) => self.complete(&Event {
                sector: bio.sector,
                sectors: bio.sectors,
                op: bio.op,
                ..*event
            }),
            None if event.sectors > 0 => self.complete(event),
            None => {}
        }
    }

    fn comm(&mut self, name: &str) -> u32 {
        if let Some(id) = self.names.find_word(name) {
            return id;
        }
        if self.names.word_count() >= COMMS_MAX {
            return 0;
        }
        self.are_names_new = true;
        self.names.word(name)
    }

    fn take(&mut self, record: &BlockRecord) {
        self.events.accept(record, &mut self.info);
        self.events
            .drain(&mut self.batch, BATCH_EVENTS, &mut self.info);
    }

    /// Adds I/O that have left the queue of those in flight to the profile.
    fn fold(&mut self) {
        if std::mem::take(&mut self.are_names_new) {
            self.shared = Arc::new(self.names.clone());
        }
        self.batch.names = Arc::clone(&self.shared);
        self.collector.fold(&self.batch);
        self.batch.clear();
    }

    /// Says that events were lost here.
    pub(super) fn lost_some(&mut self) {
        self.events.lost_some();
    }

    /// The activity since the last call. At the end I/O in flight count as well, without their latency.
    pub(super) fn read(&mut self, now_ns: u64, is_end: bool, filter: &Filter) -> Reading {
        self.look();
        self.events
            .give_up_before(now_ns.saturating_sub(HANGING_NS).cast_signed());
        while {
            self.events
                .drain(&mut self.batch, BATCH_EVENTS, &mut self.info);
            !self.batch.is_empty()
        } {
            self.fold();
        }
        let unmatched_issues = self.info.counts.unmatched_issues;
        while is_end && {
            self.events
                .drain_rest(&mut self.batch, BATCH_EVENTS, &mut self.info);
            !self.batch.is_empty()
        } {
            self.fold();
        }
        // These have not lost anything yet.
        self.info.counts.unmatched_issues = unmatched_issues;
        self.bios
            .forget_before(now_ns.saturating_sub(IN_FLIGHT_NS_MAX));
        let mut reading = Reading::default();
        self.add_profile(filter, &mut reading);
        self.add_processes(now_ns, &mut reading);
        reading.of_unknown_sender = std::mem::take(&mut self.of_unknown_sender);
        reading
    }

    fn add_profile(&mut self, filter: &Filter, reading: &mut Reading) {
        let misses = self.newly_missed(filter);
        reading.profiles = self.collector.cut();
        if reading.profiles.is_empty() && misses == Misses::default() {
            return;
        }
        let profile = entry(&mut reading.profiles, &self.name, self.layer, &self.tables);
        profile.losses.unmatched_issues = misses.unmatched_issues;
        profile.losses.unmatched_completions = misses.unmatched_completions;
        reading.misses.insert(self.name.clone(), misses);
    }

    fn newly_missed(&mut self, filter: &Filter) -> Misses {
        let (counts, told) = (&self.info.counts, &mut self.told);
        let newly = |now: u64, told: &mut u64| now.saturating_sub(std::mem::replace(told, now));
        let mut misses = std::mem::take(&mut self.misses);
        misses.partial_completions = newly(
            self.events.partial_completions(),
            &mut told.partial_completions,
        );
        misses.unmatched_issues = newly(counts.unmatched_issues, &mut told.unmatched_issues);
        let unmatched = newly(
            counts.unmatched_completions,
            &mut told.unmatched_completions,
        );
        // Those of others end here too, and cannot be distinguished.
        misses.unmatched_completions = if filter.is_by_sender() { 0 } else { unmatched };
        misses
    }

    fn add_processes(&mut self, now_ns: u64, reading: &mut Reading) {
        let (sent, of_unlisted_process) =
            self.senders.take(now_ns.saturating_sub(IN_FLIGHT_NS_MAX));
        reading.of_unlisted_process = of_unlisted_process;
        let mut names: BTreeMap<u32, String> = BTreeMap::new();
        for ((dev, pid), sent) in sent {
            let device = names
                .entry(dev)
                .or_insert_with(|| name_of(dev).name)
                .clone();
            reading.processes.push(Process {
                device,
                disk: self.name.clone(),
                pid,
                comm: comm_text(sent.comm),
                // Events name neither the cgroup nor the file of a page.
                cgroup: None,
                command_line: None,
                ios: sent.ios,
                written_back: 0,
                bytes: sent.bytes,
                threads: sent.threads.len() as u64,
                by_alignment: sent.by_alignment,
            });
        }
    }
}

/// The profile of a disk, new or there.
pub(super) fn entry<'a>(
    profiles: &'a mut ProfileSet,
    name: &str,
    layer: Layer,
    tables: &Settings,
) -> &'a mut plumb_profile::Profile {
    profiles.entry(name, layer, || tables.table().unwrap_or_default())
}

fn record(action: Action, event: &Event) -> BlockRecord {
    BlockRecord {
        action,
        time_ns: event.time_ns.cast_signed(),
        device: 0,
        sector: event.sector,
        len_bytes: event.len_bytes(),
        op: event.op,
        flags: event.flags,
        pid: None,
        comm: 0,
        cgroup: None,
        failed: event.failed,
    }
}
