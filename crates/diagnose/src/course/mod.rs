//! Rules on the course of a device over time. A rule finds the window from which on a quantity has another level, or stays silent.
//!
//! A window is one observation: I/O of one window hang on each other, so that their number tells nothing about the certainty. The test
//! allows for windows that hang on each other ([`plumb_stats::step`]).

use plumb_model::facts::{ChangeTime, HostChange};
use plumb_model::reason::Counting;
use plumb_model::{Reason, Target};
use plumb_stats::{Step, best_cut, find_step};

use crate::rules::{Diagnosis, IOS_MIN, Judge, Outcome};

pub mod latency_grew;
pub mod misfit_rose;
pub mod sizes_changed;

/// Fewest days on each side of a change. A weekend and a working day on each side make a week no change.
const DAYS_MIN: usize = 5;

/// Fewest hours on each side of a change: two whole days, so that a nightly backup is none.
const HOURS_MIN: usize = 48;

/// Seconds of a day.
const DAY_SECONDS: u64 = 86_400;

/// How often a series without a change shows one, for each rule and device.
const ERROR: f64 = 0.01;

/// Time between two surveys of the host.
const SURVEY_NS: i64 = DAY_SECONDS as i64 * 1_000_000_000;

/// Parts of a course, cut at its falls, in which a rise is searched. Each search has its part of the error.
const FALLS_MAX: usize = 3;

/// The I/O of a device over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// The device.
    pub target: Target,
    /// Length of a window, s.
    pub window_seconds: u64,
    /// Windows with I/O, in order.
    pub windows: Vec<CourseWindow>,
    /// Changes of the host meanwhile, in order.
    pub host: Vec<HostChange>,
}

/// Totals of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CourseWindow {
    /// Its begin, ns since 1970.
    pub from_ns: i64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes of both.
    pub bytes: u64,
    /// Reads and writes off 4 KiB; `None` if it is unknown.
    pub misaligned: Option<u64>,
    /// Half of the latencies are at most this, ns; `None` without timed I/O.
    pub median_ns: Option<u64>,
    /// Reads and writes of up to 4, 16, 64 and 256 KiB, and longer ones.
    pub lengths: [u64; 5],
}

impl CourseWindow {
    /// Reads and writes.
    #[must_use]
    pub fn placed(&self) -> u64 {
        self.reads.saturating_add(self.writes)
    }
}

/// A rule on a course.
pub type CourseRule = Judge<fn(&Course) -> Outcome>;

/// All rules, in the order in which findings of one severity are shown.
pub static RULES: &[CourseRule] = &[misfit_rose::RULE, latency_grew::RULE, sizes_changed::RULE];

/// Applies all rules to a course.
#[must_use]
pub fn diagnose(course: &Course) -> Diagnosis {
    let mut diagnosis = Diagnosis::default();
    for rule in RULES {
        diagnosis.take(rule.id, &course.target, (rule.judge)(course));
    }
    diagnosis.settle();
    diagnosis
}

/// The thresholds that all rules have.
fn thresholds(size: String) -> Vec<String> {
    vec![
        format!("{DAYS_MIN} days or {HOURS_MIN} hours with {IOS_MIN} I/O on each side"),
        size,
    ]
}

/// The windows of a course with enough I/O and a value.
struct ValuedWindows<'a> {
    course: &'a Course,
    windows: Vec<&'a CourseWindow>,
    values: Vec<f64>,
    strata: Vec<u32>,
}

impl<'a> ValuedWindows<'a> {
    /// `value` gives the value of a window and its stratum.
    fn new(
        course: &'a Course,
        value: impl Fn(&CourseWindow) -> Option<(f64, u32)>,
    ) -> ValuedWindows<'a> {
        let mut series = ValuedWindows {
            course,
            windows: Vec::new(),
            values: Vec::new(),
            strata: Vec::new(),
        };
        for window in &course.windows {
            let found = value(window).filter(|_| window.placed() >= IOS_MIN);
            if let Some((value, stratum)) = found {
                series.windows.push(window);
                series.values.push(value);
                series.strata.push(stratum);
            }
        }
        series
    }

    /// Fewest windows on each side.
    fn side_min(&self) -> usize {
        match self.course.window_seconds >= DAY_SECONDS {
            true => DAYS_MIN,
            false => HOURS_MIN,
        }
    }

    /// Why the rule cannot tell, if there are too few windows for a change. `what` names them.
    fn is_short(&self, what: Counting) -> Option<Reason> {
        let needed = 2 * self.side_min();
        (self.values.len() < needed).then_some(Reason::TooFew {
            what,
            seen: self.values.len() as u64,
            needed: needed as u64,
        })
    }

    /// The change of the series, if there is one; `tests` tests of the rule share the error.
    fn step(&self, tests: usize) -> Option<Step> {
        let error = ERROR / tests as f64;
        find_step(&self.values, &self.strata, self.side_min(), error).ok()?
    }

    /// The rise that is the largest change since the last large fall, and the series from that fall on.
    fn rise(mut self) -> Option<(ValuedWindows<'a>, Step)> {
        for _ in 0..FALLS_MAX {
            let rise = self.step(FALLS_MAX);
            let rise = rise.filter(|step| step.height.estimate > 0.0);
            // A rise and a fall spread the rest of both, so that neither may pass the test before they are apart.
            let (at, height) = match &rise {
                Some(rise) => (rise.at, rise.height.estimate),
                None => self.best_cut(0)?,
            };
            let fall = match height < 0.0 {
                true => Some(at),
                false => self.fall_behind(at, height),
            };
            match (rise, fall) {
                (_, Some(at)) => self.drop_before(at),
                (rise, None) => return Some((self, rise?)),
            }
        }
        None
    }

    /// The place behind a rise of this height from which on most of it is gone again.
    fn fall_behind(&self, at: usize, rise: f64) -> Option<usize> {
        let (at, height) = self.best_cut(at)?;
        (height < -rise / 2.0).then_some(at)
    }

    /// The best cut of the windows from one of them on, tested or not.
    fn best_cut(&self, first: usize) -> Option<(usize, f64)> {
        let (values, strata) = (&self.values[first..], &self.strata[first..]);
        let (at, height) = best_cut(values, strata, self.side_min())?;
        Some((first + at, height))
    }

    fn drop_before(&mut self, at: usize) {
        self.windows.drain(..at);
        self.values.drain(..at);
        self.strata.drain(..at);
    }

    fn time(&self, step: &Step) -> ChangeTime {
        let width_ns = (self.course.window_seconds as i64).saturating_mul(1_000_000_000);
        let since_ns = self.windows[step.at].from_ns;
        // A change in the window before, or in the pause behind it, leaves its level as it was; a survey sees it up to a day later.
        let from_ns = match step.at.checked_sub(1) {
            Some(before) => self.windows[before].from_ns,
            None => since_ns,
        };
        let to_ns = since_ns.saturating_add(width_ns).saturating_add(SURVEY_NS);
        let is_beside = |change: &&HostChange| (from_ns..to_ns).contains(&change.at_ns);
        ChangeTime {
            since_ns,
            window_seconds: self.course.window_seconds,
            windows_before: step.at as u64,
            windows_after: (self.values.len() - step.at) as u64,
            beside: self.course.host.iter().filter(is_beside).cloned().collect(),
        }
    }

    /// Mean of a value over the windows before a change, and over those since then.
    fn means(&self, step: &Step, value: impl Fn(&CourseWindow) -> f64) -> [f64; 2] {
        let mean = |windows: &[&CourseWindow]| {
            windows.iter().map(|window| value(window)).sum::<f64>() / windows.len().max(1) as f64
        };
        let (before, after) = self.windows.split_at(step.at);
        [mean(before), mean(after)]
    }
}

/// A part of the reads and writes of a window.
fn share(part: u64, window: &CourseWindow) -> f64 {
    part as f64 / window.placed().max(1) as f64
}
