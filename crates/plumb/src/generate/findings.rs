//! The index of findings in `docs/findings/README.md`, and the names in the schema of `plumb analyze`.

use std::fs;
use std::io;
use std::path::Path;

use plumb_diagnose::layout::{self, problems};
use plumb_diagnose::{MISALIGNED_TARGET, RULES};
use plumb_stack::problem_ids;

use super::Files;
use super::region::{put, table};

/// A finding, the defect, and the input that it needs.
type Row = [&'static str; 3];

/// Adds the index and the schema.
///
/// # Errors
/// When a file cannot be read, or has no place for its part.
pub fn add(root: &Path, files: &mut Files) -> io::Result<()> {
    let page = "docs/findings/README.md";
    put(root, page, "findings from I/O", &index(of_io()), files)?;
    put(
        root,
        page,
        "findings from layouts",
        &index(of_layouts()),
        files,
    )?;
    let schema = Path::new("docs/schema/analyze.json");
    let text = fs::read_to_string(root.join(schema))?;
    let named = with_names(&text).ok_or_else(|| {
        io::Error::other(format!(
            "{}: found no list of findings before `{SCHEMA_MARK}`",
            schema.display()
        ))
    })?;
    files.insert(schema.to_owned(), named);
    Ok(())
}

fn of_io() -> Vec<Row> {
    let mut rows: Vec<Row> = RULES
        .iter()
        .map(|rule| [rule.id, rule.title, rule.needs])
        .collect();
    // A probe measures, so that no rule finds it.
    rows.push([
        MISALIGNED_TARGET,
        "blocks begin at an offset, measured",
        "`plumb probe`",
    ]);
    rows
}

fn of_layouts() -> Vec<Row> {
    let is_problem = |id| id == problems::OTHERS.id || problem_ids::is_known(id);
    let rules = layout::RULES
        .iter()
        .filter(|rule| !is_problem(rule.id))
        .map(|rule| [rule.id, rule.title, rule.needs]);
    let problems = problem_ids::ALL
        .iter()
        .map(|problem| [problem.id, problem.title, problem.needs]);
    rules.chain(problems).collect()
}

fn index(rows: Vec<Row>) -> String {
    let rows = rows.into_iter().map(|[id, title, needs]| {
        [
            format!("[{id}]({id}.md)"),
            title.to_owned(),
            needs.to_owned(),
        ]
    });
    table(["finding", "defect", "needs"], rows)
}

/// The line of the schema after the list of names.
const SCHEMA_MARK: &str = "\"description\": \"see docs/findings\"";

/// The schema with the names of the rules on I/O. JSON has no comments, so the place is that before a description.
fn with_names(schema: &str) -> Option<String> {
    const BEGIN: &str = "\"enum\": [\n";
    let mark = schema.find(SCHEMA_MARK)?;
    let begin = schema[..mark].rfind(BEGIN)? + BEGIN.len();
    let end = begin + schema[begin..mark].find(']')?;
    let indent = " ".repeat(12);
    let names: Vec<String> = RULES
        .iter()
        .map(|rule| format!("{indent}\"{}\"", rule.id))
        .collect();
    let closing = " ".repeat(10);
    Some(format!(
        "{}{}\n{closing}{}",
        &schema[..begin],
        names.join(",\n"),
        &schema[end..]
    ))
}
