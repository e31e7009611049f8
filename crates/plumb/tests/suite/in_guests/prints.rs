//! A guest's stacks of known truth, read from the output of its tools alone: lsblk, dmsetup, LVM, mdadm and nvme.

use std::fs;
use std::path::Path;

use plumb_geometry::Bytes;
use plumb_stack::dump;
use plumb_stack::node::keys;
use plumb_stack::{Builder, CellKind, Node, NodeId, Obstacle, Placing, Stack, Verdict};

use super::check::CheckedRow;

/// Outputs that place a layer, of those that the directory of a stack may hold.
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

fn named<'a>(stack: &'a Stack, name: &str) -> (NodeId, &'a Node) {
    let id = stack.find(name).unwrap_or_else(|| panic!("no {name}"));
    (id, stack.node(id))
}

/// Checks the stack of each row of `out`, the output of `lab/check-guest`.
pub fn check_all(out: &Path, rows: &[CheckedRow]) {
    for row in rows {
        let dir = out.join(&row.name);
        let stack = stack_in(&dir, &row.node);
        match row.name.split('-').next().expect("a word") {
            "raid0" | "raid5" => check_array(&stack, row, dir.join("mdadm-examine.txt").exists()),
            "loop" => check_unknown(&stack, row),
            _ if row.name == "lvm-put-right" => check_first_extent(&stack, row),
            _ => check_verdict(&stack, row),
        }
        if row.name.contains("bogus") {
            let disk = &named(&stack, "sda").1.grids;
            let hint = disk
                .iter()
                .find(|fact| fact.what == CellKind::OptimalIo)
                .expect("a hint");
            assert!(!hint.is_believed(), "{}", row.name);
        }
    }
}

/// The first byte is at its expected position on every disk, with the expected verdict.
fn check_verdict(stack: &Stack, row: &CheckedRow) {
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
        let verdict = match past {
            0 => Verdict::Aligned,
            past => Verdict::Misaligned { by: Bytes(past) },
        };
        let is_sure = |found: &Verdict| {
            *found == verdict || past == 0 && matches!(found, Verdict::Unknown { .. })
        };
        assert!(
            !found.is_empty() && found.iter().all(is_sure),
            "{}: {found:?}",
            row.name
        );
    }
}

fn check_array(stack: &Stack, row: &CheckedRow, is_examined: bool) {
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

fn check_unknown(stack: &Stack, row: &CheckedRow) {
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
fn check_first_extent(stack: &Stack, row: &CheckedRow) {
    let (_, partition) = named(stack, "sda1");
    let Placing::Parts { parts } = &partition.placing else {
        panic!("{}: {:?}", row.name, partition.placing);
    };
    let extent = partition
        .number(keys::PE_START)
        .map(|bytes| bytes.0)
        .expect("a first extent");
    assert_eq!(parts[0].start.0 + extent, row.first, "{}", row.name);
}
