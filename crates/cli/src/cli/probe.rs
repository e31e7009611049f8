//! Flags of `plumb probe`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use plumb_geometry::{Bytes, Grid};
use plumb_stats::equivalence::Margin;

use super::plan::size;
use super::record::duration;
use super::{ColorChoice, FailOn, grid, range};

/// Flags of `plumb probe`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Sizes: bare numbers are bytes; k, m, g, t are powers of 1024; s is 512 bytes. Durations: bare numbers are \
seconds; ms, s, m, h.\n\
Without --write, Plumb writes nothing and the verdict is on reads; it does not show the cost of writes. Reads bypass the \
page cache. Other programs may use the target meanwhile; the less they do, the sooner the probe ends. Ctrl-C ends it early and \
prints the results so far; the verdict is then inconclusive.\n\
With --write the verdict is on writes. Each write stores the bytes that were read from the same place just before, so that \
the target keeps its data even if the probe is killed. The target must not be mounted, held or open elsewhere meanwhile.\n\
Exit status: 0 on the grid or without a penalty, 1 the grid has another offset than 0, 2 usage, 3 inconclusive, \
4 not permitted, 5 failed."
)]
pub struct Probe {
    /// Target to measure: a block device, or a regular file by its own bytes
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,

    /// Granularity to look for besides powers of two, and to confirm or refute; may be given several times
    #[arg(long, value_name = "G[@O]", value_parser = grid)]
    pub grid: Vec<Grid>,
    /// Measure only this part of the target, the end excluded: 1m-5g
    #[arg(long, value_name = "A-B", value_parser = range)]
    pub range: Option<(Bytes, Bytes)>,
    /// Size of the cache before the medium, or 0 for none; without it, the probe looks for one. It reads at least twice that size
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub cache: Option<Bytes>,
    /// I/O in flight
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub depth: u32,
    /// Time limit: questions that are still open then are inconclusive
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub limit: Duration,
    /// Difference in percent that does not matter
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = margin)]
    pub margin: Margin,
    /// Repeats the order of all I/O of another probe: the seed in its --json
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Measure writes: data are read, and written back to the same place
    #[arg(long, help_heading = "Writing")]
    pub write: bool,
    /// The name of the target, typed once more, in place of the question
    #[arg(
        long,
        value_name = "NAME",
        requires = "write",
        help_heading = "Writing"
    )]
    pub yes: Vec<String>,

    /// Print one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Write a page with pictures
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
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

fn margin(text: &str) -> Result<Margin, String> {
    let percent = text.trim_end_matches('%').trim_end().parse::<f64>().ok();
    let is_one = |percent: &f64| *percent >= 0.5 && *percent <= 50.0;
    percent
        .filter(is_one)
        .and_then(|percent| Margin::new(percent / 100.0).ok())
        .ok_or_else(|| format!("found `{text}`, expected percent from 0.5 to 50"))
}
