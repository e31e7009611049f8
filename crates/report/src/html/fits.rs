//! How the I/O lie on each grid asked for, in every place.

use plumb_diagnose::Analysis;
use plumb_diagnose::analysis::GridFit;
use plumb_profile::fit::FitTally;
use plumb_profile::latency_fit::LatencyByFit;

use super::markup::Markup;
use super::page::{NONE, or_dash, share_of, table};
use super::phases::is_whole;
use crate::format;

/// Draws the table.
pub fn draw(m: &mut Markup, analysis: &Analysis) {
    let mut rows = Vec::new();
    let mut said = Vec::new();
    for place in analysis
        .places
        .iter()
        .filter(|place| !is_whole(place, analysis))
    {
        let name = place.name.as_deref().unwrap_or("device");
        for fit in &place.grids {
            let grid = format!("{} ({})", fit.grid, fit.source.word());
            match &fit.all {
                Ok(all) => {
                    let sides = [
                        ("all", Some(all), None),
                        ("read", fit.reads.as_ref(), fit.read_amplification),
                        ("write", fit.writes.as_ref(), fit.write_amplification),
                    ];
                    for (op, tally, amplification) in sides {
                        let Some(tally) = tally else { continue };
                        rows.push(row([name, &grid, op], tally, amplification));
                    }
                    if let Err(why) = all.lengths_known() {
                        said.push(format!("{name}, {}: {why}.", fit.grid));
                    }
                    said.extend(latency(fit).map(|words| format!("{name}, {}: {words}", fit.grid)));
                }
                Err(why) => said.push(format!("{name}, {}: not known: {why}.", fit.grid)),
            }
        }
    }
    let columns = [
        "<place",
        "<grid",
        "<operation",
        "I/O",
        "start off it",
        "length odd",
        "split",
        "cross a boundary",
        "cells per cell needed",
        "amplification at most",
    ];
    table(m, "Fit on the grids", &columns, &rows);
    said.iter()
        .for_each(|words| m.leaf("p", &[("class", "dim")], words));
}

/// A line of sums; the shares of lengths are of the I/O whose length is known.
#[must_use]
pub fn row(names: [&str; 3], tally: &FitTally, amplification: Option<f64>) -> Vec<String> {
    let known = tally.known_length();
    let of_known = |ios| match tally.lengths_known() {
        Ok(()) => share_of(ios, known),
        Err(_) => NONE.to_owned(),
    };
    let mut row: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    row.extend([
        format::count(tally.ios),
        share_of(tally.misaligned, tally.ios),
        of_known(tally.odd_length),
        of_known(tally.split),
        of_known(tally.crossing),
        or_dash(tally.cells_ratio(), format::digits),
        or_dash(amplification, format::digits),
    ]);
    row
}

fn latency(fit: &GridFit) -> Option<String> {
    match fit.latency.as_ref()? {
        LatencyByFit::NotComparable { why } => {
            Some(format!("latency by fit is not comparable: {why}."))
        }
        LatencyByFit::Difference {
            difference_ns,
            low_ns,
            high_ns,
            compared,
            unfitting,
            ..
        } => Some(format!(
            "unfitting I/O differ by {:+.1} µs (95 % interval {:+.1} to {:+.1} µs) from fitting ones of the same operation, \
             length and stream bit; {} of {} compared. A difference, not a cost.",
            difference_ns / 1e3,
            low_ns / 1e3,
            high_ns / 1e3,
            format::count(*compared),
            format::count(*unfitting)
        )),
    }
}
