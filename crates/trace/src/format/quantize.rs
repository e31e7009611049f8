//! Histograms as `quantize()` of DTrace prints them, and those of bitesize of bcc.
//!
//! DTrace: a line with the key (a process id and its arguments, or a device), then `value ---- Distribution ---- count`
//! and rows `VALUE |@@@ COUNT`. VALUE is a power of two, 0, or minus a power of two; a row counts values from it up to
//! the next row, away from 0. bitesize.d and seeksize.d of the DTraceToolkit and io-profiler.d print this. bcc:
//! `Process Name = 'x'`, then `Kbytes : count distribution` and rows `LOW -> HIGH : COUNT |***|`, in whole KiB.
//!
//! The printed rows have no unit. A line above with bitesize (bytes a request) or seeksize (blocks of 512 B between
//! requests of a thread, without direction) names it. A histogram without such a word with all values between 512 and
//! 64 MiB is read as lengths in bytes, with a note; any other is left out, with a note. io-profiler.d prints a stamp,
//! `2026 Nov 24 10:00:10`, and then the histograms of the interval that ends there, with `DEVICE R` or `DEVICE W` above
//! each; the reader adds them up by device and operation. The layer is bio for DTrace's io provider and request for bcc;
//! for an unnamed one it is unknown. Verified with the example outputs that ship with the tools.

use crate::error::Error;
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::interval_clock::{IntervalClock, seconds_of_day};
use crate::number::{parse_i64, parse_ios};
use crate::op::{Layer, Op};
use crate::reader::{Bucket, Distribution, Fill, Measured, ReadOptions, Reader, Sniff};
use crate::source::{Latency, SourceInfo};
use crate::text::{LineError, LineFormat, Sink, TextReader, split_words};
use crate::tool::{check_layer, sniff_below_prose};

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "quantize",
    title: "DTrace's `quantize()` (bitesize.d, seeksize.d), bitesize of bcc",
    verified: true,
    unsorted: false,
    about: About {
        families: &[
            (Family::Linux, "bitesize of bcc"),
            (Family::Solaris, "bitesize.d, seeksize.d"),
        ],
        layer: "bio or request",
        holds: Holds::Counts("histograms of length or distance"),
        verified_by: "the examples that ship with them",
        cannot_tell: "starts, fit, streams, latency",
        words: &[
            "value  ------------- Distribution ------------- count",
            "|@@@ ",
            "bitesize",
            "seeksize",
            "Process Name = ",
            "Kbytes : count distribution",
            " -> ",
            " : ",
            "< 0 |",
            "1024",
            "4611686018427387904",
            "PID  CMD",
        ],
        real: &[
            "bcc/bitesize_example.txt",
            "dtrace/bitesize_example.txt",
            "dtrace/diskhits_example.txt",
            "dtrace/iopending_example.txt",
            "dtrace/seeksize_example.txt",
        ],
    },
    sniff,
    open,
};

/// Lengths of I/O are between these; other values are no lengths in bytes.
const LEN_BYTES: std::ops::RangeInclusive<i64> = 512..=1 << 26;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Heading {
    DTrace,
    BccKbytes,
}

fn heading(line: &[u8]) -> Option<Heading> {
    if is_distribution(line) {
        return Some(Heading::DTrace);
    }
    split_words(line)
        .eq([&b"Kbytes"[..], b":", b"count", b"distribution"])
        .then_some(Heading::BccKbytes)
}

/// `value ---- Distribution ---- count`.
#[must_use]
pub fn is_distribution(line: &[u8]) -> bool {
    let mut found = split_words(line);
    found.next() == Some(b"value")
        && found.next().is_some_and(|word| word.starts_with(b"--"))
        && found.next() == Some(b"Distribution")
        && found.last() == Some(b"count")
}

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    sniff_below_prose(prefix, complete, |line| heading(line).is_some())
}

/// The values that a row of `quantize()` holds; `None` when its value is no power of two.
#[must_use]
pub fn row_range(value: i64) -> Option<(i64, i64)> {
    let doubled = value.checked_mul(2);
    match value {
        0 => Some((0, 0)),
        1.. if value.count_ones() == 1 => {
            Some((value, doubled.map_or(i64::MAX, |doubled| doubled - 1)))
        }
        ..0 if value.unsigned_abs().count_ones() == 1 => {
            Some((doubled.map_or(i64::MIN, |doubled| doubled + 1), value))
        }
        _ => None,
    }
}

fn dtrace_row(line: &[u8]) -> Result<Bucket, LineError> {
    let bad = || {
        LineError::new(
            line,
            "`VALUE |@@@ COUNT` with a value that is 0 or a power of two",
        )
    };
    let bar = memchr::memchr(b'|', line).ok_or_else(bad)?;
    let value = parse_i64(line[..bar].trim_ascii()).ok_or_else(bad)?;
    let (low, high) = row_range(value).ok_or_else(bad)?;
    let ios = split_words(&line[bar + 1..])
        .last()
        .and_then(parse_ios)
        .ok_or_else(bad)?;
    Ok(Bucket {
        low: Some(low),
        high: Some(high),
        ios,
    })
}

/// Whether a first row is one of `lquantize()`: below all, or at a number that is no power of two.
fn is_linear(line: &[u8]) -> bool {
    let first = split_words(line).next().unwrap_or_default();
    first.starts_with(b"<") || parse_i64(first).is_some_and(|value| row_range(value).is_none())
}

fn bcc_row(line: &[u8]) -> Result<Bucket, LineError> {
    let bad = || LineError::new(line, "`LOW -> HIGH : COUNT` in KiB");
    let mut found = split_words(line);
    let low = found
        .next()
        .and_then(parse_i64)
        .and_then(|low| low.checked_mul(1024));
    let arrow = found.next() == Some(b"->");
    let high = found
        .next()
        .and_then(parse_i64)
        .and_then(|high| high.checked_add(1)?.checked_mul(1024));
    let colon = found.next() == Some(b":");
    let ios = found.next().and_then(parse_ios);
    match (low, high, ios) {
        (Some(low), Some(above), Some(ios)) if arrow && colon && 0 <= low && low < above => {
            Ok(Bucket {
                low: Some(low),
                high: Some(above - 1),
                ios,
            })
        }
        _ => Err(bad()),
    }
}

/// Whether a line under a heading is meant as a row of it.
fn is_row(line: &[u8], heading: Heading) -> bool {
    match heading {
        Heading::DTrace => memchr::memchr(b'|', line).is_some(),
        Heading::BccKbytes => memchr::memmem::find(line, b" -> ").is_some(),
    }
}

struct Quantize {
    /// The measure of the last tool named above, and its unit in bytes.
    tool: Option<(Measured, i64)>,
    subject: String,
    table: Option<(Heading, Vec<Bucket>)>,
    /// A row of `lquantize()` was seen, whose step is not printed.
    linear: bool,
    /// Stamps of `io-profiler.d`; `None` before the first.
    clock: Option<IntervalClock>,
}

/// Seconds between two prints of `io-profiler.d`.
const PROFILER_SECONDS: i64 = 10;

/// Seconds since midnight of a stamp as `%Y` of DTrace prints it: `2026 Nov 24 10:00:10`.
fn stamp(line: &[u8]) -> Option<i64> {
    const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let words: Vec<&[u8]> = split_words(line).take(5).collect();
    let [year, month, day, time] = words[..] else {
        return None;
    };
    let is_date = year.len() == 4
        && parse_i64(year).is_some()
        && MONTHS.chunks(3).any(|name| name == month)
        && parse_i64(day).is_some();
    is_date.then(|| seconds_of_day(time))?
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    check_layer(&input.path, options, None)?;
    let info = SourceInfo {
        format: FORMAT.name,
        verified: FORMAT.verified,
        latency: Latency::None("the histograms are of lengths or distances".to_owned()),
        cannot_tell: vec!["start alignment", "fit", "streams", "latency"],
        ..SourceInfo::default()
    };
    let format = Quantize {
        tool: None,
        subject: String::new(),
        table: None,
        linear: false,
        clock: None,
    };
    Ok(Box::new(TextReader::new(input, format, info)))
}

impl LineFormat for Quantize {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        if let Some(heading) = heading(line) {
            self.end(sink);
            self.table = Some((heading, Vec::new()));
            sink.info.tally("histogram");
            return Ok(());
        }
        if let Some(of_day) = stamp(line) {
            self.end(sink);
            let clock = self
                .clock
                .get_or_insert_with(|| IntervalClock::new(PROFILER_SECONDS));
            clock.stamp(of_day);
            sink.info.tally("interval");
            return Ok(());
        }
        match &mut self.table {
            Some((heading, buckets)) if is_row(line, *heading) => {
                self.linear |= buckets.is_empty() && is_linear(line);
                if self.linear {
                    return Ok(());
                }
                let bucket = if *heading == Heading::DTrace {
                    dtrace_row(line)
                } else {
                    bcc_row(line)
                }?;
                if buckets.last().is_some_and(|last| last.high >= bucket.low) {
                    return Err(LineError::new(line, "values that rise from row to row"));
                }
                buckets.push(bucket);
            }
            _ => {
                self.end(sink);
                self.words_between(line);
                sink.info.tally("other line");
            }
        }
        Ok(())
    }

    fn end(&mut self, sink: &mut Sink) {
        let linear = std::mem::take(&mut self.linear);
        let Some((heading, buckets)) = self.table.take() else {
            return;
        };
        let subject = std::mem::take(&mut self.subject);
        let counted = || buckets.iter().filter(|bucket| bucket.ios > 0);
        if linear {
            sink.info.note(
                "a histogram of lquantize() was left out: its rows do not name the counted quantity",
            );
        } else if counted().next().is_some() {
            let is_length = counted().all(|bucket| bucket.low.is_some_and(|low| LEN_BYTES.contains(&low)))
                // A unit in brackets is another one than bytes.
                && !subject.contains('(');
            match self.meaning(heading, is_length, &mut sink.info) {
                Some((measured, unit)) => {
                    let (subject, op) = self.device_and_op(subject);
                    let found = Distribution {
                        subject,
                        measured,
                        op,
                        buckets: scaled(buckets, unit),
                        min_max_mean: None,
                        interval: self.clock.as_ref().and_then(IntervalClock::interval),
                        bytes: None,
                    };
                    sink.extras.push_back(Fill::Distribution(found));
                }
                None => sink.info.note(
                    "a histogram that may count anything was left out: \
                     write `bitesize` or `seeksize` on a line above it if it comes from there",
                ),
            }
        }
    }
}

impl Quantize {
    /// Learns the name of a tool or the key of the next histogram from a line between histograms.
    fn words_between(&mut self, line: &[u8]) {
        let named = |tool: &[u8]| memchr::memmem::rfind(line, tool);
        let (lengths, distances) = (named(b"bitesize"), named(b"seeksize"));
        if lengths > distances {
            self.tool = Some((Measured::LenBytes, 1));
        } else if distances > lengths {
            self.tool = Some((Measured::SeekBytes, 512));
        }
        let text = line.trim_ascii();
        let text = text
            .strip_prefix(b"Process Name = '")
            .and_then(|name| name.strip_suffix(b"'"))
            .unwrap_or(text);
        let chatter = [&b"#"[..], b"$", b"^C", b"Tracing", b"PID"]
            .iter()
            .any(|start| text.starts_with(start));
        if !chatter {
            let text = text.strip_suffix(b"\\0").unwrap_or(text);
            let text: Vec<_> = split_words(text).map(String::from_utf8_lossy).collect();
            self.subject = text.join(" ");
        }
    }

    /// The device and the operation of a key of `io-profiler.d`; any other key unchanged.
    fn device_and_op(&self, subject: String) -> (String, Option<Op>) {
        let found = match (&self.clock, subject.rsplit_once(' ')) {
            (Some(_), Some((device, "R"))) => Some((device.to_owned(), Op::Read)),
            (Some(_), Some((device, "W"))) => Some((device.to_owned(), Op::Write)),
            _ => None,
        };
        match found {
            Some((device, op)) => (device, Some(op)),
            None => (subject, None),
        }
    }

    fn meaning(
        &self,
        heading: Heading,
        is_length: bool,
        info: &mut SourceInfo,
    ) -> Option<(Measured, i64)> {
        if heading == Heading::BccKbytes {
            info.saw_layer(Layer::Request);
            return Some((Measured::LenBytes, 1));
        }
        if let Some((measured, _)) = self.tool {
            info.saw_layer(Layer::Bio);
            if measured == Measured::SeekBytes {
                info.note("seeksize prints distances within a thread, without their direction");
            }
            return self.tool;
        }
        if !is_length {
            return None;
        }
        if self.clock.is_some() {
            info.saw_layer(Layer::Bio);
            return Some((Measured::LenBytes, 1));
        }
        info.note("no tool is named above a histogram: it was taken for lengths of I/O in bytes");
        Some((Measured::LenBytes, 1))
    }
}

/// Buckets in bytes.
fn scaled(mut buckets: Vec<Bucket>, unit: i64) -> Vec<Bucket> {
    let bytes = |value: Option<i64>| value.map(|value| value.saturating_mul(unit));
    for bucket in &mut buckets {
        (bucket.low, bucket.high) = (bytes(bucket.low), bytes(bucket.high));
    }
    buckets
}
