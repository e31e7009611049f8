//! Flags of `plumb bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use plumb_geometry::{Bytes, parse_size};
use plumb_load::{Arrivals, EngineChoice, Lengths};

use super::{ColorChoice, range, shift, whole};
use crate::moment::parse_duration;

/// Flags of `plumb bench`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Sizes: bare numbers are bytes; k, m, g, t are powers of 1024; s is 512 bytes. Durations: bare \
numbers are seconds; ms, s, m, h.\n\
I/O go past the page cache where the target lets them. With --open, and with a rate, I/O are due at times: their latency \
is measured from the due time, and from the issue as well. Columns of an interval are those of Vdbench, on a terminal as \
many as it has room for; w marks an interval of the warm-up, which is not in the summary. \
Without a terminal the report begins with the verdict, so the lines of the intervals wait for it.\n\
Ctrl-C ends with the summary.\n\
Exit status: 0 measured, 1 a sweep of offsets found the grid at another one than 0, 2 usage, 3 some I/O failed \
or a target went away, or a sweep is inconclusive, 4 not permitted, 5 nothing could be measured."
)]
pub struct Bench {
    /// Block devices or regular files; each gets the whole load
    #[arg(value_name = "TARGET", required_unless_present_any = ["vdbench", "fio"])]
    pub targets: Vec<PathBuf>,

    /// Percentage of reads; the others are writes
    #[arg(long, value_name = "PERCENT", default_value = "100", value_parser = clap::value_parser!(u8).range(0..=100), help_heading = "Workload")]
    pub read: u8,
    /// Length of an I/O, or several with their weights: 4k:3,64k:1
    #[arg(long, value_name = "SIZE[:W],…", default_value = "4k", value_parser = lengths, help_heading = "Workload")]
    pub size: Lengths,
    /// Percentage of random starts; the others continue the stream of their thread
    #[arg(long, value_name = "PERCENT", default_value = "100", value_parser = clap::value_parser!(u8).range(0..=100), conflicts_with_all = ["sequential", "stride"], help_heading = "Workload")]
    pub random: u8,
    /// Sequential I/O: the threads of a target share one stream
    #[arg(long, conflicts_with = "stride", help_heading = "Workload")]
    pub sequential: bool,
    /// As --sequential, with this distance from start to start
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Workload")]
    pub stride: Option<Bytes>,
    /// Random places by a Zipf distribution of this exponent: at 1, the k-th most popular one is drawn k times less often
    #[arg(long, value_name = "THETA", conflicts_with_all = ["sequential", "stride"], help_heading = "Workload")]
    pub zipf: Option<f64>,
    /// Move every start: shows the cost for a partition that begins later by this distance
    #[arg(long, value_name = "±SIZE", value_parser = shift, allow_hyphen_values = true, help_heading = "Workload")]
    pub shift: Option<i64>,
    /// Starts are multiples of this, plus the shift; without it, of the length of each I/O
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Workload")]
    pub align: Option<Bytes>,
    /// Only this part of the target, the end excluded: 1m-5g
    #[arg(long, value_name = "A-B", value_parser = range, help_heading = "Workload")]
    pub range: Option<(Bytes, Bytes)>,

    /// A part at the beginning for the I/O of --hit-percent alone, so that a cache answers those: all others go behind it
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "hit_percent", help_heading = "Workload")]
    pub hit_area: Option<Bytes>,
    /// Percentage of I/O at random places of --hit-area
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100), requires = "hit_area", help_heading = "Workload")]
    pub hit_percent: Option<u8>,

    /// Threads a target
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "How fast")]
    pub threads: u32,
    /// I/O in flight a thread
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = "How fast")]
    pub depth: u32,
    /// I/O that a thread hands over and waits for at once: less work for the processor, and times that contain the wait for
    /// the others of the batch
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=4096), conflicts_with = "rate", help_heading = "How fast")]
    pub batch: u32,
    /// Maximum I/O per second and target [default: no limit]
    #[arg(long, value_name = "N", value_parser = rate, help_heading = "How fast")]
    pub rate: Option<f64>,
    /// I/O come at the rate, however slow the target is, like those of many users
    #[arg(long, value_name = "ARRIVALS", num_args = 0..=1, default_missing_value = "exponential", require_equals = true, requires = "rate", help_heading = "How fast")]
    pub open: Option<OpenLoop>,

    /// How long to measure
    #[arg(long = "for", value_name = "TIME", value_parser = time, help_heading = "How long")]
    pub duration: Option<Duration>,
    /// Stop after N I/O for each target; with --for, at the earlier of both ends
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "How long")]
    pub ios: Option<u64>,
    /// Warm-up time
    #[arg(long, value_name = "TIME", value_parser = time_or_none, help_heading = "How long")]
    pub warmup: Option<Duration>,
    /// Interval length [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = interval, help_heading = "How long")]
    pub interval: Option<Duration>,

    /// Run a parameter file of Vdbench
    ///
    /// --for, --interval and --warmup replace the values of the file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["targets", "fio", "read", "size", "random", "sequential", "stride", "zipf", "shift", "align", "range", "hit_area", "hit_percent", "threads", "depth", "batch", "rate", "open", "ios"], help_heading = "Several runs")]
    pub vdbench: Option<PathBuf>,
    /// Value of $NAME and !NAME in that file; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = named_value, requires = "vdbench", conflicts_with_all = ["targets", "fio", "study"], help_heading = "Several runs")]
    pub set: Vec<(String, String)>,
    /// Run a job file of fio
    #[arg(long, value_name = "FILE", conflicts_with_all = ["targets", "read", "size", "random", "sequential", "stride", "zipf", "shift", "align", "range", "hit_area", "hit_percent", "threads", "depth", "batch", "rate", "open", "ios"], help_heading = "Several runs")]
    pub fio: Option<PathBuf>,
    /// Measure the gain for an application of small records
    #[arg(long, value_name = "NAME", conflicts_with_all = ["vdbench", "fio", "trace", "read", "size", "random", "sequential", "stride", "zipf", "shift", "align", "range", "hit_area", "hit_percent", "threads", "depth", "batch", "rate", "open", "ios"], help_heading = "Several runs")]
    pub study: Option<Study>,
    /// Of a study: length of a record, or of a logical block where that is longer
    #[arg(long, value_name = "SIZE", default_value = "512", value_parser = record, requires = "study", conflicts_with_all = ["vdbench", "fio"], help_heading = "Several runs")]
    pub record: Bytes,
    /// Of a study: how many records one I/O takes
    #[arg(long, value_name = "N,…", default_value = "1,4,16,64", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=4096), requires = "study", conflicts_with_all = ["vdbench", "fio"], help_heading = "Several runs")]
    pub gather: Vec<u32>,
    /// Of a study: how many threads have an I/O in flight
    #[arg(long, value_name = "N,…", default_value = "1,4,16", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024), requires = "study", conflicts_with_all = ["vdbench", "fio"], help_heading = "Several runs")]
    pub at_threads: Vec<u32>,

    /// Allow writes: they destroy the data on the targets
    #[arg(long, help_heading = "Writing")]
    pub write: bool,
    /// The name of a target, typed once more, in place of the question; given for each of them
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
    /// The same number draws the same I/O
    #[arg(long, value_name = "N", default_value = "1", help_heading = "Method")]
    pub seed: u64,

    /// Write every I/O of the measurement to a file, a name that is free: FILE.parquet; of several runs each has a file of its
    /// own: FILE-1.parquet
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub trace: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Write a page with pictures
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

/// How I/O arrive that do not wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OpenLoop {
    /// At random, independent of each other
    Exponential,
    /// At random, with gaps of any length up to twice their mean
    Uniform,
    /// At even distances
    Even,
}

impl From<OpenLoop> for Arrivals {
    fn from(arrivals: OpenLoop) -> Arrivals {
        match arrivals {
            OpenLoop::Exponential => Arrivals::Exponential,
            OpenLoop::Uniform => Arrivals::Uniform,
            OpenLoop::Even => Arrivals::Even,
        }
    }
}

/// The studies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Study {
    /// I/O and records a second, by threads, random or in sequence, and records in an I/O
    Gather,
}

/// How I/O are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// By a ring that the kernel shares, many at once
    #[value(name = "io_uring")]
    IoUring,
    /// By pread and pwrite, a thread for each I/O in flight
    Blocking,
}

impl From<Engine> for EngineChoice {
    fn from(engine: Engine) -> EngineChoice {
        match engine {
            Engine::IoUring => EngineChoice::Ring,
            Engine::Blocking => EngineChoice::Blocking,
        }
    }
}

/// An interval shorter than this says little, and costs.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

fn size(text: &str) -> Result<Bytes, String> {
    let size = parse_size(text).map_err(|error| whole(&error))?;
    if size.0 > 0 {
        Ok(size)
    } else {
        Err(format!("found `{text}`, expected a size above 0"))
    }
}

/// Longest record of a study: 4,096 of them are an I/O that the engine still takes.
const RECORD_MAX: Bytes = Bytes(16 << 10);

fn record(text: &str) -> Result<Bytes, String> {
    let record = size(text)?;
    (record <= RECORD_MAX)
        .then_some(record)
        .ok_or_else(|| format!("found `{text}`, expected a record of at most 16 KiB"))
}

fn named_value(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or_else(|| format!("found `{text}`, expected NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

fn lengths(text: &str) -> Result<Lengths, String> {
    let one = |part: &str| {
        let (size, weight) = part.split_once(':').unwrap_or((part, "1"));
        let len_bytes = parse_size(size).map_err(|error| whole(&error))?.0;
        let len_bytes = u32::try_from(len_bytes).unwrap_or(u32::MAX);
        let weight = weight
            .parse()
            .map_err(|_| format!("found the weight `{weight}`, expected a whole number"))?;
        Ok::<(u32, u32), String>((len_bytes, weight))
    };
    let weighted = text
        .split(',')
        .map(one)
        .collect::<Result<Vec<_>, String>>()?;
    Lengths::new(weighted).map_err(|error| whole(&error))
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text
        .parse::<f64>()
        .ok()
        .filter(|rate| *rate > 0.0 && *rate <= 1e9);
    rate.ok_or_else(|| format!("found `{text}`, expected I/O a second, above 0"))
}

fn time_or_none(text: &str) -> Result<Duration, String> {
    let ns = parse_duration(text).and_then(|ns| u64::try_from(ns).ok());
    let expected = "expected a time (bare numbers are seconds; ms, s, m, h)";
    ns.map(Duration::from_nanos)
        .ok_or_else(|| format!("found `{text}`, {expected}"))
}

fn time(text: &str) -> Result<Duration, String> {
    time_or_none(text).and_then(|time| match time.is_zero() {
        true => Err(format!("found `{text}`, expected a time above 0")),
        false => Ok(time),
    })
}

fn interval(text: &str) -> Result<Duration, String> {
    time_or_none(text).and_then(|time| match time >= INTERVAL_MIN {
        true => Ok(time),
        false => Err(format!(
            "found `{text}`, expected an interval of 100ms or more"
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_with_weights() {
        let weighted = |text: &str| lengths(text).map(|lengths| lengths.weighted().to_vec());
        assert_eq!(weighted("4k"), Ok(vec![(4096, 1)]));
        assert_eq!(weighted("4k:3,64k"), Ok(vec![(4096, 3), (65536, 1)]));
        for bad in ["", "4k:", "4k:0", "4k:x", "0", "4MB", "1g", "4k,,8k"] {
            assert!(weighted(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_and_rates() {
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1500)));
        assert!(time("0").is_err() && interval("99ms").is_err() && interval("100ms").is_ok());
        assert!(
            rate("0").is_err()
                && rate("-1").is_err()
                && rate("nan").is_err()
                && rate("0.5").is_ok()
        );
    }
}
