//! Flags of `plumb record`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use plumb_geometry::parse_size;
use plumb_trace::Op;

use super::watch::LayerChoice;
use super::{FailOn, op, whole};
use crate::moment::{LONGEST, parse_duration};

/// Flags of `plumb record`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Sizes: bare numbers are bytes; k, m, g, t are powers of 1024. Durations: bare numbers are \
seconds; ms, s, m, h.\n\
Ctrl-C ends the recording. The file can be read at any time, by every program that reads Parquet; when the recording \
is killed it lacks the last 2 seconds, or the last 32nd of more than a minute.\n\
Without --max-size the recording ends when its file has taken a quarter of the space that was free at its start.\n\
The report names disks that fail I/O, leave them waiting or receive more than they can serve. `plumb analyze FILE` judges the \
places and sizes of the I/O. With --op or --pid the report does not find a disk that completes nothing.\n\
Exit status: 0 all recorded, 1 a disk fails, stalls or is saturated, 2 usage, 3 some I/O were lost, 4 not permitted (needs CAP_BPF and CAP_PERFMON), 5 failed."
)]
pub struct Record {
    /// Disks, by name or path; all of them when none is given
    #[arg(value_name = "DEVICE")]
    pub devices: Vec<String>,

    /// File to write, a name that is free; only you can read it: FILE.parquet
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// End after this time; without it, at Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Size that a file does not exceed: the recording ends there, or goes on in another file with --files
    #[arg(long, value_name = "SIZE", value_parser = file_size)]
    pub max_size: Option<u64>,
    /// Keep at most N files, FILE-0001.parquet and on: the oldest is deleted for a new one
    #[arg(long, value_name = "N", requires = "max_size", value_parser = clap::value_parser!(u32).range(1..=9999))]
    pub files: Option<u32>,
    /// Room for I/O that completed and are not taken up yet: a power of two
    #[arg(long, value_name = "SIZE", default_value = "16m", value_parser = buffer)]
    pub buffer: u32,

    /// Layer at which disks are recorded
    #[arg(
        long,
        value_name = "LAYER",
        default_value = "auto",
        help_heading = "I/O selection"
    )]
    pub layer: LayerChoice,
    /// Only these operations: read, write, discard, flush, write-zeroes, other, or their letters
    #[arg(long, value_name = "OP", value_delimiter = ',', value_parser = op, help_heading = "I/O selection")]
    pub op: Vec<Op>,
    /// Only I/O of these processes, by number; at most 16
    #[arg(long, value_name = "PID", value_delimiter = ',', help_heading = "I/O selection", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Vec<u32>,

    /// Print one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Severity from which the exit status is 1
    #[arg(
        long,
        value_name = "SEVERITY",
        default_value = "warning",
        help_heading = "Output"
    )]
    pub fail_on: FailOn,
}

/// A file holds some 50,000 I/O in this.
const FILE_BYTES_MIN: u64 = 1 << 20;
/// A page, and more memory than the kernel gives to a ring buffer anyway.
const BUFFER_BYTES: std::ops::RangeInclusive<u64> = 4096..=1 << 30;

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text)
        .and_then(|ns| u64::try_from(ns).ok())
        .map(Duration::from_nanos);
    let expected =
        "expected a time above 0 and up to 8760h, a year (bare numbers are seconds; ms, s, m, h)";
    let time = time.filter(|time| !time.is_zero() && *time <= LONGEST);
    time.ok_or_else(|| format!("found `{text}`, {expected}"))
}

fn file_size(text: &str) -> Result<u64, String> {
    let size = parse_size(text).map_err(|error| whole(&error))?.0;
    if size >= FILE_BYTES_MIN {
        Ok(size)
    } else {
        Err(format!("found `{text}`, expected 1m or more"))
    }
}

fn buffer(text: &str) -> Result<u32, String> {
    let size = parse_size(text).map_err(|error| whole(&error))?.0;
    let fits = size.is_power_of_two() && BUFFER_BYTES.contains(&size);
    let size = u32::try_from(size).ok().filter(|_| fits);
    size.ok_or_else(|| format!("found `{text}`, expected a power of two from 4k to 1g"))
}
