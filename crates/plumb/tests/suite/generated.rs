//! The manual pages and completions in `docs/` are those that the flags give.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDERS: [&str; 2] = ["man", "completions"];

fn files_of(place: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    for folder in FOLDERS {
        let Ok(entries) = std::fs::read_dir(place.join(folder)) else {
            continue;
        };
        for entry in entries {
            let path = entry.expect("an entry").path();
            let name = Path::new(folder).join(path.file_name().expect("a name"));
            files.insert(
                name,
                std::fs::read_to_string(&path).expect("a readable file"),
            );
        }
    }
    files
}

#[test]
fn pages_and_completions_are_those_of_the_flags() {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("generated");
    std::fs::remove_dir_all(&place).ok();
    let done = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .arg("generate")
        .arg(&place)
        .status();
    assert!(done.expect("plumb runs").success());
    let made = files_of(&place);
    let kept = files_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs"));
    let advice = "make them anew: cargo run -p plumb -- generate docs";
    assert!(
        made.len() > FOLDERS.len(),
        "too few files are made: {:?}",
        made.keys()
    );
    for (name, text) in &made {
        let Some(kept) = kept.get(name) else {
            panic!("docs/{} is missing; {advice}", name.display())
        };
        assert!(
            kept == text,
            "docs/{} is out of date; {advice}",
            name.display()
        );
    }
    let stale: Vec<_> = kept
        .keys()
        .filter(|name| !made.contains_key(*name))
        .collect();
    assert!(
        stale.is_empty(),
        "docs holds {stale:?}, which nothing makes any more: remove them"
    );
}
