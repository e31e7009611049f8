//! The text of a residue table: I/O counted by device, operation, start modulo M and length.
//!
//! It begins with `# plumb-residue 1 unit=512 modulus=2048`: unit in bytes, modulus in units (here 1 MiB),
//! then, if the writer knows it, `layer=` and one of vfs, bio, request. Each further line is
//! `device op residue length ios [timed_ios device_ns_sum]`, residue and length in units, op one of
//! R W D F Z O, or the same as bpftrace prints a map: `@[device, op, residue, length]: ios`, where the device
//! may also be two keys, major and minor, and op any rwbs string of the kernel. Lines that begin with `#` are
//! remarks. Another header begins another table.
//!
//! A one-liner prints such a table on a host without other tools. For bpftrace (tried on Linux 6.18 with bpftrace 0.17;
//! `collectors/residue.bt`):
//!
//! ```text
//! BEGIN { printf("# plumb-residue 1 unit=512 modulus=2048 layer=request\n"); }
//! tracepoint:block:block_rq_issue {
//!   @[args->dev >> 20, args->dev & 0xfffff, args->rwbs, args->sector & 2047, args->bytes / 512] = count();
//! }
//! ```
//!
//! For DTrace (tried on Linux 6.12 with DTrace 2.0.7, not on Solaris; `collectors/residue.d`):
//!
//! ```text
//! BEGIN { printf("# plumb-residue 1 unit=512 modulus=2048 layer=bio\n"); }
//! io:::start {
//!   @[args[1]->dev_statname, args[0]->b_flags & B_READ ? "R" : "W",
//!     args[0]->b_blkno & 2047, args[0]->b_bcount / 512] = count();
//! }
//! END { printa("%s %s %d %d %@d\n", @); }
//! ```
//!
//! It leaves out order, times and processes: so there are no streams, seeks and depth. Without a header the unit is not
//! known, so such a file is refused.

use crate::error::{Damage, Error, Place, shown};
use crate::format::{About, Family, Format, Holds};
use crate::input::{Input, SNIFF_BYTES};
use crate::number::parse_u64;
use crate::op::{Layer, Op, parse_rwbs};
use crate::reader::{
    DEVICE_NS_SUM_MAX, Fill, IOS_MAX, ReadOptions, Reader, ResidueRow, ResidueTable, Sniff,
};
use crate::source::{Latency, SourceInfo};
use crate::text::{LineError, LineFormat, Sink, TextReader, sniff_lines, split_words, whole_lines};
use crate::tool::check_layer;

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "residue",
    title: "[a residue table as text](residue.md), by a one-liner",
    verified: true,
    unsorted: false,
    about: About {
        families: &[(
            Family::Anywhere,
            "counts that [scripts](collectors/README.md) for bpftrace or DTrace print, or a table from a line of SQL",
        )],
        layer: "as it says",
        holds: Holds::Counts("fit on every grid that divides its modulus"),
        verified_by: "output of a real bpftrace, and of DTrace on Linux; DTrace on Solaris: **unverified**",
        cannot_tell: "order, streams, times, processes",
        words: &[
            "# plumb-residue 1 unit=512 modulus=2048",
            "# plumb-residue 1 unit=1 modulus=1048576",
            " layer=",
            "unit=",
            "modulus=",
            " R ",
            " W ",
            " D ",
            " F ",
            " Z ",
            " O ",
            "@",
            "@[",
            "Attaching",
        ],
        real: &[],
    },
    sniff,
    open,
};

const MAGIC: &[u8] = b"# plumb-residue ";
/// A longer table is handed on in parts: its length is not ours to bound.
const ROWS_HANDED: usize = 1 << 16;
const HEADER: &str =
    "the line `# plumb-residue 1 unit=512 modulus=2048` on top (unit in bytes, modulus in units)";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    unit_bytes: u64,
    modulus: u64,
    modulus_bytes: u64,
    layer: Option<Layer>,
}

const SUMS: &str = "counts of at most 2^48 I/O, and 2^111 ns, in the whole file";

fn parse_head(line: &[u8]) -> Result<Head, LineError> {
    let bad = || LineError::new(line, HEADER);
    let mut fields = split_words(line.strip_prefix(MAGIC).ok_or_else(bad)?);
    if fields.next() != Some(b"1") {
        return Err(bad());
    }
    let (mut unit, mut modulus, mut layer) = (None, None, None);
    for field in fields {
        let at = memchr::memchr(b'=', field).ok_or_else(bad)?;
        let (name, value) = (&field[..at], &field[at + 1..]);
        match name {
            b"unit" => unit = parse_u64(value).filter(|&unit| unit > 0),
            b"modulus" => modulus = parse_u64(value).filter(|&modulus| modulus > 0),
            b"layer" => {
                let word = std::str::from_utf8(value).unwrap_or_default();
                layer = Some(Layer::from_word(word).ok_or_else(bad)?);
            }
            _ => return Err(bad()),
        }
    }
    let (Some(unit_bytes), Some(modulus)) = (unit, modulus) else {
        return Err(bad());
    };
    let modulus_bytes = unit_bytes.checked_mul(modulus).ok_or_else(bad)?;
    Ok(Head {
        unit_bytes,
        modulus,
        modulus_bytes,
        layer,
    })
}

/// Words that stand for `device op residue length ios [timed_ios device_ns_sum]`.
struct ResidueCells<'line> {
    device: String,
    op: &'line [u8],
    residue: &'line [u8],
    length: &'line [u8],
    ios: &'line [u8],
    timed: Option<(&'line [u8], &'line [u8])>,
}

/// A line taken apart, in either of its two shapes; nothing of it is judged yet.
fn cells(line: &[u8]) -> Option<ResidueCells<'_>> {
    let line = line.trim_ascii();
    if line.first() == Some(&b'@') {
        return map_cells(line);
    }
    let mut found = split_words(line);
    let mut next = || found.next();
    let device = String::from_utf8_lossy(next()?).into_owned();
    let (op, residue, length, ios) = (next()?, next()?, next()?, next()?);
    let timed = match (next(), next()) {
        (None, _) => None,
        (Some(timed), Some(sum)) => Some((timed, sum)),
        (Some(_), None) => return None,
    };
    if op.len() != 1 || next().is_some() {
        return None;
    }
    Some(ResidueCells {
        device,
        op,
        residue,
        length,
        ios,
        timed,
    })
}

/// `@name[device, op, residue, length]: ios`.
fn map_cells(line: &[u8]) -> Option<ResidueCells<'_>> {
    let (open, close) = (memchr::memchr(b'[', line)?, memchr::memrchr(b']', line)?);
    let keys = line.get(open + 1..close)?;
    let ios = line.get(close + 1..)?.strip_prefix(b":")?.trim_ascii();
    let mut keys: Vec<&[u8]> = keys
        .split(|&byte| byte == b',')
        .take(6)
        .map(<[u8]>::trim_ascii)
        .collect();
    let (length, residue, op) = (keys.pop()?, keys.pop()?, keys.pop()?);
    let device: Vec<_> = keys
        .iter()
        .map(|key| String::from_utf8_lossy(key))
        .collect();
    let named = matches!(device.len(), 1 | 2) && device.iter().all(|key| !key.is_empty());
    named.then(|| ResidueCells {
        device: device.join(","),
        op,
        residue,
        length,
        ios,
        timed: None,
    })
}

/// One of R W D F Z O, or the rwbs letters of a kernel, which are capitals too.
fn parse_op(word: &[u8], len_bytes: u64) -> Option<Op> {
    if word.is_empty() || !word.iter().all(u8::is_ascii_uppercase) {
        return None;
    }
    match word {
        [letter] => Op::from_letter(*letter).or((*letter == b'N').then_some(Op::Other)),
        _ => Some(parse_rwbs(word, len_bytes).0),
    }
}

fn parse_row(line: &[u8], head: Head) -> Result<ResidueRow, LineError> {
    let cells = cells(line).ok_or_else(|| {
        LineError::new(
            line,
            "`device op residue length ios [timed_ios device_ns_sum]`",
        )
    })?;
    let number = |word, expected| parse_u64(word).ok_or_else(|| LineError::new(word, expected));
    let residue = number(cells.residue, "a residue in units")?;
    if residue >= head.modulus {
        return Err(LineError::new(
            cells.residue,
            "a residue below the modulus of the header",
        ));
    }
    let too_long = LineError::new(cells.length, "a length in units, below 2^64 bytes");
    let len_bytes = parse_u64(cells.length).and_then(|length| length.checked_mul(head.unit_bytes));
    let len_bytes = len_bytes.ok_or(too_long)?;
    let op = parse_op(cells.op, len_bytes)
        .ok_or_else(|| LineError::new(cells.op, "one of R W D F Z O"))?;
    let ios = number(cells.ios, "a count of I/O")?;
    let (mut timed_ios, mut device_ns_sum) = (0, 0);
    if let Some((timed, sum)) = cells.timed {
        timed_ios = number(timed, "a count of timed I/O")?;
        if timed_ios > ios {
            return Err(LineError::new(timed, "no more timed I/O than I/O"));
        }
        let digits = std::str::from_utf8(sum)
            .ok()
            .filter(|sum| sum.bytes().all(|byte| byte.is_ascii_digit()));
        let parsed = digits.and_then(|sum| sum.parse().ok());
        device_ns_sum = parsed.ok_or_else(|| LineError::new(sum, "a sum of nanoseconds"))?;
    }
    // Below the modulus, so the product with the unit fits as that of the modulus did.
    let residue_bytes = residue * head.unit_bytes;
    Ok(ResidueRow {
        device: cells.device,
        op,
        residue_bytes,
        len_bytes,
        ios,
        timed_ios,
        device_ns_sum,
    })
}

/// bpftrace's own message before the first line of a program.
fn is_chatter(line: &[u8]) -> bool {
    line.starts_with(b"Attaching ")
}

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    let first = whole_lines(prefix, complete).find(|line| !is_chatter(line));
    if first.is_some_and(|line| line.starts_with(MAGIC)) {
        return Sniff::Yes;
    }
    // A table without its header is recognised too, so that the error can name the missing part.
    let any = Head {
        unit_bytes: 1,
        modulus: u64::MAX,
        modulus_bytes: u64::MAX,
        layer: None,
    };
    let is_map = first.is_some_and(|line| line.starts_with(b"@") && parse_row(line, any).is_ok());
    if is_map {
        return Sniff::Yes;
    }
    sniff_lines(prefix, complete, |line| {
        is_chatter(line) || parse_row(line, any).is_ok()
    })
}

struct Residue {
    head: Head,
    table: ResidueTable,
    timed: bool,
    /// I/O and nanoseconds of all rows so far.
    ios: u64,
    device_ns_sum: u128,
}

fn open(mut input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    let path = input.path.clone();
    let prefix = input.peek(SNIFF_BYTES)?;
    let mut numbered = (1u64..).zip(prefix.split(|&byte| byte == b'\n'));
    let first = numbered.find(|(_, line)| !line.trim_ascii().is_empty() && !is_chatter(line));
    let (number, line) = first.unwrap_or((1, b""));
    let head = parse_head(line.trim_ascii_end()).map_err(|error| {
        let damage = Damage {
            place: Place::Line(number),
            found: shown(line),
            expected: error.expected.to_owned(),
        };
        Error::Malformed {
            path: path.clone(),
            damage,
        }
    })?;
    check_layer(&path, options, head.layer)?;
    let info = SourceInfo {
        format: FORMAT.name,
        verified: FORMAT.verified,
        layers: head.layer.into_iter().collect(),
        latency: Latency::None("the table counts without timing".to_owned()),
        cannot_tell: vec!["order", "streams", "seek distances", "times", "processes"],
        ..SourceInfo::default()
    };
    let format = Residue {
        head,
        table: table(head),
        timed: false,
        ios: 0,
        device_ns_sum: 0,
    };
    Ok(Box::new(TextReader::new(input, format, info)))
}

fn table(head: Head) -> ResidueTable {
    ResidueTable {
        unit_bytes: head.unit_bytes,
        modulus_bytes: head.modulus_bytes,
        rows: Vec::new(),
    }
}

impl Residue {
    /// Adds a row to the sums; `None` when they would become larger than any that can be true.
    fn count(&mut self, row: &ResidueRow) -> Option<()> {
        let ios = self
            .ios
            .checked_add(row.ios)
            .filter(|&ios| ios <= IOS_MAX)?;
        let sum = self
            .device_ns_sum
            .checked_add(row.device_ns_sum)
            .filter(|&sum| sum <= DEVICE_NS_SUM_MAX)?;
        (self.ios, self.device_ns_sum) = (ios, sum);
        Some(())
    }
}

impl LineFormat for Residue {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        if line.starts_with(MAGIC) {
            let head = parse_head(line)?;
            self.end(sink);
            self.head = head;
            self.table = table(head);
            head.layer
                .into_iter()
                .for_each(|layer| sink.info.saw_layer(layer));
            return Ok(());
        }
        if line.starts_with(b"#") || line.trim_ascii().is_empty() || is_chatter(line) {
            return Ok(());
        }
        let row = parse_row(line, self.head)?;
        self.count(&row).ok_or_else(|| LineError::new(line, SUMS))?;
        if self.table.rows.len() == ROWS_HANDED {
            self.end(sink);
        }
        self.timed |= row.timed_ios > 0;
        sink.info.tally("row");
        self.table.rows.push(row);
        Ok(())
    }

    fn end(&mut self, sink: &mut Sink) {
        if self.timed {
            sink.info.latency = Latency::Known;
        }
        let done = std::mem::replace(&mut self.table, table(self.head));
        if !done.rows.is_empty() {
            sink.extras.push_back(Fill::Residue(done));
        }
    }
}
