//! The disk table of Windows Performance Analyzer, as `wpaexporter` writes it: CSV of ETW disk events.
//!
//! The header names the columns, in any order; needed are `IO Type`, `Init Time (s)`, `Size (B)`,
//! `Min Offset` and `Disk`. Offsets are hexadecimal bytes of the whole disk, times count from the start of the
//! trace. Separator and numbers follow the country set in Windows: `;` or `,`, a fraction after `,` or `.`,
//! thousands in groups, fields with a comma in quotes. The fraction mark is learnt from the first time (the
//! last `.` or `,` in it) and noted. Size must agree with `Max Offset` where there is one, so a wrongly read
//! number is damage and not a wrong size. A flush has Size 0 and an offset of all ones.
//!
//! An I/O is in flight from `Init Time` to `Complete Time`; `IO Time` is the difference, and `device_ns` here. `Disk
//! Service Time` is the part of it that WPA ascribes to the disk: from the completion before (or from Init, if later)
//! to Complete. By that no disk ever works on two requests at once, for any depth of its queue. It is used only without
//! `IO Time`, and a note says so.
//!
//! The request layer of the host's disk driver. Verified against the first rows of a real German export
//! (`;` with `,`); no real file of another country was at hand.

use crate::batch::Event;
use crate::error::Error;
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::locale::Locale;
use crate::names::NameId;
use crate::number::{parse_hex, parse_i64};
use crate::op::{Layer, Op};
use crate::reader::{ReadOptions, Reader, Sniff};
use crate::scan::DeviceKeys;
use crate::source::{Clock, SourceInfo};
use crate::text::{LineError, LineFormat, Sink, open_lines, whole_lines};

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "wpa-csv",
    title: "disk table of Windows Performance Analyzer (`wpaexporter`)",
    verified: true,
    unsorted: true,
    about: About {
        families: &[(
            Family::Windows,
            "disk table of Windows Performance Analyzer",
        )],
        layer: "request",
        holds: Holds::Events {
            times: "µs or finer since the start",
            latency: "device, init to complete",
        },
        verified_by: "first rows of a real export in German form; other countries: **unverified**",
        cannot_tell: "time before issue",
        words: &[
            "IO Type",
            "Process (Name)",
            "Init Time (s)",
            "Complete Time (s)",
            "IO Time (µs)",
            "Disk Service Time (µs)",
            "Size (B)",
            "Min Offset",
            "Max Offset",
            "Disk",
            "Read",
            "Write",
            "Flush",
            "\"",
            "0xFFFFFFFFFFFFFFFF",
            "1.234.567,891",
            "1,234,567.891",
        ],
        real: &["etw/wpaexporter-head.csv"],
    },
    sniff,
    open,
};

mod columns;

use columns::{
    DISK, EtwCells, EtwHeader, INIT, IO_TIME, MAX_OFFSET, MIN_OFFSET, OP, PROCESS, SERVICE, SIZE,
};

fn op_of(cell: &[u8]) -> Option<Op> {
    match cell {
        b"Read" => Some(Op::Read),
        b"Write" => Some(Op::Write),
        b"Flush" => Some(Op::Flush),
        _ => None,
    }
}

/// First byte and length; a flush has none of its own.
fn extent_of(cells: &EtwCells<'_>, op: Op, locale: Locale) -> Result<(u64, u64), LineError> {
    let size = cells.needed(SIZE, "a size in bytes", |cell| locale.whole(cell))?;
    let first = cells.needed(MIN_OFFSET, "a hexadecimal offset", parse_hex)?;
    if op == Op::Flush {
        return Ok((0, 0));
    }
    let last = match cells.get(MAX_OFFSET) {
        Some(cell) => {
            Some(parse_hex(cell).ok_or_else(|| LineError::new(cell, "a hexadecimal offset"))?)
        }
        None => None,
    };
    let end = first.checked_add(size);
    if end.is_none() || size > 0 && last.is_some_and(|last| last.checked_add(1) != end) {
        let found = cells.get(SIZE).unwrap_or_default();
        return Err(LineError::new(
            found,
            "a size that leads from Min Offset to Max Offset",
        ));
    }
    Ok((first, size))
}

/// When the request was handed down, and how long it was in flight.
fn times_of(
    cells: &EtwCells<'_>,
    header: &EtwHeader,
    locale: Locale,
) -> Result<(i64, Option<i64>), LineError> {
    let init_ns = cells.time(INIT, header, locale)?.unwrap_or_default();
    let io_ns = cells.time(IO_TIME, header, locale)?;
    let service_ns = cells.time(SERVICE, header, locale)?;
    if io_ns
        .zip(service_ns)
        .is_some_and(|(io, service)| service > io)
    {
        let found = cells.get(SERVICE).unwrap_or_default();
        return Err(LineError::new(
            found,
            "a Disk Service Time no longer than the IO Time",
        ));
    }
    let took_ns = io_ns.or(service_ns);
    if took_ns.is_some_and(|ns| init_ns.checked_add(ns).is_none()) {
        let found = cells.get(INIT).unwrap_or_default();
        return Err(LineError::new(found, "a completion within 292 years"));
    }
    Ok((init_ns, took_ns))
}

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    match whole_lines(prefix, complete).next() {
        Some(line) if EtwHeader::parse(line).is_some() => Sniff::Yes,
        Some(_) => Sniff::No,
        None if complete || prefix.len() >= 4096 => Sniff::No,
        None => Sniff::More,
    }
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    let info = SourceInfo {
        format: FORMAT.name,
        verified: FORMAT.verified,
        layers: vec![Layer::Request],
        clock: Clock::Start,
        ..SourceInfo::default()
    };
    open_lines(input, options, Wpa::default(), info)
}

#[derive(Default)]
struct Wpa {
    header: Option<EtwHeader>,
    locale: Option<Locale>,
    disks: DeviceKeys,
    /// The last process field, with its meaning.
    process: (Vec<u8>, NameId, Option<i32>),
}

impl Wpa {
    fn begin(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        let header = EtwHeader::parse(line).ok_or_else(|| {
            LineError::new(
                line,
                "a header with IO Type, Init Time (s), Size (B), Min Offset and Disk",
            )
        })?;
        if header.meaning.contains(&Some(SERVICE)) && !header.meaning.contains(&Some(IO_TIME)) {
            sink.info.note(
                "latency is the Disk Service Time alone, which counts one request at a time: depths and latencies are \
                 too low. Export the column IO Time as well",
            );
        }
        self.header = Some(header);
        Ok(())
    }

    /// `name.exe (1234)`, or a name alone.
    fn process_of(&mut self, cell: &[u8], sink: &mut Sink) -> (NameId, Option<i32>) {
        if self.process.0 != cell {
            let text = String::from_utf8_lossy(cell);
            let parts = text
                .strip_suffix(')')
                .and_then(|text| text.rsplit_once(" ("));
            let pid =
                parts.and_then(|(_, pid)| i32::try_from(parse_i64(pid.trim().as_bytes())?).ok());
            let name = if pid.is_some() {
                parts.map_or("", |(name, _)| name)
            } else {
                &*text
            };
            self.process = (cell.to_vec(), sink.names.word(name), pid);
        }
        (self.process.1, self.process.2)
    }
}

impl LineFormat for Wpa {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        let Some(header) = &self.header else {
            return self.begin(line, sink);
        };
        let cells = EtwCells::split(line, header);
        let locale = match self.locale {
            Some(locale) => locale,
            None => {
                let locale = cells.needed(INIT, "a time with a fraction", Locale::learn)?;
                let mark = char::from(locale.fraction_mark);
                sink.info.verified &= header.separator == b';' && mark == ',';
                sink.info
                    .note(format!("`{mark}` was taken as the mark before fractions"));
                *self.locale.insert(locale)
            }
        };
        let op = cells.needed(OP, "Read, Write or Flush", op_of)?;
        let (start, len) = extent_of(&cells, op, locale)?;
        let (time_ns, device_ns) = times_of(&cells, header, locale)?;
        let disk = cells.get(DISK).unwrap_or_default();
        if disk.is_empty() {
            return Err(LineError::new(line, "a disk number"));
        }
        let name = |disk: &[u8]| String::from_utf8_lossy(disk).into_owned();
        let device = self.disks.text(disk, &mut sink.names, name);
        let mut event = Event::new(time_ns, device, Layer::Request, op, start, len);
        event.device_ns = device_ns;
        if let Some(process) = cells.get(PROCESS) {
            (event.comm, event.pid) = self.process_of(process, sink);
        }
        sink.push(&event);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GERMAN: &str = "IO Type;Process (Name);Init Time (s);IO Time (\u{b5}s);Disk Service Time (\u{b5}s);\
                          Size (B);Min Offset;Max Offset;Disk";
    const ENGLISH: &str = "IO Type,Process (Name),Init Time (s),IO Time (\u{b5}s),Disk Service Time (\u{b5}s),\
                           Size (B),Min Offset,Max Offset,Disk";

    fn read(header: &str, row: &str) -> Result<Event, LineError> {
        let (mut wpa, mut sink) = (Wpa::default(), Sink::default());
        wpa.line(header.as_bytes(), &mut sink)?;
        wpa.line(row.as_bytes(), &mut sink)?;
        Ok(sink.batch.event(0))
    }

    #[test]
    fn two_countries_one_event() {
        let german =
            "Read;a.exe (77);1,716745400;1.077,700;30,700;16.384;0x2CE9A08000;0x2CE9A0BFFF;1";
        let english = "Read,a.exe (77),1.716745400,\"1,077.700\",30.700,\"16,384\",0x2CE9A08000,0x2CE9A0BFFF,1";
        for (header, row) in [(GERMAN, german), (ENGLISH, english)] {
            let event = read(header, row).ok().unwrap();
            assert_eq!((event.queue_ns, event.device_ns), (None, Some(1_077_700)));
            assert_eq!((event.time_ns, event.pid), (1_716_745_400, Some(77)));
            assert_eq!(
                (event.op, event.start_bytes, event.len_bytes),
                (Op::Read, 0x2c_e9a0_8000, 16_384)
            );
        }
    }

    #[test]
    fn a_flush_has_no_place() {
        let row = "Flush;System;1,718822100;1.795,900;1.205,600;0;0xFFFFFFFFFFFFFFFF;0xFFFFFFFFFFFFFFFF;1";
        let event = read(GERMAN, row).ok().unwrap();
        assert_eq!(
            (event.op, event.start_bytes, event.len_bytes),
            (Op::Flush, 0, 0)
        );
        assert_eq!((event.queue_ns, event.device_ns), (None, Some(1_795_900)));
    }

    #[test]
    fn malformed_rows_are_rejected() {
        for row in [
            "Read;System;1,7;1,0;2,0;512;0x0;0x1FF;1",
            "Read;System;1,7;2,0;1,0;1.024;0x0;0x1FF;1",
            "Lesen;System;1,7;2,0;1,0;512;0x0;0x1FF;1",
            "Read;System;1,7;2,0;1,0;512;-1;0x1FF;1",
            "Read;System;NaN;2,0;1,0;512;0x0;0x1FF;1",
            "Read;System;1,7;2,0;1,0;512;0x0;0x1FF",
            "Read;System;-1,7;2,0;1,0;512;0x0;0x1FF;1",
            "Read;System;9223372036,9;2,0;1,0;512;0x0;0x1FF;1",
            "Read;System;1,7;2,0;1,0;512;0xFFFFFFFFFFFFFFFF;0x1FF;1",
        ] {
            assert!(read(GERMAN, row).is_err(), "{row}");
        }
    }
}
