//! The line on a terminal that tells how far a command has come: share, rate and time left.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plumb_geometry::group_digits;
use plumb_report::format::bytes;
use plumb_trace::progress::Progress;

use crate::output;

/// Anything shorter is not worth a line.
const QUIET: Duration = Duration::from_secs(2);
/// How often a line changes.
const STEP: Duration = Duration::from_millis(200);

/// A line on standard error that is rewritten in place. Without a terminal that can do so it shows nothing.
pub struct StatusLine {
    can_show: bool,
    is_shown: bool,
    next: Instant,
}

impl StatusLine {
    #[must_use]
    pub fn new() -> StatusLine {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        StatusLine {
            can_show: std::io::stderr().is_terminal() && !is_dumb,
            is_shown: false,
            next: Instant::now(),
        }
    }

    /// A line that never shows anything.
    #[must_use]
    pub fn silent() -> StatusLine {
        StatusLine {
            can_show: false,
            is_shown: false,
            next: Instant::now(),
        }
    }

    /// Shows the words in place of the last ones, but not more often than a person reads.
    pub fn show(&mut self, words: impl FnOnce() -> String) {
        let now = Instant::now();
        if !self.can_show || now < self.next {
            return;
        }
        (self.next, self.is_shown) = (now + STEP, true);
        // A line that wraps cannot be rewritten.
        let width = output::columns(&std::io::stderr()).unwrap_or(output::WIDTH);
        let words: String = words().chars().take(width - 1).collect();
        eprint!("\r{words}\x1b[K");
        // A terminal that has gone away is no reason to end.
        std::io::stderr().flush().ok();
    }

    /// Takes the line away, before something else is printed. The next words are shown at once.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            eprint!("\r\x1b[K");
            std::io::stderr().flush().ok();
            self.next = Instant::now();
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A status line of a thread of its own, for work that cannot stop to show one. It begins after two seconds, and ends when the meter is
/// dropped.
pub struct Meter {
    shown: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Meter {
    /// Shows words that depend on the time since the start.
    #[must_use]
    pub fn start(words: impl Fn(Duration) -> String + Send + 'static) -> Meter {
        let mut line = StatusLine::new();
        let shown = line.can_show.then(|| {
            let (stop, stopped) = channel();
            let started = Instant::now();
            let show = std::thread::spawn(move || {
                let mut wait = QUIET;
                while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                    wait = STEP;
                    line.show(|| words(started.elapsed()));
                }
            });
            (stop, show)
        });
        Meter { shown }
    }

    /// Shows how much of its inputs a reader has read.
    #[must_use]
    pub fn of_reading(progress: &Arc<Progress>) -> Meter {
        let progress = Arc::clone(progress);
        Meter::start(move |elapsed| {
            let (read, known) = progress.state();
            reading(read, known, elapsed)
        })
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some((stop, show)) = self.shown.take() {
            drop(stop);
            show.join().ok();
        }
    }
}

/// `12.4 MiB of 53 MiB, 23 %, 6.1 MiB/s, 7 s left`; without a known end only the length read and the rate.
fn reading(read: u64, known: u64, elapsed: Duration) -> String {
    let rate = read as f64 / elapsed.as_secs_f64().max(0.001);
    if known == 0 {
        return format!("{} read, {}/s", bytes(read), bytes(rate as u64));
    }
    bytes_of(read, known, rate)
}

/// `12.4 MiB of 53 MiB, 23 %, 6.1 MiB/s, 7 s left`.
#[must_use]
pub fn bytes_of(done: u64, all: u64, per_second: f64) -> String {
    format!(
        "{} of {}, {} %, {}/s, {} left",
        bytes(done),
        bytes(all),
        percent(done, all),
        bytes(per_second as u64),
        time_left(done, all, per_second)
    )
}

/// `1,234 of 5,000 I/O, 24 %, 411/s, 9 s left`.
#[must_use]
pub fn count_of(done: u64, all: u64, unit: &str, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64().max(0.001);
    format!(
        "{} of {} {unit}, {} %, {}/s, {} left",
        group_digits(done),
        group_digits(all),
        percent(done, all),
        group_digits(rate as u64),
        time_left(done, all, rate)
    )
}

/// `12 of 30 s, 18 s left`.
#[must_use]
pub fn time_of(done: Duration, all: Duration) -> String {
    let left = all.saturating_sub(done).as_secs_f64();
    format!(
        "{:.0} of {} s, {} left",
        done.as_secs_f64().floor(),
        all.as_secs_f64(),
        span(left)
    )
}

fn percent(done: u64, all: u64) -> u64 {
    done.saturating_mul(100) / all.max(1)
}

fn time_left(done: u64, all: u64, per_second: f64) -> String {
    if per_second <= 0.0 {
        return "unknown time".to_owned();
    }
    span(all.saturating_sub(done) as f64 / per_second)
}

/// `90 s`, `12 min` or `3 h 5 min`.
fn span(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round() as u64;
    match seconds {
        _ if seconds < 99.5 => format!("{seconds:.0} s"),
        _ if minutes < 100 => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_rate_and_time_left_are_shown() {
        let ten = Duration::from_secs(10);
        let lines = [
            reading(50 << 20, 200 << 20, ten),
            reading(50 << 20, 0, ten),
            count_of(1_200, 4_800, "I/O", ten),
            count_of(0, 4_800, "I/O", ten),
            time_of(Duration::from_millis(12_700), Duration::from_secs(30)),
        ];
        insta::assert_snapshot!(lines.join("\n\n"));
    }

    #[test]
    fn long_times_are_in_minutes_and_hours() {
        let spans = [99.4, 100.0, 3_600.0, 5_999.0, 11_100.0].map(span);
        assert_eq!(
            spans,
            ["99 s", "2 min", "60 min", "1 h 40 min", "3 h 5 min"]
        );
    }
}
