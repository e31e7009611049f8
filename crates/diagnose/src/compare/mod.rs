//! Did it help? The I/O of a device before a change beside those after it: the same measures with intervals, over the
//! same mix of I/O, and a verdict.
//!
//! An interval counts periods of time, never single I/O: reports of a capture, windows of a profile, intervals of a
//! benchmark. I/O of one moment are not independent, so thousands of them say little more than one.

mod law;
mod measures;
mod mix;
mod of_bench;
mod of_profile;
mod of_series;
mod result;
mod slice;
mod verdict;

use serde::Serialize;

use plumb_geometry::Grid;
use plumb_stats::Level;
use plumb_stats::equivalence::Margin;
use plumb_trace::series::Span;
use plumb_trace::{Layer, Op};

use crate::analysis::Quantiles;
use crate::share::Share;

pub use law::Law;
pub use measures::{Measure, MeasureUnit, Ratio};
pub use mix::Mix;
pub use of_bench::{BenchDocument, of_bench};
pub use of_profile::of_profile;
pub use of_series::of_series;
pub use result::{Compared, LeftOut};
pub use slice::TimeSlice;
pub use verdict::{CompareOutcome, CompareVerdict, signed};

/// The terms of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// Changes up to this are none.
    pub margin: Margin,
    /// Level of the intervals.
    pub level: Level,
    /// Whether the user named the two devices as those to compare, so that they may be different ones.
    pub paired_by_user: bool,
    /// Whether the user says that both sides are of one device, in spite of their own facts.
    pub is_forced: bool,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms {
            margin: Margin::USUAL,
            level: Level::P95,
            paired_by_user: false,
            is_forced: false,
        }
    }
}

/// The kind of period of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sampling {
    /// Its name: `report`, `window`, `interval`.
    pub unit: &'static str,
    /// How long one is; `None` where the source does not tell.
    pub seconds: Option<f64>,
    /// How many there were, before neighbours were put together and idle ends cut off.
    pub seen: u64,
}

/// I/O of one operation and length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stratum {
    /// Their operation.
    pub op: Op,
    /// Their length, or mean length if lengths are not separate.
    pub len_bytes: u64,
    /// I/O, or I/O a second.
    pub ios: f64,
    /// Mean latency, ns, of at least `TIMED_MIN` I/O; `None` where it is not known.
    pub mean_ns: Option<f64>,
    /// Variance of that mean, ns²; `None` where nothing tells.
    pub ns_mean_variance: Option<f64>,
}

/// Percentiles of one operation in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// I/O that they are of.
    pub ios: u64,
    /// The latencies, ns, that these shares of them did not exceed: [`SHARES`].
    pub ns: [f64; 3],
}

/// Percentiles that are compared.
pub const SHARES: [f64; 3] = [0.5, 0.9, 0.99];

/// The fit of the I/O on one grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnGrid {
    /// The grid.
    pub grid: Grid,
    /// I/O that start off it, of all.
    pub misaligned: Share,
    /// Bytes moved per byte read, and per byte written; `None` where unknown.
    pub amplification: [Option<f64>; 2],
}

/// The measurements of one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Its name, as the source has it.
    pub device: String,
    /// Its source, in words: `iostat of Solaris, 3 reports`.
    pub source: String,
    /// Size; `None` where the source does not tell.
    pub size_bytes: Option<u64>,
    /// Layer at which I/O were counted; `None` where the source does not tell.
    pub layer: Option<Layer>,
    /// The span of latencies.
    pub span: Span,
    /// Whether the number of I/O in flight was constant, so that rates are those of the device.
    pub is_closed_loop: bool,
    /// The kind of observation.
    pub sampling: Sampling,
    /// The observations, in the order of time.
    pub slices: Vec<TimeSlice>,
    /// All I/O by operation and length.
    pub strata: Vec<Stratum>,
    /// Whether lengths are separate in them; else there is one of each operation, with its mean length.
    pub has_lengths: bool,
    /// Whether a full table keeps some of them only as a range up to a power of two.
    pub are_lengths_rounded: bool,
    /// Latencies of reads and writes.
    pub quantiles: [Option<Quantiles>; 2],
    /// Percentiles of reads and of writes in stretches of time, in their order; empty where the source does not tell. Stretches
    /// without such I/O are not there.
    pub stretches: [Vec<Stretch>; 2],
    /// I/O that continue no other, of all reads and writes; `None` where the source does not tell.
    pub random: Option<Share>,
    /// The fit of the I/O on the requested grids.
    pub grids: Vec<OnGrid>,
    /// Little's law; `None` where nothing in the source can be held against it.
    pub law: Option<Law>,
    /// I/O that should be in it and are not, of all that should.
    pub lost: Share,
    /// Reasons for doubt.
    pub doubts: Vec<String>,
}

/// The comparison of one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Name, source and sampling, before and after.
    pub sides: [Side; 2],
    /// The verdict.
    pub verdict: CompareVerdict,
    /// The measures.
    pub measures: Vec<Measure>,
    /// How alike the I/O of both sides are; `None` where a side has none.
    pub mix: Option<Mix>,
    /// Sentences that a reader must know.
    pub doubts: Vec<String>,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// Device.
    pub device: String,
    /// Its source.
    pub source: String,
    /// Size; absent when unknown.
    pub size_bytes: Option<u64>,
    /// Layer; absent when unknown.
    pub layer: Option<Layer>,
    /// The span of latencies.
    pub span: Span,
    /// The kind of observation.
    pub sampling: Sampling,
    /// Observations that intervals are based on.
    pub observations: u64,
    /// Little's law; absent when nothing can be held against it.
    pub littles_law: Option<Law>,
}

/// Compares the measurements of a device before and after.
#[must_use]
pub fn compare(before: &Observed, after: &Observed, terms: &Terms) -> Comparison {
    let mix = mix::compare(before, after);
    let measures = measures::compare(before, after, terms);
    let verdict = verdict::judge([before, after], &measures, mix.as_ref(), terms);
    Comparison {
        sides: [before, after].map(side),
        doubts: doubts(before, after),
        verdict,
        measures,
        mix,
    }
}

fn side(observed: &Observed) -> Side {
    Side {
        device: observed.device.clone(),
        source: observed.source.clone(),
        size_bytes: observed.size_bytes,
        layer: observed.layer,
        span: observed.span,
        sampling: observed.sampling,
        observations: observed.slices.len() as u64,
        littles_law: observed.law,
    }
}

/// From this number of observations on their order shows whether they depend on each other.
const ORDER_MIN: usize = 8;

fn doubts(before: &Observed, after: &Observed) -> Vec<String> {
    let mut doubts = Vec::new();
    for (side, word) in [(before, "before"), (after, "after")] {
        doubts.extend(side.doubts.iter().map(|doubt| format!("{word}: {doubt}")));
        doubts.extend(
            side.law
                .and_then(|law| law.broken_words(side.sampling.unit))
                .map(|law| format!("{word}: {law}")),
        );
        if hangs_together(&side.slices) {
            doubts.push(format!(
                "{word}: neighbouring {}s resemble each other, so that the intervals are too narrow",
                side.sampling.unit
            ));
        }
    }
    if before.are_lengths_rounded || after.are_lengths_rounded {
        doubts.push(
            "a table had too many different lengths: lengths are compared by powers of two"
                .to_owned(),
        );
    }
    if before.span != after.span {
        doubts.push(
            "latencies do not span the same: on one side they include the time before issue"
                .to_owned(),
        );
    }
    doubts
}

/// Whether an observation tells of the next one: twice the standard error of an autocorrelation of none.
fn hangs_together(slices: &[TimeSlice]) -> bool {
    if slices.len() < ORDER_MIN {
        return false;
    }
    let limit = 2.0 / (slices.len() as f64).sqrt();
    let rates: Vec<f64> = slices.iter().map(TimeSlice::ios_per_second).collect();
    let latencies: Vec<f64> = slices.iter().filter_map(TimeSlice::mean_ns).collect();
    [rates, latencies].iter().any(|values| {
        let sample = plumb_stats::Sample::new(values).ok();
        sample
            .and_then(|sample| sample.autocorrelation())
            .is_some_and(|found| found > limit)
    })
}
