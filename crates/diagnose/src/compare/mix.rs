//! Whether both sides did the same kind of I/O, and their latency as if they had: a device that was asked for shorter I/O
//! after a change is not the faster for it.

use std::collections::BTreeMap;

use plumb_geometry::SmallSort;
use serde::Serialize;

use plumb_trace::Op;

use super::{Observed, Stratum};
use crate::share::Share;

/// Fewer timed I/O of one operation and length do not count: the number of `latency by fit`.
pub const TIMED_MIN: u64 = plumb_profile::latency_fit::STRATUM_TIMED_MIN;

/// From this overlap on both sides did the same, and rates can be compared.
pub const SAME: f64 = 0.95;

/// Below this too little is alike for any comparison: the number of `latency by fit`.
pub const ALIKE_MIN: f64 = plumb_profile::latency_fit::COVERAGE_PERCENT_MIN as f64 / 100.0;

/// An operation with less of the I/O does not decide.
const OP_SHARE_MIN: f64 = 0.05;

/// If lengths are not separate, mean lengths of one operation may differ by this factor.
const LEN_FACTOR_MAX: f64 = 1.25;

/// How alike the I/O of both sides are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mix {
    /// The key of like I/O: `operation and length`, its power of two after a full table, or `operation` if a source does not
    /// separate lengths.
    pub by: &'static str,
    /// Share of the I/O that both sides have in common, 0 to 1.
    pub overlap: f64,
    /// Share of reads, before and after.
    pub read_share: [f64; 2],
    /// Mean latency, ns, before and after, both weighted to the common I/O; absent if latencies are not known for
    /// enough of it.
    pub mean_ns: Option<[f64; 2]>,
    /// Variance of the logarithm of their ratio, as far as single I/O tell it.
    #[serde(skip)]
    pub log_variance: f64,
    /// An operation whose mean lengths are too far apart, with those lengths in bytes.
    #[serde(skip)]
    pub unlike_lengths: Option<(Op, [u64; 2])>,
}

impl Mix {
    /// Whether only the lengths changed: reads and writes have the same shares of the I/O as before, and too few have a
    /// length in common.
    #[must_use]
    pub fn is_resized(&self) -> bool {
        let [before, after] = self.read_share;
        let are_ops_alike = (before - after).abs() <= 1.0 - SAME;
        are_ops_alike && (self.unlike_lengths.is_some() || self.overlap < ALIKE_MIN)
    }
}

/// The share of the I/O with lengths above the half of a power of two and up to it, before and after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeShare {
    /// The power of two.
    pub upper_bytes: u64,
    /// Of the I/O of each side.
    pub shares: [Share; 2],
}

/// Most classes of length that a comparison names.
const SIZES_MAX: usize = 4;

/// The classes of length with the largest changes of their share, above 5 points; none if a side does not separate lengths.
pub fn changed_sizes(sides: [&Observed; 2]) -> Vec<SizeShare> {
    if sides.iter().any(|side| !side.has_lengths) {
        return Vec::new();
    }
    let mut by_class: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
    let mut wholes = [0; 2];
    for (at, side) in sides.into_iter().enumerate() {
        for stratum in &side.strata {
            let class = stratum.len_bytes.checked_next_power_of_two();
            let ios = stratum.ios as u64;
            by_class.entry(class.unwrap_or(u64::MAX)).or_default()[at] += ios;
            wholes[at] += ios;
        }
    }
    let of_class = |(upper_bytes, ios): (u64, [u64; 2])| SizeShare {
        upper_bytes,
        shares: [0, 1].map(|at| Share::new(ios[at], wholes[at])),
    };
    let change = |size: &SizeShare| (size.shares[1].value() - size.shares[0].value()).abs();
    let mut sizes: Vec<SizeShare> = by_class.into_iter().map(of_class).collect();
    sizes.retain(|size| change(size) > 1.0 - SAME);
    sizes.small_sort_by(|one, other| change(other).total_cmp(&change(one)));
    sizes.truncate(SIZES_MAX);
    sizes.small_sort_by_key(|size| size.upper_bytes);
    sizes
}

/// The key of like I/O.
type MixKey = (u8, u64);

/// Compares the mix of I/O on both sides; `None` if a side has no I/O.
pub fn compare(before: &Observed, after: &Observed) -> Option<Mix> {
    let has_lengths = before.has_lengths && after.has_lengths;
    let detail = match has_lengths {
        false => LengthDetail::None,
        true if before.are_lengths_rounded || after.are_lengths_rounded => LengthDetail::Classes,
        true => LengthDetail::Each,
    };
    let sides = [before, after].map(|side| by_key(&side.strata, detail));
    let totals = [0, 1].map(|side| sides[side].values().map(|stratum| stratum.ios).sum::<f64>());
    if totals.iter().any(|total| *total <= 0.0) {
        return None;
    }
    let share = |side: usize, key: &MixKey| {
        sides[side]
            .get(key)
            .map_or(0.0, |stratum| stratum.ios / totals[side])
    };
    let common: Vec<(f64, [&Stratum; 2])> = sides[0]
        .iter()
        .filter_map(|(key, mine)| {
            let theirs = sides[1].get(key)?;
            Some((share(0, key).min(share(1, key)), [mine, theirs]))
        })
        .collect();
    let overlap = common
        .iter()
        .map(|(weight, _)| weight)
        .sum::<f64>()
        .min(1.0);
    let (mean_ns, log_variance) = weighted(&common, overlap).unzip();
    let read_share = [0, 1].map(|side| {
        let reads = sides[side]
            .iter()
            .filter(|((op, _), _)| *op == Op::Read as u8);
        reads.map(|(_, stratum)| stratum.ios).sum::<f64>() / totals[side]
    });
    Some(Mix {
        by: match detail {
            LengthDetail::None => "operation",
            LengthDetail::Classes => "operation and power of two of the length",
            LengthDetail::Each => "operation and length",
        },
        overlap,
        read_share,
        mean_ns,
        log_variance: log_variance.unwrap_or(0.0),
        unlike_lengths: if has_lengths {
            None
        } else {
            unlike_lengths(&common)
        },
    })
}

/// The detail in which both sides have lengths.
#[derive(Clone, Copy)]
enum LengthDetail {
    None,
    /// Up to a power of two, and above the half of it.
    Classes,
    Each,
}

/// Strata by their key; lengths are combined as far as one side does not separate them.
fn by_key(strata: &[Stratum], detail: LengthDetail) -> BTreeMap<MixKey, Stratum> {
    let mut by_key: BTreeMap<MixKey, Vec<Stratum>> = BTreeMap::new();
    for stratum in strata {
        let length = match detail {
            LengthDetail::None => 0,
            LengthDetail::Classes => stratum
                .len_bytes
                .checked_next_power_of_two()
                .unwrap_or(u64::MAX),
            LengthDetail::Each => stratum.len_bytes,
        };
        by_key
            .entry((stratum.op as u8, length))
            .or_default()
            .push(*stratum);
    }
    by_key
        .into_iter()
        .filter_map(|(key, strata)| Some((key, together(&strata)?)))
        .collect()
}

/// Several strata as one: means weighted by I/O, unknown where one of them is.
fn together(strata: &[Stratum]) -> Option<Stratum> {
    let [first, others @ ..] = strata else {
        return None;
    };
    if others.is_empty() {
        return Some(*first);
    }
    let ios: f64 = strata.iter().map(|stratum| stratum.ios).sum();
    let mean = |value: &dyn Fn(&Stratum) -> Option<f64>| -> Option<f64> {
        let known = strata.iter().filter(|stratum| value(stratum).is_some());
        let weight: f64 = known.clone().map(|stratum| stratum.ios).sum();
        let sum: Option<f64> = known
            .map(|stratum| Some(value(stratum)? * stratum.ios))
            .sum();
        sum.filter(|_| weight > 0.0).map(|sum| sum / weight)
    };
    Some(Stratum {
        op: first.op,
        len_bytes: mean(&|stratum| Some(stratum.len_bytes as f64)).unwrap_or(0.0) as u64,
        ios,
        mean_ns: mean(&|stratum| stratum.mean_ns),
        ns_mean_variance: None,
    })
}

/// Mean latencies over the I/O that both sides have, and the variance of the logarithm of their ratio.
fn weighted(common: &[(f64, [&Stratum; 2])], overlap: f64) -> Option<([f64; 2], f64)> {
    let timed: Vec<(f64, [f64; 2], [f64; 2])> = common
        .iter()
        .filter_map(|(weight, [before, after])| {
            let variance = |stratum: &Stratum| stratum.ns_mean_variance.unwrap_or(0.0);
            Some((
                *weight,
                [before.mean_ns?, after.mean_ns?],
                [variance(before), variance(after)],
            ))
        })
        .collect();
    let covered: f64 = timed.iter().map(|(weight, ..)| weight).sum();
    if covered < SAME * overlap || covered <= 0.0 {
        return None;
    }
    let mean = |side: usize| {
        timed
            .iter()
            .map(|(weight, ns, _)| weight / covered * ns[side])
            .sum::<f64>()
    };
    let means = [mean(0), mean(1)];
    if means.iter().any(|mean| *mean <= 0.0) {
        return None;
    }
    let relative = |side: usize| {
        let variance = |(weight, _, variances): &(f64, [f64; 2], [f64; 2])| {
            (weight / covered).powi(2) * variances[side]
        };
        timed.iter().map(variance).sum::<f64>() / (means[side] * means[side])
    };
    Some((means, relative(0) + relative(1)))
}

fn unlike_lengths(common: &[(f64, [&Stratum; 2])]) -> Option<(Op, [u64; 2])> {
    let unlike = |(weight, [before, after]): &&(f64, [&Stratum; 2])| {
        let lengths = [before.len_bytes as f64, after.len_bytes as f64];
        let is_known = lengths.iter().all(|length| *length > 0.0);
        let factor = lengths[0].max(lengths[1]) / lengths[0].min(lengths[1]);
        *weight >= OP_SHARE_MIN && is_known && factor > LEN_FACTOR_MAX
    };
    common
        .iter()
        .find(unlike)
        .map(|(_, [before, after])| (before.op, [before.len_bytes, after.len_bytes]))
}
