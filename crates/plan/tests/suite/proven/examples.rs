//! Remedies that were once printed and did not remove their finding, and the right advice.

use plumb_geometry::{Bytes, SECTOR};
use plumb_model::action::{ExtentRef, Manager};
use plumb_model::{Action, Advice, Class, Finding, Obstacle, Precondition, Remedy, RuleId, apply};
use plumb_plan::partition::{self, LabelScheme};
use plumb_plan::{of_stack, record, softpart};
use plumb_stack::node::keys;
use plumb_stack::{Builder, Chunks, Kind, Member, NodeId, Part, Placing, Stack};

use super::{advised, chunk, past};
use crate::stack::{FROM, cut, disk, find, physical, sectors};

fn finding(stack: &Stack, page: Option<Bytes>, rule: RuleId, device: &str) -> Finding {
    let diagnosis = advised(stack, page);
    let mut found = diagnosis
        .findings
        .into_iter()
        .filter(|one| one.rule() == rule && one.target.device == device);
    found.next().expect("the finding")
}

fn extent(start: u64, len: u64) -> ExtentRef {
    ExtentRef {
        start_bytes: sectors(start),
        len_bytes: sectors(len),
    }
}

/// A stripe of four disks with an interlace, and the layers above it.
fn stripe(builder: &mut Builder, name: &str, chunk: u64) -> NodeId {
    let members = ["c0t0d0s0", "c0t1d0s0", "c0t2d0s0", "c0t3d0s0"].map(|name| Member {
        node: disk(builder, name, "vtoc", physical(0), 1_000_000),
        start: Bytes(0),
    });
    let stripe = builder.node(name);
    builder.kind(stripe, Kind::Stripe, &FROM);
    builder.fact(stripe, keys::MANAGER, "svm", &FROM);
    builder.size(stripe, sectors(4_000_000), &FROM);
    let chunks = Chunks {
        chunk: Bytes(chunk),
        members: members.to_vec(),
        parity: 0,
        copies: 1,
        layout: None,
    };
    builder.place(stripe, Placing::Chunks(chunks), &FROM);
    stripe
}

/// Once: "1 MiB" in the text and `-i 16k` in the command.
#[test]
fn a_narrow_stripe_is_made_again_with_the_chunk_that_is_named() {
    let mut builder = Builder::default();
    stripe(&mut builder, "d10", 16 << 10);
    let stack = builder.finish();
    let found = finding(&stack, Some(Bytes(8192)), RuleId::NarrowStripe, "d10");
    assert!(found.recommended().is_none(), "it destroys the data");
    assert!(found.fix.is_empty());
    let [
        Remedy {
            actions,
            class,
            keeps_data,
            first,
            ..
        },
    ] = found.remedies.as_slice()
    else {
        panic!("one remedy: {:?}", found.remedies);
    };
    assert_eq!(*class, Class::Proven { rests_on: None });
    assert!(!keeps_data);
    assert_eq!(
        *first,
        [Precondition::Backup {
            device: "d10".to_owned()
        }]
    );
    let [
        Action::RecreateStripe {
            manager,
            chunk_bytes,
            members,
            ..
        },
    ] = actions.as_slice()
    else {
        panic!("{actions:?}");
    };
    assert_eq!(
        (*manager, *chunk_bytes, members.len()),
        (Manager::Svm, Bytes(1 << 20), 4)
    );
    let after = apply(&stack, actions).expect("modelled").stack;
    assert_eq!(chunk(&after, find(&stack, "d10")), Some(Bytes(1 << 20)));
    let plan = plumb_plan::for_finding::answers(&stack, &found, &plumb_plan::Wishes::default());
    let plan = &plan[0].as_ref().expect("a plan").plan;
    assert!(
        plan.remedies[0].steps[0].command.ends_with("-i 1024k"),
        "{:?}",
        plan.remedies
    );
    assert!(
        found
            .advice
            .iter()
            .any(|one| matches!(one, Advice::NoneKeepsData { .. }))
    );
}

/// Once: a stripe with the same interlace, and all data lost. The partition on it starts 63 sectors into a chunk: it moves.
#[test]
fn split_io_is_remedied_by_a_start_on_the_chunk() {
    let mut builder = Builder::default();
    let md = builder.node("md0");
    builder.kind(md, Kind::Stripe, &FROM);
    builder.fact(md, keys::MANAGER, "md", &FROM);
    builder.fact(md, keys::LABEL, "gpt", &FROM);
    builder.fact(md, keys::LABEL_BLOCK, Bytes(512), &FROM);
    builder.size(md, sectors(2_000_000), &FROM);
    let members = ["sda", "sdb"].map(|name| Member {
        node: disk(&mut builder, name, "none", physical(0), 1_000_000),
        start: Bytes(0),
    });
    let chunks = Chunks {
        chunk: Bytes(64 << 10),
        members: members.to_vec(),
        parity: 0,
        copies: 1,
        layout: None,
    };
    builder.place(md, Placing::Chunks(chunks), &FROM);
    // On a block of 4 KiB, so that nothing but the chunk is wrong.
    let part = cut(&mut builder, "md0p1", Kind::Partition, md, 72, 500_000);
    builder.size(part, sectors(500_000), &FROM);
    builder.fact(part, keys::PARTITION_NUMBER, 1u64, &FROM);
    let stack = builder.finish();
    let found = finding(&stack, Some(Bytes(16 << 10)), RuleId::SplitIo, "md0p1");
    let remedy = found.recommended().expect("a remedy");
    assert_eq!(remedy.class, Class::Proven { rests_on: None });
    let [Action::Move { to_bytes, .. }] = remedy.actions.as_slice() else {
        panic!("{:?}", remedy.actions);
    };
    assert_eq!(
        *to_bytes,
        sectors(128),
        "the next multiple of 64 KiB behind sector 72"
    );
}

/// Earlier: a shift of the partition by 3 KiB for a file that is off by 2 KiB, and for blocks of 1 KiB, with 444,786 of
/// 444,787 still off the unit.
#[test]
fn no_start_of_a_partition_remedies_the_blocks_of_a_file() {
    let mut builder = Builder::default();
    let sda = disk(&mut builder, "sda", "gpt", physical(0), 4_000_000);
    builder.fact(sda, keys::LABEL_BLOCK, Bytes(512), &FROM);
    let part = cut(&mut builder, "sda1", Kind::Partition, sda, 2050, 1_000_000);
    builder.size(part, sectors(1_000_000), &FROM);
    builder.fact(part, keys::PARTITION_NUMBER, 1u64, &FROM);
    let file = builder.node("/srv/db");
    builder.kind(file, Kind::File, &FROM);
    // Extents in blocks of 1 KiB: 1, 2 and 3 KiB past a block of the disk where the partition would be on one.
    let runs = [(0, 2050, 2), (2, 4100, 4), (6, 8214, 2)];
    let parts = runs.map(|(upper, start, len)| Part {
        upper: sectors(upper),
        node: part,
        start: sectors(start),
        len: Some(sectors(len)),
    });
    builder.place(
        file,
        Placing::Parts {
            parts: parts.to_vec(),
        },
        &FROM,
    );
    let stack = builder.finish();
    let found = finding(&stack, None, RuleId::MisalignedPartition, "/srv/db");
    assert!(found.recommended().is_none(), "{:?}", found.remedies);
    assert!(found.fix.is_empty());
    let obstacle = found.advice.iter().find_map(|one| match one {
        Advice::NoRemedy {
            device, obstacle, ..
        } => Some((device.as_str(), obstacle)),
        _ => None,
    });
    assert_eq!(obstacle, Some(("sda1", &Obstacle::Remains)));
}

/// A slice with soft partitions: name, first sector, sectors.
fn soft(parts: &[(&str, u64, u64)]) -> Builder {
    let mut builder = Builder::default();
    let disk = disk(&mut builder, "c1t0d0", "efi", physical(0), 4_000_000);
    let slice = cut(
        &mut builder,
        "c1t0d0s0",
        Kind::Partition,
        disk,
        2048,
        2_000_000,
    );
    builder.size(slice, sectors(2_000_000), &FROM);
    builder.fact(slice, keys::SLICE, 0u64, &FROM);
    for (name, start, len) in parts {
        let part = cut(&mut builder, name, Kind::SoftPartition, slice, *start, *len);
        builder.fact(part, keys::MANAGER, "svm", &FROM);
    }
    builder
}

/// Once: one misplaced soft partition, and its well-placed neighbours were written again.
#[test]
fn well_placed_neighbours_stay() {
    let stack = soft(&[
        ("d93", 8, 79_992),
        ("d94", 80_001, 79_999),
        ("d95", 160_008, 80_000),
    ])
    .finish();
    let found = finding(&stack, None, RuleId::MisalignedPartition, "d94");
    let remedy = found.recommended().expect("a remedy that keeps the data");
    assert!(remedy.keeps_data && remedy.is_reversible);
    let [Action::CopySoftPartition { change, .. }] = remedy.actions.as_slice() else {
        panic!("{:?}", remedy.actions);
    };
    assert_eq!(change.volume.device, "d94");
    assert_eq!(change.from, [extent(80_001, 79_999)]);
    // Behind d95, which ends at 240,008, and its header: the next multiple of 8 sectors.
    assert_eq!(change.to, [extent(240_016, 79_999)]);
    let named = |name: &str| found.fix.iter().any(|fix| fix.command.contains(name));
    assert!(
        named("d94") && !named("d93") && !named("d95"),
        "{:?}",
        found.fix
    );
    let after = apply(&stack, &remedy.actions).expect("modelled").stack;
    assert_eq!(past(&after, "d94", 4096), [0]);
    for neighbour in ["d93", "d95"] {
        let id = find(&stack, neighbour);
        assert_eq!(after.node(id).placing, stack.node(id).placing);
    }
}

/// Earlier: `metaclear d94` while d151 is above it.
#[test]
fn a_volume_that_others_use_is_not_cleared_under_them() {
    let mut builder = soft(&[("d93", 8, 79_992), ("d94", 80_001, 79_999)]);
    let d94 = builder.find("d94").expect("named");
    let user = cut(&mut builder, "d151", Kind::Concat, d94, 0, 79_999);
    builder.fact(user, keys::MANAGER, "svm", &FROM);
    let stack = builder.finish();
    let found = finding(&stack, None, RuleId::MisalignedPartition, "d151");
    assert!(found.recommended().is_none() && found.fix.is_empty());
    let [remedy] = found.remedies.as_slice() else {
        panic!("{:?}", found.remedies);
    };
    assert!(!remedy.keeps_data);
    let first = Precondition::Release {
        volume: "d151".to_owned(),
    };
    assert_eq!(remedy.first.first(), Some(&first));
    let request = of_stack::softpart(&stack, find(&stack, "c1t0d0s0"), None).expect("a request");
    let plan = softpart::plan(&request).expect("a plan");
    let commands = plan.remedies.last().expect("a way").steps.iter();
    let commands: Vec<&str> = commands.map(|step| step.command.as_str()).collect();
    let at = |command: &str| commands.iter().position(|one| *one == command);
    assert!(
        at("metaclear d151").expect("it") < at("metaclear d94").expect("it"),
        "{commands:?}"
    );
}

/// Once: a label was asked for, although offsets on the component are known.
#[test]
fn soft_partitions_are_planned_without_a_label() {
    let mut builder = Builder::default();
    let slice = builder.node("c3t8d0s0");
    let d57 = cut(&mut builder, "d57", Kind::SoftPartition, slice, 1, 8192);
    builder.fact(d57, keys::MANAGER, "svm", &FROM);
    let stack = builder.finish();
    let request = of_stack::softpart(&stack, slice_of(&stack), Some(Bytes(64 << 10)));
    let placed = softpart::place(&request.expect("a request")).expect("places");
    assert_eq!(placed[0].offset, 128, "64 KiB of the component");
}

fn slice_of(stack: &Stack) -> NodeId {
    find(stack, "c3t8d0s0")
}

/// Once: "4 KiB" in the plan and 8192 in the command.
#[test]
fn a_record_of_ufs_is_the_one_that_is_named() {
    let plan = record::plan(&record::RecordRequest {
        load: record::Load::Page(Bytes(2048)),
        keeper: record::Keeper::Ufs,
        name: "/dev/rdsk/c0t0d0s6".to_owned(),
        current: None,
    });
    let plan = plan.expect("a plan");
    assert_eq!(
        plan.value("record_bytes"),
        Some(&plumb_plan::Value::Count(4096))
    );
    let steps = plan.remedies.iter().flat_map(|remedy| &remedy.steps);
    let made: Vec<&str> = steps
        .map(|step| step.command.as_str())
        .filter(|command| command.starts_with("newfs"))
        .collect();
    insta::assert_snapshot!(made.join("\n"));
}

/// Once: commands of Solaris for a host of Linux whose partitions have the types of ZFS.
#[test]
fn partition_types_of_zfs_make_no_solaris() {
    let mut builder = Builder::default();
    let sda = disk(&mut builder, "sda", "efi", physical(0), 4_000_000);
    builder.fact(sda, keys::LABEL_BLOCK, Bytes(512), &FROM);
    let part = cut(&mut builder, "sda1", Kind::Partition, sda, 63, 1_000_000);
    builder.size(part, sectors(1_000_000), &FROM);
    builder.fact(part, keys::PARTITION_NUMBER, 1u64, &FROM);
    let host = builder.host();
    builder.fact(host, keys::SYSTEM, "linux", &FROM);
    let stack = builder.finish();
    let found = finding(&stack, None, RuleId::MisalignedPartition, "sda1");
    let remedy = found.recommended().expect("a remedy");
    assert!(matches!(remedy.actions.as_slice(), [Action::Move { .. }]));
    let commands: Vec<&str> = found.fix.iter().map(|fix| &*fix.command).collect();
    insta::assert_snapshot!(commands.join("\n"));
}

/// While the unit is assumed, starts are planned on 1 MiB, else on the widest half of it that leaves room.
#[test]
fn starts_on_an_assumed_unit_are_wide() {
    // First free sector behind the partition, and the start: 63 sectors to the neighbour leave no room for 2,048.
    for (next, start) in [
        (500_000, 2048),
        (101_600, 1024),
        (100_600, 512),
        (100_160, 128),
    ] {
        let mut builder = Builder::default();
        let sda = builder.node("sda");
        builder.kind(sda, Kind::Disk, &FROM);
        builder.size(sda, sectors(4_000_000), &FROM);
        builder.fact(sda, keys::LABEL, "gpt", &FROM);
        builder.fact(sda, keys::LABEL_BLOCK, Bytes(512), &FROM);
        let part = cut(&mut builder, "sda1", Kind::Partition, sda, 63, 100_000);
        builder.size(part, sectors(100_000), &FROM);
        builder.fact(part, keys::PARTITION_NUMBER, 1u64, &FROM);
        cut(&mut builder, "sda2", Kind::Partition, sda, next, 4096);
        let stack = builder.finish();
        let request = of_stack::partition(&stack, find(&stack, "sda1")).expect("a request");
        let plan = partition::plan(&request).expect("a plan");
        let value = plan.value("start_bytes");
        assert_eq!(
            value,
            Some(&plumb_plan::Value::Count(start * SECTOR)),
            "{next}"
        );
        let assumed = plan.assumed_start.expect("nothing states the unit");
        assert_eq!(assumed.is_reduced, start != 2048);
        assert!((start * SECTOR).is_multiple_of(assumed.planned_bytes.0));
        assert_eq!(request.label, LabelScheme::Gpt);
    }
}
