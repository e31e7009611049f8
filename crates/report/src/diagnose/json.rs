//! The JSON document of `plumb diagnose`: the result of `check` for the stack, and the I/O of its devices.

use plumb_diagnose::Analysis;
use plumb_model::result::check::{CheckInput, Unseen};
use plumb_model::result::watch::WatchSummary;
use serde::Serialize;

use super::Diagnose;
use crate::check::{CheckResult, result};
use crate::json::{Document, findings};

#[derive(Serialize)]
struct DiagnoseResult<'a> {
    #[serde(flatten)]
    check: CheckResult<'a>,
    watched: Option<&'a WatchSummary<'a>>,
    profiles: Vec<&'a Analysis>,
    unseen: &'a [Unseen],
}

/// The document.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn json(diagnose: &Diagnose<'_>) -> Result<String, serde_json::Error> {
    let document: Document<'_, &CheckInput, _> = Document {
        schema: "plumb.diagnose/2",
        run: diagnose.check.run,
        inputs: Vec::new(),
        verdict: Some(diagnose.verdict()),
        findings: findings(&diagnose.check.diagnosis.findings),
        result: DiagnoseResult {
            check: result(&diagnose.check),
            watched: diagnose.watched.as_ref(),
            profiles: diagnose
                .io
                .sections
                .iter()
                .map(|section| section.analysis)
                .collect(),
            unseen: diagnose.check.unseen,
        },
    };
    plumb_quoting::json::pretty(&document)
}
