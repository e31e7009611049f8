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

/// Other programs mount and unmount meanwhile: every listing has to have the mounts that last the whole time.
#[test]
fn mounts_are_printed_in_three_ways() {
    require!(Tool("mount"), Tool("findmnt"));
    let root = Path::new("/");
    let read = |path: &str| std::fs::read_to_string(path).expect("procfs");
    let before = mounted(&stack_of(&[("/proc/mounts", &read("/proc/self/mounts"))]));
    let info = read("/proc/self/mountinfo");
    let findmnt = run("findmnt", &[], root);
    let mount = run("mount", &[], root);
    let mut lasting = mounted(&stack_of(&[("/proc/mounts", &read("/proc/self/mounts"))]));
    lasting.retain(|one| before.contains(one));
    assert!(!lasting.is_empty(), "the root is mounted all the time");
    // The format of Solaris that is called mount as well does not take the output of mount.
    for (file, text) in [
        ("/proc/mounts", &info),
        ("findmnt", &findmnt),
        ("mount", &mount),
    ] {
        let mut listed = mounted(&stack_of(&[(file, text)]));
        listed.retain(|one| lasting.contains(one));
        assert_eq!(listed, lasting, "{file}");
    }
}
