//! The verdict of a sweep of offsets with its numbers, and a bar for each offset.

use serde::Serialize;

use crate::format::{bytes, count, digits};
use crate::text::{Page, Paper};

/// The verdict of a sweep.
#[derive(Debug, Serialize)]
pub struct Sweep {
    /// Its target.
    pub target: String,
    /// The operation: reads, writes or both.
    pub ops: &'static str,
    /// Length of each I/O.
    pub len_bytes: u64,
    /// Starts are multiples of this, the offset aside.
    pub unit_bytes: u64,
    /// `grid`, `no-difference` or `inconclusive`.
    pub verdict: &'static str,
    /// The grid; `None` unless the verdict is one.
    pub grid: Option<Grid>,
    /// Rate of I/O on the grid by that of those off it; `None` unless the verdict is a grid.
    pub penalty: Option<RateRatio>,
    /// Rate at the fastest offset by that at the slowest; `None` unless the verdict is no difference.
    pub difference: Option<RateRatio>,
    /// Why it is inconclusive.
    pub why: Option<String>,
    /// The results, in the order of the runs.
    pub offsets: Vec<Offset>,
}

/// A grid, in the address space of the target.
#[derive(Debug, Serialize)]
pub struct Grid {
    /// The finest that explains the rates.
    pub granularity_bytes: u64,
    /// The coarsest: another one where offsets between were not measured.
    pub granularity_bytes_max: u64,
    /// A boundary of it: 0 ≤ offset < `granularity_bytes_max`.
    pub offset_bytes: u64,
}

/// A ratio of two rates.
#[derive(Debug, Serialize)]
pub struct RateRatio {
    /// The estimate.
    pub estimate: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How often such an interval holds the true ratio.
    pub level: f64,
    /// Intervals of time behind the rate above the line, and below it.
    pub n: [usize; 2],
}

/// An offset of a sweep.
#[derive(Debug, Serialize)]
pub struct Offset {
    /// Added to each start.
    pub offset_bytes: u64,
    /// I/O a second, of the intervals that count.
    pub ios_per_second: f64,
    /// Intervals that count.
    pub intervals: usize,
}

/// Columns of the longest bar.
const BAR: f64 = 48.0;

/// A sweep alone, as text.
#[must_use]
pub fn sweep_text(sweep: &Sweep, paper: impl Into<Paper>) -> String {
    let mut page = Page::new(paper);
    draw(&mut page, sweep);
    page.text
}

/// The verdict as text.
pub(super) fn draw(page: &mut Page, sweep: &Sweep) {
    page.gap();
    page.heading(&format!("offsets on {}", sweep.target));
    page.line("      offset     i/o rate");
    let highest = sweep
        .offsets
        .iter()
        .map(|at| at.ios_per_second)
        .fold(1.0, f64::max);
    for Offset {
        offset_bytes,
        ios_per_second,
        ..
    } in &sweep.offsets
    {
        let bar = "█".repeat((ios_per_second / highest * BAR).round() as usize);
        page.line(format!(
            "{:>12} {:>12}  {bar}",
            count(*offset_bytes),
            digits(*ios_per_second)
        ));
    }
    page.gap();
    for paragraph in sentences(sweep) {
        page.wrapped("", "  ", &paragraph);
    }
}

/// The verdict in sentences.
#[must_use]
pub fn sentences(sweep: &Sweep) -> Vec<String> {
    let Sweep {
        ops, unit_bytes, ..
    } = sweep;
    let len = bytes(sweep.len_bytes);
    let mut words = Vec::new();
    if let (Some(grid), Some(penalty)) = (&sweep.grid, &sweep.penalty) {
        words.push(grid_words(grid, &len, ops, penalty));
        if grid.granularity_bytes_max == *unit_bytes {
            words.push(format!(
                "A grid coarser than {} would look the same: I/O start every {}.",
                bytes(*unit_bytes),
                bytes(*unit_bytes)
            ));
        }
        if grid.offset_bytes > 0 {
            words.push(format!(
                "Partitions and files that start at a multiple of {} pay for it when they are used in such blocks; set \
                 offset={} in a parameter file to measure on the grid.",
                bytes(grid.granularity_bytes_max),
                grid.offset_bytes
            ));
        }
    } else if let Some(difference) = &sweep.difference {
        words.push(format!(
            "verdict: no offset differs from another by more than 3 %: {len} {ops} at the fastest are {} those at the \
             slowest. A grid that charges nothing looks like that, and so do reads that a cache answers, or that are of \
             blocks never written: `plumb probe` tells these apart.",
            times(difference)
        ));
    } else {
        let why = sweep.why.as_deref().unwrap_or("nothing was measured");
        words.push(format!("verdict: inconclusive: {why}"));
    }
    if *ops == "reads" {
        words.push("Nothing was written: this says nothing of writes.".to_owned());
    }
    words
}

fn grid_words(grid: &Grid, len: &str, ops: &str, penalty: &RateRatio) -> String {
    let Grid {
        granularity_bytes,
        granularity_bytes_max,
        offset_bytes,
    } = *grid;
    let size = match granularity_bytes == granularity_bytes_max {
        true => bytes(granularity_bytes),
        false => format!(
            "{} to {}",
            bytes(granularity_bytes),
            bytes(granularity_bytes_max)
        ),
    };
    format!(
        "verdict: the grid of {size} starts at offset {} bytes: {len} {ops} on it are {} those off it.",
        count(offset_bytes),
        times(penalty)
    )
}

/// `2.00 times as many a second as` with the interval behind it.
fn times(ratio: &RateRatio) -> String {
    format!(
        "{} times ({:.0} %: {} to {}, of {} and {} intervals) as many a second as",
        digits(ratio.estimate),
        ratio.level * 100.0,
        digits(ratio.low),
        digits(ratio.high),
        ratio.n[0],
        ratio.n[1]
    )
}
