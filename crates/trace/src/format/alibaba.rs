//! Alibaba's block traces of 2020: CSV of the I/O of cloud disks.
//!
//! `device_id,opcode,offset,length,timestamp`, five columns without a header line (copies with one are read
//! too). The opcode is R or W; offset and length are bytes of the virtual disk; the time is in µs since 1970.
//!
//! Recorded at the virtual disks' back end: requests of a guest's driver, the request layer. There are no response
//! times. *Unverified*: tested with seven real lines only.

use crate::batch::Event;
use crate::error::Error;
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::op::{Layer, Op};
use crate::reader::{ReadOptions, Reader, Sniff};
use crate::scan::{DeviceKeys, Scan, begins_with, extent, ns, row_or_header};
use crate::source::{Clock, Latency, SourceInfo};
use crate::text::{LineError, LineFormat, Sink, open_lines, sniff_lines};

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "alibaba",
    title: "Alibaba block traces of 2020, CSV",
    verified: false,
    unsorted: true,
    about: About {
        families: &[(Family::Published, "Alibaba 2020")],
        layer: "request",
        holds: Holds::Events {
            times: "µs, Unix",
            latency: "none",
        },
        verified_by: "seven real lines: **unverified**",
        cannot_tell: "latency",
        words: &[",R,", ",W,", "device_id,opcode,offset,length,timestamp"],
        real: &["cloud/alibaba-7-lines.csv"],
    },
    sniff,
    open,
};

struct AlibabaRow {
    disk: u64,
    op: Op,
    start_bytes: u64,
    len_bytes: u64,
    time_ns: i64,
}

#[inline]
fn parse(line: &[u8]) -> Result<AlibabaRow, LineError> {
    let mut scan = Scan::new(line, b',');
    let disk = scan.u64("a device number")?;
    let op = scan.read_or_write("R or W")?;
    let (start, len) = (
        scan.u64("an offset in bytes")?,
        scan.u64("a length in bytes")?,
    );
    let time_us = scan.u64("a time in µs")?;
    scan.end("five columns")?;
    let (start_bytes, len_bytes) = extent(start, len, 1, line)?;
    Ok(AlibabaRow {
        disk,
        op,
        start_bytes,
        len_bytes,
        time_ns: ns(time_us, 1000, line)?,
    })
}

fn is_header(line: &[u8]) -> bool {
    begins_with(line, b"device_id,opcode,")
}

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    sniff_lines(prefix, complete, |line| {
        is_header(line) || parse(line).is_ok()
    })
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    let info = SourceInfo {
        latency: Latency::None("the format has no response times".to_owned()),
        ..FORMAT.requests(Clock::Unix)
    };
    open_lines(input, options, Alibaba::default(), info)
}

#[derive(Default)]
struct Alibaba {
    devices: DeviceKeys,
}

impl LineFormat for Alibaba {
    #[inline]
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        let Some(row) = row_or_header(parse(line), || is_header(line))? else {
            return Ok(());
        };
        let device = self.devices.number(row.disk, &mut sink.names);
        let (start, len) = (row.start_bytes, row.len_bytes);
        sink.push(&Event::new(
            row.time_ns,
            device,
            Layer::Request,
            row.op,
            start,
            len,
        ));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row() {
        let row = parse(b"419,W,8792731648,16384,1577808144360767")
            .ok()
            .unwrap();
        assert_eq!((row.disk, row.op), (419, Op::Write));
        assert_eq!((row.start_bytes, row.len_bytes), (8_792_731_648, 16_384));
        assert_eq!(row.time_ns, 1_577_808_144_360_767_000);
    }

    #[test]
    fn malformed_rows_are_rejected() {
        for line in [
            &b"419,W,8792731648,16384"[..],
            b"419,W,8792731648,16384,1577808144360767,0",
            b"419,,8792731648,16384,1577808144360767",
            b"419,W,8792731648,-1,1577808144360767",
            b"419,W,18446744073709551000,16384,1577808144360767",
            b"419,W,0,16384,9223372036854775807",
            b"vol,W,0,16384,1577808144360767",
        ] {
            assert!(parse(line).is_err(), "{}", String::from_utf8_lossy(line));
        }
    }
}
