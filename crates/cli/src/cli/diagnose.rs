//! Flags of `plumb diagnose`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::watch::INTERVAL_MIN;
use super::{Accepting, Beneath, ColorChoice, FailOn, Verbosity};
use crate::moment::{LONGEST, parse_duration};

/// Flags of `plumb diagnose`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Sizes: bare numbers are bytes; k, m, g, t are powers of 1024; s is 512 bytes. Durations: bare \
numbers are seconds; ms, s, m, h.\n\
Without root it checks as much as it can, and names each part that it could not see and a command that can. Ctrl-C ends the watch early, \
and the report still comes. Nothing is written to any disk, and no command of a finding is run.\n\
Exit status: 0 clean, 1 findings, 2 usage, 3 an alignment is unknown, or I/O could not be watched, or too few were \
seen to judge them, 5 failed."
)]
pub struct Diagnose {
    /// Device, mount point or file to judge, with the layers below and above it [default: all]
    #[arg(value_name = "TARGET")]
    pub target: Option<PathBuf>,
    /// How long to watch I/O; 0 looks at the layout alone
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = time)]
    pub watch: Duration,

    #[command(flatten)]
    pub beneath: Beneath,
    #[command(flatten)]
    pub accepting: Accepting,

    /// Print one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Write a page with the findings, the stack and pictures of the I/O, in the place of a file that has the name
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Save the profile of the watch, in the place of a file that has the name: `plumb analyze` reads it
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
    #[command(flatten)]
    pub verbosity: Verbosity,
}

fn time(text: &str) -> Result<Duration, String> {
    let ns = parse_duration(text).and_then(|ns| u64::try_from(ns).ok());
    match ns.map(Duration::from_nanos) {
        Some(time) if time.is_zero() || (INTERVAL_MIN..=LONGEST).contains(&time) => Ok(time),
        _ => Err(format!(
            "found `{text}`, expected 0, or a time from 100ms to 8760h, a year (bare numbers are seconds; ms, s, m, h)"
        )),
    }
}
