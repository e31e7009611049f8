//! Flags of `plumb compare`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plumb_geometry::Grid;
use plumb_stats::equivalence::Margin;
use plumb_trace::Layer;
use plumb_trace::series::FirstReport;

use super::{ColorChoice, distinct, grid, layer};

/// Flags of `plumb compare`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Sizes: bare numbers are bytes; k, m, g, t are powers of 1024; s is 512 bytes.\n\
Latency decides, over the same mix of operations and lengths. The rate decides only if both sides kept the same number of \
I/O in flight; otherwise it may be the rate that the programs asked for.\n\
Exit status: 0 better or no difference, 1 worse, 2 usage, 3 not comparable, inconclusive or read only in part, 4 not \
permitted, 5 failed."
)]
pub struct Compare {
    /// Before the change: a saved profile, a trace of any known format, history:DEVICE@SPAN, or the output of iostat, sar, sadf, Vdbench, fio (JSON) or plumb bench --json
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,
    /// After it: the same. Leave it out to judge one file with Vdbench's results of a sweep of offsets
    #[arg(value_name = "AFTER")]
    pub after: Option<PathBuf>,
    /// Folder of the history for history:DEVICE@SPAN (default: state_dir of /etc/plumb/agent.toml, else /var/lib/plumb-agent)
    #[arg(long, value_name = "DIR", help_heading = "Comparison")]
    pub state_dir: Option<PathBuf>,

    /// Only this device, and its name after the change; may be given several times
    #[arg(long, value_name = "NAME[=NAME]", value_parser = DevicePair::parse, help_heading = "Comparison")]
    pub device: Vec<DevicePair>,
    /// Compare devices even if their names or sizes differ
    #[arg(long, help_heading = "Comparison")]
    pub force: bool,
    /// Grid to judge the I/O by: GRANULARITY or GRANULARITY@OFFSET; may be given several times
    #[arg(long, value_name = "G[@O]", value_parser = grid, help_heading = "Comparison")]
    pub grid: Vec<Grid>,
    /// Layer of a trace: vfs, bio or request; when not given the lowest present
    #[arg(long, value_name = "LAYER", value_parser = layer, help_heading = "Comparison")]
    pub layer: Option<Layer>,
    /// Format of the traces, if their contents do not show it
    #[arg(long, value_name = "NAME", help_heading = "Comparison")]
    pub format: Option<String>,
    /// The first report of iostat: left out where it is an average since boot, kept, or left out
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "auto",
        help_heading = "Comparison"
    )]
    pub first: First,
    /// Ignore changes up to this percentage
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = margin, help_heading = "Comparison")]
    pub margin: Margin,

    /// Print one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Write a page with the changes drawn
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// When to colour
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Output"
    )]
    pub color: ColorChoice,
}

impl Compare {
    /// The grids to judge by.
    #[must_use]
    pub fn grids(&self) -> Vec<Grid> {
        distinct(&self.grid)
    }
}

/// The handling of the first report of iostat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum First {
    /// Left out where it is an average since boot
    #[default]
    Auto,
    /// Kept
    Keep,
    /// Left out
    Drop,
}

impl From<First> for FirstReport {
    fn from(first: First) -> FirstReport {
        match first {
            First::Auto => FirstReport::Auto,
            First::Keep => FirstReport::Keep,
            First::Drop => FirstReport::Drop,
        }
    }
}

/// A device before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevicePair {
    /// Its name before.
    pub before: String,
    /// Its name after.
    pub after: String,
}

impl DevicePair {
    fn parse(text: &str) -> Result<DevicePair, String> {
        let (before, after) = text.split_once('=').unwrap_or((text, text));
        if before.is_empty() || after.is_empty() {
            return Err(format!(
                "found `{text}`, expected NAME, or NAME=NAME before and after the change"
            ));
        }
        Ok(DevicePair {
            before: before.to_owned(),
            after: after.to_owned(),
        })
    }
}

/// Larger margins would call anything the same.
const MARGIN_PERCENT_MAX: f64 = 50.0;

pub(super) fn margin(text: &str) -> Result<Margin, String> {
    let number = text
        .strip_suffix('%')
        .and_then(|number| number.trim().parse::<f64>().ok());
    let share = number
        .filter(|number| *number <= MARGIN_PERCENT_MAX)
        .map(|number| number / 100.0);
    share.and_then(|share| Margin::new(share).ok()).ok_or_else(|| {
        format!("found `{text}`, expected a share above 0% and up to {MARGIN_PERCENT_MAX}%, for instance 3%")
    })
}
