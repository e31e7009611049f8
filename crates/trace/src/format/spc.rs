//! SPC traces (Storage Performance Council; UMass Financial and WebSearch): CSV of application block I/O.
//!
//! `ASU,LBA,Size,Opcode,Timestamp` and, row by row, any number of further columns, which are skipped. Blanks may follow
//! commas. ASU numbers a logical unit, the device here; LBA counts blocks of that unit, assumed as 512 bytes; the size
//! is in bytes, may be 0 and need not be a multiple of a block; the opcode is R or W; the time is in decimal seconds
//! since the trace began.
//!
//! Recorded at the driver of the storage: the request layer. There are no response times.
//! Verified against a real excerpt, and its block size against a conversion of the same trace by others; no
//! real row with further columns was at hand.

use crate::batch::Event;
use crate::error::Error;
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::op::{Layer, Op};
use crate::reader::{ReadOptions, Reader, Sniff};
use crate::scan::{DeviceKeys, Scan};
use crate::source::{Clock, Latency, SourceInfo};
use crate::text::{LineError, LineFormat, Sink, open_lines, sniff_lines};

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "spc",
    title: "SPC traces (UMass), CSV",
    verified: true,
    unsorted: true,
    about: About {
        families: &[(Family::Published, "SPC (UMass)")],
        layer: "request",
        holds: Holds::Events {
            times: "seconds with decimals since the start",
            latency: "none",
        },
        verified_by: "a real excerpt, and its conversion by others",
        cannot_tell: "latency; the block size is taken as 512",
        words: &[",R,", ",W,", ",r,", ",w,"],
        real: &["spc/WebSearch-sample.spc"],
    },
    sniff,
    open,
};

const BLOCK_BYTES: u64 = 512;

struct SpcRow {
    unit: u64,
    start_bytes: u64,
    len_bytes: u64,
    op: Op,
    time_ns: i64,
}

#[inline]
fn parse(line: &[u8]) -> Result<SpcRow, LineError> {
    const TIME: &str = "a time in seconds, 0 or more";
    let mut scan = Scan::new(line, b',');
    let unit = scan.u64("a unit number (ASU)")?;
    let (block, len_bytes) = (scan.u64("a block number")?, scan.u64("a size in bytes")?);
    let op = scan.read_or_write("R or W")?;
    let time_ns = scan.decimal(9, TIME)?;
    if time_ns < 0 {
        return Err(LineError::new(line, TIME));
    }
    let start_bytes = block
        .checked_mul(BLOCK_BYTES)
        .filter(|start| start.checked_add(len_bytes).is_some());
    let Some(start_bytes) = start_bytes else {
        return Err(LineError::new(
            line,
            "a block and size whose end is below 2^64 bytes",
        ));
    };
    Ok(SpcRow {
        unit,
        start_bytes,
        len_bytes,
        op,
        time_ns,
    })
}

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    sniff_lines(prefix, complete, |line| parse(line).is_ok())
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    let mut info = SourceInfo {
        latency: Latency::None("the format has no response times".to_owned()),
        ..FORMAT.requests(Clock::Start)
    };
    info.note("block numbers are taken as units of 512 bytes; the file does not say");
    open_lines(input, options, Spc::default(), info)
}

#[derive(Default)]
struct Spc {
    devices: DeviceKeys,
}

impl LineFormat for Spc {
    #[inline]
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        let row = parse(line)?;
        let device = self.devices.number(row.unit, &mut sink.names);
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
    fn rows() {
        let check = |line: &str, unit, start, len, op, time_ns| {
            let row = parse(line.as_bytes()).ok().unwrap();
            let found = (
                row.unit,
                row.start_bytes,
                row.len_bytes,
                row.op,
                row.time_ns,
            );
            assert_eq!(found, (unit, start, len, op, time_ns), "{line}");
        };
        check(
            "1,240840,32768,W,0.011565",
            1,
            123_310_080,
            32_768,
            Op::Write,
            11_565_000,
        );
        check(
            "1, 240840, 512, r, 026.214024",
            1,
            123_310_080,
            512,
            Op::Read,
            26_214_024_000,
        );
        check("0,0,0,R,7", 0, 0, 0, Op::Read, 7_000_000_000);
        check(
            "0,1,1000,w,0.5,free text,7",
            0,
            512,
            1000,
            Op::Write,
            500_000_000,
        );
    }

    #[test]
    fn malformed_rows_are_rejected() {
        for line in [
            "0,1,512,R",
            "0,1,512,X,1.0",
            "0,1,512,R,-1.0",
            "0,1,512,R,NaN",
            "0,36028797018963968,512,R,1.0",
            "0,1,18446744073709551615,R,1.0",
            "0,1,512,R,9223372037.0",
            "a,1,512,R,1.0",
        ] {
            assert!(parse(line.as_bytes()).is_err(), "{line}");
        }
    }
}
