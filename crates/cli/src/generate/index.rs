//! The list of the pages of `docs` in the README, by their titles.

use std::fs;
use std::io;
use std::path::Path;

use super::FilesToWrite;
use super::region::put;

/// Adds the list.
///
/// # Errors
/// When a page cannot be read, or has no title.
pub fn add(root: &Path, files: &mut FilesToWrite) -> io::Result<()> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(root.join("docs"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.ends_with(".md") {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let title = text.lines().next().and_then(|line| line.strip_prefix("# "));
        let title = title.ok_or_else(|| {
            io::Error::other(format!("docs/{name}: found no title `# …` in line 1"))
        })?;
        pages.push((name.to_string(), title.to_owned()));
    }
    pages.sort();
    let lines = pages
        .iter()
        .map(|(name, title)| format!("- [{title}](docs/{name})\n"));
    put(
        root,
        "README.md",
        "pages",
        &lines.collect::<String>(),
        files,
    )
}
