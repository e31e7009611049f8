//! Findings, worst first, each with all of its parts: layer, evidence, cost and its basis, confidence, advice and the
//! way back. Then the rules that could not judge.

use plumb_geometry::plural;
use plumb_model::result::verdict::Verdict;
use plumb_model::{Finding, Fix, RuleId, Severity, Target, Unjudged};
use plumb_quoting::WayBack;

use super::markup::Markup;
use super::page::table;
use crate::text::alike;
use crate::{Report, Section, words};

mod facts;

/// Draws all of them.
pub fn draw(m: &mut Markup, report: &Report<'_>) {
    let diagnosis = report.diagnosis;
    m.leaf("h2", &[("id", "findings")], "Findings");
    if diagnosis.findings.is_empty() {
        m.leaf(
            "p",
            &[],
            "None. The parts that could not be judged are listed below; they count as unknown, not as clean.",
        );
    }
    for group in alike::groups(&diagnosis.findings) {
        draw_group(m, report, &group);
    }
    if !diagnosis.unknown.is_empty() {
        m.leaf("h2", &[("id", "unknown")], "Not judged");
        m.class("div", "scroll", |m| {
            m.el("table", &[], |m| unjudged(m, report, &diagnosis.unknown))
        });
    }
    if !diagnosis.silent.is_empty() {
        let words = format!("Looked and found nothing: {}.", names(&diagnosis.silent));
        m.leaf("p", &[("class", "dim")], &words);
    }
}

fn names(rules: &[RuleId]) -> String {
    let names: Vec<&str> = rules.iter().map(|rule| rule.name()).collect();
    names.join(", ")
}

/// The verdict, and a line below it.
pub fn draw_verdict(m: &mut Markup, verdict: &Verdict, below: &str) {
    let words = format!("{}: {}", verdict.word.text(), verdict.sentence);
    m.leaf("p", &[("class", "verdict")], &words);
    m.leaf("p", &[("class", "dim")], below);
}

/// One line: numbers by severity, and open questions.
#[must_use]
pub fn counts(report: &Report<'_>) -> String {
    let diagnosis = report.diagnosis;
    let of = |severity| {
        diagnosis
            .findings
            .iter()
            .filter(|finding| finding.severity == severity)
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

/// The anchor of a finding of this report.
fn anchor_of(report: &Report<'_>, finding: &Finding) -> String {
    let mut findings = report.diagnosis.findings.iter();
    let number = findings.position(|one| std::ptr::eq(one, finding));
    anchor(number.unwrap_or(0))
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
            &words::target(target),
        ),
        None => m.text(&words::target(target)),
    }
}

/// Findings that are alike: the first in full, and the others as a list.
fn draw_group(m: &mut Markup, report: &Report<'_>, group: &[&Finding]) {
    let [finding, others @ ..] = group else {
        return;
    };
    let word = finding.severity.word();
    let sentences = words::finding(finding);
    m.raw("\n");
    m.el(
        "article",
        &[
            ("id", &anchor_of(report, finding)),
            ("class", &format!("finding {word}")),
        ],
        |m| {
            m.el("h3", &[], |m| {
                m.leaf("span", &[("class", &format!("word {word}"))], word);
                if others.is_empty() {
                    m.text(finding.rule().name());
                    m.text(": ");
                    target(m, report, &finding.target);
                } else {
                    m.text(&alike::name(group));
                }
            });
            m.el("p", &[], |m| m.leaf("b", &[], &sentences.summary));
            if !others.is_empty() {
                m.leaf("p", &[], &alike::common_cause(others));
                m.el("ul", &[], |m| {
                    for other in others {
                        draw_other(m, report, finding, other);
                    }
                });
            }
            for sentence in &sentences.explanation {
                m.leaf("p", &[], sentence);
            }
            let cost = finding
                .cost
                .as_ref()
                .map_or_else(|| "not known".to_owned(), words::cost);
            m.leaf(
                "p",
                &[],
                &format!("Cost: {cost}. Confidence: {}.", finding.confidence.word()),
            );
            if let Some(command) = &finding.confirm {
                let on = words::on_host(finding);
                m.leaf(
                    "p",
                    &[],
                    &format!("Confirm it first{on}. The command only reads:"),
                );
                m.leaf("pre", &[], command);
            }
            steps(m, &finding.fix);
            m.leaf(
                "p",
                &[],
                &format!("Background: plumb explain {}", finding.rule()),
            );
            let rows = facts::rows(finding);
            if !rows.is_empty() {
                m.el("details", &[], |m| {
                    m.leaf("summary", &[], "Facts, by the names that JSON has");
                    table(m, "", &["<fact", "value"], &rows);
                });
            }
        },
    );
}

/// A finding of a group after the first: its place, its share, and its commands if they differ.
fn draw_other(m: &mut Markup, report: &Report<'_>, first: &Finding, other: &Finding) {
    m.el("li", &[("id", &anchor_of(report, other))], |m| {
        target(m, report, &other.target);
        if let Some(share) = words::counted_share(other) {
            m.text(": ");
            m.text(&share);
        }
        if !alike::is_same_fix(first, other) {
            steps(m, &other.fix);
        }
    });
}

pub fn steps(m: &mut Markup, steps: &[Fix]) {
    if steps.is_empty() {
        return;
    }
    m.leaf("p", &[], "Steps:");
    m.class("ol", "fix", |m| {
        for step in steps {
            m.el("li", &[], |m| {
                m.leaf("pre", &[], &step.command);
                let risk = words::capital(&words::risk(step.effect, step.risk.as_deref()));
                let is_harmless = step.effect.is_harmless();
                let words = match &step.undo {
                    _ if is_harmless => format!("{risk}."),
                    WayBack::Words(words) => format!("{risk}. Way back: {words}."),
                    WayBack::Command(_) => format!("{risk}. Way back:"),
                };
                m.leaf("span", &[("class", "small dim")], &words);
                if let Some(command) = step.undo.command().filter(|_| !is_harmless) {
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
                    m.text(question.rule.name());
                });
                m.class("td", "text", |m| target(m, report, &question.target));
                m.leaf("td", &[("class", "text")], &words::reason(&question.reason));
            });
        }
    });
}

/// Links from a section back to its findings.
pub fn links(m: &mut Markup, report: &Report<'_>, section: &Section<'_>) {
    let numbered = report.diagnosis.findings.iter().enumerate();
    let mine: Vec<(usize, &Finding)> = numbered
        .filter(|(_, finding)| section.is_of(&finding.target))
        .collect();
    let open = report
        .diagnosis
        .unknown
        .iter()
        .filter(|question| section.is_of(&question.target))
        .count();
    m.class("p", "links", |m| {
        for (number, finding) in &mine {
            let word = finding.severity.word();
            m.leaf("span", &[("class", &format!("word {word}"))], word);
            m.leaf(
                "a",
                &[("href", &format!("#{}", anchor(*number)))],
                finding.rule().name(),
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
