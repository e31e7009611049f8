//! ZFS: labels that zfs-fuse 0.7.0 (pool version 23) wrote of three pools, cut to their lists of names and values. The
//! expectation is its `zdb -l` and `zpool status` output.

use plumb_geometry::Bytes;
use plumb_stack::node::keys;
use plumb_stack::{CellKind, Kind, Placing};
use plumb_testkit::require;

use crate::ondisk::tools::{Images, KIB, MIB, grid, node, problems, run};

/// `tank` is a mirror of a and b, `pond` a raidz1 of c, d and e, `lake` is f alone.
const LABELS: [(&str, &[u8]); 6] = [
    ("a", include_bytes!("zfs/a.label")),
    ("b", include_bytes!("zfs/b.label")),
    ("c", include_bytes!("zfs/c.label")),
    ("d", include_bytes!("zfs/d.label")),
    ("e", include_bytes!("zfs/e.label")),
    ("f", include_bytes!("zfs/f.label")),
];
const SIZE: u64 = 128 * MIB;
const COPIES: [u64; 4] = [0, 256 * KIB, SIZE - 512 * KIB, SIZE - 256 * KIB];

fn images(copies: &[u64]) -> Images {
    let images = Images::new();
    for (name, label) in LABELS {
        images.make(name, SIZE);
        for at in copies {
            images.write(name, at + 16 * KIB, label);
        }
    }
    images
}

#[test]
fn pools_are_put_together() {
    let stack = images(&COPIES).stack(&["e", "b", "a", "f", "c", "d"]);
    let tank = node(&stack, "tank");
    assert_eq!(
        (tank.kind, tank.number(keys::ASHIFT)),
        (Kind::Pool, Some(12))
    );
    let Placing::Blocks { block, member } = tank.placing else {
        panic!("{:?}", tank.placing)
    };
    assert_eq!(
        (block, stack.node(member.node).name.as_str()),
        (Bytes(4096), "tank:mirror-0")
    );
    let members = |name: &str| match &node(&stack, name).placing {
        Placing::Copies { members } => members.clone(),
        Placing::Chunks(chunks) => {
            assert_eq!((chunks.chunk, chunks.parity), (Bytes(8192), 1));
            chunks.members.clone()
        }
        other => panic!("{other:?}"),
    };
    let named = |name: &str| {
        let of =
            |member: &plumb_stack::Member| (stack.node(member.node).name.clone(), member.start.0);
        members(name).iter().map(of).collect::<Vec<_>>()
    };
    let at_data = |names: &[&str]| {
        names
            .iter()
            .map(|name| (name.to_string(), 4 * MIB))
            .collect::<Vec<_>>()
    };
    assert_eq!(named("tank:mirror-0"), at_data(&["a", "b"]));
    assert_eq!(named("pond:raidz1-0"), at_data(&["c", "d", "e"]));
    assert_eq!(
        grid(node(&stack, "pond:raidz1-0"), CellKind::Ashift).granularity(),
        Bytes(8192)
    );
    let Placing::Blocks { block, member } = node(&stack, "lake").placing else {
        panic!("no blocks")
    };
    assert_eq!(
        (block, member.start.0, stack.node(member.node).name.as_str()),
        (Bytes(4096), 4 * MIB, "f")
    );
    assert_eq!(
        (problems(&stack), stack.notes()),
        (vec![], &[] as &[String])
    );
}

#[test]
fn a_device_that_was_not_seen_is_missing() {
    let stack = images(&COPIES).stack(&["c", "e"]);
    let Placing::Chunks(chunks) = &node(&stack, "pond:raidz1-0").placing else {
        panic!("no chunks")
    };
    let names: Vec<_> = chunks
        .members
        .iter()
        .map(|member| stack.node(member.node).name.as_str())
        .collect();
    assert_eq!(names, ["c", "pond:missing-1", "e"]);
}

/// Labels at the end are remains after something else was made at the beginning.
#[test]
fn old_labels_at_the_end_give_way() {
    require!(Tool("mkfs.ext4"));
    let images = images(&COPIES[2..]);
    assert!(images.stack(&["f"]).find("lake").is_some());
    run(
        "mkfs.ext4",
        &["-q", "-F", images.path("f").to_str().expect("text")],
        "",
    );
    for at in &COPIES[2..] {
        images.write("f", at + 16 * KIB, LABELS[5].1);
    }
    let stack = images.stack(&["f"]);
    assert_eq!(
        node(&stack, "f")
            .value(keys::CONTENT)
            .map(|word| word.text()),
        Some("ext4")
    );
    assert!(stack.find("lake").is_none());
    insta::assert_snapshot!(stack.notes().join("\n\n"));
}
