//! Where within a grid the I/O start: bars by sector, all I/O beside stream heads, with the offset of the grid and
//! what chance alone would give.

use plumb_diagnose::analysis::{Analysis, PlaceAnalysis};
use plumb_geometry::{Bytes, SECTOR};
use plumb_profile::infer::{Inference, Verdict};
use plumb_profile::{Places, Profile, Select};

use super::markup::Markup;
use super::page::{figure, legend, not_known, share_of};
use super::scale::{Linear, Tick, multiples, round_step};
use super::svg::{self, Plot};
use crate::format;

/// Drawn for every place, whatever was asked.
const USUAL: Bytes = Bytes(4096);
/// More bars than this are put together.
const BARS_MAX: u64 = 128;
/// Places that are drawn; the table of inference has all.
const PLACES_MAX: usize = 6;

/// One picture: a granularity in one place.
struct Phases {
    granularity: Bytes,
    bar_bytes: u64,
    /// I/O and heads by bar.
    bars: Vec<[u64; 2]>,
    whole: [u64; 2],
    /// (offset, words) of grids given and found.
    marks: Vec<(Bytes, String)>,
    chance_heads: Option<u64>,
}

/// Draws all places of a profile.
pub fn draw(m: &mut Markup, profile: &Profile, analysis: &Analysis) {
    for place in analysis.places.iter().take(PLACES_MAX) {
        let places = match &place.name {
            None => Some(&profile.places),
            Some(name) => profile.partitions.get(name),
        };
        let Some(places) = places else { continue };
        let title = |granularity: Bytes| match &place.name {
            None => format!("Starts within {granularity}"),
            Some(name) => format!("Starts within {granularity}, {name}"),
        };
        m.class("div", "pair", |m| {
            for granularity in granularities(place) {
                match Phases::of(places, place, granularity) {
                    Ok(phases) => phases.draw(m, &title(granularity)),
                    Err(why) => not_known(m, &title(granularity), &why),
                }
            }
        });
    }
    if analysis.places.len() > PLACES_MAX {
        let left = analysis.places.len() - PLACES_MAX;
        m.leaf(
            "p",
            &[("class", "dim small")],
            &format!("{left} more partitions are in the table of offsets only."),
        );
    }
}

/// 4 KiB, and the largest of those inferred or asked for if that is another one.
fn granularities(place: &PlaceAnalysis) -> Vec<Bytes> {
    let inferred = phases_of(&place.inference).map(|(granularity, _)| granularity);
    let asked = place.grids.iter().map(|fit| fit.grid.granularity());
    let mut drawn = vec![USUAL];
    for granularity in asked.chain(inferred) {
        if !drawn.contains(&granularity) && granularity.0 > SECTOR && drawn.len() < 4 {
            drawn.push(granularity);
        }
    }
    drawn
}

/// (granularity, offset) of each phase found.
fn phases_of(inference: &Inference) -> impl Iterator<Item = (Bytes, Bytes)> + '_ {
    let phases = match &inference.verdict {
        Verdict::One { phase } => std::slice::from_ref(phase),
        Verdict::Two { phases } => phases,
        Verdict::NoGrid | Verdict::NotEnoughData { .. } => &[],
    };
    phases.iter().map(|phase| (phase.granularity_bytes, phase.offset_bytes))
}

impl Phases {
    fn of(places: &Places, place: &PlaceAnalysis, granularity: Bytes) -> Result<Phases, String> {
        let starts = |select| places.table.starts_within(granularity, select).map_err(|why| why.to_string());
        let (all, heads) = (starts(Select::DATA)?, starts(Select::HEADS)?);
        if all.is_empty() {
            return Err("the source does not tell where reads and writes start".to_owned());
        }
        let sectors = granularity.0.div_ceil(SECTOR);
        let bar_bytes = SECTOR * sectors.div_ceil(BARS_MAX).next_power_of_two();
        let mut bars = vec![[0; 2]; granularity.0.div_ceil(bar_bytes) as usize];
        for (side, starts) in [all, heads].iter().enumerate() {
            for (start, ios) in starts {
                if let Some(bar) = bars.get_mut((start / bar_bytes) as usize) {
                    bar[side] += ios;
                }
            }
        }
        let step = place.inference.steps.iter().find(|step| step.granularity_bytes == granularity);
        Ok(Phases {
            granularity,
            bar_bytes,
            whole: [0, 1].map(|side| bars.iter().map(|bar| bar[side]).sum()),
            bars,
            marks: marks(place, granularity),
            // One bar has one offset only while a bar is a sector.
            chance_heads: step.filter(|_| bar_bytes == SECTOR).map(|step| step.chance_heads),
        })
    }

    fn draw(&self, m: &mut Markup, title: &str) {
        let bar = if self.bar_bytes == SECTOR { "sector".to_owned() } else { format::bytes(self.bar_bytes) };
        let how = format!(
            "share of starts by {bar} of {}, {} I/O and {} stream heads",
            self.granularity,
            format::count(self.whole[0]),
            format::count(self.whole[1])
        );
        figure(m, title, &how, |m| {
            svg::picture(m, Plot::HALF, "Share of starts by place within the grid", |m| {
                self.picture(m, Plot::HALF)
            });
            let mut entries = vec![("fo", "all I/O".to_owned()), ("fd", "stream heads".to_owned())];
            if self.chance_heads.is_some() {
                entries.push(("chance", "heads in the fullest sector by chance, 99 of 100 cases".to_owned()));
            }
            entries.extend(self.marks.iter().map(|(_, words)| ("mark", words.clone())));
            legend(m, entries);
        });
    }

    fn share(&self, side: usize, bar: &[u64; 2]) -> f64 {
        bar[side] as f64 / self.whole[side].max(1) as f64
    }

    fn picture(&self, m: &mut Markup, plot: Plot) {
        let highest =
            self.bars.iter().flat_map(|bar| [self.share(0, bar), self.share(1, bar)]).fold(0.0, f64::max);
        let top = (highest * 1.06).min(1.0);
        let y = Linear { domain: (0.0, top), range: (plot.bottom(), plot.top) };
        let step = round_step(top * 100.0, 4.0);
        let ticks = multiples(step, top * 100.0).into_iter();
        let ticks = ticks.map(|mark| Tick {
            at: y.at(mark / 100.0),
            label: format!("{} %", super::scale::tick_label(mark, step)),
        });
        svg::y_axis(m, plot, &ticks.collect::<Vec<_>>(), "share of starts");
        let slot = plot.width / self.bars.len() as f64;
        let place = |at: usize| plot.left + slot * at as f64;
        for (side, class) in ["fo", "fd"].into_iter().enumerate() {
            let from = 0.1 + 0.4 * side as f64;
            let columns = self.bars.iter().enumerate().map(|(at, bar)| {
                (place(at) + slot * from, place(at) + slot * (from + 0.4), y.at(self.share(side, bar)))
            });
            svg::path(m, class, &svg::bars(columns, plot.bottom()));
        }
        self.axis(m, plot, slot);
        if let Some(heads) = self.chance_heads {
            let share = heads as f64 / self.whole[1].max(1) as f64;
            if share <= top {
                svg::line(m, "chance", (plot.left, y.at(share)), (plot.right(), y.at(share)));
            }
        }
        self.draw_marks(m, plot, slot);
        for (at, bar) in self.bars.iter().enumerate() {
            let words = self.words(at, bar);
            svg::hint(m, (place(at), place(at) + slot), (plot.top, plot.bottom()), &words);
        }
    }

    fn axis(&self, m: &mut Markup, plot: Plot, slot: f64) {
        let per_bar = self.bar_bytes / SECTOR;
        let every = (self.bars.len() as u64).div_ceil(16).next_power_of_two();
        let ticks = (0..self.bars.len() as u64)
            .step_by(every as usize)
            .map(|at| Tick { at: plot.left + slot * (at as f64 + 0.5), label: (at * per_bar).to_string() });
        let title = format!("start in sectors of 512 B, within {}", self.granularity);
        svg::x_axis(m, plot, &ticks.collect::<Vec<_>>(), &title);
    }

    /// A triangle above the bar in which a grid has its boundary, and a line down to it.
    fn draw_marks(&self, m: &mut Markup, plot: Plot, slot: f64) {
        for (offset, _) in &self.marks {
            let x = plot.left + slot * ((offset.0 / self.bar_bytes) as f64 + 0.5);
            svg::line(m, "mark", (x, plot.top - 8.0), (x, plot.bottom()));
            let [left, right, tip, top] = [x - 5.0, x + 5.0, plot.top - 4.0, plot.top - 12.0].map(svg::num);
            svg::path(m, "mark", &format!("M{left} {top}H{right}L{} {tip}Z", svg::num(x)));
        }
    }

    fn words(&self, at: usize, bar: &[u64; 2]) -> String {
        let sector = at as u64 * self.bar_bytes / SECTOR;
        format!(
            "from sector {}\nall I/O {} ({})\nstream heads {} ({})",
            format::count(sector),
            format::count(bar[0]),
            share_of(bar[0], self.whole[0]),
            format::count(bar[1]),
            share_of(bar[1], self.whole[1]),
        )
    }
}

/// Offsets of the grids of this granularity, those found and those that the I/O are judged by; one mark an offset.
fn marks(place: &PlaceAnalysis, granularity: Bytes) -> Vec<(Bytes, String)> {
    let judged = place.grids.iter().filter(|fit| fit.grid.granularity() == granularity);
    let judged = judged.map(|fit| (fit.grid.offset(), format!("{} grid", fit.source.word())));
    let found = phases_of(&place.inference).filter(|(of, _)| of.0 >= granularity.0);
    let found = found.map(|(_, offset)| (Bytes(offset.0 % granularity.0.max(1)), "inferred grid".to_owned()));
    let mut marks: Vec<(Bytes, String)> = Vec::new();
    for (offset, words) in judged.chain(found) {
        match marks.iter_mut().find(|(kept, _)| *kept == offset) {
            Some((_, kept)) if kept.contains(&words) => {}
            Some((_, kept)) => *kept = format!("{kept} and {words}"),
            None => marks.push((offset, words)),
        }
    }
    for (offset, words) in &mut marks {
        *words = format!("{words}: boundary at {}", position(*offset));
    }
    marks
}

/// `sector 7`, or bytes where it is no whole number of sectors.
fn position(offset: Bytes) -> String {
    match offset.to_sectors_exact() {
        Some(sectors) => format!("sector {}", format::count(sectors.0)),
        None => format!("byte {}", format::count(offset.0)),
    }
}
