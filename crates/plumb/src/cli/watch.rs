//! Flags of `plumb watch`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use plumb_geometry::Grid;

use super::{ColorChoice, FailOn, distinct, grid};
use crate::moment::parse_duration;

/// Flags of `plumb watch`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Sizes: bare numbers are bytes; k, m, g, t are powers of 1024; s is 512 bytes. Durations: bare \
numbers are seconds; ms, s, m, h.\n\
Ctrl-C ends with the totals.\n\
Exit status: 0 clean, 1 findings, 2 usage, 3 unknown, 4 not permitted (needs CAP_BPF and CAP_PERFMON), 5 failed."
)]
pub struct Watch {
    /// Disks, by name or path; all of them when none is given
    #[arg(value_name = "DEVICE")]
    pub devices: Vec<String>,

    /// How long an interval is
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = interval)]
    pub interval: Duration,
    /// End after so many intervals; without it, at Ctrl-C
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Grid to judge by: GRANULARITY or GRANULARITY@OFFSET; may be given several times
    #[arg(long, value_name = "G[@O]", value_parser = grid)]
    pub grid: Vec<Grid>,

    /// Print each interval instead of the full-screen view, also on a terminal
    #[arg(long, help_heading = "Output")]
    pub plain: bool,
    /// Print a JSON document a line for each interval instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Save the profile of the whole time: `plumb analyze` reads it
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub save: Option<PathBuf>,
    /// Severity from which the exit status is 1
    #[arg(long, value_name = "SEVERITY", default_value = "warning", help_heading = "Output")]
    pub fail_on: FailOn,
    /// When to colour
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    pub color: ColorChoice,
}

impl Watch {
    /// The grids to judge by.
    #[must_use]
    pub fn grids(&self) -> Vec<Grid> {
        distinct(&self.grid)
    }
}

/// Shorter intervals than this cost more than they tell.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

fn interval(text: &str) -> Result<Duration, String> {
    let expected = "expected a time of 100ms or more (bare numbers are seconds; ms, s, m, h)";
    let ns = parse_duration(text).and_then(|ns| u64::try_from(ns).ok());
    match ns.map(Duration::from_nanos) {
        Some(interval) if interval >= INTERVAL_MIN => Ok(interval),
        _ => Err(format!("found `{text}`, {expected}")),
    }
}
