//! The full-screen view: the content of the last interval, and the keys that change the view. Draws anything it is handed;
//! no clock and no terminal here, so that a test can look at the result.

use std::collections::{BTreeMap, VecDeque};

use plumb_capture::Reading;
use plumb_diagnose::analysis::OpSummary;
use plumb_diagnose::{Analysis, Questions, analyze};
use plumb_geometry::{Bytes, Grid, GridKind, natural};

mod device;
mod draw;
mod help;
#[cfg(test)]
mod tests;

/// Intervals that a sparkline looks back.
const HISTORY: usize = 240;

/// Grids that a key steps through, beside those of the command line.
const GRIDS: [u64; 8] = [
    512,
    4 << 10,
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    1 << 20,
];

/// The measure that ranks devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Share of I/O off the grid, then how many.
    Misfit,
    /// I/O.
    Ios,
    /// Bytes.
    Bytes,
    /// Median latency.
    Latency,
    /// Name.
    Name,
}

impl Sort {
    const ALL: [Sort; 5] = [
        Sort::Misfit,
        Sort::Ios,
        Sort::Bytes,
        Sort::Latency,
        Sort::Name,
    ];

    fn word(self) -> &'static str {
        match self {
            Sort::Misfit => "misfit",
            Sort::Ios => "I/O",
            Sort::Bytes => "bytes",
            Sort::Latency => "latency",
            Sort::Name => "name",
        }
    }

    fn next(self) -> Sort {
        let at = Sort::ALL.iter().position(|sort| *sort == self).unwrap_or(0);
        Sort::ALL[(at + 1) % Sort::ALL.len()]
    }
}

/// The request of a key to the program around the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Nothing.
    None,
    /// To end.
    Quit,
    /// To save the profile of the whole time.
    Save,
}

/// A key as the view knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKey {
    /// A letter or sign.
    Letter(char),
    /// One device up.
    Up,
    /// One device down.
    Down,
    /// The end of a filter.
    Enter,
    /// A letter less.
    Backspace,
    /// No filter.
    Escape,
}

/// An interval as it came.
pub struct ShownInterval {
    /// End of the interval, UTC.
    pub time: String,
    /// Its length in seconds.
    pub seconds: f64,
    /// The I/O of the disks, and their senders.
    pub reading: Reading,
    /// Sentences that a reader must know.
    pub notes: Vec<String>,
    /// I/O of applications to file systems, as text, if they are watched.
    pub asked: Option<String>,
}

/// The subject of the watch, for a view that has nothing to show.
pub struct WatchSubject {
    /// The disks, by name; all disks if empty.
    pub disks: Vec<String>,
    /// Layers, and how they are watched.
    pub how: String,
    /// The filter: only these I/O count.
    pub filter: Option<String>,
    /// How long an interval is, in seconds.
    pub interval_s: f64,
}

/// The view.
pub struct Screen {
    watched: WatchSubject,
    grids: Vec<Grid>,
    grid: usize,
    assumed: bool,
    sort: Sort,
    filter: String,
    typing: bool,
    frozen: bool,
    /// Whether the view shows I/O of applications in the place of a device.
    asks: bool,
    /// Whether the keys are shown in the place of all devices.
    helps: bool,
    selected: usize,
    colored: bool,
    seen: Option<ShownInterval>,
    /// I/O of each interval, by device.
    history: BTreeMap<String, VecDeque<u64>>,
    intervals: usize,
    /// Intervals that came since the one that is shown: of a frozen view.
    behind: usize,
    ranked: Vec<Analysis>,
    /// A message of the program, until the next key.
    pub notice: Option<String>,
}

impl Screen {
    /// A view that judges by these grids first.
    #[must_use]
    pub fn new(watched: WatchSubject, given: &[Grid], colored: bool) -> Screen {
        let whole = |granularity| Grid::new(Bytes(granularity), Bytes(0), GridKind::Unit).ok();
        let mut grids = given.to_vec();
        grids.extend(
            GRIDS
                .into_iter()
                .filter_map(whole)
                .filter(|grid| !given.contains(grid)),
        );
        let grid = if given.is_empty() {
            grids.iter().position(|grid| *grid == Grid::ASSUMED)
        } else {
            Some(0)
        };
        Screen {
            watched,
            grids,
            grid: grid.unwrap_or(0),
            assumed: given.is_empty(),
            sort: Sort::Misfit,
            filter: String::new(),
            typing: false,
            frozen: false,
            asks: false,
            helps: false,
            selected: 0,
            colored,
            seen: None,
            history: BTreeMap::new(),
            intervals: 0,
            behind: 0,
            ranked: Vec::new(),
            notice: None,
        }
    }

    /// Takes in an interval. A frozen view goes on to show the one that it has.
    pub fn see(&mut self, seen: ShownInterval) {
        self.intervals += 1;
        for profile in seen.reading.profiles.iter() {
            let past = self.history.entry(profile.device.clone()).or_default();
            // A device that was not there before had nothing to do.
            past.resize(past.len().max((self.intervals - 1).min(HISTORY)), 0);
        }
        for (device, past) in &mut self.history {
            let ios = seen
                .reading
                .profiles
                .iter()
                .filter(|profile| profile.device == *device)
                .map(|one| one.ios())
                .sum();
            past.push_back(ios);
            while past.len() > HISTORY {
                past.pop_front();
            }
        }
        if !self.frozen || self.seen.is_none() {
            self.seen = Some(seen);
            self.behind = 0;
            self.rank();
        } else {
            self.behind += 1;
        }
    }

    /// Does the action of a key.
    pub fn press(&mut self, key: ViewKey) -> Wish {
        self.notice = None;
        if self.typing {
            match key {
                ViewKey::Letter(letter) => self.filter.push(letter),
                ViewKey::Backspace => drop(self.filter.pop()),
                ViewKey::Escape => (self.typing, self.filter) = (false, String::new()),
                ViewKey::Enter => self.typing = false,
                ViewKey::Up | ViewKey::Down => {}
            }
            self.rank();
            return Wish::None;
        }
        match key {
            ViewKey::Letter('q') => return Wish::Quit,
            ViewKey::Letter('w') => return Wish::Save,
            ViewKey::Letter('s') => self.sort = self.sort.next(),
            ViewKey::Letter('g') => self.step_grid(1),
            ViewKey::Letter('G') => self.step_grid(self.grids.len() - 1),
            ViewKey::Letter('o') => self.shift_grid(512),
            ViewKey::Letter('f' | ' ') => self.frozen = !self.frozen,
            ViewKey::Letter('a') => self.asks = !self.asks,
            ViewKey::Letter('?' | 'h') => self.helps = !self.helps,
            ViewKey::Letter('/') => self.typing = true,
            ViewKey::Escape if self.helps => self.helps = false,
            ViewKey::Escape => self.filter.clear(),
            ViewKey::Up | ViewKey::Letter('k') => self.selected = self.selected.saturating_sub(1),
            ViewKey::Down | ViewKey::Letter('j') => self.selected += 1,
            _ => {}
        }
        self.rank();
        Wish::None
    }

    fn step_grid(&mut self, by: usize) {
        self.grid = (self.grid + by) % self.grids.len();
        self.assumed = false;
    }

    /// Moves the grid on by a sector; behind the last one it begins at 0 again.
    fn shift_grid(&mut self, by: u64) {
        let grid = self.grids[self.grid];
        let offset = Bytes((grid.offset().0 + by) % grid.granularity().0);
        if let Ok(moved) = Grid::new(grid.granularity(), offset, grid.kind()) {
            self.grids[self.grid] = moved;
            self.assumed = false;
        }
    }

    fn questions(&self) -> Questions {
        let grids = if self.assumed {
            Vec::new()
        } else {
            vec![self.grids[self.grid]]
        };
        Questions {
            grids,
            ..Questions::default()
        }
    }

    fn rank(&mut self) {
        let questions = self.questions();
        let Some(seen) = &self.seen else { return };
        let wanted = seen
            .reading
            .profiles
            .iter()
            .filter(|profile| profile.device.contains(&self.filter));
        self.ranked = wanted
            .filter(|one| one.ios() > 0)
            .map(|one| analyze(one, None, &questions))
            .collect();
        let sort = self.sort;
        self.ranked.sort_by(|a, b| {
            let by = match sort {
                Sort::Misfit => misfit(b).total_cmp(&misfit(a)).then(b.ios.cmp(&a.ios)),
                Sort::Ios => b.ios.cmp(&a.ios),
                Sort::Bytes => b.bytes.cmp(&a.bytes),
                Sort::Latency => median(b).cmp(&median(a)),
                Sort::Name => std::cmp::Ordering::Equal,
            };
            by.then_with(|| natural(&a.target.device, &b.target.device))
        });
        self.selected = self.selected.min(self.ranked.len().saturating_sub(1));
    }
}

/// Share of the I/O that start off the grid; 0 where that is unknown, which is shown as such.
fn misfit(analysis: &Analysis) -> f64 {
    let tally = analysis
        .device()
        .and_then(|place| place.grids.first()?.all.as_ref().ok());
    tally.map_or(0.0, |tally| {
        tally.misaligned.low as f64 / tally.ios.max(1) as f64
    })
}

/// The operation with the most I/O.
fn busiest(analysis: &Analysis) -> Option<&OpSummary> {
    analysis.ops.iter().max_by_key(|op| op.ios)
}

fn median(analysis: &Analysis) -> u64 {
    busiest(analysis)
        .and_then(|op| op.device.as_ref())
        .map_or(0, |quantiles| quantiles.p50_ns)
}
