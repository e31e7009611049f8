//! `plumb record` of disks that make no requests of their I/O, beside others that do.

use std::fs::File;

use crate::common::recording::{Recording, dd, fio, number, read};
use crate::common::{Folder, plumb};
use plumb_testkit::loop_device::LoopDevice;
use plumb_testkit::require;
use plumb_testkit::zram::Zram;
use plumb_trace::{Layer, Op, flags};
use serde_json::Value;

const SIZE: u64 = 16 << 20;

/// Device, layer and I/O of each profile in an answer of `plumb analyze`.
fn profiles(answer: &Value) -> Vec<(String, String, u64)> {
    let all = answer["result"]["profiles"]
        .as_array()
        .expect("profiles")
        .iter();
    let word = |value: &Value| value.as_str().expect("a word").to_owned();
    all.map(|profile| {
        let ios = profile["ops"]
            .as_array()
            .expect("operations")
            .iter()
            .map(|op| number(&op["ios"]))
            .sum();
        (
            word(&profile["target"]["device"]),
            word(&profile["target"]["layer"]),
            ios,
        )
    })
    .collect()
}

/// The layers of a recording, in words. The names of the kernel's events behind them depend on the kernel.
fn layers(result: &Value) -> &str {
    let how = result["how"]
        .as_str()
        .and_then(|how| how.split_once(" by "));
    how.expect("layers and events").0
}

/// Nothing is named: both disks are in the file, each at its layer, and every command finds both there.
#[test]
fn all_disks_are_in_the_file() {
    require!(Bpf, Loop, Tool("dd"), Tool("mknod"));
    let Some(zram) = Zram::new(SIZE) else {
        plumb_testkit::skip!("this kernel has no zram");
    };
    let folder = Folder::new("record-layers");
    let image = folder.path("disk");
    File::create(&image)
        .and_then(|file| file.set_len(SIZE))
        .expect("room for a sparse file");
    let disk = LoopDevice::attach_hidden(&image, &[]);
    let file = folder.path("all.parquet");
    let name = file.display().to_string();
    let recording = Recording::begin(&file, &["-o", &name]);
    dd(zram.path(), Op::Write, 8192, 101, 4096);
    dd(disk.path(), Op::Read, 4096, 211, 17_408);
    dd(zram.path(), Op::Read, 65_536, 13, 1 << 20);
    let result = recording.end(0);
    insta::assert_snapshot!(layers(&result));
    let sent = |device: &str| {
        let of_it = result["devices"]
            .as_array()
            .expect("devices")
            .iter()
            .find(|one| one["device"] == device);
        of_it.map(|one| {
            (
                one["layer"].as_str().expect("a layer").to_owned(),
                number(&one["sent"]),
            )
        })
    };
    assert_eq!(sent(&zram.name()), Some(("bio".to_owned(), 114)));
    assert_eq!(sent(&disk.name()), Some(("request".to_owned(), 211)));

    let writes = (0..101).map(|io| (Layer::Bio, Op::Write, 4096 + io * 8192, 8192));
    let reads = (0..13).map(|io| (Layer::Bio, Op::Read, (1 << 20) + io * 65_536, 65_536));
    let on_zram: Vec<_> = writes.chain(reads).collect();
    let on_loop: Vec<_> = (0..211)
        .map(|io| (Layer::Request, Op::Read, 17_408 + io * 4096, 4096))
        .collect();
    let copy = folder.path("copy.parquet");
    plumb(["convert", &name, &copy.display().to_string()]).ends(0);
    for file in [&file, &copy] {
        let found = read(file);
        assert_eq!(found.rows_of("dd", &zram.name()), on_zram);
        assert_eq!(found.rows_of("dd", &disk.name()), on_loop);
        let answer = plumb([
            "analyze",
            &file.display().to_string(),
            "--json",
            "--fail-on",
            "none",
        ])
        .json();
        let profiles = profiles(&answer);
        assert!(
            profiles.contains(&(zram.name(), "bio".to_owned(), 114)),
            "{profiles:?}"
        );
        assert!(
            profiles.contains(&(disk.name(), "request".to_owned(), 211)),
            "{profiles:?}"
        );
    }
    let one = plumb([
        "analyze",
        &name,
        "--layer",
        "bio",
        "--json",
        "--fail-on",
        "none",
    ])
    .json();
    assert_eq!(profiles(&one), [(zram.name(), "bio".to_owned(), 114)]);
}

/// Bios without room at the disk come again: those that did not fail equal fio's count. If a task is preempted inside a
/// BPF program, the kernel skips that program for the I/O of another task: a few I/O have no time then.
#[test]
fn the_count_of_bios_is_that_of_fio() {
    require!(Bpf, Loop, Tool("fio"));
    let folder = Folder::new("record-bios");
    let image = folder.path("disk");
    File::create(&image)
        .and_then(|file| file.set_len(SIZE))
        .expect("room for a sparse file");
    let disk = LoopDevice::attach_hidden(&image, &[]);
    let file = folder.path("bios.parquet");
    let recording = Recording::begin(
        &file,
        &[
            "-o",
            &file.display().to_string(),
            "--layer",
            "bio",
            &disk.name(),
        ],
    );
    let sent = fio(disk.path(), "randrw", 20_011);
    let result = recording.end(0);
    assert_eq!(number(&result["lost"]), 0);
    let read = read(&file);
    let done: Vec<_> = read
        .events_of("fio")
        .into_iter()
        .filter(|event| event.flags & flags::FAILED == 0)
        .collect();
    assert_eq!(done.len() as u64, sent);
    assert!(done.iter().all(|event| event.layer == Layer::Bio));
    let timed = done.iter().filter(|event| event.device_ns.is_some());
    let timed = timed.count() as u64;
    assert!(timed * 100 >= sent * 99, "{timed} of {sent} I/O are timed");
}

#[test]
fn a_layer_can_be_asked_for() {
    require!(Bpf, Loop, Tool("dd"), Tool("mknod"));
    let folder = Folder::new("record-layer");
    let image = folder.path("disk");
    File::create(&image)
        .and_then(|file| file.set_len(SIZE))
        .expect("room for a sparse file");
    let disk = LoopDevice::attach_hidden(&image, &[]);
    let file = folder.path("bios.parquet");
    let recording = Recording::begin(
        &file,
        &[
            "-o",
            &file.display().to_string(),
            "--layer",
            "bio",
            &disk.name(),
        ],
    );
    dd(disk.path(), Op::Read, 4096, 211, 17_408);
    insta::assert_snapshot!(layers(&recording.end(0)));
    let expected: Vec<_> = (0..211)
        .map(|io| (Layer::Bio, Op::Read, 17_408 + io * 4096, 4096))
        .collect();
    assert_eq!(read(&file).rows_of("dd", &disk.name()), expected);

    let Some(zram) = Zram::new(SIZE) else {
        plumb_testkit::skip!("this kernel has no zram");
    };
    let free = folder.path("free.parquet");
    let refused = plumb([
        "record",
        "-o",
        &free.display().to_string(),
        "--layer",
        "request",
        &zram.name(),
    ]);
    let said = refused.ends(3).complaint();
    insta::assert_snapshot!(said.replace(&zram.name(), "ZRAM"));
    assert!(!free.exists());
}
