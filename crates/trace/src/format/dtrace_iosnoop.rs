//! The output of iosnoop of the DTraceToolkit (Solaris, illumos, macOS, FreeBSD).
//!
//! `[STIME(us)] [TIME(us)] [STRTIME] [DEVICE] [INS] [MAJ MIN] [DELTA(us)] [DTIME(us)] UID PID D BLOCK SIZE`
//! and then `COMM PATHNAME`, or `PATHNAME ARGS` (`-a`, `-g`); or with `-A` all of it between single blanks.
//! BLOCK counts 512 B and SIZE bytes; STIME is the time of the request, TIME that of its completion, both in
//! µs since boot; DELTA is the time between them. DTIME, the time since the disk's last completion, is no
//! latency of one I/O and is not used. D is R or W.
//!
//! The probes are those of the io provider, at the buffers of a device node: the bio layer. BLOCK comes from the
//! issuer; on a slice it may count from the slice's start. Without STIME, and without both TIME and DELTA, the rows are
//! in the order of completion. Verified with the example output that ships with the tool, which has the default columns
//! only; those of the options come from the tool's source.

use crate::batch::{Event, UNKNOWN_NS};
use crate::error::Error;
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::op::{Layer, Op};
use crate::reader::{ReadOptions, Reader, Sniff};
use crate::source::{Clock, Latency, SourceInfo};
use crate::table::{CellFormat, Column, Header, Row};
use crate::text::{LineError, LineFormat, Sink, TextReader};
use crate::tool::{Tables, check_layer, has_no_times, sniff_below_prose};

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "dtrace-iosnoop",
    title: "iosnoop of the DTraceToolkit",
    verified: true,
    unsorted: true,
    about: About {
        families: &[(Family::Solaris, "iosnoop of the DTraceToolkit")],
        layer: "bio",
        holds: Holds::Events {
            times: "µs since boot with `-s`, `-t`",
            latency: "with `-D`, or `-s` and `-t`",
        },
        verified_by: "the example that ships with it (default columns)",
        cannot_tell: "whether a block counts from the slice; without options times and order",
        words: &[
            "STIME(us)",
            "TIME(us)",
            "STIME",
            "TIME",
            "STRTIME",
            "DEVICE",
            "INS",
            "MAJ",
            "MIN",
            "DELTA(us)",
            "DELTA",
            "DTIME(us)",
            "UID",
            "PID",
            "D",
            "BLOCK",
            "SIZE",
            "COMM",
            "PATHNAME",
            "ARGS",
            " R ",
            " W ",
        ],
        real: &["dtrace/iosnoop_example.txt"],
    },
    sniff,
    open,
};

const COLUMNS: &[Column] = &[
    ("STIME(us)", CellFormat::Count),
    ("STIME", CellFormat::Count),
    ("TIME(us)", CellFormat::Count),
    ("TIME", CellFormat::Count),
    // Year, month, day and time of day.
    ("STRTIME", CellFormat::Words(4)),
    ("DEVICE", CellFormat::Word),
    ("INS", CellFormat::Count),
    ("MAJ", CellFormat::Count),
    ("MIN", CellFormat::Count),
    ("DELTA(us)", CellFormat::Count),
    ("DELTA", CellFormat::Count),
    ("DTIME(us)", CellFormat::Count),
    ("UID", CellFormat::Count),
    ("PID", CellFormat::Count),
    ("PPID", CellFormat::Count),
    ("D", CellFormat::Letters),
    ("BLOCK", CellFormat::Count),
    ("SIZE", CellFormat::Count),
    ("MOUNT", CellFormat::Word),
    ("FILE", CellFormat::Word),
    ("PATH", CellFormat::Word),
    ("COMM", CellFormat::Free),
    ("PATHNAME", CellFormat::Free),
    ("ARGS", CellFormat::Free),
];

const REQUIRED: &[&str] = &["UID", "PID", "D", "BLOCK", "SIZE"];

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    sniff_below_prose(prefix, complete, |line| {
        Header::find(line, COLUMNS, REQUIRED).is_some()
    })
}

struct Iosnoop {
    tables: Tables,
    has_comm: bool,
    has_path: bool,
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    check_layer(&input.path, options, Some(Layer::Bio))?;
    let mut info = SourceInfo {
        format: FORMAT.name,
        verified: FORMAT.verified,
        layers: vec![Layer::Bio],
        latency: Latency::None(
            "iosnoop was run without -D, -A and without both -s and -t".to_owned(),
        ),
        ..SourceInfo::default()
    };
    info.note("BLOCK may count from the start of the slice that was addressed and not from that of the disk");
    let format = Iosnoop {
        tables: Tables::new(COLUMNS, REQUIRED),
        has_comm: true,
        has_path: true,
    };
    Ok(Box::new(TextReader::new(input, format, info)))
}

/// µs since boot or between two events, in ns.
fn micros(row: &Row<'_>, names: [&str; 2]) -> Result<Option<i64>, LineError> {
    match row.decimal(names[0], 3)? {
        None => row.decimal(names[1], 3),
        some => Ok(some),
    }
}

/// Time of issue, or of completion where that is all there is, and latency.
fn times(line: &[u8], row: &Row<'_>) -> Result<(i64, Option<i64>), LineError> {
    let start = micros(row, ["STIME(us)", "STIME"])?;
    let end = micros(row, ["TIME(us)", "TIME"])?;
    let delta = micros(row, ["DELTA(us)", "DELTA"])?;
    let device_ns = delta.or(match (start, end) {
        // Both are counts, so the difference fits.
        (Some(start), Some(end)) => Some(end - start),
        _ => None,
    });
    if device_ns.is_some_and(|ns| ns < 0) {
        return Err(LineError::new(line, "an end at or after the start"));
    }
    let issued = end.map(|end| end - device_ns.unwrap_or(0));
    Ok((start.or(issued).unwrap_or(UNKNOWN_NS), device_ns))
}

/// Adds the meaning of a run's columns for its times and devices.
fn describe(header: &Header, info: &mut SourceInfo) {
    let has = |names: [&str; 2]| names.iter().any(|name| header.has(name));
    let (start, end) = (has(["STIME(us)", "STIME"]), has(["TIME(us)", "TIME"]));
    let delta = has(["DELTA(us)", "DELTA"]);
    if delta || start && end {
        info.latency = Latency::Known;
    }
    if start || end {
        info.clock = Clock::Boot;
    }
    let issue_known = start || end && delta;
    if !issue_known {
        info.completions_only = true;
        has_no_times(info);
    }
    if !header.has("DEVICE") && !header.has("MAJ") {
        info.note(
            "a run without -e or -N does not name devices: those of the host are taken for one",
        );
    }
}

/// Command and path from the text after SIZE: a path begins with `/` or, unknown, with `<`.
fn comm_and_path(free: &[u8]) -> (&[u8], &[u8]) {
    let mark =
        memchr::memchr_iter(b' ', free).find(|&at| matches!(free.get(at + 1), Some(b'/' | b'<')));
    let at = mark
        .or_else(|| memchr::memchr(b' ', free))
        .unwrap_or(free.len());
    let (comm, path) = free.split_at(at);
    let path = path.trim_ascii();
    (
        comm.trim_ascii(),
        if path.first() == Some(&b'<') {
            b""
        } else {
            path
        },
    )
}

impl Iosnoop {
    fn name(&self, row: &Row<'_>, event: &mut Event, sink: &mut Sink) {
        let (comm, mut path) = match (self.has_comm, self.has_path) {
            (true, true) => comm_and_path(row.free),
            (true, false) => comm_and_path(
                row.free
                    .split(|&byte| byte == b' ')
                    .next()
                    .unwrap_or_default(),
            ),
            (false, _) => (
                &b""[..],
                row.free
                    .split(|&byte| byte == b' ')
                    .next()
                    .unwrap_or_default(),
            ),
        };
        path = row.get("PATH").unwrap_or(path);
        if path.first() == Some(&b'<') {
            path = b"";
        }
        event.comm = sink.names.word(&String::from_utf8_lossy(comm));
        event.file = sink.names.word(&String::from_utf8_lossy(path));
    }
}

fn device_name(row: &Row<'_>) -> String {
    if let Some(device) = row.get("DEVICE") {
        return String::from_utf8_lossy(device).into_owned();
    }
    match (row.count("MAJ"), row.count("MIN")) {
        (Some(major), Some(minor)) => format!("{major},{minor}"),
        _ => "unknown".to_owned(),
    }
}

impl LineFormat for Iosnoop {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        if let Some(header) = self.tables.header(line, &mut sink.info) {
            describe(&header, &mut sink.info);
            (self.has_comm, self.has_path) = (header.has("COMM"), header.has("PATHNAME"));
            return Ok(());
        }
        let Some(row) = self.tables.row(line, &mut sink.info)? else {
            return Ok(());
        };
        let (start_bytes, len_bytes) = row.extent("BLOCK", "SIZE")?;
        let (time_ns, device_ns) = times(line, &row)?;
        let letter = row.get("D").unwrap_or_default();
        let op = match letter {
            b"R" => Op::Read,
            b"W" => Op::Write,
            _ => return Err(LineError::new(letter, "R or W in column D")),
        };
        let device = sink.names.device(&device_name(&row));
        let mut event = Event::new(time_ns, device, Layer::Bio, op, start_bytes, len_bytes);
        event.device_ns = device_ns;
        event.pid = row.pid();
        self.name(&row, &mut event, sink);
        sink.push(&event);
        Ok(())
    }
}
