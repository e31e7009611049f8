//! Pages of findings as text.

use plumb_model::rule::Rule;

use crate::text::Paper;
use crate::text::page::Page;

/// The names of the rules and their pages in Markdown, with a byte 0 behind each.
const PAGES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/pages.zst"));

/// The page of a rule, in Markdown.
fn markdown(rule: &Rule) -> String {
    let text = zstd::decode_all(PAGES).expect("the pages that the build packed");
    let text = String::from_utf8(text).expect("pages in UTF-8");
    let mut parts = text.split('\0');
    parts
        .find(|name| *name == rule.name)
        .and_then(|_| parts.next())
        .expect("a page for each rule")
        .to_owned()
}

/// The page of a rule.
#[must_use]
pub fn page(rule: &Rule, paper: impl Into<Paper>) -> String {
    let mut page = Page::new(paper);
    let mut paragraph = String::new();
    let (mut is_code, mut is_below_heading) = (false, false);
    for line in markdown(rule).lines() {
        let is_fence = line.starts_with("```");
        let is_item = line.starts_with("- ") || number_of_item(line).is_some();
        let is_whole = is_code
            || is_fence
            || is_item
            || line.is_empty()
            || line.starts_with('#')
            || line.starts_with('|');
        if is_whole {
            end_paragraph(&mut page, &mut paragraph);
        }
        if is_fence {
            is_code = !is_code;
        } else if is_code || line.starts_with('|') {
            page.line(format!("    {line}"));
        } else if let Some(title) = line.strip_prefix("# ") {
            page.wrapped("", "  ", format!("{title}: {}", rule.title));
        } else if line.starts_with('#') {
            page.heading(line.trim_start_matches(['#', ' ']));
        } else if line.is_empty() {
            if !is_below_heading {
                page.gap();
            }
        } else {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(line.trim());
        }
        is_below_heading = line.starts_with("##") && !is_code;
    }
    end_paragraph(&mut page, &mut paragraph);
    page.text
}

/// All rules, a line each.
#[must_use]
pub fn index(rules: &[Rule], paper: impl Into<Paper>) -> String {
    let mut page = Page::new(paper);
    let width = rules.iter().map(|rule| rule.name.len()).max().unwrap_or(0);
    for rule in rules {
        let name = format!("{:width$} ", rule.name);
        page.wrapped(name, " ".repeat(width + 1), rule.title);
    }
    page.text
}

fn end_paragraph(page: &mut Page, paragraph: &mut String) {
    let words = plain(&std::mem::take(paragraph));
    match words.strip_prefix("- ") {
        _ if words.is_empty() => {}
        Some(item) => page.wrapped("  - ", "    ", item),
        None => match number_of_item(&words) {
            Some((number, item)) => page.wrapped(format!("  {number}. "), "     ", item),
            None => page.wrapped("  ", "  ", words),
        },
    }
}

/// `2. Offline: …` as its number and its words.
fn number_of_item(line: &str) -> Option<(u32, &str)> {
    let (number, item) = line.split_once(". ")?;
    Some((number.parse().ok()?, item))
}

/// Words without the marks of Markdown: `[page](page.md)` becomes `page`, and marks of emphasis go.
fn plain(words: &str) -> String {
    let words = words.replace("**", "");
    let mut plain = String::new();
    let mut rest = words.as_str();
    while let Some((before, after)) = rest.split_once('[') {
        let link = after
            .split_once("](")
            .and_then(|(name, after)| Some((name, after.split_once(')')?.1)));
        plain.push_str(before);
        match link {
            Some((name, after)) => {
                plain.push_str(name);
                rest = after;
            }
            None => {
                plain.push('[');
                rest = after;
            }
        }
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use plumb_model::rule::RULES;

    use super::{markdown, number_of_item, plain};

    #[test]
    fn each_rule_has_its_page() {
        let pages = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/findings");
        for rule in RULES {
            let page = std::fs::read_to_string(format!("{pages}/{}.md", rule.name));
            assert_eq!(markdown(rule), page.expect(rule.name));
        }
    }

    #[test]
    fn numbered_items_differ_from_sentences() {
        assert_eq!(number_of_item("2. Offline: now"), Some((2, "Offline: now")));
        assert_eq!(number_of_item("Offline. 2. Now"), None);
    }

    #[test]
    fn marks_of_markdown_go() {
        for (marked, bare) in [
            ("see [a page](page.md) and **this**", "see a page and this"),
            ("an array [0] of `x`", "an array [0] of `x`"),
        ] {
            assert_eq!(plain(marked), bare);
        }
    }
}
