//! Each real file is taken for the format that lists it, and for no other.

use plumb_testkit::{real_trace, require};
use plumb_trace::ReadOptions;
use plumb_trace::format::{FORMATS, Format};
use plumb_trace::open::pieces;
use plumb_trace::reader::Sniff;

use crate::common::tool::error_of;

/// The formats that list a file of the folder of real traces.
fn listing(name: &str) -> Vec<&'static str> {
    let lists = |format: &&&Format| format.about.real.contains(&name);
    FORMATS
        .iter()
        .filter(lists)
        .map(|format| format.name)
        .collect()
}

/// Names and paths of all real files.
fn files() -> Vec<(String, std::path::PathBuf)> {
    let folders = std::fs::read_dir(real_trace("")).expect("lists").flatten();
    let mut files = Vec::new();
    for folder in folders.filter(|entry| entry.path().is_dir()) {
        for file in std::fs::read_dir(folder.path()).expect("lists").flatten() {
            let name = format!(
                "{}/{}",
                folder.file_name().display(),
                file.file_name().display()
            );
            files.push((name, file.path()));
        }
    }
    files
}

/// The sniffers one by one, of the first bytes.
#[test]
fn no_other_file_is_taken() {
    require!(RealTraces);
    let files = files();
    for (name, path) in &files {
        let bytes = std::fs::read(path).expect("reads");
        let prefix = &bytes[..bytes.len().min(4096)];
        let taken: Vec<&str> = FORMATS
            .iter()
            .filter(|format| (format.sniff)(prefix, bytes.len() < 4096) == Sniff::Yes)
            .map(|format| format.name)
            .collect();
        assert_eq!(taken, listing(name), "{name}");
    }
    assert!(files.len() > 60, "only {} files", files.len());
}

/// A file opened by its content.
#[test]
fn no_trace_is_taken_for_the_output_of_another_tool() {
    require!(RealTraces);
    for (name, path) in files() {
        let piece = pieces(&[path]).remove(0);
        let opened = plumb_trace::open::open(&piece, &ReadOptions::default());
        let format = opened.as_ref().ok().map(|reader| reader.info().format);
        let said = opened
            .as_ref()
            .err()
            .map(ToString::to_string)
            .unwrap_or_default();
        assert_eq!(format, listing(&name).first().copied(), "{name}");
        assert!(!said.contains("plumb-residue"), "{name}: {said}");
    }
}

/// A file that is listed is there.
#[test]
fn listed_files_are_there() {
    require!(RealTraces);
    let missing: Vec<&str> = FORMATS
        .iter()
        .flat_map(|format| format.about.real)
        .filter(|name| !real_trace(name).exists())
        .copied()
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn an_endless_line_is_no_trace() {
    insta::assert_snapshot!(error_of("x".repeat(2 << 20).as_bytes()));
}
