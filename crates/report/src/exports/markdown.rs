//! The verdict and the findings as Markdown, for a ticket or a summary of a build.

use plumb_model::Finding;
use plumb_quoting::visible;

use super::device;
use crate::check::{Check, accepted};
use crate::words;

/// A check as Markdown.
#[must_use]
pub fn markdown(check: &Check<'_>) -> String {
    let verdict = check.verdict();
    let mut text = format!(
        "**{}**: {}\n",
        verdict.word.text(),
        plain(&verdict.sentence)
    );
    if !check.diagnosis.findings.is_empty() {
        text += "\n| severity | finding | device | summary | fix |\n|---|---|---|---|---|\n";
    }
    for finding in &check.diagnosis.findings {
        text += &row(finding);
    }
    for sentence in accepted::sentences(check.accepted) {
        text += &format!("\n{}\n", plain(&sentence));
    }
    text
}

fn row(finding: &Finding) -> String {
    let fix = finding.fix.first();
    let cells = [
        finding.severity.word().to_owned(),
        code(finding.rule().name()),
        code(device(finding)),
        plain(&words::finding(finding).summary),
        fix.map_or_else(String::new, |first| code(&first.command.to_string())),
    ];
    format!("| {} |\n", cells.join(" | "))
}

/// Words whose signs mean nothing in Markdown.
fn plain(words: &str) -> String {
    let mut text = String::new();
    for letter in visible(words).chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' => text.extend(['\\', letter]),
            '<' => text += "&lt;",
            '>' => text += "&gt;",
            '&' => text += "&amp;",
            letter => text.push(letter),
        }
    }
    text
}

/// Words in inline code. The fence is longer than any run of backquotes in them, and a line would end a cell.
fn code(words: &str) -> String {
    let words = visible(words);
    let mut longest = 0;
    let mut run = 0;
    for letter in words.chars() {
        run = if letter == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let blank = if longest > 0 { " " } else { "" };
    format!("{fence}{blank}{}{blank}{fence}", words.replace('|', "\\|"))
}
