//! The output of biosnoop.bt of bpftrace: `TIME(ms) DISK COMM PID LAT(ms)`.
//!
//! TIME is that of completion since the program's start, LAT the time from insert of the request to its completion,
//! both cut to whole ms. It has neither operation nor sector nor length, so no I/O can be made of it: it gives one
//! histogram of latency for each disk, a bucket for each ms that occurs, and has no positions and lengths of I/O. The
//! layer is that of requests. Verified with the example output that ships with the tool.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::op::Layer;
use crate::reader::{Bucket, Distribution, Fill, Measured, ReadOptions, Reader, Sniff};
use crate::source::{Clock, SourceInfo};
use crate::table::{CellFormat, Column, Header};
use crate::text::{LineError, LineFormat, Sink, TextReader};
use crate::tool::{Tables, check_layer, sniff_below_prose};

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "bpftrace-biosnoop",
    title: "biosnoop.bt",
    verified: true,
    unsorted: false,
    about: About {
        families: &[(Family::Linux, "biosnoop.bt of bpftrace")],
        layer: "request",
        holds: Holds::Counts("one histogram of latency a disk, to 1 ms"),
        verified_by: "the example that ships with it",
        cannot_tell: "starts, lengths, operations",
        words: &["TIME(ms)", "DISK", "COMM", "PID", "LAT(ms)"],
        real: &["bpftrace/biosnoop_example.txt"],
    },
    sniff,
    open,
};

const COLUMNS: &[Column] = &[
    ("TIME(ms)", CellFormat::Count),
    ("DISK", CellFormat::Word),
    ("COMM", CellFormat::Free),
    ("PID", CellFormat::Count),
    ("LAT(ms)", CellFormat::Count),
];

const REQUIRED: &[&str] = &["TIME(ms)", "DISK", "COMM", "PID", "LAT(ms)"];

const NS_PER_MS: i64 = 1_000_000;

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    sniff_below_prose(prefix, complete, |line| {
        Header::find(line, COLUMNS, REQUIRED).is_some()
    })
}

struct Biosnoop {
    tables: Tables,
    disks: BTreeMap<String, BTreeMap<i64, u64>>,
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    check_layer(&input.path, options, Some(Layer::Request))?;
    let mut info = SourceInfo {
        format: FORMAT.name,
        verified: FORMAT.verified,
        layers: vec![Layer::Request],
        clock: Clock::Start,
        cannot_tell: vec![
            "start alignment",
            "length",
            "operation",
            "streams",
            "latency by fit",
        ],
        ..SourceInfo::default()
    };
    info.note("latencies count from the insert of a request, so they hold its time in the queue");
    let format = Biosnoop {
        tables: Tables::new(COLUMNS, REQUIRED),
        disks: BTreeMap::new(),
    };
    Ok(Box::new(TextReader::new(input, format, info)))
}

impl LineFormat for Biosnoop {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        if self.tables.header(line, &mut sink.info).is_some() {
            return Ok(());
        }
        let Some(row) = self.tables.row(line, &mut sink.info)? else {
            return Ok(());
        };
        let expected = "a latency in ms that fits into 63 bits of nanoseconds";
        let low_ns = row
            .decimal("LAT(ms)", 6)?
            .filter(|&ns| ns.checked_add(NS_PER_MS).is_some());
        let low_ns = low_ns.ok_or_else(|| LineError::new(line, expected))?;
        let disk = String::from_utf8_lossy(row.get("DISK").unwrap_or_default()).into_owned();
        *self
            .disks
            .entry(disk)
            .or_default()
            .entry(low_ns)
            .or_default() += 1;
        Ok(())
    }

    fn end(&mut self, sink: &mut Sink) {
        for (subject, latencies) in std::mem::take(&mut self.disks) {
            let bucket = |(low, ios)| Bucket {
                low: Some(low),
                high: Some(low + (NS_PER_MS - 1)),
                ios,
            };
            sink.extras.push_back(Fill::Distribution(Distribution {
                subject,
                measured: Measured::DeviceNs,
                op: None,
                buckets: latencies.into_iter().map(bucket).collect(),
                min_max_mean: None,
                interval: None,
                bytes: None,
            }));
        }
    }
}
