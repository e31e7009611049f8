//! How a replay went over time: I/O by when they were due, in windows that double their length when there are too many, so
//! that a replay of a day takes no more memory than one of a second.

use std::time::Duration;

use serde::Serialize;

/// More windows than this are put together in pairs: a picture shows no more.
const WINDOWS_MAX: usize = 240;

/// The shortest window: 2^20 ns, about a millisecond.
const WINDOW_NS_MIN: u64 = 1 << 20;

/// I/O that were due in a period, and succeeded. Without due times, an I/O is due at its issue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DueWindow {
    /// How many.
    pub ios: u64,
    /// Sum of their times from due to complete, ns.
    pub response_ns_sum: u128,
    /// The longest of these, ns.
    pub response_ns_max: u64,
    /// Sum of their times from due to issue, ns.
    pub late_ns_sum: u128,
}

impl DueWindow {
    fn add(&mut self, other: DueWindow) {
        self.ios += other.ios;
        self.response_ns_sum += other.response_ns_sum;
        self.response_ns_max = self.response_ns_max.max(other.response_ns_max);
        self.late_ns_sum += other.late_ns_sum;
    }
}

/// Windows of one length, from the beginning on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayCourse {
    window_ns: u64,
    windows: Vec<DueWindow>,
}

impl Default for ReplayCourse {
    fn default() -> ReplayCourse {
        ReplayCourse {
            window_ns: WINDOW_NS_MIN,
            windows: Vec::new(),
        }
    }
}

/// I/O that succeeded, by when they were due, in windows of one length from the beginning on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CourseFigures {
    /// Length of each window.
    pub window_seconds: f64,
    /// The windows; empty ones among them.
    pub windows: Vec<WindowFigures>,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WindowFigures {
    /// I/O that were due in it.
    pub ios: u64,
    /// Their mean time from due, or from issue where nothing was due at a time; `None` without any.
    pub response_mean_ns: Option<f64>,
    /// The longest of these.
    pub response_max_ns: Option<u64>,
    /// Mean time from due to issue; `None` where nothing was due at a time.
    pub late_mean_ns: Option<f64>,
}

impl ReplayCourse {
    /// Counts an I/O that succeeded; times since the replay began.
    pub(crate) fn record(&mut self, due_ns: u64, issued_ns: u64, completed_ns: u64) {
        while due_ns / self.window_ns >= WINDOWS_MAX as u64 {
            self.double();
        }
        let at = (due_ns / self.window_ns) as usize;
        if at >= self.windows.len() {
            self.windows.resize(at + 1, DueWindow::default());
        }
        let response_ns = completed_ns.saturating_sub(due_ns);
        let late_ns = issued_ns.saturating_sub(due_ns);
        self.windows[at].add(DueWindow {
            ios: 1,
            response_ns_sum: u128::from(response_ns),
            response_ns_max: response_ns,
            late_ns_sum: u128::from(late_ns),
        });
    }

    fn double(&mut self) {
        self.window_ns *= 2;
        for at in 0..self.windows.len().div_ceil(2) {
            let mut both = self.windows[2 * at];
            if let Some(next) = self.windows.get(2 * at + 1) {
                both.add(*next);
            }
            self.windows[at] = both;
        }
        self.windows.truncate(self.windows.len().div_ceil(2));
    }

    /// Length of each window.
    #[must_use]
    pub fn window(&self) -> Duration {
        Duration::from_nanos(self.window_ns)
    }

    /// The windows, one after the other; empty ones among them.
    #[must_use]
    pub fn windows(&self) -> &[DueWindow] {
        &self.windows
    }

    /// The figures of the windows. `is_timed` states whether I/O were due at times.
    #[must_use]
    pub fn figures(&self, is_timed: bool) -> CourseFigures {
        let windows = self.windows.iter().map(|window| {
            let mean = |sum: u128| (window.ios > 0).then(|| sum as f64 / window.ios as f64);
            WindowFigures {
                ios: window.ios,
                response_mean_ns: mean(window.response_ns_sum),
                response_max_ns: (window.ios > 0).then_some(window.response_ns_max),
                late_mean_ns: mean(window.late_ns_sum).filter(|_| is_timed),
            }
        });
        CourseFigures {
            window_seconds: self.window().as_secs_f64(),
            windows: windows.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_double_and_lose_nothing() {
        let mut course = ReplayCourse::default();
        // One I/O each 7 ms over a minute: issued 1,000 ns late, and 5,000 ns more until it is complete.
        let dues = (0..8_572u64).map(|number| number * 7_000_000);
        dues.clone()
            .for_each(|due_ns| course.record(due_ns, due_ns + 1_000, due_ns + 6_000));
        let windows = course.windows();
        assert!(
            windows.len() > WINDOWS_MAX / 2 && windows.len() <= WINDOWS_MAX,
            "{}",
            windows.len()
        );
        assert_eq!(course.window(), Duration::from_nanos(1 << 28));
        for (at, window) in windows.iter().enumerate() {
            let within = dues
                .clone()
                .filter(|due_ns| due_ns >> 28 == at as u64)
                .count() as u64;
            let expected = DueWindow {
                ios: within,
                response_ns_sum: u128::from(within) * 6_000,
                response_ns_max: 6_000,
                late_ns_sum: u128::from(within) * 1_000,
            };
            assert_eq!(*window, expected, "{at}");
        }
    }

    /// Two I/O in the first window of 2^20 ns, none in the second, and one in the third.
    #[test]
    fn figures_are_means_of_windows() {
        let mut course = ReplayCourse::default();
        course.record(0, 10, 110);
        course.record(50, 80, 350);
        course.record(2 << 20, 2 << 20, (2 << 20) + 7);
        let figures = course.figures(true);
        let window = |ios, mean: Option<f64>, max, late| WindowFigures {
            ios,
            response_mean_ns: mean,
            response_max_ns: max,
            late_mean_ns: late,
        };
        let expected = [
            window(2, Some(205.0), Some(300), Some(20.0)),
            window(0, None, None, None),
            window(1, Some(7.0), Some(7), Some(0.0)),
        ];
        assert_eq!(figures.windows, expected);
        assert_eq!(figures.window_seconds, 1_048_576.0 / 1e9);
        let untimed = course.figures(false).windows;
        assert!(untimed.iter().all(|window| window.late_mean_ns.is_none()));
    }

    #[test]
    fn any_time_has_a_window() {
        let mut course = ReplayCourse::default();
        course.record(0, 0, 9);
        course.record(u64::MAX, u64::MAX, u64::MAX);
        assert_eq!(
            course
                .windows()
                .iter()
                .map(|window| window.ios)
                .sum::<u64>(),
            2
        );
        assert!(course.windows().len() <= WINDOWS_MAX);
    }
}
