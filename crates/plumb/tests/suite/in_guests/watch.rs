//! `plumb watch` and `plumb record` in a guest, on disks that are busy, fail or do half of the requests: see `lab/watch-guest`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use plumb_testkit::require;
use plumb_trace::{Layer, Op, flags};
use serde_json::Value;

use crate::common::recording::{number, read};
use crate::in_guests::{program, run_lab};

/// The result of a case, summed up over its intervals, on all its disks or on one.
struct CaseTotals {
    /// Layers at which it was seen.
    layers: BTreeSet<String>,
    splits: u64,
    unmatched_completions: u64,
    bytes: u64,
    reads: u64,
    writes: u64,
    misaligned: u64,
    failed: u64,
    timed: u64,
    requeues: u64,
    partial_completions: u64,
    unmatched: u64,
}

fn sum<'a>(values: impl IntoIterator<Item = &'a Value>, name: &str) -> u64 {
    values
        .into_iter()
        .map(|value| value[name].as_u64().unwrap_or(0))
        .sum()
}

fn lines(directory: &Path, case: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(directory.join(format!("{case}.json"))).expect("the lines");
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a document"))
        .collect();
    assert!(
        lines.len() > 1,
        "{case}: an interval before the I/O, and one with it: {text}"
    );
    lines
}

fn seen(directory: &Path, case: &str) -> CaseTotals {
    seen_on(directory, case, None)
}

fn seen_on(directory: &Path, case: &str, disk: Option<&str>) -> CaseTotals {
    let lines = lines(directory, case);
    let lists = |name: &str| -> Vec<&Value> {
        lines
            .iter()
            .flat_map(|line| line["result"][name].as_array().expect("a list"))
            .collect()
    };
    let (mut profiles, mut apart) = (lists("profiles"), lists("apart"));
    profiles.retain(|profile| disk.is_none_or(|disk| profile["target"]["device"] == disk));
    apart.retain(|apart| disk.is_none_or(|disk| apart["device"] == disk));
    let word = |profile: &&Value| {
        profile["target"]["layer"]
            .as_str()
            .expect("a layer")
            .to_owned()
    };
    let ops = |op: &str| -> Vec<&Value> {
        let all = profiles
            .iter()
            .flat_map(|profile| profile["ops"].as_array().expect("operations"));
        all.filter(|one| one["op"] == op).collect()
    };
    let grids = profiles
        .iter()
        .map(|profile| &profile["places"][0]["grids"][0]["all"]);
    CaseTotals {
        layers: profiles.iter().map(word).collect(),
        splits: sum(apart.iter().copied(), "splits"),
        unmatched_completions: sum(apart.iter().copied(), "unmatched_completions"),
        bytes: sum(ops("read"), "bytes"),
        reads: sum(ops("read"), "ios"),
        writes: sum(ops("write"), "ios"),
        misaligned: sum(grids, "misaligned"),
        failed: sum(ops("read"), "failed"),
        timed: sum(profiles.iter().copied(), "timed"),
        requeues: sum(apart.iter().copied(), "requeues"),
        partial_completions: sum(apart.iter().copied(), "partial_completions"),
        unmatched: sum(apart.iter().copied(), "unmatched_issues"),
    }
}

#[test]
#[ignore = "make soak builds the static binary and names it in PLUMB_STATIC"]
fn the_static_binary_needs_no_library() {
    let program = std::env::var_os("PLUMB_STATIC").expect("PLUMB_STATIC names the static binary");
    require!(Tool("readelf"));
    let done = Command::new("readelf")
        .arg("--program-headers")
        .arg("--dynamic")
        .arg(&program)
        .output();
    let done = done.expect("readelf");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(said.contains("LOAD"), "{said}");
    assert!(
        !said.contains("INTERP") && !said.contains("(NEEDED)"),
        "{said}"
    );
}

/// The calls of fio on its file, summed up over the intervals of a case: calls and bytes of reads and of those past the
/// cache; `None` if a way is in it that is not counted.
fn asked(directory: &Path, case: &str) -> Option<(u64, u64, u64)> {
    let lines = lines(directory, &format!("app-{case}"));
    let processes = lines.iter().flat_map(|line| {
        line["result"]["app"]["processes"]
            .as_array()
            .expect("a list")
    });
    let of_fio: Vec<&Value> = processes.filter(|by| by["comm"] == "fio").collect();
    let unknown = of_fio.iter().any(|by| {
        by["unknown_ways"]
            .as_array()
            .is_some_and(|ways| !ways.is_empty())
    });
    let reads = of_fio
        .iter()
        .filter(|by| by["file_system"] == "/mnt")
        .map(|by| &by["reads"]);
    let reads: Vec<&Value> = reads.collect();
    let total = |name: &str| sum(reads.iter().copied(), name);
    (!unknown).then(|| (total("calls"), total("asked_bytes"), total("direct_bytes")))
}

/// The same reads on every way: exact, or unknown.
fn check_asked(directory: &Path, kernel: &str, scope: Scope) {
    let bytes = 211 * 8192;
    let cases = [
        ("psync", Some((211, bytes, 0))),
        ("psync-direct", Some((211, bytes, bytes))),
        ("io_uring", Some((211, bytes, 0))),
        ("io_uring-direct", Some((211, bytes, bytes))),
        ("libaio-direct", None),
        ("mmap", None),
    ];
    for &(case, expected) in scope.select(&cases, |case| case.0) {
        assert_eq!(asked(directory, case), expected, "{kernel}: {case}");
    }
}

/// Cases that a guest runs: all of them, or those that tell kernels apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    Kernel,
}

impl Scope {
    fn word(self) -> &'static str {
        match self {
            Scope::All => "all",
            Scope::Kernel => "kernel",
        }
    }

    /// Keeps the cases that the guest ran.
    fn select<Case>(self, cases: &[Case], name: impl Fn(&Case) -> &str) -> Vec<&Case> {
        let of_kernel = [
            "busy",
            "broken",
            "short",
            "md",
            "psync",
            "io_uring-direct",
            "mmap",
        ];
        let is_run = |case: &&Case| self == Scope::All || of_kernel.contains(&name(case));
        cases.iter().filter(is_run).collect()
    }
}

/// Requests that are requeued, completed in part or failed do not change the number of I/Os.
#[test]
fn counts_are_exact_on_disks_that_are_not_well() {
    require!(Qemu, Tool("apt-get"));
    watch_guest("", Scope::Kernel);
}

#[test]
#[ignore = "five minutes: run by make soak"]
fn every_case_is_exact() {
    require!(Qemu, Tool("apt-get"));
    watch_guest("", Scope::All);
}

#[test]
#[ignore = "five minutes: run by make soak"]
fn every_case_is_exact_with_a_later_kernel() {
    require!(Qemu, Tool("apt-get"));
    watch_guest("6.12", Scope::All);
}

fn watch_guest(series: &str, scope: Scope) {
    let out = tempfile::tempdir().expect("a directory");
    let program = program();
    run_lab(
        "watch-guest",
        [
            out.path().as_os_str(),
            program.as_os_str(),
            series.as_ref(),
            scope.word().as_ref(),
        ],
    );
    let kernel = std::fs::read_to_string(out.path().join("kernel")).expect("its version");
    assert!(kernel.starts_with(series), "{kernel}");
    check(out.path(), &kernel, scope);
    check_without_requests(out.path(), &kernel, scope);
    check_asked(out.path(), &kernel, scope);
    check_recorded(out.path(), &kernel, scope);
}

/// Disks that make no requests: each I/O counts once there, and once more below, where it is said to be the same.
fn check_without_requests(directory: &Path, kernel: &str, scope: Scope) {
    let members = std::fs::read_to_string(directory.join("members")).expect("their names");
    let members: Vec<&str> = members.split_whitespace().collect();
    // The I/O that a layer passes on, and the number of I/O below for each of 64 KiB.
    let cases = [
        ("linear", "dm-0", 1),
        ("striped", "dm-0", 2),
        ("md", "md0", 2),
    ];
    for &(case, disk, pieces) in scope.select(&cases, |case| case.0) {
        let on_disk = seen_on(directory, case, Some(disk));
        let which = format!("{case}, {kernel}");
        assert_eq!(
            on_disk.layers,
            BTreeSet::from(["bio".to_owned()]),
            "{which}"
        );
        assert_eq!((on_disk.reads, on_disk.misaligned), (312, 211), "{which}");
        assert_timed(&on_disk, 312, &which);
        assert_eq!(
            (on_disk.unmatched, on_disk.unmatched_completions),
            (0, 0),
            "{which}"
        );
        let bytes = 211 * 8192 + 101 * 65_536;
        assert_eq!(on_disk.bytes, bytes, "{which}");
        // md of some kernels splits without telling.
        if case != "md" {
            assert_eq!(
                on_disk.splits,
                101 * (pieces - 1) + crossings(case),
                "{which}"
            );
        }
        let below: Vec<CaseTotals> = members
            .iter()
            .map(|member| seen_on(directory, case, Some(member)))
            .filter(|seen| seen.reads > 0)
            .collect();
        assert_eq!(below.len() as u64, pieces, "{which}");
        assert!(
            below
                .iter()
                .all(|seen| seen.layers == BTreeSet::from(["request".to_owned()])),
            "{which}"
        );
        assert_eq!(
            below.iter().map(|seen| seen.bytes).sum::<u64>(),
            bytes,
            "{which}"
        );
        let reads: u64 = below.iter().map(|seen| seen.reads).sum();
        assert_eq!(reads, 211 + 101 * pieces + crossings(case), "{which}");
        let again = lines(directory, case);
        let again = again
            .iter()
            .find_map(|line| line["result"]["seen_again"].get(0))
            .expect("where it is seen again");
        assert_eq!(again["device"], disk, "{which}");
        assert_eq!(
            again["on"].as_array().map(Vec::len),
            Some(pieces as usize),
            "{which}"
        );
    }
    if directory.join("zram.json").exists() {
        let zram = seen(directory, "zram");
        assert_eq!(
            (zram.reads, zram.writes, zram.misaligned),
            (211, 101, 0),
            "{kernel}"
        );
        assert_timed(&zram, 312, &format!("zram, {kernel}"));
        assert_eq!(
            (zram.unmatched, zram.unmatched_completions),
            (0, 0),
            "{kernel}"
        );
    }
}

/// The reads on both sides of a boundary of 64 KiB, among 211 reads of 8 KiB one after the other, from 17,408 on.
fn crossings(case: &str) -> u64 {
    let is_crossing = |start: u64| start / 65_536 != (start + 8191) / 65_536;
    let crossing = (0..211)
        .filter(|at| is_crossing(17_408 + at * 8192))
        .count();
    if case == "linear" { 0 } else { crossing as u64 }
}

/// Every I/O is counted. A few have no time: the kernel skips a program that interrupts itself on a processor, which an
/// emulated processor on a busy machine does more often than a real one.
fn assert_timed(seen: &CaseTotals, ios: u64, which: &str) {
    assert!(
        seen.timed <= ios && seen.timed * 4 >= ios * 3,
        "{which}: {} of {ios} I/Os are timed",
        seen.timed
    );
}

fn check(directory: &Path, kernel: &str, scope: Scope) {
    if scope == Scope::All {
        check_well(directory, kernel);
    }

    let busy = seen(directory, "busy");
    assert_eq!((busy.reads, busy.unmatched), (211, 0), "{kernel}");
    assert_timed(&busy, 211, &format!("busy, {kernel}"));
    assert!(
        busy.requeues >= 211 / 7,
        "{kernel}: {} came again",
        busy.requeues
    );

    // The 290th read meets the sectors that cannot be read: 34 + 16 * 289 = 4658 to 4673.
    let broken = seen(directory, "broken");
    assert_eq!(
        (broken.reads, broken.failed, broken.unmatched),
        (290, 1, 0),
        "{kernel}"
    );

    let short = seen(directory, "short");
    assert_eq!((short.reads, short.unmatched), (211, 0), "{kernel}");
    assert_timed(&short, 211, &format!("short, {kernel}"));
    assert!(short.partial_completions > 0, "{kernel}: none in part");
}

/// A disk that takes each request at once.
fn check_well(directory: &Path, kernel: &str) {
    let plain = seen(directory, "plain");
    assert_eq!((plain.reads, plain.writes), (211, 101), "{kernel}");
    assert_eq!(plain.misaligned, 312, "{kernel}");
    assert_timed(&plain, 312, &format!("plain, {kernel}"));
    assert_eq!(
        (plain.requeues, plain.partial_completions, plain.unmatched),
        (0, 0, 0),
        "{kernel}"
    );
}

/// A number of I/O one behind the other, as dd does them.
fn run_of(op: Op, len_bytes: u64, count: u64, at: u64) -> impl Iterator<Item = (Op, u64, u64)> {
    (0..count).map(move |io| (op, at + io * len_bytes, len_bytes))
}

/// The result of a recording of all disks.
fn recorded(directory: &Path, case: &str) -> Value {
    let text =
        std::fs::read_to_string(directory.join(format!("{case}.record.json"))).expect("a document");
    let document: Value = serde_json::from_str(&text).expect("a document");
    document["result"].clone()
}

/// The notes on a disk in it.
fn told_of(result: &Value, disk: &str) -> Value {
    let devices = result["devices"].as_array().expect("devices");
    devices
        .iter()
        .find(|device| device["device"] == disk)
        .expect("the disk")
        .clone()
}

/// Rows of dd on a disk are its requests, in that order, all completed. The kernel may skip a program that interrupts itself
/// on a processor, and counts these calls: no more completions may be missing. Returns the number of failed ones.
fn check_rows(
    (directory, kernel): (&Path, &str),
    case: &str,
    (disk, layer): (&str, Layer),
    expected: impl Iterator<Item = (Op, u64, u64)>,
) -> usize {
    let found = read(&directory.join(format!("{case}.parquet")));
    let expected: Vec<_> = expected
        .map(|(op, start, len)| (layer, op, start, len))
        .collect();
    assert_eq!(found.rows_of("dd", disk), expected, "{case}, {kernel}");
    let result = recorded(directory, case);
    let told = told_of(&result, disk);
    assert_eq!(told["layer"], layer.word(), "{case}, {kernel}");
    let skipped = number(&result["skipped_calls"]);
    for (name, most) in [
        ("lost", 0),
        ("unmatched_issues", skipped),
        ("unmatched_completions", 0),
    ] {
        assert!(
            number(&told[name]) <= most,
            "{name} of {case}, {kernel}: {told}"
        );
    }
    let of_dd = found.events_of("dd");
    let untimed: Vec<_> = of_dd
        .iter()
        .filter(|event| event.device_ns.is_none())
        .collect();
    assert!(
        untimed.len() as u64 <= skipped && untimed.len() * 10 <= of_dd.len(),
        "{case}, {kernel}: {skipped} calls skipped, {untimed:?} of {}",
        of_dd.len()
    );
    of_dd
        .iter()
        .filter(|event| event.flags & flags::FAILED != 0)
        .count()
}

/// Recordings of all disks at once hold the I/O of dd, on every kind of disk.
fn check_recorded(directory: &Path, kernel: &str, scope: Scope) {
    let guest = (directory, kernel);
    let members = std::fs::read_to_string(directory.join("members")).expect("their names");
    let members: Vec<&str> = members.split_whitespace().collect();
    let reads = || run_of(Op::Read, 8192, 211, 17_408);
    let first = ("sda", Layer::Request);
    let writes = run_of(Op::Write, 4096, 101, 17_408);
    if scope == Scope::All {
        assert_eq!(check_rows(guest, "plain", first, reads().chain(writes)), 0);
    }
    assert_eq!(check_rows(guest, "busy", first, reads()), 0);
    assert!(
        number(&told_of(&recorded(directory, "busy"), "sda")["requeues"]) >= 211 / 7,
        "{kernel}"
    );
    assert_eq!(
        check_rows(guest, "broken", first, run_of(Op::Read, 8192, 290, 17_408)),
        1
    );
    assert_eq!(check_rows(guest, "short", first, reads()), 0);
    assert!(
        number(&told_of(&recorded(directory, "short"), "sda")["partial_completions"]) > 0,
        "{kernel}"
    );

    let cases = [("linear", "dm-0"), ("striped", "dm-0"), ("md", "md0")];
    for &(case, disk) in scope.select(&cases, |case| case.0) {
        let all = || reads().chain(run_of(Op::Read, 65_536, 101, 32_768));
        assert_eq!(check_rows(guest, case, (disk, Layer::Bio), all()), 0);
        // Below it the same bytes once more, as requests.
        let found = read(&directory.join(format!("{case}.parquet")));
        let below = members.iter().flat_map(|member| found.rows_on(member));
        let (mut bytes, mut layers) = (0, BTreeSet::new());
        below.for_each(|(layer, _, _, len)| {
            bytes += len;
            layers.insert(layer.word());
        });
        assert_eq!(
            bytes,
            all().map(|(_, _, len)| len).sum::<u64>(),
            "{case}, {kernel}"
        );
        assert_eq!(layers, BTreeSet::from(["request"]), "{case}, {kernel}");
    }
    if directory.join("zram.parquet").exists() {
        let writes = run_of(Op::Write, 4096, 101, 20_480);
        let all = writes.chain(run_of(Op::Read, 8192, 211, 20_480));
        assert_eq!(check_rows(guest, "zram", ("zram0", Layer::Bio), all), 0);
    }
}
