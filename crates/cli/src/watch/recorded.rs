//! The intervals of a recording: the same readings as those of a live watch, cut out of the events of a trace.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plumb_capture::{ALIGNMENTS, Filter, Process, Reading, alignment_of};
use plumb_geometry::SmallSort;
use plumb_profile::Collector;
use plumb_profile::collector::Settings;
use plumb_trace::ahead::ReadAhead;
use plumb_trace::input::Input;
use plumb_trace::open;
use plumb_trace::progress::Progress;
use plumb_trace::{Batch, Clock, Columns, DeviceId, Fill, ReadOptions, Reader, UNKNOWN_PID};

use crate::failure::Failure;
use crate::inputs;
use crate::moment::unix_words;

/// A gap of more intervals than these is one interval.
const GAP_INTERVALS: i64 = 60;

/// Events that may be read ahead to learn when the recording ends.
const AHEAD_MAX: usize = 1 << 20;

/// Processes that a reading names.
const PROCESSES_MAX: usize = 256;

/// A recording that is read interval by interval.
pub(super) struct Recorded {
    reader: Box<dyn Reader>,
    progress: Arc<Progress>,
    /// `None` after the end.
    collector: Option<Collector>,
    /// Names of the disks that count; all if empty.
    disks: Vec<String>,
    filter: Filter,
    batch: Batch,
    /// The next event of the batch.
    row: usize,
    /// Batches behind it that are read already.
    ahead: VecDeque<Batch>,
    /// How the input ended, if all of it is read. A failure is reported once, behind the events before it.
    ended: Option<Result<(), Failure>>,
    /// Time of the last event, once all of the input is read.
    last_ns: Option<i64>,
    /// The events of the batch that belong to the interval.
    part: Batch,
    rows: Vec<u32>,
    first_ns: Option<i64>,
    /// The end of the last interval.
    until_ns: i64,
    processes: BTreeMap<(DeviceId, i32, u32), Process>,
}

/// An interval of a recording.
pub(super) struct RecordedInterval {
    pub(super) reading: Reading,
    pub(super) seconds: f64,
    /// Its end: a time of day if the recording has one, else the time since the first I/O.
    pub(super) time: String,
    /// Its place in the recording.
    pub(super) position: String,
    pub(super) is_last: bool,
}

impl Recorded {
    /// Opens a recording.
    ///
    /// # Errors
    /// If it cannot be read, or is a saved profile, which has no single I/O.
    pub(super) fn open(
        path: &Path,
        disks: Vec<String>,
        filter: Filter,
        settings: &Settings,
    ) -> Result<Recorded, Failure> {
        let failed = |error: plumb_trace::Error| Failure::failed(&error);
        let progress = Arc::new(Progress::default());
        let columns = Columns {
            cgroup: false,
            file: false,
            ..Columns::ALL
        };
        let options = ReadOptions {
            columns,
            progress: Some(Arc::clone(&progress)),
            ..ReadOptions::default()
        };
        let piece = inputs::one_piece(path)?;
        let reader = if piece.files.is_empty() {
            let mut input =
                Input::open_watched(&piece.path, options.progress.as_ref()).map_err(failed)?;
            if inputs::is_profile(&mut input)? {
                return Err(no_events(path, "is a saved profile"));
            }
            open::open_input(input, &options).map_err(failed)?
        } else {
            open::open(&piece, &options).map_err(failed)?
        };
        let mut collector =
            Collector::new(settings).map_err(|error| Failure::usage(error.to_string()))?;
        collector.set_clock(reader.info().clock);
        Ok(Recorded {
            reader: ReadAhead::wrap(reader),
            progress,
            collector: Some(collector),
            disks,
            filter,
            batch: Batch::default(),
            row: 0,
            ahead: VecDeque::new(),
            ended: None,
            last_ns: None,
            part: Batch::default(),
            rows: Vec::new(),
            first_ns: None,
            until_ns: 0,
            processes: BTreeMap::new(),
        })
    }

    pub(super) fn format(&self) -> &str {
        self.reader.info().format
    }

    /// Whether some of the recording could not be read.
    pub(super) fn is_partial(&self) -> bool {
        !self.reader.info().is_whole()
    }

    /// The next interval.
    ///
    /// # Errors
    /// If the recording cannot be read on, or has counts instead of events.
    pub(super) fn next(&mut self, interval: Duration) -> Result<RecordedInterval, Failure> {
        let length_ns = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX);
        let Some(next_ns) = self.next_ns()? else {
            return Ok(self.finish(0.0));
        };
        let from_ns = if self.first_ns.is_none() {
            self.first_ns = Some(next_ns);
            next_ns
        } else {
            self.until_ns
        };
        let gap = next_ns.saturating_sub(from_ns) / length_ns;
        let intervals = if gap > GAP_INTERVALS { gap } else { 1 };
        self.until_ns = from_ns.saturating_add(length_ns.saturating_mul(intervals));
        let seconds = (self.until_ns - from_ns) as f64 / 1e9;
        loop {
            match self.next_ns()? {
                None => return Ok(self.finish(seconds)),
                Some(next_ns) if next_ns >= self.until_ns => break,
                Some(_) => self.take_rows(),
            }
        }
        let profiles = self.collector.as_mut().map(Collector::cut);
        let reading = self.reading(profiles.unwrap_or_default());
        Ok(self.interval(reading, seconds, false))
    }

    /// Time of the next event; `None` at the end.
    fn next_ns(&mut self) -> Result<Option<i64>, Failure> {
        while self.row >= self.batch.len() {
            self.row = 0;
            if self.ahead.is_empty() {
                self.read()?;
            }
            match self.ahead.pop_front() {
                Some(batch) => self.batch = batch,
                None => {
                    self.batch.clear();
                    return match self.ended.replace(Ok(())) {
                        Some(Err(failure)) => Err(failure),
                        _ => Ok(None),
                    };
                }
            }
        }
        Ok(Some(self.batch.time_ns[self.row]))
    }

    /// Reads a batch, and the rest of the events as well if all bytes of the input are read: then the end is known.
    fn read(&mut self) -> Result<(), Failure> {
        let mut held = 0;
        while self.ended.is_none() {
            let mut batch = Batch::default();
            match self.fill(&mut batch) {
                Ok(true) => {
                    held += batch.len();
                    self.ahead.push_back(batch);
                }
                Ok(false) => self.ended = Some(Ok(())),
                Err(failure) if self.ahead.is_empty() => return Err(failure),
                Err(failure) => self.ended = Some(Err(failure)),
            }
            let (read, known) = self.progress.state();
            if held >= AHEAD_MAX || known == 0 || read < known {
                break;
            }
        }
        if self.ended.is_some() && self.last_ns.is_none() {
            let times = self.ahead.iter().flat_map(|batch| &batch.time_ns);
            self.last_ns = times.copied().max();
        }
        Ok(())
    }

    /// Reads into a batch; false at the end.
    fn fill(&mut self, batch: &mut Batch) -> Result<bool, Failure> {
        let filled = self.reader.fill(batch);
        match filled.map_err(|error| Failure::failed(&error))? {
            Fill::Events => Ok(true),
            Fill::End => Ok(false),
            _ => {
                let path = self.reader.info().path.clone();
                Err(no_events(Path::new(&path), "holds ready-made counts"))
            }
        }
    }

    /// Counts the events of the batch that come before the end of the interval.
    fn take_rows(&mut self) {
        self.rows.clear();
        while self.row < self.batch.len() && self.batch.time_ns[self.row] < self.until_ns {
            if self.is_wanted(self.row) {
                self.rows.push(self.row as u32);
            }
            self.row += 1;
        }
        self.batch.pick_rows(&self.rows, &mut self.part);
        if let Some(collector) = &mut self.collector {
            collector.fold(&self.part);
        }
        self.count_processes();
    }

    fn is_wanted(&self, row: usize) -> bool {
        let Filter { ops, pid, comm, .. } = &self.filter;
        let name = || self.device_name(self.batch.device[row]);
        let sender = || self.batch.pid.get(row).copied();
        let command = || {
            let id = self.batch.comm.get(row).copied().unwrap_or(0);
            self.batch.names.word_of(id)
        };
        (self.disks.is_empty() || self.disks.iter().any(|disk| disk == name()))
            && (ops.is_empty() || ops.contains(&self.batch.op[row]))
            && pid.is_none_or(|pid| sender() == i32::try_from(pid).ok())
            && comm.as_deref().is_none_or(|comm| command() == Some(comm))
    }

    fn device_name(&self, id: DeviceId) -> &str {
        let devices = self.batch.names.devices();
        devices
            .get(id as usize)
            .map_or("unknown", |device| device.name.as_str())
    }

    fn count_processes(&mut self) {
        for row in 0..self.part.len() {
            let pid = self.part.pid.get(row).copied().unwrap_or(UNKNOWN_PID);
            let comm = self.part.comm.get(row).copied().unwrap_or(0);
            if pid == UNKNOWN_PID && comm == 0 {
                continue;
            }
            let device = self.part.device[row];
            let names = &self.part.names;
            let process = self
                .processes
                .entry((device, pid, comm))
                .or_insert_with(|| {
                    let disk = names
                        .devices()
                        .get(device as usize)
                        .map_or_else(String::new, |device| device.name.clone());
                    Process {
                        device: disk.clone(),
                        disk,
                        pid: u32::try_from(pid).unwrap_or(0),
                        comm: names.word_of(comm).unwrap_or("").to_owned(),
                        cgroup: None,
                        command_line: None,
                        ios: 0,
                        written_back: 0,
                        bytes: 0,
                        threads: 1,
                        by_alignment: [0; ALIGNMENTS],
                    }
                });
            process.ios += 1;
            process.bytes = process.bytes.saturating_add(self.part.len_bytes[row]);
            process.by_alignment[alignment_of(self.part.start_bytes[row])] += 1;
        }
    }

    fn reading(&mut self, profiles: plumb_profile::ProfileSet) -> Reading {
        let mut processes: Vec<Process> =
            std::mem::take(&mut self.processes).into_values().collect();
        processes.small_sort_by_key(|process| std::cmp::Reverse(process.ios));
        let of_unlisted_process = processes
            .iter()
            .skip(PROCESSES_MAX)
            .map(|process| process.ios)
            .sum();
        processes.truncate(PROCESSES_MAX);
        Reading {
            profiles,
            processes,
            of_unlisted_process,
            ..Reading::default()
        }
    }

    fn finish(&mut self, seconds: f64) -> RecordedInterval {
        let info = self.reader.info().clone();
        let collector = self.collector.take();
        let profiles = collector.map(|collector| collector.finish(&info));
        let reading = self.reading(profiles.unwrap_or_default());
        self.interval(reading, seconds, true)
    }

    fn interval(&self, reading: Reading, seconds: f64, is_last: bool) -> RecordedInterval {
        let since_first = |ns: i64| {
            let since_ns = ns.saturating_sub(self.first_ns.unwrap_or(0));
            Duration::from_nanos(u64::try_from(since_ns).unwrap_or(0))
        };
        let until_ns = self
            .last_ns
            .map_or(self.until_ns, |last_ns| self.until_ns.min(last_ns));
        let elapsed = clock_words(since_first(until_ns));
        let info = self.reader.info();
        let unix_ns = match info.clock {
            Clock::Unix => Some(self.until_ns),
            Clock::Boot => info
                .unix_ns_at_zero
                .map(|zero| zero.saturating_add(self.until_ns)),
            Clock::Start | Clock::Unknown => None,
        };
        let time = unix_ns.and_then(unix_words);
        let (read, known) = self.progress.state();
        let place = match self.last_ns {
            _ if is_last => "end".to_owned(),
            Some(last_ns) => format!("of {}", clock_words(since_first(last_ns))),
            None if known == 0 => "playing".to_owned(),
            None => format!("{} % of the file read", read.saturating_mul(100) / known),
        };
        let (time, position) = match time {
            Some(time) => (time, format!("+{elapsed} {place}")),
            None => (format!("+{elapsed}"), place),
        };
        RecordedInterval {
            reading,
            seconds,
            time,
            position,
            is_last,
        }
    }
}

/// `1:05:20.5`, `01:20.5`: hours if there are any, minutes, seconds and tenths.
fn clock_words(time: Duration) -> String {
    let seconds = time.as_secs();
    let hours = match seconds / 3600 {
        0 => String::new(),
        hours => format!("{hours}:"),
    };
    format!(
        "{hours}{:02}:{:02}.{}",
        seconds / 60 % 60,
        seconds % 60,
        time.subsec_millis() / 100
    )
}

fn no_events(path: &Path, what: &str) -> Failure {
    let path = path.display();
    Failure::usage(format!(
        "{path} {what}: found no single I/O, expected a recording of events"
    ))
    .with_help(format!("run `plumb analyze {path}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_since_the_first_io() {
        assert_eq!(clock_words(Duration::from_millis(80_560)), "01:20.5");
        assert_eq!(clock_words(Duration::from_secs(90_000)), "25:00:00.0");
    }
}
