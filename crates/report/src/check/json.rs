//! The JSON document of `plumb check`: every node with its grids and verdicts, nothing summed up.

use std::collections::BTreeMap;

use plumb_diagnose::accept::{Accepted, AcceptedFinding};
use plumb_model::finding::SeverityCounts;
use plumb_model::result::check::CheckInput;
use plumb_model::{RuleId, Target};
use plumb_stack::Kind;
use plumb_stack::listing::ListedStack;
use plumb_stack::survey::Tally;
use serde::Serialize;

use super::Check;
use crate::json::{Document, FindingOut, UnjudgedOut, finding, findings, unknown};

/// Everything that was accepted, the findings with their summaries.
fn accepted(accepted: &Accepted) -> Accepted<FindingOut<'_>> {
    let findings = accepted.findings.iter();
    let findings = findings.map(|one| AcceptedFinding {
        finding: finding(&one.finding),
        by: one.by.clone(),
    });
    Accepted {
        findings: findings.collect(),
        expired: accepted.expired.clone(),
        unused: accepted.unused.clone(),
        unseen: accepted.unseen,
    }
}

/// The stack with its verdicts, and the parts that were not found.
#[derive(Serialize)]
pub(crate) struct CheckResult<'a> {
    stack: ListedStack<'a>,
    summary: BTreeMap<Kind, Tally>,
    unknown: Vec<UnjudgedOut<'a>>,
    accepted: Accepted<FindingOut<'a>>,
    elsewhere: SeverityCounts,
    silent: &'a [RuleId],
    unread: &'a [Target],
    notes: &'a [String],
}

/// The document.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn json(check: &Check<'_>) -> Result<String, serde_json::Error> {
    let document: Document<'_, &CheckInput, _> = Document {
        schema: "plumb.check/2",
        run: check.run,
        inputs: check.inputs.iter().collect(),
        verdict: Some(check.verdict()),
        findings: findings(&check.diagnosis.findings),
        result: result(check),
    };
    plumb_quoting::json::pretty(&document)
}

/// The result of the document.
pub(crate) fn result<'a>(check: &Check<'a>) -> CheckResult<'a> {
    CheckResult {
        stack: ListedStack::new(check.stack, check.survey, check.is_full, &|id| {
            check.wants(id)
        }),
        summary: check.survey.tallies(check.stack, |id| check.wants(id)),
        unknown: unknown(&check.diagnosis.unknown),
        accepted: accepted(check.accepted),
        elsewhere: SeverityCounts::count(check.elsewhere),
        silent: &check.diagnosis.silent,
        unread: check.unread,
        notes: check.notes,
    }
}
