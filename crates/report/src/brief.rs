//! The short report of a command that judges, the default: the verdict, a few lines for each finding, and the parts that
//! were not visible.

use plumb_geometry::plural;
use plumb_model::result::check::Unseen;
use plumb_model::result::verdict::{Verdict, Word};
use plumb_model::{Effect, Finding, Fix};

use crate::check::listed;
use crate::text::alike::{groups, kinds, the_same_on};
use crate::text::page::Page;
use crate::verdict::{Outcome, devices, is_without_cost, reported};
use crate::words;

/// Groups of equal findings with a block of lines each. The others have a line for each rule.
const BLOCKS: usize = 4;
/// Commands that show unseen layers.
const UNSEEN_COMMANDS: usize = 2;
/// A report with fewer lines needs no verdict at its end.
const LINES_SHORT: usize = 8;

/// The whole of it; `limits` prints the parts that the judgement does not include.
pub(crate) fn lines(
    page: &mut Page,
    verdict: &Verdict,
    outcome: Outcome,
    findings: &[Finding],
    limits: impl FnOnce(&mut Page),
) {
    first_line(page, verdict);
    let shown = reported(outcome, findings);
    let groups = groups(shown.iter().copied());
    let (long, short) = groups.split_at(groups.len().min(BLOCKS));
    for alike in long {
        block(page, alike);
    }
    for alike in kinds(short.iter().flatten().copied()) {
        one_line(page, &alike);
    }
    let is_shown = |finding: &&Finding| shown.iter().any(|one| std::ptr::eq(*one, *finding));
    let others = findings.iter().filter(|one| !is_shown(one));
    let (free, notes): (Vec<&Finding>, Vec<&Finding>) =
        others.partition(|one| is_without_cost(one));
    for finding in free {
        free_line(page, finding);
    }
    let notes: Vec<&Finding> = notes.into_iter().filter(|one| one.has_action()).collect();
    if !notes.is_empty() {
        notes_line(page, &notes);
    }
    limits(page);
    last_line(page, verdict);
}

/// The word in its colour, and the sentence.
pub(crate) fn first_line(page: &mut Page, verdict: &Verdict) {
    let word = painted(page, verdict.word);
    page.wrapped(word + ": ", "  ", verdict.sentence.as_str());
}

/// The verdict on the time up to an interval.
pub(crate) fn line_so_far(page: &mut Page, verdict: &Verdict) {
    let word = painted(page, verdict.word);
    page.wrapped(word + " so far: ", "  ", verdict.sentence.as_str());
}

/// The verdict again where the first line may have left the screen.
pub(crate) fn last_line(page: &mut Page, verdict: &Verdict) {
    if page.text.lines().count() < LINES_SHORT {
        return;
    }
    page.gap();
    let word = painted(page, verdict.word);
    let words = verdict.short.as_ref().unwrap_or(&verdict.sentence).clone();
    page.wrapped(word + ": ", "  ", words);
}

fn painted(page: &Page, word: Word) -> crate::text::page::Painted {
    let color = match word {
        Word::Ok => "32",
        Word::Misfit | Word::Problem => "33",
        Word::Unknown | Word::Inconclusive => "36",
    };
    page.painted(color, word.text())
}

/// The finding, its cost and the next step.
pub(crate) fn block(page: &mut Page, alike: &[&Finding]) {
    let [first, others @ ..] = alike else {
        return;
    };
    page.gap();
    let severity = page.severity(first.severity);
    let name = format!("{}: {}", first.rule(), words::target(&first.target));
    page.wrapped(severity + "  ", "  ", name);
    page.wrapped("  ", "  ", summary(first));
    if let Some(cost) = &first.cost {
        page.wrapped("  Cost: ", "  ", words::cost(cost) + ".");
    }
    if let Some(command) = &first.confirm {
        page.line(format!(
            "  Confirm it first{} (reads only):",
            words::on_host(first)
        ));
        page.command("      ", command);
    }
    remedy(page, first);
    if !others.is_empty() {
        page.wrapped("  ", "  ", the_same_on(others));
    }
    page.line(format!("  Background: plumb explain {}", first.rule()));
}

/// The defect, and the I/O that show it.
pub(crate) fn summary(finding: &Finding) -> String {
    let defect = words::finding(finding).summary;
    match words::misaligned_through(finding) {
        Some(seen) => format!("{defect} {seen}"),
        None => defect,
    }
}

/// The first command of the fix with its risk, a preview before all others; or the sentence with the next step instead.
fn remedy(page: &mut Page, finding: &Finding) {
    if let Some(words) = words::move_does_not_help(finding) {
        page.wrapped("  ", "  ", words);
        return;
    }
    let is_preview =
        |step: &&Fix| step.effect == Effect::ReadsOnly && step.command.starts_with("plumb fix ");
    let preview = finding.fix.iter().find(is_preview);
    let Some(first) = preview.or(finding.fix.first()) else {
        if let Some(sentence) = words::next_step(finding) {
            page.wrapped("  ", "  ", sentence);
        }
        return;
    };
    for precondition in words::preconditions(finding) {
        page.wrapped("  ", "  ", precondition);
    }
    let label = match first.effect {
        Effect::ReadsOnly if preview.is_some() => "Preview",
        Effect::ReadsOnly | Effect::WritesFile => "Next",
        _ => "Fix",
    };
    let risk = words::risk(first.effect, first.risk.as_deref());
    page.wrapped("  ", "  ", format!("{label} ({risk}):"));
    page.command("      ", &first.command);
    if finding.fix.len() > 1 {
        let more = plural(finding.fix.len() as u64 - 1, "more command");
        page.line(format!("      ({more}: -v)"));
    }
}

fn one_line(page: &mut Page, alike: &[&Finding]) {
    let Some(first) = alike.first() else { return };
    page.gap();
    let severity = page.severity(first.severity);
    let rule = first.rule();
    let words = format!(
        "{rule}: {} (-v; plumb explain {rule})",
        listed(devices(alike))
    );
    page.wrapped(severity + "  ", "  ", words);
}

/// The measurement behind a misfit without a cost.
fn free_line(page: &mut Page, finding: &Finding) {
    let Some(latency) = finding.latency_by_fit() else {
        return;
    };
    page.gap();
    let name = format!("{} on {}: ", finding.rule(), finding.target.device);
    page.wrapped(name, "  ", words::latency(latency));
}

fn notes_line(page: &mut Page, notes: &[&Finding]) {
    page.gap();
    let named: Vec<String> = kinds(notes.iter().copied())
        .iter()
        .map(|alike| format!("{} on {}", alike[0].rule(), listed(devices(alike))))
        .collect();
    page.wrapped("Notes (-v): ", "  ", named.join("; ") + ".");
}

/// The way to accept a guest whose lower layers nobody can see from here.
pub(crate) fn accept_unseen_line(page: &mut Page) {
    page.gap();
    page.wrapped(
        "",
        "",
        "To accept a guest as it is, put this line into /etc/plumb/config.toml:",
    );
    page.line("  accept_unseen = true");
}

/// Everything that was not visible in one sentence, and commands that show it.
pub(crate) fn unseen_lines(page: &mut Page, word: Word, unseen: &[&Unseen]) {
    let has_commands = unseen.iter().any(|one| !one.commands.is_empty());
    if unseen.is_empty() || word == Word::Unknown && !has_commands {
        return;
    }
    page.gap();
    let clauses: Vec<&str> = unseen.iter().map(|one| one.clause.as_str()).collect();
    match word {
        // The verdict has named them.
        Word::Unknown => page.line("To include the missing parts, run:"),
        _ => page.wrapped("Not visible: ", "  ", clauses.join(", ") + "."),
    }
    let with_commands = unseen.iter().find(|one| !one.commands.is_empty());
    for command in with_commands
        .iter()
        .flat_map(|one| one.commands.iter().take(UNSEEN_COMMANDS))
    {
        page.command("  ", command);
    }
}
