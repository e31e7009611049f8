//! SYSTOR '17 traces: CSV of the block I/O that virtual desktops sent to their storage.
//!
//! `Timestamp,Response,IOType,LUN,Offset,Size`, six columns. Time and response are decimal seconds, the time since 1970
//! UTC; `IOType` is R or W; offset and size are bytes of the LUN. If no response was seen, `Response` and `IOType` are
//! blank: such an I/O is here as `other`, without latency, because the source does not have its operation. Files with
//! and without a header line are read.
//!
//! Seen between the hosts and the storage array: below the driver, the request layer.
//! *Unverified*: held against a single real line only.

use crate::batch::Event;
use crate::error::Error;
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::op::{Layer, Op};
use crate::reader::{ReadOptions, Reader, Sniff};
use crate::scan::{DeviceKeys, Scan, begins_with, extent, row_or_header};
use crate::source::Clock;
use crate::text::{LineError, LineFormat, Sink, open_lines, sniff_lines};

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "systor",
    title: "SYSTOR '17 CSV",
    verified: false,
    unsorted: true,
    about: About {
        families: &[(Family::Published, "SYSTOR '17")],
        layer: "request",
        holds: Holds::Events {
            times: "µs, Unix",
            latency: "response",
        },
        verified_by: "one real line: **unverified**",
        cannot_tell: "the operation, if no response was seen",
        words: &[
            "Timestamp,Response,IOType,LUN,Offset,Size",
            ",R,",
            ",W,",
            ",,",
        ],
        real: &["cloud/systor-1-line.csv"],
    },
    sniff,
    open,
};

struct SystorRow<'line> {
    time_ns: i64,
    response_ns: Option<i64>,
    op: Option<Op>,
    lun: &'line [u8],
    start_bytes: u64,
    len_bytes: u64,
}

#[inline]
fn parse(line: &[u8]) -> Result<SystorRow<'_>, LineError> {
    const RESPONSE: &str = "a response time in seconds, 0 or more, or nothing";
    let mut scan = Scan::new(line, b',');
    let time_ns = scan.decimal(9, "a time in seconds")?;
    let response_ns = if scan.blank() {
        None
    } else {
        Some(scan.decimal(9, RESPONSE)?)
    };
    if response_ns.is_some_and(|ns| ns < 0) {
        return Err(LineError::new(line, RESPONSE));
    }
    let op = if scan.blank() {
        None
    } else {
        Some(scan.read_or_write("R, W or nothing")?)
    };
    let lun = scan.word("a LUN")?;
    let (start, len) = (
        scan.u64("an offset in bytes")?,
        scan.u64("a size in bytes")?,
    );
    scan.end("six columns")?;
    let (start_bytes, len_bytes) = extent(start, len, 1, line)?;
    Ok(SystorRow {
        time_ns,
        response_ns,
        op,
        lun,
        start_bytes,
        len_bytes,
    })
}

fn is_header(line: &[u8]) -> bool {
    begins_with(line, b"Timestamp,Response,")
}

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    sniff_lines(prefix, complete, |line| {
        is_header(line) || parse(line).is_ok()
    })
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    open_lines(
        input,
        options,
        Systor::default(),
        FORMAT.requests(Clock::Unix),
    )
}

#[derive(Default)]
struct Systor {
    devices: DeviceKeys,
    without_op: u64,
}

impl LineFormat for Systor {
    #[inline]
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        let Some(row) = row_or_header(parse(line), || is_header(line))? else {
            return Ok(());
        };
        let name = |lun: &[u8]| String::from_utf8_lossy(lun).into_owned();
        let device = self.devices.text(row.lun, &mut sink.names, name);
        self.without_op += u64::from(row.op.is_none());
        let op = row.op.unwrap_or(Op::Other);
        let mut event = Event::new(
            row.time_ns,
            device,
            Layer::Request,
            op,
            row.start_bytes,
            row.len_bytes,
        );
        event.device_ns = row.response_ns;
        sink.push(&event);
        Ok(())
    }

    fn end(&mut self, sink: &mut Sink) {
        if self.without_op > 0 {
            let count = self.without_op;
            sink.info.note(format!(
                "{count} I/O without a response: whether read or write is not recorded"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows() {
        let row = parse(b"1456095145.133076000,0.000806000,R,0,899056122368,131072")
            .ok()
            .unwrap();
        assert_eq!(
            (row.time_ns, row.response_ns),
            (1_456_095_145_133_076_000, Some(806_000))
        );
        assert_eq!((row.op, row.lun), (Some(Op::Read), &b"0"[..]));
        assert_eq!((row.start_bytes, row.len_bytes), (899_056_122_368, 131_072));
        let row = parse(b"1456095145.133076000,,,3,512,1024").ok().unwrap();
        assert_eq!((row.response_ns, row.op, row.lun), (None, None, &b"3"[..]));
    }

    #[test]
    fn malformed_rows_are_rejected() {
        for line in [
            &b"1456095145.133076000,-0.5,R,0,0,512"[..],
            b"1456095145.133076000,NaN,R,0,0,512",
            b"1456095145.133076000,0.5,X,0,0,512",
            b"1456095145.133076000,0.5,R,0,0",
            b"1456095145.133076000,0.5,R,0,0,512,1",
            b"99999999999.5,0.5,R,0,0,512",
            b"1.5,0.5,R,0,18446744073709551615,512",
        ] {
            assert!(parse(line).is_err(), "{}", String::from_utf8_lossy(line));
        }
    }
}
