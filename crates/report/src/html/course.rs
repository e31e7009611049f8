//! The course over time in columns to be drawn, and the axis beneath it. Windows of the profile are put together
//! until few enough columns are left; a column in which nothing happened is there all the same.

use plumb_profile::Profile;
use plumb_profile::profile::TimeBase;
use plumb_profile::timeline::Window;

use super::clock;
use super::scale::{Linear, Tick, round_step, tick_label};
use super::svg::Plot;

/// Windows drawn as one. Times in seconds since the first I/O.
pub struct ChartColumn<'a> {
    /// Its start.
    pub from: f64,
    /// Its end.
    pub to: f64,
    windows: Vec<&'a Window>,
}

impl ChartColumn<'_> {
    /// Something of its windows, added up.
    pub fn sum(&self, what: impl Fn(&Window) -> u64) -> u64 {
        self.windows
            .iter()
            .map(|window| what(window))
            .fold(0, u64::saturating_add)
    }

    /// The largest of something.
    pub fn max(&self, what: impl Fn(&Window) -> u64) -> u64 {
        self.windows
            .iter()
            .map(|window| what(window))
            .max()
            .unwrap_or(0)
    }

    /// Something a second.
    pub fn rate(&self, what: impl Fn(&Window) -> u64) -> f64 {
        self.sum(what) as f64 / (self.to - self.from)
    }

    /// Its position.
    pub fn place(&self, x: Linear) -> (f64, f64) {
        (x.at(self.from), x.at(self.to))
    }
}

/// Why there is nothing to draw over time; `None` where there is.
pub fn why_none(profile: &Profile) -> Option<&'static str> {
    let has_course = profile.timeline.iter().next().is_some();
    (!has_course).then_some(match profile.time_base {
        TimeBase::Mixed => {
            "recordings of different clocks were put together, so there is no common time"
        }
        _ => "the source hands over sums without the time of each I/O",
    })
}

/// All columns.
pub struct ChartCourse<'a> {
    /// In order, without gaps; at least one.
    pub columns: Vec<ChartColumn<'a>>,
    /// Width of a column, ns; the last one may be narrower.
    pub width_ns: u64,
    base: TimeBase,
    first_ns: i64,
}

impl<'a> ChartCourse<'a> {
    /// At most `most` columns; `None` when the profile has no course.
    pub fn from_profile(profile: &'a Profile, most: u64) -> Option<ChartCourse<'a>> {
        let timeline = &profile.timeline;
        let width = timeline.width_ns();
        let (start, last) = (timeline.iter().next()?.0, timeline.iter().next_back()?.0);
        let windows = last.abs_diff(start) / width + 1;
        let together = windows.div_ceil(most.max(1));
        let first_ns = profile.first_ns.unwrap_or(start);
        let since = |ns: i128| (ns - i128::from(first_ns)) as f64 / 1e9;
        let edge = |window: u64| {
            since(i128::from(start) + i128::from(window.min(windows)) * i128::from(width))
        };
        let mut columns: Vec<ChartColumn<'_>> = (0..windows.div_ceil(together))
            .map(|at| ChartColumn {
                from: edge(at * together),
                to: edge((at + 1) * together),
                windows: Vec::new(),
            })
            .collect();
        for (at, window) in timeline.iter() {
            let column = at.abs_diff(start) / width / together;
            if let Some(column) = usize::try_from(column)
                .ok()
                .and_then(|at| columns.get_mut(at))
            {
                column.windows.push(window);
            }
        }
        let width_ns = width.saturating_mul(together);
        Some(ChartCourse {
            columns,
            width_ns,
            base: profile.time_base,
            first_ns,
        })
    }

    /// Scale of the time axis.
    pub fn scale(&self, plot: Plot) -> Linear {
        Linear {
            domain: self.domain(),
            range: (plot.left, plot.right()),
        }
    }

    fn domain(&self) -> (f64, f64) {
        let edge = |column: Option<&ChartColumn<'_>>, take: fn(&ChartColumn<'_>) -> f64| {
            column.map_or(0.0, take)
        };
        (
            edge(self.columns.first(), |column| column.from),
            edge(self.columns.last(), |column| column.to),
        )
    }

    /// The start of a column; the end for those behind the last.
    pub fn edge(&self, column: usize) -> f64 {
        self.columns
            .get(column)
            .map_or(self.domain().1, |column| column.from)
    }

    /// Ticks of the time axis and its title.
    pub fn axis(&self, plot: Plot) -> (Vec<Tick>, String) {
        let (from, to) = self.domain();
        let scale = self.scale(plot);
        if self.base == TimeBase::Unix {
            let ns = |seconds: f64| i128::from(self.first_ns) + (seconds * 1e9) as i128;
            let (marks, title) = clock::marks(ns(from), ns(to));
            let at = |ns: i128| scale.at((ns - i128::from(self.first_ns)) as f64 / 1e9);
            return (
                marks
                    .into_iter()
                    .map(|(ns, label)| Tick { at: at(ns), label })
                    .collect(),
                title,
            );
        }
        // Time units of sixty and of twenty-four have round steps from one whole unit on only.
        let units = [
            (86_400.0, 8.0, "days"),
            (3_600.0, 8.0, "hours"),
            (60.0, 8.0, "minutes"),
            (1.0, 2.0, "seconds"),
            (1e-3, 2.0, "ms"),
        ];
        let found = units
            .into_iter()
            .find(|(unit, least, _)| to - from >= least * unit);
        let (unit, _, name) = found.unwrap_or((1e-6, 0.0, "µs"));
        let step = round_step((to - from) / unit, 5.0);
        let marks = (0..64).map(|n| f64::from(n) * step);
        let shown = marks.filter(|mark| (from..=to).contains(&(mark * unit)));
        let tick = |mark: f64| Tick {
            at: scale.at(mark * unit),
            label: tick_label(mark, step),
        };
        (
            shown.map(tick).collect(),
            format!("{name} since the first I/O"),
        )
    }

    /// When a column is, for hints.
    pub fn when(&self, column: &ChartColumn<'_>) -> String {
        if self.base == TimeBase::Unix {
            let ns = i128::from(self.first_ns) + (column.from * 1e9) as i128;
            return format!("from {} UTC", clock::to_the_millisecond(ns));
        }
        format!("from {:.3} s", column.from)
    }
}
