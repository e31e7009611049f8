//! The output of biosnoop of the BPF Compiler Collection (bcc), also in its libbpf form.
//!
//! `TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms)`, with further columns such as PATTERN where the
//! header names them. TIME is that of completion, in seconds since the first one printed; T is R or W, or the
//! kernel's rwbs letters; SECTOR counts 512 B on the whole disk; QUE is insert to issue and LAT issue to
//! complete. COMM may hold blanks. The layer is that of requests.
//!
//! The time of issue is TIME − LAT, and LAT is rounded to 10 µs: I/O issued closer together than that may come in
//! another order than they were issued in, which is noted. Each run of the tool starts its clock again; if a file has
//! several, each is placed after the end of the one before. Verified with the example output that ships with the tool.

use crate::batch::Event;
use crate::error::Error;
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::op::{Layer, parse_rwbs};
use crate::reader::{ReadOptions, Reader, Sniff};
use crate::source::{Clock, SourceInfo};
use crate::table::{CellFormat, Column, Header, Row};
use crate::text::{LineError, LineFormat, Sink, TextReader};
use crate::tool::{Tables, check_layer, sniff_below_prose};

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "bcc-biosnoop",
    title: "biosnoop of bcc and libbpf-tools",
    verified: true,
    unsorted: true,
    about: About {
        families: &[(Family::Linux, "biosnoop of bcc")],
        layer: "request",
        holds: Holds::Events {
            times: "completion less latency, to 10 µs",
            latency: "device, queue with `-Q`",
        },
        verified_by: "the example that ships with it",
        cannot_tell: "order of I/O issued within 10 µs",
        words: &[
            "TIME(s)", "COMM", "PID", "DISK", "T", "SECTOR", "BYTES", "QUE(ms)", "LAT(ms)",
            "PATTERN", " R ", " W ", " FWFSM ",
        ],
        real: &["bcc/biosnoop_example.txt"],
    },
    sniff,
    open,
};

const COLUMNS: &[Column] = &[
    ("TIME(s)", CellFormat::Decimal),
    ("COMM", CellFormat::Free),
    ("PID", CellFormat::Count),
    ("DISK", CellFormat::Word),
    ("T", CellFormat::Letters),
    ("SECTOR", CellFormat::Count),
    ("BYTES", CellFormat::Count),
    ("QUE(ms)", CellFormat::Decimal),
    ("LAT(ms)", CellFormat::Decimal),
];

const REQUIRED: &[&str] = &[
    "TIME(s)", "COMM", "PID", "DISK", "T", "SECTOR", "BYTES", "LAT(ms)",
];

/// Between the last completion of one run and the zero of the next, so that their I/O do not mingle.
const GAP_NS: i64 = 1_000_000_000;

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    sniff_below_prose(prefix, complete, |line| {
        Header::find(line, COLUMNS, REQUIRED).is_some()
    })
}

struct Biosnoop {
    tables: Tables,
    zero_ns: i64,
    last_ns: i64,
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    check_layer(&input.path, options, Some(Layer::Request))?;
    let mut info = SourceInfo {
        format: FORMAT.name,
        verified: FORMAT.verified,
        layers: vec![Layer::Request],
        clock: Clock::Start,
        ..SourceInfo::default()
    };
    info.note(
        "times of issue are those of completion less a latency rounded to 10 µs: \
         I/O issued closer together may be in another order",
    );
    let format = Biosnoop {
        tables: Tables::new(COLUMNS, REQUIRED),
        zero_ns: 0,
        last_ns: 0,
    };
    Ok(Box::new(TextReader::new(input, format, info)))
}

impl LineFormat for Biosnoop {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        if self.tables.header(line, &mut sink.info).is_some() {
            if self.tables.runs > 1 {
                self.zero_ns = self.last_ns.saturating_add(GAP_NS);
                sink.info.note(
                    "each run of the tool has a clock of its own; the runs are laid end to end",
                );
            }
            return Ok(());
        }
        let Some(row) = self.tables.row(line, &mut sink.info)? else {
            return Ok(());
        };
        self.row(line, &row, sink)
    }
}

impl Biosnoop {
    fn row(&mut self, line: &[u8], row: &Row<'_>, sink: &mut Sink) -> Result<(), LineError> {
        let (start_bytes, len_bytes) = row.extent("SECTOR", "BYTES")?;
        let device_ns = row.decimal("LAT(ms)", 6)?.filter(|&ns| ns >= 0);
        let device_ns = device_ns.ok_or_else(|| LineError::new(line, "a latency of 0 or more"))?;
        let queue_ns = row.decimal("QUE(ms)", 6)?;
        let too_late = LineError::new(line, "a time that fits into 63 bits of nanoseconds");
        let done_ns = row
            .decimal("TIME(s)", 9)?
            .and_then(|ns| ns.checked_add(self.zero_ns));
        let Some(done_ns) = done_ns.filter(|&ns| ns >= 0) else {
            return Err(too_late);
        };
        let device = sink.names.device(&String::from_utf8_lossy(
            row.get("DISK").unwrap_or_default(),
        ));
        let (op, flags) = parse_rwbs(row.get("T").unwrap_or_default(), len_bytes);
        // Both are not negative, so the difference fits.
        let time_ns = done_ns - device_ns;
        let mut event = Event::new(time_ns, device, Layer::Request, op, start_bytes, len_bytes);
        event.flags = flags;
        event.queue_ns = queue_ns.filter(|&ns| ns >= 0);
        event.device_ns = Some(device_ns);
        event.pid = row.pid();
        event.comm = sink.names.word(&String::from_utf8_lossy(row.free));
        self.last_ns = self.last_ns.max(done_ns);
        sink.push(&event);
        Ok(())
    }
}
