//! The positions of the I/O on the device, over time: regions of the device upward, time to the right, the darker (in a
//! dark scheme the brighter) the more I/O.

use plumb_profile::Profile;

use super::course::ChartCourse;
use super::markup::Markup;
use super::page::{figure, legend, not_known};
use super::scale::{Linear, Tick, byte_ticks};
use super::svg::{self, Plot};
use crate::format;

const TITLE: &str = "Places over time";
/// Most columns.
const COLUMNS_MAX: u64 = 128;
/// Fills from few I/O to many.
const FILLS: [&str; 7] = ["h0", "h1", "h2", "h3", "h4", "h5", "h6"];

/// Draws it, where the profile has a course.
pub fn draw(m: &mut Markup, profile: &Profile) {
    let Some(course) = ChartCourse::from_profile(profile, COLUMNS_MAX) else {
        return;
    };
    let cells = cells(&course);
    let Some(most) = cells
        .iter()
        .flatten()
        .copied()
        .max()
        .filter(|most| *most > 0)
    else {
        let why = if profile.ios() > 0 {
            "the source counts places over the whole time, not in each part of it"
        } else {
            "no read or write was seen"
        };
        return not_known(m, TITLE, why);
    };
    let region = 2f64.powi(profile.timeline.region_shift() as i32);
    let rows = rows(profile, &cells, region);
    let how = format!(
        "reads and writes by place on the device; a cell is {} × {}",
        format::bytes(region as u64),
        format::ns(course.width_ns)
    );
    let bounds = bounds(most);
    figure(m, TITLE, &how, |m| {
        let plot = Plot {
            height: 256.0,
            ..Plot::WIDE
        };
        svg::picture(m, plot, "I/O by offset on the device and time", |m| {
            picture(m, &course, &cells, (rows, region), &bounds, plot);
        });
        legend(
            m,
            bounds
                .windows(2)
                .zip(FILLS)
                .map(|(bound, fill)| (fill, span(bound[0], bound[1] - 1))),
        );
    });
}

fn span(from: u64, to: u64) -> String {
    match from == to {
        true => format!("{} I/O", format::count(from)),
        false => format!("{}–{} I/O", format::count(from), format::count(to)),
    }
}

/// I/O by column and region; at most 64 regions.
fn cells(course: &ChartCourse<'_>) -> Vec<Vec<u64>> {
    let of = |column: &super::course::ChartColumn<'_>| {
        (0..64)
            .map(|region| column.sum(|window| window.regions.get(region)))
            .collect()
    };
    course.columns.iter().map(of).collect()
}

/// How many regions the picture is high: the device, where its size is known, else up to the last I/O.
fn rows(profile: &Profile, cells: &[Vec<u64>], region: f64) -> usize {
    let touched = cells
        .iter()
        .filter_map(|column| column.iter().rposition(|ios| *ios > 0));
    let touched = touched.max().map_or(1, |last| last + 1);
    let size = profile
        .size_bytes
        .map_or(0, |bytes| (bytes as f64 / region).ceil() as usize);
    touched.max(size.min(64))
}

/// Lower ends of the classes, growing by one factor, and one above the last.
fn bounds(most: u64) -> Vec<u64> {
    let mut bounds: Vec<u64> = (0..FILLS.len())
        .map(|step| {
            (most as f64)
                .powf(step as f64 / FILLS.len() as f64)
                .ceil()
                .max(1.0) as u64
        })
        .collect();
    bounds.push(most.saturating_add(1));
    bounds.dedup();
    bounds
}

fn picture(
    m: &mut Markup,
    course: &ChartCourse<'_>,
    cells: &[Vec<u64>],
    (rows, region): (usize, f64),
    bounds: &[u64],
    plot: Plot,
) {
    let y = Linear {
        domain: (0.0, rows as f64 * region),
        range: (plot.bottom(), plot.top),
    };
    let x = course.scale(plot);
    let ticks = byte_ticks(y.domain.1)
        .into_iter()
        .map(|(bytes, label)| Tick {
            at: y.at(bytes),
            label,
        });
    svg::y_axis(m, plot, &ticks.collect::<Vec<_>>(), "offset on the device");
    let (marks, title) = course.axis(plot);
    svg::x_axis(m, plot, &marks, &title);
    let (width, height) = (x.at(course.edge(1)) - plot.left, plot.height / rows as f64);
    let place = format!(
        "translate({} {})scale({width:.4} {:.4})",
        plot.left,
        plot.bottom(),
        -height
    );
    m.el(
        "g",
        &[("transform", &place), ("shape-rendering", "crispEdges")],
        |m| {
            for (class, fill) in bounds.windows(2).zip(FILLS) {
                let d = rectangles(
                    cells,
                    rows,
                    class[0]..class[1],
                    (plot.right() - plot.left) / width,
                );
                if !d.is_empty() {
                    svg::path(m, fill, &d);
                }
            }
        },
    );
    for (column, ios) in course.columns.iter().zip(cells) {
        let busiest = ios.iter().enumerate().max_by_key(|(_, ios)| **ios);
        let Some((row, most)) = busiest.filter(|(_, ios)| **ios > 0) else {
            continue;
        };
        let words = format!(
            "{}\n{} I/O, most ({}) from {} on",
            course.when(column),
            format::count(ios.iter().sum()),
            format::count(*most),
            format::bytes((row as f64 * region) as u64)
        );
        svg::hint(m, column.place(x), (plot.top, plot.bottom()), &words);
    }
}

/// Cells of one class, those side by side as one, in units of a cell. The last column may be cut by the edge at
/// `right`.
fn rectangles(cells: &[Vec<u64>], rows: usize, class: std::ops::Range<u64>, right: f64) -> String {
    let mut d = String::new();
    for row in 0..rows {
        let inside = |column: usize| {
            cells
                .get(column)
                .and_then(|ios| ios.get(row))
                .is_some_and(|ios| class.contains(ios))
        };
        let mut column = 0;
        while column < cells.len() {
            let from = column;
            while inside(column) {
                column += 1;
            }
            if column > from {
                let width = svg::num((column as f64).min(right) - from as f64);
                d.push_str(&format!("M{from} {row}h{width}v1h-{width}z"));
            }
            column += 1;
        }
    }
    d
}
