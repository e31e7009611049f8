//! fio's I/O logs (`write_iolog`), versions 2 and 3: the requests of a job to its files.
//!
//! The first line is `fio version N iolog`. Version 2: `FILE add|open|close` and
//! `FILE read|write|trim|sync|datasync|wait OFFSET LENGTH`; version 3 has a time in front of each and no
//! `wait`. Offsets and lengths are bytes of the file, the time is in µs since the job began. A `wait` says how
//! many µs after the `wait` before it the job goes on; without one a log of version 2 has no times at all.
//! FILE, without blanks, is the device here.
//!
//! These are requests to the file: the vfs layer, even if the file is a device node, unless `layer=LAYER` follows the
//! first `add`, as Plumb writes it for I/O of another layer (fio ignores it). `untimed` there says that the times are
//! none, as Plumb writes it for a trace without times. There are no completions, so no
//! latencies. A sync has neither place nor length, for any content of its line; a trim is a discard. Version 3 is
//! verified with a log of fio 3.33; no real log of version 2 was available, and version 1 (`rw,offset,length`, before
//! fio 1.17) is not read.

use crate::batch::{Event, UNKNOWN_NS};
use crate::error::Error;
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::names::{DeviceId, NameId};
use crate::op::{Layer, Op};
use crate::reader::{ReadOptions, Reader, Sniff};
use crate::scan::{DeviceKeys, Scan, ns};
use crate::source::{Clock, Latency, SourceInfo};
use crate::text::{LineError, LineFormat, Sink, open_lines, whole_lines};
use crate::write::holes::{Holes, add_holes, parse_holes};

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "fio-iolog",
    title: "fio's `write_iolog`, version 2 and 3",
    verified: true,
    unsorted: true,
    about: About {
        families: &[(Family::Fio, "I/O logs, version 2 and 3")],
        layer: "vfs; in a log of Plumb, the layer after `add`",
        holds: Holds::Events {
            times: "version 3: µs since the start; 2: only through `wait`",
            latency: "none",
        },
        verified_by: "a log of fio 3.33 (version 3); version 2: **unverified**",
        cannot_tell: "latency; the work of the cache",
        words: &[
            "fio version 2 iolog\n",
            "fio version 3 iolog\n",
            " add",
            " open",
            " close",
            " read ",
            " write ",
            " trim ",
            " sync ",
            " datasync ",
            " wait ",
        ],
        real: &["fio-iolog/local_v3.iolog"],
    },
    sniff,
    open,
};

const US_NS: i64 = 1000;

/// How far the first `add` is sought.
const HEAD_BYTES: usize = 4096;
const HEAD_LINES: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogVersion {
    V2,
    V3,
}

/// Every possible action word, with its operation; those without one do no I/O.
const ACTIONS: [(&str, Option<Op>); 10] = [
    ("read", Some(Op::Read)),
    ("write", Some(Op::Write)),
    ("trim", Some(Op::Discard)),
    ("sync", Some(Op::Flush)),
    ("datasync", Some(Op::Flush)),
    ("sync_file_range", Some(Op::Flush)),
    ("wait", None),
    ("add", None),
    ("open", None),
    ("close", None),
];

/// Place of `wait` in the list.
const WAIT: usize = 6;

/// Place of the first action on the file as a whole.
const FIRST_FILE_ACTION: usize = 7;

#[derive(Debug, PartialEq, Eq)]
struct IologLine<'line> {
    /// Since the job began; `None` in version 2.
    time_ns: Option<i64>,
    file: &'line [u8],
    /// Place in [`ACTIONS`].
    action: usize,
    offset: u64,
    len_bytes: u64,
}

fn version_of(line: &[u8]) -> Option<LogVersion> {
    match line.trim_ascii_end() {
        b"fio version 2 iolog" => Some(LogVersion::V2),
        b"fio version 3 iolog" => Some(LogVersion::V3),
        _ => None,
    }
}

#[inline]
fn parse(version: LogVersion, line: &[u8]) -> Result<IologLine<'_>, LineError> {
    const ACTION: &str =
        "an action of fio: read, write, trim, sync, datasync, wait, add, open or close";
    let mut scan = Scan::new(line, b' ');
    let time_ns = match version {
        LogVersion::V2 => None,
        LogVersion::V3 => Some(ns(scan.u64("a time in µs")?, US_NS, line)?),
    };
    let file = scan.word("a file name")?;
    let word = scan.word(ACTION)?;
    let found = ACTIONS.iter().position(|(name, _)| name.as_bytes() == word);
    let action = found.ok_or_else(|| LineError::new(word, ACTION))?;
    if action == WAIT && version == LogVersion::V3 {
        return Err(LineError::new(
            word,
            "an action of version 3, which has no `wait`",
        ));
    }
    if action >= FIRST_FILE_ACTION {
        let has_marks = word == b"add" && marks_in(scan.clone()).is_some();
        if has_marks || word == b"close" && holes_of(line).is_some() {
            while scan.field().is_some() {}
        }
        scan.end("nothing after add, open or close")?;
        return Ok(IologLine {
            time_ns,
            file,
            action,
            offset: 0,
            len_bytes: 0,
        });
    }
    let offset = scan.u64("an offset in bytes")?;
    let len_bytes = scan.u64("a length in bytes")?;
    scan.end("an offset and a length, and nothing more")?;
    if offset.checked_add(len_bytes).is_none() {
        return Err(LineError::new(
            line,
            "an offset and length whose sum is below 2^64 bytes",
        ));
    }
    Ok(IologLine {
        time_ns,
        file,
        action,
        offset,
        len_bytes,
    })
}

/// The holes of the source that a line tells behind `close`.
fn holes_of(line: &[u8]) -> Option<Holes> {
    let at = memchr::memmem::rfind(line, b" close ")?;
    parse_holes(&line[at + b" close ".len()..])
}

/// Facts of a log that its first `add` tells, which precedes all I/O.
#[derive(Clone, Copy)]
struct Marks {
    layer: Layer,
    /// Whether the times are those of the I/O.
    is_timed: bool,
}

impl Default for Marks {
    fn default() -> Marks {
        Marks {
            layer: Layer::Vfs,
            is_timed: true,
        }
    }
}

/// The marks in the rest of a line; `None` if it has other words.
fn marks_in(mut rest: Scan<'_>) -> Option<Marks> {
    let mut marks = Marks::default();
    while let Some(word) = rest.field() {
        match word.strip_prefix(b"layer=") {
            Some(layer) => marks.layer = Layer::from_word(std::str::from_utf8(layer).ok()?)?,
            None if word == b"untimed" => marks.is_timed = false,
            None => return None,
        }
    }
    Some(marks)
}

fn marks_of(input: &mut Input) -> Result<Marks, Error> {
    let complete = input.peek(HEAD_BYTES)?.len() < HEAD_BYTES;
    let marks = whole_lines(input.shown(), complete)
        .take(HEAD_LINES)
        .find_map(|line| {
            let mut scan = Scan::new(line, b' ');
            std::iter::from_fn(|| scan.field())
                .take(3)
                .find(|word| *word == b"add")?;
            Some(marks_in(scan).unwrap_or_default())
        });
    Ok(marks.unwrap_or_default())
}

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    match whole_lines(prefix, complete).next() {
        Some(line) if version_of(line).is_some() => Sniff::Yes,
        Some(_) => Sniff::No,
        None if complete || prefix.len() > 64 => Sniff::No,
        None => Sniff::More,
    }
}

fn open(mut input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    let marks = marks_of(&mut input)?;
    let info = SourceInfo {
        format: FORMAT.name,
        layers: vec![marks.layer],
        clock: Clock::Unknown,
        latency: Latency::None("an I/O log of fio has no completions".to_owned()),
        ..SourceInfo::default()
    };
    open_lines(
        input,
        options,
        FioLog {
            marks,
            ..FioLog::default()
        },
        info,
    )
}

#[derive(Default)]
struct FioLog {
    marks: Marks,
    version: Option<LogVersion>,
    files: DeviceKeys,
    /// Name of the file of each device.
    names: Vec<NameId>,
    /// The sum of version 2's waits so far.
    waited_ns: i64,
    counts: [u64; ACTIONS.len()],
}

impl FioLog {
    fn first_line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        let version = version_of(line);
        let expected = "`fio version 2 iolog` or `fio version 3 iolog` as the first line";
        self.version = Some(version.ok_or_else(|| LineError::new(line, expected))?);
        sink.info.verified = version == Some(LogVersion::V3);
        if version == Some(LogVersion::V3) {
            sink.info.clock = Clock::Start;
        }
        Ok(())
    }

    #[inline]
    fn file(&mut self, file: &[u8], sink: &mut Sink) -> (DeviceId, NameId) {
        let name = |file: &[u8]| String::from_utf8_lossy(file).into_owned();
        let device = self.files.text(file, &mut sink.names, name);
        if let Some(&word) = self.names.get(device as usize) {
            return (device, word);
        }
        let word = sink.names.word(&name(file));
        self.names.push(word);
        (device, word)
    }

    fn wait(&mut self, wait_us: u64, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        let until = self.waited_ns.checked_add(ns(wait_us, US_NS, line)?);
        self.waited_ns =
            until.ok_or_else(|| LineError::new(line, "waits of less than 2^63 ns in all"))?;
        sink.info.clock = Clock::Start;
        Ok(())
    }
}

impl LineFormat for FioLog {
    #[inline]
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        let Some(version) = self.version else {
            return self.first_line(line, sink);
        };
        let parsed = parse(version, line)?;
        if let Some(count) = self.counts.get_mut(parsed.action) {
            *count += 1;
        }
        if parsed.action == WAIT {
            return self.wait(parsed.offset, line, sink);
        }
        let (device, file) = self.file(parsed.file, sink);
        let Some(&(_, Some(op))) = ACTIONS.get(parsed.action) else {
            if let Some(holes) = holes_of(line) {
                add_holes(holes, &mut sink.info);
            }
            return Ok(());
        };
        let (start, len) = if op == Op::Flush {
            (0, 0)
        } else {
            (parsed.offset, parsed.len_bytes)
        };
        let time_ns = match self.marks.is_timed {
            true => parsed.time_ns.unwrap_or(self.waited_ns),
            false => UNKNOWN_NS,
        };
        let layer = self.marks.layer;
        let mut event = Event::new(time_ns, device, layer, op, start, len);
        if layer == Layer::Vfs {
            event.file = file;
        }
        sink.push(&event);
        Ok(())
    }

    fn end(&mut self, sink: &mut Sink) {
        for ((name, _), &count) in ACTIONS.iter().zip(&self.counts) {
            if count > 0 {
                sink.info.tallies.insert(name, count);
            }
        }
        if self.version == Some(LogVersion::V2) {
            if self.counts[WAIT] > 0 {
                sink.info.note(
                    "times are only those of the `wait` lines: all I/O between two have the same time",
                );
            } else {
                sink.info
                    .note("no times: version 2 of the log, without `wait` lines");
                sink.info.cannot_tell.extend(["times", "rates"]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let check = |version, line: &str, time_ns, action: &str, offset, len_bytes| {
            let parsed = parse(version, line.as_bytes()).ok().unwrap();
            let action = ACTIONS
                .iter()
                .position(|(name, _)| *name == action)
                .unwrap();
            assert_eq!(
                parsed,
                IologLine {
                    time_ns,
                    file: b"f.dat",
                    action,
                    offset,
                    len_bytes
                },
                "{line}"
            );
        };
        check(LogVersion::V3, "18 f.dat add", Some(18_000), "add", 0, 0);
        check(
            LogVersion::V3,
            "18 f.dat add layer=request",
            Some(18_000),
            "add",
            0,
            0,
        );
        check(
            LogVersion::V3,
            "424 f.dat read 3536384 50125",
            Some(424_000),
            "read",
            3_536_384,
            50_125,
        );
        check(LogVersion::V2, "f.dat wait 120 0", None, "wait", 120, 0);
        check(
            LogVersion::V2,
            "f.dat trim 4096 8192",
            None,
            "trim",
            4096,
            8192,
        );
        check(
            LogVersion::V2,
            "f.dat datasync 4096 8192",
            None,
            "datasync",
            4096,
            8192,
        );
    }

    #[test]
    fn malformed_lines_are_rejected() {
        for line in [
            "f.dat read 0 512",
            "1 f.dat read 0",
            "1 f.dat read 0 512 7",
            "1 f.dat wait 5 0",
            "1 f.dat open 5",
            "1 f.dat add 5",
            "1 f.dat add layer=disk",
            "1 f.dat open layer=request",
            "1 f.dat add layer=request 5",
            "-1 f.dat read 0 512",
            "1 f.dat read NaN 512",
            "1 f.dat seek 0 512",
            "1 f.dat",
            "9223372036854775807 f.dat read 0 512",
            "1 f.dat read 18446744073709551615 1",
        ] {
            assert!(parse(LogVersion::V3, line.as_bytes()).is_err(), "{line}");
        }
    }

    #[test]
    fn recognised_by_its_first_line() {
        for (begin, expected) in [
            ("fio version 3 iolog\r\n1 f", Sniff::Yes),
            ("fio vers", Sniff::More),
            ("fio version 4 iolog\n", Sniff::No),
        ] {
            assert_eq!(sniff(begin.as_bytes(), false), expected, "{begin}");
        }
    }
}
