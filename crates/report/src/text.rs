//! The report as text, for 80 columns: findings first, then their devices.

use plumb_diagnose::analysis::{Analysis, GridFit, PlaceAnalysis};
use plumb_geometry::{Bytes, SECTOR, group_digits, plural};
use plumb_model::{Effect, Finding, Reason, RuleId, Target};
use plumb_profile::fit::FitTally;
use plumb_profile::infer::InferenceVerdict;
use plumb_quoting::{CommandLine, WayBack};

use crate::Report;
use crate::brief;
use crate::format::{count, count_within, factor_within, percent, share_within};
use crate::words;

pub(crate) mod alike;
mod app;
mod ascii;
mod chart;
mod interval;
mod measures;
pub(crate) mod page;
mod what_if;

pub use ascii::ascii;
pub use interval::{WatchInterval, asked, interval};
use page::figure_columns;
pub use page::{
    Color, Detail, FigureColumn, Paper, WIDTH, WIDTH_MAX, WIDTH_MIN, fitting_columns, unbroken,
};

pub(crate) use page::Page;

/// The whole report.
#[must_use]
pub fn text(report: &Report<'_>, paper: impl Into<Paper>) -> String {
    let mut page = Page::new(paper);
    let verdict = report.verdict();
    brief::first_line(&mut page, &verdict);
    headline(&mut page, report);
    for section in &report.sections {
        what_if::lines(&mut page, section.analysis, report.sections.len() > 1);
    }
    for group in alike::groups(&report.diagnosis.findings) {
        group_lines(&mut page, &group);
    }
    unknown_lines(&mut page, report);
    source_lines(&mut page, report);
    for section in &report.sections {
        section_lines(&mut page, section.analysis, section.profile);
    }
    brief::last_line(&mut page, &verdict);
    page.text
}

/// The first screen of a report alone: the verdict, and a few lines for each finding.
#[must_use]
pub fn brief(report: &Report<'_>, paper: impl Into<Paper>) -> String {
    let mut page = Page::new(paper);
    let findings = &report.diagnosis.findings;
    brief::lines(
        &mut page,
        &report.verdict(),
        report.outcome,
        findings,
        |_| (),
    );
    page.text
}

fn headline(page: &mut Page, report: &Report<'_>) {
    let ios: u64 = report
        .sections
        .iter()
        .map(|section| section.analysis.ios)
        .sum();
    let counted = report
        .sections
        .iter()
        .any(|section| !section.profile.imported.is_empty());
    let places = report.sections.len();
    let of = match (ios, places) {
        (0, _) if counted => "in ready-made histograms".to_owned(),
        (ios, 1) => format!("in {} I/O", count(ios)),
        (_, 0) => "in 0 I/O".to_owned(),
        // No sum: devices may be stacked, and an I/O would count once for each.
        (_, places) => format!("on {}", plural(places as u64, "device")),
    };
    let findings = report.diagnosis.findings.len();
    page.line(match findings {
        0 => format!("no finding {of}"),
        number => format!("{} {of}", plural(number as u64, "finding")),
    });
}

/// Findings that are alike: the first in full, and the others as a list.
fn group_lines(page: &mut Page, group: &[&Finding]) {
    let [first, others @ ..] = group else {
        return;
    };
    if others.is_empty() {
        return finding_lines(page, first);
    }
    lines_of(page, first, alike::name(group), |page| {
        page.wrapped("  - ", "    ", alike::common_cause(others));
        for other in others {
            let target = words::target(&other.target);
            let words = match words::counted_share(other) {
                Some(share) => format!("{target}: {share}"),
                None => target,
            };
            page.wrapped("      ", "        ", words);
        }
    });
    // Commands that name a device are printed for each.
    for other in others
        .iter()
        .filter(|other| !alike::is_same_fix(first, other))
    {
        page.line(format!("  next, {}:", words::target(&other.target)));
        fix_lines(page, other);
    }
}

pub(crate) fn finding_lines(page: &mut Page, finding: &Finding) {
    let name = format!("{}: {}", finding.rule(), words::target(&finding.target));
    lines_of(page, finding, name, |_| ());
}

fn lines_of(page: &mut Page, finding: &Finding, name: String, list: impl FnOnce(&mut Page)) {
    page.gap();
    let severity = page.severity(finding.severity);
    let sentences = words::finding(finding);
    page.wrapped(severity + "  ", "  ", name);
    page.wrapped("  ", "  ", sentences.summary);
    list(page);
    for sentence in sentences.explanation {
        page.wrapped("  - ", "    ", sentence);
    }
    if let Some(cost) = &finding.cost {
        page.wrapped("  cost: ", "    ", words::cost(cost));
    }
    page.line(format!("  confidence: {}", finding.confidence.word()));
    if let Some(command) = &finding.confirm {
        page.line(format!("  confirm it first{}:", words::on_host(finding)));
        page.command("    ", command);
        page.line("      (reads only)");
    }
    if !finding.fix.is_empty() {
        page.line("  next:");
    }
    fix_lines(page, finding);
    page.line(format!("  background: plumb explain {}", finding.rule()));
}

fn fix_lines(page: &mut Page, finding: &Finding) {
    for step in &finding.fix {
        step_lines(
            page,
            &step.command,
            (step.effect, step.risk.as_deref()),
            &step.undo,
        );
    }
}

/// A command and its way back on lines of their own, and the risk as words.
pub(crate) fn step_lines(
    page: &mut Page,
    command: &CommandLine,
    (effect, risk): (Effect, Option<&str>),
    undo: &WayBack,
) {
    page.command("    ", command);
    let risk = words::risk(effect, risk);
    // A command that changes nothing needs no way back.
    let words = match undo {
        WayBack::Words(words) if !effect.is_harmless() => {
            format!("({risk}; way back: {words})")
        }
        _ => format!("({risk})"),
    };
    page.wrapped("      ", "      ", words);
    if let Some(command) = undo.command().filter(|_| !effect.is_harmless()) {
        page.command("      way back: ", command);
    }
}

fn unknown_lines(page: &mut Page, report: &Report<'_>) {
    if report.diagnosis.unknown.is_empty() {
        return;
    }
    page.heading("Unknown");
    let several = report.sections.len() > 1;
    // One reason often blocks several rules.
    let mut gathered: Vec<(&Target, &Reason, Vec<RuleId>)> = Vec::new();
    for unjudged in &report.diagnosis.unknown {
        let (target, reason) = (&unjudged.target, &unjudged.reason);
        match gathered
            .iter_mut()
            .find(|(on, why, _)| (*on, *why) == (target, reason))
        {
            Some((.., rules)) => rules.push(unjudged.rule),
            None => gathered.push((target, reason, vec![unjudged.rule])),
        }
    }
    for (target, reason, rules) in gathered {
        let whole = report
            .sections
            .iter()
            .any(|section| section.analysis.target == *target);
        let on = if several || !whole {
            format!(" on {}", words::target(target))
        } else {
            String::new()
        };
        let rules: Vec<&str> = rules.into_iter().map(RuleId::name).collect();
        page.wrapped(
            "  ",
            "    ",
            format!("{}{on}: {}", rules.join(", "), words::reason(reason)),
        );
    }
}

fn source_lines(page: &mut Page, report: &Report<'_>) {
    page.heading("Source");
    for source in report.sources {
        page.wrapped("  ", "    ", source);
    }
    // With one source its name is not needed before each note.
    let only = (report.sources.len() == 1).then(|| format!("{}: ", report.title));
    for note in report.notes {
        let words = only
            .as_ref()
            .and_then(|name| note.strip_prefix(name.as_str()))
            .unwrap_or(note);
        page.wrapped("  note: ", "    ", words);
    }
}

fn section_lines(page: &mut Page, analysis: &Analysis, profile: &plumb_profile::Profile) {
    let name = words::target(&analysis.target);
    let mut letters = name.chars();
    let heading: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .chain(letters)
        .collect();
    page.heading(&heading);
    measures::totals(page, analysis, "from first to last issue");
    for (at, place) in analysis.places.iter().enumerate() {
        if at > 0 {
            place_heading(page, place, analysis);
            if analysis
                .places
                .first()
                .is_some_and(|device| device.inference.ios == place.inference.ios)
            {
                page.line("    all I/O are behind its start, as above; its end is not known");
                continue;
            }
        }
        for fit in &place.grids {
            grid_lines(page, fit);
        }
        inference_lines(page, place);
    }
    measures::sizes(page, analysis);
    measures::order(page, analysis, profile);
    if analysis.timed > 0 || !measures::is_latency_imported(profile) {
        measures::latency(page, analysis);
    }
    measures::single_ios(page, analysis);
    measures::processes(page, analysis);
    measures::imported(page, profile);
}

fn place_heading(page: &mut Page, place: &PlaceAnalysis, analysis: &Analysis) {
    page.gap();
    let name = place.name.as_deref().unwrap_or_default();
    let device = &analysis.target.device;
    let first = group_digits(place.first_byte / 512);
    page.wrapped(
        "  ",
        "  ",
        format!(
            "Partition {name} of {device}, from sector {first} on (offsets are those of {device})"
        ),
    );
}

/// The output of `align.d`, for a grid.
fn grid_lines(page: &mut Page, fit: &GridFit) {
    page.gap();
    page.line(format!(
        "  On the grid of {} ({})",
        fit.grid,
        fit.source.word()
    ));
    let tally = match &fit.all {
        Ok(tally) => tally,
        Err(why) => {
            page.wrapped("    unknown: ", "      ", why.to_string());
            return;
        }
    };
    page.numbered(14, &count(tally.ios), "I/O issued");
    let misaligned = share_within(tally.misaligned, tally.ios);
    let offset = tally.head_bytes_sum.known().map(|sum| {
        let mean = sum / u128::from(tally.ios.max(1));
        mean_offset(u64::try_from(mean).unwrap_or(u64::MAX))
    });
    let words = match offset {
        Some(offset) => format!("I/O misaligned ({misaligned}), mean offset {offset}"),
        None => format!("I/O misaligned ({misaligned})"),
    };
    page.numbered(14, &count_within(tally.misaligned), &words);
    length_lines(page, fit, tally);
    if tally.misaligned.low > 0 {
        page.gap();
        page.line("    sectors past the grid");
        let rows: Vec<(String, u64)> = tally
            .heads
            .iter()
            .map(|(index, ios)| {
                (
                    if index == 0 {
                        "0".into()
                    } else {
                        count(1 << (index - 1))
                    },
                    ios,
                )
            })
            .collect();
        chart::bars(page, &rows);
    }
}

/// How far past a grid: `1,024 bytes (2 sectors)`; bytes alone where it is no whole sector.
fn mean_offset(bytes: u64) -> String {
    match (bytes / SECTOR, bytes % SECTOR) {
        (sectors, 0) if sectors > 0 => {
            format!("{} ({})", plural(bytes, "byte"), plural(sectors, "sector"))
        }
        _ => plural(bytes, "byte"),
    }
}

/// The numbers that depend on an I/O's length as well as its start.
fn length_lines(page: &mut Page, fit: &GridFit, tally: &FitTally) {
    let granularity = fit.grid.granularity();
    let words = format!(
        "I/O no multiple of {granularity} long ({})",
        share_within(tally.odd_length, tally.ios)
    );
    page.numbered(14, &count_within(tally.odd_length), &words);
    let words = format!(
        "I/O touch more blocks than they need ({})",
        share_within(tally.split, tally.ios)
    );
    page.numbered(14, &count_within(tally.split), &words);
    for (word, value) in [
        ("read", fit.read_amplification),
        ("written", fit.write_amplification),
    ] {
        if let Some(value) = value {
            page.numbered(
                14,
                &factor_within(value, 3),
                &format!("bytes moved per byte {word}, at most"),
            );
        }
    }
    rounded_line(page, tally);
}

/// Says why figures of a tally are ranges.
fn rounded_line(page: &mut Page, tally: &FitTally) {
    if tally.rounded > 0 {
        page.numbered(14, &count(tally.rounded), ROUNDED);
    }
}

/// Beside ranges, when lengths were dropped.
const ROUNDED: &str = "I/O have a length that is known only to be between two powers of two";

fn inference_lines(page: &mut Page, place: &PlaceAnalysis) {
    let inference = &place.inference;
    if inference.ios == 0 {
        return;
    }
    page.gap();
    page.line("  Offset that the I/O themselves show");
    let of_heads = |heads: u64| percent(heads as f64 / inference.heads.max(1) as f64);
    let of_ios = |ios: u64| percent(ios as f64 / inference.ios.max(1) as f64);
    match &inference.verdict {
        InferenceVerdict::One { phase } => page.wrapped(
            "    ",
            "    ",
            format!(
                "{} blocks at offset {} (sector {} of {}): {} of the I/O, {} of the {} random I/O",
                phase.granularity_bytes,
                phase.offset_bytes,
                phase.offset_bytes.0 / 512,
                phase.granularity_bytes.0 / 512,
                of_ios(phase.ios),
                of_heads(phase.heads),
                count(inference.heads),
            ),
        ),
        InferenceVerdict::Two { phases } => {
            for phase in phases {
                let words = format!(
                    "{} blocks at offset {}: {} of the I/O, {} of the random I/O",
                    phase.granularity_bytes,
                    phase.offset_bytes,
                    of_ios(phase.ios),
                    of_heads(phase.heads),
                );
                page.wrapped("    ", "    ", &words);
            }
        }
        InferenceVerdict::NoGrid => {
            page.line("    none: no one or two offsets hold most random I/O, on any grid")
        }
        InferenceVerdict::NotEnoughData { why } => {
            page.wrapped("    not enough data: ", "      ", why)
        }
    }
    if let Some(largest) = inference.examined_bytes {
        page.wrapped("    ", "    ", words::examined(largest));
    }
    if matches!(inference.verdict, InferenceVerdict::NotEnoughData { .. }) {
        return;
    }
    let titles = ["best offset", "random I/O", "all I/O", "if spread"];
    page.figures("    granularity", &OFFSETS, &titles.map(str::to_owned));
    for step in &inference.steps {
        let cells = [
            step.offset_bytes.to_string(),
            of_heads(step.heads),
            of_ios(step.ios),
            of_heads(step.chance_heads),
        ];
        let name = format!("    {:>11}", step.granularity_bytes.to_string());
        page.figures(&name, &OFFSETS, &cells);
    }
}

/// The columns of the offsets at each granularity.
const OFFSETS: [FigureColumn; 4] = figure_columns(13, [0, 1, 2, 3]);

/// `8 KiB`, or `≤ 8 KiB` for a length that was rounded up.
fn length(bytes: u64, rounded: bool) -> String {
    if rounded {
        format!("≤ {}", Bytes(bytes))
    } else {
        Bytes(bytes).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::mean_offset;

    #[test]
    fn one_is_no_plural_and_parts_of_a_sector_are_bytes() {
        for (bytes, words) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (512, "512 bytes (1 sector)"),
            (1024, "1,024 bytes (2 sectors)"),
            (2592, "2,592 bytes"),
        ] {
            assert_eq!(mean_offset(bytes), words);
        }
    }
}
