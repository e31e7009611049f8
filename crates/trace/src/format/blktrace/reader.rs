//! From merged records to I/O, with what the notes among them tell.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use super::FORMAT;
use super::events::Interpreter;
use super::merge::{Records, Seen};
use super::record::RawRecord;
use super::set;
use super::shape::Shape;
use crate::batch::{BATCH_EVENTS, Batch};
use crate::blk::{BlockEvents, PEEK_RECORDS, Present};
use crate::error::Error;
use crate::reader::{Fill, ReadOptions, Reader};
use crate::source::{Clock, DAMAGES_KEPT, SourceInfo};
use crate::text::Sink;

struct BlktraceReader {
    records: Records,
    early: Early,
    interpreter: Interpreter,
    sink: Sink,
    ended: bool,
}

/// Opens a set of files.
///
/// # Errors
/// When one cannot be opened, is no blktrace, or when the layer asked for is not there.
pub fn open_files(path: &Path, files: &[PathBuf], options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    let path = path.display().to_string();
    let opened = set::open(&path, files, options.progress.as_ref())?;
    open(path, opened, options)
}

pub(super) fn open(
    path: String,
    opened: set::Opened,
    options: &ReadOptions,
) -> Result<Box<dyn Reader>, Error> {
    let mut records = Records::new(opened.streams);
    let shape = records.shape();
    let (early, present) = look_ahead(&mut records)?;
    present.check(options.layer, &path)?;
    let mut info = SourceInfo {
        path,
        format: FORMAT.name,
        verified: shape == Shape { version: 7, big_endian: false },
        clock: clock_of(&early),
        ..SourceInfo::default()
    };
    let missing = (!opened.missing.is_empty()).then(|| set::ranges(&opened.missing));
    info.counts.missing_files = opened.missing.len() as u64;
    if let Some(missing) = &missing {
        info.note(format!("the recording has files of other CPUs too, which are not here: {missing}"));
    }
    let no_latency = missing.map(|cpus| format!("completions may be in the missing files of CPU {cpus}"));
    let events = BlockEvents::new(present, options.layer, no_latency, &mut info);
    let interpreter = Interpreter::new(events, shape);
    Ok(Box::new(BlktraceReader { records, early, interpreter, sink: Sink::new(info), ended: false }))
}

/// Records that were looked at to find the layers: record, data, CPU of the file.
type Early = VecDeque<(RawRecord, Box<[u8]>, Option<u32>)>;

/// Times count from boot, except in a file that blkparse has merged: from its first record.
fn clock_of(early: &Early) -> Clock {
    let first = early.iter().find(|(record, ..)| record.note().is_none());
    if first.is_some_and(|(record, ..)| record.time_ns == 0) { Clock::Start } else { Clock::Boot }
}

/// Reads until all kinds of records were seen that decide on the layers, or enough of them.
fn look_ahead(records: &mut Records) -> Result<(Early, Present), Error> {
    let mut early = VecDeque::new();
    let mut present = Present::default();
    let all = Present { queues: true, issues: true, completions: true };
    while early.len() < PEEK_RECORDS && present != all {
        let Some(Seen { record, data, file_cpu }) = records.next_record()? else { break };
        if record.note().is_none() && !record.is_passthrough() {
            present.saw(record.kind());
        }
        early.push_back((record, data.into(), file_cpu));
    }
    Ok((early, present))
}

impl BlktraceReader {
    fn read_records(&mut self) -> Result<(), Error> {
        while let Some((record, data, file_cpu)) = self.early.pop_front() {
            self.interpreter.record(&Seen { record, data: &data, file_cpu }, &mut self.sink);
        }
        while self.sink.batch.len() < BATCH_EVENTS {
            let Some(seen) = self.records.next_record()? else {
                self.ended = true;
                return Ok(());
            };
            self.interpreter.record(&seen, &mut self.sink);
        }
        Ok(())
    }

    fn drain_rest(&mut self) {
        self.interpreter.events.drain_rest(&mut self.sink.batch, BATCH_EVENTS, &mut self.sink.info);
    }

    /// Brings the counts of the records into what is known of the source.
    fn settle(&mut self) {
        let info = &mut self.sink.info;
        let (places, damaged, skipped_bytes) = self.records.damages();
        info.damages = places;
        info.damages.truncate(DAMAGES_KEPT);
        info.counts.damaged = damaged;
        info.counts.skipped_bytes = skipped_bytes;
        self.interpreter.settle(info);
    }
}

impl Reader for BlktraceReader {
    fn fill(&mut self, batch: &mut Batch) -> Result<Fill, Error> {
        batch.clear();
        if !self.ended {
            let outcome = self.read_records();
            self.settle();
            if outcome.is_err() {
                // What waits for completions that cannot be read is something good, too.
                self.drain_rest();
            }
            self.sink.stop_on(outcome, &mut self.ended)?;
        }
        if self.ended {
            self.interpreter.end(&mut self.sink.info);
            self.drain_rest();
        }
        Ok(self.sink.next_fill(batch))
    }

    fn info(&self) -> &SourceInfo {
        &self.sink.info
    }
}
