//! The report of `plumb diagnose` as one page: findings, the stack with its verdicts, then the pictures of each device that
//! had I/O, as the page of `plumb analyze` has them.

use plumb_model::result::check::Unseen;

use super::markup::Markup;
use super::page::{document, table};
use super::{draw_section, findings, foot, overview, pictured};
use crate::check::{accepted, listed, tree_lines};
use crate::diagnose::Diagnose;
use crate::format::count;
use crate::text::Color;
use crate::text::page::Page;

/// The page.
#[must_use]
pub fn diagnosed(diagnose: &Diagnose<'_>) -> String {
    let report = &diagnose.io;
    document(&format!("plumb diagnose: {}", report.title), |m| {
        m.leaf("h1", &[], &format!("Storage of {}", report.title));
        findings::draw_verdict(m, &diagnose.verdict(), &diagnose.headline());
        alike(m, diagnose);
        unseen(m, diagnose.check.unseen);
        findings::draw(m, report);
        for sentence in accepted::sentences(diagnose.check.accepted) {
            m.leaf("p", &[], &sentence);
        }
        tree(m, diagnose);
        if report.sections.len() > 1 {
            overview(m, report);
        }
        let pictured = pictured(report);
        for (at, section) in report.sections.iter().enumerate() {
            draw_section(m, report, at, section, pictured.contains(&at));
        }
        notes(m, diagnose);
        foot(m, report);
    })
}

/// A finding, with the number of devices that have it and the number of all.
fn alike(m: &mut Markup, diagnose: &Diagnose<'_>) {
    let rows = diagnose.alike().into_iter().map(|one| {
        let of = format!(
            "{} of {}",
            count(one.devices.len() as u64),
            count(one.of as u64)
        );
        vec![
            one.severity.word().to_owned(),
            one.rule.name().to_owned(),
            of,
            listed(one.devices),
        ]
    });
    table(
        m,
        "",
        &["<severity", "<finding", "on", "<devices"],
        &rows.collect::<Vec<_>>(),
    );
}

fn unseen(m: &mut Markup, unseen: &[Unseen]) {
    if unseen.is_empty() {
        return;
    }
    m.leaf("h3", &[], "Not seen");
    m.el("ul", &[], |m| {
        for one in unseen {
            m.el("li", &[], |m| {
                m.text(&one.what);
                if !one.commands.is_empty() {
                    m.leaf("pre", &[], &one.commands.join("\n"));
                }
            });
        }
    });
}

/// The tree as the terminal has it, its verdicts in colour.
fn tree(m: &mut Markup, diagnose: &Diagnose<'_>) {
    let mut page = Page::new(Color::Always);
    tree_lines(&mut page, &diagnose.check);
    let mut lines = page.text.splitn(3, '\n');
    let (heading, _, tree) = (lines.next(), lines.next(), lines.next().unwrap_or_default());
    let Some(heading) = heading.filter(|_| !tree.is_empty()) else {
        return;
    };
    m.leaf("h2", &[("id", "stack")], heading);
    m.el("pre", &[("class", "tree")], |m| painted(m, tree));
}

/// Classes for the colours of a terminal.
const COLORS: [(&str, &str); 4] = [
    ("\x1b[1;31m", "word-critical"),
    ("\x1b[1;32m", "word-aligned"),
    ("\x1b[1;33m", "word-warning"),
    ("\x1b[1;36m", "word-note"),
];
const PLAIN: &str = "\x1b[0m";

/// Text with words in the colours of a terminal.
fn painted(m: &mut Markup, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        m.text(&rest[..at]);
        rest = &rest[at..];
        let class = COLORS
            .iter()
            .find_map(|(code, class)| Some((rest.strip_prefix(code)?, *class)));
        let (inside, class) = class.unwrap_or((&rest[1..], ""));
        let (word, after) = inside.split_once(PLAIN).unwrap_or((inside, ""));
        m.leaf("b", &[("class", class)], word);
        rest = after;
    }
    m.text(rest);
}

fn notes(m: &mut Markup, diagnose: &Diagnose<'_>) {
    m.leaf("h2", &[], "Sources");
    m.el("ul", &[], |m| {
        diagnose
            .io
            .sources
            .iter()
            .for_each(|source| m.leaf("li", &[], source));
        diagnose
            .io
            .notes
            .iter()
            .for_each(|note| m.leaf("li", &[], note));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_classes_and_names_stay_text() {
        let mut m = Markup::default();
        painted(&mut m, "a <b> \x1b[1;31mmisaligned\x1b[0m by 1");
        assert_eq!(
            m.into_string(),
            "a &lt;b&gt; <b class=\"word-critical\">misaligned</b> by 1"
        );
    }
}
