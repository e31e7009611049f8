//! Every reader of bytes from outside has a fuzz target. Formats of traces get theirs from the list of formats; this looks
//! for every other reader by its name and its arguments.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use plumb_testkit::temp_dir;

use crate::fuzz_seeds::{self, fuzz};

/// The names of readers.
const NAMES: [&str; 5] = ["parse", "parse_line", "read", "read_bytes", "decode"];
/// Their input.
const FOREIGN: [&str; 3] = ["&[u8]", "&str", "dyn Disk"];

/// Readers by the beginning of their path in `crates/`, and the targets that reach them.
const REACHED: &[(&str, &[&str])] = &[
    ("fleet/src/file.rs", &["fleet"]),
    ("fleet/src/inventory.rs", &["inventory"]),
    ("iostat/src/", &["iostat"]),
    ("label/src/", &["label_gpt", "label_mbr", "label_vtoc"]),
    ("load/src/fio/", &["fio_job"]),
    ("load/src/vdbench/", &["vdbench"]),
    ("packages/src/rpm.rs", &["rpm_header"]),
    ("profile/src/codec", &["profile"]),
    ("relocate/src/labels/saved.rs", &["saved_label"]),
    ("relocate/src/marker.rs", &["marker", "move_journal"]),
    // Words of a plan in a journal.
    ("relocate/src/preflight/identity.rs", &["move_journal"]),
    ("stack/src/catalogue.rs", &["known_table"]),
    // The dumps in a collection, once they are unpacked.
    ("stack/src/collection/", &["dump"]),
    ("stack/src/dm_table/", &["dump"]),
    ("stack/src/dump/", &["dump"]),
    ("trace/src/format/", &["sniff"]),
    ("trace/src/rrd.rs", &["rrd"]),
    ("trace/src/series/", &["iostat"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Public readers of a source, as they are declared.
fn readers(source: &str) -> Vec<String> {
    let declares = |line: &str| {
        let name = line
            .trim_start()
            .strip_prefix("pub fn ")?
            .split(['(', '<'])
            .next()?;
        NAMES.contains(&name).then_some(())
    };
    let lines: Vec<&str> = source.lines().collect();
    let begins = (0..lines.len()).filter(|&at| declares(lines[at]).is_some());
    let whole = begins.map(|at| {
        let end = (at..lines.len())
            .find(|&end| lines[end].contains('{'))
            .unwrap_or(at);
        lines[at..=end]
            .iter()
            .map(|line| line.trim())
            .collect::<Vec<_>>()
            .join(" ")
    });
    // Methods with `&self` read their own input.
    let parsers = whole.filter(|declared| !declared.contains("&self"));
    parsers
        .filter(|declared| FOREIGN.iter().any(|what| declared.contains(what)))
        .collect()
}

#[test]
fn every_reader_has_a_fuzz_target() {
    let crates = root().join("crates");
    let mut all = Vec::new();
    let libraries = fs::read_dir(&crates)
        .expect("the crates")
        .flatten()
        .map(|entry| entry.path());
    // The tables and configuration of the commands and the testkit's readers of its own output take nothing from outside.
    for library in libraries.filter(|path| !path.ends_with("cli") && !path.ends_with("testkit")) {
        sources(&library.join("src"), &mut all);
    }
    let (mut seen, mut missing) = (vec![false; REACHED.len()], Vec::new());
    for path in all {
        let name = path
            .strip_prefix(&crates)
            .expect("below the crates")
            .display()
            .to_string();
        for reader in readers(&fs::read_to_string(&path).expect("a source")) {
            match REACHED
                .iter()
                .position(|(place, _)| name.starts_with(place))
            {
                Some(at) => seen[at] = true,
                None => missing.push(format!("{name}: {reader}")),
            }
        }
    }
    assert!(
        missing.is_empty(),
        "add a fuzz target and name it here for:\n{}",
        missing.join("\n")
    );
    let idle: Vec<&str> = REACHED
        .iter()
        .zip(&seen)
        .filter(|(_, seen)| !**seen)
        .map(|((place, _), _)| *place)
        .collect();
    assert!(idle.is_empty(), "no reader is left in {idle:?}");
}

#[test]
fn every_target_is_built_and_has_a_seed() {
    let targets: BTreeSet<String> = fuzz::targets().into_iter().collect();
    let reached = REACHED.iter().flat_map(|(_, targets)| targets.iter());
    for target in reached {
        assert!(
            targets.contains(*target),
            "fuzz/src/lib.rs has no target {target}"
        );
    }
    let made = temp_dir("synthetic");
    let seeds = fuzz_seeds::all(made.path());
    let started: BTreeSet<String> = seeds.into_iter().map(|(target, _)| target).collect();
    // `scripts/fuzz` runs every target that has a seed.
    assert_eq!(started, targets, "targets with a seed, and all targets");
}
