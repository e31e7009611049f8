//! One interval of `plumb watch`: a block for each device, as `align.d` printed it, and who sent the I/O.

use plumb_diagnose::analysis::Analysis;
use serde::Serialize;

use super::{Color, Page, grid_lines, measures};
use crate::format::{bytes, count, percent};

/// What a process sent in an interval.
#[derive(Serialize)]
pub struct Sender<'a> {
    /// The disk or partition that it used.
    pub device: &'a str,
    /// Its command.
    pub comm: &'a str,
    /// Its number.
    pub pid: u32,
    /// Requests.
    pub ios: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Requests that start off the grid; `None` when that was not counted for this grid.
    pub misaligned: Option<u64>,
}

/// What happened to requests of a device beside their being I/O.
#[derive(Serialize)]
pub struct Apart<'a> {
    /// The disk.
    pub device: &'a str,
    /// Flushes, which have no place.
    pub flushes: u64,
    /// Requests that were issued once more; they count once.
    pub requeues: u64,
    /// Completions of a part of a request.
    pub partial_completions: u64,
    /// Issues whose completion never came.
    pub unmatched_issues: u64,
    /// Completions without an issue.
    pub unmatched_completions: u64,
    /// I/O counted without their place.
    pub unplaced: u64,
}

/// An interval.
pub struct Interval<'a> {
    /// When, and how long.
    pub heading: String,
    /// Devices that received I/O.
    pub devices: &'a [Analysis],
    /// Who sent them, most I/O first.
    pub senders: &'a [Sender<'a>],
    /// What is counted apart from the I/O.
    pub apart: &'a [Apart<'a>],
    /// Sentences that a reader must know.
    pub notes: &'a [String],
}

/// Most processes that are listed.
const SENDERS: usize = 6;

/// The interval as text.
#[must_use]
pub fn interval(interval: &Interval<'_>, color: Color) -> String {
    let mut page = Page { text: String::new(), color };
    page.heading(&interval.heading);
    if interval.devices.is_empty() {
        page.line("  no I/O");
    }
    for analysis in interval.devices {
        page.gap();
        page.line(analysis.target.to_string());
        measures::totals(&mut page, analysis);
        for fit in analysis.device().into_iter().flat_map(|place| &place.grids) {
            grid_lines(&mut page, fit);
        }
        measures::sizes(&mut page, analysis);
        measures::latency(&mut page, analysis);
    }
    senders(&mut page, interval.senders);
    if !interval.notes.is_empty() {
        page.gap();
    }
    for note in interval.notes {
        page.wrapped("  note: ", "    ", note);
    }
    page.gap();
    page.text
}

fn senders(page: &mut Page, senders: &[Sender<'_>]) {
    if senders.is_empty() {
        return;
    }
    page.gap();
    page.line("  Process                 PID  device             I/O      bytes   misaligned");
    for sender in senders.iter().take(SENDERS) {
        let Sender { device, comm, pid, ios, bytes: moved, misaligned } = sender;
        let misaligned =
            misaligned.map_or_else(|| "unknown".to_owned(), |off| percent(off as f64 / (*ios).max(1) as f64));
        page.line(format!(
            "  {:<16} {pid:>10}  {:<10} {:>11} {:>10} {misaligned:>12}",
            comm,
            device,
            count(*ios),
            bytes(*moved)
        ));
    }
    if senders.len() > SENDERS {
        let others = &senders[SENDERS..];
        let ios: u64 = others.iter().map(|sender| sender.ios).sum();
        page.line(format!("  {} others {:>30} I/O", others.len(), count(ios)));
    }
}
