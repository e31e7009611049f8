//! The meaning of records in sequence: I/O, names of processes, the time of day, loss.

use rustc_hash::FxHashMap;

use super::merge::MergedRecord;
use super::record::{LETTERS, Note, RawRecord, remap_source};
use super::sequence::Sequences;
use super::shape::RecordShape;
use crate::batch::BATCH_EVENTS;
use crate::blk::{Action, BlockEvents, BlockRecord};
use crate::error::shown;
use crate::names::{DeviceId, NameId, Names};
use crate::number::parse_u64;
use crate::source::{Clock, SourceInfo};
use crate::text::Sink;

/// Turns records into I/O.
pub struct Interpreter {
    /// Makes I/O from records.
    pub events: BlockEvents,
    shape: RecordShape,
    devices: Cached<DeviceId>,
    comms: Cached<NameId>,
    sequences: Sequences,
    records: u64,
    by_action: [u64; LETTERS.len()],
    passthrough: u64,
    notes: [u64; 4],
    of_other_cpu: u64,
    last_ns: i64,
    back_in_time: u64,
    said_lost: u64,
}

impl Interpreter {
    /// An interpreter that makes I/O in `events`.
    #[must_use]
    pub fn new(events: BlockEvents, shape: RecordShape) -> Interpreter {
        Interpreter {
            events,
            shape,
            devices: Cached::default(),
            comms: Cached::default(),
            sequences: Sequences::default(),
            records: 0,
            by_action: [0; LETTERS.len()],
            passthrough: 0,
            notes: [0; 4],
            of_other_cpu: 0,
            last_ns: 0,
            back_in_time: 0,
            said_lost: 0,
        }
    }

    /// Takes a record in; I/O that are finished by it go into the sink's batch.
    #[inline]
    pub fn record(&mut self, seen: &MergedRecord<'_>, sink: &mut Sink) {
        let record = &seen.record;
        self.records += 1;
        self.of_other_cpu += u64::from(seen.file_cpu.is_some_and(|cpu| cpu != record.cpu));
        if let Some(note) = record.note() {
            return self.note(note, seen, sink);
        }
        self.back_in_time += u64::from(record.time_ns < self.last_ns);
        self.last_ns = record.time_ns;
        self.by_action[record.action_index()] += 1;
        if self.sequences.step(record) {
            self.events.lost_some();
        }
        if record.is_passthrough() {
            self.passthrough += 1;
            return;
        }
        let action = record.kind();
        if action != Action::Other {
            self.io(action, seen, sink);
        }
    }

    fn io(&mut self, action: Action, seen: &MergedRecord<'_>, sink: &mut Sink) {
        let raw = &seen.record;
        let (op, flags) = raw.op_and_flags();
        let (cgroup, data) = raw.split_cgroup(self.shape, seen.data);
        let record = BlockRecord {
            action,
            time_ns: raw.time_ns,
            device: self.device(raw.device, &mut sink.names),
            sector: raw.sector,
            len_bytes: u64::from(raw.len_bytes),
            op,
            flags,
            pid: i32::try_from(raw.pid).ok(),
            comm: self.comms.get(raw.pid).unwrap_or(0),
            cgroup,
            failed: action == Action::Complete && raw.error != 0,
        };
        if action == Action::Remap {
            if let Some((from, sector)) = remap_source(data) {
                let from = self.device(from, &mut sink.names);
                self.events.remap(from, sector, &record, &mut sink.names);
            }
            return;
        }
        self.events.accept(&record, &mut sink.info);
        self.events
            .drain(&mut sink.batch, 2 * BATCH_EVENTS, &mut sink.info);
    }

    #[inline]
    fn device(&mut self, device: u32, names: &mut Names) -> DeviceId {
        if let Some(id) = self.devices.get(device) {
            return id;
        }
        let (major, minor) = RawRecord::major_minor(device);
        let id = names.device(&format!("{major},{minor}"));
        self.devices.insert(device, id);
        id
    }

    fn note(&mut self, note: Note, seen: &MergedRecord<'_>, sink: &mut Sink) {
        let (_, data) = seen.record.split_cgroup(self.shape, seen.data);
        let text = data.split(|&byte| byte == 0).next().unwrap_or_default();
        let kind = match note {
            Note::Process => {
                let id = sink.names.word(&String::from_utf8_lossy(text));
                self.comms.insert(seen.record.pid, id);
                0
            }
            Note::Timestamp => {
                self.time_of_day(&seen.record, seen.data, &mut sink.info);
                1
            }
            Note::Message => {
                self.message(text, &mut sink.info);
                2
            }
            Note::Other => 3,
        };
        self.notes[kind] += 1;
    }

    /// Learns from a note of the time of day when time 0 was.
    pub fn time_of_day(&self, record: &RawRecord, data: &[u8], info: &mut SourceInfo) {
        let (_, data) = record.split_cgroup(self.shape, data);
        if info.clock == Clock::Start {
            // Times of notes still count from boot there, those of I/O no more.
            return info
                .note("the time of day is not known, since blkparse has made the times relative");
        }
        let word = |at: usize| {
            data.get(at..)?
                .first_chunk()
                .map(|bytes| i64::from(self.shape.u32(*bytes)))
        };
        if let (Some(seconds), Some(ns @ 0..1_000_000_000)) = (word(0), word(4)) {
            let unix_ns = seconds * 1_000_000_000 + ns;
            info.unix_ns_at_zero = info.unix_ns_at_zero.or(unix_ns.checked_sub(record.time_ns));
        } else {
            info.note(format!(
                "a note of the time of day holds {}, and was passed over",
                shown(data)
            ));
        }
    }

    /// A message of dropped events counts as that many lost; all others are of no use here.
    fn message(&mut self, text: &[u8], info: &mut SourceInfo) {
        if memchr::memmem::find(text, b"dropped").is_none() {
            return;
        }
        let number = text
            .split(|byte| !byte.is_ascii_digit())
            .find_map(parse_u64);
        self.said_lost = self.said_lost.saturating_add(number.unwrap_or(1));
        self.events.lost_some();
        info.note(format!("the recording says {}", shown(text)));
    }

    /// Adds the counts to the facts about the source.
    pub fn settle(&self, info: &mut SourceInfo) {
        info.counts.records = self.records;
        info.counts.lost = self.sequences.lost.saturating_add(self.said_lost);
        info.counts.damaged += self.sequences.damaged;
        let letters = LETTERS.iter().zip(self.by_action);
        let notes = ["process", "timestamp", "message", "note"]
            .iter()
            .zip(self.notes);
        let all = letters
            .chain(notes)
            .chain([(&"passthrough", self.passthrough)]);
        info.tallies.extend(
            all.filter(|(_, count)| *count > 0)
                .map(|(name, count)| (*name, count)),
        );
    }

    /// Adds facts that are only known at the end.
    pub fn end(&self, info: &mut SourceInfo) {
        let mut say = |count: u64, what: &str| {
            if count > 0 {
                info.note(format!("{what}: {count}"));
            }
        };
        say(
            self.of_other_cpu,
            "records that name another CPU than their file does",
        );
        say(
            self.back_in_time,
            "records earlier than the one before (merge a live stream of blktrace with `blkparse -d` first)",
        );
        say(
            self.sequences.back,
            "times that sequence numbers go back, as if recordings had been joined",
        );
        say(
            self.passthrough,
            "commands that applications sent themselves, which are no I/O here",
        );
        say(self.by_action[0], "records of an unknown action");
    }
}

/// Ids by number, with the last answer at hand.
#[derive(Default)]
struct Cached<T> {
    ids: FxHashMap<u32, T>,
    last: Option<(u32, T)>,
}

impl<T: Copy> Cached<T> {
    #[inline]
    fn get(&mut self, number: u32) -> Option<T> {
        if let Some((last, id)) = self.last
            && last == number
        {
            return Some(id);
        }
        let id = *self.ids.get(&number)?;
        self.last = Some((number, id));
        Some(id)
    }

    fn insert(&mut self, number: u32, id: T) {
        self.ids.insert(number, id);
        self.last = Some((number, id));
    }
}
