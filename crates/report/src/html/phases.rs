//! The starts of the I/O within a grid: bars by sector, all I/O beside stream heads, with the offset of the grid and
//! the share of random starts.

use plumb_diagnose::analysis::{Analysis, PlaceAnalysis};
use plumb_geometry::{Bytes, SECTOR};
use plumb_profile::{Places, Profile, Select};

use super::marks::{Marks, marks, phases_of};
use super::markup::Markup;
use super::page::{figure, legend, not_known, share_of};
use super::scale::{Linear, Tick, multiples, round_step};
use super::steps;
use super::svg::{self, Plot};
use crate::format;

/// Drawn for every place, for any question.
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
    marks: Vec<Marks>,
    chance_heads: Option<u64>,
}

/// Draws all places of a profile.
pub fn draw(m: &mut Markup, profile: &Profile, analysis: &Analysis) {
    let mut drawn = 0;
    for place in &analysis.places {
        let places = match &place.name {
            None => Some(&profile.places),
            Some(name) => profile.partitions.get(name),
        };
        match (places, &place.name) {
            (Some(_), Some(name)) if is_whole(place, analysis) => {
                let words = format!(
                    "All reads and writes are in {name}: its starts are those of the device."
                );
                m.leaf("p", &[("class", "dim")], &words);
            }
            (Some(places), _) if drawn < PLACES_MAX => {
                drawn += 1;
                draw_place(m, places, place);
            }
            _ => {}
        }
    }
    if analysis.places.len() > PLACES_MAX {
        let words = format!(
            "Pictures of {PLACES_MAX} places at most; the tables of offsets have all of them."
        );
        m.leaf("p", &[("class", "dim small")], &words);
    }
}

/// Whether a partition has all the I/O of its device.
#[must_use]
pub fn is_whole(place: &PlaceAnalysis, analysis: &Analysis) -> bool {
    place.name.is_some()
        && analysis
            .device()
            .is_some_and(|device| device.inference == place.inference)
}

fn draw_place(m: &mut Markup, places: &Places, place: &PlaceAnalysis) {
    let name = place
        .name
        .as_ref()
        .map_or_else(String::new, |name| format!(", {name}"));
    m.class("div", "pair", |m| {
        for granularity in granularities(place) {
            let title = format!("Starts within {granularity}{name}");
            match Phases::count(places, place, granularity) {
                Ok(phases) => phases.draw(m, &title),
                Err(why) => not_known(m, &title, &why),
            }
        }
        steps::draw(m, place, &format!("Best offset by granularity{name}"));
    });
}

/// 4 KiB, and the requested or inferred one, if that is more.
fn granularities(place: &PlaceAnalysis) -> Vec<Bytes> {
    let inferred = phases_of(&place.inference).map(|(granularity, _)| granularity);
    let asked = place.grids.iter().map(|fit| fit.grid.granularity());
    let mut drawn = vec![USUAL];
    for granularity in asked.chain(inferred) {
        let within_usual = USUAL.0.is_multiple_of(granularity.0);
        if !drawn.contains(&granularity)
            && !within_usual
            && granularity.0 > SECTOR
            && drawn.len() < 4
        {
            drawn.push(granularity);
        }
    }
    drawn
}

impl Phases {
    fn count(places: &Places, place: &PlaceAnalysis, granularity: Bytes) -> Result<Phases, String> {
        let starts = |select| {
            places
                .table
                .starts_within(granularity, select)
                .map_err(|why| why.to_string())
        };
        let (all, heads) = (starts(Select::DATA)?, starts(Select::HEADS)?);
        if all.is_empty() {
            return Err(
                "the source does not record the start positions of reads and writes".to_owned(),
            );
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
        let step = place
            .inference
            .steps
            .iter()
            .find(|step| step.granularity_bytes == granularity);
        Ok(Phases {
            granularity,
            bar_bytes,
            whole: [0, 1].map(|side| bars.iter().map(|bar| bar[side]).sum()),
            bars,
            marks: marks(place, granularity),
            // One bar has one offset only while a bar is a sector.
            chance_heads: step
                .filter(|_| bar_bytes == SECTOR)
                .map(|step| step.chance_heads),
        })
    }

    fn draw(&self, m: &mut Markup, title: &str) {
        let bar = if self.bar_bytes == SECTOR {
            "sector".to_owned()
        } else {
            format::bytes(self.bar_bytes)
        };
        let how = format!(
            "share of starts by {bar} of {}, {} I/O and {} random I/O",
            self.granularity,
            format::count(self.whole[0]),
            format::count(self.whole[1])
        );
        figure(m, title, &how, |m| {
            svg::picture(
                m,
                Plot::HALF,
                "Share of starts by place within the grid",
                |m| self.picture(m, Plot::HALF),
            );
            let mut entries = vec![
                ("fo", "all I/O".to_owned()),
                ("fd", "random I/O".to_owned()),
            ];
            if self.chance_heads.is_some() {
                entries.push((
                    "chance",
                    "random I/O in the fullest sector if starts were spread evenly, 99 of 100 cases".to_owned(),
                ));
            }
            entries.extend(self.marks.iter().map(|marks| ("mark", marks.text())));
            legend(m, entries);
        });
    }

    fn share(&self, side: usize, bar: &[u64; 2]) -> f64 {
        bar[side] as f64 / self.whole[side].max(1) as f64
    }

    fn picture(&self, m: &mut Markup, plot: Plot) {
        let highest = self
            .bars
            .iter()
            .flat_map(|bar| [self.share(0, bar), self.share(1, bar)])
            .fold(0.0, f64::max);
        let top = (highest * 1.06).min(1.0);
        let y = Linear {
            domain: (0.0, top),
            range: (plot.bottom(), plot.top),
        };
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
                (
                    place(at) + slot * from,
                    place(at) + slot * (from + 0.4),
                    y.at(self.share(side, bar)),
                )
            });
            svg::path(m, class, &svg::bars(columns, plot.bottom()));
        }
        self.axis(m, plot, slot);
        if let Some(heads) = self.chance_heads {
            let share = heads as f64 / self.whole[1].max(1) as f64;
            if share <= top {
                svg::level(m, (plot.left, y.at(share)), (plot.right(), y.at(share)));
            }
        }
        self.draw_marks(m, plot, slot);
        for (at, bar) in self.bars.iter().enumerate() {
            let words = self.bar_text(at, bar);
            svg::hint(
                m,
                (place(at), place(at) + slot),
                (plot.top, plot.bottom()),
                &words,
            );
        }
    }

    fn axis(&self, m: &mut Markup, plot: Plot, slot: f64) {
        let per_bar = self.bar_bytes / SECTOR;
        // Sixteen numbers of two digits fit, or eight of four.
        let most = if self.bars.len() <= 16 { 16 } else { 8 };
        let every = (self.bars.len() as u64).div_ceil(most).next_power_of_two();
        let ticks = (0..self.bars.len() as u64)
            .step_by(every as usize)
            .map(|at| Tick {
                at: plot.left + slot * (at as f64 + 0.5),
                label: format::count(at * per_bar),
            });
        let title = format!("start in sectors of 512 B, within {}", self.granularity);
        svg::x_axis(m, plot, &ticks.collect::<Vec<_>>(), &title);
    }

    /// A triangle above the bar in which a grid has its boundary, and a line down to it.
    fn draw_marks(&self, m: &mut Markup, plot: Plot, slot: f64) {
        for offset in self.marks.iter().flat_map(|marks| &marks.offsets) {
            let x = plot.left + slot * ((offset.0 / self.bar_bytes) as f64 + 0.5);
            svg::line(m, "mark", (x, plot.top - 8.0), (x, plot.bottom()));
            let [left, right, tip, top] =
                [x - 5.0, x + 5.0, plot.top - 4.0, plot.top - 12.0].map(svg::num);
            svg::path(
                m,
                "tip",
                &format!("M{left} {top}H{right}L{} {tip}Z", svg::num(x)),
            );
        }
    }

    fn bar_text(&self, at: usize, bar: &[u64; 2]) -> String {
        let sector = at as u64 * self.bar_bytes / SECTOR;
        format!(
            "from sector {}\nall I/O {} ({})\nrandom I/O {} ({})",
            format::count(sector),
            format::count(bar[0]),
            share_of(bar[0], self.whole[0]),
            format::count(bar[1]),
            share_of(bar[1], self.whole[1]),
        )
    }
}
