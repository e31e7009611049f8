//! A benchmark as one page: figures, the course of rate and time, and how the times are spread.

use plumb_load::figures::{DirectionFigures, IntervalFigures, Measurement, Times};
use plumb_load::result::bench::{Bench, BenchRun, Sweep};

use super::bench_series as series;
use super::markup::Markup;
use super::over_time::{self, ChartLine};
use super::page::{document, figure, legend, table};
use super::scale::{Linear, Log, Tick};
use super::svg::{self, Plot};
use crate::bench::processor_words;
use crate::format::{bytes, count, ns, rate};

/// The page.
#[must_use]
pub fn benched(bench: &Bench) -> String {
    document("plumb bench", |m| {
        m.leaf("h1", &[], "Benchmark");
        bench.sweep.iter().for_each(|found| series::sweep(m, found));
        bench.study.iter().for_each(|found| series::study(m, found));
        if bench.runs.len() > 1 {
            series::averages(m, &bench.runs);
        }
        for run in &bench.runs {
            draw_run(m, run);
        }
        let limited = processor_words(bench);
        if !bench.notes.is_empty() || limited.is_some() {
            m.leaf("h3", &[], "Notes");
            m.el("ul", &[], |m| {
                let notes = bench.notes.iter().chain(&limited);
                notes.for_each(|note| m.leaf("li", &[], note));
            });
        }
    })
}

/// The page of a sweep alone.
#[must_use]
pub fn sweep(sweep: &Sweep) -> String {
    document("plumb compare", |m| {
        m.leaf("h1", &[], "Sweep of offsets");
        series::sweep(m, sweep);
    })
}

fn draw_run(m: &mut Markup, run: &BenchRun) {
    if let Some(name) = &run.name {
        m.leaf("h2", &[], name);
    }
    m.leaf("p", &[("class", "verdict")], &run.workload);
    rates(m, run);
    times(m, run);
    course(
        m,
        "I/O a second over time",
        "I/O a second",
        run,
        |interval| Some(interval.ios as f64 / interval.seconds.max(f64::MIN_POSITIVE)),
    );
    course(m, "Mean time over time", "ms", run, |interval| {
        interval.time.map(|time| time.mean_ns / 1e6)
    });
    spread(m, &run.total);
}

fn rates(m: &mut Markup, run: &BenchRun) {
    let row = |name: &str, measured: &Measurement, ended: &str| {
        let failed: u64 = measured.failures.iter().map(|failures| failures.ios).sum();
        vec![
            name.to_owned(),
            count(measured.ios),
            rate(measured.ios_per_second),
            format!("{}/s", bytes(measured.bytes_per_second as u64)),
            format!("{:.1}", measured.in_flight_mean),
            count(failed),
            ended.to_owned(),
        ]
    };
    let mut rows: Vec<Vec<String>> = run
        .targets
        .iter()
        .map(|target| row(&target.target, &target.measured, &target.ended))
        .collect();
    if rows.len() > 1 {
        rows.push(row("all", &run.total, ""));
    }
    let columns = [
        "<target",
        "I/O",
        "rate",
        "throughput",
        "in flight",
        "failed",
        "<ended",
    ];
    table(m, "", &columns, &rows);
}

fn times(m: &mut Markup, run: &BenchRun) {
    let targets = run
        .targets
        .iter()
        .map(|target| (target.target.as_str(), &target.measured));
    let all = (run.targets.len() > 1).then_some(("all", &run.total));
    let rows: Vec<Vec<String>> = targets
        .chain(all)
        .flat_map(|(name, measured)| times_rows(name, measured))
        .collect();
    times_table(m, "<target", &rows);
}

/// A table of times; the first column has this name.
pub fn times_table(m: &mut Markup, first: &str, rows: &[Vec<String>]) {
    let columns = [
        first, "<I/O", "<time", "mean", "p50", "p90", "p99", "p99.9", "max",
    ];
    table(m, "", &columns, rows);
}

/// The rows of measurements: both directions, and both ways to count.
pub fn times_rows<'a>(
    name: &'a str,
    measured: &'a Measurement,
) -> impl Iterator<Item = Vec<String>> + 'a {
    [("reads", &measured.reads), ("writes", &measured.writes)]
        .into_iter()
        .flat_map(move |(direction, side)| {
            let both = [
                ("due to complete", &side.response),
                ("issue to complete", &side.latency),
            ];
            both.into_iter().filter_map(move |(what, times)| {
                times
                    .as_ref()
                    .map(|times| times_row(name, direction, what, times))
            })
        })
}

/// A row of times.
pub fn times_row(name: &str, direction: &str, what: &str, times: &Times) -> Vec<String> {
    let shown = |value: i64| ns(value.unsigned_abs());
    let mut row = vec![
        name.to_owned(),
        direction.to_owned(),
        what.to_owned(),
        ns(times.mean_ns as u64),
    ];
    row.extend(
        [
            times.p50_ns,
            times.p90_ns,
            times.p99_ns,
            times.p999_ns,
            times.max_ns,
        ]
        .map(shown),
    );
    row
}

/// The intervals without the rest at the end of the run; that alone if nothing else was measured.
fn full_intervals(run: &BenchRun) -> impl Iterator<Item = &IntervalFigures> {
    let has_full = run.intervals.iter().any(|interval| !interval.is_partial);
    let intervals = run.intervals.iter();
    intervals.filter(move |interval| !(has_full && interval.is_partial))
}

/// A step line of something of each interval.
fn course(
    m: &mut Markup,
    title: &str,
    unit: &str,
    run: &BenchRun,
    what: impl Fn(&IntervalFigures) -> Option<f64>,
) {
    let stretch =
        |interval: &IntervalFigures| (interval.at_seconds - interval.seconds, interval.at_seconds);
    let stretches: Vec<(f64, f64)> = full_intervals(run).map(stretch).collect();
    let line = ChartLine {
        class: "lr",
        name: "",
        values: full_intervals(run).map(what).collect(),
    };
    let how = "the warm-up included; one step is an interval";
    over_time::draw(m, (title, how, unit), &stretches, &[line]);
}

/// The share of I/O that took no longer, by direction.
pub fn spread(m: &mut Markup, total: &Measurement) {
    let sides: Vec<(&str, &'static str, &DirectionFigures, &Times)> = [
        ("reads", "lr", &total.reads),
        ("writes", "lw", &total.writes),
    ]
    .into_iter()
    .filter_map(|(name, class, side)| Some((name, class, side, side.waited()?)))
    .collect();
    let bounds = sides
        .iter()
        .flat_map(|(.., times)| times.buckets.iter().map(|&(upper_ns, _)| upper_ns));
    let (low, high) = bounds.fold((u64::MAX, 1), |(low, high), ns| (low.min(ns), high.max(ns)));
    if sides.is_empty() {
        return;
    }
    let plot = Plot::WIDE;
    let how =
        "share of the I/O that took no longer; for I/O with a due time, counted from that time";
    figure(m, "Time, cumulative", how, |m| {
        svg::picture(m, plot, "Cumulative share of I/O by time", |m| {
            let y = Linear {
                domain: (0.0, 1.0),
                range: (plot.bottom(), plot.top),
            };
            let marks = [0.0, 0.25, 0.5, 0.75, 1.0];
            let ticks = marks.map(|mark| Tick {
                at: y.at(mark),
                label: format!("{:.0} %", mark * 100.0),
            });
            svg::y_axis(m, plot, &ticks, "share of I/O");
            let domain = (low.max(1) as f64 / 1.1, high as f64 * 1.1);
            let x = Log {
                domain,
                range: (plot.left, plot.right()),
            };
            svg::x_axis(m, plot, &x.time_ticks(300.0), "time of an I/O");
            for (_, class, side, times) in &sides {
                let mut before = x.at(domain.0);
                let mut sum = 0;
                let columns = times.buckets.iter().map(|&(upper_ns, ios)| {
                    let (from, to) = (before, x.at(upper_ns as f64));
                    before = to;
                    sum += ios;
                    (from, to, Some(y.at(sum as f64 / side.ios.max(1) as f64)))
                });
                svg::path(m, class, &svg::steps(&columns.collect::<Vec<_>>()));
            }
        });
        let entry = |(name, class, side, _): &(&str, &'static str, &DirectionFigures, &Times)| {
            (*class, format!("{name}, {} I/O", count(side.ios)))
        };
        legend(m, sides.iter().map(entry));
    });
}
