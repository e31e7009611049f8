//! No program begins a move, or goes on with one, without the preflight: the two functions that do are for tests of those who
//! read journals.

use std::fs;
use std::path::{Path, PathBuf};

const UNCHECKED: [&str; 2] = ["write_unchecked", "recover_unchecked"];

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_program_passes_the_preflight_by() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = own.parent().expect("the crates");
    let (mut looked_at, mut defined) = (Vec::new(), 0);
    for entry in fs::read_dir(crates).expect("the crates") {
        let source = entry.expect("a crate").path().join("src");
        if source.is_dir() {
            sources(&source, &mut looked_at);
        }
    }
    for path in looked_at {
        let text = fs::read_to_string(&path).expect("a source");
        let is_named = UNCHECKED
            .iter()
            .any(|name| text.contains(&format!("{name}(")))
            || UNCHECKED
                .iter()
                .any(|name| text.contains(&format!("{name}<")));
        if path.starts_with(own) {
            defined += usize::from(is_named);
        } else {
            assert!(!is_named, "{}", path.display());
        }
    }
    assert_eq!(defined, UNCHECKED.len(), "they are called otherwise now");
}
