//! Several runs on the page of a benchmark: their averages, and their joint meaning.

use plumb_load::result::bench::{BenchRun, Study, Sweep};
use plumb_load::series::OffsetRun;
use plumb_load::series::gather::Gain;

use super::markup::Markup;
use super::page::{figure, or_dash, table};
use super::scale::{Linear, Tick, multiples, round_step, tick_label};
use super::svg::{self, Plot};
use crate::bench::{study_words, sweep_words};
use crate::format::{bytes, count, digits, ns};

/// The verdict of a sweep, with its rates as a picture and a table.
pub fn sweep(m: &mut Markup, sweep: &Sweep) {
    m.leaf("h2", &[], &format!("Offsets on {}", sweep.target));
    for (at, words) in sweep_words(sweep).iter().enumerate() {
        m.leaf(
            "p",
            &[("class", if at == 0 { "verdict" } else { "dim" })],
            words,
        );
    }
    rates(m, sweep);
    let rows: Vec<Vec<String>> = sweep
        .offsets
        .iter()
        .map(|at| {
            vec![
                count(at.offset),
                digits(at.ios_per_second()),
                count(at.rates.len() as u64),
            ]
        })
        .collect();
    table(
        m,
        "",
        &["offset, bytes", "I/O a second", "intervals"],
        &rows,
    );
}

/// A step for each offset, in the order of the runs.
fn rates(m: &mut Markup, sweep: &Sweep) {
    let highest = sweep
        .offsets
        .iter()
        .map(OffsetRun::ios_per_second)
        .fold(1.0, f64::max)
        * 1.05;
    let plot = Plot::WIDE;
    let title = "I/O a second by offset";
    figure(
        m,
        title,
        "each step is a run, in the order in which they were made",
        |m| {
            svg::picture(m, plot, title, |m| {
                let y = Linear {
                    domain: (0.0, highest),
                    range: (plot.bottom(), plot.top),
                };
                let step = round_step(highest, 4.0);
                let marks = multiples(step, highest).into_iter();
                let ticks = marks.map(|mark| Tick {
                    at: y.at(mark),
                    label: tick_label(mark, step),
                });
                svg::y_axis(m, plot, &ticks.collect::<Vec<_>>(), "I/O a second");
                let runs = sweep.offsets.len() as f64;
                let x = Linear {
                    domain: (0.0, runs),
                    range: (plot.left, plot.right()),
                };
                // A label for every run of a few, for some of many.
                let each = (sweep.offsets.len() / 16).max(1);
                let labels = sweep.offsets.iter().enumerate().step_by(each);
                let labels = labels.map(|(at, run)| Tick {
                    at: x.at(at as f64 + 0.5),
                    label: count(run.offset),
                });
                svg::x_axis(m, plot, &labels.collect::<Vec<_>>(), "offset, bytes");
                let steps = sweep.offsets.iter().enumerate().map(|(at, run)| {
                    (
                        x.at(at as f64),
                        x.at(at as f64 + 1.0),
                        Some(y.at(run.ios_per_second())),
                    )
                });
                svg::path(m, "lr", &svg::steps(&steps.collect::<Vec<_>>()));
            });
        },
    );
}

/// The table of a study.
pub fn study(m: &mut Markup, study: &Study) {
    m.leaf(
        "h2",
        &[],
        &format!("Records of {}: {}", bytes(study.record_bytes), study.ops),
    );
    for words in study_words(study) {
        m.leaf("p", &[], &words);
    }
    let row = |row: &Gain| {
        vec![
            row.combination.order().to_owned(),
            count(u64::from(row.combination.threads)),
            count(u64::from(row.combination.records)),
            digits(row.ios_per_second),
            digits(row.records_per_second),
            or_dash(row.gain, |gain| format!("{}x", digits(gain))),
        ]
    };
    let rows: Vec<Vec<String>> = study.rows.iter().map(row).collect();
    let columns = [
        "<order",
        "threads",
        "records an I/O",
        "I/O a second",
        "records a second",
        "gain",
    ];
    table(m, "", &columns, &rows);
}

/// The averages of all runs.
pub fn averages(m: &mut Markup, runs: &[BenchRun]) {
    let row = |run: &BenchRun| {
        let average = run.average.as_ref();
        vec![
            run.name.clone().unwrap_or_default(),
            or_dash(average, |average| {
                format!("{} to {}", average.first, average.interval.number)
            }),
            or_dash(average, |average| digits(average.ios_per_second)),
            or_dash(average.and_then(|average| average.interval.time), |time| {
                ns(time.mean_ns as u64)
            }),
            or_dash(average, |average| {
                format!("{:.1}", average.interval.in_flight_mean)
            }),
        ]
    };
    let rows: Vec<Vec<String>> = runs.iter().map(row).collect();
    let columns = [
        "<run",
        "intervals",
        "I/O a second",
        "mean time",
        "in flight",
    ];
    table(m, "Averages", &columns, &rows);
}
