//! The status line of a move and of the reading before it.

use std::time::Instant;

use plumb_relocate::{Progress, Stage};

use crate::status::{StatusLine, bytes_of};

/// The line; see the module.
pub struct ProgressLine {
    line: StatusLine,
    stage: Option<&'static str>,
    began: Instant,
    bytes_at_begin: u64,
}

impl ProgressLine {
    pub fn new() -> ProgressLine {
        ProgressLine {
            line: StatusLine::new(),
            stage: None,
            began: Instant::now(),
            bytes_at_begin: 0,
        }
    }

    /// Shows how far a move is.
    pub fn show(&mut self, progress: &Progress) {
        let is_measured = matches!(progress.stage, Stage::Copying | Stage::Verifying);
        let total = if is_measured { progress.bytes_total } else { 0 };
        self.tell(
            stage_word(progress.stage, progress.is_back),
            progress.bytes,
            total,
        );
    }

    /// Shows how far a stage is; `total` is 0 where that is not measured.
    pub fn tell(&mut self, stage: &'static str, at: u64, total: u64) {
        if self.stage != Some(stage) {
            (self.stage, self.began, self.bytes_at_begin) = (Some(stage), Instant::now(), at);
        }
        let done = at.saturating_sub(self.bytes_at_begin);
        let seconds = self.began.elapsed().as_secs_f64();
        self.line
            .show(|| progress_text(stage, at, total, done as f64 / seconds.max(0.001)));
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        self.line.clear();
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

fn progress_text(stage: &str, at: u64, total: u64, per_second: f64) -> String {
    match total {
        0 => stage.to_owned(),
        _ => format!("{stage}: {}", bytes_of(at, total, per_second)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_time_left() {
        let copying = progress_text("copying", 1 << 30, 4 << 30, f64::from(128 << 20));
        let hiding = progress_text("hiding label and signatures", 0, 0, 0.0);
        insta::assert_snapshot!([copying, hiding].join("\n\n"));
    }
}
