//! The output of iosnoop of perf-tools (the one that uses ftrace).
//!
//! `[STARTs] [ENDs] COMM PID TYPE DEV BLOCK BYTES LATms`: start (with `-s`) and end (with `-t`) in seconds of
//! the kernel's trace clock, TYPE the kernel's rwbs letters, DEV as major,minor, BLOCK in 512 B on the whole
//! disk, LATms from issue to complete in ms. COMM may hold blanks. The layer is that of requests.
//!
//! Without STARTs and ENDs there are no times: the rows are then in the order of completion. With ENDs alone the time
//! of issue is ENDs − LATms, rounded to 10 µs. With both the latency is their difference, which has more digits than
//! LATms. With `-Q` the tool counts from insert and not from issue and does not print that it does, so the latency then
//! contains the time in the queue. The tool cuts lengths to whole sectors. Verified with the example output that ships
//! with it.

use crate::batch::{Event, UNKNOWN_NS};
use crate::error::Error;
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::op::{Layer, parse_rwbs};
use crate::reader::{ReadOptions, Reader, Sniff};
use crate::source::{Clock, SourceInfo};
use crate::table::{CellFormat, Column, Header, Row};
use crate::text::{LineError, LineFormat, Sink, TextReader};
use crate::tool::{Tables, check_layer, has_no_times, sniff_below_prose};

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "perf-tools-iosnoop",
    title: "iosnoop of perf-tools",
    verified: true,
    unsorted: true,
    about: About {
        families: &[(Family::Linux, "iosnoop of perf-tools")],
        layer: "request",
        holds: Holds::Events {
            times: "with `-s`, `-t` only",
            latency: "device, to 10 µs",
        },
        verified_by: "the example that ships with it",
        cannot_tell: "without `-s`/`-t` times and order; whether `-Q` was given",
        words: &[
            "STARTs", "ENDs", "COMM", "PID", "TYPE", "DEV", "BLOCK", "BYTES", "LATms", "8,0",
            "202,1", " WS ", " FF ",
        ],
        real: &["perf-tools/iosnoop_example.txt"],
    },
    sniff,
    open,
};

const COLUMNS: &[Column] = &[
    ("STARTs", CellFormat::Decimal),
    ("ENDs", CellFormat::Decimal),
    ("COMM", CellFormat::Free),
    ("PID", CellFormat::Count),
    ("TYPE", CellFormat::Letters),
    ("DEV", CellFormat::Device),
    ("BLOCK", CellFormat::Count),
    ("BYTES", CellFormat::Count),
    ("LATms", CellFormat::Decimal),
];

const REQUIRED: &[&str] = &["COMM", "PID", "TYPE", "DEV", "BLOCK", "BYTES", "LATms"];

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    sniff_below_prose(prefix, complete, |line| {
        Header::find(line, COLUMNS, REQUIRED).is_some()
    })
}

struct Iosnoop {
    tables: Tables,
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    check_layer(&input.path, options, Some(Layer::Request))?;
    let mut info = SourceInfo {
        format: FORMAT.name,
        verified: FORMAT.verified,
        layers: vec![Layer::Request],
        ..SourceInfo::default()
    };
    info.note(
        "if the tool was run with -Q its latencies hold the time in the queue; the output does not tell",
    );
    Ok(Box::new(TextReader::new(
        input,
        Iosnoop {
            tables: Tables::new(COLUMNS, REQUIRED),
        },
        info,
    )))
}

/// Adds the meaning of a run's columns for its times.
fn describe(header: &Header, info: &mut SourceInfo) {
    if header.has("STARTs") || header.has("ENDs") {
        info.clock = Clock::Boot;
    } else {
        has_no_times(info);
    }
    if header.has("ENDs") && !header.has("STARTs") {
        info.note("times of issue are those of completion less a latency rounded to 10 µs");
    }
}

/// Time of issue and latency of a row.
fn times(line: &[u8], row: &Row<'_>) -> Result<(i64, i64), LineError> {
    let rounded = row.decimal("LATms", 6)?.unwrap_or(-1);
    let (start, end) = (row.decimal("STARTs", 9)?, row.decimal("ENDs", 9)?);
    let (time_ns, device_ns) = match (start, end) {
        (Some(start), Some(end)) => (Some(start), end.checked_sub(start)),
        (Some(start), None) => (Some(start), Some(rounded)),
        (None, Some(end)) => (end.checked_sub(rounded), Some(rounded)),
        (None, None) => (Some(UNKNOWN_NS), Some(rounded)),
    };
    match (time_ns, device_ns) {
        (Some(time_ns), Some(device_ns)) if device_ns >= 0 => Ok((time_ns, device_ns)),
        _ => Err(LineError::new(line, "an end at or after the start")),
    }
}

impl LineFormat for Iosnoop {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        if let Some(header) = self.tables.header(line, &mut sink.info) {
            describe(&header, &mut sink.info);
            return Ok(());
        }
        let Some(row) = self.tables.row(line, &mut sink.info)? else {
            return Ok(());
        };
        let (start_bytes, len_bytes) = row.extent("BLOCK", "BYTES")?;
        let (time_ns, device_ns) = times(line, &row)?;
        let device = sink
            .names
            .device(&String::from_utf8_lossy(row.get("DEV").unwrap_or_default()));
        let (op, flags) = parse_rwbs(row.get("TYPE").unwrap_or_default(), len_bytes);
        let mut event = Event::new(time_ns, device, Layer::Request, op, start_bytes, len_bytes);
        event.flags = flags;
        event.device_ns = Some(device_ns);
        event.pid = row.pid();
        event.comm = sink.names.word(&String::from_utf8_lossy(row.free));
        sink.push(&event);
        Ok(())
    }
}
