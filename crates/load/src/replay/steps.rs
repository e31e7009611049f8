//! From the events of a trace to the I/O that are sent: operations that are sent, changed or left out, at their places
//! on the target.

use plumb_trace::{Batch, Event, Op, UNKNOWN_NS, flags};
use serde::Serialize;

use crate::replay::error::ReplayError;
use crate::replay::remap::Remap;
use crate::run::LoadError;
use crate::target::Target;
use crate::workload::LEN_BYTES_MAX;

/// Gives the events of one device of a trace, in their order.
pub trait EventSource {
    /// Empties the batch and fills it again; false at the end.
    ///
    /// # Errors
    /// When nothing sensible can be read any more.
    fn fill(&mut self, batch: &mut Batch) -> Result<bool, plumb_trace::Error>;
}

/// The counts of a trace's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReplayCounts {
    /// Events that were looked at.
    pub events: u64,
    /// Reads that are sent, those that were writes apart.
    pub reads: u64,
    /// Writes that are sent.
    pub writes: u64,
    /// Writes that are sent as reads.
    pub writes_as_reads: u64,
    /// Flushes that are sent.
    pub flushes: u64,
    /// Flushes that are not: nothing is written.
    pub flushes_left_out: u64,
    /// Discards, which are never sent.
    pub discards: u64,
    /// Requests to write zeroes, which are never sent.
    pub zeroes: u64,
    /// Other events that are not sent: other operations, and I/O without a length.
    pub others: u64,
    /// I/O that were folded to fit the target.
    pub folded: u64,
    /// Writes that asked for a flush before them or for the medium, and do not any more.
    pub unforced: u64,
}

impl ReplayCounts {
    /// Adds others.
    pub fn add(&mut self, others: ReplayCounts) {
        self.events += others.events;
        self.reads += others.reads;
        self.writes += others.writes;
        self.writes_as_reads += others.writes_as_reads;
        self.flushes += others.flushes;
        self.flushes_left_out += others.flushes_left_out;
        self.discards += others.discards;
        self.zeroes += others.zeroes;
        self.others += others.others;
        self.folded += others.folded;
        self.unforced += others.unforced;
    }

    /// I/O that are sent, flushes among them.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.reads + self.writes + self.writes_as_reads + self.flushes
    }
}

/// The action of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepAction {
    Read,
    Write,
    Flush,
}

/// Process, and its thread where the trace tells both.
pub(crate) type SenderIds = (i32, Option<i32>);

/// An I/O to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplayStep {
    /// Of the events of the trace, from 1 on.
    pub number: u64,
    /// Its issue in the trace; [`UNKNOWN_NS`] if it is not recorded.
    pub time_ns: i64,
    /// Its completion in the trace.
    pub end_ns: Option<i64>,
    pub action: StepAction,
    pub start: u64,
    pub len_bytes: u32,
    /// Its sender; `None` for all unknown ones.
    pub sender: Option<SenderIds>,
}

/// Takes steps from a source, one by one.
pub(crate) struct Steps<'s> {
    source: &'s mut dyn EventSource,
    target: &'s Target,
    remap: &'s Remap,
    is_written: bool,
    len_bytes_max: u32,
    batch: Batch,
    row: usize,
    counts: ReplayCounts,
}

impl<'s> Steps<'s> {
    pub fn new(
        source: &'s mut dyn EventSource,
        target: &'s Target,
        remap: &'s Remap,
        is_written: bool,
    ) -> Steps<'s> {
        let (batch, counts) = (Batch::default(), ReplayCounts::default());
        Steps {
            source,
            target,
            remap,
            is_written,
            len_bytes_max: LEN_BYTES_MAX,
            batch,
            row: 0,
            counts,
        }
    }

    /// Takes none that is longer: there is no memory for it.
    pub fn up_to(self, len_bytes_max: u32) -> Steps<'s> {
        Steps {
            len_bytes_max,
            ..self
        }
    }

    pub fn counts(&self) -> ReplayCounts {
        self.counts
    }

    /// The next step; `None` at the end of the source.
    pub fn next(&mut self) -> Result<Option<ReplayStep>, LoadError> {
        loop {
            while self.row < self.batch.len() {
                let event = self.batch.event(self.row);
                self.row += 1;
                if let Some(step) = self.step(&event)? {
                    return Ok(Some(step));
                }
            }
            self.row = 0;
            if !self.source.fill(&mut self.batch)? {
                self.batch.clear();
                return Ok(None);
            }
        }
    }

    fn step(&mut self, event: &Event) -> Result<Option<ReplayStep>, ReplayError> {
        self.counts.events += 1;
        let Some(action) = self.action(event) else {
            return Ok(None);
        };
        let (start, len_bytes) = match action {
            StepAction::Flush => (0, 0),
            StepAction::Read | StepAction::Write => self.place(event)?,
        };
        let is_timed = event.time_ns != UNKNOWN_NS;
        let end_ns = event
            .device_ns
            .filter(|_| is_timed)
            .map(|ns| event.time_ns.saturating_add(ns));
        let (number, time_ns, pid) = (self.counts.events, event.time_ns, event.pid);
        let sender = pid.map(|pid| (pid, event.tid));
        Ok(Some(ReplayStep {
            number,
            time_ns,
            end_ns,
            action,
            start,
            len_bytes,
            sender,
        }))
    }

    /// The action for an event; `None` if it is left out.
    fn action(&mut self, event: &Event) -> Option<StepAction> {
        let counts = &mut self.counts;
        let is_forced = event.flags & (flags::FUA | flags::PREFLUSH) != 0;
        let (count, action) = match event.op {
            Op::Flush if self.is_written => (&mut counts.flushes, Some(StepAction::Flush)),
            Op::Flush => (&mut counts.flushes_left_out, None),
            Op::Discard => (&mut counts.discards, None),
            Op::WriteZeroes => (&mut counts.zeroes, None),
            Op::Read | Op::Write if event.len_bytes == 0 => (&mut counts.others, None),
            Op::Other => (&mut counts.others, None),
            Op::Read => (&mut counts.reads, Some(StepAction::Read)),
            Op::Write if self.is_written => {
                counts.unforced += u64::from(is_forced);
                (&mut counts.writes, Some(StepAction::Write))
            }
            Op::Write => (&mut counts.writes_as_reads, Some(StepAction::Read)),
        };
        *count += 1;
        action
    }

    fn place(&mut self, event: &Event) -> Result<(u64, u32), ReplayError> {
        let (number, start, len_bytes) = (self.counts.events, event.start_bytes, event.len_bytes);
        let fitting = u32::try_from(len_bytes)
            .ok()
            .filter(|&len| len <= self.len_bytes_max);
        let len_bytes_max = self.len_bytes_max;
        let len = fitting.ok_or(ReplayError::TooLong {
            number,
            len_bytes,
            len_bytes_max,
        })?;
        let (target, size_bytes) = (self.target, self.target.size_bytes());
        let placed =
            self.remap
                .place(start, len, size_bytes)
                .ok_or_else(|| ReplayError::NoRoom {
                    target: target.name().to_owned(),
                    size_bytes,
                    number,
                    start,
                    len_bytes,
                    modulus_bytes: self.remap.modulus_bytes(),
                })?;
        let block_bytes = target.block_bytes();
        let is_whole = |bytes: u64| bytes.is_multiple_of(u64::from(block_bytes));
        if !is_whole(placed.start) || !is_whole(len_bytes) {
            let (target, placed) = (target.name().to_owned(), placed.start);
            let op = event.op;
            return Err(ReplayError::OffLogicalBlock {
                target,
                number,
                op,
                start,
                len_bytes,
                placed,
                block_bytes,
            });
        }
        self.counts.folded += u64::from(placed.is_folded);
        Ok((placed.start, len))
    }
}
