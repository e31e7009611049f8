//! The fuzz targets on their seeds. The crate of the targets is a workspace of its own that no other build compiles: here
//! it is a module, so that it cannot fall behind the readers, and its promises hold for the seeds without a fuzzer.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use plumb_testkit::{seeds as synthetic, temp_dir};

#[path = "../../../../fuzz/src/lib.rs"]
pub mod fuzz;
#[path = "../../../label/examples/label_seeds.rs"]
#[expect(dead_code, reason = "its main")]
mod label_seeds;
#[path = "../../../relocate/examples/relocate_seeds.rs"]
#[expect(dead_code, reason = "its main")]
mod relocate_seeds;

/// Targets and their seeds, below a folder.
fn seeds(root: &Path) -> Vec<(String, PathBuf)> {
    let entries = |folder: &Path| {
        fs::read_dir(folder)
            .expect("a folder")
            .flatten()
            .map(|entry| entry.path())
    };
    let name = |path: &Path| {
        path.file_name()
            .and_then(|name| name.to_str())
            .expect("a name")
            .to_owned()
    };
    let targets = entries(root).map(|folder| (name(&folder), folder));
    targets
        .flat_map(|(target, folder)| entries(&folder).map(move |seed| (target.clone(), seed)))
        .collect()
}

/// Targets and all their seeds: those of the repository, and those of synthetic traces, which are written below a folder.
pub fn all(made: &Path) -> Vec<(String, PathBuf)> {
    synthetic::write(made).expect("synthetic traces");
    [seeds(&stored()), seeds(made)].concat()
}

fn stored() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds")
}

#[test]
fn every_seed_is_valid_input_of_its_target() {
    // The length of an input chooses the layer that is asked for; a few lines more ask for the lowest.
    let is_read = |target: &str, seed: &Path| {
        let bytes = fs::read(seed).expect("a seed");
        fuzz::run(target, &bytes) || fuzz::run(target, &[&bytes[..], b"\n\n\n"].concat())
    };
    let made = temp_dir("synthetic");
    let refused: BTreeSet<String> = all(made.path())
        .into_iter()
        .filter(|(target, seed)| !is_read(target, seed) && !seed.ends_with("extremes"))
        .map(|(target, seed)| format!("{target}: {}", seed.display()))
        .collect();
    let _ =
        fs::remove_dir_all(std::env::temp_dir().join(format!("plumb-fuzz-{}", std::process::id())));
    assert!(refused.is_empty(), "these lead nowhere: {refused:#?}");
}

#[test]
fn seeds_of_our_own_writers_are_those_of_today() {
    let made = temp_dir("seeds");
    label_seeds::write(made.path()).expect("labels");
    relocate_seeds::write(made.path());
    for (target, seed) in seeds(made.path()) {
        let name = seed.file_name().expect("a name");
        let kept = fs::read(stored().join(&target).join(name)).unwrap_or_default();
        assert!(
            kept == fs::read(&seed).expect("a seed"),
            "{target}: {name:?} is old: run fuzz/make-seeds"
        );
    }
}
