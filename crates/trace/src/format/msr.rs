//! MSR Cambridge traces: CSV of block I/O of Windows servers.
//!
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, seven columns. The time is a FILETIME, that
//! is 100 ns since 1601; `Type` is Read or Write; offset and size are bytes of the disk; the response time is
//! in units of 100 ns. The distributed files have no header line; copies with one are read too. An empty time is
//! unknown, as Plumb writes it for a trace without times: no row before it may have one. So is an empty response time, and 0, with which files from other sources fill the column.
//! A device is `host_disk`. A line `# plumb: ` in a file that Plumb converted tells the holes of the source.
//!
//! The events come from the disk driver of the host: the request layer. Waits above it are not included. Verified with
//! a real excerpt.

use crate::batch::{Event, UNKNOWN_NS};
use crate::error::Error;
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::op::{Layer, Op};
use crate::reader::{ReadOptions, Reader, Sniff};
use crate::scan::{DeviceKeys, Scan, begins_with, extent, ns, row_or_header};
use crate::source::Clock;
use crate::text::{LineError, LineFormat, Sink, open_lines, sniff_lines};
use crate::write::holes::{add_holes, parse_holes};
use crate::write::msr::HOLES;

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "msr",
    title: "MSR Cambridge CSV",
    verified: true,
    unsorted: true,
    about: About {
        families: &[(Family::Published, "MSR Cambridge")],
        layer: "request",
        holds: Holds::Events {
            times: "100 ns, Unix",
            latency: "response, 100 ns; empty or 0 is unknown",
        },
        verified_by: "a real excerpt",
        cannot_tell: "waits above the driver",
        words: &[
            ",Read,",
            ",Write,",
            "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
        ],
        real: &["msr/msr-cambridge1-sample.csv"],
    },
    sniff,
    open,
};

/// 1970-01-01 as a FILETIME. It is taken off before the scaling to ns: a FILETIME of today in ns is beyond
/// `i64`.
const EPOCH_FILETIME: i64 = 116_444_736_000_000_000;

const TICK_NS: i64 = 100;

struct MsrRow<'line> {
    time_ns: i64,
    disk: &'line [u8],
    op: Op,
    start_bytes: u64,
    len_bytes: u64,
    /// `None` is unknown: no disk answers within the 100 ns that 0 would mean.
    device_ns: Option<i64>,
}

#[inline]
fn parse(line: &[u8]) -> Result<MsrRow<'_>, LineError> {
    let mut scan = Scan::new(line, b',');
    let filetime = match scan.blank() {
        true => None,
        false => Some(scan.u64("a FILETIME")?),
    };
    let disk = scan.two_words("a host and a disk number")?;
    let op = scan.read_or_write("Read or Write")?;
    let (start, len) = (
        scan.u64("an offset in bytes")?,
        scan.u64("a size in bytes")?,
    );
    let response = if scan.blank() {
        0
    } else {
        scan.u64("a response time in 100 ns")?
    };
    scan.end("seven columns")?;
    let time_ns = match filetime {
        None => UNKNOWN_NS,
        Some(filetime) => unix_ns(filetime)
            .ok_or_else(|| LineError::new(line, "a FILETIME between 1677 and 2262"))?,
    };
    let (start_bytes, len_bytes) = extent(start, len, 1, line)?;
    Ok(MsrRow {
        time_ns,
        disk,
        op,
        start_bytes,
        len_bytes,
        device_ns: if response == 0 {
            None
        } else {
            Some(ns(response, TICK_NS, line)?)
        },
    })
}

fn unix_ns(filetime: u64) -> Option<i64> {
    let since_1970 = i64::try_from(filetime).ok()?.checked_sub(EPOCH_FILETIME)?;
    since_1970.checked_mul(TICK_NS)
}

fn is_header(line: &[u8]) -> bool {
    begins_with(line, b"Timestamp,Hostname,")
}

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    sniff_lines(prefix, complete, |line| {
        is_header(line) || parse(line).is_ok() || line.starts_with(HOLES.as_bytes())
    })
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    open_lines(input, options, Msr::default(), FORMAT.requests(Clock::Unix))
}

#[derive(Default)]
struct Msr {
    devices: DeviceKeys,
    /// Whether a row had a time.
    is_timed: bool,
}

impl LineFormat for Msr {
    #[inline]
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        let parsed = parse(line);
        if parsed.is_err()
            && let Some(holes) = line.strip_prefix(HOLES.as_bytes()).and_then(parse_holes)
        {
            add_holes(holes, &mut sink.info);
            return Ok(());
        }
        let Some(row) = row_or_header(parsed, || is_header(line))? else {
            return Ok(());
        };
        if row.time_ns == UNKNOWN_NS && self.is_timed {
            return Err(LineError::new(
                line,
                "a FILETIME, as the rows before have it",
            ));
        }
        self.is_timed |= row.time_ns != UNKNOWN_NS;
        let name = |disk: &[u8]| String::from_utf8_lossy(disk).replace(',', "_");
        let device = self.devices.text(row.disk, &mut sink.names, name);
        let mut event = Event::new(
            row.time_ns,
            device,
            Layer::Request,
            row.op,
            row.start_bytes,
            row.len_bytes,
        );
        event.device_ns = row.device_ns;
        sink.push(&event);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row() {
        let row = parse(b"128166372003061629,hm,1,Read,383496192,32768,413")
            .ok()
            .unwrap();
        // 2007-02-22T17:00:00.3061629Z by the calendar.
        assert_eq!(row.time_ns, 1_172_163_600_306_162_900);
        assert_eq!((row.disk, row.op), (&b"hm,1"[..], Op::Read));
        assert_eq!(
            (row.start_bytes, row.len_bytes, row.device_ns),
            (383_496_192, 32_768, Some(41_300))
        );
    }

    #[test]
    fn times_before_1970_and_unknown_times() {
        for (line, time_ns, device_ns) in [
            ("116444735999999999,h,0,Read,0,512,1", -100, Some(100)),
            ("116444736000000001,h,0,Read,0,512,0", 100, None),
            ("116444736000000000,h,0,Write,0,512,", 0, None),
            (",h,0,Write,0,512,7", UNKNOWN_NS, Some(700)),
        ] {
            let row = parse(line.as_bytes()).ok().unwrap();
            assert_eq!((row.time_ns, row.device_ns), (time_ns, device_ns), "{line}");
        }
    }

    #[test]
    fn malformed_rows_are_rejected() {
        for line in [
            &b"128166372003061629,hm,1,Read,383496192,32768"[..],
            b"128166372003061629,hm,1,Read,383496192,32768,413,1",
            b"128166372003061629,hm,1,Trim,383496192,32768,413",
            b"128166372003061629,hm,1,Read,-1,32768,413",
            b"128166372003061629,hm,1,Read,NaN,32768,413",
            b"128166372003061629,hm,1,Read,18446744073709551615,1,413",
            b"128166372003061629,hm,1,Read,0,512,18446744073709551615",
            b"18446744073709551615,hm,1,Read,0,512,1",
            b"128166372003061629,hm,1,Read,383496192,32768,x",
            b"5,hm,1,Read,0,512,1",
            b"",
        ] {
            assert!(parse(line).is_err(), "{}", String::from_utf8_lossy(line));
        }
    }
}
