//! How long I/O took: by operation as a histogram and as a cumulative curve, and over time as mean and maximum.
//! The interval is named: from issue to completion.

use plumb_diagnose::analysis::{Analysis, Quantiles};
use plumb_profile::Profile;
use plumb_profile::histogram::{Counts, SUB_BUCKETS, log_linear_bounds};
use plumb_trace::Op;

use super::course::{ChartColumn, ChartCourse};
use super::markup::Markup;
use super::page::{figure, legend, not_known, table};
use super::scale::{Linear, Log, Tick, multiples, round_step, tick_label};
use super::svg::{self, Plot};
use crate::format;

/// Operations with a colour of their own: (operation, fill, line). The others are in the table only.
const DRAWN: [(Op, &str, &str); 3] = [
    (Op::Read, "fr", "lr"),
    (Op::Write, "fw", "lw"),
    (Op::Flush, "fo", "lo"),
];

/// Latencies of one operation.
struct LatencySeries<'a> {
    op: Op,
    fill: &'static str,
    line: &'static str,
    counts: &'a Counts,
    timed: u64,
}

impl LatencySeries<'_> {
    fn name(&self) -> String {
        format!("{}, {} timed", self.op.word(), format::count(self.timed))
    }
}

/// Draws all of it.
pub fn draw(m: &mut Markup, profile: &Profile, analysis: &Analysis) {
    let series: Vec<LatencySeries<'_>> = DRAWN
        .into_iter()
        .map(|(op, fill, line)| {
            let counts = &profile.op(op).device_ns;
            LatencySeries {
                op,
                fill,
                line,
                counts,
                timed: counts.total(),
            }
        })
        .filter(|series| series.timed > 0)
        .collect();
    if series.is_empty() {
        let why = "the source has no completion that belongs to an issue, or gives no times of it; \
                   see the notes on the inputs";
        return not_known(m, "Latency", why);
    }
    if analysis.pairing_unsound {
        let why = "completions are missing: the others may belong to other I/O";
        return not_known(m, "Latency", why);
    }
    let buckets = series
        .iter()
        .flat_map(|series| series.counts.iter().map(|(index, _)| index));
    let (low, high) = buckets.fold((usize::MAX, 0), |(low, high), index| {
        (low.min(index), high.max(index))
    });
    let octaves = (octave(low), octave(high));
    let x = Log {
        domain: (octave_ns(octaves.0), octave_ns(octaves.1 + 1)),
        range: (0.0, 1.0),
    };
    m.class("div", "pair", |m| {
        histogram(m, &series, octaves, x);
        cumulative(m, &series, x);
    });
    quantiles(m, analysis);
    over_time(m, profile);
}

/// The power of two of a bucket.
fn octave(index: usize) -> u32 {
    log_linear_bounds(index).0.max(1).ilog2()
}

fn octave_ns(octave: u32) -> f64 {
    2f64.powi(octave as i32)
}

fn histogram(m: &mut Markup, series: &[LatencySeries<'_>], octaves: (u32, u32), x: Log) {
    let plot = Plot::HALF;
    let x = Log {
        range: (plot.left, plot.right()),
        ..x
    };
    let how = "issue to completion; share of the operation's timed I/O in each power of two";
    figure(m, "Latency", how, |m| {
        svg::picture(m, plot, "Histogram of latency by operation", |m| {
            let shares: Vec<Vec<f64>> = series
                .iter()
                .map(|series| by_octave(series, octaves))
                .collect();
            let drawn = series.len();
            let highest = shares.iter().flatten().copied().fold(0.0, f64::max);
            let y = Linear {
                domain: (0.0, (highest * 1.06).min(1.0)),
                range: (plot.bottom(), plot.top),
            };
            percent_axis(m, plot, y, "share of timed I/O");
            for (at, (series, shares)) in series.iter().zip(&shares).enumerate() {
                let columns = (octaves.0..=octaves.1).zip(shares).map(|(octave, share)| {
                    let (left, right) = (x.at(octave_ns(octave)), x.at(octave_ns(octave + 1)));
                    let width = (right - left) * 0.88 / drawn as f64;
                    let left = left + (right - left) * 0.06 + width * at as f64;
                    (left, left + width, y.at(*share))
                });
                svg::path(m, series.fill, &svg::bars(columns, plot.bottom()));
            }
            hints(m, series, &shares, octaves, (x, plot));
            svg::x_axis(m, plot, &x.time_ticks(300.0), "latency");
        });
        legend(m, series.iter().map(|series| (series.fill, series.name())));
    });
}

fn by_octave(series: &LatencySeries<'_>, (first, last): (u32, u32)) -> Vec<f64> {
    let mut ios = vec![0u64; (last - first + 1) as usize];
    for (index, weight) in series.counts.iter() {
        if let Some(sum) = ios.get_mut(octave(index).saturating_sub(first) as usize) {
            *sum += weight;
        }
    }
    ios.into_iter()
        .map(|ios| ios as f64 / series.timed as f64)
        .collect()
}

fn hints(
    m: &mut Markup,
    series: &[LatencySeries<'_>],
    shares: &[Vec<f64>],
    octaves: (u32, u32),
    (x, plot): (Log, Plot),
) {
    for (at, octave) in (octaves.0..=octaves.1).enumerate() {
        let (from, to) = (octave_ns(octave), octave_ns(octave + 1));
        let mut words = format!("{} to {}", format::ns(from as u64), format::ns(to as u64));
        for (series, shares) in series.iter().zip(shares) {
            words.push_str(&format!(
                "\n{} {}",
                series.op.word(),
                format::percent(shares[at])
            ));
        }
        svg::hint(m, (x.at(from), x.at(to)), (plot.top, plot.bottom()), &words);
    }
}

/// Ticks in percent along a scale of shares.
fn percent_axis(m: &mut Markup, plot: Plot, y: Linear, title: &str) {
    let top = y.domain.1 * 100.0;
    let step = round_step(top, 4.0);
    let ticks = multiples(step, top).into_iter();
    let ticks = ticks.map(|mark| Tick {
        at: y.at(mark / 100.0),
        label: format!("{} %", tick_label(mark, step)),
    });
    svg::y_axis(m, plot, &ticks.collect::<Vec<_>>(), title);
}

fn cumulative(m: &mut Markup, series: &[LatencySeries<'_>], x: Log) {
    let plot = Plot::HALF;
    let x = Log {
        range: (plot.left, plot.right()),
        ..x
    };
    let how = "issue to completion; share of the operation's timed I/O that took no longer";
    figure(m, "Latency, cumulative", how, |m| {
        svg::picture(
            m,
            plot,
            "Cumulative share of I/O by latency and operation",
            |m| {
                let y = Linear {
                    domain: (0.0, 1.0),
                    range: (plot.bottom(), plot.top),
                };
                percent_axis(m, plot, y, "share of timed I/O");
                for series in series {
                    let (mut seen, mut d) = (
                        0,
                        format!("M{} {}", svg::num(plot.left), svg::num(plot.bottom())),
                    );
                    for (index, weight) in series.counts.iter() {
                        seen += weight;
                        let (low, high) = log_linear_bounds(index);
                        let [from, to] =
                            [low as f64, high as f64 + 1.0].map(|ns| svg::num(x.at(ns)));
                        let share = svg::num(y.at(seen as f64 / series.timed as f64));
                        d.push_str(&format!("H{from}L{to} {share}"));
                    }
                    d.push_str(&format!("H{}", svg::num(plot.right())));
                    svg::path(m, series.line, &d);
                }
                svg::x_axis(m, plot, &x.time_ticks(300.0), "latency");
            },
        );
        legend(m, series.iter().map(|series| (series.line, series.name())));
    });
}

fn quantiles(m: &mut Markup, analysis: &Analysis) {
    let row = |op: &str, interval: &str, found: &Quantiles| {
        let times = [
            found.p50_ns,
            found.p90_ns,
            found.p99_ns,
            found.p999_ns,
            found.max_ns,
        ];
        let words = [
            op.to_owned(),
            interval.to_owned(),
            format::count(found.timed),
        ];
        words
            .into_iter()
            .chain(times.map(format::ns))
            .collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> = analysis
        .ops
        .iter()
        .flat_map(|op| {
            let device = op
                .device
                .as_ref()
                .map(|found| row(op.op, "issue to completion", found));
            let queue = op
                .queue
                .as_ref()
                .map(|found| row(op.op, "insert to issue", found));
            device.into_iter().chain(queue)
        })
        .collect();
    let columns = [
        "<operation",
        "<interval",
        "timed I/O",
        "50 %",
        "90 %",
        "99 %",
        "99.9 %",
        "longest",
    ];
    let caption =
        format!("No longer than (upper end of the bucket, at most 1/{SUB_BUCKETS} above)");
    table(m, &caption, &columns, &rows);
}

/// Latencies of a column, ns; none where nothing was timed, and at least 1 for the scale.
struct Point {
    mean: Option<f64>,
    longest: Option<f64>,
}

impl Point {
    fn from_column(column: &ChartColumn<'_>) -> Point {
        let timed = column.sum(|window| window.timed);
        let any = |ns: f64| (timed > 0).then(|| ns.max(1.0));
        Point {
            mean: any(column.sum(|window| window.ns_sum) as f64 / timed as f64),
            longest: any(column.max(|window| window.ns_max) as f64),
        }
    }
}

fn over_time(m: &mut Markup, profile: &Profile) {
    let title = "Latency over time";
    let Some(course) = ChartCourse::from_profile(profile, 512) else {
        return;
    };
    let plot = Plot::WIDE;
    let how = format!(
        "issue to completion, reads and writes together; mean and longest of each {}; gaps where nothing was timed",
        format::ns(course.width_ns)
    );
    let points: Vec<Point> = course.columns.iter().map(Point::from_column).collect();
    let (low, high) = points
        .iter()
        .filter_map(|point| point.mean.zip(point.longest))
        .fold((f64::MAX, 0f64), |(low, high), (mean, longest)| {
            (low.min(mean), high.max(longest))
        });
    if high <= 0.0 {
        return not_known(m, title, "no read or write was timed");
    }
    let y = Log {
        domain: (low / 1.5, high * 1.5),
        range: (plot.bottom(), plot.top),
    };
    figure(m, title, &how, |m| {
        svg::picture(m, plot, "Mean and longest latency over time", |m| {
            svg::y_axis(m, plot, &y.time_ticks(3_000.0), "latency");
            let (marks, title) = course.axis(plot);
            svg::x_axis(m, plot, &marks, &title);
            let x = course.scale(plot);
            let curve = |m: &mut Markup, class: &str, heights: Vec<Option<f64>>| {
                let columns = course.columns.iter().zip(heights).map(|(column, ns)| {
                    let (left, right) = column.place(x);
                    (left, right, ns.map(|ns| y.at(ns)))
                });
                svg::path(m, class, &svg::steps(&columns.collect::<Vec<_>>()));
            };
            curve(m, "lo", points.iter().map(|point| point.longest).collect());
            curve(m, "lm", points.iter().map(|point| point.mean).collect());
            time_hints(m, profile, x, plot);
        });
        legend(m, [("lm", "mean".to_owned()), ("lo", "longest".to_owned())]);
    });
}

fn time_hints(m: &mut Markup, profile: &Profile, x: Linear, plot: Plot) {
    let Some(course) = ChartCourse::from_profile(profile, 128) else {
        return;
    };
    for column in &course.columns {
        let (timed, sum) = (
            column.sum(|window| window.timed),
            column.sum(|window| window.ns_sum),
        );
        let Some(mean) = sum.checked_div(timed) else {
            continue;
        };
        let words = format!(
            "{}\n{} timed\nmean {}\nlongest {}",
            course.when(column),
            format::count(timed),
            format::ns(mean),
            format::ns(column.max(|window| window.ns_max))
        );
        svg::hint(m, column.place(x), (plot.top, plot.bottom()), &words);
    }
}
