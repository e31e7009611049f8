//! The index of findings in `docs/findings/README.md`, and the names in the schema of findings.

use std::fs;
use std::io;
use std::path::Path;

use plumb_model::{Category, RULES, Rule};

use super::FilesToWrite;
use super::region::{put, table};

/// Adds the index and the schema.
///
/// # Errors
/// When a file cannot be read, or has no place for its part.
pub fn add(root: &Path, files: &mut FilesToWrite) -> io::Result<()> {
    let page = "docs/findings/README.md";
    put(
        root,
        page,
        "findings from I/O",
        &index(|rule| rule.category == Category::Io),
        files,
    )?;
    put(
        root,
        page,
        "findings from layouts",
        &index(|rule| rule.category != Category::Io),
        files,
    )?;
    let schema = Path::new("docs/schema/finding.json");
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

fn index(is_listed: fn(&Rule) -> bool) -> String {
    let rules = RULES.iter().filter(|rule| is_listed(rule));
    let rows = rules.map(|rule| {
        [
            format!("[{0}]({0}.md)", rule.name),
            rule.title.to_owned(),
            rule.needs.to_owned(),
        ]
    });
    table(["finding", "defect", "needs"], rows)
}

/// The line of the schema after the list of names.
const SCHEMA_MARK: &str = "\"description\": \"see docs/findings\"";

/// The schema with the names of all rules. JSON has no comments, so the place is that before a description.
fn with_names(schema: &str) -> Option<String> {
    const BEGIN: &str = "\"enum\": [\n";
    let mark = schema.find(SCHEMA_MARK)?;
    let begin = schema[..mark].rfind(BEGIN)? + BEGIN.len();
    let end = begin + schema[begin..mark].find(']')?;
    let indent = " ".repeat(8);
    let names: Vec<String> = RULES
        .iter()
        .map(|rule| format!("{indent}\"{}\"", rule.name))
        .collect();
    let closing = " ".repeat(6);
    Some(format!(
        "{}{}\n{closing}{}",
        &schema[..begin],
        names.join(",\n"),
        &schema[end..]
    ))
}
