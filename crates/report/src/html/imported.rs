//! A source's ready-made results: its own histograms and totals, in its own buckets, because finer data do not exist.

use plumb_geometry::{Bytes, plural};
use plumb_profile::Profile;
use plumb_profile::imported::{ForeignHistogram, Measured, Totals};

use super::markup::Markup;
use super::page::{or_dash, share_of, table};
use crate::format;

/// Most histograms that are shown.
const SHOWN_MAX: usize = 24;

/// Draws it, if there is any.
pub fn draw(m: &mut Markup, profile: &Profile) {
    let imported = &profile.imported;
    if imported.is_empty() {
        return;
    }
    m.leaf("h3", &[], "Counted by the source");
    totals(m, &imported.totals);
    m.class("div", "pair", |m| {
        for histogram in imported.histograms.iter().take(SHOWN_MAX) {
            m.el("div", &[], |m| one(m, histogram));
        }
    });
    if let Some(left) = imported
        .histograms
        .len()
        .checked_sub(SHOWN_MAX)
        .filter(|left| *left > 0)
    {
        m.leaf(
            "p",
            &[("class", "dim")],
            &format!("Not shown: {}.", plural(left as u64, "more histogram")),
        );
    }
}

fn one(m: &mut Markup, histogram: &ForeignHistogram) {
    let whole = histogram
        .buckets
        .iter()
        .fold(0, |sum: u64, (.., ios)| sum.saturating_add(*ios));
    let end = |value: Option<i64>| or_dash(value, |value| quantity(histogram.measured, value));
    let buckets = histogram.buckets.iter().filter(|(.., ios)| *ios > 0);
    let rows = buckets.map(|&(low, high, ios)| {
        vec![
            end(low),
            end(high),
            format::count(ios),
            share_of(ios, whole),
        ]
    });
    let op = histogram.op.map_or("all I/O", |op| op.word());
    let caption = format!("{}, {op}", name(histogram.measured));
    table(
        m,
        &caption,
        &["from", "to", "I/O", "share"],
        &rows.collect::<Vec<_>>(),
    );
    if let Some((min, max, mean)) = histogram.min_max_mean {
        let [min, max, mean] = [min, max, mean].map(|value| quantity(histogram.measured, value));
        m.leaf(
            "p",
            &[("class", "dim small")],
            &format!("Least {min}, most {max}, mean {mean}."),
        );
    }
}

fn name(measured: Measured) -> &'static str {
    match measured {
        Measured::LenBytes => "Length",
        Measured::SeekBytes => "Distance to the next I/O",
        Measured::DeviceNs => "Latency, issue to completion",
        Measured::InterarrivalNs => "Time between issues",
        Measured::Depth => "I/O in flight at an issue",
        Measured::ResidueBytes => "Start within the unit of the source",
    }
}

fn quantity(measured: Measured, value: i64) -> String {
    let sign = if value < 0 { "−" } else { "" };
    let words: fn(u64) -> String = match measured {
        Measured::SeekBytes => format::bytes,
        Measured::LenBytes | Measured::ResidueBytes => |bytes| Bytes(bytes).to_string(),
        Measured::DeviceNs | Measured::InterarrivalNs => format::ns,
        Measured::Depth => format::count,
    };
    format!("{sign}{}", words(value.unsigned_abs()))
}

fn totals(m: &mut Markup, totals: &[Totals]) {
    let rows = totals.iter().map(|totals| {
        vec![
            or_dash(totals.elapsed_ns, |ns| format::ns(ns.max(0).unsigned_abs())),
            format::count(totals.ios),
            format!(
                "{} ({})",
                format::count(totals.misaligned_ios),
                share_of(totals.misaligned_ios, totals.ios)
            ),
            format::bytes(totals.start_unit_bytes),
            format::bytes(totals.mean_offset_bytes),
            format!(
                "{} ({})",
                format::count(totals.odd_length_ios),
                share_of(totals.odd_length_ios, totals.ios)
            ),
            format::bytes(totals.len_unit_bytes),
        ]
    });
    let columns = [
        "observed",
        "I/O",
        "start off the unit",
        "unit",
        "mean offset",
        "length no multiple",
        "of",
    ];
    table(m, "Totals", &columns, &rows.collect::<Vec<_>>());
}
