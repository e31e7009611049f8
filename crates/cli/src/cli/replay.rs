//! Flags of `plumb replay`.

use std::path::PathBuf;

use clap::Args;
use plumb_geometry::{Bytes, parse_size};
use plumb_load::replay::{Move, Speed};
use plumb_stats::equivalence::Margin;

use super::bench::Engine;
use super::compare::margin;
use super::{ColorChoice, Selection, shift, whole};

/// Flags of `plumb replay`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Sizes: bare numbers are bytes; k, m, g, t are powers of 1024; s is 512 bytes.\n\
The trace is read twice: once to see that all of it can be sent, before anything is, and once to send it. Writes are sent as \
reads, and flushes not at all, but with --write; discards are never sent. An I/O waits for those of its process that had \
ended before it was issued in the trace, but with --depth.\n\
An I/O that ends beyond the target is folded: its start is taken modulo the largest multiple of --modulus within the target, and if \
it still crosses the end, moved back by whole moduli.\n\
--compare sends slices of the trace to today's places and to those of --shift and --layout in turn, and says how many times \
as fast the second are.\n\
Exit status: 0 sent, better or no difference; 1 worse; 2 usage; 3 inconclusive, some I/O failed, or the trace was read only \
in part; 4 not permitted; 5 failed."
)]
pub struct Replay {
    /// Trace of any known format
    #[arg(value_name = "TRACE")]
    pub trace_in: PathBuf,
    /// Block device or regular file that it is sent to
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,

    /// Speed relative to the recording, or max: each I/O as soon as those that it depends on have completed
    #[arg(long, value_name = "N|max", default_value = "1", value_parser = speed, help_heading = "How fast")]
    pub speed: Speed,
    /// Keep N I/O in flight, regardless of their processes: none waits for another
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = "How fast")]
    pub depth: Option<u32>,

    /// Move every start
    #[arg(long, value_name = "±SIZE", value_parser = shift, allow_hyphen_values = true, help_heading = "Where")]
    pub shift: Option<i64>,
    /// Move I/O that start at OLD or behind it, up to the next OLD, to NEW: the present and the planned start of a partition; may
    /// be given several times
    #[arg(long, value_name = "OLD=NEW", value_parser = range_moved, help_heading = "Where")]
    pub layout: Vec<Move>,
    /// Modulus of the fold: starts move by whole multiples of this
    #[arg(long, value_name = "SIZE", default_value = "1m", value_parser = size, help_heading = "Where")]
    pub modulus: Bytes,

    /// Send slices to today's places and to the planned ones in turn, and print the gain of the plan
    #[arg(long, conflicts_with = "trace", help_heading = "Comparison")]
    pub compare: bool,
    /// Pairs of slices, spread over the trace
    #[arg(long, value_name = "N", default_value = "30", value_parser = clap::value_parser!(u32).range(12..=10_000), requires = "compare", conflicts_with = "trace", help_heading = "Comparison")]
    pub pairs: u32,
    /// Ignore changes up to this percentage
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = margin, requires = "compare", conflicts_with = "trace", help_heading = "Comparison")]
    pub margin: Margin,
    /// The same number draws the same order
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        requires = "compare",
        conflicts_with = "trace",
        help_heading = "Comparison"
    )]
    pub seed: u64,

    #[command(flatten)]
    pub select: Selection,

    /// Send writes as writes: they destroy the data on the target
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

    /// I/O engine; if the kernel refuses io_uring, blocking I/O is used
    #[arg(
        long,
        value_name = "NAME",
        default_value = "io_uring",
        help_heading = "Method"
    )]
    pub engine: Engine,

    /// Write every I/O of the replay to a file, a name that is free: FILE.parquet
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub trace: Option<PathBuf>,
    /// Write a page with pictures
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// When to colour
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Output"
    )]
    pub color: ColorChoice,
}

fn speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed::Max);
    }
    let times = text
        .parse::<f64>()
        .ok()
        .filter(|times| *times > 0.0 && *times <= 1e6);
    let expected = "expected max, or a number above 0 and up to 1,000,000";
    times
        .map(Speed::Times)
        .ok_or_else(|| format!("found `{text}`, {expected}"))
}

fn size(text: &str) -> Result<Bytes, String> {
    let size = parse_size(text).map_err(|error| whole(&error))?;
    if size.0 > 0 {
        Ok(size)
    } else {
        Err(format!("found `{text}`, expected a size above 0"))
    }
}

fn range_moved(text: &str) -> Result<Move, String> {
    let example = "expected OLD=NEW, for instance 63s=2048s";
    let (old, new) = text
        .split_once('=')
        .ok_or_else(|| format!("found `{text}`, {example}"))?;
    let bytes = |text: &str| {
        parse_size(text)
            .map(|size| size.0)
            .map_err(|error| whole(&error))
    };
    Ok(Move {
        old: bytes(old)?,
        new: bytes(new)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_and_ranges() {
        assert_eq!(
            (speed("max"), speed("2.5")),
            (Ok(Speed::Max), Ok(Speed::Times(2.5)))
        );
        for bad in ["0", "-1", "nan", "inf", "fast", ""] {
            assert!(speed(bad).is_err(), "{bad}");
        }
        assert_eq!(
            range_moved("63s=1m"),
            Ok(Move {
                old: 32_256,
                new: 1 << 20
            })
        );
        for bad in ["63s", "63s=", "=1m", "a=b", "1MB=2"] {
            assert!(range_moved(bad).is_err(), "{bad}");
        }
    }
}
