//! The verdict of a sweep of offsets with its numbers, and a bar for each offset.

use plumb_load::result::bench::Sweep;
use plumb_load::series::{OffsetRun, SweepVerdict};
use plumb_stats::Interval;

use crate::format::{bytes, count, digits};
use crate::text::{Page, Paper};

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
        .map(OffsetRun::ios_per_second)
        .fold(1.0, f64::max);
    for run in &sweep.offsets {
        let ios_per_second = run.ios_per_second();
        let bar = "█".repeat((ios_per_second / highest * BAR).round() as usize);
        page.line(format!(
            "{:>12} {:>12}  {bar}",
            count(run.offset),
            digits(ios_per_second)
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
    match &sweep.verdict {
        SweepVerdict::Grid {
            granularity,
            granularity_max,
            offset,
            penalty,
        } => {
            let size = match granularity == granularity_max {
                true => bytes(*granularity),
                false => format!("{} to {}", bytes(*granularity), bytes(*granularity_max)),
            };
            words.push(format!(
                "verdict: the grid of {size} starts at offset {} bytes: {len} {ops} on it are {} those off it.",
                count(*offset),
                times(&penalty.ratio)
            ));
            if granularity_max == unit_bytes {
                words.push(format!(
                    "A grid coarser than {} would look the same: I/O start every {}.",
                    bytes(*unit_bytes),
                    bytes(*unit_bytes)
                ));
            }
            if *offset > 0 {
                words.push(format!(
                    "Partitions and files that start at a multiple of {} pay for it when they are used in such blocks; set \
                     offset={offset} in a parameter file to measure on the grid.",
                    bytes(*granularity_max)
                ));
            }
        }
        SweepVerdict::NoDifference { ratio } => words.push(format!(
            "verdict: no offset differs from another by more than 3 %: {len} {ops} at the fastest are {} those at the \
             slowest. A grid that charges nothing looks like that, and so do reads that a cache answers, or that are of \
             blocks never written: `plumb probe` tells these apart.",
            times(ratio)
        )),
        SweepVerdict::Inconclusive { why } => {
            words.push(format!("verdict: inconclusive: {why}"));
        }
    }
    if *ops == "reads" {
        words.push("Nothing was written: this says nothing of writes.".to_owned());
    }
    words
}

/// `2.00 times as many a second as` with the interval behind it.
fn times(ratio: &Interval<[usize; 2]>) -> String {
    let [below, above] = ratio.n;
    format!(
        "{} times ({:.0} %: {} to {}, of {} and {} intervals) as many a second as",
        digits(ratio.estimate),
        ratio.level.value() * 100.0,
        digits(ratio.low),
        digits(ratio.high),
        above,
        below
    )
}
