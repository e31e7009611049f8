//! A guest's stacks of known truth, as its tools printed them: output of `lab/check-guest OUT`, with
//! `PLUMB_CHECK_OUT=OUT`.

use std::fs;
use std::path::{Path, PathBuf};

use plumb_stack::Obstacle;
use plumb_stack::dump;
use plumb_stack::node::keys;
use plumb_stack::{Builder, CellKind, Stack, Verdict};

use super::support::{named, run_of, verdict};

/// A line of rows.tsv.
struct DumpedRow {
    name: String,
    node: String,
    granularity: u64,
    offset: u64,
    first: u64,
    past: u64,
}

fn rows(out: &Path) -> Vec<DumpedRow> {
    let text = fs::read_to_string(out.join("rows.tsv")).expect("rows.tsv");
    let row = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |at: usize| fields[at].parse().expect("a number");
        let (name, node) = (fields[0].to_owned(), fields[1].to_owned());
        DumpedRow {
            name,
            node,
            granularity: number(2),
            offset: number(3),
            first: number(4),
            past: number(5),
        }
    };
    text.lines().map(row).collect()
}

/// Prints that place something, of those that a stack's directory may hold.
const PRINTS: [&str; 8] = [
    "lsblk.json",
    "dmsetup-table.txt",
    "pvs.json",
    "vgs.json",
    "lvs-segments.json",
    "mdstat.txt",
    "mdadm-detail.txt",
    "mdadm-examine.txt",
];

fn stack_in(dir: &Path, node: &str) -> Stack {
    let mut builder = Builder::default();
    for print in PRINTS {
        if let Ok(bytes) = fs::read(dir.join(print)) {
            let read = dump::read_bytes(print, &bytes, &mut builder)
                .unwrap_or_else(|why| panic!("{dir:?}: {why}"));
            assert_eq!(read.taken.passed_over, 0, "{dir:?} {print}");
        }
    }
    let namespace = node
        .trim_start_matches("/dev/")
        .split('p')
        .next()
        .expect("a name");
    for (file, tool) in [("id-ns.bin", "nvme id-ns -b"), ("id-ns.txt", "nvme id-ns")] {
        if let Ok(bytes) = fs::read(dir.join(file)) {
            let read = dump::read_bytes(&format!("{namespace}-{file}"), &bytes, &mut builder)
                .expect("reads");
            assert_eq!(read.tool, tool);
        }
    }
    dump::join(&mut builder);
    let stack = builder.finish();
    assert_eq!(stack.problems().len(), 0, "{dir:?}: {:?}", stack.problems());
    stack
}

fn out() -> Option<PathBuf> {
    std::env::var_os("PLUMB_CHECK_OUT").map(PathBuf::from)
}

#[test]
fn stacks_of_known_truth() {
    let Some(out) = out() else {
        plumb_testkit::skip!(
            "PLUMB_CHECK_OUT is not set: run `lab/check-guest OUT` and set it to OUT"
        );
    };
    let mut judged = 0;
    for row in rows(&out) {
        let dir = out.join(&row.name);
        let stack = stack_in(&dir, &row.node);
        match row.name.split('-').next().expect("a word") {
            "raid0" | "raid5" => check_array(&stack, &row, dir.join("mdadm-examine.txt").exists()),
            "loop" => check_unknown(&stack, &row),
            _ if row.name == "lvm-put-right" => check_first_extent(&stack, &row),
            _ => check_verdict(&stack, &row),
        }
        if row.name.contains("bogus") {
            let disk = &named(&stack, "sda").1.grids;
            let hint = disk
                .iter()
                .find(|fact| fact.what == CellKind::OptimalIo)
                .expect("a hint");
            assert!(!hint.is_believed(), "{}", row.name);
        }
        judged += 1;
    }
    assert!(judged >= 20, "{judged} rows");
}

/// The first byte is at its expected position on every disk, with the expected verdict.
fn check_verdict(stack: &Stack, row: &DumpedRow) {
    let top = named(stack, &row.node).0;
    let landings = stack.landings(top).all;
    let disks: Vec<_> = landings
        .iter()
        .filter(|landing| stack.is_leaf(landing.on))
        .collect();
    assert!(!disks.is_empty(), "{}", row.name);
    for landing in disks {
        let chunk = landing
            .period
            .map_or(i128::MAX, |period| i128::from(period.0));
        assert_eq!(landing.shift, i128::from(row.first) % chunk, "{}", row.name);
        let past = (row.first + row.granularity - row.offset) % row.granularity;
        assert_eq!(past, row.past, "{}: the truth agrees with itself", row.name);
        let on_it = stack.standings(top).into_iter().filter(|one| {
            one.landing.on == landing.on && one.fact.granularity().0 == row.granularity
        });
        let found: Vec<Verdict> = on_it.map(|one| one.verdict).collect();
        // A layer that is aligned on a grid that was only assumed, or on a virtual disk's statement, is not known to be
        // aligned.
        let is_sure = |found: &Verdict| {
            *found == verdict(past) || past == 0 && matches!(found, Verdict::Unknown { .. })
        };
        assert!(
            !found.is_empty() && found.iter().all(is_sure),
            "{}: {found:?}",
            row.name
        );
    }
}

fn check_array(stack: &Stack, row: &DumpedRow, is_examined: bool) {
    if is_examined {
        return check_verdict(stack, row);
    }
    let lost = stack.landings(named(stack, &row.node).0).lost;
    assert!(
        lost.iter()
            .any(|(_, why)| matches!(why, Obstacle::DataStartInSuperblock { .. })),
        "{}: {lost:?}",
        row.name
    );
}

fn check_unknown(stack: &Stack, row: &DumpedRow) {
    let top = named(stack, &row.node).0;
    assert!(!stack.landings(top).lost.is_empty(), "{}", row.name);
    let verdicts = stack.standings(top).into_iter().map(|one| one.verdict);
    assert!(
        verdicts.into_iter().all(|one| one != Verdict::Aligned),
        "{}",
        row.name
    );
}

/// No volume was made: its first extent is where one would begin.
fn check_first_extent(stack: &Stack, row: &DumpedRow) {
    let (start, ..) = run_of(stack, "sda1").expect("a partition");
    let extent = named(stack, "sda1")
        .1
        .number(keys::PE_START)
        .map(|bytes| bytes.0)
        .expect("a first extent");
    assert_eq!(start + extent, row.first, "{}", row.name);
}
