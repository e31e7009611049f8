//! Flags of `plumb watch`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use plumb_capture::Layers;
use plumb_geometry::Grid;
use plumb_trace::Op;

use super::{ColorChoice, FailOn, distinct, grid, op};
use crate::moment::{LONGEST, parse_duration};

/// Flags of `plumb watch`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Sizes: bare numbers are bytes; k, m, g, t are powers of 1024; s is 512 bytes. Durations: bare \
numbers are seconds; ms, s, m, h.\n\
Threads are the distinct ones that sent I/O in the interval.\n\
Pages that a worker of the kernel writes back count for the process that made them dirty, also with --pid, --comm and --cgroup. \
Command lines are printed as ps prints them.\n\
Disks that pass their I/O on (md, dm) are shown beside the disks below; do not add up their figures.\n\
When the watch begins, it drops all capabilities and, under sudo, returns to the user that called it, unless only root may \
write to the folder of --save.\n\
With --plain, or without a terminal, Plumb prints the verdict on the time so far above each interval.\n\
Ctrl-C ends with the totals.\n\
Exit status: 0 clean, 1 findings, 2 usage, 3 unknown, 4 not permitted (needs CAP_BPF and CAP_PERFMON), 5 failed."
)]
pub struct Watch {
    /// Disks, by name or path; all of them when none is given
    #[arg(value_name = "DEVICE")]
    pub devices: Vec<String>,

    /// Play a recording (any trace that `plumb analyze` reads) instead of watching this host, on a terminal in its own time; or the windows
    /// of a history (history:DEVICE@FROM..TO), on a terminal one a second; a longer --interval joins windows
    #[arg(long, value_name = "FILE", conflicts_with_all = ["app", "sync", "cgroup", "layer"])]
    pub from: Option<PathBuf>,
    /// Folder of the history for history:DEVICE@SPAN (default: state_dir of /etc/plumb/agent.toml, else /var/lib/plumb-agent)
    #[arg(long, value_name = "DIR", requires = "from")]
    pub state_dir: Option<PathBuf>,
    /// Play a recording N times as fast as it was recorded, or N windows of a history a second: 0.01 to 1000000
    #[arg(long, value_name = "N", default_value = "1", requires = "from", value_parser = speed)]
    pub speed: f64,
    /// Interval length
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = interval)]
    pub interval: Duration,
    /// Stop after N intervals (default: until Ctrl-C)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Grid to judge by: GRANULARITY or GRANULARITY@OFFSET; may be given several times
    #[arg(long, value_name = "G[@O]", value_parser = grid)]
    pub grid: Vec<Grid>,

    /// Layer at which disks are watched
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
    /// Only I/O of this process
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), help_heading = "I/O selection")]
    pub pid: Option<u32>,
    /// Only I/O of threads with this command name, as in /proc/PID/comm
    #[arg(long, value_name = "NAME", value_parser = comm, help_heading = "I/O selection")]
    pub comm: Option<String>,
    /// Only I/O of a cgroup of version 2 and those below it: its directory
    #[arg(long, value_name = "DIR", help_heading = "I/O selection")]
    pub cgroup: Option<PathBuf>,
    /// Watch I/O of processes to file systems too, and compare it with the bytes at the device; costs time in each system
    /// call, and keeps its privileges to the end, to see files that others have mapped
    #[arg(long, help_heading = "Applications", conflicts_with_all = ["layer", "op", "pid", "comm", "cgroup"])]
    pub app: bool,
    /// Write out the cache of the file systems when the watch begins and ends, so that bytes written can be compared
    #[arg(long, requires = "app", help_heading = "Applications")]
    pub sync: bool,

    /// Print each interval instead of the full-screen view, also on a terminal
    #[arg(long, help_heading = "Output")]
    pub plain: bool,
    /// Print a JSON document a line for each interval instead of text; the last has the findings of the whole time
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Save the profile of the whole time, in the place of a file that has the name: `plumb analyze` reads it
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

/// At which layer a disk is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LayerChoice {
    /// Requests, and bios of disks that make none (md, dm, zram)
    #[default]
    Auto,
    /// Requests, as the driver of a disk receives them
    Request,
    /// Bios, as a disk receives them, before they are merged and split
    Bio,
}

impl From<LayerChoice> for Layers {
    fn from(choice: LayerChoice) -> Layers {
        match choice {
            LayerChoice::Auto => Layers::Auto,
            LayerChoice::Request => Layers::Request,
            LayerChoice::Bio => Layers::Bio,
        }
    }
}

fn comm(text: &str) -> Result<String, String> {
    match text.len() {
        0 => Err("found nothing, expected a command".to_owned()),
        1..=15 => Ok(text.to_owned()),
        long => Err(format!(
            "found {long} bytes, and the kernel keeps 15 of a command: expected these"
        )),
    }
}

impl Watch {
    /// The grids to judge by.
    #[must_use]
    pub fn grids(&self) -> Vec<Grid> {
        distinct(&self.grid)
    }
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if (0.01..=1e6).contains(&speed) => Ok(speed),
        _ => Err(format!(
            "found `{text}`, expected a number from 0.01 to 1000000"
        )),
    }
}

/// Shorter intervals than this cost more than they tell.
pub const INTERVAL_MIN: Duration = Duration::from_millis(100);

fn interval(text: &str) -> Result<Duration, String> {
    let expected =
        "expected a time from 100ms to 8760h, a year (bare numbers are seconds; ms, s, m, h)";
    let ns = parse_duration(text).and_then(|ns| u64::try_from(ns).ok());
    match ns.map(Duration::from_nanos) {
        Some(interval) if (INTERVAL_MIN..=LONGEST).contains(&interval) => Ok(interval),
        _ => Err(format!("found `{text}`, {expected}")),
    }
}
