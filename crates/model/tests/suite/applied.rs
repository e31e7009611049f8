//! Stacks as actions leave them, against places worked out by hand.

use plumb_geometry::{Bytes, SECTOR};
use plumb_model::{Action, DeviceRef, LocalNode, NotModelled, PartitionRef, apply};
use plumb_stack::node::keys;
use plumb_stack::{Builder, Kind, NodeId, Part, Placing, ProblemId, Source, Stack};

const FROM: Source = Source::User;

fn cut(builder: &mut Builder, name: &str, kind: Kind, on: NodeId, start: u64, len: u64) -> NodeId {
    let node = builder.node(name);
    builder.kind(node, kind, &FROM);
    builder.size(node, Bytes(len * SECTOR), &FROM);
    let part = Part {
        upper: Bytes(0),
        node: on,
        start: Bytes(start * SECTOR),
        len: Some(Bytes(len * SECTOR)),
    };
    builder.place(node, Placing::Parts { parts: vec![part] }, &FROM);
    node
}

/// A disk of 10,000 sectors, partitions at 63 and 5,000, a file system on the first and a volume on the second.
fn stack() -> Stack {
    let mut builder = Builder::default();
    let sda = builder.node("sda");
    builder.kind(sda, Kind::Disk, &FROM);
    builder.size(sda, Bytes(10_000 * SECTOR), &FROM);
    let first = cut(&mut builder, "sda1", Kind::Partition, sda, 63, 4_000);
    let second = cut(&mut builder, "sda2", Kind::Partition, sda, 5_000, 5_000);
    builder.fact(first, keys::PARTITION_NUMBER, 1u64, &FROM);
    builder.fact(second, keys::PARTITION_NUMBER, 2u64, &FROM);
    let system = cut(&mut builder, "/srv", Kind::FileSystem, first, 0, 4_000);
    builder.fact(system, keys::CONTENT, "vfat", &FROM);
    builder.fact(system, keys::HIDDEN_BYTES, Bytes(63 * SECTOR), &FROM);
    cut(&mut builder, "vg/lv", Kind::LogicalVolume, second, 8, 4_992);
    builder.finish()
}

fn partition(number: u32, start: u64, len: u64) -> PartitionRef {
    PartitionRef {
        disk: DeviceRef::named("/dev/sda".to_owned()),
        number,
        start_bytes: Bytes(start * SECTOR),
        len_bytes: Some(Bytes(len * SECTOR)),
        node: LocalNode::default(),
    }
}

fn moved(partition: PartitionRef, to: u64) -> Action {
    Action::Move {
        partition,
        to_bytes: Bytes(to * SECTOR),
    }
}

fn problems(stack: &Stack) -> Vec<ProblemId> {
    stack.problems().iter().map(|one| one.id).collect()
}

/// The position of byte 0 of a node on the disk.
fn start(stack: &Stack, name: &str) -> i128 {
    let sda = stack.find("sda").expect("named");
    let landings = stack.landings(stack.find(name).expect("named"));
    let mut on = landings.all.iter().filter(|one| one.on == sda);
    on.next().expect("it lies there").shift
}

#[test]
fn a_move_shifts_the_layers_above() {
    let before = stack();
    let applied = apply(&before, &[moved(partition(1, 63, 4_000), 64)]).expect("modelled");
    for name in ["sda1", "/srv"] {
        assert_eq!(start(&applied.stack, name), 64 * 512, "{name}");
    }
    assert_eq!(start(&applied.stack, "vg/lv"), 5_008 * 512);
    assert!(problems(&applied.stack).is_empty());
    assert!(applied.emptied.is_empty());
    let system = applied.stack.find("/srv").expect("named");
    let hidden = applied.stack.node(system).number(keys::HIDDEN_BYTES);
    assert_eq!(
        hidden,
        Some(Bytes(64 * 512)),
        "the note of FAT is rewritten"
    );
    assert_eq!(start(&before, "sda1"), 63 * 512, "the old stack stays");
}

#[test]
fn a_place_that_is_taken_or_not_there_is_a_problem() {
    let before = stack();
    for (to, expected) in [
        (1_001, ProblemId::OverlappingPartitions),
        (9_000, ProblemId::BeyondDevice),
    ] {
        let applied = apply(&before, &[moved(partition(1, 63, 4_000), to)]).expect("modelled");
        assert!(problems(&applied.stack).contains(&expected), "{to}");
        let part = applied.stack.find("sda1").expect("named");
        assert!(applied.stack.conflict(part).is_some(), "{to}");
    }
}

/// A file system that fills its partition becomes shorter with it; a volume does not, and ends beyond it then.
#[test]
fn only_file_systems_become_shorter() {
    let before = stack();
    let shrink = |partition, len: u64| Action::Shrink {
        partition,
        len_bytes: Bytes(len * SECTOR),
    };
    let applied = apply(&before, &[shrink(partition(1, 63, 4_000), 3_999)]).expect("modelled");
    let system = applied.stack.find("/srv").expect("named");
    assert_eq!(applied.stack.node(system).size, Some(Bytes(3_999 * 512)));
    assert!(problems(&applied.stack).is_empty());
    let applied = apply(&before, &[shrink(partition(2, 5_000, 5_000), 4_999)]).expect("modelled");
    assert_eq!(problems(&applied.stack), [ProblemId::BeyondDevice]);
}

#[test]
fn a_partition_that_is_not_as_stated_is_refused() {
    let before = stack();
    for (stated, why) in [
        (partition(1, 64, 4_000), NotModelled::NoDevice),
        (partition(1, 63, 4_001), NotModelled::Differs),
    ] {
        let refused = apply(&before, &[moved(stated, 2_048)]);
        assert_eq!(refused.map(|_| ()), Err(why));
    }
    let argv = vec!["true".to_owned()];
    let command = Action::Command {
        argv,
        platform: plumb_model::Platform::Linux,
        effect: plumb_model::Effect::ReadsOnly,
        undo: None,
    };
    let refused = apply(&before, &[command]).map(|_| ());
    assert_eq!(refused, Err(NotModelled::NotDescribed));
}

/// A part of a stack is judged as the whole: the same places by other numbers.
#[test]
fn a_part_is_the_same_stack() {
    let before = stack();
    let top = before.find("/srv").expect("named");
    let part = before.part(&before.connected(top));
    // Everything is connected here through the disk.
    assert_eq!(part.stack.nodes().count(), before.nodes().count());
    for name in ["sda1", "sda2", "/srv", "vg/lv"] {
        assert_eq!(start(&part.stack, name), start(&before, name));
        let whole = before.find(name).expect("named");
        let inside = part.inside(whole).expect("in it");
        assert_eq!(part.outside(inside), Some(whole));
    }
}
