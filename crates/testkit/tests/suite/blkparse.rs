//! The blktrace writer, held against blkparse itself: the binary files, printed by blkparse, give the very
//! lines that the text writer made.

#![forbid(unsafe_code)]

use plumb_testkit::convert::convert_blktrace;
use plumb_testkit::wait::RunLimited;
use plumb_testkit::workload::Mixed;
use plumb_testkit::write::blkparse_text::BlkparseText;
use plumb_testkit::write::blkrecord::{Endian, Version};
use plumb_testkit::write::blktrace::{Blktrace, create_files, file_name};
use plumb_testkit::write::lifecycle::Shapes;
use plumb_testkit::{SynthEvent, temp_dir, write_all};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

/// Lines in an order of their own: blkparse and the writer may differ within one instant.
fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text
        .lines()
        .filter(|l| !l.starts_with("Input file"))
        .map(str::to_owned)
        .collect();
    lines.sort_unstable();
    lines
}

/// The output of blkparse for the files of `base`, sorted.
fn blkparse(base: &Path) -> Vec<String> {
    let out = Command::new("blkparse")
        .arg("-q")
        .arg("-i")
        .arg(base)
        .limited_output();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    sorted(&String::from_utf8_lossy(&out.stdout))
}

fn check(version: Version, endian: Endian, shapes: &Shapes, events: &[SynthEvent]) {
    let dir = temp_dir("blkparse");
    let base = dir.path().join("sda");
    let files = create_files(&base, shapes.cpus).expect("make the files");
    let mut binary = Blktrace::new(files, version, endian, shapes.clone());
    write_all(&mut binary, events.iter().copied()).expect("write the files");
    let mut text = Vec::new();
    write_all(
        &mut BlkparseText::new(&mut text, shapes.clone(), false),
        events.iter().copied(),
    )
    .expect("memory");
    let printed = blkparse(&base);
    let made = sorted(&String::from_utf8_lossy(&text));
    for (index, (theirs, ours)) in printed.iter().zip(&made).enumerate() {
        assert_eq!(
            theirs, ours,
            "line {index} of the sorted {version:?} {endian:?}"
        );
    }
    assert_eq!(printed.len(), made.len());
}

#[test]
fn blkparse_prints_the_written_events() {
    plumb_testkit::require!(Tool("blkparse"));
    let events: Vec<_> = Mixed {
        events: 5_003,
        devices: 3,
        ..Mixed::default()
    }
    .iter()
    .collect();
    for shapes in [
        Shapes {
            cpus: 4,
            ..Shapes::default()
        },
        Shapes::all(4),
    ] {
        for endian in [Endian::Little, Endian::Big] {
            check(Version::V7, endian, &shapes, &events);
        }
    }
}

/// CPU 10 of a real host, with empty files for the nine before it.
#[test]
fn a_converted_real_trace_prints_the_same() {
    plumb_testkit::require!(Tool("blkparse"), RealTraces);
    let folder = plumb_testkit::real_traces().expect("just required");
    let real = fs::read(folder.join("blktrace/sdb.blktrace.10")).expect("read a real trace");
    let dir = temp_dir("blkparse");
    let print = |name: &str, endian: Endian| {
        let base = dir.path().join(name);
        let mut files = create_files(&base, 11).expect("make the files");
        let last: &mut File = &mut files[10];
        convert_blktrace(&real[..], last, Version::V7, endian).expect("whole file");
        assert!(file_name(&base, 10).exists());
        blkparse(&base)
    };
    let (little, big) = (print("little", Endian::Little), print("big", Endian::Big));
    assert!(little.len() > 17_000, "{}", little.len());
    for (ours, theirs) in big.iter().zip(&little) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(big.len(), little.len());
}
