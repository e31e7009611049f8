//! Plans as text and JSON. Every number was worked out before; here they get their units and their places.

use std::collections::BTreeMap;

use plumb_geometry::{Bytes, group_digits, plural};
use plumb_model::result::plan::PlanInput;
use plumb_plan::plan::{PlanWarning, Unit};
use plumb_plan::{Figure, Nodes, Plan, Remedy, Step, Table, Value};
use serde::Serialize;

use crate::check::listed;
use crate::format::{digits, percent};
use crate::run::Run;
use crate::text::{FigureColumn, Page, Paper, WIDTH, step_lines};

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    run: &'a Run,
    inputs: &'a [PlanInput],
    findings: [(); 0],
    result: BTreeMap<&'static str, &'a [Plan]>,
}

/// The document of `plumb plan`.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn json(run: &Run, inputs: &[PlanInput], plans: &[Plan]) -> Result<String, serde_json::Error> {
    let document = Document {
        schema: "plumb.plan/2",
        run,
        inputs,
        findings: [],
        result: BTreeMap::from([("plans", plans)]),
    };
    plumb_quoting::json::pretty(&document)
}

/// Plans as text; only commands may be longer than the paper is wide, since they are copied.
#[must_use]
pub fn text(inputs: &[PlanInput], plans: &[Plan], paper: impl Into<Paper>) -> String {
    let mut page = Page::new(paper);
    for plan in plans {
        plan_lines(&mut page, plan);
    }
    if !inputs.is_empty() {
        page.heading("Source");
    }
    for input in inputs {
        let verified = if input.verified {
            ""
        } else {
            ", reader unverified on real files"
        };
        let lost = match input.passed_over {
            0 => String::new(),
            lines => format!(", {} not understood", group_digits(lines)),
        };
        let words = format!(
            "{}: {}{verified}; {}{lost}",
            input.path,
            input.format,
            plural(input.understood, "line")
        );
        page.wrapped("  ", "    ", &words);
    }
    page.text
}

/// Column in which numbers end.
const NUMBERS: usize = 20;

fn plan_lines(page: &mut Page, plan: &Plan) {
    page.gap();
    page.wrapped("", "  ", format!("Plan: {}", plan.title));
    for warning in &plan.warnings {
        page.wrapped("WARNING  ", "  ", warning_words(warning));
    }
    if !plan.target.is_empty() {
        page.heading("Target");
    }
    for figure in &plan.target {
        figure_line(page, figure);
    }
    for table in &plan.tables {
        table_lines(page, table);
    }
    if let Some(nodes) = &plan.nodes {
        node_lines(page, "Before: the device nodes now", nodes, &nodes.before);
    }
    if let Some(why) = &plan.refusal {
        page.heading("No way");
        page.wrapped("  ", "  ", why);
    }
    for (at, remedy) in plan.remedies.iter().enumerate() {
        remedy_lines(page, at + 1, plan.remedies.len(), remedy);
    }
    if let Some(nodes) = &plan.nodes {
        node_lines(
            page,
            "After: the device nodes of before",
            nodes,
            &nodes.after,
        );
    }
    if !plan.notes.is_empty() {
        page.heading("Notes");
    }
    for note in &plan.notes {
        page.wrapped("  - ", "    ", note);
    }
}

/// The state of a device, and the step that it demands.
fn warning_words(warning: &PlanWarning) -> String {
    match warning {
        PlanWarning::NotFound { device } => format!(
            "{device}: not found on this host. The commands below are for a host that has it."
        ),
        PlanWarning::Mounted { device, at } => format!(
            "{device}: mounted at {}. Unmount it before you run a command.",
            listed(at.iter().map(String::as_str).collect())
        ),
        PlanWarning::HasData { device, holds } => format!(
            "{device}: has data: {}. A command that recreates a partition or a label destroys them.",
            listed(holds.iter().map(String::as_str).collect())
        ),
        PlanWarning::NotRead { device, why } => {
            format!("{device}: contents not read ({why}), so it may hold data.")
        }
    }
}

fn figure_line(page: &mut Page, figure: &Figure) {
    match &figure.value {
        Value::Words(words) => page.wrapped("  ", "    ", format!("{}: {words}", figure.words)),
        value => page.numbered(NUMBERS, &shown(value, figure.unit), &figure.words),
    }
}

fn remedy_lines(page: &mut Page, number: usize, of: usize, remedy: &Remedy) {
    page.heading(&format!(
        "Way {number} of {of}, {}: {}",
        remedy.harm.text(),
        remedy.title
    ));
    page.wrapped("  gives: ", "    ", &remedy.effect);
    for constraint in &remedy.constraints {
        page.wrapped("  - ", "    ", constraint);
    }
    for step in &remedy.steps {
        step_lines(page, &step.command, (step.effect, step.risk), &step.undo);
    }
}

fn node_lines(page: &mut Page, heading: &str, nodes: &Nodes, steps: &[Step]) {
    page.heading(heading);
    page.wrapped("  ", "    ", nodes.names.join(", "));
    for step in steps {
        step_lines(page, &step.command, (step.effect, step.risk), &step.undo);
    }
}

fn table_lines(page: &mut Page, table: &Table) {
    page.heading(&table.title);
    let cells: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| {
            row.iter()
                .zip(&table.columns)
                .map(|(value, column)| shown(value, column.unit))
                .collect()
        })
        .collect();
    let widths: Vec<usize> = table
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let longest = cells.iter().map(|row| columns(&row[at])).max().unwrap_or(0);
            longest.max(columns(column.words))
        })
        .collect();
    debug_assert!(
        widths.iter().map(|width| width + 2).sum::<usize>() + 2 <= WIDTH,
        "{} is too wide",
        table.title
    );
    // The first columns name the row, and stay on narrow paper.
    let ranked = widths.iter().enumerate().map(|(at, width)| FigureColumn {
        width: width + if at == 0 { 0 } else { 2 },
        rank: u8::try_from(at).unwrap_or(u8::MAX),
    });
    let places: Vec<FigureColumn> = ranked.collect();
    let head: Vec<String> = table
        .columns
        .iter()
        .map(|column| column.words.to_owned())
        .collect();
    page.row("  ", &places, &head);
    for (at, row) in cells.iter().enumerate() {
        let mark = if table.chosen == Some(at) { "> " } else { "  " };
        page.row(mark, &places, row);
    }
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

/// A value with its unit; `-` for an absent value.
fn shown(value: &Value, unit: Unit) -> String {
    match (value, unit) {
        (Value::None, _) => "-".to_owned(),
        (Value::Words(words), _) => words.clone(),
        (Value::Count(count), Unit::Bytes) => Bytes(*count).to_string(),
        (Value::Count(count), Unit::Sectors) => format!("{} s", group_digits(*count)),
        (Value::Count(count), _) => group_digits(*count),
        (Value::Share(share), _) => {
            let value = share.numerator as f64 / share.denominator.max(1) as f64;
            if share.numerator == 0 || share.numerator == share.denominator {
                return percent(value);
            }
            format!("{share} ({})", percent(value))
        }
        (Value::Number(number), Unit::Share) => percent(*number),
        (Value::Number(number), Unit::PerSecond) => format!("{}/s", digits(*number)),
        (Value::Number(number), Unit::Ms) => format!("{} ms", digits(*number)),
        (Value::Number(number), _) => format!("{number:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use plumb_geometry::Share;
    use plumb_quoting::Command;

    use super::*;
    use crate::text::Color;

    #[test]
    fn values_carry_their_units() {
        let check = |value: Value, unit, words: &str| assert_eq!(shown(&value, unit), words);
        check(24_576_u64.into(), Unit::Bytes, "24 KiB");
        check(2_098_176_u64.into(), Unit::Sectors, "2,098,176 s");
        check(4_u64.into(), Unit::Count, "4");
        check(
            Share {
                numerator: 15,
                denominator: 64,
            }
            .into(),
            Unit::Share,
            "15/64 (23.4 %)",
        );
        check(
            Share {
                numerator: 0,
                denominator: 1,
            }
            .into(),
            Unit::Share,
            "0 %",
        );
        check(0.828_125.into(), Unit::Share, "82.8 %");
        check(72.727.into(), Unit::Ms, "72.7 ms");
        check(320.0.into(), Unit::PerSecond, "320/s");
        check(16.0.into(), Unit::Ratio, "16.00");
        check(Value::None, Unit::Ms, "-");
    }

    #[test]
    fn commands_are_never_wrapped() {
        let paths = ["/dev/sdb"; 30];
        let command = Command::new("sgdisk -p").paths(paths);
        let mut plan = Plan::new("partition", "a long command");
        let way = Remedy::new(plumb_plan::Harm::Recreate, "with sgdisk", "nothing");
        plan.add([way.step(Step::look(command))]);
        let command = format!("sgdisk -p {}", paths.join(" "));
        assert!(text(&[], &[plan], Color::Never).contains(&format!("\n    {command}\n")));
    }
}
