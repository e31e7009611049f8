//! Findings, worst first, each with everything that it must say: layer, evidence, cost and its basis, confidence,
//! what to do and the way back. Then what could not be judged.

use plumb_diagnose::finding::{Basis, Cost, Evidence, Fix, Target};
use plumb_diagnose::{Finding, Severity, Unjudged};
use plumb_geometry::plural;
use plumb_quoting::WayBack;

use super::markup::Markup;
use super::page::table;
use crate::{Report, Section, format};

/// Draws all of them.
pub fn draw(m: &mut Markup, report: &Report<'_>) {
    let diagnosis = report.diagnosis;
    m.leaf("h2", &[("id", "findings")], "Findings");
    if diagnosis.findings.is_empty() {
        m.leaf(
            "p",
            &[],
            "None. What could not be judged is below; it counts as unknown, not as clean.",
        );
    }
    for (number, finding) in diagnosis.findings.iter().enumerate() {
        one(m, report, number, finding);
    }
    if !diagnosis.unknown.is_empty() {
        m.leaf("h2", &[("id", "unknown")], "Not judged");
        m.class("div", "scroll", |m| {
            m.el("table", &[], |m| unjudged(m, report, &diagnosis.unknown))
        });
    }
    if !diagnosis.silent.is_empty() {
        let words = format!("Looked and found nothing: {}.", diagnosis.silent.join(", "));
        m.leaf("p", &[("class", "dim")], &words);
    }
}

/// One line: how much of what severity, and what stayed open.
#[must_use]
pub fn verdict(report: &Report<'_>) -> String {
    let diagnosis = report.diagnosis;
    let of = |severity| {
        diagnosis
            .findings
            .iter()
            .filter(|finding| finding.severity() == severity)
            .count()
    };
    let noun = |severity: Severity| match severity {
        Severity::Critical => "critical finding",
        other => other.word(),
    };
    let counts: Vec<String> = [Severity::Critical, Severity::Warning, Severity::Note]
        .into_iter()
        .filter(|severity| of(*severity) > 0)
        .map(|severity| plural(of(severity) as u64, noun(severity)))
        .collect();
    let open = match diagnosis.unknown.len() {
        0 => String::new(),
        open => format!("; {} could not be judged", plural(open as u64, "question")),
    };
    match (counts.is_empty(), diagnosis.unknown.is_empty()) {
        (false, _) => format!("{}{open}", counts.join(", ")),
        (true, false) => format!("No finding{open}: unknown, not clean"),
        (true, true) if diagnosis.silent.is_empty() => "Nothing was judged: unknown".to_owned(),
        (true, true) => format!(
            "No finding; {} looked",
            plural(diagnosis.silent.len() as u64, "rule")
        ),
    }
}

/// Anchor of a finding.
#[must_use]
pub fn anchor(number: usize) -> String {
    format!("finding-{}", number + 1)
}

/// Name of the thing, linked to its section where the page has one.
fn target(m: &mut Markup, report: &Report<'_>, target: &Target) {
    let section = report
        .sections
        .iter()
        .position(|section| section.is_of(target));
    match section {
        Some(at) => m.leaf(
            "a",
            &[("href", &format!("#{}", super::section_anchor(at)))],
            &target.to_string(),
        ),
        None => m.text(&target.to_string()),
    }
}

fn one(m: &mut Markup, report: &Report<'_>, number: usize, finding: &Finding) {
    let word = finding.severity().word();
    m.raw("\n");
    m.el(
        "article",
        &[
            ("id", &anchor(number)),
            ("class", &format!("finding {word}")),
        ],
        |m| {
            m.el("h3", &[], |m| {
                m.leaf("span", &[("class", &format!("word {word}"))], word);
                m.text(finding.id());
            });
            m.el("p", &[], |m| {
                m.leaf("b", &[], &super::capitalized(finding.summary()));
                m.text(" on ");
                target(m, report, finding.target());
                m.text(".");
            });
            for sentence in finding.explanation() {
                m.leaf("p", &[], &as_sentence(sentence));
            }
            let cost = finding
                .cost()
                .map_or_else(|| "not known".to_owned(), cost_words);
            m.leaf(
                "p",
                &[],
                &format!("Cost: {cost}. Confidence: {}.", finding.confidence().word()),
            );
            evidence(m, finding.evidence());
            steps(m, finding.fix());
        },
    );
}

/// A first letter as at the beginning of a sentence, and a full stop.
fn as_sentence(words: &str) -> String {
    let stop = if words.ends_with(['.', '?', '!']) {
        ""
    } else {
        "."
    };
    format!("{}{stop}", super::capitalized(words))
}

fn cost_words(cost: &Cost) -> String {
    let basis = match cost.basis {
        Basis::Measured => "measured",
        Basis::Estimated => "estimated, an upper bound",
    };
    format!("{} {} ({basis})", format::digits(cost.value), cost.unit)
}

/// The numbers; where they were counted is said once when it is one place.
fn evidence(m: &mut Markup, evidence: &[Evidence]) {
    let words = |evidence: &Evidence| vec![name_words(evidence.name), value_words(evidence)];
    let first = evidence
        .first()
        .map_or("", |evidence| evidence.source.as_str());
    if evidence.iter().all(|evidence| evidence.source == first) {
        let rows: Vec<Vec<String>> = evidence.iter().map(words).collect();
        return table(m, &format!("Evidence, {first}"), &["<what", "value"], &rows);
    }
    let with_source =
        |evidence: &Evidence| [words(evidence), vec![evidence.source.clone()]].concat();
    let rows: Vec<Vec<String>> = evidence.iter().map(with_source).collect();
    table(m, "Evidence", &["<what", "value", "<where"], &rows);
}

/// Keys that say too little without their underscores.
const NAMES: [(&str, &str); 6] = [
    ("ios_unfit", "I/O with the defect"),
    ("ios", "I/O looked at"),
    ("share_low", "share, lower end of the 95 % interval"),
    ("share_high", "share, upper end of the 95 % interval"),
    ("head_bytes_mean", "mean distance behind the boundary"),
    ("device_ns_mean", "mean latency, issue to complete"),
];

fn name_words(name: &str) -> String {
    let known = NAMES.iter().find(|(key, _)| *key == name);
    let plain = || {
        name.split('_')
            .map(|word| if word == "ios" { "I/O" } else { word })
            .collect::<Vec<_>>()
            .join(" ")
    };
    known.map_or_else(plain, |(_, words)| (*words).to_owned())
}

fn value_words(evidence: &Evidence) -> String {
    let value = evidence.value;
    let whole = value >= 0.0 && value < u64::MAX as f64;
    match evidence.unit {
        "share" => format::percent(value),
        "bytes" if whole => format::bytes(value.round() as u64),
        "ns" if whole => format::ns(value.round() as u64),
        "ios" if whole => format!("{} I/O", format::count(value.round() as u64)),
        "ratio" if whole => format::digits(value),
        // Units are in the plural: `disks`, `file systems`.
        unit if value == 1.0 && !unit.contains('/') => {
            format!("1 {}", unit.strip_suffix('s').unwrap_or(unit))
        }
        unit if whole && value.fract() == 0.0 => {
            format!(
                "{} {}",
                format::count(value as u64),
                unit.replace("ios", "I/O")
            )
        }
        unit if whole => format!("{} {}", format::digits(value), unit.replace("ios", "I/O")),
        unit => format!("{value} {unit}"),
    }
}

pub fn steps(m: &mut Markup, steps: &[Fix]) {
    if steps.is_empty() {
        return;
    }
    m.leaf("p", &[], "What to do:");
    m.class("ol", "fix", |m| {
        for step in steps {
            m.el("li", &[], |m| {
                m.leaf("pre", &[], &step.command);
                let words = match &step.undo {
                    WayBack::Words(words) => format!("Risk: {}. Way back: {words}.", step.risk),
                    WayBack::Command(_) => format!("Risk: {}. Way back:", step.risk),
                };
                m.leaf("span", &[("class", "small dim")], &words);
                if let Some(command) = step.undo.command() {
                    m.leaf("pre", &[], command);
                }
            });
        }
    });
}

fn unjudged(m: &mut Markup, report: &Report<'_>, unknown: &[Unjudged]) {
    m.el("thead", &[], |m| {
        m.el("tr", &[], |m| {
            for name in ["rule", "on", "why it could not be judged"] {
                m.leaf("th", &[("scope", "col"), ("class", "text")], name);
            }
        });
    });
    m.el("tbody", &[], |m| {
        for question in unknown {
            m.el("tr", &[], |m| {
                m.class("td", "text", |m| {
                    m.leaf("span", &[("class", "word unknown")], "unknown");
                    m.text(question.rule);
                });
                m.class("td", "text", |m| target(m, report, &question.target));
                m.leaf("td", &[("class", "text")], &question.why);
            });
        }
    });
}

/// Links from a section back to its findings.
pub fn links(m: &mut Markup, report: &Report<'_>, section: &Section<'_>) {
    let numbered = report.diagnosis.findings.iter().enumerate();
    let mine: Vec<(usize, &Finding)> = numbered
        .filter(|(_, finding)| section.is_of(finding.target()))
        .collect();
    let open = report
        .diagnosis
        .unknown
        .iter()
        .filter(|question| section.is_of(&question.target))
        .count();
    m.class("p", "links", |m| {
        for (number, finding) in &mine {
            let word = finding.severity().word();
            m.leaf("span", &[("class", &format!("word {word}"))], word);
            m.leaf(
                "a",
                &[("href", &format!("#{}", anchor(*number)))],
                finding.id(),
            );
        }
        if mine.is_empty() {
            m.text("No finding. ");
        }
        if open > 0 {
            m.leaf(
                "a",
                &[("href", "#unknown")],
                &format!("{} not judged", plural(open as u64, "question")),
            );
        }
    });
}
