//! Exported windows as inputs of a fleet: the answers are those of the history, and each I/O counts once.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use plumb_testkit::Rng;
use serde_json::Value;

use crate::common::{Folder, Ran, passages, plumb};

/// Seconds between the epochs of Windows and Unix.
const FILETIME_ZERO: u64 = 11_644_473_600;

/// The begin of a day that is over for hours, in seconds since 1970.
pub fn day_before(days: u64) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    ((now.expect("a clock").as_secs() - 3 * 3_600) / 86_400 - days) * 86_400
}

fn history(folder: &Folder, args: &[&str]) -> Ran {
    let store = folder.path("store").display().to_string();
    let args: Vec<&str> = [&["history"], args, &["--state-dir", &store]].concat();
    plumb(args)
}

/// Adds reads of 8 KiB to the history, one each second from a time on: of each ten, three start a sector past a page.
pub fn import(folder: &Folder, from: u64, count: u64) {
    let mut rng = Rng::new(from);
    let line = |at: u64| {
        let time = (FILETIME_ZERO + from + at) * 10_000_000;
        let past = if at % 10 < 3 { 512 } else { 0 };
        let start = rng.below(1 << 20) * 8192 + past;
        format!("{time},disk,0,Read,{start},8192,{}\n", 1000 + at % 7)
    };
    let lines: String = (0..count).map(line).collect();
    let trace = folder.file(&format!("{from}.csv"), lines);
    let saved = folder.path(&from.to_string());
    let args = [
        "analyze".as_ref(),
        trace.as_os_str(),
        "--save".as_ref(),
        saved.as_os_str(),
    ];
    // Misaligned I/O that are no slower are no failure.
    plumb(args).ends(0);
    history(folder, &["import", &saved.display().to_string()]).ends(0);
}

pub fn export(folder: &Folder, to: &Path, flags: &[&str]) -> Ran {
    let to = to.display().to_string();
    history(folder, &[&["export", "--fleet", &to], flags].concat())
}

/// The files below a folder with their content.
pub fn files(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).expect("a folder").flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(files(&path)),
            path => found.push((path.clone(), fs::read(&path).expect("a file"))),
        }
    }
    found.sort();
    found
}

/// The first device of a ranking by wasted I/O.
fn ranked(source: &Path) -> Value {
    let source = source.display().to_string();
    let ran = plumb(["fleet", "report", &source, "--json", "--grid", "4k"]);
    let document = ran.ends(0).json();
    let devices = &document["result"]["by_waste"]["devices"];
    assert_eq!(devices.as_array().map(Vec::len), Some(1), "{document}");
    devices[0].clone()
}

/// A history of two hours of one day, of an hour of the next one, and of five minutes of a later one.
fn store() -> Folder {
    let folder = Folder::new("fleet-windows");
    let day = day_before(4);
    import(&folder, day + 36_000, 1_000);
    import(&folder, day + 43_200, 1_500);
    import(&folder, day + 86_400 + 7_200, 700);
    // A profile within five minutes is in the windows of all lengths, and the history keeps the short ones for two days.
    import(&folder, day_before(1) + 50_400, 200);
    folder
}

#[test]
fn the_answer_is_that_of_the_history() {
    let folder = store();
    let fleet = folder.path("fleet");
    export(&folder, &fleet, &[])
        .ends(0)
        .complains("wrote 6 objects");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("procfs");
    let names = files(&fleet);
    assert!(names.iter().all(|(path, _)| {
        let path = path.display().to_string();
        path.contains(&format!("/host={}/date=20", host.trim())) && path.contains("/tier=1")
    }));
    // The profiles of the history, dumped into one file, are the oracle.
    let dumped = folder.path("dumped/x/all.plumb");
    fs::create_dir_all(dumped.parent().expect("a folder")).expect("room");
    history(
        &folder,
        &["dump", "disk_0", "-o", &dumped.display().to_string()],
    )
    .ends(0);
    let (local, exported) = (ranked(&folder.path("dumped")), ranked(&fleet));
    assert_eq!(local["ios"], 3_400);
    for name in ["ios", "grid", "device", "layer"] {
        assert_eq!(local[name], exported[name], "{name}");
    }
    // The recordings have no pauses in the fleet: from the first to the last I/O of each day.
    let seconds = f64::from(43_200 - 36_000 + 1_499 + 699 + 199);
    let rate = exported["per_second"].as_f64().expect("a rate");
    assert!((rate * seconds - 1_020.0).abs() < 1e-6, "{rate}");
}

#[test]
fn windows_that_are_exported_again_count_once() {
    let folder = store();
    let fleet = folder.path("fleet");
    export(&folder, &fleet, &[]).ends(0);
    let (first, answer) = (files(&fleet), ranked(&fleet));
    let times = |files: &[(PathBuf, Vec<u8>)]| -> Vec<SystemTime> {
        let time = |(path, _): &(PathBuf, _)| fs::metadata(path)?.modified();
        files
            .iter()
            .map(|file| time(file).expect("a time"))
            .collect()
    };
    let written = times(&first);
    let mut messages = vec![
        export(&folder, &fleet, &["--last", "30d"])
            .ends(0)
            .complaint(),
    ];
    assert_eq!(files(&fleet), first);
    assert_eq!(times(&first), written);
    // Finer windows of the same time, and the same object under another name.
    export(&folder, &fleet, &["--tier", "1d", "--tier", "5m"]).ends(0);
    for (path, bytes) in &first {
        fs::write(path.with_file_name("copy.parquet"), bytes).expect("room");
    }
    assert!(files(&fleet).len() > 2 * first.len());
    assert_eq!(ranked(&fleet), answer);
    // An import changes a window that is over: its new version counts, and the old one does not.
    import(&folder, day_before(4) + 36_000, 1_000);
    messages.push(export(&folder, &fleet, &[]).ends(0).complaint());
    insta::assert_snapshot!(messages.join("\n\n"));
    assert_eq!(ranked(&fleet)["ios"], 4_400);
    for (path, bytes) in &first {
        fs::write(path, bytes).expect("room");
    }
    assert_eq!(ranked(&fleet)["ios"], 4_400);
}

#[test]
fn shards_of_windows_are_one_pass() {
    let folder = store();
    let fleet = folder.path("fleet");
    export(&folder, &fleet, &[]).ends(0);
    let profile = |shard: &str, name: &str| {
        let (source, output) = (fleet.display().to_string(), folder.path(name));
        let output = output.display().to_string();
        plumb(["fleet", "profile", "--shard", shard, &source, "-o", &output]).ends(0);
    };
    profile("0/1", "whole");
    fs::create_dir_all(folder.path("shards")).expect("room");
    for shard in (0..7).rev() {
        profile(&format!("{shard}/7"), &format!("shards/{shard}"));
    }
    // A folder stands for the fleet files in it; others, and unfinished ones, are passed over.
    folder.file("shards/log.txt", "a log");
    let shard = fs::read(folder.path("shards/0")).expect("a file");
    fs::write(folder.path("shards/.1"), &shard[..shard.len() / 2]).expect("room");
    let merge = |from: &str| {
        let paths = [folder.path(from), folder.path("merged")];
        let [from, to] = paths.map(|path| path.display().to_string());
        plumb(["fleet", "merge", &from, "-o", &to])
    };
    merge("shards").ends(0);
    let read = |name: &str| fs::read(folder.path(name)).expect("a file");
    assert!(read("merged") == read("whole"));
    fs::create_dir_all(folder.path("empty")).expect("room");
    insta::assert_snapshot!(merge("empty").ends(5).complaint());
}

#[test]
fn damaged_objects_are_named() {
    let folder = store();
    let fleet = folder.path("fleet");
    export(&folder, &fleet, &["--tier", "1d"]).ends(0);
    let all = files(&fleet);
    let (path, bytes) = &all[0];
    let name = path
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let source = fleet.display().to_string();
    let report = |flags: &[&str]| plumb([&["fleet", "report", &*source], flags].concat());
    fs::write(path, &bytes[..bytes.len() / 2]).expect("room");
    report(&[]).ends(5).complains(&name);
    let skipped = report(&["--skip-bad"]);
    let mut messages = vec![passages(&skipped.ends(3).err, &["1 input"])];
    // A table without profiles.
    let totals = folder.path("totals.parquet").display().to_string();
    let args = ["export", "--last", "30d", "--as", "parquet", "-o", &totals];
    history(&folder, &args).ends(0);
    fs::copy(&totals, path).expect("room");
    let other = report(&[]).ends(5).complaint();
    messages.push(
        other
            .split_once(" because: ")
            .expect("a reason")
            .1
            .to_owned(),
    );
    history(&folder, &["export", "--fleet", &source, "disk_0"]).ends(2);
    history(&folder, &["export", "--tier", "1d", "--last", "1d"]).ends(2);
    messages.push(
        history(&folder, &["export", "--fleet", &source, "--tier", "2d"])
            .ends(2)
            .complaint(),
    );
    insta::assert_snapshot!(messages.join("\n\n"));
}
