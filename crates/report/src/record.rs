//! The result of a recording, as text and JSON.

use plumb_diagnose::Diagnosis;
use serde::Serialize;

use crate::brief;
use crate::format::{bytes, count};
use crate::json::{self, Document};
use crate::run::Run;
use crate::text::{Page, Paper};
use crate::verdict::{Grounds, Outcome, Verdict};

/// A recording that has ended.
#[derive(Debug, Serialize)]
pub struct Recorded<'a> {
    /// How long it took.
    pub seconds: f64,
    /// Why it ended.
    pub ended: &'static str,
    /// Layers, and how they were recorded.
    pub how: &'a str,
    /// Files that were written, in order.
    pub files: &'a [File],
    /// Disks that received I/O.
    pub devices: &'a [RecordedDevice],
    /// I/O in the files, the deleted ones too.
    pub ios: u64,
    /// I/O that are in no file: there was no room for them in the buffer.
    pub lost: u64,
    /// I/O that came when the last file was full.
    pub after_the_end: u64,
    /// I/O that were in flight at the end, without latency.
    pub in_flight_at_end: u64,
    /// I/O that follow one in the file that was issued later.
    pub out_of_order: u64,
    /// Calls of the kernel programs that the kernel skipped: each may hide an I/O or its latency.
    pub skipped_calls: u64,
    /// Sentences that a reader must know.
    pub notes: &'a [String],
    /// Findings on the answers of the disks: whether they fail I/O, leave them waiting, or receive more than they can serve.
    #[serde(skip)]
    pub diagnosis: &'a Diagnosis,
    /// The result. The exit status follows it.
    #[serde(skip)]
    pub outcome: Outcome,
}

impl Recorded<'_> {
    /// The verdict on the disks if there is a finding. The places of the I/O are judged when the file is analyzed, so that a recording
    /// without a finding has no verdict.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        let grounds = Grounds {
            outcome: self.outcome,
            findings: &self.diagnosis.findings,
            accepted: 0,
            scope: format!("{} I/O recorded", count(self.ios)),
            fit: None,
            unknown: None,
            unread: None,
            has_accepted_unseen: false,
        };
        (!self.diagnosis.findings.is_empty()).then(|| grounds.verdict())
    }
}

/// A file of a recording.
#[derive(Clone, Debug, Serialize)]
pub struct File {
    /// Its name.
    pub path: String,
    /// I/O in it.
    pub ios: u64,
    /// Its length.
    pub bytes: u64,
    /// Whether it had to go for a further one.
    pub deleted: bool,
}

/// A disk of a recording.
#[derive(Clone, Debug, Serialize)]
pub struct RecordedDevice {
    /// Its name.
    pub device: String,
    /// Layer at which it was recorded.
    pub layer: &'static str,
    /// I/O that were issued to it.
    pub sent: u64,
    /// Of these, in no file: there was no room for them in the buffer.
    pub lost: u64,
    /// Issued once more.
    pub requeues: u64,
    /// Completions of a part of an I/O.
    pub partial_completions: u64,
    /// Issues whose completion never came.
    pub unmatched_issues: u64,
    /// Completions of I/O issued before the recording began.
    pub unmatched_completions: u64,
    /// I/O with an unknown sender.
    pub unknown_senders: u64,
}

/// The document of `plumb record`.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn json(run: &Run, recorded: &Recorded<'_>) -> Result<String, serde_json::Error> {
    plumb_quoting::json::pretty(&Document {
        schema: "plumb.record/2",
        run,
        inputs: Vec::<()>::new(),
        verdict: recorded.verdict(),
        findings: json::findings(&recorded.diagnosis.findings),
        result: recorded,
    })
}

/// The same for a person.
#[must_use]
pub fn text(recorded: &Recorded<'_>, paper: impl Into<Paper>) -> String {
    let mut page = Page::new(paper);
    match recorded.verdict() {
        None => recording(&mut page, recorded),
        Some(verdict) => {
            brief::first_line(&mut page, &verdict);
            blocks(&mut page, recorded.diagnosis);
            page.gap();
            recording(&mut page, recorded);
            brief::last_line(&mut page, &verdict);
        }
    }
    page.text
}

/// The findings of a recording whose file could not be written; empty without any.
#[must_use]
pub fn findings(diagnosis: &Diagnosis, paper: impl Into<Paper>) -> String {
    let mut page = Page::new(paper);
    blocks(&mut page, diagnosis);
    page.text
}

/// All findings: no other command shows them again.
fn blocks(page: &mut Page, diagnosis: &Diagnosis) {
    for finding in &diagnosis.findings {
        brief::block(page, &[finding]);
    }
}

/// The files, and everything that a reader of them must know.
fn recording(page: &mut Page, recorded: &Recorded<'_>) {
    let Recorded {
        seconds,
        ended,
        how,
        ios,
        ..
    } = *recorded;
    page.line(format!(
        "{} I/O in {seconds:.1} s, ended {ended}",
        count(ios)
    ));
    page.line(how);
    page.gap();
    for RecordedDevice {
        device,
        layer,
        sent,
        lost,
        ..
    } in recorded.devices
    {
        let lost = if *lost == 0 {
            "none lost".to_owned()
        } else {
            format!("{} lost", count(*lost))
        };
        page.line(format!(
            "{:>14} I/O  {} ({layer} layer), {lost}",
            count(*sent),
            device
        ));
    }
    page.gap();
    for File {
        path,
        ios,
        bytes: len,
        deleted,
    } in recorded.files
    {
        let done = if *deleted { "deleted" } else { "wrote" };
        page.line(format!(
            "{done} {path}: {} I/O, {}",
            count(*ios),
            bytes(*len)
        ));
    }
    let apart = [
        (recorded.after_the_end, "I/O came when the file was full"),
        (
            recorded.in_flight_at_end,
            "I/O were in flight at the end: without latency",
        ),
        (
            recorded.out_of_order,
            "I/O are stored behind ones that were issued later",
        ),
    ];
    let apart = apart.into_iter().filter(|(count, _)| *count > 0);
    let apart = apart.map(|(ios, words)| format!("{} {words}", count(ios)));
    for note in recorded.notes.iter().cloned().chain(apart) {
        page.wrapped("  note: ", "    ", &note);
    }
}
