//! A partition among its neighbours: the request, and the possible ways.

use plumb_geometry::{Bytes, Grid};
use plumb_model::{PlanKind, RuleId};
use plumb_plan::partition::{Content, LabelScheme, layout};
use plumb_plan::{Harm, PlanError, Remedy, of_stack, partition};
use plumb_stack::node::keys;
use plumb_stack::{Builder, CellKind, Chunks, GridFact, Kind, Member, NodeId, Placing};

use crate::stack::{FROM, cut, disk, find, physical, sectors};

/// A partition at 63 on a disk whose first aligned block is 7, with a volume group on it.
#[test]
fn a_partition_is_planned_with_the_grid_and_the_neighbours_of_its_disk() {
    let mut builder = Builder::default();
    let sda = disk(&mut builder, "sda", "gpt", physical(3584), 100_000);
    let part = cut(&mut builder, "sda1", Kind::Partition, sda, 63, 1_000);
    builder.fact(part, keys::PARTITION_NUMBER, 1_u64, &FROM);
    cut(&mut builder, "sda2", Kind::Partition, sda, 2_000, 5_000);
    cut(&mut builder, "sda3", Kind::Partition, sda, 7_000, 5_000);
    let volume = cut(
        &mut builder,
        "vg0/data",
        Kind::LogicalVolume,
        part,
        200,
        400,
    );
    builder.fact(volume, keys::MANAGER, "lvm", &FROM);
    let stack = builder.finish();
    let request = of_stack::partition(&stack, find(&stack, "sda1")).expect("a request");
    assert_eq!(request.label, LabelScheme::Gpt);
    assert_eq!((request.device.as_str(), request.number), ("/dev/sda", 1));
    assert_eq!(
        (request.current, request.before),
        (Some(sectors(63)), Some(sectors(2_000)))
    );
    assert_eq!(
        request.content,
        Some(Content::Lvm {
            group: "vg0".to_owned()
        })
    );
    // 63 is on the grid moved by 7: 63 = 7 + 7 × 8. So it stays where it is, and nothing has to be done.
    assert_eq!(layout(&request).expect("a layout").start, sectors(63));
    assert!(
        partition::plan(&request)
            .expect("a plan")
            .remedies
            .is_empty()
    );
}

#[test]
fn ways_come_in_the_order_of_harm() {
    let mut builder = Builder::default();
    let sda = disk(&mut builder, "sda", "gpt", physical(0), 100_000);
    let part = cut(&mut builder, "sda1", Kind::Partition, sda, 63, 1_000);
    builder.fact(part, keys::PARTITION_NUMBER, 1_u64, &FROM);
    let volume = cut(
        &mut builder,
        "vg0/data",
        Kind::LogicalVolume,
        part,
        200,
        400,
    );
    builder.fact(volume, keys::MANAGER, "lvm", &FROM);
    let stack = builder.finish();
    let request = of_stack::partition(&stack, find(&stack, "sda1")).expect("a request");
    let plan = partition::plan(&request).expect("a plan");
    let harms: Vec<Harm> = plan.remedies.iter().map(|way| way.harm).collect();
    assert!(harms.is_sorted(), "{harms:?}");
    assert_eq!(
        (harms.first(), harms.last()),
        (Some(&Harm::Online), Some(&Harm::Shift))
    );
    let steps = plan.remedies[0].steps.iter();
    let commands: Vec<&str> = steps.map(|step| step.command.as_str()).collect();
    insta::assert_snapshot!(commands.join("\n"));
    // 63 is 7 sectors past the grid, so the first extent has to begin one sector further than a multiple of it.
    let later = plan
        .remedies
        .iter()
        .flat_map(|way| &way.steps)
        .find(|step| step.command.starts_with("pvcreate --data"));
    let later = &later.expect("a way to begin later").command;
    assert!(later.contains("--dataalignmentoffset 512b"), "{later}");
    assert_eq!((63 + 1) % 8, 0);
    assert_eq!(plan.nodes.expect("its nodes").names, ["/dev/sda1"]);
}

/// A partition at 34 that ends at the start of the next one. The way depends on its content.
#[test]
fn partitions_without_room_behind_them() {
    let planned = |content: Option<&str>, mount: Option<&str>, next: u64| {
        let mut builder = Builder::default();
        let sda = disk(&mut builder, "sda", "gpt", physical(0), 1_000_000);
        let part = cut(&mut builder, "sda1", Kind::Partition, sda, 34, 10_000);
        builder.fact(part, keys::PARTITION_NUMBER, 1_u64, &FROM);
        cut(&mut builder, "sda2", Kind::Partition, sda, next, 5_000);
        if content == Some("lvm") {
            let volume = cut(
                &mut builder,
                "vg0/data",
                Kind::LogicalVolume,
                part,
                2_048,
                4_096,
            );
            builder.fact(volume, keys::MANAGER, "lvm", &FROM);
        } else if let Some(content) = content {
            let file_system = cut(&mut builder, "data", Kind::FileSystem, part, 0, 10_000);
            builder.fact(file_system, keys::CONTENT, content, &FROM);
            if let Some(mount) = mount {
                builder.fact(file_system, keys::MOUNT, mount, &FROM);
            }
        }
        let stack = builder.finish();
        let wishes = plumb_plan::Wishes::default();
        plumb_plan::for_finding(&stack, PlanKind::Start, part, &wishes).map(|answer| answer.plan)
    };
    let commands = |plan: &plumb_plan::Plan| {
        let ways = plan
            .remedies
            .iter()
            .filter(|way| matches!(way.harm, Harm::Move | Harm::Shift));
        let commands = |way: &Remedy| {
            way.steps
                .iter()
                .map(|step| step.command.clone())
                .collect::<Vec<_>>()
        };
        ways.map(commands).collect::<Vec<_>>()
    };
    // 34 goes to 40, and 40 to 10,034 has room for 1,249 whole 4 KiB: 9,992 sectors.
    let ext4 = planned(Some("ext4"), None, 10_034).expect("a plan");
    assert_eq!(
        ext4.value("len_sectors"),
        Some(&plumb_plan::Value::Count(9_992))
    );
    let [by_plumb, by_sfdisk] = &commands(&ext4)[..] else {
        panic!("{:?}", ext4.remedies)
    };
    let smaller = [
        "umount /dev/sda1; e2fsck -f /dev/sda1",
        "resize2fs /dev/sda1 9992s",
        "echo 'start=34, size=9992' | sfdisk -N 1 /dev/sda",
    ];
    let moved = [
        "plumb fix move /dev/sda1 --to 40s",
        "plumb fix move /dev/sda1 --to 40s --yes sda1",
    ];
    assert_eq!(by_plumb[1..4], smaller);
    assert_eq!(by_plumb[4..6], moved);
    assert_eq!(by_sfdisk[1..4], smaller);
    let btrfs = planned(Some("btrfs"), Some("/srv"), 10_034).expect("a plan");
    // btrfs counts in bytes: 9,992 × 512 = 5,115,904.
    let mut texts = vec![by_sfdisk[4].to_string(), commands(&btrfs)[0][1].to_string()];
    for (content, why) in [
        (Some("xfs"), "XFS cannot be made smaller"),
        (None, "its content is not known"),
    ] {
        let plan = planned(content, None, 10_034).expect("a plan");
        assert!(commands(&plan).is_empty(), "nothing is moved in place");
        assert!(
            plan.notes.iter().any(|note| note.contains(why)),
            "{:?}",
            plan.notes
        );
        let all = plan.remedies.iter().all(|way| {
            way.constraints
                .iter()
                .any(|words| words.contains("becomes smaller"))
        });
        assert!(
            !plan.remedies.is_empty() && all,
            "made anew it is smaller too"
        );
    }
    // Swap has no data, and is recreated like unknown content.
    let swap = planned(Some("swap"), None, 10_034).expect("a plan");
    texts.extend_from_slice(&swap.notes);
    let lvm = planned(Some("lvm"), None, 10_034).expect("a plan");
    texts.extend_from_slice(&lvm.notes);
    insta::assert_snapshot!(texts.join("\n\n"));
    assert_eq!(lvm.remedies[0].harm, Harm::Online, "pvmove needs no room");
    // A neighbour within it is no want of room: they overlap, and nothing is planned.
    let refused = planned(Some("ext4"), None, 5_000);
    assert!(
        matches!(&refused, Err(PlanError::Conflict { .. })),
        "{refused:?}"
    );
    // With room behind it nothing becomes smaller.
    let room = planned(Some("xfs"), None, 11_000).expect("a plan");
    assert_eq!(
        room.value("len_sectors"),
        Some(&plumb_plan::Value::Count(10_000))
    );
    let steps: Vec<usize> = commands(&room).iter().map(Vec::len).collect();
    assert_eq!(steps, [3, 3], "by Plumb and by sfdisk");
}

/// Findings lead to the layer that can be fixed, at any distance below their node.
#[test]
fn findings_lead_to_plans() {
    let mut builder = Builder::default();
    let sda = disk(&mut builder, "sda", "gpt", physical(0), 100_000);
    let part = cut(&mut builder, "sda1", Kind::Partition, sda, 63, 1_000);
    builder.fact(part, keys::PARTITION_NUMBER, 1_u64, &FROM);
    let volume = cut(
        &mut builder,
        "vg0/data",
        Kind::LogicalVolume,
        part,
        200,
        400,
    );
    let members: Vec<Member> = ["sdb", "sdc"]
        .map(|name| Member {
            node: disk(&mut builder, name, "gpt", physical(0), 100_000),
            start: Bytes(0),
        })
        .to_vec();
    let unit = Grid::unit(Bytes(48 << 10)).expect("a grid");
    builder.grid(
        members[0].node,
        GridFact::believed(unit, CellKind::ArrayUnit, FROM),
    );
    let stripe = builder.node("d10");
    builder.fact(stripe, keys::MANAGER, "svm", &FROM);
    let chunks = Chunks {
        chunk: Bytes(32 << 10),
        members,
        parity: 0,
        copies: 1,
        layout: None,
    };
    builder.place(stripe, Placing::Chunks(chunks), &FROM);
    let data = builder.node("tank/db");
    builder.fact(data, keys::RECORD_SIZE, Bytes(131_072), &FROM);
    let stack = builder.finish();
    let wishes = plumb_plan::Wishes {
        page: Some(Bytes(8192)),
        ..Default::default()
    };
    let plan = |finding: &str, node: NodeId| {
        let rule = RuleId::from_name(finding).expect("a rule").rule();
        let kind = rule.plan.expect("has plans");
        plumb_plan::for_finding(&stack, kind, node, &wishes).expect("a plan")
    };
    let start = plan("misaligned-partition", volume);
    assert_eq!(start.changes, part, "not the volume that is off");
    let start = start.plan;
    assert_eq!(
        start.value("start_sectors"),
        Some(&plumb_plan::Value::Count(64))
    );
    // 32 KiB are no whole segment of 48 KiB; 816 KiB = 17 × 48 KiB is the first with 1 % or less.
    let stripe = plan("stripe-segment-mismatch", stripe).plan;
    assert_eq!(
        stripe.value("chunk_bytes"),
        Some(&plumb_plan::Value::Count(816 << 10))
    );
    assert!(
        stripe.remedies[0].steps[0]
            .command
            .ends_with("1 2 sdb sdc -i 816k"),
        "{:?}",
        stripe.remedies
    );
    let record = plan("record-mismatch", data).plan;
    assert_eq!(
        record.value("record_bytes"),
        Some(&plumb_plan::Value::Count(8192))
    );
    assert_eq!(RuleId::ReadPolicy.rule().plan, None);
    let unknown = plumb_plan::for_finding(&stack, PlanKind::Start, sda, &wishes);
    assert!(unknown.is_err(), "a whole disk has no start to choose");
}
