//! `iostat` and `sar -d` as text: reports of rows below a heading, with lines of processors, terminals and dates between them.
//! Rows of `sar` begin with their time: those of one time are a report, and rows of averages are left out.

use plumb_iostat::{IostatColumns, IostatLine, words};

use super::cells::row;
use super::{Report, Series, SeriesTool, Tool};
use crate::error::{Damage, Place};

/// Whether there is a heading among the first lines.
pub fn sniff(head: &str) -> bool {
    head.lines().any(|line| heading(line).is_some())
}

fn heading(line: &str) -> Option<IostatColumns> {
    IostatColumns::of_heading(line).or_else(|| IostatColumns::of_brief_heading(line))
}

/// Reads all reports.
pub fn read(text: &str) -> Series {
    let tool = text
        .lines()
        .find_map(heading)
        .map_or(Tool::Solaris, |columns| columns.tool());
    let mut reader = SeriesReader {
        series: Series::new(SeriesTool::Iostat(tool)),
        columns: None,
        at: None,
    };
    for (number, line) in (1..).zip(text.lines()) {
        reader.line(number, line);
    }
    // sar prints idle devices as well: a report without rows belongs to a restart, or to a heading at the end of a page.
    if tool == Tool::Sar {
        let reports = &mut reader.series.reports;
        reports.retain(|report| report.is_damaged || !report.rows.is_empty());
    }
    reader.series
}

struct SeriesReader {
    series: Series,
    columns: Option<IostatColumns>,
    /// The last time seen that belongs to no report yet.
    at: Option<String>,
}

impl SeriesReader {
    fn line(&mut self, number: u64, line: &str) {
        let shape = heading(line).map_or_else(|| IostatLine::parse(line), IostatLine::Heading);
        if let IostatLine::Heading(columns) = shape {
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
        match shape {
            IostatLine::Banner => {
                self.series.has_banner |= self.series.reports.is_empty();
                self.columns = None;
            }
            IostatLine::Processors | IostatLine::Title => self.columns = None,
            IostatLine::Other if has_flag_y(line) => {
                self.series.left_out_first |= self.series.reports.is_empty();
            }
            IostatLine::Heading(_) | IostatLine::Other => {}
        }
        let Some(columns) = &self.columns else { return };
        if columns.has_times() {
            let Some(at) = columns.time_of_row(line) else {
                return;
            };
            // Another table of `sar` begins.
            if words(line)
                .iter()
                .any(|word| word.ends_with("/s") || word.starts_with('%'))
            {
                self.columns = None;
                return;
            }
            let last = self.series.reports.last_mut();
            match last {
                Some(last) if last.at.as_ref() == Some(&at) => {}
                Some(last) if last.rows.is_empty() && !last.is_damaged => last.at = Some(at),
                _ => self.series.reports.push(Report {
                    line: number,
                    at: Some(at),
                    ..Report::default()
                }),
            }
        }
        match row(columns, line, number) {
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
    let words = words(line);
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
