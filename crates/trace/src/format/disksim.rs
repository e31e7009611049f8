//! DiskSim's ASCII traces, which MQSim reads too: one request a line, five columns between blanks.
//!
//! `time device start_sector sectors type`: sectors of 512 bytes, type 0 is a write and 1 a read. The unit of the time
//! is in neither program's file: DiskSim uses decimal ms, MQSim whole ns. So a time with a point is read as ms and one
//! without as ns; the first time other than 0 decides for the whole file, and a note states the assumption.
//!
//! The host's requests to a disk: the request layer. There are no response times. The form with whole numbers is
//! verified with a real trace; no real file with decimal times was available.

use crate::batch::{BATCH_EVENTS, Event, PlainEvent};
use crate::error::Error;
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::op::{Layer, Op};
use crate::reader::{ReadOptions, Reader, Sniff};
use crate::scan::{DeviceKeys, Number, Scan, extent, ns};
use crate::source::{Clock, Latency, SourceInfo};
use crate::text::{LineError, LineFormat, Sink, open_lines, sniff_lines};
use crate::window::Window;

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
    const TYPE: &str = "0 (write) or 1 (read)";
    let mut scan = Scan::new(line, b' ');
    let (time_ns, unit) = match scan.number(MS_SCALE) {
        Some(Number::Whole(value)) => whole_time(value, line)?,
        Some(Number::Decimal(time_ns)) => (time_ns, Some(TimeUnit::Ms)),
        None => unusual_time(&mut scan, line)?,
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

/// The event of a line of digits with one blank between them, in the unit of the lines before, and the number of its device. Only
/// right if [`Window::end`] says so: [`parse`] reads any other line, and finds errors.
#[inline(always)]
fn usual_line(line: &mut Window<'_>, unit: TimeUnit) -> (PlainEvent, u64) {
    let time_ns = match unit {
        TimeUnit::Ns => {
            let whole = line.field(b' ');
            line.digits(whole)
        }
        TimeUnit::Ms => {
            let (whole, parts) = (line.field(b'.'), line.field(b' '));
            line.demand_at_most(whole, MS_DIGITS_MAX);
            line.demand_at_most(parts, MS_SCALE as usize);
            let scale = MS_POWERS[parts.len() % MS_POWERS.len()];
            let whole_ns = line.digits(whole).wrapping_mul(1_000_000);
            whole_ns.wrapping_add(line.few_digits(parts) * scale)
        }
    };
    let device = line.field(b' ');
    let device = line.few_digits(device);
    let start = line.field(b' ');
    let start = line.digits(start);
    let sectors = line.field(b' ');
    let sectors = line.few_digits(sectors);
    let op = line.field(b'\n');
    let op = line.letter(op).wrapping_sub(b'0');
    line.demand_none(op & !1);
    let event = PlainEvent {
        time_ns: time_ns as i64,
        device: 0,
        op: [Op::Write, Op::Read][usize::from(op & 1)],
        start_bytes: start.wrapping_mul(SECTOR_BYTES),
        len_bytes: sectors * SECTOR_BYTES,
    };
    (event, device)
}

/// Most digits of whole ms that fit a time in ns together with those of a ns.
const MS_DIGITS_MAX: usize = 12;

/// The worth in ns of the last place after the point of a ms, by the number of places.
const MS_POWERS: [u64; 8] = [0, 100_000, 10_000, 1000, 100, 10, 1, 0];

#[inline]
fn whole_time(value: u64, line: &[u8]) -> Result<(i64, Option<TimeUnit>), LineError> {
    Ok((ns(value, 1, line)?, (value != 0).then_some(TimeUnit::Ns)))
}

/// A time with a sign, or with digits beyond a ns.
#[cold]
fn unusual_time(scan: &mut Scan<'_>, line: &[u8]) -> Result<(i64, Option<TimeUnit>), LineError> {
    const TIME: &str = "a time in ns (whole) or ms (decimal), 0 or more";
    if !is_decimal(line) {
        return whole_time(scan.u64(TIME)?, line);
    }
    let mut ahead = scan.clone();
    let time_ns = scan.decimal(MS_SCALE, TIME)?;
    if time_ns < 0 {
        return Err(LineError::new(ahead.word(TIME)?, TIME));
    }
    Ok((time_ns, Some(TimeUnit::Ms)))
}

/// Whether the first field has a point.
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
    /// Lines that are on their way into the batch.
    rows: Vec<PlainEvent>,
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

/// Lines that are parsed before their events go into the batch.
const USUAL_LINES: usize = 64;

impl LineFormat for DiskSim {
    fn usual_lines(&mut self, text: &[u8], mut at: usize, sink: &mut Sink) -> (usize, u64) {
        let mut lines = 0;
        let Some(unit) = self.unit else {
            return (at, lines);
        };
        while !sink.is_full() {
            let room = USUAL_LINES.min(BATCH_EVENTS - sink.batch.len());
            self.rows.clear();
            while self.rows.len() < room {
                let Some(mut line) = Window::at(text, at) else {
                    break;
                };
                let (event, device) = usual_line(&mut line, unit);
                let Some(length) = line.end() else { break };
                let device = self.devices.number(device, &mut sink.names);
                self.rows.push(PlainEvent { device, ..event });
                at += length;
            }
            sink.batch.extend_plain(Layer::Request, &self.rows);
            lines += self.rows.len() as u64;
            if self.rows.len() < room {
                break;
            }
        }
        (at, lines)
    }

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
    use proptest::prelude::*;

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

    /// The row of a line between others by the fast way, if that takes it.
    fn usual(line: &str, unit: TimeUnit) -> Option<DisksimRow> {
        let others = "7 1 8 8 1\n".repeat(10);
        let text = format!("{others}{line}\n{others}");
        let mut window = Window::at(text.as_bytes(), others.len()).expect("enough text around it");
        let (event, device) = usual_line(&mut window, unit);
        let length = window.end()?;
        assert_eq!(length, line.len() + 1, "{line}");
        Some(DisksimRow {
            time_ns: event.time_ns,
            unit: Some(unit),
            device,
            start_bytes: event.start_bytes,
            len_bytes: event.len_bytes,
            op: event.op,
        })
    }

    #[test]
    fn usual_lines_take_the_fast_way() {
        for (line, unit) in [
            ("10.023646 0 1742923776 128 1", TimeUnit::Ms),
            (
                "123456789012.1 12345678 123456789012 1234567 0",
                TimeUnit::Ms,
            ),
            ("0.000001 0 0 0 0", TimeUnit::Ms),
            ("11413000 0 657728 16 1", TimeUnit::Ns),
            ("1234567890123456 255 34 16 0", TimeUnit::Ns),
        ] {
            assert!(usual(line, unit).is_some(), "{line}");
        }
        for (line, unit) in [
            ("1.5 0 8 8 1", TimeUnit::Ns),
            ("15 0 8 8 1", TimeUnit::Ms),
            ("1.5 0 8 8 2", TimeUnit::Ms),
            ("1.5  0 8 8 1", TimeUnit::Ms),
            ("1.5 0 8 8 1 ", TimeUnit::Ms),
            ("1.1234567 0 8 8 1", TimeUnit::Ms),
            ("1.5 0 8 8 1\r", TimeUnit::Ms),
            ("1.5 0 8 8", TimeUnit::Ms),
            ("", TimeUnit::Ms),
        ] {
            assert!(usual(line, unit).is_none(), "{line}");
        }
    }

    proptest! {
        /// The fast way takes no line that the other one would read differently, or not at all.
        #[test]
        fn both_ways_agree(
            fields in prop::collection::vec("[0-9]{0,3}|[0-9]{1,18}|[0-9]{1,13}\\.[0-9]{0,8}|[0-9]*[a-z\u{e9}+-][0-9]*", 4..7),
            blanks in prop::collection::vec("[ ]|  |\t|\u{a0}|", 7),
            op in "[0-3]|10|",
            is_plain in any::<bool>(),
            is_ns in any::<bool>(),
        ) {
            let blank = |at: usize| if is_plain { " " } else { blanks[at].as_str() };
            let fields = fields.iter().enumerate().map(|(at, field)| format!("{field}{}", blank(at)));
            let line = fields.collect::<String>() + &op;
            let unit = if is_ns { TimeUnit::Ns } else { TimeUnit::Ms };
            if let Some(row) = usual(&line, unit) {
                let slow = parse_any(line.as_bytes());
                prop_assert!(slow.is_ok(), "{line}");
                let slow = slow.ok().unwrap();
                prop_assert!(slow.unit.is_none_or(|found| found == unit), "{line}");
                let facts = |row: &DisksimRow| {
                    (row.time_ns, row.device, row.start_bytes, row.len_bytes, row.op)
                };
                prop_assert_eq!(facts(&row), facts(&slow), "{}", line);
            }
        }

        #[test]
        fn usual_numbers_are_read_right(
            whole in 0u64..1_000_000_000_000,
            parts in 0u64..1_000_000,
            device in 0u64..100,
            start in 0u64..1_000_000_000_000,
            sectors in 0u64..100_000,
            is_read in any::<bool>(),
        ) {
            let line = format!("{whole}.{parts:06} {device} {start} {sectors} {}", u8::from(is_read));
            prop_assume!(line.len() < 48);
            let row = usual(&line, TimeUnit::Ms).expect("a usual line");
            prop_assert_eq!(row.time_ns as u64, whole * 1_000_000 + parts);
            prop_assert_eq!((row.device, row.start_bytes, row.len_bytes), (device, start * 512, sectors * 512));
            prop_assert_eq!(row.op, if is_read { Op::Read } else { Op::Write });
        }
    }

    #[test]
    fn malformed_rows_are_rejected() {
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
