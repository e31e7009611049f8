//! Tencent's block traces of 2018 (CBS): CSV of the I/O of cloud volumes.
//!
//! `Timestamp,Offset,Size,IOType,VolumeID`, five columns without a header line (copies with one are read
//! too). The time is in whole seconds since 1970; offset and size are in sectors of 512 bytes; 0 is a read,
//! 1 a write.
//!
//! Recorded at the storage cluster's proxies: requests of the volumes' clients, the request layer. There are no
//! response times, and within a second only the order of the lines gives the sequence. *Unverified*: tested with ten
//! real lines only.

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
    name: "tencent",
    title: "Tencent block storage of 2018, CSV",
    verified: false,
    unsorted: true,
    about: About {
        families: &[(Family::Published, "Tencent 2018")],
        layer: "request",
        holds: Holds::Events {
            times: "s, Unix",
            latency: "none",
        },
        verified_by: "ten real lines: **unverified**",
        cannot_tell: "latency; times within a second",
        words: &[",0,", ",1,", "Timestamp,Offset,Size,IOType,VolumeID"],
        real: &["cloud/tencent-10-lines.csv"],
    },
    sniff,
    open,
};

const SECTOR_BYTES: u64 = 512;

/// Five numbers in a row can be many things: only times between 2001 and 2096 are taken for this format.
const SNIFFED_SECONDS: std::ops::Range<i64> = 1_000_000_000..4_000_000_000;

struct TencentRow {
    time_ns: i64,
    start_bytes: u64,
    len_bytes: u64,
    op: Op,
    volume: u64,
}

#[inline]
fn parse(line: &[u8]) -> Result<TencentRow, LineError> {
    const TYPE: &str = "0 (read) or 1 (write)";
    let mut scan = Scan::new(line, b',');
    let seconds = scan.u64("a time in seconds")?;
    let (start, len) = (
        scan.u64("an offset in sectors")?,
        scan.u64("a size in sectors")?,
    );
    let op = match scan.u64(TYPE)? {
        0 => Op::Read,
        1 => Op::Write,
        other => return Err(LineError::new(other.to_string().as_bytes(), TYPE)),
    };
    let volume = scan.u64("a volume number")?;
    scan.end("five columns")?;
    let (start_bytes, len_bytes) = extent(start, len, SECTOR_BYTES, line)?;
    Ok(TencentRow {
        time_ns: ns(seconds, 1_000_000_000, line)?,
        start_bytes,
        len_bytes,
        op,
        volume,
    })
}

fn is_header(line: &[u8]) -> bool {
    begins_with(line, b"Timestamp,Offset,Size,IOType,")
}

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    sniff_lines(prefix, complete, |line| {
        is_header(line)
            || parse(line).is_ok_and(|row| SNIFFED_SECONDS.contains(&(row.time_ns / 1_000_000_000)))
    })
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    let mut info = SourceInfo {
        latency: Latency::None("the format has no response times".to_owned()),
        ..FORMAT.requests(Clock::Unix)
    };
    info.note("times are whole seconds: the order within a second is that of the lines");
    open_lines(input, options, Tencent::default(), info)
}

#[derive(Default)]
struct Tencent {
    devices: DeviceKeys,
}

impl LineFormat for Tencent {
    #[inline]
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        let Some(row) = row_or_header(parse(line), || is_header(line))? else {
            return Ok(());
        };
        let device = self.devices.number(row.volume, &mut sink.names);
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
        let row = parse(b"1538323200,12910952,128,1,1063").ok().unwrap();
        assert_eq!(
            (row.time_ns, row.op, row.volume),
            (1_538_323_200_000_000_000, Op::Write, 1063)
        );
        assert_eq!((row.start_bytes, row.len_bytes), (6_610_407_424, 65_536));
    }

    #[test]
    fn malformed_rows_are_rejected() {
        for line in [
            &b"1538323200,12910952,128,2,1063"[..],
            b"1538323200,12910952,128,1",
            b"1538323200,12910952,128,1,1063,5",
            b"1538323200.5,12910952,128,1,1063",
            b"1538323200,36028797018963968,128,1,1063",
            b"9223372037,12910952,128,1,1063",
            b"-1,12910952,128,1,1063",
        ] {
            assert!(parse(line).is_err(), "{}", String::from_utf8_lossy(line));
        }
        assert_eq!(sniff(b"7,8,9,1,2\n", true), Sniff::No);
    }
}
