//! The machine that the test runs on: lsblk against sysfs, three prints of mounts against each other.

use std::path::Path;

use plumb_stack::{Kind, Stack};
use plumb_testkit::require;

use super::support::{named, run, run_of, stack_of};

#[test]
fn lsblk_against_sysfs() {
    require!(Tool("lsblk"));
    let print = run("lsblk", &["-J", "-O", "-b"], Path::new("/"));
    let stack = stack_of(&[("lsblk -J", &print)]);
    let mut checked = 0;
    for (_, node) in stack.nodes().filter(|(_, node)| !node.name.contains('/')) {
        let number = |file: &str| -> Option<u64> {
            let text =
                std::fs::read_to_string(format!("/sys/class/block/{}/{file}", node.name)).ok()?;
            text.trim().parse().ok()
        };
        let Some(size) = number("size").filter(|_| node.size.is_some()) else {
            continue;
        };
        assert_eq!(
            node.size.map(|size| size.0),
            Some(size * 512),
            "{}",
            node.name
        );
        if let (Kind::Partition, Some(start)) = (node.kind, number("start")) {
            assert_eq!(
                run_of(&stack, &node.name).map(|run| run.0),
                Some(start * 512),
                "{}",
                node.name
            );
        }
        checked += 1;
    }
    if checked == 0 {
        plumb_testkit::skip!("this machine has no block device");
    }
}

fn mounted(stack: &Stack) -> Vec<(String, String)> {
    let systems = stack
        .nodes()
        .filter(|(_, node)| node.kind == Kind::FileSystem);
    let mut found: Vec<_> = systems
        .map(|(id, node)| {
            let below = node.placing.below();
            let device = below
                .first()
                .map(|below| stack.node(*below).name.clone())
                .unwrap_or_default();
            (named(stack, &stack.node(id).name).1.name.clone(), device)
        })
        .collect();
    found.sort();
    found
}

#[test]
fn mounts_are_printed_in_three_ways() {
    require!(Tool("mount"), Tool("findmnt"));
    let root = Path::new("/");
    let proc = std::fs::read_to_string("/proc/self/mounts").expect("procfs");
    let info = std::fs::read_to_string("/proc/self/mountinfo").expect("procfs");
    let by_proc = mounted(&stack_of(&[("/proc/mounts", &proc)]));
    assert_eq!(mounted(&stack_of(&[("/proc/mounts", &info)])), by_proc);
    let findmnt = run("findmnt", &[], root);
    assert_eq!(mounted(&stack_of(&[("findmnt", &findmnt)])), by_proc);
    // The format of Solaris that is called mount as well does not take it.
    let mount = run("mount", &[], root);
    assert_eq!(mounted(&stack_of(&[("mount", &mount)])), by_proc);
}
