//! The result of a recording, as text and JSON.

use plumb_diagnose::Diagnosis;
use plumb_model::result::record::{DiskTally, File, Recorded};
use plumb_model::result::verdict::Verdict;

use crate::brief;
use crate::format::{bytes, count};
use crate::json::{self, Document};
use crate::run::Run;
use crate::text::{Page, Paper};
use crate::verdict::{Grounds, Outcome};

/// A recording that has ended, and the judgement on its disks.
#[derive(Clone, Debug)]
pub struct JudgedRecording<'a> {
    /// The recording.
    pub recorded: Recorded<'a>,
    /// Findings on the answers of the disks: whether they fail I/O, leave them waiting, or receive more than they can serve.
    pub diagnosis: &'a Diagnosis,
    /// The result. The exit status follows it.
    pub outcome: Outcome,
}

impl JudgedRecording<'_> {
    /// The verdict on the disks if there is a finding. The places of the I/O are judged when the file is analyzed, so that a recording
    /// without a finding has no verdict.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        let grounds = Grounds {
            outcome: self.outcome,
            findings: &self.diagnosis.findings,
            accepted: 0,
            scope: format!("{} I/O recorded", count(self.recorded.ios)),
            fit: None,
            unknown: None,
            unread: None,
            has_accepted_unseen: false,
        };
        (!self.diagnosis.findings.is_empty()).then(|| grounds.verdict())
    }
}

/// The document of `plumb record`.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn json(run: &Run, judged: &JudgedRecording<'_>) -> Result<String, serde_json::Error> {
    plumb_quoting::json::pretty(&Document {
        schema: "plumb.record/2",
        run,
        inputs: Vec::<()>::new(),
        verdict: judged.verdict(),
        findings: json::findings(&judged.diagnosis.findings),
        result: &judged.recorded,
    })
}

/// The same for a person.
#[must_use]
pub fn text(judged: &JudgedRecording<'_>, paper: impl Into<Paper>) -> String {
    let mut page = Page::new(paper);
    match judged.verdict() {
        None => recording(&mut page, &judged.recorded),
        Some(verdict) => {
            brief::first_line(&mut page, &verdict);
            blocks(&mut page, judged.diagnosis);
            page.gap();
            recording(&mut page, &judged.recorded);
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
    for DiskTally {
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
            "{:>14} I/O  {} ({} layer), {lost}",
            count(*sent),
            device,
            layer.word()
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
