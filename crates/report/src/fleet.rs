//! The answer of `plumb fleet report`: the devices of many hosts by wasted I/O and by lost time, the findings by rule, and their groups.

use plumb_fleet::answer::{FleetAnswer, FleetRanking, FleetRule, FleetUnknown};
use plumb_geometry::{Bounds, plural};
use plumb_model::result::verdict::{Verdict, Word};
use plumb_model::{Finding, Severity};
use plumb_quoting::visible;

use crate::brief;
use crate::format::{count, digits, ns, signed_ns};
use crate::json::{self, Document};
use crate::run::Run;
use crate::text::Paper;
use crate::text::page::Page;
use crate::verdict::{Outcome, WhyUnknown, is_problem};

mod changes;
mod exports;
mod groups;

pub use exports::{csv, html, openmetrics};

/// The reason why a figure is unknown, as a clause.
fn unknown_words(reason: FleetUnknown) -> &'static str {
    match reason {
        FleetUnknown::NoIo => "no read or write was seen",
        FleetUnknown::NoGrid => {
            "all I/O are on 4 KiB, and no larger grid is known: pass one with --grid"
        }
        FleetUnknown::NoTime => "the recordings have no times",
        FleetUnknown::NotCounted => "the profile does not have the starts for this grid",
        FleetUnknown::NoLatency => "no latency was recorded",
        FleetUnknown::NotComparable => "too few I/O on and off the grid are alike",
    }
}

/// Whether a rule has no finding beyond notes.
fn is_note(rule: &FleetRule) -> bool {
    rule.worst <= Some(Severity::Note)
}

fn verdict_of(answer: &FleetAnswer, outcome: Outcome) -> Verdict {
    let devices = plural(answer.devices, "device");
    let hosts = plural(answer.hosts, "host");
    let findings: u64 = answer.rules.iter().map(|rule| rule.findings).sum();
    let found = match findings {
        0 => format!("no finding on {devices} of {hosts}"),
        some => format!(
            "{} on {} of {devices} ({hosts})",
            plural(some, "finding"),
            count(answer.with_findings)
        ),
    };
    let (word, why) = match outcome {
        // By default the findings of a fleet leave the exit status at 0, and they are findings all the same.
        Outcome::Clean if findings == 0 => (Word::Ok, None),
        Outcome::Clean if answer.rules.iter().all(is_note) => {
            (Word::Ok, Some("all of them are notes".to_owned()))
        }
        Outcome::Findings | Outcome::Clean => match answer.examples.iter().all(is_problem) {
            true => (Word::Problem, None),
            false => (Word::Misfit, None),
        },
        Outcome::Unknown(WhyUnknown::ReadInPart) => (Word::Unknown, Some(missing_inputs(answer))),
        Outcome::Unknown(WhyUnknown::TooFewIos) => {
            (Word::Unknown, Some("no I/O was seen".to_owned()))
        }
        Outcome::Unknown(WhyUnknown::Layout | WhyUnknown::NotWatched) => (
            Word::Unknown,
            Some("not every rule could judge every device".to_owned()),
        ),
    };
    let why = why.map_or_else(String::new, |why| format!("; {why}"));
    Verdict::measured(word, format!("{found}{why}."))
}

/// `2 inputs of 2 hosts, 12,581 I/O`.
fn inputs_read(answer: &FleetAnswer) -> String {
    let collections = match answer.collections {
        0 => String::new(),
        some => format!(" ({})", plural(some, "collection")),
    };
    let mut read = format!(
        "{}{collections} of {}, {} I/O",
        plural(answer.inputs, "input"),
        plural(answer.hosts, "host"),
        count(answer.ios)
    );
    let missing = missing_inputs(answer);
    if !missing.is_empty() {
        read += &format!("; {missing}");
    }
    read
}

/// `1 input was not read`.
fn missing_inputs(answer: &FleetAnswer) -> String {
    let part = |number: u64, words: &str| {
        (number > 0).then(|| format!("{} {words}", plural(number, "input")))
    };
    let parts = [
        part(answer.unread, "not read"),
        part(answer.partial, "read only in part"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The document.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn json(
    run: &Run,
    answer: &FleetAnswer,
    outcome: Outcome,
) -> Result<String, serde_json::Error> {
    plumb_quoting::json::pretty(&Document {
        schema: "plumb.fleet/1",
        run,
        inputs: Vec::<()>::new(),
        verdict: Some(verdict_of(answer, outcome)),
        findings: json::findings(&answer.examples),
        result: answer,
    })
}

/// The same for a person.
#[must_use]
pub fn text(answer: &FleetAnswer, outcome: Outcome, paper: impl Into<Paper>) -> String {
    let mut page = Page::new(paper);
    let verdict = verdict_of(answer, outcome);
    brief::first_line(&mut page, &verdict);
    page.wrapped("", "  ", inputs_read(answer));
    groups::groups(&mut page, &answer.groups, &answer.ungrouped);
    if let Some(changes) = &answer.changes {
        changes::changes(&mut page, changes);
    }
    changes::silence(&mut page, &answer.silence);
    ranking(
        &mut page,
        "Wasted I/O: cells touched beyond those that the lengths need",
        &answer.by_waste,
        cells,
    );
    ranking(
        &mut page,
        "Time lost: misaligned I/O against like ones on the grid",
        &answer.by_time_lost,
        time,
    );
    groups::outliers(&mut page, &answer.outliers);
    rules(&mut page, answer);
    brief::last_line(&mut page, &verdict);
    page.text
}

fn ranking(
    page: &mut Page,
    title: &str,
    ranking: &FleetRanking,
    figure: fn(Bounds<f64>) -> String,
) {
    page.heading(title);
    for (at, one) in ranking.devices.iter().enumerate() {
        let rate = one.ios_per_second;
        let rate = rate.map_or_else(String::new, |rate| format!(" at {} I/O/s", digits(rate)));
        let words = format!(
            "{} of {} ({} layer): {}; {} I/O{rate}, grid {} ({})",
            visible(&one.device),
            visible(&one.host),
            one.layer,
            figure(one.per_second),
            count(one.ios),
            one.grid,
            one.grid_source.word()
        );
        page.numbered(4, &count(at as u64 + 1), &words);
    }
    let more = ranking.ranked - ranking.devices.len() as u64;
    if more > 0 {
        page.wrapped("  ", "  ", format!("{} with less", plural(more, "device")));
    }
    if ranking.without > 0 {
        page.wrapped(
            "  ",
            "  ",
            format!("{}: none", plural(ranking.without, "device")),
        );
    }
    for one in &ranking.unknown {
        let devices = plural(one.devices, "device");
        page.wrapped(
            "  ",
            "    ",
            format!("{devices}: unknown, {}", unknown_words(one.reason)),
        );
    }
}

/// `12.3 cells a second`.
fn cells(per_second: Bounds<f64>) -> String {
    within(per_second.map(digits)) + " cells a second"
}

/// `1.2 ms to 1.4 ms of each second`.
fn time(per_second: Bounds<f64>) -> String {
    let words = match per_second.low < 0.0 {
        true => per_second.map(signed_ns),
        false => per_second.map(|value| ns(value.round() as u64)),
    };
    within(words) + " of each second"
}

fn within(ends: Bounds<String>) -> String {
    if ends.low == ends.high {
        ends.low
    } else {
        format!("{} to {}", ends.low, ends.high)
    }
}

fn rules(page: &mut Page, answer: &FleetAnswer) {
    page.heading("Findings by rule");
    if answer.examples.is_empty() {
        page.line("  none");
    }
    for one in answer.rules.iter().filter(|one| one.findings > 0) {
        let Some(worst) = one.worst else { continue };
        let severity = page.severity(worst);
        let words = format!(
            "{}: {} of {}",
            one.rule.name(),
            plural(one.devices, "device"),
            plural(one.hosts, "host")
        );
        page.wrapped(severity + "  ", "  ", words);
        let is_it = |finding: &&Finding| finding.rule() == one.rule;
        if let Some(finding) = answer.examples.iter().find(is_it) {
            let host = finding.target.host.as_deref().unwrap_or_default();
            let summary = brief::summary(finding);
            page.wrapped(
                "  ",
                "  ",
                format!("Example on {}: {summary}", visible(host)),
            );
        }
        page.line(format!("  Background: plumb explain {}", one.rule.name()));
    }
    for one in answer.rules.iter().filter(|one| one.unknown > 0) {
        let devices = plural(one.unknown, "device");
        let words = format!("{} could not judge {devices}", one.rule.name());
        page.wrapped("  ", "    ", words);
    }
}
