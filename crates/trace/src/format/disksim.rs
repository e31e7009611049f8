//! DiskSim's ASCII traces, which MQSim reads too: one request a line, five columns between blanks.
//!
//! `time device start_sector sectors type`: sectors of 512 bytes, type 0 is a write and 1 a read. The unit of the time
//! is in neither program's file: DiskSim uses decimal ms, MQSim whole ns. So a time with a point is read as ms and one
//! without as ns; the first time other than 0 decides for the whole file, and a note states the assumption.
//!
//! The host's requests to a disk: the request layer. There are no response times. The form with whole numbers is
//! verified with a real trace; no real file with decimal times was available.

use crate::batch::Event;
use crate::error::Error;
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::op::{Layer, Op};
use crate::reader::{ReadOptions, Reader, Sniff};
use crate::scan::{DeviceKeys, Scan, extent, ns};
use crate::source::{Clock, Latency, SourceInfo};
use crate::text::{LineError, LineFormat, Sink, open_lines, sniff_lines};

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "disksim",
    title: "DiskSim and MQSim ASCII",
    verified: true,
    unsorted: true,
    about: About {
        families: &[(Family::Published, "DiskSim and MQSim")],
        layer: "request",
        holds: Holds::Events {
            times: "ns, or ms with a point",
            latency: "none",
        },
        verified_by: "a real trace with whole ns; ms: **unverified**",
        cannot_tell: "latency; the unit of time is inferred",
        words: &[" 0", " 1"],
        real: &["mqsim/wsrch-small.trace"],
    },
    sniff,
    open,
};

const SECTOR_BYTES: u64 = 512;

/// Places after the point of a ms.
const MS_SCALE: u32 = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeUnit {
    Ns,
    Ms,
}

struct DisksimRow {
    time_ns: i64,
    /// How the time was written; `None` for a plain 0, which fits both.
    unit: Option<TimeUnit>,
    device: u64,
    start_bytes: u64,
    len_bytes: u64,
    op: Op,
}

#[inline]
fn parse(line: &[u8]) -> Result<DisksimRow, LineError> {
    const TIME: &str = "a time in ns (whole) or ms (decimal), 0 or more";
    const TYPE: &str = "0 (write) or 1 (read)";
    let mut scan = Scan::new(line, b' ');
    let (time_ns, unit) = if let Some(value) = scan.plain_u64() {
        (ns(value, 1, line)?, (value != 0).then_some(TimeUnit::Ns))
    } else if is_decimal(line) {
        let mut ahead = scan.clone();
        let time_ns = scan.decimal(MS_SCALE, TIME)?;
        if time_ns < 0 {
            return Err(LineError::new(ahead.word(TIME)?, TIME));
        }
        (time_ns, Some(TimeUnit::Ms))
    } else {
        let value = scan.u64(TIME)?;
        (ns(value, 1, line)?, (value != 0).then_some(TimeUnit::Ns))
    };
    let device = scan.u64("a device number")?;
    let (start, len) = (scan.u64("a start sector")?, scan.u64("a count of sectors")?);
    let op = match scan.letter() {
        Some(b'0') => Op::Write,
        Some(b'1') => Op::Read,
        Some(other) => return Err(LineError::new(&[other], TYPE)),
        None => match scan.u64(TYPE)? {
            0 => Op::Write,
            1 => Op::Read,
            other => return Err(LineError::new(other.to_string().as_bytes(), TYPE)),
        },
    };
    scan.end("five columns")?;
    let (start_bytes, len_bytes) = extent(start, len, SECTOR_BYTES, line)?;
    Ok(DisksimRow {
        time_ns,
        unit,
        device,
        start_bytes,
        len_bytes,
        op,
    })
}

/// Whether the first field has a point.
#[inline]
fn is_decimal(line: &[u8]) -> bool {
    let field = line
        .iter()
        .skip_while(|&&byte| byte == b' ')
        .take_while(|&&byte| byte != b' ');
    field.into_iter().any(|&byte| byte == b'.')
}

/// Tabs separate as blanks do; they are rare enough to pay for a copy.
fn parse_any(line: &[u8]) -> Result<DisksimRow, LineError> {
    match parse(line) {
        Err(_) if line.contains(&b'\t') => {
            let blanks: Vec<u8> = line
                .iter()
                .map(|&byte| if byte == b'\t' { b' ' } else { byte })
                .collect();
            parse(&blanks)
        }
        parsed => parsed,
    }
}

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    sniff_lines(prefix, complete, |line| parse_any(line).is_ok())
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    let info = SourceInfo {
        format: FORMAT.name,
        verified: FORMAT.verified,
        layers: vec![Layer::Request],
        clock: Clock::Start,
        latency: Latency::None("the format has no response times".to_owned()),
        ..SourceInfo::default()
    };
    open_lines(input, options, DiskSim::default(), info)
}

#[derive(Default)]
struct DiskSim {
    devices: DeviceKeys,
    unit: Option<TimeUnit>,
}

impl DiskSim {
    fn decide(&mut self, unit: TimeUnit, sink: &mut Sink) {
        self.unit = Some(unit);
        sink.info.verified = unit == TimeUnit::Ns;
        sink.info.note(match unit {
            TimeUnit::Ns => "times are whole numbers: taken as ns, as MQSim does",
            TimeUnit::Ms => "times are decimal: taken as ms, as DiskSim does",
        });
    }
}

impl LineFormat for DiskSim {
    #[inline]
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        let row = parse_any(line)?;
        match (self.unit, row.unit) {
            (None, Some(unit)) => self.decide(unit, sink),
            (Some(TimeUnit::Ns), Some(TimeUnit::Ms)) => {
                return Err(LineError::new(
                    line,
                    "a whole number of ns, as in the lines before",
                ));
            }
            (Some(TimeUnit::Ms), Some(TimeUnit::Ns)) => {
                return Err(LineError::new(line, "decimal ms, as in the lines before"));
            }
            _ => {}
        }
        let device = self.devices.number(row.device, &mut sink.names);
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
        let check = |line: &str, time_ns, unit, device, start, len, op| {
            let row = parse_any(line.as_bytes()).ok().unwrap();
            let found = (
                row.time_ns,
                row.unit,
                row.device,
                row.start_bytes,
                row.len_bytes,
                row.op,
            );
            assert_eq!(found, (time_ns, unit, device, start, len, op), "{line}");
        };
        check(
            "11413000 0 657728 16 1",
            11_413_000,
            Some(TimeUnit::Ns),
            0,
            336_756_736,
            8192,
            Op::Read,
        );
        check(
            "  12.345678  1 8\t8 0 ",
            12_345_678,
            Some(TimeUnit::Ms),
            1,
            4096,
            4096,
            Op::Write,
        );
        check("0 1 8 8 0", 0, None, 1, 4096, 4096, Op::Write);
        check(
            "0.0 1 8 8 0",
            0,
            Some(TimeUnit::Ms),
            1,
            4096,
            4096,
            Op::Write,
        );
    }

    #[test]
    fn what_is_no_row() {
        for line in [
            "1 0 8 8",
            "1 0 8 8 2",
            "1 0 8 8 1 1",
            "-1 0 8 8 1",
            "-0.5 0 8 8 1",
            "NaN 0 8 8 1",
            "1e3 0 8 8 1",
            "1 0 36028797018963968 8 1",
            "9223372036854775808 0 8 8 1",
            "1 0 -8 8 1",
            "1 0 8 8 1.0",
        ] {
            assert!(parse_any(line.as_bytes()).is_err(), "{line}");
        }
    }
}
