//! `plumb record`: every I/O of the disks of this host, in a file.
//!
//! One thread takes records from the kernel, another encodes and writes: while the second waits for a slow disk, the first
//! goes on as long as there is room.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel,
};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use plumb_capture::{Batches, DiskAnswers, DiskTally, PIDS_MAX, RecordOptions, Recorder};
use plumb_geometry::group_digits;
use plumb_model::result::record::Recorded;
use plumb_quoting::Command;
use plumb_report::format::bytes;
use plumb_report::record::{self as report, JudgedRecording};
use plumb_report::verdict::{Outcome, WhyUnknown};
use plumb_trace::batch::BATCH_EVENTS;
use plumb_trace::{Batch, Clock, Layer, SourceInfo};

use crate::cli::{ColorChoice, Record};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::moment::now_ns;
use crate::signals::stop_flag;
use crate::status::{StatusLine, time_of};
use crate::watch::{disk_at, refused, tell_of_processes};
use crate::{output, privilege};

mod files;
mod judge;
mod notes;

use files::Files;
use judge::{Judge, Judged};

/// Interval of asking the kernel for completed I/O. At 300,000 I/O a second 250 KiB wait by then.
const TICK: Duration = Duration::from_millis(10);
/// How often the writer looks whether rows have waited for too long.
const WRITER_TICK: Duration = Duration::from_millis(500);
/// Batches between the two threads: 24 MiB.
const QUEUE: usize = 64;
/// Lifetime of the source's description: asking for it reads sysfs.
const TOLD_AGAIN: Duration = Duration::from_secs(1);

/// A batch, with the description of the source at that time.
struct RecordPart {
    batch: Batch,
    info: Arc<SourceInfo>,
}

/// The threads' messages to each other beside batches.
#[derive(Default)]
struct SharedState {
    /// The writer takes nothing more.
    is_over: AtomicBool,
    events: AtomicU64,
    bytes: AtomicU64,
}

/// Runs the command.
///
/// # Errors
/// When nothing can be recorded, or the file not be written.
pub fn run(args: &Record) -> Result<Exit, Failure> {
    files::may_begin(args)?;
    if args.pid.len() > PIDS_MAX {
        let found = args.pid.len();
        return Err(Failure::usage(format!(
            "--pid: found {found} processes, expected at most {PIDS_MAX}"
        )));
    }
    tell_of_processes(&args.pid);
    let ended = stop_flag()?;
    let recorder = attach(args)?;
    privilege::drop_all(std::slice::from_ref(&args.output))?;
    let done = record(recorder, args, &ended, StatusLine::new())?;
    match done.ended {
        Ok(why) => done
            .session
            .report(args, done.files, why, done.span, done.judged),
        Err(failure) => {
            // The disk with the file may be the one that fails.
            eprint!(
                "{}",
                output::drawn(report::findings(
                    &done.judged.diagnosis,
                    output::paper(ColorChoice::Never)
                ))
            );
            Err(failure)
        }
    }
}

/// The result of a recording without a report.
pub struct FileRecorded {
    /// I/O in the file.
    pub ios: u64,
    /// I/O that were lost.
    pub lost: u64,
    /// Length of the file.
    pub bytes: u64,
    /// Why it ended: words that follow "ended".
    pub why: &'static str,
}

/// Records into a file that takes a quarter of the free space at most. It prints nothing and keeps the privileges.
///
/// # Errors
/// As [`run`].
pub fn to_file(mut args: Record, ended: &AtomicBool) -> Result<FileRecorded, Failure> {
    let free = files::share_of_free(&args.output)?;
    args.max_size = Some(args.max_size.map_or(free, |given| given.min(free)));
    let done = record(attach(&args)?, &args, ended, StatusLine::silent())?;
    let why = done.ended?;
    let recorder = &done.session.recorder;
    Ok(FileRecorded {
        ios: done.files.events(),
        lost: recorder.lost() + recorder.unlisted(),
        bytes: done.files.into_list().iter().map(|file| file.bytes).sum(),
        why,
    })
}

fn attach(args: &Record) -> Result<Recorder, Failure> {
    let layers = args.layer.into();
    let command = Command::new("plumb record").option("--output", &args.output);
    let devices = args
        .devices
        .iter()
        .map(|name| disk_at(name, layers, &command));
    let options = RecordOptions {
        devices: devices.collect::<Result<Vec<u32>, Failure>>()?,
        ops: args.op.clone(),
        layers,
        pids: args.pid.clone(),
        ring_bytes: args.buffer,
        attach: None,
    };
    Recorder::attach(&options).map_err(refused)
}

/// A recording at its end.
struct Done {
    session: RecordSession,
    files: Files,
    judged: Judged,
    span: Duration,
    /// The reason for the end.
    ended: Result<&'static str, Failure>,
}

fn record(
    recorder: Recorder,
    args: &Record,
    ended: &AtomicBool,
    line: StatusLine,
) -> Result<Done, Failure> {
    let mut session = RecordSession::new(recorder, args.devices.is_empty());
    let mut sink = Sink {
        files: Files::begin(args, &session.info())?,
        judge: Judge::new()?,
    };
    let state = SharedState::default();
    let began = Instant::now();
    let written = std::thread::scope(|scope| {
        let (parts, taken) = sync_channel::<RecordPart>(QUEUE);
        let (spare, emptied) = channel::<Batch>();
        let (sink, state) = (&mut sink, &state);
        let writer = scope.spawn(move || sink.write(&taken, &spare, state, began));
        let why = session.record(args, (&parts, &emptied), state, ended, began, line);
        drop(parts);
        let written = writer
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        written.map(|()| why)
    });
    let Sink { mut files, judge } = sink;
    let info = session.info();
    let judged = session.judge(judge, &info);
    let ended = written.and_then(|why| {
        let why = match files.is_full() {
            true => files.why_full(),
            false => why,
        };
        files.end(&info, began.elapsed())?;
        Ok(why)
    });
    Ok(Done {
        session,
        files,
        judged,
        span: began.elapsed(),
        ended,
    })
}

/// The receiver of the events: it writes and judges them.
struct Sink {
    files: Files,
    judge: Judge,
}

impl Sink {
    /// Takes batches until no more come, and gives them back empty.
    fn write(
        &mut self,
        parts: &Receiver<RecordPart>,
        spare: &mpsc::Sender<Batch>,
        state: &SharedState,
        began: Instant,
    ) -> Result<(), Failure> {
        let Sink { files, judge } = self;
        let none = Batch::default();
        let mut last: Option<Arc<SourceInfo>> = None;
        let mut looked = Instant::now();
        let mut failure = None;
        loop {
            let written = match parts.recv_timeout(WRITER_TICK) {
                Ok(RecordPart { batch, info }) => {
                    judge.add(&batch);
                    // I/O that come after a failure are judged all the same.
                    let written = match failure {
                        None => files.write(&batch, &info, began.elapsed()),
                        Some(_) => Ok(()),
                    };
                    last = Some(info);
                    // Nobody takes it any more at the end.
                    let _ = spare.send(batch);
                    written
                }
                Err(RecvTimeoutError::Timeout) if failure.is_some() => Ok(()),
                Err(RecvTimeoutError::Timeout) => last
                    .as_ref()
                    .map_or(Ok(()), |info| files.write(&none, info, began.elapsed())),
                Err(RecvTimeoutError::Disconnected) => return failure.map_or(Ok(()), Err),
            };
            let is_time = failure.is_none() && looked.elapsed() >= WRITER_TICK;
            let written = written.and_then(|()| match is_time {
                true => {
                    looked = Instant::now();
                    files.must_be_there()
                }
                false => Ok(()),
            });
            state.events.store(files.events(), Ordering::Relaxed);
            state.bytes.store(files.bytes(), Ordering::Relaxed);
            if written.is_err() || files.is_full() {
                state.is_over.store(true, Ordering::Relaxed);
            }
            failure = failure.or(written.err());
        }
    }
}

/// The thread that takes records from the kernel.
struct RecordSession {
    recorder: Recorder,
    /// Whether no disk was named.
    is_of_all: bool,
    batches: Batches,
    /// Layers, and how they are recorded.
    how: String,
    unix_ns_at_zero: Option<i64>,
    told: Option<(Instant, Arc<SourceInfo>)>,
    /// How each disk answered; none before the end.
    answers: Vec<DiskAnswers>,
    started_ns: u64,
    /// 0 before the end.
    ended_ns: u64,
}

impl RecordSession {
    fn new(recorder: Recorder, is_of_all: bool) -> RecordSession {
        let unix_ns_at_zero = now_ns().map(|unix| unix.saturating_sub_unsigned(Recorder::now_ns()));
        let layers: Vec<&str> = recorder.layers().iter().map(|layer| layer.word()).collect();
        let many = if layers.len() > 1 { "layers" } else { "layer" };
        let how = format!(
            "{} {many} by {}",
            layers.join(" and "),
            recorder.attached().text()
        );
        RecordSession {
            recorder,
            is_of_all,
            batches: Batches::default(),
            how,
            unix_ns_at_zero,
            told: None,
            answers: Vec::new(),
            started_ns: Recorder::now_ns(),
            ended_ns: 0,
        }
    }

    /// Records until there is a reason to end: that is returned.
    fn record(
        &mut self,
        args: &Record,
        (parts, emptied): (&SyncSender<RecordPart>, &Receiver<Batch>),
        state: &SharedState,
        ended: &AtomicBool,
        began: Instant,
        mut line: StatusLine,
    ) -> &'static str {
        let mut ready = Vec::new();
        let why = loop {
            std::thread::sleep(TICK);
            self.recorder.read(&mut ready);
            self.send(&mut ready, emptied, |part| match parts.try_send(part) {
                Ok(()) => None,
                Err(TrySendError::Full(part) | TrySendError::Disconnected(part)) => {
                    Some(part.batch)
                }
            });
            line.show(|| recorded(began.elapsed(), args.duration, state, self.recorder.lost()));
            if state.is_over.load(Ordering::Relaxed) {
                break "as the file is full";
            } else if ended.load(Ordering::Relaxed) {
                break "by a signal";
            } else if args
                .duration
                .is_some_and(|duration| began.elapsed() >= duration)
            {
                break "after its time";
            }
        };
        self.ended_ns = Recorder::now_ns();
        self.answers = self.recorder.finish(&mut ready);
        self.send(&mut ready, emptied, |part| {
            parts.send(part).err().map(|refused| refused.0.batch)
        });
        line.clear();
        why
    }

    /// Sends finished events batch by batch, until one comes back.
    fn send(
        &mut self,
        ready: &mut Vec<plumb_capture::Record>,
        emptied: &Receiver<Batch>,
        send: impl Fn(RecordPart) -> Option<Batch>,
    ) {
        if ready.is_empty() {
            return;
        }
        let info = self.source_info();
        let mut sent = 0;
        for records in ready.chunks(BATCH_EVENTS) {
            let mut batch = emptied.try_recv().unwrap_or_default();
            self.batches.fill(records, &mut batch);
            if send(RecordPart {
                batch,
                info: Arc::clone(&info),
            })
            .is_some()
            {
                break;
            }
            sent += records.len();
        }
        ready.drain(..sent);
    }

    /// The file's description of its source, as of a moment ago.
    fn source_info(&mut self) -> Arc<SourceInfo> {
        match &self.told {
            Some((at, info)) if at.elapsed() < TOLD_AGAIN => Arc::clone(info),
            _ => {
                let info = Arc::new(self.info());
                self.told = Some((Instant::now(), Arc::clone(&info)));
                info
            }
        }
    }

    /// The file's description of its source, as of now.
    fn info(&self) -> SourceInfo {
        let mut info = SourceInfo {
            format: "parquet",
            verified: true,
            layers: self.recorder.layers().to_vec(),
            one_layer_a_device: true,
            clock: Clock::Boot,
            unix_ns_at_zero: self.unix_ns_at_zero,
            ..SourceInfo::default()
        };
        let tallies = self.recorder.tallies();
        let sum = |of: fn(&DiskTally) -> u64| tallies.iter().map(of).sum::<u64>();
        info.counts.lost = sum(|tally| tally.lost) + self.recorder.unlisted();
        info.counts.unmatched_issues =
            sum(|tally| tally.unmatched_issues) + self.recorder.open_at_end();
        info.counts.unmatched_completions = sum(|tally| tally.unmatched_completions);
        info.notes = self.notes(&tallies);
        info
    }

    /// Notes that a reader of the recording must know.
    fn notes(&self, tallies: &[DiskTally]) -> Vec<String> {
        let mut notes = vec![format!("recorded at the {}", self.how)];
        notes.extend(tallies.iter().flat_map(notes::of_disk));
        if self.is_of_all && self.recorder.layers() == [Layer::Request] {
            notes.push(
                "disks that make no requests (dm, md, zram) are not recorded at this layer"
                    .to_owned(),
            );
        }
        notes.extend(notes::seen_again(tallies));
        if self.recorder.unlisted() > 0 {
            let count = group_digits(self.recorder.unlisted());
            notes.push(format!(
                "{count} I/O of devices for which there was no room"
            ));
        }
        let skipped_calls = self.recorder.skipped_calls();
        if skipped_calls > 0 {
            notes.push(format!(
                "{} calls of Plumb's programs skipped by the kernel: each may hide an I/O or its latency",
                group_digits(skipped_calls)
            ));
        }
        if self.batches.is_full() {
            notes.push(
                "more commands than can be kept apart: those of further ones are unknown"
                    .to_owned(),
            );
        }
        notes
    }

    /// Judges how the disks answered. A disk may have answered nothing.
    fn judge(&mut self, judge: Judge, info: &SourceInfo) -> Judged {
        let answers = std::mem::take(&mut self.answers);
        let times = (self.started_ns.cast_signed(), self.ended_ns.cast_signed());
        judge.finish(info, &self.recorder.tallies(), answers, times)
    }

    /// Prints the result.
    fn report(
        self,
        args: &Record,
        files: Files,
        ended: &'static str,
        span: Duration,
        judged: Judged,
    ) -> Result<Exit, Failure> {
        let tallies = self.recorder.tallies();
        let Judged {
            diagnosis,
            notes: of_times,
        } = judged;
        let mut notes = self.notes(&tallies);
        notes.extend(of_times);
        let lost = self.recorder.lost() + self.recorder.unlisted();
        let (ios, after_the_end) = (files.events(), files.refused());
        let files = files.into_list();
        let worst = diagnosis.worst();
        let outcome = if worst.is_some_and(|worst| args.fail_on.covers(worst)) {
            Outcome::Findings
        } else if lost > 0 {
            Outcome::Unknown(WhyUnknown::NotWatched)
        } else {
            Outcome::Clean
        };
        let recorded = Recorded {
            seconds: span.as_secs_f64(),
            ended,
            how: &self.how,
            files: &files,
            devices: &tallies,
            ios,
            lost,
            after_the_end,
            in_flight_at_end: self.recorder.open_at_end(),
            out_of_order: self.recorder.late(),
            skipped_calls: self.recorder.skipped_calls(),
            notes: &notes[1..],
        };
        let judged = JudgedRecording {
            recorded,
            diagnosis: &diagnosis,
            outcome,
        };
        let shown = match args.json {
            true => {
                report::json(&crate::this_run::now(), &judged)
                    .map_err(|error| Failure::failed(&error))?
                    + "\n"
            }
            false => output::drawn(report::text(&judged, output::paper(ColorChoice::Auto))),
        };
        output::print(&shown)?;
        if lost > 0 && !args.json {
            eprintln!(
                "plumb: some I/O were lost; a larger buffer holds more: --buffer {}",
                larger(args.buffer)
            );
        }
        Ok(outcome.into())
    }
}

/// Four times as large, as it is typed.
fn larger(buffer: u32) -> String {
    match u64::from(buffer) * 4 {
        bytes if bytes >= 1 << 20 => format!("{}m", (bytes >> 20).min(1024)),
        bytes => format!("{}k", bytes >> 10),
    }
}

/// `12 of 30 s, 18 s left, 1,234 I/O, 0.4 MiB, 0 lost`.
fn recorded(now: Duration, all: Option<Duration>, state: &SharedState, lost: u64) -> String {
    let time = all.map_or_else(
        || format!("{:.0} s", now.as_secs_f64()),
        |all| time_of(now, all),
    );
    let events = group_digits(state.events.load(Ordering::Relaxed));
    let written = bytes(state.bytes.load(Ordering::Relaxed));
    format!(
        "{time}, {events} I/O, {written}, {} lost",
        group_digits(lost)
    )
}
