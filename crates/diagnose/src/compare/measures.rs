//! The measures side by side, each with the basis of its interval.

use serde::Serialize;

use plumb_geometry::Grid;
use plumb_stats::{Interval, Sectioned, ratio_of_means, ratio_of_sectioned};

use super::slice::batches;
use super::{Observed, SHARES, Terms, TimeSlice};
use crate::analysis::Quantiles;

/// The unit of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeasureUnit {
    /// I/O a second.
    PerSecond,
    /// Bytes a second.
    BytesPerSecond,
    /// Nanoseconds.
    Ns,
    /// I/O.
    Ios,
    /// A share, 0 to 1.
    Share,
    /// A factor.
    Factor,
    /// Bytes.
    Bytes,
}

/// After ÷ before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The ratio.
    pub value: f64,
    /// Lower end of its interval; absent without one.
    pub low: Option<f64>,
    /// Upper end; absent without one.
    pub high: Option<f64>,
}

/// One measure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measure {
    /// Its name: `ios_per_second`.
    pub name: &'static str,
    /// Its unit.
    pub unit: MeasureUnit,
    /// The grid that it is about; absent for most.
    pub grid: Option<Grid>,
    /// Before; absent when unknown.
    pub before: Option<f64>,
    /// After; absent when unknown.
    pub after: Option<f64>,
    /// After ÷ before; absent when a side is unknown or 0.
    pub ratio: Option<Ratio>,
    /// Observations behind the interval, before and after; 0 where there is no interval.
    pub n: [u64; 2],
}

impl Ratio {
    /// Takes the estimate and its bounds.
    #[must_use]
    pub fn from_interval(interval: &Interval<[usize; 2]>) -> Ratio {
        Ratio {
            value: interval.estimate,
            low: Some(interval.low),
            high: Some(interval.high),
        }
    }
}

/// Names of measures that a verdict looks for.
pub const RATE: &str = "ios_per_second";
pub const LATENCY: &str = "latency_mean_ns";
pub const IN_FLIGHT: &str = "in_flight_mean";
pub const RANDOM: &str = "random_share";
pub const BYTES: &str = "bytes_per_second";
pub const LENGTH: &str = "len_bytes_mean";

/// Names of a quantile of reads and of writes, and its position.
type Quantile = ([&'static str; 2], fn(&Quantiles) -> u64);

/// In the order of [`SHARES`].
const QUANTILES: [Quantile; 3] = [
    (["read_p50_ns", "write_p50_ns"], |quantiles| {
        quantiles.p50_ns
    }),
    (["read_p90_ns", "write_p90_ns"], |quantiles| {
        quantiles.p90_ns
    }),
    (["read_p99_ns", "write_p99_ns"], |quantiles| {
        quantiles.p99_ns
    }),
];

/// Compares every measure that a side knows, apart from those that are 0 on both.
pub fn compare(before: &Observed, after: &Observed, terms: &Terms) -> Vec<Measure> {
    let sampled = |name, unit, value: &dyn Fn(&TimeSlice) -> Option<f64>| {
        let side = |side: &Observed| side.slices.iter().filter_map(value).collect::<Vec<f64>>();
        measure(name, unit, &side(before), &side(after), terms)
    };
    let of_op = |op: usize| move |slice: &TimeSlice| slice.ios_per_second_of(op);
    let bytes_of_op = |op: usize| move |slice: &TimeSlice| slice.bytes_per_second_of(op);
    let mut measures = vec![
        sampled(RATE, MeasureUnit::PerSecond, &|slice| {
            Some(slice.ios_per_second())
        }),
        sampled("reads_per_second", MeasureUnit::PerSecond, &of_op(0)),
        sampled("writes_per_second", MeasureUnit::PerSecond, &of_op(1)),
        sampled(
            BYTES,
            MeasureUnit::BytesPerSecond,
            &TimeSlice::bytes_per_second,
        ),
        sampled(
            "read_bytes_per_second",
            MeasureUnit::BytesPerSecond,
            &bytes_of_op(0),
        ),
        sampled(
            "write_bytes_per_second",
            MeasureUnit::BytesPerSecond,
            &bytes_of_op(1),
        ),
        sampled(LENGTH, MeasureUnit::Bytes, &TimeSlice::len_bytes),
        sampled(LATENCY, MeasureUnit::Ns, &TimeSlice::mean_ns),
    ];
    measures.extend(random(before, after));
    for op in 0..2 {
        for at in 0..QUANTILES.len() {
            measures.push(percentile(op, at, [before, after], terms));
        }
    }
    measures.push(sampled(IN_FLIGHT, MeasureUnit::Ios, &TimeSlice::in_flight));
    measures.extend(on_grids(before, after));
    measures.retain(Measure::tells);
    measures
}

/// The share of I/O that continue no other. They are one count over the whole time: its interval is that of a share
/// (Wilson), as if I/O were independent, and so is rather too narrow.
fn random(before: &Observed, after: &Observed) -> Option<Measure> {
    let shares = [before.random.as_ref()?, after.random.as_ref()?];
    let plain = plain(
        RANDOM,
        MeasureUnit::Share,
        None,
        shares.map(|share| Some(share.value())),
    );
    let bounds = shares.map(|share| share.interval());
    let ratio = plain.ratio.map(|ratio| Ratio {
        low: (bounds[1].1 > 0.0 && bounds[0].1 > 0.0).then(|| bounds[1].0 / bounds[0].1),
        high: (bounds[0].0 > 0.0).then(|| bounds[1].1 / bounds[0].0),
        ..ratio
    });
    Some(Measure {
        ratio,
        n: shares.map(|share| share.whole),
        ..plain
    })
}

fn measure(
    name: &'static str,
    unit: MeasureUnit,
    before: &[f64],
    after: &[f64],
    terms: &Terms,
) -> Measure {
    let mean = |values: &[f64]| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let interval = ratio_of_means(before, after, terms.level).ok();
    let n = interval.map_or([0, 0], |interval| interval.n.map(|n| n as u64));
    let plain = plain(name, unit, None, [mean(before), mean(after)]);
    Measure {
        ratio: interval.as_ref().map(Ratio::from_interval).or(plain.ratio),
        n,
        ..plain
    }
}

/// A percentile of a period means nothing if on average fewer I/O than this are above it.
const ABOVE_MIN: f64 = 5.0;

/// Fewer stretches do not tell how a percentile varies.
const STRETCHES_MIN: usize = 5;

/// A percentile of reads or of writes, with an interval where stretches of both sides tell theirs.
fn percentile(op: usize, at: usize, sides: [&Observed; 2], terms: &Terms) -> Measure {
    let (names, quantile) = QUANTILES[at];
    let whole = sides.map(|side| {
        side.quantiles[op]
            .as_ref()
            .map(|quantiles| quantile(quantiles) as f64)
    });
    let plain = plain(names[op], MeasureUnit::Ns, None, whole);
    let sections = sides.map(|side| sections(side, op, at));
    let [Some(before), Some(after)] = whole else {
        return plain;
    };
    let sectioned = |whole, sections| Sectioned { whole, sections };
    let ratio = ratio_of_sectioned(
        sectioned(before, &sections[0]),
        sectioned(after, &sections[1]),
        terms.level,
    );
    match ratio {
        Ok(ratio) => Measure {
            ratio: Some(Ratio::from_interval(&ratio)),
            n: ratio.n.map(|n| n as u64),
            ..plain
        },
        Err(_) => plain,
    }
}

/// A percentile of each stretch, neighbours put together by their geometric mean; none where they tell too little.
fn sections(side: &Observed, op: usize, at: usize) -> Vec<f64> {
    let stretches = &side.stretches[op];
    let ios = stretches
        .iter()
        .map(|stretch| stretch.ios as f64)
        .sum::<f64>();
    let above = ios * (1.0 - SHARES[at]) / stretches.len().max(1) as f64;
    if stretches.len() < STRETCHES_MIN || above < ABOVE_MIN {
        return Vec::new();
    }
    let together = batches(stretches).map(|batch| {
        let logs: f64 = batch.iter().map(|stretch| stretch.ns[at].ln()).sum();
        (logs / batch.len() as f64).exp()
    });
    together.collect()
}

/// A measure without an interval.
fn plain(
    name: &'static str,
    unit: MeasureUnit,
    grid: Option<Grid>,
    [before, after]: [Option<f64>; 2],
) -> Measure {
    let ratio = before
        .zip(after)
        .filter(|(before, after)| *before > 0.0 && *after > 0.0);
    let ratio = ratio.map(|(before, after)| Ratio {
        value: after / before,
        low: None,
        high: None,
    });
    Measure {
        name,
        unit,
        grid,
        before,
        after,
        ratio,
        n: [0, 0],
    }
}

/// Fit and amplification on the grids that both sides answer.
fn on_grids(before: &Observed, after: &Observed) -> Vec<Measure> {
    let mut measures = Vec::new();
    for mine in &before.grids {
        let Some(theirs) = after.grids.iter().find(|theirs| theirs.grid == mine.grid) else {
            continue;
        };
        let shares = [mine, theirs].map(|side| {
            let is_known = side.misaligned.part.known().is_some();
            is_known.then(|| side.misaligned.value())
        });
        measures.push(plain(
            "misaligned_share",
            MeasureUnit::Share,
            Some(mine.grid),
            shares,
        ));
        for (op, name) in ["read_amplification", "write_amplification"]
            .into_iter()
            .enumerate()
        {
            let factors = [mine.amplification[op], theirs.amplification[op]];
            measures.push(plain(name, MeasureUnit::Factor, Some(mine.grid), factors));
        }
    }
    measures
}

impl Measure {
    /// Whether it says anything: a share of none on both sides does.
    fn tells(&self) -> bool {
        let is_zero = |side: Option<f64>| side.is_none_or(|value| value == 0.0);
        let is_known = self.before.is_some() || self.after.is_some();
        is_known
            && (self.unit == MeasureUnit::Share || !(is_zero(self.before) && is_zero(self.after)))
    }
}
