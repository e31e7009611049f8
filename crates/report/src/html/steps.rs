//! The course of offset inference: at each granularity, the share of starts at the best offset beside that of random
//! starts. If the bars fall towards it, the I/O have no common grid any more.

use plumb_diagnose::analysis::PlaceAnalysis;

use super::markup::Markup;
use super::page::{figure, legend, share_of};
use super::scale::{Linear, Tick};
use super::svg::{self, Plot};
use crate::format;

/// Draws it for one place, if anything was looked at.
pub fn draw(m: &mut Markup, place: &PlaceAnalysis, title: &str) {
    let inference = &place.inference;
    if inference.steps.is_empty() || inference.heads == 0 {
        return;
    }
    figure(
        m,
        title,
        "share of starts at the best offset of each granularity",
        |m| {
            let label = "Share of starts at the best offset by granularity, against chance";
            svg::picture(m, Plot::HALF, label, |m| picture(m, place, Plot::HALF));
            legend(
                m,
                [
                    ("fo", "all I/O".to_owned()),
                    ("fd", "random I/O".to_owned()),
                    (
                        "chance",
                        "random I/O at the best offset if starts were spread evenly, 99 of 100 cases".to_owned(),
                    ),
                ],
            );
        },
    );
}

fn picture(m: &mut Markup, place: &PlaceAnalysis, plot: Plot) {
    let inference = &place.inference;
    let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let y = Linear {
        domain: (0.0, 1.0),
        range: (plot.bottom(), plot.top),
    };
    let ticks = (0..=5).map(|fifth| Tick {
        at: y.at(f64::from(fifth) / 5.0),
        label: format!("{} %", fifth * 20),
    });
    svg::y_axis(m, plot, &ticks.collect::<Vec<_>>(), "share of starts");
    let slot = plot.width / inference.steps.len() as f64;
    let left = |at: usize| plot.left + slot * at as f64;
    for (side, class) in ["fo", "fd"].into_iter().enumerate() {
        let columns = inference.steps.iter().enumerate().map(|(at, step)| {
            let from = left(at) + slot * (0.1 + 0.4 * side as f64);
            let height = [
                share(step.ios, inference.ios),
                share(step.heads, inference.heads),
            ][side];
            (from, from + slot * 0.4, y.at(height))
        });
        svg::path(m, class, &svg::bars(columns, plot.bottom()));
    }
    let marks = inference.steps.iter().enumerate().map(|(at, step)| {
        // Every other one, since eleven units in words do not fit side by side.
        let label = if at % 2 == 0 {
            format::bytes(step.granularity_bytes.0)
        } else {
            String::new()
        };
        Tick {
            at: left(at) + slot / 2.0,
            label,
        }
    });
    svg::x_axis(m, plot, &marks.collect::<Vec<_>>(), "granularity");
    for (at, step) in inference.steps.iter().enumerate() {
        let level = y.at(share(step.chance_heads, inference.heads));
        svg::level(
            m,
            (left(at) + slot * 0.04, level),
            (left(at) + slot * 0.96, level),
        );
        let words = format!(
            "{}, best offset {}\nall I/O {}\nrandom I/O {}\nif spread evenly {}",
            step.granularity_bytes,
            format::bytes(step.offset_bytes.0),
            share_of(step.ios, inference.ios),
            share_of(step.heads, inference.heads),
            share_of(step.chance_heads, inference.heads)
        );
        svg::hint(
            m,
            (left(at), left(at) + slot),
            (plot.top, plot.bottom()),
            &words,
        );
    }
}
