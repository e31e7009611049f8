//! Findings that are accepted, as sentences: one for each statement that accepts some.

use plumb_diagnose::accept::{Acceptance, Accepted, AcceptedFinding};
use plumb_geometry::plural;
use plumb_model::{Finding, Severity};

use super::listed;
use crate::text::alike::gathered;
use crate::text::page::Page;
use crate::verdict::devices;

/// The statements that counted, and those whose day is over.
pub(crate) fn sentences(accepted: &Accepted) -> Vec<String> {
    let counted = gathered(&accepted.findings, |one, other| one.by == other.by)
        .into_iter()
        .map(counted);
    let expired = accepted.expired.iter().map(expired);
    counted.chain(expired).collect()
}

/// Statements about nothing that was found, for the list of sources.
pub(crate) fn unused(accepted: &Accepted) -> impl Iterator<Item = String> + '_ {
    accepted.unused.iter().map(|one| {
        format!(
            "{} accepts {}, which was not found",
            one.place,
            subject(one)
        )
    })
}

/// Prints the sentences.
pub(crate) fn lines(page: &mut Page, accepted: &Accepted) {
    let sentences = sentences(accepted);
    if !sentences.is_empty() {
        page.gap();
    }
    for sentence in sentences {
        page.wrapped("", "  ", sentence);
    }
}

/// Findings on other devices than those asked about, in one line; `command` shows them.
pub(crate) fn elsewhere_line(page: &mut Page, findings: &[Finding], command: &str) {
    if findings.is_empty() {
        return;
    }
    let serious = findings
        .iter()
        .filter(|one| one.severity >= Severity::Warning);
    let serious: Vec<&Finding> = serious.collect();
    let notes = findings.len() - serious.len();
    let mut parts = Vec::new();
    if !serious.is_empty() {
        let number = plural(serious.len() as u64, "finding");
        parts.push(format!("{number} on {}", listed(devices(&serious))));
    }
    if notes > 0 {
        parts.push(plural(notes as u64, "note"));
    }
    page.gap();
    let words = format!(
        "Not asked about: {}; `{command}` without a device shows them.",
        parts.join(", ")
    );
    page.wrapped("", "  ", words);
}

fn counted(group: Vec<&AcceptedFinding>) -> String {
    let by = &group[0].by;
    let findings: Vec<&Finding> = group.iter().map(|one| &one.finding).collect();
    let on = listed(devices(&findings));
    let until = by
        .until
        .map_or_else(String::new, |day| format!(" until {day}"));
    let (verb, why) = match &by.reason {
        Some(reason) => ("Accepted", format!("\"{reason}\"")),
        None => ("Ignored", by.place.clone()),
    };
    format!("{verb}{until}: {} on {on} ({why}).", by.rule)
}

fn expired(one: &Acceptance) -> String {
    let day = one
        .until
        .map_or_else(String::new, |day| format!(" on {day}"));
    format!(
        "Expired{day}: the acceptance of {} ({}).",
        subject(one),
        one.place
    )
}

fn subject(one: &Acceptance) -> String {
    match &one.device {
        Some(device) => format!("{} on {device}", one.rule),
        None => format!("{} on any device", one.rule),
    }
}
