//! From an event to the records that the kernel would have left of it.
//!
//! A plain request leaves Q, G, I, D and C. An event without `queue_ns` leaves no Q, G and I, one without `device_ns`
//! no C: a reader must not invent unseen events. [`Shapes`] adds rarer shapes.
//!
//! The D and C of every shape but a split have the event's own start, length and times, so that known facts about a
//! workload stay true at the request layer.

use super::blkrecord::{BlkAction, BlkRecord, Pdu, category};
use super::reorder::Reorder;
pub use super::shapes::Shapes;
use super::{WriteError, check_order, fit_u32};
use crate::event::{MAX_QUEUE_NS, SynthEvent, SynthOp, linux_dev};
use std::collections::HashSet;

/// Queue comes this long before insert; the steps between are inside.
const QUEUE_LEAD_NS: i64 = 300;

/// A piece of an event: sector and bytes.
type EventPiece = (u64, u32);

/// Makes records in order of time.
pub struct Lifecycle {
    shapes: Shapes,
    waiting: Reorder<BlkRecord>,
    named: HashSet<u32>,
    events: u64,
    previous_ns: i64,
}

impl Lifecycle {
    /// Nothing yet but the timestamp note.
    #[must_use]
    pub fn new(shapes: Shapes) -> Self {
        let mut made = Self {
            shapes,
            waiting: Reorder::default(),
            named: HashSet::new(),
            events: 0,
            previous_ns: i64::MIN,
        };
        if made.shapes.notes {
            // The note is this long before the workload's zero, and states the clock of its own instant.
            let nanos = (1_000_000_000 - MAX_QUEUE_NS - QUEUE_LEAD_NS) as u32;
            let clock = Pdu::Clock {
                seconds: made.shapes.wall_seconds - 1,
                nanos,
            };
            let note = made.note(BlkAction::NoteTimestamp, 0, 0, clock);
            made.waiting.push(i64::MIN, note);
        }
        made
    }

    /// Takes an event and hands on all records that nothing can come before any more.
    ///
    /// # Errors
    /// Of the event's order or size, and of `emit`.
    pub fn event(
        &mut self,
        event: &SynthEvent,
        emit: &mut impl FnMut(BlkRecord) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        check_order(event, &mut self.previous_ns)?;
        let whole = (event.sector(), fit_u32(event, "length", event.len_bytes)?);
        self.events += 1;
        self.add(event, whole);
        let settled = event.time_ns.saturating_sub(MAX_QUEUE_NS + QUEUE_LEAD_NS);
        while let Some((time_ns, record)) = self.waiting.pop_before(settled) {
            emit(self.at(time_ns, record))?;
        }
        Ok(())
    }

    /// Hands on the rest.
    ///
    /// # Errors
    /// Of `emit`.
    pub fn finish(
        &mut self,
        emit: &mut impl FnMut(BlkRecord) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        while let Some((time_ns, record)) = self.waiting.pop() {
            emit(self.at(time_ns, record))?;
        }
        Ok(())
    }

    fn at(&self, time_ns: i64, mut record: BlkRecord) -> BlkRecord {
        // The first note alone precedes all times; it belongs to the workload's zero less the lead.
        let time_ns = time_ns.max(-MAX_QUEUE_NS - QUEUE_LEAD_NS);
        record.time_ns = self.shapes.origin_ns.saturating_add_signed(time_ns);
        record
    }

    fn due(&self, every: u64) -> bool {
        every != 0 && self.events.is_multiple_of(every)
    }

    fn add(&mut self, event: &SynthEvent, whole: EventPiece) {
        let splittable = event.sectors() >= 2;
        if event.queue_ns.is_some() {
            self.add_arrival(event, whole);
        }
        if splittable && self.due(self.shapes.split_every) {
            let (front, back) = halves(whole);
            self.add_split(event, front, back);
        } else {
            if event.queue_ns.is_some() {
                let merged = splittable && self.due(self.shapes.merge_every);
                self.add_insert(event, whole, merged);
            }
            self.add_issue(event, whole, self.due(self.shapes.requeue_every));
        }
        if self.due(self.shapes.message_every) {
            let text = self.note(
                BlkAction::NoteMessage,
                event.cpu,
                linux_dev(event.device),
                Pdu::Text("synthetic message"),
            );
            self.waiting.push(event.time_ns, text);
        }
    }

    /// The note of the process, and the remap.
    fn add_arrival(&mut self, event: &SynthEvent, whole: EventPiece) {
        let queued_ns = event.insert_ns() - QUEUE_LEAD_NS;
        if self.shapes.notes && self.named.insert(event.pid) {
            let mut note = self.note(BlkAction::NoteProcess, event.cpu, 0, Pdu::Comm(event.comm));
            note.pid = event.pid;
            note.comm = event.comm;
            self.waiting.push(queued_ns, note);
        }
        let Some(start) = self.shapes.partition_start_sectors else {
            return;
        };
        if let Some(from_sector) = whole.0.checked_sub(start).filter(|_| whole.1 > 0) {
            let to_dev = linux_dev(event.device);
            let mut remap = self.record(event, BlkAction::Remap, whole);
            remap.pdu = Pdu::Remap {
                from_dev: to_dev + 1,
                to_dev,
                from_sector,
            };
            self.waiting.push(queued_ns, remap);
        }
    }

    /// Q, G and I; of a merged request the second bio's Q and M between.
    fn add_insert(&mut self, event: &SynthEvent, whole: EventPiece, merged: bool) {
        let (front, back) = if merged {
            halves(whole)
        } else {
            (whole, whole)
        };
        let insert_ns = event.insert_ns();
        self.push(insert_ns - QUEUE_LEAD_NS, event, BlkAction::Queue, front);
        self.push(insert_ns - 200, event, BlkAction::Get, front);
        if merged {
            self.push(insert_ns - 150, event, BlkAction::Queue, back);
            self.push(insert_ns - 100, event, BlkAction::BackMerge, back);
        }
        self.push(insert_ns, event, BlkAction::Insert, whole);
    }

    /// D and C; of a request put back a D and an R at the instant of insert.
    fn add_issue(&mut self, event: &SynthEvent, piece: EventPiece, requeued: bool) {
        if requeued {
            self.push(event.insert_ns(), event, BlkAction::Issue, piece);
            self.push(event.insert_ns(), event, BlkAction::Requeue, piece);
        }
        self.push(event.time_ns, event, BlkAction::Issue, piece);
        let Some(complete_ns) = event.complete_ns() else {
            return;
        };
        let mut done = self.record(event, BlkAction::Complete, piece);
        done.pid = 0;
        if self.due(self.shapes.foreign_completion_every) {
            done.cpu = (done.cpu + 1) % self.shapes.cpus;
        }
        self.waiting.push(complete_ns, done);
    }

    fn add_split(&mut self, event: &SynthEvent, front: EventPiece, back: EventPiece) {
        let insert_ns = event.insert_ns();
        if event.queue_ns.is_some() {
            self.push(
                insert_ns - QUEUE_LEAD_NS,
                event,
                BlkAction::Queue,
                (front.0, front.1 + back.1),
            );
            let mut split = self.record(event, BlkAction::Split, front);
            split.pdu = Pdu::SplitAt(back.0);
            self.waiting.push(insert_ns - 250, split);
        }
        for piece in [front, back] {
            if event.queue_ns.is_some() {
                self.push(insert_ns - 200, event, BlkAction::Get, piece);
                self.push(insert_ns, event, BlkAction::Insert, piece);
            }
            self.add_issue(event, piece, false);
        }
    }

    fn push(&mut self, time_ns: i64, event: &SynthEvent, action: BlkAction, piece: EventPiece) {
        let record = self.record(event, action, piece);
        self.waiting.push(time_ns, record);
    }

    fn record(
        &self,
        event: &SynthEvent,
        action: BlkAction,
        (sector, bytes): EventPiece,
    ) -> BlkRecord {
        let of_request = matches!(
            action,
            BlkAction::Insert | BlkAction::Issue | BlkAction::Complete | BlkAction::Requeue
        );
        BlkRecord {
            sequence: 0,
            time_ns: 0,
            sector,
            bytes,
            action,
            flags: flags(event.op) | if of_request { category::FS } else { 0 },
            pid: event.pid,
            comm: event.comm,
            dev: linux_dev(event.device),
            cpu: event.cpu % self.shapes.cpus,
            error: 0,
            pdu: Pdu::None,
        }
    }

    fn note(&self, action: BlkAction, cpu: u32, dev: u32, pdu: Pdu) -> BlkRecord {
        let cpu = cpu % self.shapes.cpus;
        BlkRecord {
            sequence: 0,
            time_ns: 0,
            sector: 0,
            bytes: 0,
            action,
            flags: 0,
            pid: 0,
            comm: "",
            dev,
            cpu,
            error: 0,
            pdu,
        }
    }
}

fn flags(op: SynthOp) -> u64 {
    match op {
        SynthOp::Read => category::READ,
        SynthOp::Write => category::WRITE,
        SynthOp::Discard => category::WRITE | category::DISCARD,
        SynthOp::Flush => category::WRITE | category::FLUSH | category::SYNC,
    }
}

/// Two pieces cut at a sector near the middle; the whole has at least two sectors.
fn halves((sector, bytes): EventPiece) -> (EventPiece, EventPiece) {
    let front_sectors = bytes / 512 / 2;
    let front_bytes = front_sectors * 512;
    (
        (sector, front_bytes),
        (sector + u64::from(front_sectors), bytes - front_bytes),
    )
}
