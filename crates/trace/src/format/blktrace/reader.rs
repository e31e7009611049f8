//! From merged records to I/O, with the facts of the notes among them.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;

use super::FORMAT;
use super::events::Interpreter;
use super::merge::{MergedRecord, Records};
use super::record::{Note, RawRecord};
use super::set;
use super::shape::{CPUS_MAX, RecordShape};
use crate::batch::{BATCH_EVENTS, Batch};
use crate::blk::{Action, BlockEvents, PEEK_RECORDS, Present};
use crate::error::Error;
use crate::reader::{Fill, ReadOptions, Reader};
use crate::source::{Clock, DAMAGES_KEPT, SourceInfo};
use crate::text::Sink;

/// This number of issues and completions without their other half count as I/O in flight: the usual depth of the queue
/// of a disk.
const IN_FLIGHT_MAX: u64 = 32;

struct BlktraceReader {
    records: Records,
    early: Early,
    /// The error that stopped the look ahead: reported at its position, behind the data read before it.
    damage: Option<Error>,
    interpreter: Interpreter,
    sink: Sink,
    ended: bool,
}

/// Opens a set of files.
///
/// # Errors
/// When one cannot be opened, is no blktrace, or when the layer asked for is not there.
pub fn open_files(
    path: &Path,
    files: &[PathBuf],
    options: &ReadOptions,
) -> Result<Box<dyn Reader>, Error> {
    let path = path.display().to_string();
    let opened = set::open(&path, files, options.progress.as_ref())?;
    open(path, opened, options)
}

pub(super) fn open(
    path: String,
    opened: set::Opened,
    options: &ReadOptions,
) -> Result<Box<dyn Reader>, Error> {
    let is_named = opened.streams.iter().any(|stream| stream.cpu.is_some());
    let mut records = Records::new(opened.streams);
    let shape = records.shape();
    let (early, present, damage) = look_ahead(&mut records, is_named)?;
    present.check(options.layer, &path)?;
    let clock = clock_of(&early);
    let is_part = !is_named && clock == Clock::Boot;
    let missing = if is_part {
        missing_beside(&early)
    } else {
        Missing::Cpus(opened.missing)
    };
    let mut info = SourceInfo {
        path,
        format: FORMAT.name,
        verified: shape
            == RecordShape {
                version: 7,
                big_endian: false,
            },
        clock,
        ..SourceInfo::default()
    };
    let no_latency = tell_missing(&missing, &mut info);
    let events = BlockEvents::new(present, options.layer, no_latency, &mut info);
    let interpreter = Interpreter::new(events, shape);
    // The time of day is known from the first batch on: selections by time and writers ask for it before they read.
    for (record, data, _) in &early {
        if record.note() == Some(Note::Timestamp) {
            interpreter.time_of_day(record, data, &mut info);
        }
    }
    Ok(Box::new(BlktraceReader {
        records,
        early,
        damage,
        interpreter,
        sink: Sink::new(info),
        ended: false,
    }))
}

/// Records that were looked at to find the layers: record, data, CPU of the file.
type Early = VecDeque<(RawRecord, Box<[u8]>, Option<u32>)>;

/// Files of a recording that are not here.
enum Missing {
    /// Those of these CPUs.
    Cpus(BTreeSet<u32>),
    /// Those of some other CPUs than the only one here.
    Others(u32),
}

/// Signs of other CPUs in a file without a CPU in its name: it contains all of them if it was merged, and else is the
/// file of one, under any name.
fn missing_beside(early: &Early) -> Missing {
    let cpus: BTreeSet<u32> = io_records(early).map(|record| record.cpu).collect();
    match (cpus.len(), cpus.first()) {
        (1, Some(0)) if is_torn(early) => Missing::Others(0),
        (1, Some(&cpu)) => Missing::Cpus((0..cpu.min(CPUS_MAX)).collect()),
        _ => Missing::Cpus(BTreeSet::new()),
    }
}

/// Records of I/O: no notes.
fn io_records(early: &Early) -> impl Iterator<Item = &RawRecord> {
    early
        .iter()
        .map(|(record, ..)| record)
        .filter(|record| record.note().is_none())
}

/// Whether more issues have no completion, or completions no issue, than can be in flight where a recording begins or
/// ends.
fn is_torn(early: &Early) -> bool {
    let mut open = FxHashSet::default();
    let (mut issues, mut completions, mut unmatched) = (0u64, 0u64, 0u64);
    for record in
        io_records(early).filter(|record| !record.is_passthrough() && record.len_bytes > 0)
    {
        let place = (record.device, record.sector);
        match record.kind() {
            Action::Issue => {
                issues += 1;
                open.insert(place);
            }
            Action::Complete => {
                completions += 1;
                unmatched += u64::from(!open.remove(&place));
            }
            _ => {}
        }
    }
    let is_much = |lone: u64, all: u64| lone > IN_FLIGHT_MAX && lone > all / 10;
    issues > 0
        && completions > 0
        && (is_much(unmatched, completions) || is_much(open.len() as u64, issues))
}

/// Records missing files; returns the reason to distrust latencies then.
fn tell_missing(missing: &Missing, info: &mut SourceInfo) -> Option<String> {
    match missing {
        Missing::Cpus(cpus) if cpus.is_empty() => None,
        Missing::Cpus(cpus) => {
            let ranges = set::ranges(cpus);
            info.counts.missing_files = cpus.len() as u64;
            info.note(format!(
                "the recording has files of other CPUs too, which are not here: {ranges}"
            ));
            Some(format!(
                "completions may be in the missing files of CPU {ranges}"
            ))
        }
        Missing::Others(cpu) => {
            // At least one.
            info.counts.missing_files = 1;
            info.note(format!(
                "only CPU {cpu} is in it, and too many of its issues and completions lack the other half: the recording \
                 has files of other CPUs too, which are not here"
            ));
            Some("completions may be in the missing files of other CPUs".to_owned())
        }
    }
}

/// Times count from boot, except in a file that blkparse has merged: from its first record.
fn clock_of(early: &Early) -> Clock {
    let first = early.iter().find(|(record, ..)| record.note().is_none());
    if first.is_some_and(|(record, ..)| record.time_ns == 0) {
        Clock::Start
    } else {
        Clock::Boot
    }
}

/// Reads until all kinds of records were seen that decide on the layers, or enough of them; if the name of the file
/// does not have its CPU, until a second one was seen.
fn look_ahead(
    records: &mut Records,
    is_named: bool,
) -> Result<(Early, Present, Option<Error>), Error> {
    let mut early: Early = VecDeque::new();
    let mut present = Present::default();
    let all = Present {
        queues: true,
        issues: true,
        completions: true,
    };
    let (mut first_cpu, mut is_of_one) = (None, !is_named);
    while early.len() < PEEK_RECORDS && (present != all || is_of_one) {
        let MergedRecord {
            record,
            data,
            file_cpu,
        } = match records.next_record() {
            Ok(Some(seen)) => seen,
            Ok(None) => break,
            Err(damage) if !early.is_empty() => return Ok((early, present, Some(damage))),
            Err(damage) => return Err(damage),
        };
        if record.note().is_none() {
            is_of_one &= *first_cpu.get_or_insert(record.cpu) == record.cpu;
            if !record.is_passthrough() {
                present.saw(record.kind());
            }
        }
        early.push_back((record, data.into(), file_cpu));
    }
    Ok((early, present, None))
}

impl BlktraceReader {
    fn read_records(&mut self) -> Result<(), Error> {
        while let Some((record, data, file_cpu)) = self.early.pop_front() {
            self.interpreter.record(
                &MergedRecord {
                    record,
                    data: &data,
                    file_cpu,
                },
                &mut self.sink,
            );
        }
        if let Some(damage) = self.damage.take() {
            return Err(damage);
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
        self.interpreter
            .events
            .drain_rest(&mut self.sink.batch, BATCH_EVENTS, &mut self.sink.info);
    }

    /// Adds the counts of the records to the facts about the source.
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
                // I/O that wait for unreadable completions are good, too.
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
