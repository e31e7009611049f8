//! `iostat -x` as text: reports of rows below a heading, with lines of processors, terminals and dates between them.

use super::columns::{SeriesColumns, split_words};
use super::{Report, Series, Tool};
use crate::error::{Damage, Place};

/// Whether there is a heading among the first lines.
pub fn sniff(head: &str) -> bool {
    head.lines()
        .any(|line| SeriesColumns::of_heading(line).is_some())
}

/// Reads all reports.
pub fn read(text: &str) -> Series {
    let tool = text
        .lines()
        .find_map(SeriesColumns::of_heading)
        .map_or(Tool::Solaris, |columns| columns.tool);
    let mut reader = SeriesReader {
        series: Series::new(tool),
        columns: None,
        at: None,
    };
    for (number, line) in (1..).zip(text.lines()) {
        reader.line(number, line);
    }
    reader.series
}

struct SeriesReader {
    series: Series,
    columns: Option<SeriesColumns>,
    /// The last time seen that belongs to no report yet.
    at: Option<String>,
}

impl SeriesReader {
    fn line(&mut self, number: u64, line: &str) {
        if let Some(columns) = SeriesColumns::of_heading(line) {
            self.columns = Some(columns);
            let at = self.at.take();
            return self.series.reports.push(Report {
                line: number,
                at,
                ..Report::default()
            });
        }
        if let Some(at) = time(line) {
            self.at = Some(at);
            return;
        }
        if line.starts_with("Linux ") {
            self.series.has_banner |= self.series.reports.is_empty();
            self.columns = None;
        } else if line.starts_with("avg-cpu:") || line.contains("extended device statistics") {
            self.columns = None;
        } else if has_flag_y(line) {
            self.series.left_out_first |= self.series.reports.is_empty();
        }
        let Some(columns) = &self.columns else { return };
        match columns.row(line, number) {
            Ok(None) => {}
            Ok(Some(row)) => {
                if let Some(report) = self.series.reports.last_mut() {
                    report.rows.push(row);
                }
            }
            Err((found, expected)) => {
                self.series
                    .reports
                    .iter_mut()
                    .last()
                    .into_iter()
                    .for_each(|report| report.is_damaged = true);
                self.series.damage(Damage {
                    place: Place::Line(number),
                    found,
                    expected,
                });
            }
        }
    }
}

/// A line that holds a time and nothing else: `Tue Jan 26 10:39:43 2010`, `01/26/10 10:39:43 AM`, `1264502383`.
fn time(line: &str) -> Option<String> {
    let words = split_words(line);
    let is_clock = |word: &&str| {
        let mut parts = word.split(':');
        let is_two = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        parts.clone().count() == 3 && parts.all(|part| is_two(part.get(..2).unwrap_or(part)))
    };
    let is_epoch = |word: &&str| {
        (9..=11).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_iso = |word: &&str| {
        word.split_once('T')
            .is_some_and(|(_, clock)| is_clock(&clock.get(..8).unwrap_or(clock)))
    };
    let is_time = match &words[..] {
        [one] => is_epoch(one) || is_iso(one),
        words => words.len() <= 6 && words.iter().any(is_clock),
    };
    is_time.then(|| words.join(" "))
}

/// Whether the line is the command itself, at a prompt, with the flag of sysstat that leaves out the report since boot.
fn has_flag_y(line: &str) -> bool {
    let Some((_, flags)) = line.split_once("iostat ") else {
        return false;
    };
    let mut flags = flags
        .split_whitespace()
        .filter_map(|word| word.strip_prefix('-'));
    flags.any(|flag| !flag.starts_with('-') && flag.contains('y'))
}
