//! Flags of `plumb agent` and `plumb history`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use plumb_history::Tier;

use super::record::duration;

/// The folder of a host's history.
pub const STATE_DIR: &str = "/var/lib/plumb-agent";

/// Tiers that an export for a fleet has by default: windows of 5 minutes take seven times the room of the others.
pub const FLEET_TIERS: [Tier; 2] = [Tier::Hour, Tier::Day];

/// Flags of `plumb agent`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "The agent counts the I/O of all disks and stores them: 5 minutes by 5 minutes for two days, by hour for five weeks, by \
day for two years, in at most 2 GiB. It runs in the foreground; SIGTERM or Ctrl-C ends it in good order, and a kill loses at most \
60 s. One agent writes to a folder.\n\
SIGHUP makes it read its configuration again (on a terminal it ends the agent). Packages contain units for systemd, not enabled: \
systemctl enable --now plumb-agent. The agent starts the timer of plumb-survey, a daily check of the layout, and its path, which starts the \
check when disks or partitions have changed.\n\
With record_p99 or record_misfit in the configuration it records every I/O of a device that crosses this line, for a minute.\n\
Durations: bare numbers are seconds; ms, s, m, h.\n\
Exit status: 0 ended in good order, 2 usage, 4 not permitted (needs CAP_BPF and CAP_PERFMON), 5 failed."
)]
pub struct Agent {
    /// Folder of the history (default: /var/lib/plumb-agent); it is made if it is missing
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Time between two readings of the counts: 1s to 60s (default: 10s)
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub interval: Option<Duration>,
    /// End after this time; without it, at SIGTERM or Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Read the configuration from this file (default: /etc/plumb/agent.toml if it is there); flags override it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Check the configuration and print it; it starts nothing
    #[arg(long)]
    pub check_config: bool,
}

/// Flags of `plumb history`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "A span is DEVICE@FROM..TO: times are those of this host's time zone (2026-11-01, 2026-11-01T08:00), or have a zone \
(2026-11-01T08:00Z, 2026-11-01T08:00+01:00); an absent one is the beginning or the end of the history, and the end is excluded. DEVICE@2h is \
the last two hours. Whole windows are read: a span is widened to them, and the \
output shows the time that it has.\n\
Windows of 10 s of the last hour are in the memory of the agent alone: ask it for /api/v1/glance?device=DEVICE&tier=10s.\n\
Give a span as history:DEVICE@FROM..TO to plumb analyze, plumb compare and plumb watch --from.\n\
Exit status: 0 printed or written, 1 a change that is a warning, 2 usage, 3 damaged, incomplete or unknown, 4 not permitted, 5 failed."
)]
pub struct History {
    /// The question, or the work
    #[command(subcommand)]
    pub command: HistoryCommand,
}

/// The commands of `plumb history`.
#[derive(Debug, Subcommand)]
pub enum HistoryCommand {
    /// List the devices, and the time that the history of each covers
    List(HistoryStore),
    /// Print the I/O of a device over time: rate, misfit, latency
    Show(HistorySpan),
    /// Print the processes that sent the I/O of a device, with their units, pods or VMs
    Senders(HistorySpan),
    /// Print the findings of the agent: when each appeared, changed and went
    Findings(HistoryFilter),
    /// Search for changes: a misfit that rose, a latency that grew, other sizes
    Changes(HistoryFilter),
    /// Print the totals of each window for other programs
    Export(HistoryExport),
    /// Add saved profiles, for instance those of `plumb watch --save`, or RRDs of io-profiler
    Import(HistoryImport),
    /// Write the profiles of a time to one file, to analyze or send them
    Dump(HistoryDump),
    /// Copy the history to another folder while the agent runs
    Backup(HistoryBackup),
    /// Delete windows that are older than a time; the agent must not run
    Prune(HistoryPrune),
    /// Read all records and check them
    Verify(HistoryCare),
    /// Print the size of the history, and the time that it will cover
    Estimate(HistoryCare),
}

/// The folder of a history.
#[derive(Debug, Args)]
pub struct StateDir {
    /// Folder of the history (default: state_dir of /etc/plumb/agent.toml, else /var/lib/plumb-agent)
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

/// The history of an agent, and its bounds.
#[derive(Debug, Args)]
pub struct AgentStore {
    /// Folder of the history (default: state_dir of the configuration, else /var/lib/plumb-agent)
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Configuration of the agent with the bounds of the history (default: /etc/plumb/agent.toml if it is there)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// The history to check.
#[derive(Debug, Args)]
pub struct HistoryCare {
    #[command(flatten)]
    pub store: AgentStore,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

/// The history to read.
#[derive(Debug, Args)]
pub struct HistoryStore {
    #[command(flatten)]
    pub folder: StateDir,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

/// A device and a time.
#[derive(Debug, Args)]
pub struct HistorySpan {
    /// Device and time: sda, sda@2h, sda@2026-11-01..2026-11-08
    #[arg(value_name = "DEVICE[@SPAN]")]
    pub span: String,
    #[command(flatten)]
    pub store: HistoryStore,
}

/// All devices, or one and a time.
#[derive(Debug, Args)]
pub struct HistoryFilter {
    /// Only this device and time: sda, sda@2h, sda@2026-11-01..2026-11-08
    #[arg(value_name = "DEVICE[@SPAN]")]
    pub span: Option<String>,
    #[command(flatten)]
    pub store: HistoryStore,
}

/// Flags of `plumb history export`.
#[derive(Debug, Args)]
pub struct HistoryExport {
    /// Devices and times: sda, sda@2h, sda@2026-11-01..2026-11-08
    #[arg(value_name = "DEVICE[@SPAN]", required_unless_present_any = ["last", "fleet"])]
    pub spans: Vec<String>,
    /// The last TIME of all devices: 15m, 2h, 7d
    #[arg(long, value_name = "TIME", conflicts_with = "spans")]
    pub last: Option<String>,
    /// Folder for objects that `plumb fleet` reads: each day of all devices that is over; known objects stay as they are
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["spans", "output", "form"])]
    pub fleet: Option<PathBuf>,
    /// Windows for --fleet: 5m, 1h or 1d; may be given several times (default: 1h and 1d)
    #[arg(long, value_name = "TIER", requires = "fleet", value_parser = tier)]
    pub tier: Vec<Tier>,
    /// Form of the output
    #[arg(long = "as", value_name = "FORM", default_value = "csv")]
    pub form: ExportForm,
    /// File for the output (default: standard output; Parquet needs a file, or - for standard output)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub folder: StateDir,
}

impl HistoryExport {
    /// The tiers for a fleet.
    #[must_use]
    pub fn tiers(&self) -> Vec<Tier> {
        match self.tier.is_empty() {
            true => FLEET_TIERS.to_vec(),
            false => self.tier.clone(),
        }
    }
}

/// Forms of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportForm {
    /// Comma-separated values, a line for each window
    Csv,
    /// One JSON document
    Json,
    /// Parquet, a row for each window
    Parquet,
}

/// Flags of `plumb history import`.
#[derive(Debug, Args)]
pub struct HistoryImport {
    /// Saved profiles with the time of day, or RRDs of io-profiler as `rrdtool dump` prints them
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// WWN, UUID or serial number of the device (default: that of the device with the name of the profile at its time, else the name)
    #[arg(long = "as", value_name = "IDENTITY")]
    pub identity: Option<String>,
    /// Time of each count in an RRD: 10s (default: that of the version of io-profiler with its data sources, 300s or 10s)
    #[arg(long, value_name = "TIME", value_parser = counted_over)]
    pub counted_over: Option<Duration>,
    #[command(flatten)]
    pub store: AgentStore,
}

/// Flags of `plumb history dump`.
#[derive(Debug, Args)]
pub struct HistoryDump {
    /// Devices and times: sda@15m, sda@2026-11-01..2026-11-08
    #[arg(value_name = "DEVICE[@SPAN]", required_unless_present = "last")]
    pub spans: Vec<String>,
    /// The last TIME of all devices: 15m, 2h, 7d
    #[arg(long, value_name = "TIME", conflicts_with = "spans")]
    pub last: Option<String>,
    /// File for the profiles; plumb analyze, compare and check read it
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    #[command(flatten)]
    pub folder: StateDir,
}

/// Flags of `plumb history prune`.
#[derive(Debug, Args)]
pub struct HistoryPrune {
    /// Keep this time before now, in hours or days: 12h, 90d
    #[arg(long, value_name = "TIME")]
    pub keep: String,
    #[command(flatten)]
    pub store: AgentStore,
}

/// Flags of `plumb history backup`.
#[derive(Debug, Args)]
pub struct HistoryBackup {
    /// Folder for the copy; it has to exist and must not have a history
    #[arg(value_name = "FOLDER")]
    pub to: PathBuf,
    #[command(flatten)]
    pub store: AgentStore,
}

fn tier(word: &str) -> Result<Tier, String> {
    Tier::from_word(word).ok_or_else(|| format!("found `{word}`, expected 5m, 1h or 1d"))
}

/// The time of a count.
fn counted_over(text: &str) -> Result<Duration, String> {
    let limits = Duration::from_secs(1)..=Duration::from_secs(86_400);
    match duration(text) {
        Ok(time) if limits.contains(&time) && time.subsec_nanos() == 0 => Ok(time),
        _ => Err(format!(
            "found `{text}`, expected whole seconds from 1s to 24h"
        )),
    }
}

/// A time between two readings: systemd expects a sign of life in between.
fn interval(text: &str) -> Result<Duration, String> {
    let limits = Duration::from_secs(1)..=Duration::from_secs(60);
    match duration(text) {
        Ok(time) if limits.contains(&time) => Ok(time),
        _ => Err(format!("found `{text}`, expected a time from 1s to 60s")),
    }
}
