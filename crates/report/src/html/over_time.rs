//! Step lines over the course of a run, on one axis.

use super::markup::Markup;
use super::page::{figure, legend, or_dash};
use super::scale::{Linear, Tick, multiples, round_step, tick_label};
use super::svg::{self, Plot};
use crate::format::ns;

/// A line, or the area below it: the class that paints it, its name, and its value in each period.
pub struct ChartLine {
    /// `lr`, `lw`, `lo` or `lm` for a line, any other for the area below it.
    pub class: &'static str,
    /// In words; not shown if it is the only one.
    pub name: &'static str,
    /// A value for each stretch; `None` is a gap.
    pub values: Vec<Option<f64>>,
}

/// A figure of lines over stretches of time, each from and to in seconds. Draws nothing where no line has a value.
pub fn draw(
    m: &mut Markup,
    (title, how, unit): (&str, &str, &str),
    stretches: &[(f64, f64)],
    lines: &[ChartLine],
) {
    let values = lines.iter().flat_map(|line| line.values.iter().flatten());
    let Some(&(_, end)) = stretches.last().filter(|_| values.clone().next().is_some()) else {
        return;
    };
    let highest = values.copied().fold(0.0, f64::max);
    figure(m, title, how, |m| {
        let plot = Plot::WIDE;
        svg::picture(m, plot, title, |m| {
            let y = Linear {
                domain: (0.0, highest * 1.05),
                range: (plot.bottom(), plot.top),
            };
            svg::y_axis(m, plot, &ticks(y, highest, 4.0), unit);
            let x = Linear {
                domain: (0.0, end),
                range: (plot.left, plot.right()),
            };
            svg::x_axis(m, plot, &ticks(x, end, 5.0), "seconds since the run began");
            for line in lines {
                let columns = stretches.iter().zip(&line.values);
                let columns = columns.map(|(&(from, to), value)| {
                    (x.at(from), x.at(to), value.map(|value| y.at(value)))
                });
                let columns: Vec<_> = columns.collect();
                let is_line = line.class.starts_with('l');
                let path = if is_line {
                    svg::steps(&columns)
                } else {
                    svg::area(&columns, plot.bottom())
                };
                svg::path(m, line.class, &path);
            }
            for (at, &(from, to)) in stretches.iter().enumerate() {
                let words = words_of(lines, at, unit);
                svg::hint(
                    m,
                    (x.at(from), x.at(to)),
                    (plot.top, plot.bottom()),
                    &format!("up to {}{words}", ns((to * 1e9) as u64)),
                );
            }
        });
        if lines.len() > 1 {
            legend(
                m,
                lines.iter().map(|line| (line.class, line.name.to_owned())),
            );
        }
    });
}

fn ticks(scale: Linear, highest: f64, marks: f64) -> Vec<Tick> {
    let step = round_step(highest, marks);
    let marks = multiples(step, scale.domain.1).into_iter();
    marks
        .map(|mark| Tick {
            at: scale.at(mark),
            label: tick_label(mark, step),
        })
        .collect()
}

fn words_of(lines: &[ChartLine], at: usize, unit: &str) -> String {
    let words = lines.iter().map(|line| {
        let shown = or_dash(line.values[at], |value| format!("{value:.3} {unit}"));
        if lines.len() > 1 {
            format!("\n{}: {shown}", line.name)
        } else {
            format!("\n{shown}")
        }
    });
    words.collect()
}
