//! The command line. Help, manual pages and completions are made from here and from nowhere else.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, FromArgMatches, Parser, Subcommand, ValueEnum};
use plumb_diagnose::Severity;
use plumb_geometry::{Bytes, Grid, GridKind, parse_grid, parse_range, parse_shift};
use plumb_model::rule::RULES;
use plumb_report::text::Detail;
use plumb_trace::{Layer, Op};

use crate::moment::Moment;

mod accepting;
mod bench;
mod beneath;
mod check;
mod compare;
mod diagnose;
pub mod fix;
mod fleet;
mod history;
pub mod lines;
pub mod manual;
pub mod plan;
mod probe;
mod record;
mod replay;
mod serve;
mod watch;

pub use accepting::Accepting;
pub use bench::{Bench, Study};
pub use beneath::Beneath;
pub use check::{Check, Export, HostedName, Join};
pub use compare::{Compare, DevicePair};
pub use diagnose::Diagnose;
pub use fleet::{
    Fleet, FleetCommand, FleetExport, FleetMerging, FleetProfile, FleetReport, FleetSince,
};
pub use history::{
    Agent, AgentStore, ExportForm, FLEET_TIERS, History, HistoryBackup, HistoryCommand,
    HistoryDump, HistoryExport, HistoryFilter, HistoryImport, HistoryPrune, HistorySpan, STATE_DIR,
    StateDir,
};
pub use probe::Probe;
pub use record::Record;
pub use replay::Replay;
pub use serve::Serve;
pub use watch::{INTERVAL_MIN, LayerChoice, Watch};

/// Finds I/O that does not fit the storage below it, and measures the cost.
#[derive(Debug, Parser)]
#[command(
    name = "plumb",
    version,
    propagate_version = true,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// The command to run
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find storage problems: check every layer, watch I/O, recommend fixes
    Diagnose(Box<Diagnose>),
    /// Analyze traces of any known format for misaligned and split I/O
    Analyze(Box<Analyze>),
    /// Check the alignment of every storage layer (read-only)
    Check(Box<Check>),
    /// Compare measurements before and after a change, with a verdict
    Compare(Box<Compare>),
    /// Write a trace in another format
    Convert(Convert),
    /// Record every I/O of the disks to a file, with sender and latency
    Record(Box<Record>),
    /// Show the I/O of the disks live: misalignment, latency, senders
    Watch(Box<Watch>),
    /// Count the I/O of all disks all the time, into a history
    Agent(Agent),
    /// Print, check or copy the history of the disks
    History(History),
    /// Serve a history over HTTP (read-only)
    Serve(Serve),
    /// Profile and rank the disks of many hosts
    Fleet(Fleet),
    /// Measure the block grid of a device and the cost of misaligned I/O
    Probe(Box<Probe>),
    /// Load devices or files and measure their speed
    Bench(Box<Bench>),
    /// Send the I/O of a trace again, as it was or as a plan places it
    Replay(Box<Replay>),
    /// Compute a layout: starts, sizes, and the commands that make it
    Plan(plan::Plan),
    /// Repair labels, and move partitions with their data, crash-safely
    Fix(fix::Fix),
    /// Print the help of a command, with all options and examples
    Help(HelpOf),
    /// Explain a finding: its meaning, its cost, and its fix
    Explain(Explain),
    /// Print the version; --verbose also prints commit and protections
    Version(Version),
    /// Write manual pages, shell completions and other generated files
    #[command(hide = true)]
    Generate(Generate),
}

/// Reads a command line.
///
/// Only help shows the texts of the manual, and to make them takes longer than to parse: a command line without a mistake is
/// parsed without them.
///
/// # Errors
/// When the words are no command line, or ask for help or the version.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let words: Vec<OsString> = words.into_iter().collect();
    match Cli::try_parse_from(&words) {
        Err(error) if error.kind() != ErrorKind::DisplayVersion => manual::command()
            .try_get_matches_from(words)
            .and_then(|matches| Cli::from_arg_matches(&matches)),
        parsed => parsed,
    }
}

/// Whether a command line that has a mistake asks for the line of a plugin.
pub fn asks_for_plugin_line(words: impl IntoIterator<Item = OsString>) -> bool {
    let mut is_value = false;
    for word in words {
        if word == "--" {
            return false;
        }
        if word == "--as=nagios" || is_value && word == "nagios" {
            return true;
        }
        is_value = word == "--as";
    }
    false
}

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// From which severity on findings make the command fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Any finding
    Note,
    /// Warnings and worse
    #[default]
    Warning,
    /// Only critical ones
    Critical,
    /// Never
    None,
}

impl FailOn {
    /// The lowest severity that makes the command fail.
    #[must_use]
    pub fn lowest(self) -> Option<Severity> {
        match self {
            FailOn::Note => Some(Severity::Note),
            FailOn::Warning => Some(Severity::Warning),
            FailOn::Critical => Some(Severity::Critical),
            FailOn::None => None,
        }
    }

    /// Whether a finding of this severity makes the command fail.
    #[must_use]
    pub fn covers(self, severity: Severity) -> bool {
        self.lowest().is_some_and(|lowest| severity >= lowest)
    }
}

/// How much a report prints.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Verbosity {
    /// Print the evidence of each finding, the I/O and the stack; -vv prints everything
    #[arg(short, long, action = clap::ArgAction::Count, conflicts_with = "json", help_heading = "Output")]
    verbose: u8,
}

impl Verbosity {
    /// The detail of the report.
    #[must_use]
    pub fn detail(self) -> Detail {
        match self.verbose {
            0 => Detail::Brief,
            1 => Detail::Evidence,
            _ => Detail::All,
        }
    }
}

/// Flags of `plumb explain`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Example: plumb explain misaligned-partition\nExit status: 0 printed, 2 usage, 5 failed."
)]
pub struct Explain {
    /// Name of the finding, as reports print it; without a name, list all findings
    #[arg(value_name = "FINDING", value_parser = clap::builder::PossibleValuesParser::new(RULES.iter().map(|rule| rule.name)))]
    pub finding: Option<String>,
}

/// Flags of `plumb help`.
#[derive(Debug, Args)]
pub struct HelpOf {
    /// The command, for instance check, or fix move
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Flags of `plumb version`.
#[derive(Debug, Default, Args)]
pub struct Version {
    /// Also print commit, target, features and the protections that this kernel enforces
    #[arg(long, short)]
    pub verbose: bool,
}

/// Flags of `plumb analyze`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Sizes: bare numbers are bytes; k, m, g, t are powers of 1024; s is 512 bytes.\n\
Exit status: 0 clean, 1 findings, 2 usage, 3 unknown or read only in part, 4 not permitted, 5 failed."
)]
pub struct Analyze {
    /// Traces, saved profiles, a directory of blktrace files, history:DEVICE@SPAN, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Take devices of equal names in several files for one device (default: only in pieces of one recording, which have one clock
    /// and times that follow each other)
    #[arg(long)]
    pub together: bool,
    /// Folder of the history for history:DEVICE@SPAN (default: state_dir of /etc/plumb/agent.toml, else /var/lib/plumb-agent)
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,

    /// Grid to judge by: GRANULARITY or GRANULARITY@OFFSET; may be given several times
    #[arg(long, value_name = "G[@O]", value_parser = grid, help_heading = "Storage below")]
    pub grid: Vec<Grid>,
    /// Chunk of a stripe: shows the I/O that it splits
    #[arg(long, value_name = "SIZE[@O]", value_parser = boundary, help_heading = "Storage below")]
    pub chunk: Option<Grid>,
    /// Members of that stripe: shows the load of each
    #[arg(long, value_name = "N", requires = "chunk", value_parser = clap::value_parser!(u32).range(2..=4096), help_heading = "Storage below")]
    pub members: Option<u32>,
    /// Record of a file system: shows the bytes that requests of another size move
    #[arg(long, value_name = "SIZE[@O]", value_parser = grid, help_heading = "Storage below")]
    pub record: Option<Grid>,
    /// Move every start: shows the fit if the partition began elsewhere, for instance +1s
    #[arg(long, value_name = "±SIZE", value_parser = shift, allow_hyphen_values = true, help_heading = "Storage below")]
    pub shift: Option<i64>,

    #[command(flatten)]
    pub select: Selection,

    /// Print one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Write a page with pictures, in the place of a file that has the name
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Save the profile, in the place of a file that has the name: a small file that answers the same questions later
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub save: Option<PathBuf>,
    /// Severity from which the exit status is 1
    #[arg(
        long,
        value_name = "SEVERITY",
        default_value = "warning",
        help_heading = "Output"
    )]
    pub fail_on: FailOn,
    /// When to colour
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Output"
    )]
    pub color: ColorChoice,
}

impl Analyze {
    /// The grids to judge by.
    #[must_use]
    pub fn grids(&self) -> Vec<Grid> {
        distinct(&self.grid)
    }
}

/// Each grid once, in the order given: one that is given twice shows nothing twice.
fn distinct(grids: &[Grid]) -> Vec<Grid> {
    let mut distinct: Vec<Grid> = Vec::new();
    for grid in grids {
        if !distinct.contains(grid) {
            distinct.push(*grid);
        }
    }
    distinct
}

/// Selects I/O of a trace.
#[derive(Clone, Debug, Default, Args)]
pub struct Selection {
    /// Only this device, as the trace names it; may be given several times
    #[arg(long, value_name = "NAME", help_heading = "I/O selection")]
    pub device: Vec<String>,
    /// Only these operations: read, write, discard, flush, write-zeroes, other, or their letters
    #[arg(long, value_name = "OP", value_delimiter = ',', value_parser = op, help_heading = "I/O selection")]
    pub op: Vec<Op>,
    /// Only this partition, by number, where the trace reveals partitions
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "range",
        help_heading = "I/O selection"
    )]
    pub partition: Option<u32>,
    /// Only I/O that start in this part of the device, the end excluded: 1m-5g
    #[arg(long, value_name = "A-B", value_parser = range, help_heading = "I/O selection")]
    pub range: Option<(Bytes, Bytes)>,
    /// Layer: vfs, bio or request; when not given the lowest present, but all of them where Parquet is written
    #[arg(long, value_name = "LAYER", value_parser = layer, help_heading = "I/O selection")]
    pub layer: Option<Layer>,
    /// Only from this time on: 90s, 5m since the first I/O, or a UTC time
    #[arg(long, value_name = "TIME", value_parser = Moment::parse, help_heading = "I/O selection")]
    pub since: Option<Moment>,
    /// Only before this time
    #[arg(long, value_name = "TIME", value_parser = Moment::parse, help_heading = "I/O selection")]
    pub until: Option<Moment>,
    /// Format of the traces, if their contents do not show it
    #[arg(long, value_name = "NAME", help_heading = "I/O selection")]
    pub format: Option<String>,
}

/// Flags of `plumb convert`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Exit status: 0 written, 2 usage, 3 the trace was read only in part, 4 not permitted, 5 failed."
)]
pub struct Convert {
    /// Trace to read, or - for standard input
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// File to write, or - for standard output; its ending names the format: .parquet, .iolog, .csv
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
    /// Format to write, for any ending: parquet, fio-iolog, msr-csv
    #[arg(long, value_name = "NAME")]
    pub to: Option<String>,
    #[command(flatten)]
    pub select: Selection,
}

/// Flags of the hidden command that writes manual pages, completions and, in the source tree, other generated files.
#[derive(Debug, Args)]
pub struct Generate {
    /// Directory for manual pages and completions
    #[arg(required_unless_present = "repository", conflicts_with = "repository")]
    pub directory: Option<PathBuf>,
    /// Source tree: write every generated file of it
    #[arg(long, value_name = "ROOT")]
    pub repository: Option<PathBuf>,
    /// Write nothing; fail if a file is not fresh
    #[arg(long, requires = "repository")]
    pub check: bool,
}

/// An error with its causes, in one line.
fn whole(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        words.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    words
}

fn grid(text: &str) -> Result<Grid, String> {
    parse_grid(text).map_err(|error| whole(&error))
}

fn boundary(text: &str) -> Result<Grid, String> {
    let grid = grid(text)?;
    Grid::new(grid.granularity(), grid.offset(), GridKind::Boundary).map_err(|error| whole(&error))
}

fn shift(text: &str) -> Result<i64, String> {
    parse_shift(text).map_err(|error| whole(&error))
}

fn range(text: &str) -> Result<(Bytes, Bytes), String> {
    parse_range(text).map_err(|error| whole(&error))
}

fn op(text: &str) -> Result<Op, String> {
    let letter = match text.as_bytes() {
        [letter] => Op::from_letter(*letter),
        _ => None,
    };
    letter.or_else(|| Op::from_word(text)).ok_or_else(|| {
        format!(
            "found `{text}`, expected read, write, discard, flush, write-zeroes, other or one of R W D F Z O"
        )
    })
}

fn layer(text: &str) -> Result<Layer, String> {
    Layer::from_word(text).ok_or_else(|| format!("found `{text}`, expected vfs, bio or request"))
}
