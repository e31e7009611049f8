//! `plumb watch` in a guest, on disks that are busy, fail or do half of what was asked: see `lab/watch-guest`.

use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_testkit::require::record_skip;
use plumb_testkit::{require, test_name};
use serde_json::Value;

/// What came of a case, summed up over its intervals.
struct Seen {
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
    values.into_iter().map(|value| value[name].as_u64().unwrap_or(0)).sum()
}

fn seen(directory: &Path, case: &str) -> Seen {
    let text = std::fs::read_to_string(directory.join(format!("{case}.json"))).expect("the lines");
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a document")).collect();
    assert_eq!(lines.len(), 3, "{case}: {text}");
    let lists = |name: &str| -> Vec<&Value> {
        lines.iter().flat_map(|line| line["result"][name].as_array().expect("a list")).collect()
    };
    let (profiles, apart) = (lists("profiles"), lists("apart"));
    let ops = |op: &str| -> Vec<&Value> {
        let all = profiles.iter().flat_map(|profile| profile["ops"].as_array().expect("operations"));
        all.filter(|one| one["op"] == op).collect()
    };
    let grids = profiles.iter().map(|profile| &profile["places"][0]["grids"][0]["all"]);
    Seen {
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

/// What `make test` builds for guests and hosts without libraries, where it can.
fn static_binary() -> Option<PathBuf> {
    std::env::var_os("PLUMB_STATIC").map(PathBuf::from)
}

#[test]
fn the_static_binary_needs_no_library() {
    let Some(program) = static_binary() else {
        let why = "no static binary: make test builds it where Rust's target for musl can be had, and names it in \
                   PLUMB_STATIC";
        return record_skip(test_name!(), why);
    };
    require!(Tool("readelf"));
    let done = Command::new("readelf").arg("--program-headers").arg("--dynamic").arg(&program).output();
    let done = done.expect("readelf");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(said.contains("LOAD"), "{said}");
    assert!(!said.contains("INTERP") && !said.contains("(NEEDED)"), "{said}");
}

/// Debian's kernels of two series: requests that come again, in part or not at all never change how many I/O there were.
#[test]
fn counts_are_exact_on_disks_that_are_not_well() {
    require!(Qemu, Tool("apt-get"));
    let program = static_binary().unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_plumb")));
    for series in ["", "6.12"] {
        let out = tempfile::tempdir().expect("a directory");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/watch-guest");
        let mut command = Command::new(script);
        command.arg(out.path()).arg(&program).arg(series);
        let done = command.output().expect("a shell");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{said}");
        let kernel = std::fs::read_to_string(out.path().join("kernel")).expect("its version");
        assert!(kernel.starts_with(series), "{kernel}");
        check(out.path(), &kernel);
    }
}

fn check(directory: &Path, kernel: &str) {
    let plain = seen(directory, "plain");
    assert_eq!((plain.reads, plain.writes), (211, 101), "{kernel}");
    assert_eq!((plain.misaligned, plain.timed), (312, 312), "{kernel}");
    assert_eq!((plain.requeues, plain.partial_completions, plain.unmatched), (0, 0, 0), "{kernel}");

    let busy = seen(directory, "busy");
    assert_eq!((busy.reads, busy.timed, busy.unmatched), (211, 211, 0), "{kernel}");
    assert!(busy.requeues >= 211 / 7, "{kernel}: {} came again", busy.requeues);

    // The 290th read meets the sectors that cannot be read: 34 + 16 * 289 = 4658 to 4673.
    let broken = seen(directory, "broken");
    assert_eq!((broken.reads, broken.failed, broken.unmatched), (290, 1, 0), "{kernel}");

    let short = seen(directory, "short");
    assert_eq!((short.reads, short.timed, short.unmatched), (211, 211, 0), "{kernel}");
    assert!(short.partial_completions > 0, "{kernel}: none in part");
}
