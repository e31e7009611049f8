//! The text that `xperf -a dumper` writes of an ETW trace, as far as it is about disks.
//!
//! Lines of fields after commas. A block from `BeginHeader` to `EndHeader` names the columns of each kind of
//! line by a line of the same kind; they differ between versions (older ones have no `CPU`), so places come
//! from there. `DiskRead`, `DiskWrite` and `DiskFlush` are I/O; all other kinds are passed over. `ByteOffset` and
//! `IOSize` are hexadecimal bytes of the whole disk.
//!
//! Such a line is written when the I/O is complete: `ElapsedTime` before its `TimeStamp` it was begun. So `device_ns` is
//! ElapsedTime, and the time of the event is TimeStamp less that. `DiskSvcTime` (as in the CSV of the analyzer, an
//! inference that counts one request at a time) is used only without it. The request layer of the host's disk driver.
//!
//! *Unverified*: tested with a single real line. The file names no unit of time; documents name µs since the trace
//! began, and the TimeStamp of these events is that of completion.

use crate::batch::Event;
use crate::error::Error;
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::number::{parse_decimal, parse_hex, parse_i64};
use crate::op::{Layer, Op};
use crate::reader::{ReadOptions, Reader, Sniff};
use crate::scan::DeviceKeys;
use crate::source::{Clock, SourceInfo};
use crate::text::{Fields, LineError, LineFormat, Sink, open_lines, whole_lines};

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "xperf",
    title: "`xperf -a dumper` text",
    verified: false,
    unsorted: true,
    about: About {
        families: &[(Family::Windows, "xperf")],
        layer: "request",
        holds: Holds::Events {
            times: "µs since the start",
            latency: "device, begin to complete",
        },
        verified_by: "one real line: **unverified**",
        cannot_tell: "time before issue",
        words: &[
            "BeginHeader",
            "EndHeader",
            "DiskRead, ",
            "DiskWrite, ",
            "DiskFlush, ",
            "TimeStamp",
            "Process Name ( PID)",
            "ThreadID",
            "CPU",
            "IrpPtr",
            "ByteOffset",
            "IOSize",
            "ElapsedTime",
            "DiskNum",
            "IrpFlags",
            "DiskSvcTime",
            "I/O Pri",
        ],
        real: &["etw/xperf_dumper_1line.txt"],
    },
    sniff,
    open,
};

/// Digits of a µs down to ns.
const US_SCALE: u32 = 3;

const KINDS: [(&str, Op); 3] = [
    ("DiskRead", Op::Read),
    ("DiskWrite", Op::Write),
    ("DiskFlush", Op::Flush),
];

/// Columns that are read, by the beginning of their names.
const COLUMNS: [&str; 7] = [
    "TimeStamp",
    "DiskNum",
    "ByteOffset",
    "IOSize",
    "ElapsedTime",
    "DiskSvcTime",
    "Process Name",
];
const TIME: usize = 0;
const DISK: usize = 1;
const OFFSET: usize = 2;
const SIZE: usize = 3;
const ELAPSED: usize = 4;
const SERVICE: usize = 5;
const PROCESS: usize = 6;

/// The position of each of [`COLUMNS`] in a line of some kind.
type ColumnPlaces = [Option<usize>; COLUMNS.len()];

fn places_of(header: &[u8]) -> ColumnPlaces {
    COLUMNS.map(|column| {
        Fields::new(header, b',')
            .position(|field| field.trim_ascii().starts_with(column.as_bytes()))
    })
}

fn kind_of(line: &[u8]) -> Option<usize> {
    let word = Fields::new(line, b',').next()?.trim_ascii();
    KINDS.iter().position(|(name, _)| name.as_bytes() == word)
}

/// The fields of a line, by place in [`COLUMNS`].
struct XperfCells<'line>([Option<&'line [u8]>; COLUMNS.len()]);

impl<'line> XperfCells<'line> {
    fn split(line: &'line [u8], places: &ColumnPlaces) -> XperfCells<'line> {
        let mut cells = [None; COLUMNS.len()];
        for (at, field) in Fields::new(line, b',').enumerate() {
            if let Some(cell) = places
                .iter()
                .position(|place| *place == Some(at))
                .and_then(|at| cells.get_mut(at))
            {
                *cell = Some(field.trim_ascii());
            }
        }
        XperfCells(cells)
    }

    fn get(&self, at: usize) -> Option<&'line [u8]> {
        self.0.get(at).copied().flatten()
    }

    fn hex(&self, at: usize) -> Result<u64, LineError> {
        let cell = self.get(at).unwrap_or_default();
        parse_hex(cell).ok_or_else(|| LineError::new(cell, "a hexadecimal number of bytes"))
    }

    /// A time in ns, where the kind of line has it.
    fn time(&self, at: usize) -> Result<Option<i64>, LineError> {
        let Some(cell) = self.get(at) else {
            return Ok(None);
        };
        let ns = parse_decimal(cell, US_SCALE).filter(|&ns| ns >= 0);
        ns.map(Some)
            .ok_or_else(|| LineError::new(cell, "a time in µs, 0 or more"))
    }
}

/// When the request was begun, and how long it was in flight.
fn times_of(cells: &XperfCells<'_>) -> Result<(i64, Option<i64>), LineError> {
    let done_ns = cells
        .time(TIME)?
        .ok_or_else(|| LineError::new(b"", "a TimeStamp"))?;
    let (elapsed_ns, service_ns) = (cells.time(ELAPSED)?, cells.time(SERVICE)?);
    if elapsed_ns
        .zip(service_ns)
        .is_some_and(|(elapsed, service)| service > elapsed)
    {
        let found = cells.get(SERVICE).unwrap_or_default();
        return Err(LineError::new(
            found,
            "a DiskSvcTime no longer than the ElapsedTime",
        ));
    }
    let device_ns = elapsed_ns.or(service_ns);
    Ok((done_ns - device_ns.unwrap_or(0), device_ns))
}

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    match whole_lines(prefix, complete).next() {
        Some(line) if line.trim_ascii() == b"BeginHeader" => Sniff::Yes,
        Some(_) => Sniff::No,
        None if complete || prefix.len() > 64 => Sniff::No,
        None => Sniff::More,
    }
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    let info = SourceInfo {
        format: FORMAT.name,
        verified: FORMAT.verified,
        layers: vec![Layer::Request],
        clock: Clock::Start,
        notes: vec!["times are taken as µs, which the file does not say".to_owned()],
        ..SourceInfo::default()
    };
    open_lines(input, options, Xperf::default(), info)
}

#[derive(Default)]
struct Xperf {
    in_header: bool,
    places: [Option<ColumnPlaces>; KINDS.len()],
    disks: DeviceKeys,
}

impl Xperf {
    fn event(&mut self, kind: usize, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        let Some(places) = self.places.get(kind).and_then(Option::as_ref) else {
            return Err(LineError::new(
                line,
                "a BeginHeader block before it that names the columns",
            ));
        };
        let cells = XperfCells::split(line, places);
        let op = KINDS.get(kind).map_or(Op::Other, |(_, op)| *op);
        let (time_ns, device_ns) = times_of(&cells)?;
        let (start, len) = if op == Op::Flush {
            (0, 0)
        } else {
            (cells.hex(OFFSET)?, cells.hex(SIZE)?)
        };
        let disk = cells.get(DISK).unwrap_or_default();
        if disk.is_empty() || start.checked_add(len).is_none() {
            return Err(LineError::new(
                line,
                "a disk, and an offset and size whose sum is below 2^64 bytes",
            ));
        }
        let name = |disk: &[u8]| String::from_utf8_lossy(disk).into_owned();
        let device = self.disks.text(disk, &mut sink.names, name);
        let mut event = Event::new(time_ns, device, Layer::Request, op, start, len);
        event.device_ns = device_ns;
        if let Some(process) = cells.get(PROCESS) {
            let text = String::from_utf8_lossy(process);
            let (name, pid) = text
                .trim_end_matches(')')
                .rsplit_once('(')
                .unwrap_or((&text, ""));
            event.comm = sink.names.word(name.trim_end());
            event.pid = parse_i64(pid.trim().as_bytes()).and_then(|pid| i32::try_from(pid).ok());
        }
        sink.push(&event);
        Ok(())
    }
}

impl LineFormat for Xperf {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        let kind = kind_of(line);
        match (line.trim_ascii(), kind) {
            (b"BeginHeader", _) => self.in_header = true,
            (b"EndHeader", _) => self.in_header = false,
            (_, Some(kind)) if self.in_header => {
                if let Some(places) = self.places.get_mut(kind) {
                    *places = Some(places_of(line));
                }
            }
            (_, Some(kind)) => return self.event(kind, line, sink),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Result<Vec<Event>, LineError> {
        let (mut xperf, mut sink) = (Xperf::default(), Sink::default());
        for line in lines {
            xperf.line(line.as_bytes(), &mut sink)?;
        }
        Ok(sink.batch.events().collect())
    }

    const NEW: &str = "  DiskRead,  TimeStamp,  Process Name ( PID),  ThreadID, CPU,  IrpPtr,  ByteOffset,  \
                       IOSize, ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri";
    const OLD: &str = "DiskRead, TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ByteOffset, IOSize, \
                       ElapsedTime, DiskNum, IrpFlags, DiskSvcTime, I/O Pri";

    #[test]
    fn places_come_from_the_header() {
        let new = "DiskRead, 8612, a b.exe (3984), 11844, 1, 0xff, 0x018f0b8000, 0x00001000, 283, 2, 0x06, 80, 3";
        let old = "DiskRead, 8612, a b.exe (3984), 11844, 0xff, 0x018f0b8000, 0x00001000, 283, 2, 0x06, 80, 3";
        for (header, row) in [(NEW, new), (OLD, old)] {
            let events = read(&["BeginHeader", header, "EndHeader", "Mark, 5, x", row])
                .ok()
                .unwrap();
            let [event] = events[..] else {
                panic!("one event, not {}", events.len())
            };
            assert_eq!(
                (event.start_bytes, event.len_bytes, event.op),
                (0x1_8f0b_8000, 4096, Op::Read)
            );
            assert_eq!((event.time_ns, event.pid), (8_329_000, Some(3984)));
            assert_eq!((event.queue_ns, event.device_ns), (None, Some(283_000)));
        }
    }

    #[test]
    fn malformed_rows_are_rejected() {
        for row in [
            "DiskRead, 8612, a (1), 1, 0xff, 0x0, 0x200, 283, 0, 0x06, 284, 3",
            "DiskRead, NaN, a (1), 1, 0xff, 0x0, 0x200, 283, 0, 0x06, 83, 3",
            "DiskRead, 8612, a (1), 1, 0xff, 0xfffffffffffffe01, 0x200, 283, 0, 0x06, 83, 3",
            "DiskRead, 8612, a (1), 1, 0xff, 0x0, 512 B, 283, 0, 0x06, 83, 3",
            "DiskRead, 9223372036854775807, a (1), 1, 0xff, 0x0, 0x200, 283, 0, 0x06, 83, 3",
            "DiskRead, 8612",
            "DiskWrite, 8612, a (1), 1, 0xff, 0x0, 0x200, 283, 0, 0x06, 83, 3",
        ] {
            assert!(
                read(&["BeginHeader", OLD, "EndHeader", row]).is_err(),
                "{row}"
            );
        }
    }
}
