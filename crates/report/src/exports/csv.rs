//! Findings as comma-separated values (RFC 4180), a line each behind a line of names.

use std::borrow::Cow;

use plumb_quoting::visible;

use super::{State, device, stated};
use crate::check::Check;
use crate::words;

const NAMES: [&str; 9] = [
    "host",
    "device",
    "identity",
    "rule",
    "severity",
    "confidence",
    "state",
    "summary",
    "command",
];

/// The findings of a check as CSV.
#[must_use]
pub fn csv(check: &Check<'_>) -> String {
    let mut text = NAMES.join(",") + "\r\n";
    for (finding, state) in stated(check) {
        let host = finding.target.host.as_deref().or(check.host());
        let command = match (state, finding.fix.first()) {
            (State::Open, Some(first)) => first.command.to_string(),
            _ => String::new(),
        };
        let cells = [
            host.unwrap_or_default(),
            device(finding),
            finding.target.identity.as_deref().unwrap_or_default(),
            finding.rule().name(),
            finding.severity.word(),
            finding.confidence.word(),
            state.word(),
            &words::finding(finding).summary,
            &command,
        ];
        text += &cells.map(cell).join(",");
        text += "\r\n";
    }
    text
}

/// A cell in quotes where it needs them. A spreadsheet takes a cell that starts with one of these signs for a formula, and
/// names come from anywhere: an apostrophe makes it text.
pub(crate) fn cell(words: &str) -> String {
    let words = visible(words);
    let words = match words.starts_with(['=', '+', '-', '@']) {
        true => Cow::Owned(format!("'{words}")),
        false => words,
    };
    match words.contains([',', '"']) {
        true => format!("\"{}\"", words.replace('"', "\"\"")),
        false => words.into_owned(),
    }
}
