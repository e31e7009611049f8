//! The report of `plumb probe` as one page: the verdict, what a read costs by where it starts, and what was looked for.

use plumb_diagnose::Finding;

use super::markup::Markup;
use super::page::{document, figure, table};
use super::scale::{Linear, Tick, multiples, round_step};
use super::svg::{self, Plot};
use crate::format::{bytes, ns};
use crate::probe::{Probed, WRITES, figures, grid_words, headline, searched_words};

/// Space between bars, as a share of one.
const GAP: f64 = 0.2;

/// The page.
#[must_use]
pub fn probed(probed: &Probed<'_>, findings: &[Finding], version: &str, command: &str) -> String {
    document(&format!("plumb probe: {}", probed.target), |m| {
        m.leaf("h1", &[], &format!("Probe of {}", probed.target));
        m.leaf("p", &[("class", "verdict")], &headline(probed));
        if let Some(reason) = &probed.reason {
            m.leaf("p", &[], reason);
        }
        if !probed.commands.is_empty() {
            m.leaf("pre", &[], &probed.commands.join("\n"));
        }
        m.el("ul", &[], |m| {
            for finding in findings {
                m.leaf("li", &[], &format!("{}: {}", finding.id(), finding.summary()));
            }
            figures(probed).iter().for_each(|(name, words)| m.leaf("li", &[], &format!("{name}: {words}")));
            m.leaf("li", &[], WRITES);
        });
        sweep(m, probed);
        hints(m, probed);
        let rows = probed.searched.iter().map(|one| vec![bytes(one.granularity_bytes), searched_words(one)]);
        table(m, "What was looked for", &["granularity", "<found"], &rows.collect::<Vec<_>>());
        m.el("ul", &[], |m| probed.notes.iter().for_each(|note| m.leaf("li", &[], note)));
        m.el("footer", &[], |m| {
            m.text(&format!("plumb {version}: "));
            m.leaf("code", &[], command);
        });
    })
}

fn sweep(m: &mut Markup, probed: &Probed<'_>) {
    let most = probed.sweep.iter().map(|bar| bar.ns).fold(0.0, f64::max);
    if most <= 0.0 {
        return;
    }
    let len = probed.penalty.map_or(0, |penalty| penalty.len_bytes);
    let title = format!("Reads of {} by where they start", bytes(len));
    figure(m, &title, "time of a read; those on the grid are the short bars", |m| {
        let plot = Plot::WIDE;
        svg::picture(m, plot, &title, |m| draw(m, plot, probed, most));
    });
    let rows = probed.sweep.iter().map(|bar| vec![bytes(bar.offset_bytes), ns(bar.ns as u64)]);
    table(m, "", &["start", "time"], &rows.collect::<Vec<_>>());
}

fn draw(m: &mut Markup, plot: Plot, probed: &Probed<'_>, most: f64) {
    let height = Linear { domain: (0.0, most * 1.05), range: (plot.bottom(), plot.top) };
    let marks = multiples(round_step(most, 4.0), most);
    let ticks: Vec<Tick> =
        marks.into_iter().map(|value| Tick { at: height.at(value), label: ns(value as u64) }).collect();
    svg::y_axis(m, plot, &ticks, "time of a read");
    let width = plot.width / probed.sweep.len() as f64;
    let mut starts = Vec::new();
    for (at, bar) in probed.sweep.iter().enumerate() {
        let left = plot.left + at as f64 * width;
        let column = (left + width * GAP / 2.0, left + width * (1.0 - GAP / 2.0), Some(height.at(bar.ns)));
        let is_on = probed.grid.is_some_and(|grid| grid.offset_bytes == bar.offset_bytes);
        svg::path(m, if is_on { "fr" } else { "fo" }, &svg::area(&[column], plot.bottom()));
        let words = format!("{}: {}", bytes(bar.offset_bytes), ns(bar.ns as u64));
        svg::hint(m, (left, left + width), (plot.top, plot.bottom()), &words);
        starts.push(Tick { at: left + width / 2.0, label: bytes(bar.offset_bytes) });
    }
    svg::x_axis(m, plot, &starts, "start, modulo the granularity");
}

fn hints(m: &mut Markup, probed: &Probed<'_>) {
    let rows = probed.hints.iter().map(|hint| {
        let what = format!("{} of {}", hint.what, hint.layer);
        vec![what, grid_words(hint.grid), hint.source.clone(), hint.why.clone()]
    });
    let columns = ["<what", "<grid", "<stated by", "<the measurement"];
    table(m, "What is stated", &columns, &rows.collect::<Vec<_>>());
}
