//! Flags of `plumb fleet`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use plumb_fleet::Shard;
use plumb_geometry::Grid;

use crate::history::span::parse_length;
use crate::moment::{now_ns, parse_local};

use super::record::duration;
use super::{ColorChoice, FailOn, distinct, grid};
use crate::fleet::engine::master;

/// Flags of `plumb fleet`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "A SOURCE is a folder or a file: traces of any known format, saved profiles, the exported windows of \
agents, and collections of plumb check --collect (names that end with .zst). The host of an input is the name behind \
host= in its path, else the first folder below SOURCE, else the name of the file. Names that begin with a dot or an underscore are \
passed over.\n\
Exit status: 0 clean or written, 1 findings, 2 usage, 3 unknown or read only in part, 4 not permitted, 5 failed."
)]
pub struct Fleet {
    /// The work
    #[command(subcommand)]
    pub command: FleetCommand,
}

/// The commands of `plumb fleet`.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Rank the disks of all hosts by wasted I/O and by lost time
    Report(FleetReport),
    /// Profile the recordings of many hosts into one file
    Profile(FleetProfile),
    /// Merge fleet files into one; a file that is given twice changes nothing
    Merge(FleetMerging),
    /// Write the residue rows of all devices as Parquet, for SQL
    Rows(FleetMerging),
}

/// Flags of every command that reads recordings.
#[derive(Debug, Args)]
pub struct FleetInput {
    /// Grid to judge by: GRANULARITY or GRANULARITY@OFFSET; may be given several times
    #[arg(long, value_name = "G[@O]", value_parser = grid)]
    pub grid: Vec<Grid>,
    /// Name and count the files that cannot be read, and go on without them
    #[arg(long)]
    pub skip_bad: bool,
}

impl FleetInput {
    /// The grids to judge by.
    #[must_use]
    pub fn grids(&self) -> Vec<Grid> {
        distinct(&self.grid)
    }
}

/// Flags of `plumb fleet report`.
#[derive(Debug, Args)]
pub struct FleetReport {
    /// Folders and files with recordings and collections, or fleet files and collections
    #[arg(required = true, value_name = "SOURCE")]
    pub sources: Vec<PathBuf>,
    #[command(flatten)]
    pub input: FleetInput,
    /// Keep the profiles in this fleet file, and read only inputs that it does not have yet
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Let a Spark cluster read the sources: spark://HOST:PORT, yarn or k8s://https://HOST:PORT
    ///
    /// spark-submit of SPARK_HOME or PATH submits the job, with this program for the executors. Each SOURCE is at the same path on all hosts.
    #[arg(long, value_name = "MASTER", value_parser = master, conflicts_with = "state")]
    pub engine: Option<String>,
    /// Attributes of hosts, such as image, rack, model or kernel: CSV, JSON or collections
    ///
    /// Plumb searches groups of findings among them, and among parts of paths such as image=web-3/. CSV and JSON have a field `host`; with a
    /// field `device` the others are about that device. Collections are made by plumb check --collect. A folder stands for its files; may
    /// be given several times.
    #[arg(long, value_name = "FILE")]
    pub inventory: Vec<PathBuf>,
    /// Write the plan of each host in a group into this folder, for plumb fix plan
    ///
    /// Only hosts with a collection among the inputs, and proven remedies for the cause of the group. A file that is there is never
    /// overwritten.
    #[arg(long, value_name = "FOLDER")]
    pub plans: Option<PathBuf>,
    /// Show the changes since an earlier fleet file, or since a time: 7d, 2026-11-23
    ///
    /// With a time, recordings whose newest I/O are older are compared with the others, and count for nothing else. SOURCE has to be
    /// recordings then: the sums of a fleet file have no dates. For a file with such a name write ./7d.
    #[arg(long, value_name = "FILE|TIME", value_parser = since)]
    pub since: Option<FleetSince>,
    /// Age of the newest I/O of a host, against those of the fleet, from which the host has stopped reporting
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "36h")]
    pub silent_after: Duration,
    /// Entries of each ranking and list
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
    /// Print another format instead of text
    #[arg(
        long = "as",
        value_name = "FORMAT",
        value_enum,
        conflicts_with = "json"
    )]
    pub format: Option<FleetExport>,
    /// Write a page in one file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Severity from which the exit status is 1
    #[arg(long, value_name = "SEVERITY", default_value = "none")]
    pub fail_on: FailOn,
    /// When to colour
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
}

/// A format of the report beside text and JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FleetExport {
    /// A line for each device of each group, with its command
    Csv,
    /// Metrics
    Openmetrics,
}

/// The state that a report is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetSince {
    /// That of an earlier fleet file.
    File(PathBuf),
    /// That of the recordings before a time, ns since 1970.
    Time(i64),
}

impl FleetSince {
    /// The file, if it is one.
    #[must_use]
    pub fn file(&self) -> Option<&PathBuf> {
        match self {
            FleetSince::File(path) => Some(path),
            FleetSince::Time(_) => None,
        }
    }
}

/// A time is a date or an age with a unit; all other words are files.
fn since(text: &str) -> Result<FleetSince, String> {
    if let Some(time) = parse_local(text) {
        return Ok(FleetSince::Time(time));
    }
    let age = parse_length(text).filter(|_| text.ends_with(|end: char| end.is_ascii_lowercase()));
    let time = age.and_then(|age| now_ns()?.checked_sub(age));
    Ok(match time.filter(|time| *time >= 0) {
        Some(time) => FleetSince::Time(time),
        None => FleetSince::File(text.into()),
    })
}

/// Flags of `plumb fleet profile`.
#[derive(Debug, Args)]
pub struct FleetProfile {
    /// Folders and files with recordings
    #[arg(required = true, value_name = "SOURCE")]
    pub sources: Vec<PathBuf>,
    /// Only the inputs of this shard: I/N, I from 0. All shards need the same SOURCE and grids
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    #[command(flatten)]
    pub input: FleetInput,
    /// File for the profiles, in the place of a file that has the name
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Flags of `plumb fleet merge` and `plumb fleet rows`.
#[derive(Debug, Args)]
pub struct FleetMerging {
    /// Files of `plumb fleet profile` or `plumb fleet merge`, or folders with such files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// File for the result, in the place of a file that has the name
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}
