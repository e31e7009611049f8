//! `docs/dumps.md` names every tool whose output can be read, and no other.

use std::path::Path;

use plumb_stack::dump::{self, Format};

/// The first cells of the tables.
fn rows() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dumps.md");
    let text = std::fs::read_to_string(page).expect("the page");
    let cells = text.lines().filter_map(|line| {
        let (cell, _) = line.strip_prefix("| ")?.split_once(" | ")?;
        (cell != "dump").then(|| cell.to_owned())
    });
    cells.collect()
}

/// The words of a cell or a name: `mdadm --detail`, `/etc/system`.
fn words(text: &str) -> Vec<String> {
    let is_inside = |sign: char| sign.is_ascii_alphanumeric() || "-./_".contains(sign);
    text.to_lowercase()
        .split(|sign| !is_inside(sign))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Whether a cell names the tool of a format, and says *unverified* at its end exactly if the format is.
fn names(row: &str, format: &Format) -> bool {
    let in_row = words(row);
    let is_named = words(format.tool).iter().all(|word| in_row.contains(word));
    is_named && row.ends_with("(*unverified*)") != format.is_verified
}

#[test]
fn each_tool_has_a_row() {
    let rows = rows();
    for format in dump::formats() {
        assert!(
            rows.iter().any(|row| names(row, format)),
            "docs/dumps.md: found no row of `{}` with is_verified: {}",
            format.tool,
            format.is_verified
        );
    }
}

#[test]
fn each_row_has_a_tool() {
    let rows = rows();
    assert!(rows.len() > 20, "only {} rows", rows.len());
    for row in rows {
        assert!(
            dump::formats().any(|format| names(&row, format)),
            "docs/dumps.md: no reader has the tool of the row {row}"
        );
    }
}
