//! A check as the report of a test run, in the XML of Apache Ant's JUnit task that build servers read.
//!
//! Each finding that counts is a failed test of its device, each accepted one a skipped test, and each layer that could not be
//! judged an error. An aligned layer passes, and a misaligned one without such a finding is skipped: the finding is on the
//! layer with the cause, or does not count.

use std::collections::HashSet;

use plumb_model::{Finding, Severity};
use plumb_quoting::visible;
use plumb_stack::{NodeId, Overall};

use super::device;
use crate::check::Check;
use crate::words;

/// The result of a test.
enum Ended {
    Passed,
    Failed { rule: &'static str, words: String },
    Skipped { words: String },
    Unknown { words: String },
}

struct Test {
    class: String,
    name: String,
    ended: Ended,
}

/// A check as JUnit's XML. Findings from a severity on fail a test; without one, none does.
#[must_use]
pub fn junit(check: &Check<'_>, fail_from: Option<Severity>) -> String {
    let tests = tests(check, fail_from);
    let number = |is_meant: fn(&Ended) -> bool| {
        let meant = tests.iter().filter(|test| is_meant(&test.ended));
        meant.count()
    };
    let failures = number(|ended| matches!(ended, Ended::Failed { .. }));
    let errors = number(|ended| matches!(ended, Ended::Unknown { .. }));
    let skipped = number(|ended| matches!(ended, Ended::Skipped { .. }));
    let host = check.run.host.as_deref().unwrap_or("localhost");
    let verdict = check.verdict();
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
    text += &format!(
        "  <testsuite name=\"plumb check\" package=\"plumb\" id=\"0\" timestamp=\"{}\" hostname=\"{}\" tests=\"{}\" \
         failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" time=\"0\">\n    <properties>\n      \
         <property name=\"version\" value=\"{}\"/>\n      <property name=\"verdict\" value=\"{}\"/>\n    </properties>\n",
        // The schema wants UTC without a mark.
        escaped(check.run.time.trim_end_matches('Z')),
        escaped(host),
        tests.len(),
        escaped(&check.run.version),
        verdict.word.text(),
    );
    for test in &tests {
        text += &lines(test);
    }
    let sentence = format!("{}: {}", verdict.word.text(), verdict.sentence);
    text += &format!(
        "    <system-out>{}</system-out>\n    <system-err></system-err>\n  </testsuite>\n</testsuites>\n",
        escaped(&sentence)
    );
    text
}

fn tests(check: &Check<'_>, fail_from: Option<Severity>) -> Vec<Test> {
    let mut tests = Vec::new();
    let mut is_told: HashSet<NodeId> = HashSet::new();
    let mut add = |finding: &Finding, ended: Ended| {
        is_told.extend(finding.target.node);
        tests.push(Test {
            class: format!("plumb.{}", finding.rule()),
            name: device(finding).to_owned(),
            ended,
        });
    };
    let is_failed = |finding: &&Finding| fail_from.is_some_and(|from| finding.severity >= from);
    for finding in check.diagnosis.findings.iter().filter(is_failed) {
        let rule = finding.rule().name();
        let words = words::finding(finding).summary;
        add(finding, Ended::Failed { rule, words });
    }
    for one in &check.accepted.findings {
        let words = one.by.reason.clone();
        let words = words.unwrap_or_else(|| one.by.place.clone());
        add(&one.finding, Ended::Skipped { words });
    }
    for (id, node) in check.stack.nodes().filter(|(id, _)| check.wants(*id)) {
        if is_told.contains(&id) {
            continue;
        }
        let stand = check.survey.stand(id);
        let ended = match stand.map(|stand| (stand.overall, check.is_accepted_unseen(stand))) {
            Some((Overall::Misaligned, _)) => Ended::Skipped {
                words: "misaligned, without a finding of its own that counts".to_owned(),
            },
            Some((Overall::Unknown, false)) => Ended::Unknown {
                words: "the alignment on the layers below is not known".to_owned(),
            },
            None | Some((Overall::Aligned, _) | (Overall::Unknown, true)) => Ended::Passed,
        };
        tests.push(Test {
            class: "plumb.alignment".to_owned(),
            name: node.name.clone(),
            ended,
        });
    }
    tests
}

fn lines(test: &Test) -> String {
    let head = format!(
        "    <testcase classname=\"{}\" name=\"{}\" time=\"0\"",
        escaped(&test.class),
        escaped(&test.name)
    );
    let body = match &test.ended {
        Ended::Passed => return head + "/>\n",
        Ended::Failed { rule, words } => format!(
            "<failure type=\"{rule}\" message=\"{0}\">{0}</failure>",
            escaped(words)
        ),
        Ended::Skipped { words } => format!("<skipped message=\"{}\"/>", escaped(words)),
        Ended::Unknown { words } => format!(
            "<error type=\"unknown\" message=\"{0}\">{0}</error>",
            escaped(words)
        ),
    };
    format!("{head}>\n      {body}\n    </testcase>\n")
}

/// Words in XML. The standard allows no control characters, which are escapes here already, and two more signs.
fn escaped(words: &str) -> String {
    let mut text = String::new();
    for letter in visible(words).chars() {
        match letter {
            '&' => text += "&amp;",
            '<' => text += "&lt;",
            '>' => text += "&gt;",
            '"' => text += "&quot;",
            '\u{fffe}' | '\u{ffff}' => text.push('\u{fffd}'),
            letter => text.push(letter),
        }
    }
    text
}
