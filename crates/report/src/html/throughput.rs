//! Bytes a second over time, reads and writes each as a line.

use plumb_profile::Profile;
use plumb_profile::timeline::Window;

use super::course::ChartCourse;
use super::markup::Markup;
use super::page::{figure, legend};
use super::scale::{Linear, Tick, binary_unit, multiples, round_step, tick_label};
use super::svg::{self, Plot};
use crate::format;

const TITLE: &str = "Throughput over time";

/// Draws it, where the profile has a course.
pub fn draw(m: &mut Markup, profile: &Profile) {
    let Some(course) = ChartCourse::from_profile(profile, 512) else {
        return;
    };
    // A source of counts alone may tell no bytes.
    let bytes = |window: &Window| window.read_bytes | window.write_bytes;
    if course.columns.iter().all(|column| column.sum(bytes) == 0) {
        return;
    }
    let how = format!(
        "bytes read and written a second; one step is {}",
        format::ns(course.width_ns)
    );
    figure(m, TITLE, &how, |m| {
        svg::picture(
            m,
            Plot::WIDE,
            "Bytes read and written a second over time",
            |m| {
                picture(m, profile, &course, Plot::WIDE);
            },
        );
        legend(m, [("lr", "reads".to_owned()), ("lw", "writes".to_owned())]);
    });
}

fn picture(m: &mut Markup, profile: &Profile, course: &ChartCourse<'_>, plot: Plot) {
    let rates: Vec<[f64; 2]> = course
        .columns
        .iter()
        .map(|column| {
            [
                column.rate(|window| window.read_bytes),
                column.rate(|window| window.write_bytes),
            ]
        })
        .collect();
    let highest = rates.iter().flatten().copied().fold(0.0, f64::max);
    let (unit, name) = binary_unit(highest);
    let y = Linear {
        domain: (0.0, highest * 1.05),
        range: (plot.bottom(), plot.top),
    };
    let step = round_step(highest / unit, 4.0);
    let ticks = multiples(step, highest * 1.05 / unit);
    let ticks = ticks.into_iter().map(|mark| Tick {
        at: y.at(mark * unit),
        label: tick_label(mark, step),
    });
    svg::y_axis(
        m,
        plot,
        &ticks.collect::<Vec<_>>(),
        &format!("{name} a second"),
    );
    let (marks, title) = course.axis(plot);
    svg::x_axis(m, plot, &marks, &title);
    let x = course.scale(plot);
    for (side, class) in ["lr", "lw"].into_iter().enumerate() {
        let columns = course.columns.iter().zip(&rates).map(|(column, rates)| {
            let (left, right) = column.place(x);
            (left, right, Some(y.at(rates[side])))
        });
        svg::path(m, class, &svg::steps(&columns.collect::<Vec<_>>()));
    }
    let Some(coarse) = ChartCourse::from_profile(profile, 128) else {
        return;
    };
    for column in &coarse.columns {
        let shown = |rate: f64| format!("{}/s", format::bytes(rate as u64));
        let words = format!(
            "{}\nread {}\nwritten {}",
            coarse.when(column),
            shown(column.rate(|window| window.read_bytes)),
            shown(column.rate(|window| window.write_bytes)),
        );
        svg::hint(m, column.place(x), (plot.top, plot.bottom()), &words);
    }
}
