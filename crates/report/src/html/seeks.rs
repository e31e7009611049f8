//! How far it is from the end of one I/O to the start of the next: backward to the left, forward to the right, by
//! power of two, none in the middle.

use plumb_profile::Profile;
use plumb_profile::histogram::Counts;

use super::markup::Markup;
use super::page::{figure, not_known, share_of};
use super::scale::{Linear, Tick, multiples, round_step, tick_label};
use super::svg::{self, Plot};
use crate::format;

const TITLE: &str = "Seek distances";

/// One bar: I/O, and their common property.
struct Bin {
    ios: u64,
    words: String,
    /// The text of the axis under it.
    label: Option<String>,
}

/// Draws them.
pub fn draw(m: &mut Markup, profile: &Profile) {
    let seeks = &profile.ordered.seeks;
    let whole = seeks.none + seeks.forward.total() + seeks.backward.total();
    if whole == 0 {
        return not_known(
            m,
            TITLE,
            "the source does not tell the order of the I/O, or there was only one",
        );
    }
    let bins = bins(profile);
    let how = format!(
        "from the end of one I/O to the start of the next, {} in all; each bar is a power of two",
        format::count(whole)
    );
    figure(m, TITLE, &how, |m| {
        let label = "Share of seeks by distance, backward left, forward right";
        svg::picture(m, Plot::WIDE, label, |m| {
            picture(m, &bins, whole, Plot::WIDE)
        });
    });
}

/// Backward from far to near, none, forward from near to far.
fn bins(profile: &Profile) -> Vec<Bin> {
    let seeks = &profile.ordered.seeks;
    let ends = |counts: &Counts| (counts.iter().next(), counts.iter().next_back());
    let (low, high) = [&seeks.backward, &seeks.forward]
        .into_iter()
        .flat_map(|counts| [ends(counts).0, ends(counts).1])
        .flatten()
        .fold((9, 12), |(low, high), (power, _)| {
            (low.min(power), high.max(power))
        });
    let bin = |counts: &Counts, power: usize, direction: &str| {
        let bytes = 1u64.checked_shl(power as u32).unwrap_or(u64::MAX);
        Bin {
            ios: counts.get(power),
            words: format!(
                "{direction} up to {}, more than half of it",
                format::bytes(bytes)
            ),
            label: (power.is_multiple_of(5) && power > 9).then(|| format::bytes(bytes)),
        }
    };
    let mut bins: Vec<Bin> = (low..=high)
        .rev()
        .map(|power| bin(&seeks.backward, power, "backward"))
        .collect();
    bins.push(Bin {
        ios: seeks.none,
        words: "no distance: it starts where the last one ended".to_owned(),
        label: Some("0".to_owned()),
    });
    bins.extend((low..=high).map(|power| bin(&seeks.forward, power, "forward")));
    bins
}

fn picture(m: &mut Markup, bins: &[Bin], whole: u64, plot: Plot) {
    let share = |bin: &Bin| bin.ios as f64 / whole as f64;
    let top = (bins.iter().map(share).fold(0.0, f64::max) * 1.06).min(1.0);
    let y = Linear {
        domain: (0.0, top),
        range: (plot.bottom(), plot.top),
    };
    let step = round_step(top * 100.0, 4.0);
    let ticks = multiples(step, top * 100.0).into_iter();
    let ticks = ticks.map(|mark| Tick {
        at: y.at(mark / 100.0),
        label: format!("{} %", tick_label(mark, step)),
    });
    svg::y_axis(m, plot, &ticks.collect::<Vec<_>>(), "share of seeks");
    let slot = plot.width / bins.len() as f64;
    let left = |at: usize| plot.left + slot * at as f64;
    let columns = bins.iter().enumerate();
    let columns = columns.map(|(at, bin)| {
        (
            left(at) + slot * 0.1,
            left(at) + slot * 0.9,
            y.at(share(bin)),
        )
    });
    svg::path(m, "fo", &svg::bars(columns, plot.bottom()));
    let labels = bins.iter().enumerate().filter_map(|(at, bin)| {
        Some(Tick {
            at: left(at) + slot / 2.0,
            label: bin.label.clone()?,
        })
    });
    svg::x_axis(
        m,
        plot,
        &labels.collect::<Vec<_>>(),
        "← backward · distance · forward →",
    );
    for (at, bin) in bins.iter().enumerate() {
        let words = format!(
            "{}\n{} ({})",
            bin.words,
            format::count(bin.ios),
            share_of(bin.ios, whole)
        );
        svg::hint(
            m,
            (left(at), left(at) + slot),
            (plot.top, plot.bottom()),
            &words,
        );
    }
}
