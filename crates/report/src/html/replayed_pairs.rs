//! The gain of each pair of a comparison: a dot for each pair, over the interval of the gain and the margin.

use plumb_load::replay::SlicePair;
use plumb_load::result::replay::Comparison;

use super::markup::Markup;
use super::page::{figure, legend};
use super::scale::{Linear, Log, Tick, multiples, round_step, tick_label};
use super::svg::{self, Plot};
use crate::format::ns;

/// More pairs have no words of their own: the page would be all words.
const HINTS_MAX: usize = 400;

/// Factors that an axis may name.
const FACTORS: [f64; 13] = [
    1.005, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0, 1000.0,
];

fn gain(pair: &SlicePair) -> f64 {
    pair.today_ns / pair.planned_ns
}

/// The picture; nothing without pairs.
pub fn draw(m: &mut Markup, comparison: &Comparison) {
    let pairs: Vec<&SlicePair> = comparison
        .pairs
        .iter()
        .filter(|pair| gain(pair).is_normal())
        .collect();
    if pairs.is_empty() {
        return;
    }
    let how = "today's time by the planned, a dot a pair of slices: above × 1 the planned places are faster";
    figure(m, "Gain of each pair", how, |m| {
        let plot = Plot::WIDE;
        svg::picture(m, plot, "Gains of pairs with their interval", |m| {
            picture(m, plot, comparison, &pairs)
        });
        let mut entries = vec![
            ("fr", "today's places first".to_owned()),
            ("fw", "planned places first".to_owned()),
            (
                "h0",
                format!(
                    "the margin within which a change is none, {:.1} %",
                    comparison.margin * 100.0
                ),
            ),
        ];
        if let Some(ratio) = comparison.gain {
            entries.push(("chance", format!("the gain: × {:.3}", ratio.estimate)));
            entries.push((
                "h2",
                format!("its interval: {:.3} to {:.3}", ratio.low, ratio.high),
            ));
        }
        legend(m, entries);
    });
}

fn picture(m: &mut Markup, plot: Plot, comparison: &Comparison, pairs: &[&SlicePair]) {
    let margin = 1.0 + comparison.margin;
    let ends = comparison
        .gain
        .into_iter()
        .flat_map(|ratio| [ratio.low, ratio.high]);
    let all = pairs
        .iter()
        .map(|pair| gain(pair))
        .chain(ends)
        .chain([margin, 1.0 / margin]);
    let (low, high) = all.fold((1.0, 1.0), |(low, high): (f64, f64), ratio| {
        (low.min(ratio), high.max(ratio))
    });
    let room = (high / low).powf(0.06);
    let y = Log {
        domain: (low / room, high * room),
        range: (plot.bottom(), plot.top),
    };
    band(m, plot, "h0", (y.at(margin), y.at(1.0 / margin)));
    if let Some(ratio) = comparison.gain {
        band(m, plot, "h2", (y.at(ratio.high), y.at(ratio.low)));
    }
    svg::y_axis(m, plot, &ticks(y), "gain");
    svg::line(m, "axis", (plot.left, y.at(1.0)), (plot.right(), y.at(1.0)));
    let x = Linear {
        domain: (0.0, pairs.len() as f64),
        range: (plot.left, plot.right()),
    };
    let step = round_step(pairs.len() as f64, 5.0).max(1.0);
    let marks = multiples(step, pairs.len() as f64)
        .into_iter()
        .filter(|mark| *mark > 0.0);
    let marks = marks.map(|mark| Tick {
        at: x.at(mark - 0.5),
        label: tick_label(mark, step),
    });
    svg::x_axis(
        m,
        plot,
        &marks.collect::<Vec<_>>(),
        "pairs, in the order in which they were made",
    );
    if let Some(ratio) = comparison.gain {
        svg::level(
            m,
            (plot.left, y.at(ratio.estimate)),
            (plot.right(), y.at(ratio.estimate)),
        );
    }
    for (is_today_first, class) in [(true, "lr dot"), (false, "lw dot")] {
        let dots = pairs
            .iter()
            .enumerate()
            .filter(|(_, pair)| pair.is_today_first == is_today_first);
        let dot = |(at, pair): (usize, &&SlicePair)| {
            format!(
                "M{} {}h0",
                svg::num(x.at(at as f64 + 0.5)),
                svg::num(y.at(gain(pair)))
            )
        };
        svg::path(m, class, &dots.map(dot).collect::<String>());
    }
    for (at, pair) in pairs.iter().enumerate().take(HINTS_MAX) {
        let [today, planned] = [pair.today_ns, pair.planned_ns].map(|time| ns(time as u64));
        let words = format!(
            "pair {}: × {:.3}\n{today} today, {planned} planned",
            at + 1,
            gain(pair)
        );
        svg::hint(
            m,
            (x.at(at as f64), x.at(at as f64 + 1.0)),
            (plot.top, plot.bottom()),
            &words,
        );
    }
}

fn band(m: &mut Markup, plot: Plot, class: &str, (top, bottom): (f64, f64)) {
    svg::path(
        m,
        class,
        &svg::area(&[(plot.left, plot.right(), Some(top))], bottom),
    );
}

/// None, and the factors up and down that are far enough apart.
fn ticks(y: Log) -> Vec<Tick> {
    /// Distance of labels, in units of the view box.
    const APART: f64 = 24.0;
    let mut ticks = vec![Tick {
        at: y.at(1.0),
        label: "× 1".to_owned(),
    }];
    // From the farthest on: these say how far the picture reaches.
    for factor in FACTORS
        .into_iter()
        .rev()
        .flat_map(|factor| [factor, 1.0 / factor])
    {
        let at = y.at(factor);
        let is_within = y.domain.0 <= factor && factor <= y.domain.1;
        if is_within && ticks.iter().all(|tick| (tick.at - at).abs() >= APART) {
            let digits = if factor < 1.0 || factor.fract() > 0.0 {
                2
            } else {
                0
            };
            let digits = if (0.98..=1.02).contains(&factor) && digits > 0 {
                3
            } else {
                digits
            };
            ticks.push(Tick {
                at,
                label: format!("× {factor:.digits$}"),
            });
        }
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_apart() {
        let labels = |low, high| {
            let mut ticks = ticks(Log {
                domain: (low, high),
                range: (240.0, 10.0),
            });
            ticks.sort_by(|one, other| other.at.total_cmp(&one.at));
            ticks.into_iter().map(|tick| tick.label).collect::<Vec<_>>()
        };
        assert_eq!(
            labels(0.9, 2.2),
            ["× 0.91", "× 1", "× 1.20", "× 1.50", "× 2"]
        );
        assert_eq!(
            labels(0.97, 1.03),
            ["× 0.980", "× 0.990", "× 1", "× 1.010", "× 1.020"]
        );
    }
}
