//! The full-screen view: the content of an interval, the course of the devices, and the keys that change the view. Draws
//! anything it is handed; no clock and no terminal here, so that a test can look at the result.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};

use plumb_capture::Reading;
use plumb_diagnose::analysis::OpSummary;
use plumb_diagnose::{Analysis, Questions, analyze};
use plumb_geometry::{Bytes, Grid, GridKind, natural};

use self::course::{Course, INTERVALS_MAX, Moment};

mod course;
mod device;
mod draw;
mod graph;
mod help;
mod page;
mod processes;
#[cfg(test)]
mod tests;

/// Intervals that are kept whole, so that the view can go back to them.
const KEPT: usize = 120;

/// Rows of residue tables in the kept intervals: some 40 MiB. A row takes about 80 bytes.
const KEPT_ROWS: usize = 1 << 19;

/// Intervals that a column of a graph may stand for.
const ZOOMS: [usize; 6] = [1, 2, 5, 10, 20, 60];

/// Lines that a page key scrolls.
const PAGE_LINES: usize = 10;

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
    /// A longer interval.
    Longer,
    /// A shorter interval.
    Shorter,
}

/// The content below the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    /// The list of devices, and the selected one in short.
    Overview,
    /// The selected device alone.
    Device,
    /// All processes.
    Processes,
    /// The I/O of applications in the place of the selected device.
    Applications,
    /// The keys.
    Help,
}

/// A key as the view knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKey {
    /// A letter or sign.
    Letter(char),
    /// One device, or one line, up.
    Up,
    /// One device, or one line, down.
    Down,
    /// A page of lines up.
    PageUp,
    /// A page of lines down.
    PageDown,
    /// An interval back.
    Left,
    /// An interval forward.
    Right,
    /// Back to the newest interval.
    End,
    /// The page of the selected device, or the end of a filter.
    Enter,
    /// A click on this row of the screen.
    Click(u16),
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
    /// Its place in a recording, in words; `None` if it is live.
    pub position: Option<String>,
    /// The I/O of the disks, and their senders.
    pub reading: Reading,
    /// Sentences that a reader must know.
    pub notes: Vec<String>,
    /// I/O of applications to file systems, as text, if they are watched.
    pub asked: Option<String>,
}

impl ShownInterval {
    /// Rows of the residue tables of its devices.
    fn rows(&self) -> usize {
        let profiles = self.reading.profiles.iter();
        profiles.map(|one| one.places.table.len()).sum()
    }
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
    /// Whether the view stays at an interval while others come.
    frozen: bool,
    /// Intervals between the one that is shown and the newest.
    back: usize,
    view: View,
    selected: usize,
    /// The first line of the list of processes.
    scrolled: usize,
    colored: bool,
    ascii: bool,
    /// The newest intervals, the oldest first.
    kept: VecDeque<ShownInterval>,
    courses: BTreeMap<String, Course>,
    /// Lengths of the intervals in the courses, in seconds.
    lengths_s: VecDeque<f64>,
    /// Intervals since the beginning.
    intervals: usize,
    /// How many intervals are a column of a graph.
    zoom: usize,
    /// The row of the screen with the first device, how many rows follow, and the first device's number.
    listed: Cell<(u16, u16, usize)>,
    ranked: Vec<Analysis>,
    /// A message of the program, until the next key.
    pub notice: Option<String>,
}

impl Screen {
    /// A view that judges by these grids first.
    #[must_use]
    pub fn new(watched: WatchSubject, given: &[Grid], colored: bool, ascii: bool) -> Screen {
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
            back: 0,
            view: View::Overview,
            selected: 0,
            scrolled: 0,
            colored,
            ascii,
            kept: VecDeque::new(),
            courses: BTreeMap::new(),
            lengths_s: VecDeque::new(),
            intervals: 0,
            zoom: 1,
            listed: Cell::new((0, 0, 0)),
            ranked: Vec::new(),
            notice: None,
        }
    }

    /// Takes in an interval. A frozen view goes on to show the one that it has, as long as it is kept.
    pub fn see(&mut self, seen: ShownInterval) {
        let grid = *self.grid();
        let mut moments: BTreeMap<String, Moment> = BTreeMap::new();
        for profile in seen.reading.profiles.iter() {
            let moment = Moment::new(profile, seen.seconds, &grid);
            moments.insert(profile.device.clone(), moment);
            let course = self.courses.entry(profile.device.clone()).or_default();
            course.begin_late(self.lengths_s.iter().copied());
        }
        for (device, course) in &mut self.courses {
            let idle = || Moment::idle(seen.seconds);
            course.push(moments.remove(device).unwrap_or_else(idle));
        }
        self.courses.retain(|_, course| !course.is_idle());
        self.lengths_s.push_back(seen.seconds);
        if self.lengths_s.len() > INTERVALS_MAX {
            self.lengths_s.pop_front();
        }
        self.intervals += 1;
        self.kept.push_back(seen);
        self.drop_old();
        let back = if self.frozen { self.back + 1 } else { 0 };
        self.back = back.min(self.kept.len() - 1);
        // A frozen view keeps its order until that interval is dropped.
        if !self.frozen || self.back < back {
            self.rank();
        }
    }

    /// Drops the oldest intervals beyond the number and size that are kept.
    fn drop_old(&mut self) {
        let mut rows: usize = self.kept.iter().map(ShownInterval::rows).sum();
        while self.kept.len() > 1 && (self.kept.len() > KEPT || rows > KEPT_ROWS) {
            rows -= self.kept.pop_front().map_or(0, |oldest| oldest.rows());
        }
    }

    /// The interval that is shown.
    fn seen(&self) -> Option<&ShownInterval> {
        let at = self.kept.len().checked_sub(1 + self.back)?;
        self.kept.get(at)
    }

    fn grid(&self) -> &Grid {
        &self.grids[self.grid]
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
                _ => {}
            }
            self.rank();
            return Wish::None;
        }
        match key {
            ViewKey::Letter('q') => return Wish::Quit,
            ViewKey::Letter('w') => return Wish::Save,
            ViewKey::Letter('+' | '=') => return Wish::Longer,
            ViewKey::Letter('-') => return Wish::Shorter,
            ViewKey::Letter('s') => self.sort = self.sort.next(),
            ViewKey::Letter('g') => self.step_grid(1),
            ViewKey::Letter('G') => self.step_grid(self.grids.len() - 1),
            ViewKey::Letter('o') => self.shift_grid(512),
            ViewKey::Letter('z') => self.step_zoom(1),
            ViewKey::Letter('Z') => self.step_zoom(ZOOMS.len() - 1),
            ViewKey::Letter('f' | ' ') => self.freeze(!self.frozen),
            ViewKey::End => self.freeze(false),
            ViewKey::Left => self.go_back(),
            ViewKey::Right => self.go_forward(),
            ViewKey::Letter('a') => self.toggle(View::Applications),
            ViewKey::Letter('p') => self.toggle(View::Processes),
            ViewKey::Letter('?' | 'h') => self.toggle(View::Help),
            ViewKey::Enter => self.toggle(View::Device),
            ViewKey::Letter('/') => self.typing = true,
            ViewKey::Escape if self.view != View::Overview => self.view = View::Overview,
            ViewKey::Escape => self.filter.clear(),
            ViewKey::Up | ViewKey::Letter('k') => self.step_up(1),
            ViewKey::Down | ViewKey::Letter('j') => self.step_down(1),
            ViewKey::PageUp => self.step_up(PAGE_LINES),
            ViewKey::PageDown => self.step_down(PAGE_LINES),
            ViewKey::Click(row) => self.select_row(row),
            ViewKey::Letter(_) | ViewKey::Backspace => {}
        }
        self.rank();
        Wish::None
    }

    fn toggle(&mut self, view: View) {
        self.view = if self.view == view {
            View::Overview
        } else {
            view
        };
        self.scrolled = 0;
    }

    fn freeze(&mut self, frozen: bool) {
        self.frozen = frozen;
        if !frozen {
            self.back = 0;
        }
    }

    fn go_back(&mut self) {
        self.frozen = true;
        self.back = (self.back + 1).min(self.kept.len().saturating_sub(1));
    }

    /// At the newest interval the view goes on by itself.
    fn go_forward(&mut self) {
        self.back = self.back.saturating_sub(1);
        self.frozen &= self.back > 0;
    }

    fn step_up(&mut self, lines: usize) {
        match self.view {
            View::Processes | View::Help => {
                self.scrolled = self.scrolled.saturating_sub(lines);
            }
            _ => self.selected = self.selected.saturating_sub(lines),
        }
    }

    fn step_down(&mut self, lines: usize) {
        match self.view {
            View::Processes => {
                let last = self.process_count().saturating_sub(1);
                self.scrolled = (self.scrolled + lines).min(last);
            }
            View::Help => self.scrolled = (self.scrolled + lines).min(help::LINES - 1),
            _ => self.selected += lines,
        }
    }

    /// Selects the device in a row of the screen; a second click opens its page.
    fn select_row(&mut self, row: u16) {
        let (first_row, rows, first) = self.listed.get();
        if !matches!(self.view, View::Overview | View::Applications) {
            return;
        }
        let Some(below) = row.checked_sub(first_row).filter(|below| *below < rows) else {
            return;
        };
        let at = first + usize::from(below);
        if at == self.selected {
            self.toggle(View::Device);
        } else if at < self.ranked.len() {
            self.selected = at;
        }
    }

    fn step_zoom(&mut self, by: usize) {
        let at = ZOOMS.iter().position(|zoom| *zoom == self.zoom);
        self.zoom = ZOOMS[(at.unwrap_or(0) + by) % ZOOMS.len()];
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
        let Some(seen) = self.seen() else { return };
        let wanted = seen
            .reading
            .profiles
            .iter()
            .filter(|profile| profile.device.contains(&self.filter));
        let mut ranked: Vec<Analysis> = wanted
            .filter(|one| one.ios() > 0)
            .map(|one| analyze(one, None, &questions))
            .collect();
        let sort = self.sort;
        ranked.sort_by(|a, b| {
            let by = match sort {
                Sort::Misfit => misfit(b).total_cmp(&misfit(a)).then(b.ios.cmp(&a.ios)),
                Sort::Ios => b.ios.cmp(&a.ios),
                Sort::Bytes => b.bytes.cmp(&a.bytes),
                Sort::Latency => median(b).cmp(&median(a)),
                Sort::Name => std::cmp::Ordering::Equal,
            };
            by.then_with(|| natural(&a.target.device, &b.target.device))
        });
        self.ranked = ranked;
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
