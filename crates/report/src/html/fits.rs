//! The fit of the I/O on each requested grid, in every place.

use plumb_diagnose::Analysis;
use plumb_diagnose::analysis::GridFit;
use plumb_geometry::Bounds;
use plumb_profile::fit::FitTally;
use plumb_profile::latency_fit::LatencyByFit;

use super::markup::Markup;
use super::page::{or_dash, table};
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
                    if all.rounded > 0 {
                        said.push(format!("{name}, {}: {}.", fit.grid, all.lengths_dropped()));
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
        "times the blocks needed",
        "amplification at most",
    ];
    table(m, "Fit on the grids", &columns, &rows);
    said.iter()
        .for_each(|words| m.leaf("p", &[("class", "dim")], words));
}

/// A line of sums.
#[must_use]
pub fn row(names: [&str; 3], tally: &FitTally, amplification: Option<Bounds<f64>>) -> Vec<String> {
    let share = |part| format::share_within(part, tally.ios);
    let mut row: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    row.extend([
        format::count(tally.ios),
        share(tally.misaligned),
        share(tally.odd_length),
        share(tally.split),
        share(tally.crossing),
        or_dash(tally.cells_ratio(), ratio),
        or_dash(amplification, ratio),
    ]);
    row
}

fn ratio(ratio: Bounds<f64>) -> String {
    format::factor_within(ratio, 2)
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
            "unfitting I/O differ by {} (95 % interval {} to {}) from fitting ones of the same operation, \
             length and stream bit; {} of {} compared. A difference, not a cost.",
            format::signed_ns(*difference_ns),
            format::signed_ns(*low_ns),
            format::signed_ns(*high_ns),
            format::count(*compared),
            format::count(*unfitting)
        )),
    }
}
