//! Text of the kernel's block tracepoints: `perf script`, ftrace's `trace` and `trace_pipe`, `trace-cmd report`.
//!
//! `COMM PID [CPU] SECONDS: block:EVENT: …` of perf, `COMM-PID [CPU] FLAGS SECONDS: EVENT: …` of ftrace (the
//! flags may be absent, and before the CPU there may be `(TGID)`), and then, by event:
//!
//! - `block_rq_insert`, `_issue`: `MAJ,MIN RWBS BYTES (CDB) SECTOR + SECTORS [PRIORITY] [COMM]`
//! - `block_rq_complete`, `_requeue`: the same without BYTES, and with the error in the last bracket
//! - `block_bio_queue` and the other bio events, `block_getrq`: `MAJ,MIN RWBS SECTOR + SECTORS [COMM]`
//! - `block_bio_remap`: `MAJ,MIN RWBS SECTOR + SECTORS <- (MAJ,MIN) SECTOR`
//!
//! The priority (`none,0,0`) is there on newer kernels. A flush completes at sector 2^64 − 1. Times count from
//! the host's boot, in µs, so that latencies are whole µs (`perf script --ns` gives ns). All other events,
//! comments and call chains are passed over. Layers: bio (`block_bio_queue`) and request (`block_rq_issue`),
//! as far as they were recorded. Real lines of perf and of ftrace were at hand; those of trace-cmd follow its
//! documentation.

use self::line::{FtraceLine, lost_events, place_of, split_line, task_of};
use crate::batch::BATCH_EVENTS;
use crate::blk::{Action, BlockEvents, BlockRecord, Present};
use crate::error::Error;
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::op::{Op, parse_rwbs};
use crate::reader::{ReadOptions, Reader, Sniff};
use crate::source::{Clock, SourceInfo};
use crate::text::{LineError, LineFormat, Sink, TextReader, split_words, whole_lines};

mod line;

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "ftrace",
    title: "block events of `perf script`, ftrace's `trace`, `trace-cmd report`",
    verified: true,
    unsorted: true,
    about: About {
        families: &[(Family::Linux, "perf script, ftrace, trace-cmd")],
        layer: "bio, request",
        holds: Holds::Events {
            times: "µs since boot (`perf script --ns`: ns)",
            latency: "queue, device",
        },
        verified_by: "real text of perf and ftrace; trace-cmd: **unverified**",
        cannot_tell: "events that the tool lost without counting them",
        words: &[
            "block_rq_issue: ",
            "block_rq_complete: ",
            "block_rq_insert: ",
            "block_bio_queue: ",
            "block_bio_remap: ",
            "block_split: ",
            "block_rq_requeue: ",
            "block:",
            "8,0 ",
            " WS ",
            " FF ",
            " () ",
            " + ",
            " <- (8,1) ",
            " / ",
            "[dd]",
            "[0]",
            "[000]",
            "....",
            "none,0,0",
            "# tracer: nop",
            "cpus=",
            "CPU:0 [LOST 7 EVENTS]",
        ],
        real: &[
            "perf/ftrace_5.x_flush_error.txt",
            "perf/perf_script_3.14.txt",
        ],
    },
    sniff,
    open,
};

/// Number of bytes that are read to find the layers.
const PEEK_BYTES: usize = 1 << 20;

/// Known events; `_` is a bio's completion, which counts if requests were not recorded.
const EVENTS: [(&str, Action); 20] = [
    ("block_bio_queue", Action::Queue),
    ("block_rq_insert", Action::Insert),
    ("block_rq_issue", Action::Issue),
    ("block_rq_complete", Action::Complete),
    ("block_rq_requeue", Action::Requeue),
    ("block_bio_remap", Action::Remap),
    ("block_bio_frontmerge", Action::FrontMerge),
    (BIO_COMPLETE, Action::Other),
    ("block_bio_backmerge", Action::Other),
    ("block_rq_merge", Action::Other),
    ("block_split", Action::Other),
    ("block_getrq", Action::Other),
    ("block_sleeprq", Action::Other),
    ("block_plug", Action::Other),
    ("block_unplug", Action::Other),
    ("block_io_start", Action::Other),
    ("block_io_done", Action::Other),
    ("block_rq_error", Action::Other),
    ("block_rq_remap", Action::Other),
    ("block_bio_bounce", Action::Other),
];
const BIO_COMPLETE: &str = "block_bio_complete";

fn action_of(event: &[u8]) -> Option<(&'static str, Action)> {
    event.starts_with(b"block_").then_some(())?;
    EVENTS
        .iter()
        .find(|(name, _)| name.as_bytes() == event)
        .copied()
}

/// Lines that are no events: comments, trace-cmd's messages, call chains (an address, indented). A process may be
/// called `dd` or `cafe`, so this is the last test for a line that can be an event.
fn is_around(line: &[u8]) -> bool {
    let indented = matches!(line.first(), Some(b' ' | b'\t'));
    let address = split_words(line)
        .next()
        .is_none_or(|word| word.iter().all(u8::is_ascii_hexdigit));
    line.starts_with(b"#") || line.starts_with(b"cpus=") || indented && address
}

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    let mut shapes = whole_lines(prefix, complete)
        .map(|line| (line, split_line(line)))
        .peekable();
    while shapes
        .next_if(|(line, shape)| shape.is_none() && is_around(line))
        .is_some()
    {}
    match shapes.peek() {
        Some((line, None)) if lost_events(line).is_none() => return Sniff::No,
        // No line of an event is as long.
        None if complete || prefix.len() >= 16 * 1024 => return Sniff::No,
        _ => {}
    }
    if shapes
        .filter_map(|(_, shape)| shape)
        .any(|line| action_of(line.event).is_some())
    {
        Sniff::Yes
    } else if complete {
        Sniff::No
    } else {
        Sniff::More
    }
}

struct Ftrace {
    events: BlockEvents,
    /// Whether the completion of a bio is that of an I/O.
    bios_complete: bool,
}

fn open(mut input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    let mut present = Present::default();
    let mut bios_complete = false;
    for line in whole_lines(input.peek(PEEK_BYTES)?, true) {
        if let Some((name, action)) = split_line(line).and_then(|line| action_of(line.event)) {
            present.saw(action);
            bios_complete |= name == BIO_COMPLETE;
        }
    }
    bios_complete &= !present.issues && !present.completions;
    present.completions |= bios_complete;
    present.check(options.layer, &input.path)?;
    let mut info = SourceInfo {
        format: FORMAT.name,
        verified: true,
        clock: Clock::Boot,
        ..SourceInfo::default()
    };
    let events = BlockEvents::new(present, options.layer, None, &mut info);
    Ok(Box::new(TextReader::new(
        input,
        Ftrace {
            events,
            bios_complete,
        },
        info,
    )))
}

impl LineFormat for Ftrace {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        let Some(head) = split_line(line) else {
            return self.other_line(line, sink);
        };
        let Some((name, action)) = action_of(head.event) else {
            return Ok(());
        };
        let action = if name == BIO_COMPLETE && self.bios_complete {
            Action::Complete
        } else {
            action
        };
        if action != Action::Other {
            self.io(action, &head, sink)?;
        }
        sink.info.tally(name);
        Ok(())
    }

    fn end(&mut self, sink: &mut Sink) {
        self.events
            .drain_rest(&mut sink.batch, usize::MAX, &mut sink.info);
    }
}

impl Ftrace {
    fn other_line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        if let Some(lost) = lost_events(line) {
            sink.info.counts.lost = sink.info.counts.lost.saturating_add(lost);
            self.events.lost_some();
            return Ok(());
        }
        if is_around(line) {
            return Ok(());
        }
        Err(LineError::new(
            line,
            "COMM PID [CPU] SECONDS: EVENT: of perf script or ftrace",
        ))
    }

    fn io(
        &mut self,
        action: Action,
        head: &FtraceLine<'_>,
        sink: &mut Sink,
    ) -> Result<(), LineError> {
        let place = place_of(action, head.rest)?;
        let (op, flags) = parse_rwbs(place.rwbs, place.sectors);
        let end = place
            .sector
            .checked_add(place.sectors)
            .and_then(|end| end.checked_mul(512));
        // The sector of a flush means nothing, and is often the largest number.
        if place.sectors > 0 && end.is_none() {
            return Err(LineError::new(head.rest, "a sector and a count below 2^55"));
        }
        let len_bytes = place.sectors * 512;
        if !place.command.is_empty() || op == Op::Other && len_bytes == 0 {
            // A command that an application wrote itself: its place and length are not those of data.
            sink.info.tally("passthrough");
            return Ok(());
        }
        let begins = matches!(action, Action::Queue | Action::Issue);
        let (comm, pid) = if begins {
            task_of(head.task)
        } else {
            (&b""[..], None)
        };
        let record = BlockRecord {
            action,
            time_ns: head.time_ns,
            device: device(place.device, sink),
            sector: place.sector,
            len_bytes,
            op,
            flags,
            pid,
            comm: sink.names.word(&String::from_utf8_lossy(comm)),
            cgroup: None,
            failed: place.failed,
        };
        if let Some((from, sector)) = place.from {
            let from = device(from, sink);
            self.events.remap(from, sector, &record, &mut sink.names);
        }
        self.events.accept(&record, &mut sink.info);
        self.events
            .drain(&mut sink.batch, 2 * BATCH_EVENTS, &mut sink.info);
        Ok(())
    }
}

fn device(name: &[u8], sink: &mut Sink) -> u32 {
    sink.names.device(&String::from_utf8_lossy(name))
}
