//! The text that blkparse prints in its default form, from a run of blktrace.
//!
//! `MAJ,MIN CPU SEQ SEC.NSEC PID ACTION RWBS` and then, by action, `SECTOR + SECTORS [comm]` or
//! `[error]`, `SECTOR / NEW [comm]` for a split, `SECTOR + SECTORS <- (MAJ,MIN) SECTOR` for a remap. Lines
//! before the events (`Input file … added`) and the summary after them are passed over.
//!
//! An event before the start of the trace prints with its seconds wrapped at 2^64 ns and cut to 32 bits: 1266874889.67
//! is −0.04. That is undone here, so such a trace is not in time order. The tool cuts the length to whole sectors, and
//! prints only selected events (`-a`, `-f`).

use crate::blk::{Action, BlockEvents, BlockRecord, PEEK_RECORDS, Present};
use crate::format::{About, Family, Format, Holds};
use crate::input::{Input, SNIFF_BYTES};
use crate::number::{parse_i64, parse_u64};
use crate::op::parse_rwbs;
use crate::reader::{ReadOptions, Reader, Sniff};
use crate::scan::Scan;
use crate::source::{Clock, SourceInfo};
use crate::text::{LineError, LineFormat, Sink, TextReader, sniff_lines, split_words, whole_lines};
use crate::{batch::BATCH_EVENTS, error::Error};

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "blkparse",
    title: "text of `blkparse` in the default form",
    verified: true,
    unsorted: true,
    about: About {
        families: &[(Family::Linux, "text of `blkparse`")],
        layer: "bio, request",
        holds: Holds::Events {
            times: "ns since the start",
            latency: "queue, device",
        },
        verified_by: "a real run, blkparse's own counts",
        cannot_tell: "I/O that blkparse filtered (`-a`, `-f`); other `-f` forms are not read",
        words: &[
            " Q ",
            " I ",
            " D ",
            " C ",
            " A ",
            " X ",
            " M ",
            " F ",
            " U ",
            " UT ",
            " P ",
            " R ",
            " m ",
            " + ",
            " / ",
            " <- ",
            "(8,1)",
            "[0]",
            "[dd]",
            " WS ",
            " FWFS ",
            " RA ",
            " DS ",
            "  8,0 ",
            "CPU0",
            "Total",
            "Input file",
        ],
        real: &[
            "blkparse/excerpt_discard_scylla.txt",
            "blkparse/excerpt_remap_centos7_lvm.txt",
            "blkparse/leveldb_blk_data.txt",
        ],
    },
    sniff,
    open,
};

/// Seconds to which blkparse cuts 2^64 ns: printed for events before the start of the trace.
const WRAP_SECONDS: i64 = 1_266_874_889;
/// Nanoseconds that belong to them.
const WRAP_NS: i64 = 709_551_616;

#[derive(Debug, PartialEq, Eq)]
struct BlkparseLine<'line> {
    record: RawRecord<'line>,
    /// Number of the action; see [`action_of`].
    number: usize,
    remap: Option<(&'line [u8], u64)>,
}

#[derive(Debug, PartialEq, Eq)]
struct RawRecord<'line> {
    device: &'line [u8],
    action: Action,
    time_ns: i64,
    pid: Option<i32>,
    rwbs: &'line [u8],
    sector: u64,
    sectors: u64,
    comm: &'line [u8],
    failed: bool,
}

const ACTIONS: [(&str, Action); 7] = [
    ("Q", Action::Queue),
    ("F", Action::FrontMerge),
    ("R", Action::Requeue),
    ("D", Action::Issue),
    ("C", Action::Complete),
    ("I", Action::Insert),
    ("A", Action::Remap),
];

/// Letters that are only counted.
const OTHERS: [&str; 13] = [
    "M", "G", "S", "P", "U", "UT", "X", "B", "m", "ZP", "ZU", "DRV", "ABORT",
];

/// Letter, action and number of a word; the numbers count on from those of [`ACTIONS`].
#[inline]
fn action_of(word: &[u8]) -> Option<(&'static str, Action, usize)> {
    let others = OTHERS.iter().map(|&letter| (letter, Action::Other));
    ACTIONS
        .iter()
        .copied()
        .chain(others)
        .enumerate()
        .find(|(_, (letter, _))| letter.as_bytes() == word)
        .map(|(number, (letter, action))| (letter, action, number))
}

/// Seconds and nanoseconds as blkparse prints them, with the wrap of early events undone.
fn parse_time(text: &[u8]) -> Option<i64> {
    let point = memchr::memchr(b'.', text)?;
    let (seconds, ns) = (parse_i64(&text[..point])?, parse_i64(&text[point + 1..])?);
    if text.len() - point != 10 {
        return None;
    }
    let time_ns = seconds.checked_mul(1_000_000_000)?.checked_add(ns)?;
    let wrapped = (WRAP_SECONDS - 60..=WRAP_SECONDS).contains(&seconds);
    Some(if wrapped {
        time_ns - (WRAP_SECONDS * 1_000_000_000 + WRAP_NS)
    } else {
        time_ns
    })
}

/// Lines of the usual form in one pass: numbers without a sign, `SECTOR + SECTORS`, no remap. `None` for all others,
/// which [`parse`] reads or rejects with the fault.
#[inline]
fn parse_usual(line: &[u8]) -> Option<BlkparseLine<'_>> {
    let mut scan = Scan::new(line, b' ');
    let device = scan.field()?;
    let comma = device.iter().position(|&byte| byte == b',')?;
    let is_number =
        |digits: &[u8]| (1..=18).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    if !is_number(&device[..comma]) || !is_number(&device[comma + 1..]) {
        return None;
    }
    scan.plain_u64()?;
    scan.plain_u64()?;
    let (seconds, ns) = scan.seconds_and_ns()?;
    // Later ones may be wrapped.
    if seconds >= (WRAP_SECONDS - 60) as u64 {
        return None;
    }
    let pid = i32::try_from(scan.plain_u64()?).ok()?;
    let (action, number) = match scan.letter()? {
        b'Q' => (Action::Queue, 0),
        b'F' => (Action::FrontMerge, 1),
        b'R' => (Action::Requeue, 2),
        b'D' => (Action::Issue, 3),
        b'C' => (Action::Complete, 4),
        b'I' => (Action::Insert, 5),
        b'M' => (Action::Other, 7),
        b'G' => (Action::Other, 8),
        _ => return None,
    };
    let rwbs = scan.field()?;
    if !rwbs.iter().all(u8::is_ascii_alphabetic) {
        return None;
    }
    let sector = scan.plain_u64()?;
    if scan.letter()? != b'+' {
        return None;
    }
    let sectors = scan.plain_u64()?;
    let mut record = RawRecord {
        device,
        action,
        time_ns: (seconds * 1_000_000_000 + ns) as i64,
        pid: Some(pid),
        rwbs,
        sector,
        sectors,
        comm: b"",
        failed: false,
    };
    bracketed(scan.remaining(), &mut record);
    Some(BlkparseLine {
        record,
        number,
        remap: None,
    })
}

fn is_device(word: &[u8]) -> bool {
    memchr::memchr(b',', word)
        .is_some_and(|at| parse_u64(&word[..at]).is_some() && parse_u64(&word[at + 1..]).is_some())
}

/// The text after the seven fields that all lines have, or the reason why it is not understood.
fn parse(line: &[u8]) -> Result<BlkparseLine<'_>, LineError> {
    let mut fields = split_words(line);
    let mut next = |expected| fields.next().ok_or_else(|| LineError::new(line, expected));
    let device = next("MAJOR,MINOR of a device")?;
    if !is_device(device) {
        return Err(LineError::new(device, "MAJOR,MINOR of a device"));
    }
    for expected in ["a CPU number", "a sequence number"] {
        let word = next(expected)?;
        parse_u64(word).ok_or_else(|| LineError::new(word, expected))?;
    }
    let word = next("a time SECONDS.NANOSECONDS")?;
    let time_ns =
        parse_time(word).ok_or_else(|| LineError::new(word, "a time SECONDS.NANOSECONDS"))?;
    let word = next("a process id")?;
    let pid = parse_i64(word).and_then(|pid| i32::try_from(pid).ok());
    if pid.is_none() {
        return Err(LineError::new(word, "a process id"));
    }
    let word = next("an action letter")?;
    let (letter, action, number) =
        action_of(word).ok_or_else(|| LineError::new(word, "an action letter of blkparse"))?;
    let mut record = RawRecord {
        device,
        action,
        time_ns,
        pid,
        rwbs: b"",
        sector: 0,
        sectors: 0,
        comm: b"",
        failed: false,
    };
    if letter == "m" {
        return Ok(BlkparseLine {
            record,
            number,
            remap: None,
        });
    }
    record.rwbs = next("RWBS letters")?;
    let remap = parse_place(line, fields, &mut record)?;
    Ok(BlkparseLine {
        record,
        number,
        remap,
    })
}

/// `SECTOR + SECTORS`, `SECTOR / SECTOR`, or neither, and the text in brackets.
fn parse_place<'line>(
    line: &'line [u8],
    mut fields: impl Iterator<Item = &'line [u8]>,
    record: &mut RawRecord<'line>,
) -> Result<Option<(&'line [u8], u64)>, LineError> {
    bracketed(line, record);
    let Some(first) = fields.next() else {
        return Ok(None);
    };
    let Some(sector) = parse_u64(first) else {
        // Plug and unplug have the letter N and no place; a bare flush has only the bracket. The completion
        // of a command that an application wrote itself shows the command.
        if first.starts_with(b"(") {
            record.action = Action::Other;
        }
        return Ok(None);
    };
    let sign = fields.next();
    if sign.is_some_and(|sign| sign.starts_with(b"(")) {
        // `BYTES (CDB)` of a command that an application wrote itself.
        record.action = Action::Other;
        return Ok(None);
    }
    record.sector = sector;
    if sign != Some(b"+") {
        return Ok(None);
    }
    let count = fields.next().unwrap_or_default();
    record.sectors = parse_u64(count).ok_or_else(|| LineError::new(count, "a count of sectors"))?;
    if record.action != Action::Remap {
        return Ok(None);
    }
    let expected = "`<- (MAJOR,MINOR) SECTOR` of a remap";
    let (arrow, from, source) = (fields.next(), fields.next(), fields.next());
    let (Some(b"<-"), Some(from), Some(source)) = (arrow, from, source) else {
        return Err(LineError::new(line, expected));
    };
    let from = from
        .strip_prefix(b"(")
        .and_then(|from| from.strip_suffix(b")"))
        .filter(|from| is_device(from));
    let (Some(from), Some(source)) = (from, parse_u64(source)) else {
        return Err(LineError::new(line, expected));
    };
    Ok(Some((from, source)))
}

/// The command (it may hold blanks) or the error number of a completion.
fn bracketed<'line>(line: &'line [u8], record: &mut RawRecord<'line>) {
    let (Some(open), Some(close)) = (memchr::memchr(b'[', line), memchr::memrchr(b']', line))
    else {
        return;
    };
    if close < open {
        return;
    }
    let inside = &line[open + 1..close];
    match record.action {
        Action::Complete | Action::Requeue => record.failed = inside != b"0",
        _ if inside == b"(null)" => {}
        _ => record.comm = inside,
    }
}

/// Lines that blkparse prints around the events: their first word is no `MAJOR,MINOR`.
#[inline]
fn is_around(line: &[u8]) -> bool {
    let word = line.trim_ascii_start();
    let comma = word
        .iter()
        .take_while(|byte| !matches!(byte, b' ' | b'\t'))
        .position(|&byte| byte == b',');
    !word.first().is_some_and(u8::is_ascii_digit) || comma.is_none()
}

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    let mut lines =
        whole_lines(prefix, complete).skip_while(|line| line.starts_with(b"Input file"));
    match lines.next() {
        Some(line) => {
            if parse(line).is_ok() {
                Sniff::Yes
            } else {
                Sniff::No
            }
        }
        None => sniff_lines(prefix, complete, |line| line.starts_with(b"Input file")),
    }
}

struct Blkparse {
    events: BlockEvents,
    /// Lines by the number of their action since the last tally.
    lines: [u64; ACTIONS.len() + OTHERS.len()],
    devices: RecentNames,
    comms: RecentNames,
}

/// Numbers of names that came up lately: a name is mostly that of one of the lines before.
#[derive(Default)]
struct RecentNames {
    names: Vec<(Vec<u8>, u32)>,
}

impl RecentNames {
    /// The number that is kept.
    const KEPT: usize = 8;

    /// The number of a name, from `learn` where it is not among the recent ones.
    #[inline]
    fn number(&mut self, name: &[u8], learn: impl FnOnce(&str) -> u32) -> u32 {
        if let Some((_, number)) = self.names.iter().find(|(known, _)| known == name) {
            return *number;
        }
        let number = learn(&String::from_utf8_lossy(name));
        if self.names.len() == Self::KEPT {
            self.names.rotate_left(1);
            self.names.pop();
        }
        self.names.push((name.to_vec(), number));
        number
    }
}

impl Blkparse {
    fn new(events: BlockEvents) -> Blkparse {
        Blkparse {
            events,
            lines: [0; ACTIONS.len() + OTHERS.len()],
            devices: RecentNames::default(),
            comms: RecentNames::default(),
        }
    }

    fn tally(&mut self, sink: &mut Sink) {
        let letters = ACTIONS.iter().map(|(letter, _)| *letter).chain(OTHERS);
        for (letter, lines) in letters.zip(&mut self.lines) {
            sink.info.tally_many(letter, std::mem::take(lines));
        }
    }
}

fn open(mut input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    let mut present = Present::default();
    let prefix = input.peek(SNIFF_BYTES)?;
    for line in whole_lines(prefix, true)
        .take(PEEK_RECORDS)
        .filter_map(|line| parse(line).ok())
    {
        present.saw(line.record.action);
    }
    let mut info = SourceInfo {
        format: FORMAT.name,
        verified: true,
        clock: Clock::Start,
        ..SourceInfo::default()
    };
    present.check(options.layer, &input.path)?;
    let events = BlockEvents::new(present, options.layer, None, &mut info);
    Ok(Box::new(TextReader::new(
        input,
        Blkparse::new(events),
        info,
    )))
}

impl LineFormat for Blkparse {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        let text = line;
        let line = match parse_usual(text) {
            Some(line) => line,
            None if is_around(text) => return Ok(()),
            None => parse(text)?,
        };
        let raw = &line.record;
        let end = raw
            .sector
            .checked_add(raw.sectors)
            .and_then(|end| end.checked_mul(512));
        if raw.sectors > 0 && end.is_none() {
            return Err(LineError::new(text, "a sector and a count below 2^55"));
        }
        self.lines[line.number] += 1;
        let len_bytes = raw.sectors * 512;
        let (op, flags) = parse_rwbs(raw.rwbs, len_bytes);
        let record = BlockRecord {
            action: raw.action,
            time_ns: raw.time_ns,
            device: self
                .devices
                .number(raw.device, |name| sink.names.device(name)),
            sector: raw.sector,
            len_bytes,
            op,
            flags,
            pid: raw.pid,
            comm: self.comms.number(raw.comm, |comm| sink.names.word(comm)),
            cgroup: None,
            failed: raw.failed,
        };
        if let Some((from, sector)) = line.remap {
            let from = sink.names.device(&String::from_utf8_lossy(from));
            self.events.remap(from, sector, &record, &mut sink.names);
        }
        self.events.accept(&record, &mut sink.info);
        self.events
            .drain(&mut sink.batch, 2 * BATCH_EVENTS, &mut sink.info);
        Ok(())
    }

    fn pause(&mut self, sink: &mut Sink) {
        self.tally(sink);
    }

    fn end(&mut self, sink: &mut Sink) {
        self.events
            .drain_rest(&mut sink.batch, usize::MAX, &mut sink.info);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINES: [&str; 10] = [
        "  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]",
        "259,12   0  9999999  1234.567890123 0  C  WS 20513 + 1 [0]",
        "  8,0    3       11     0.009507758   697  I FWFS 18446744073709551615 + 8 [a [b] c]",
        "  8,0    3       12 1266874889.709551615 697 D R 223490 + 56 []",
        "  8,0    3       13     1.000000000   697  F  RA 1 + 1",
        "  8,0    3       14     1.000000000    -1  M  RA 1 + 1 [(null)]",
        "  8,0    3       15     1.000000000     5  U   N [fio] 1",
        "  8,0    3       16     1.000000000     5  A   W 5 + 8 <- (8,1) 3",
        "  8,0    3       17     1.000000000     5  R   N 0 [5]",
        "  8,0    3       18     1.000000000     5  G   W 7 / 9 [x]",
    ];

    #[test]
    fn the_numbers_of_usual_lines_are_those_of_the_letters() {
        for letter in ["Q", "F", "R", "D", "C", "I", "M", "G"] {
            let line = format!("8,0 3 1 0.000000001 697 {letter} W 223490 + 8 [k]");
            let (_, action, number) = action_of(letter.as_bytes()).unwrap();
            let usual = parse_usual(line.as_bytes()).unwrap();
            assert_eq!(
                (usual.record.action, usual.number),
                (action, number),
                "{letter}"
            );
        }
    }

    proptest! {
        /// For any bytes of a line, the fast path gives the same result as the general one, or none.
        #[test]
        fn the_usual_way_agrees_with_the_general_one(
            line in prop::sample::select(&LINES[..]),
            changes in prop::collection::vec(
                (any::<prop::sample::Index>(), prop::sample::select(&b"0159 \t,.+-[]()/QDCMmRWx\xff"[..]), 0..3),
                0..4,
            ),
        ) {
            let mut line = line.as_bytes().to_vec();
            for (at, byte, change) in changes {
                let at = at.index(line.len());
                match change {
                    0 => line[at] = byte,
                    1 => line.insert(at, byte),
                    _ => drop(line.remove(at)),
                }
            }
            if let Some(usual) = parse_usual(&line) {
                prop_assert!(!is_around(&line));
                prop_assert_eq!(Ok(usual), parse(&line));
            }
        }
    }
}
