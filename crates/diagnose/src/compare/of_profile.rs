//! A profile: each window of its course over time is an observation.

use std::collections::BTreeMap;

use plumb_geometry::{group_digits, plural};
use plumb_profile::Profile;
use plumb_profile::timeline::Window;
use plumb_trace::Op;
use plumb_trace::series::Span;

use super::law::Law;
use super::mix::TIMED_MIN;
use super::slice::{TimeSlice, batched};
use super::{Observed, OnGrid, Sampling, Stratum};
use crate::analysis::Analysis;
use crate::share::Share;

/// The first and the last window are only partly within the recording. They are left out if there are at least this
/// many.
const WITHOUT_ENDS_MIN: usize = 5;

/// In flight and rates times latencies may differ by this share: the histogram of depths has steps of a sixteenth, and I/O
/// at both ends have no latency.
const LAW_SLACK: f64 = 0.15;

/// The measurements of a profile; `analysis` is of the same profile.
#[must_use]
pub fn of_profile(profile: &Profile, analysis: &Analysis) -> Observed {
    let has_latency = !analysis.pairing_unsound;
    let (seen, seconds, slices) = slices(profile, has_latency);
    let op = |op: Op| analysis.ops.iter().find(|summary| summary.op == op.word());
    let losses = &analysis.losses;
    let lost = losses.lost.saturating_add(losses.damaged);
    let mut doubts = Vec::new();
    if !has_latency {
        doubts.push("completions missing: its latencies may be those of other I/O".to_owned());
    }
    if losses.missing_files > 0 {
        doubts.push(format!(
            "{} of the recording missing",
            plural(losses.missing_files, "file")
        ));
    }
    if lost > 0 {
        doubts.push(format!("{} lost", plural(lost, "event")));
    }
    if analysis.pieces > 1 {
        doubts.push(format!("put together of {} recordings", analysis.pieces));
    }
    Observed {
        device: profile.device.clone(),
        source: format!(
            "profile of the {} layer, {} I/O",
            profile.layer.word(),
            group_digits(profile.ios())
        ),
        size_bytes: profile.size_bytes,
        layer: Some(profile.layer),
        span: Span::Device,
        is_closed_loop: false,
        sampling: Sampling {
            unit: "window",
            seconds: Some(seconds),
            seen,
        },
        slices: batched(slices),
        strata: strata(profile, has_latency),
        has_lengths: !profile.places.table.is_empty(),
        are_lengths_rounded: profile.places.table.are_lengths_rounded(),
        quantiles: [Op::Read, Op::Write].map(|wanted| op(wanted).and_then(|op| op.device.clone())),
        stretches: [Vec::new(), Vec::new()],
        random: random(profile, analysis),
        grids: grids(analysis),
        law: law(profile, analysis),
        lost: Share::new(lost, profile.ios().saturating_add(lost)),
        doubts,
    }
}

/// How many windows there were, how long one is, and those that count. A window that is not there was idle.
fn slices(profile: &Profile, has_latency: bool) -> (u64, f64, Vec<TimeSlice>) {
    let timeline = &profile.timeline;
    let width = timeline.width_ns();
    let seconds = width as f64 / 1e9;
    let idle = TimeSlice {
        seconds,
        bytes: [Some(0.0); 2],
        ..TimeSlice::default()
    };
    let mut slices = Vec::new();
    let mut next = None;
    for (start_ns, window) in timeline.iter() {
        // At most as many as a timeline holds.
        while next.is_some_and(|next| next < start_ns) {
            slices.push(idle);
            next = next.and_then(|next: i64| next.checked_add_unsigned(width));
        }
        slices.push(slice(window, seconds, has_latency));
        next = start_ns.checked_add_unsigned(width);
    }
    let seen = slices.len() as u64;
    if slices.len() >= WITHOUT_ENDS_MIN {
        slices.pop();
        slices.remove(0);
    }
    (seen, seconds, slices)
}

fn slice(window: &Window, seconds: f64, has_latency: bool) -> TimeSlice {
    let (timed, ns_sum) = match has_latency {
        true => (window.timed, window.ns_sum),
        false => (0, 0),
    };
    TimeSlice {
        seconds,
        ios: [
            window.read_sizes.total() as f64,
            window.write_sizes.total() as f64,
        ],
        bytes: [
            Some(window.read_bytes as f64),
            Some(window.write_bytes as f64),
        ],
        timed: timed as f64,
        ns_sum: ns_sum as f64,
        ..TimeSlice::default()
    }
}

/// Sums of one operation and length.
#[derive(Default)]
struct Sums {
    ios: u64,
    timed: u64,
    ns: u128,
    squared_ns: u128,
}

fn strata(profile: &Profile, has_latency: bool) -> Vec<Stratum> {
    let table = &profile.places.table;
    let mut sums: BTreeMap<(u8, u64), Sums> = BTreeMap::new();
    for (key, row) in table
        .iter()
        .filter(|(key, _)| matches!(key.op(), Op::Read | Op::Write))
    {
        let len_bytes = key.length().saturating_mul(table.unit_bytes());
        let sum = sums.entry((key.op() as u8, len_bytes)).or_default();
        sum.ios = sum.ios.saturating_add(row.ios);
        sum.timed = sum.timed.saturating_add(row.timed);
        sum.ns = sum.ns.saturating_add(row.ns_sum);
        sum.squared_ns = sum.squared_ns.saturating_add(row.ns_squared_sum);
    }
    let strata = sums.into_iter().map(|((op, len_bytes), sum)| {
        let timed = sum.timed as f64;
        let is_timed = has_latency && sum.timed >= TIMED_MIN;
        let mean = is_timed.then(|| sum.ns as f64 / timed);
        let spread =
            |mean: f64| (sum.squared_ns as f64 / timed - mean * mean).max(0.0) / (timed - 1.0);
        Stratum {
            op: Op::from_code(op).unwrap_or(Op::Other),
            len_bytes,
            ios: sum.ios as f64,
            mean_ns: mean,
            ns_mean_variance: mean.filter(|_| !table.is_spread_unknown()).map(spread),
        }
    });
    strata.collect()
}

/// Stream heads of all reads and writes; `None` where nothing can be said of streams.
fn random(profile: &Profile, analysis: &Analysis) -> Option<Share> {
    let all = analysis.random_by_size.first()?;
    let is_known = analysis.streams_unknown(profile).is_none() && all.ios > 0;
    is_known.then(|| Share::new(all.heads, all.ios))
}

fn grids(analysis: &Analysis) -> Vec<OnGrid> {
    let fits = analysis
        .device()
        .into_iter()
        .flat_map(|device| &device.grids);
    let known = fits.filter_map(|fit| {
        let all = fit.all.as_ref().ok()?;
        Some(OnGrid {
            grid: fit.grid,
            misaligned: Share::between(all.misaligned, all.ios),
            amplification: [fit.read_amplification, fit.write_amplification]
                .map(|ratio| ratio.and_then(|ratio| ratio.known())),
        })
    });
    known.collect()
}

/// Over the whole profile: windows do not have the number in flight.
fn law(profile: &Profile, analysis: &Analysis) -> Option<Law> {
    let in_flight = analysis.in_flight.as_ref()?.depth_mean;
    let seconds = profile.ordered.in_flight.depth_ns.total() as f64 / 1e9;
    let ns = profile
        .places
        .table
        .iter()
        .map(|(_, row)| row.ns_sum as f64)
        .sum::<f64>();
    let expected = ns / 1e9 / seconds;
    let is_broken = (in_flight - expected).abs() > LAW_SLACK * in_flight.max(expected);
    (seconds > 0.0).then_some(Law {
        in_flight,
        expected,
        checked: 1,
        broken: u64::from(is_broken),
        line: None,
    })
}
