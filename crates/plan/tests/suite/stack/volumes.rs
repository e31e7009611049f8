//! Soft partitions, stripes and file systems above partitions.

use plumb_geometry::{Bytes, Grid};
use plumb_plan::partition::Content;
use plumb_plan::softpart::place;
use plumb_plan::{Harm, filesystem, of_stack, softpart};
use plumb_stack::node::keys;
use plumb_stack::{Builder, CellKind, Chunks, GridFact, Kind, Member, Part, Placing};

use crate::stack::{FROM, cut, disk, find, physical, sectors};

/// As on a real Solaris host: slice at 5,778, two sectors off 4 KiB, soft partitions packed behind their headers, each
/// one side of a mirror.
#[test]
fn soft_partitions_make_up_for_the_start_of_their_slice() {
    let mut builder = Builder::default();
    let disk = disk(&mut builder, "c3t8d0", "vtoc", physical(0), 80_000_000);
    let slice = cut(
        &mut builder,
        "c3t8d0s0",
        Kind::Partition,
        disk,
        5_778,
        71_121_402,
    );
    for (mirror, side, name, at, len) in [
        ("d55", "d56", "d57", 1, 8_388_608),
        ("d70", "d71", "d72", 8_388_610, 12_582_912),
    ] {
        let part = cut(&mut builder, name, Kind::SoftPartition, slice, at, len);
        let side = cut(&mut builder, side, Kind::Concat, part, 0, len);
        let node = builder.node(mirror);
        builder.kind(node, Kind::Mirror, &FROM);
        let members = vec![Member {
            node: side,
            start: Bytes(0),
        }];
        builder.place(node, Placing::Copies { members }, &FROM);
    }
    let stack = builder.finish();
    let request = of_stack::softpart(&stack, find(&stack, "c3t8d0s0"), None).expect("a request");
    assert_eq!(
        (request.unit, request.base),
        (Bytes(4096), sectors(5_778 % 8))
    );
    let placed = place(&request).expect("places");
    for one in &placed {
        assert_eq!(
            (5_778 + one.offset) % 8,
            0,
            "{} at {}",
            one.name,
            one.offset
        );
        assert_ne!(
            one.past_now,
            Some(0),
            "5,778 + 1 and 5,778 + 8,388,610 are odd to 8"
        );
    }
    // By hand: 6 is the first offset that makes 5,778 a multiple of 8; 6 + 8,388,608 + 1 = 8,388,615 → 8,388,622.
    assert_eq!(
        placed.iter().map(|one| one.offset).collect::<Vec<_>>(),
        [6, 8_388_622]
    );
    assert_eq!((5_778 + 8_388_622) % 8, 0);

    let plan = softpart::plan(&request).expect("a plan");
    let online = &plan.remedies[0];
    assert_eq!(online.harm, Harm::Online);
    let commands: Vec<&str> = online
        .steps
        .iter()
        .map(|step| step.command.as_str())
        .collect();
    insta::assert_snapshot!(commands.join("\n") + "\n\n" + &online.steps[2].undo);
}

/// Without a label the start of the slice is unknown, and no offset is made up.
#[test]
fn soft_partitions_of_an_unknown_slice_are_planned_on_the_slice() {
    let mut builder = Builder::default();
    let slice = builder.node("c3t8d0s0");
    builder.place(
        slice,
        Placing::Unknown {
            members: Vec::new(),
            why: plumb_stack::Obstacle::NoLabel {
                disk: "c3t8d0".to_owned(),
            },
        },
        &FROM,
    );
    cut(
        &mut builder,
        "d57",
        Kind::SoftPartition,
        slice,
        1,
        8_388_608,
    );
    let stack = builder.finish();
    let request = of_stack::softpart(&stack, find(&stack, "c3t8d0s0"), None).expect("a request");
    assert_eq!((request.unit, request.base), (Bytes(4096), Bytes(0)));
    assert!(request.is_unit_assumed);
    let placed = softpart::place(&request).expect("places");
    assert_eq!(placed[0].offset, 8, "sectors of the component");
}

/// Gaps stay where there is room for them, and are given up before an extent would end beyond the component.
#[test]
fn gaps_are_kept_as_long_as_there_is_room() {
    let one = |name: &str, at, size| softpart::SoftPartition {
        name: name.to_owned(),
        extents: vec![(at, size)],
        mirror: None,
        users: Vec::new(),
    };
    let mut request = softpart::SoftpartRequest {
        component: "c1t0d0s0".to_owned(),
        unit: Bytes(4096),
        is_unit_assumed: false,
        off_below: None,
        base: Bytes(0),
        component_bytes: Some(sectors(1_000)),
        existing: vec![one("d1", 1, 80), one("d2", 901, 90)],
        new: Vec::new(),
    };
    let offsets = |request: &softpart::SoftpartRequest| {
        place(request)
            .expect("places")
            .iter()
            .map(|one| one.offset)
            .collect::<Vec<_>>()
    };
    assert_eq!(offsets(&request), [8, 904]);
    request.component_bytes = Some(sectors(992));
    assert_eq!(
        offsets(&request),
        [8, 96],
        "904 + 90 is more than 992, so the gap goes: 8 + 80 + 1 = 89 → 96"
    );
    assert!(
        !softpart::plan(&request)
            .expect("a plan")
            .remedies
            .is_empty()
    );
    // From 8 and 96 on, the second one would end at 194.
    request.existing[1] = one("d2", 82, 98);
    request.component_bytes = Some(sectors(180));
    let plan = softpart::plan(&request).expect("a plan");
    assert!(
        plan.remedies.is_empty(),
        "no commands for what does not fit"
    );
    assert!(
        plan.refusal
            .as_ref()
            .is_some_and(|why| why.contains("14 sectors beyond")),
        "{:?}",
        plan.refusal
    );
    // From 8 and 128 on it would end at 226, from 96 on at 194.
    request.existing[1] = one("d2", 121, 59 + 39);
    request.component_bytes = Some(sectors(219));
    assert_eq!(offsets(&request), [8, 96]);
    request.component_bytes = Some(sectors(180));
    let refusal = softpart::plan(&request)
        .expect("a plan")
        .refusal
        .expect("why");
    insta::assert_snapshot!(refusal);
}

#[test]
fn mkfs_gets_the_true_stripe() {
    let mut builder = Builder::default();
    let members: Vec<Member> = ["sda", "sdb", "sdc"]
        .map(|name| Member {
            node: disk(&mut builder, name, "gpt", physical(0), 100_000),
            start: Bytes(0),
        })
        .to_vec();
    let array = builder.node("md0");
    builder.kind(array, Kind::ParityRaid, &FROM);
    let chunks = Chunks {
        chunk: Bytes(64 << 10),
        members,
        parity: 1,
        copies: 1,
        layout: None,
    };
    builder.place(array, Placing::Chunks(chunks), &FROM);
    // The kernel's value for three disks that state 512 KiB: the least common multiple.
    let hint = Grid::unit(Bytes(524_288)).expect("a grid");
    builder.grid(array, GridFact::believed(hint, CellKind::OptimalIo, FROM));
    // Mounted, and not.
    for name in ["/srv/data", "ext4 on md0"] {
        let node = builder.node(name);
        builder.kind(node, Kind::FileSystem, &FROM);
        let part = Part {
            upper: Bytes(0),
            node: array,
            start: Bytes(0),
            len: None,
        };
        builder.place(node, Placing::Parts { parts: vec![part] }, &FROM);
    }
    let stack = builder.finish();
    for name in ["md0", "/srv/data", "ext4 on md0"] {
        let request = of_stack::filesystem(&stack, find(&stack, name), filesystem::Type::Ext4)
            .expect("a request");
        let plan = filesystem::plan(&request).expect("a plan");
        let commands: Vec<&str> = plan
            .remedies
            .iter()
            .flat_map(|way| &way.steps)
            .map(|s| s.command.as_str())
            .collect();
        let make = "mkfs.ext4 -b 4096 -E stride=16,stripe_width=32 /dev/md0";
        assert!(commands.contains(&make), "{name}: {commands:?}");
    }
}

/// An array has another number after the next boot, perhaps, and the name that it was made with all the same.
#[test]
fn arrays_go_by_the_name_that_lasts() {
    for (aliases, host, expected) in [
        (
            &["disk/by-id/md-name-h:data", "md/data"][..],
            None,
            "/dev/md/data",
        ),
        (&["md/data"], Some("kvm3"), "/dev/md/data"),
        (&["disk/by-id/md-uuid-1"], None, "/dev/md127"),
    ] {
        let mut builder = Builder::default();
        let sda = disk(&mut builder, "sda", "gpt", physical(0), 100_000);
        let part = cut(&mut builder, "sda1", Kind::Partition, sda, 63, 1_000);
        builder.fact(part, keys::PARTITION_NUMBER, 1_u64, &FROM);
        let array = builder.node("md127");
        builder.fact(array, keys::MANAGER, "md", &FROM);
        let member = Member {
            node: part,
            start: sectors(8),
        };
        let members = vec![member, member];
        let chunks = Chunks {
            chunk: Bytes(65_536),
            members,
            parity: 0,
            copies: 2,
            layout: None,
        };
        builder.place(array, Placing::Chunks(chunks), &FROM);
        for alias in aliases {
            assert!(builder.alias(array, alias));
        }
        let mut all = Builder::default();
        let name = |name: &str| host.map_or(name.to_owned(), |host: &str| format!("{host}:{name}"));
        match host {
            Some(host) => all.absorb(builder, host),
            None => all = builder,
        }
        let stack = all.finish();
        let request = of_stack::partition(&stack, find(&stack, &name("sda1"))).expect("a request");
        assert_eq!(
            request.content,
            Some(Content::Md {
                array: expected.to_owned()
            })
        );
        let ext4 =
            of_stack::filesystem(&stack, find(&stack, &name("md127")), filesystem::Type::Ext4);
        assert_eq!(ext4.expect("a request").device, expected);
    }
}
