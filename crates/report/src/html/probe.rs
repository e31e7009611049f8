//! The report of `plumb probe` as one page: the verdict, the cost of an I/O by its start, and the searched
//! granularities.

use plumb_load::result::probe::ProbeReport;
use plumb_model::Finding;

use super::findings::steps;
use super::markup::Markup;
use super::page::{document, figure, legend, table};
use super::scale::{Linear, Tick, multiples, round_step, tick_label};
use super::svg::{self, Plot};
use crate::format::{bytes, ns};
use crate::probe::{
    figures, first_word, grid_words, headline, open_words, searched_words, shown, source_words,
};

/// Space between bars, as a share of one.
const GAP: f64 = 0.2;

/// The page.
#[must_use]
pub fn probed(
    probed: &ProbeReport<'_>,
    findings: &[Finding],
    version: &str,
    command: &str,
) -> String {
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
                m.leaf(
                    "li",
                    &[],
                    &format!(
                        "{}: {}",
                        finding.rule(),
                        crate::words::finding(finding).summary
                    ),
                );
            }
            figures(probed)
                .iter()
                .for_each(|(name, words)| m.leaf("li", &[], &format!("{name}: {words}")));
            m.leaf("li", &[], open_words(probed.op));
        });
        findings.iter().for_each(|finding| steps(m, &finding.fix));
        sweep(m, probed);
        pace(m, probed);
        hints(m, probed);
        let rows = shown(probed)
            .map(|one| vec![bytes(one.granularity_bytes), searched_words(one, probed.op)]);
        table(
            m,
            "Measured granularities",
            &["granularity", "<found"],
            &rows.collect::<Vec<_>>(),
        );
        m.el("ul", &[], |m| {
            probed.notes.iter().for_each(|note| m.leaf("li", &[], note))
        });
        m.el("footer", &[], |m| {
            m.text(&format!("plumb {version}: "));
            m.leaf("code", &[], command);
        });
    })
}

fn sweep(m: &mut Markup, probed: &ProbeReport<'_>) {
    let most = probed.sweep.iter().map(|bar| bar.ns).fold(0.0, f64::max);
    if most <= 0.0 {
        return;
    }
    let len = probed.penalty.map_or(0, |penalty| penalty.len_bytes);
    let title = format!(
        "{} of {} by where they start",
        first_word(probed.op),
        bytes(len)
    );
    let caption = format!(
        "time of a {}, by its start modulo the granularity",
        probed.op.one()
    );
    figure(m, &title, &caption, |m| {
        let plot = Plot::WIDE;
        svg::picture(m, plot, &title, |m| draw(m, plot, probed, most));
        legend(
            m,
            [
                ("fr", "on the grid".to_owned()),
                ("fo", "off it".to_owned()),
            ],
        );
    });
    let rows = probed
        .sweep
        .iter()
        .map(|bar| vec![bytes(bar.offset_bytes), ns(bar.ns as u64)]);
    table(m, "", &["start", "time"], &rows.collect::<Vec<_>>());
}

fn draw(m: &mut Markup, plot: Plot, probed: &ProbeReport<'_>, most: f64) {
    let height = Linear {
        domain: (0.0, most * 1.12),
        range: (plot.bottom(), plot.top),
    };
    svg::y_axis(
        m,
        plot,
        &time_ticks(height, most),
        &format!("time of a {}", probed.op.one()),
    );
    let width = plot.width / probed.sweep.len() as f64;
    let mut starts = Vec::new();
    for (at, bar) in probed.sweep.iter().enumerate() {
        let left = plot.left + at as f64 * width;
        let column = (
            left + width * GAP / 2.0,
            left + width * (1.0 - GAP / 2.0),
            Some(height.at(bar.ns)),
        );
        let is_on = probed
            .grid
            .is_some_and(|grid| grid.offset_bytes == bar.offset_bytes);
        svg::path(
            m,
            if is_on { "fr" } else { "fo" },
            &svg::area(&[column], plot.bottom()),
        );
        if is_on {
            let (middle, top) = (left + width / 2.0, plot.top + 14.0);
            svg::label(m, "mid", (middle, plot.top + 10.0), "boundary");
            svg::line(
                m,
                "mark",
                (middle, top),
                (middle, height.at(bar.ns).max(top)),
            );
        }
        let words = format!("{}: {}", bytes(bar.offset_bytes), ns(bar.ns as u64));
        svg::hint(m, (left, left + width), (plot.top, plot.bottom()), &words);
        starts.push(Tick {
            at: left + width / 2.0,
            label: bytes(bar.offset_bytes),
        });
    }
    svg::x_axis(m, plot, &starts, "start, modulo the granularity");
}

/// The pace over the probe, where it was not kept.
fn pace(m: &mut Markup, probed: &ProbeReport<'_>) {
    let Some((drift, last)) = probed.drift.zip(probed.pace.last()) else {
        return;
    };
    let title = "Pace over the probe";
    let how = &format!(
        "time of a short {}; the broken line is where it changed",
        probed.op.one()
    );
    figure(m, title, how, |m| {
        let plot = Plot {
            height: 140.0,
            ..Plot::WIDE
        };
        svg::picture(m, plot, title, |m| {
            let most = probed.pace.iter().map(|pace| pace.ns).fold(0.0, f64::max);
            let height = Linear {
                domain: (0.0, most * 1.05),
                range: (plot.bottom(), plot.top),
            };
            svg::y_axis(
                m,
                plot,
                &time_ticks(height, most),
                &format!("time of a {}", probed.op.one()),
            );
            let end = last.at.as_secs_f64().max(f64::MIN_POSITIVE);
            let x = Linear {
                domain: (0.0, end),
                range: (plot.left, plot.right()),
            };
            let step = round_step(end, 6.0);
            let tick = |at: f64| Tick {
                at: x.at(at),
                label: tick_label(at, step),
            };
            let ticks: Vec<Tick> = multiples(step, end).into_iter().map(tick).collect();
            svg::x_axis(m, plot, &ticks, "time of all I/O, s");
            let ends = probed.pace[1..]
                .iter()
                .map(|pace| pace.at.as_secs_f64())
                .chain([end]);
            let columns = probed.pace.iter().zip(ends).map(|(pace, until)| {
                (
                    x.at(pace.at.as_secs_f64()),
                    x.at(until),
                    Some(height.at(pace.ns)),
                )
            });
            svg::path(m, "lr", &svg::steps(&columns.collect::<Vec<_>>()));
            let at = x.at(drift.at.as_secs_f64());
            svg::line(m, "mark", (at, plot.top), (at, plot.bottom()));
        });
    });
}

fn time_ticks(height: Linear, most: f64) -> Vec<Tick> {
    let marks = multiples(round_step(most, 4.0), most);
    marks
        .into_iter()
        .map(|value| Tick {
            at: height.at(value),
            label: ns(value as u64),
        })
        .collect()
}

fn hints(m: &mut Markup, probed: &ProbeReport<'_>) {
    let rows = probed.hints.iter().map(|hint| {
        let what = format!("{} of {}", hint.what, hint.layer);
        vec![
            what,
            grid_words(hint.grid),
            source_words(hint),
            format!("{}: {}", hint.outcome.word(), hint.why),
        ]
    });
    let columns = ["<layer", "<grid", "<stated by", "<the measurement"];
    table(
        m,
        "Statements of the device and layers",
        &columns,
        &rows.collect::<Vec<_>>(),
    );
}
