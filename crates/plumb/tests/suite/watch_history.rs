//! `plumb watch --from history:...`: the windows of a history, one after the other. The counts are those that the test has stored.

use std::path::Path;

use plumb_history::{Settings, Writer};
use plumb_profile::Profile;
use plumb_testkit::require;
use plumb_trace::Op;
use serde_json::{Value, json};

use crate::common::schema::Schema;
use crate::common::store::{BEGIN, IDENTITY, WINDOW, add_ios, empty, store};
use crate::common::terminal::Terminal;
use crate::common::{Folder, Ran, plumb};

/// Reads of 4 KiB that start a sector past a page.
fn reads(ios: u64) -> Profile {
    let mut profile = empty("sda");
    add_ios(&mut profile, Op::Read, ios, (512, 4096), 100_000);
    profile
}

/// A history with a number of reads in some windows of 5 minutes.
fn make(folder: &Path, windows: &[(i64, u64)]) {
    std::fs::create_dir_all(folder).expect("room");
    let mut writer = Writer::open(folder, Settings::default()).expect("a store");
    for (window, ios) in windows {
        store(&mut writer, IDENTITY, BEGIN + window * WINDOW, &reads(*ios));
    }
}

fn watch(store: &Path, span: &str, flags: &[&str]) -> Ran {
    let span = format!("history:{span}");
    let store = store.display().to_string();
    let args = ["watch", "--from", &span, "--state-dir", &store];
    plumb(args.iter().chain(flags))
}

/// The lines of `--json`: end, length in seconds and I/O of each interval; and the last line.
fn intervals(ran: &Ran) -> (Vec<(String, f64, u64)>, Value) {
    let schema = Schema::read("watch");
    let lines: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let row = |line: &Value| {
        assert_eq!(schema.faults(line), [""; 0]);
        let result = &line["result"];
        let profiles = result["profiles"].as_array().expect("profiles");
        let until = result["until"].as_str().expect("a time").to_owned();
        let ios = profiles.iter().filter_map(|one| one["ios"].as_u64()).sum();
        (until, result["seconds"].as_f64().expect("a length"), ios)
    };
    let rows = lines.iter().map(row).collect();
    (rows, lines.last().expect("a line").clone())
}

fn row(time: &str, seconds: u32, ios: u64) -> (String, f64, u64) {
    (format!("2026-11-01T{time}:00Z"), f64::from(seconds), ios)
}

#[test]
fn windows_come_in_order() {
    let folder = Folder::new("watch-history");
    let at = folder.path("store");
    // The last window is open.
    make(&at, &[(0, 71), (1, 83), (3, 97), (13, 101)]);
    let ran = watch(&at, "sda@..2026-11-01T00:20Z", &["--json"]);
    let (rows, last) = intervals(ran.ends(1));
    let expected = [
        row("00:05", 300, 71),
        row("00:10", 300, 83),
        row("00:15", 300, 0),
        row("00:20", 300, 97),
    ];
    assert_eq!(rows, expected);
    assert_eq!(last["findings"][0]["rule"], "misaligned-io");
    assert_eq!(last["findings"][0]["facts"]["counted"]["count"], 251);
    assert_eq!(last["result"]["whole"]["seconds"], 1200.0);
    // The senders of a window have no number, and no alignment of their own.
    let sender = &last["result"]["processes"][0];
    assert_eq!(
        (&sender["comm"], &sender["pid"], &sender["misaligned"]),
        (&json!("postgres"), &json!(0), &json!(null))
    );
    assert_eq!(sender["owner"]["unit"], "postgresql.service");

    // Windows are joined to longer intervals, which begin at their multiples.
    let ran = watch(&at, "sda", &["--json", "--interval", "10m"]);
    let (rows, _) = intervals(&ran);
    assert_eq!(rows[..2], [row("00:10", 600, 154), row("00:20", 600, 97)]);
    assert_eq!(rows[6], row("01:10", 600, 101));
    assert_eq!(rows.len(), 7);
    let ran = watch(&at, IDENTITY, &["--json", "--interval", "7m"]);
    assert_eq!(intervals(&ran).0[0], row("00:10", 600, 154));

    // Some of them, and the totals of these alone.
    let saved = folder.path("saved").display().to_string();
    let ran = watch(&at, "sda", &["--plain", "--count", "2", "--save", &saved]);
    // Too few I/O for a finding.
    ran.ends(3)
        .says("2026-11-01T00:05:00Z, 300.0 s")
        .says("71 reads")
        .says("83 reads")
        .says("154 reads")
        .says("postgres - sda");
    let whole = plumb(["analyze", "--json", &saved]).json();
    assert_eq!(whole["result"]["profiles"][0]["ios"], 154);
}

/// A gap of hours is one interval, and an end in the middle of a window is that of the window.
#[test]
fn a_gap_is_one_interval() {
    let folder = Folder::new("watch-history-gap");
    let at = folder.path("store");
    make(&at, &[(0, 71), (100, 83), (101, 89)]);
    let ran = watch(&at, "sda@..2026-11-01T08:21Z", &["--json"]);
    let (rows, _) = intervals(&ran);
    let gap = 99 * 300;
    assert_eq!(
        rows,
        [
            row("00:05", 300, 71),
            row("08:20", gap, 0),
            row("08:25", 300, 83)
        ]
    );
}

/// Windows of few I/O have no places: the whole time has those of the hour, as `plumb analyze` reads them.
#[test]
fn the_whole_time_is_that_of_analyze() {
    let folder = Folder::new("watch-history-whole");
    let at = folder.path("store");
    let windows: Vec<(i64, u64)> = (0..25).map(|window| (window, 31)).collect();
    make(&at, &windows);
    let (span, store) = (
        "sda@2026-11-01T00:00Z..2026-11-01T02:00Z",
        at.display().to_string(),
    );
    let analyzed = plumb([
        "analyze",
        "--json",
        &format!("history:{span}"),
        "--state-dir",
        &store,
    ]);
    let analyzed = analyzed.ends(1).json();
    let ran = watch(&at, span, &["--json"]);
    let (rows, last) = intervals(ran.ends(1));
    assert_eq!(rows.len(), 24);
    assert!(rows.iter().all(|(_, _, ios)| *ios == 31), "{rows:?}");
    let note = last["result"]["notes"][0].as_str();
    insta::assert_snapshot!(note.expect("a note"));
    let counted = &last["findings"][0]["facts"]["counted"];
    assert_eq!(
        (&counted["count"], &counted["of"]),
        (&json!(744), &json!(744))
    );
    assert_eq!(counted, &analyzed["findings"][0]["facts"]["counted"]);
}

#[test]
fn spans_without_windows_are_refused() {
    let folder = Folder::new("watch-history-refused");
    let at = folder.path("store");
    make(&at, &[(0, 71)]);
    // As `plumb analyze` refuses them.
    for span in ["sdz", "sda@..2020-01-01", "sda@2020-01-01"] {
        let store = at.display().to_string();
        let named = format!("history:{span}");
        let analyzed = plumb(["analyze", &named, "--state-dir", &store]);
        let ran = watch(&at, span, &["--plain"]);
        assert_eq!((ran.code, &ran.err), (analyzed.code, &analyzed.err));
        assert!(ran.code >= 2, "{}", ran.err);
    }
    let mut messages = Vec::new();
    for flags in [&["--op", "read"][..], &["--pid", "1"], &["sda"]] {
        messages.push(watch(&at, "sda", flags).ends(2).complaint());
    }
    messages.push(watch(&folder.path("none"), "sda", &[]).ends(5).complaint());
    let trace = folder.file("trace.csv", "");
    messages.push(
        plumb([
            "watch".as_ref(),
            "--json".as_ref(),
            "--from".as_ref(),
            trace.as_os_str(),
        ])
        .ends(2)
        .complaint(),
    );
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// A person steps through the windows.
#[test]
fn a_history_on_a_terminal() {
    require!(Tool("tmux"));
    let folder = Folder::new("watch-history-terminal");
    let at = folder.path("store");
    let windows: Vec<(i64, u64)> = (0..12u8)
        .map(|window| (window.into(), 71 + 300 * u64::from(window)))
        .collect();
    make(&at, &windows);
    let terminal = Terminal::open("history", 100, 30, "LC_ALL=C.UTF-8");
    let program = env!("CARGO_BIN_EXE_plumb");
    let command = format!(
        "clear; {program} watch --from history:sda --state-dir {} --speed 10; echo status $?",
        at.display()
    );
    terminal.press(&[&command, "Enter"]);
    let screen = terminal.shows("2026-11-01T01:00:00Z  end");
    // 3,371 I/O in 300 s.
    assert!(screen.contains("300.0 s"), "{screen}");
    assert!(
        screen
            .lines()
            .any(|line| line.starts_with("sda") && line.contains(" 11 ")),
        "{screen}"
    );
    terminal.press(&["Left", "Left"]);
    terminal.shows("2026-11-01T00:50:00Z  window 10 of 12  FROZEN");
    terminal.press(&["p"]);
    terminal.shows("postgresql.service");
    terminal.press(&["q"]);
    let end = terminal.shows("status 1");
    assert!(end.contains("MISFIT: 20,652 of 20,652"), "{end}");
    terminal.is_restored();
}
