//! The module lists of integration tests: `mod NAME;` for each file and folder beside `main.rs` or `mod.rs`, where that
//! file has a place for the list. A new file of tests then needs no line elsewhere.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::FilesToWrite;
use super::region::Region;

/// Adds every list below `crates/*/tests/suite`.
///
/// # Errors
/// When a folder or file cannot be read.
pub fn add(root: &Path, files: &mut FilesToWrite) -> io::Result<()> {
    for library in entries(&root.join("crates"))? {
        let suite = library.join("tests/suite");
        if suite.is_dir() {
            add_folder(root, &suite, files)?;
        }
    }
    Ok(())
}

fn add_folder(root: &Path, folder: &Path, files: &mut FilesToWrite) -> io::Result<()> {
    let mut modules = Vec::new();
    let mut lists = Vec::new();
    for path in entries(folder)? {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        if path.is_dir() {
            add_folder(root, &path, files)?;
            if path.join("mod.rs").exists() {
                modules.push(stem.into_owned());
            }
        } else if is_source && (stem == "main" || stem == "mod") {
            lists.push(path);
        } else if is_source {
            modules.push(stem.into_owned());
        }
    }
    modules.sort();
    let inner: String = modules
        .iter()
        .map(|name| format!("mod {name};\n"))
        .collect();
    for path in lists {
        let text = fs::read_to_string(&path)?;
        if let Some(replaced) = Region::of_source("modules").replaced(&text, &inner) {
            let name = path.strip_prefix(root).unwrap_or(&path);
            files.insert(name.to_owned(), replaced);
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect()
}
