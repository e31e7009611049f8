//! A probe as text.

use plumb_load::result::probe::{Hint, ProbeReport};
use plumb_model::Finding;

use super::verdict;
use super::words::{
    figures, first_word, grid_words, open_words, searched_words, shown, source_words,
};
use crate::brief;
use crate::format::{bytes, ns};
use crate::text::{Page, Paper, finding_lines};
use crate::verdict::Outcome;

/// The same for a person.
#[must_use]
pub fn text(
    probed: &ProbeReport<'_>,
    findings: &[Finding],
    outcome: Outcome,
    paper: impl Into<Paper>,
) -> String {
    let mut page = Page::new(paper);
    let verdict = verdict(probed, outcome);
    brief::first_line(&mut page, &verdict);
    probed
        .commands
        .iter()
        .for_each(|command| page.command("    ", command));
    for finding in findings {
        page.gap();
        finding_lines(&mut page, finding);
    }
    page.gap();
    for (name, words) in figures(probed) {
        page.wrapped(format!("  {name:<9} "), " ".repeat(12), &words);
    }
    bars(&mut page, probed);
    hints(&mut page, probed);
    searched(&mut page, probed);
    page.gap();
    page.wrapped("  ", "  ", open_words(probed.op));
    for note in probed.notes {
        page.wrapped("  note: ", "    ", note);
    }
    brief::last_line(&mut page, &verdict);
    page.text
}

/// Columns of the longest bar.
const BAR: usize = 40;

fn bars(page: &mut Page, probed: &ProbeReport<'_>) {
    let most = probed.sweep.iter().map(|bar| bar.ns).fold(0.0, f64::max);
    if most <= 0.0 {
        return;
    }
    let len = probed.penalty.map_or(0, |penalty| penalty.len_bytes);
    page.heading(&format!(
        "{} of {} by where they start, time of each",
        first_word(probed.op),
        bytes(len)
    ));
    for bar in probed.sweep {
        let full = "█".repeat(((bar.ns / most) * BAR as f64).round().max(1.0) as usize);
        let here = probed
            .grid
            .filter(|grid| grid.offset_bytes == bar.offset_bytes);
        let mark = here.map_or("", |_| "  on the grid");
        page.line(format!(
            "  {:>9}  {full} {}{mark}",
            bytes(bar.offset_bytes),
            ns(bar.ns as u64)
        ));
    }
}

fn hints(page: &mut Page, probed: &ProbeReport<'_>) {
    if probed.hints.is_empty() {
        return;
    }
    page.heading("Statements of the device and layers");
    for hint in probed.hints {
        let Hint {
            what, layer, why, ..
        } = hint;
        let source = source_words(hint);
        let words = format!(
            "{what} of {layer}, {} ({source}): {why}",
            grid_words(hint.grid)
        );
        page.wrapped(
            format!("  {:<10} ", hint.outcome.word()),
            " ".repeat(13),
            &words,
        );
    }
}

fn searched(page: &mut Page, probed: &ProbeReport<'_>) {
    let mut shown = shown(probed).peekable();
    if shown.peek().is_none() || probed.measured() == 0 {
        return;
    }
    page.heading("Measured granularities");
    for one in shown {
        page.numbered(
            12,
            &bytes(one.granularity_bytes),
            &searched_words(one, probed.op),
        );
    }
}
