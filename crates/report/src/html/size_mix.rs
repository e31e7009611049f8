//! Sizes of I/O over time, reads up and writes down from a middle line, stacked by power of two of the length:
//! io-profiler's picture of a LUN, which separates a file-system record from the database's requests.
//!
//! A class has the same colour in every report, so that two of them can be laid side by side.

use plumb_profile::Profile;
use plumb_profile::histogram::Counts;

use super::course::{ChartColumn, ChartCourse};
use super::markup::Markup;
use super::page::{figure, legend};
use super::scale::{Linear, Tick, multiples, round_step, tick_label};
use super::svg::{self, Plot};
use crate::format;

const TITLE: &str = "Size mix over time";

/// Classes of length: (highest power of two in it, fill, words).
const CLASSES: [(usize, &str, &str); 9] = [
    (11, "c0", "up to 2 KiB"),
    (12, "c1", "2–4 KiB"),
    (13, "c2", "4–8 KiB"),
    (14, "c3", "8–16 KiB"),
    (15, "c4", "16–32 KiB"),
    (16, "c5", "32–64 KiB"),
    (17, "c6", "64–128 KiB"),
    (19, "c7", "128–512 KiB"),
    (64, "c8", "over 512 KiB"),
];

type ByClass = [u64; CLASSES.len()];

/// Draws it, where the profile has a course.
pub fn draw(m: &mut Markup, profile: &Profile) {
    let Some(course) = ChartCourse::from_profile(profile, 512) else {
        return;
    };
    let plot = Plot {
        top: 26.0,
        height: 270.0,
        ..Plot::WIDE
    };
    let how = format!(
        "I/O a second by length, reads up, writes down; classes hold lengths above the first figure up to the second; \
         one column is {}",
        format::ns(course.width_ns)
    );
    figure(m, TITLE, &how, |m| {
        svg::picture(
            m,
            plot,
            "Rate of reads and writes by size class over time",
            |m| {
                picture(m, profile, &course, plot);
            },
        );
        let present = |class: usize| {
            course
                .columns
                .iter()
                .any(|column| by_class(column).iter().any(|classes| classes[class] > 0))
        };
        let shown = CLASSES
            .iter()
            .enumerate()
            .filter(|(class, _)| present(*class));
        legend(
            m,
            shown.map(|(_, (_, fill, words))| (*fill, (*words).to_owned())),
        );
    });
}

/// Reads and writes of a column by class.
fn by_class(column: &ChartColumn<'_>) -> [ByClass; 2] {
    let sums = |from: usize, to: usize, side: fn(&plumb_profile::timeline::Window) -> &Counts| {
        column.sum(|window| (from..=to).map(|power| side(window).get(power)).sum())
    };
    let mut classes = [[0; CLASSES.len()]; 2];
    let mut from = 0;
    for (class, (to, ..)) in CLASSES.iter().enumerate() {
        classes[0][class] = sums(from, *to, |window| &window.read_sizes);
        classes[1][class] = sums(from, *to, |window| &window.write_sizes);
        from = to + 1;
    }
    classes
}

fn picture(m: &mut Markup, profile: &Profile, course: &ChartCourse<'_>, plot: Plot) {
    let classes: Vec<[ByClass; 2]> = course.columns.iter().map(by_class).collect();
    let highest = |side: usize| {
        let rates = course.columns.iter().zip(&classes);
        rates
            .map(|(column, both)| rate(column, both[side].iter().sum()))
            .fold(0.0, f64::max)
    };
    let highest = [highest(0), highest(1)];
    let both = (highest[0] + highest[1]).max(f64::MIN_POSITIVE);
    // A side without I/O keeps a strip, so that it is seen to have none.
    let up = (highest[0] / both).clamp(0.08, 0.92) * plot.height;
    let middle = plot.top + up;
    let unit = (highest[0] / up).max(highest[1] / (plot.height - up)) * 1.04;
    let side = [
        Linear {
            domain: (0.0, up * unit),
            range: (middle, plot.top),
        },
        Linear {
            domain: (0.0, (plot.height - up) * unit),
            range: (middle, plot.bottom()),
        },
    ];
    axes(m, course, plot, side, highest);
    let x = course.scale(plot);
    for (scale, at) in side.iter().zip(0..) {
        stack(m, course, &classes, at, x, *scale);
    }
    svg::line(m, "axis", (plot.left, middle), (plot.right(), middle));
    svg::label(m, "title", (plot.left, plot.top - 9.0), "↑ reads");
    svg::label(m, "title", (plot.left, plot.bottom() + 38.0), "↓ writes");
    if let Some(coarse) = ChartCourse::from_profile(profile, 128) {
        for column in &coarse.columns {
            svg::hint(
                m,
                column.place(x),
                (plot.top, plot.bottom()),
                &hint(&coarse, column),
            );
        }
    }
}

fn rate(column: &ChartColumn<'_>, ios: u64) -> f64 {
    ios as f64 / (column.to - column.from)
}

fn axes(
    m: &mut Markup,
    course: &ChartCourse<'_>,
    plot: Plot,
    side: [Linear; 2],
    highest: [f64; 2],
) {
    let step = round_step(highest[0] + highest[1], 5.0);
    let mut ticks = Vec::new();
    for (scale, at) in side.iter().zip(0..) {
        // Zero is marked once, by the reads.
        let marks = multiples(step, highest[at]).into_iter().skip(at);
        ticks.extend(marks.map(|mark| Tick {
            at: scale.at(mark),
            label: tick_label(mark, step),
        }));
    }
    svg::y_axis(m, plot, &ticks, "I/O a second");
    let (marks, title) = course.axis(plot);
    svg::x_axis(m, plot, &marks, &title);
}

/// All classes of one side, each reaching from the middle line over the smaller ones, the largest drawn first.
fn stack(
    m: &mut Markup,
    course: &ChartCourse<'_>,
    classes: &[[ByClass; 2]],
    side: usize,
    x: Linear,
    y: Linear,
) {
    for (class, (_, fill, _)) in CLASSES.iter().enumerate().rev() {
        let columns = course.columns.iter().zip(classes).map(|(column, both)| {
            let (left, right) = column.place(x);
            let upto = both[side][..=class].iter().sum();
            (
                left,
                right,
                (both[side][class] > 0).then(|| y.at(rate(column, upto))),
            )
        });
        let d = svg::area(&columns.collect::<Vec<_>>(), y.range.0);
        if !d.is_empty() {
            svg::path(m, fill, &d);
        }
    }
    let tops = course.columns.iter().zip(classes).map(|(column, both)| {
        let (left, right) = column.place(x);
        let whole: u64 = both[side].iter().sum();
        (left, right, (whole > 0).then(|| y.at(rate(column, whole))))
    });
    svg::path(m, "outline", &svg::tops(tops));
}

fn hint(course: &ChartCourse<'_>, column: &ChartColumn<'_>) -> String {
    let mut words = course.when(column);
    for (name, classes) in ["reads", "writes"].iter().zip(by_class(column)) {
        words.push_str(&format!(
            "\n{name} {}",
            format::rate(rate(column, classes.iter().sum()))
        ));
        for (ios, (_, _, class)) in classes.iter().zip(&CLASSES).filter(|(ios, _)| **ios > 0) {
            words.push_str(&format!("\n  {class}: {}", format::count(*ios)));
        }
    }
    words
}
