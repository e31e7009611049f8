//! How far a move, or the reading before it, is: a line on a terminal, rewritten in place, with rate and time left.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use plumb_relocate::{Progress, Stage};
use plumb_report::format::bytes;

/// How often the line changes.
const SHOWN: Duration = Duration::from_millis(500);

/// The line; see the module.
pub struct ProgressLine {
    is_shown: bool,
    next: Instant,
    stage: Option<&'static str>,
    began: Instant,
    bytes_at_begin: u64,
}

impl ProgressLine {
    pub fn new() -> ProgressLine {
        let now = Instant::now();
        ProgressLine {
            is_shown: std::io::stderr().is_terminal(),
            next: now,
            stage: None,
            began: now,
            bytes_at_begin: 0,
        }
    }

    /// Shows how far a move is, where somebody looks.
    pub fn show(&mut self, progress: &Progress) {
        let is_measured = matches!(progress.stage, Stage::Copying | Stage::Verifying);
        let total = if is_measured { progress.bytes_total } else { 0 };
        self.tell(
            stage_word(progress.stage, progress.is_back),
            progress.bytes,
            total,
        );
    }

    /// Shows how far a stage is, where somebody looks; `total` is 0 where that is not measured.
    pub fn tell(&mut self, stage: &'static str, at: u64, total: u64) {
        let now = Instant::now();
        if !self.is_shown || now < self.next {
            return;
        }
        if self.stage != Some(stage) {
            (self.stage, self.began, self.bytes_at_begin) = (Some(stage), now, at);
        }
        self.next = now + SHOWN;
        let done = at.saturating_sub(self.bytes_at_begin);
        let words = progress_text(
            stage,
            at,
            total,
            done,
            now.duration_since(self.began).as_secs_f64(),
        );
        eprint!("\r{words}\x1b[K");
        // A terminal that has gone away is no reason to end.
        std::io::stderr().flush().ok();
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if self.is_shown {
            eprint!("\r\x1b[K");
        }
    }
}

/// The name of a stage.
pub fn stage_word(stage: Stage, is_back: bool) -> &'static str {
    match (stage, is_back) {
        (Stage::Hiding, false) => "hiding label and signatures",
        (Stage::Hiding, true) => "hiding label and signatures again",
        (Stage::Copying, false) => "copying",
        (Stage::Copying, true) => "copying back",
        (Stage::Finishing, false) => "writing label and signatures",
        (Stage::Finishing, true) => "writing the old label and signatures",
        (Stage::Verifying, _) => "verifying",
        (Stage::Done, _) => "done",
    }
}

/// `done` of the bytes were done in that many seconds.
fn progress_text(stage: &str, at: u64, total: u64, done: u64, seconds: f64) -> String {
    if total == 0 {
        return stage.to_owned();
    }
    let percent = at as f64 / total as f64 * 100.0;
    let so_far = format!("{stage} {percent:.0} %, {} of {}", bytes(at), bytes(total));
    if done == 0 || seconds <= 0.0 {
        return so_far;
    }
    let rate = done as f64 / seconds;
    let left = (total.saturating_sub(at) as f64 / rate) as u64;
    format!("{so_far}, {}/s, {} left", bytes(rate as u64), clock(left))
}

/// Minutes and seconds, or hours with them.
fn clock(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        hours => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_time_left() {
        // 1 GiB in 8 s leaves 24 s.
        let words = |done, seconds| progress_text("copying", 1 << 30, 4 << 30, done, seconds);
        assert_eq!(
            words(1 << 30, 8.0),
            "copying 25 %, 1 GiB of 4 GiB, 128 MiB/s, 0:24 left"
        );
        assert_eq!(words(0, 8.0), "copying 25 %, 1 GiB of 4 GiB");
        assert_eq!(
            super::progress_text("hiding label and signatures", 0, 0, 0, 0.0),
            "hiding label and signatures"
        );
        assert_eq!(
            (clock(59), clock(3_661)),
            ("0:59".to_owned(), "1:01:01".to_owned())
        );
    }
}
