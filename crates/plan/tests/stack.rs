//! Requests filled in from a stack.

use plumb_geometry::{Bytes, Grid, GridKind, SECTOR};
use plumb_plan::partition::{Content, Label, layout};
use plumb_plan::softpart::place;
use plumb_plan::{Harm, PlanError, Wishes, filesystem, of_stack, partition, softpart};
use plumb_stack::node::{Problem, keys};
use plumb_stack::problem_ids as ids;
use plumb_stack::{Builder, Chunks, GridFact, Kind, Member, NodeId, Part, Placing, Source, Stack, What};

const FROM: Source = Source::User;

fn sectors(count: u64) -> Bytes {
    Bytes(count * SECTOR)
}

fn disk(builder: &mut Builder, name: &str, label: &str, physical: Grid, size: u64) -> NodeId {
    let disk = builder.node(name);
    builder.kind(disk, Kind::Disk, &FROM);
    builder.size(disk, sectors(size), &FROM);
    builder.fact(disk, keys::LABEL, label, &FROM);
    builder.grid(disk, GridFact::believed(physical, What::PhysicalBlock, FROM));
    disk
}

fn cut(builder: &mut Builder, name: &str, kind: Kind, on: NodeId, start: u64, len: u64) -> NodeId {
    let node = builder.node(name);
    builder.kind(node, kind, &FROM);
    let part = Part { upper: Bytes(0), node: on, start: sectors(start), len: Some(sectors(len)) };
    builder.place(node, Placing::Parts { parts: vec![part] }, &FROM);
    node
}

fn physical(offset: u64) -> Grid {
    Grid::new(Bytes(4096), Bytes(offset), GridKind::Unit).expect("a grid")
}

fn find(stack: &Stack, name: &str) -> NodeId {
    stack.find(name).expect("a node of that name")
}

/// A partition at 63 on a disk whose first aligned block is 7, with a volume group on it.
#[test]
fn a_partition_is_planned_with_the_grid_and_the_neighbours_of_its_disk() {
    let mut builder = Builder::default();
    let sda = disk(&mut builder, "sda", "gpt", physical(3584), 100_000);
    let part = cut(&mut builder, "sda1", Kind::Partition, sda, 63, 1_000);
    builder.fact(part, keys::PARTITION_NUMBER, "1", &FROM);
    cut(&mut builder, "sda2", Kind::Partition, sda, 2_000, 5_000);
    cut(&mut builder, "sda3", Kind::Partition, sda, 7_000, 5_000);
    let volume = cut(&mut builder, "vg0/data", Kind::LogicalVolume, part, 200, 400);
    builder.fact(volume, keys::MANAGER, "lvm", &FROM);
    let stack = builder.finish();
    let request = of_stack::partition(&stack, find(&stack, "sda1")).expect("a request");
    assert_eq!(request.label, Label::Gpt);
    assert_eq!((request.device.as_str(), request.number), ("/dev/sda", 1));
    assert_eq!((request.current, request.before), (Some(sectors(63)), Some(sectors(2_000))));
    assert_eq!(request.content, Some(Content::Lvm { group: "vg0".to_owned() }));
    // 63 is on the grid moved by 7: 63 = 7 + 7 × 8. So it stays where it is, and nothing has to be done.
    assert_eq!(layout(&request).expect("a layout").start, sectors(63));
    assert!(partition::plan(&request).expect("a plan").remedies.is_empty());
}

/// A tool for labels writes every entry anew, so one that is wrong of any partition is in the way of all.
#[test]
fn a_label_that_has_a_problem_is_not_written() {
    for (about, id) in
        [("sda", ids::BROKEN_LABEL), ("sda2", ids::OVERLAPPING_PARTITIONS), ("sda2", ids::BEYOND_DEVICE)]
    {
        let mut builder = Builder::default();
        let sda = disk(&mut builder, "sda", "gpt", physical(0), 100_000);
        let part = cut(&mut builder, "sda1", Kind::Partition, sda, 63, 1_000);
        builder.fact(part, keys::PARTITION_NUMBER, "1", &FROM);
        cut(&mut builder, "sda2", Kind::Partition, sda, 2_000, 5_000);
        cut(&mut builder, "vg0/data", Kind::LogicalVolume, part, 200, 400);
        let node = Some(builder.node(about));
        builder.problem(Problem { node, id, text: String::new(), source: FROM });
        let stack = builder.finish();
        let why = PlanError::LabelProblem { disk: "sda".to_owned(), problem: id };
        assert_eq!(of_stack::partition(&stack, find(&stack, "sda1")), Err(why.clone()), "{id} of {about}");
        for (finding, node) in [("misaligned-partition", "vg0/data"), ("geometry-mismatch", "vg0/data")] {
            let answer = plumb_plan::for_finding(&stack, finding, find(&stack, node), &Wishes::default());
            assert_eq!(answer, Some(Err(why.clone())), "{finding} of {node}, {id} of {about}");
        }
        assert_eq!(why.to_string(), format!("mend the label of sda first ({id})"));
        assert!(!why.is_usage());
    }
}

#[test]
fn ways_come_in_the_order_of_harm() {
    let mut builder = Builder::default();
    let sda = disk(&mut builder, "sda", "gpt", physical(0), 100_000);
    let part = cut(&mut builder, "sda1", Kind::Partition, sda, 63, 1_000);
    builder.fact(part, keys::PARTITION_NUMBER, "1", &FROM);
    let volume = cut(&mut builder, "vg0/data", Kind::LogicalVolume, part, 200, 400);
    builder.fact(volume, keys::MANAGER, "lvm", &FROM);
    let stack = builder.finish();
    let request = of_stack::partition(&stack, find(&stack, "sda1")).expect("a request");
    let plan = partition::plan(&request).expect("a plan");
    let harms: Vec<Harm> = plan.remedies.iter().map(|way| way.harm).collect();
    assert!(harms.is_sorted(), "{harms:?}");
    assert_eq!((harms.first(), harms.last()), (Some(&Harm::Online), Some(&Harm::Shift)));
    assert!(plan.remedies[0].steps.iter().any(|step| step.command.starts_with("pvmove /dev/sda1 ")));
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

/// As on a real Solaris host: slice at 5,778, two sectors off 4 KiB, soft partitions packed behind their headers, each
/// one side of a mirror.
#[test]
fn soft_partitions_make_up_for_the_start_of_their_slice() {
    let mut builder = Builder::default();
    let disk = disk(&mut builder, "c3t8d0", "vtoc", physical(0), 80_000_000);
    let slice = cut(&mut builder, "c3t8d0s0", Kind::Partition, disk, 5_778, 71_121_402);
    for (mirror, side, name, at, len) in
        [("d55", "d56", "d57", 1, 8_388_608), ("d70", "d71", "d72", 8_388_610, 12_582_912)]
    {
        let part = cut(&mut builder, name, Kind::SoftPartition, slice, at, len);
        let side = cut(&mut builder, side, Kind::Concat, part, 0, len);
        let node = builder.node(mirror);
        builder.kind(node, Kind::Mirror, &FROM);
        let members = vec![Member { node: side, start: Bytes(0) }];
        builder.place(node, Placing::Copies { members }, &FROM);
    }
    let stack = builder.finish();
    let request = of_stack::softpart(&stack, find(&stack, "c3t8d0s0"), None).expect("a request");
    assert_eq!((request.unit, request.base), (Bytes(4096), sectors(5_778 % 8)));
    let placed = place(&request).expect("places");
    for one in &placed {
        assert_eq!((5_778 + one.offset) % 8, 0, "{} at {}", one.name, one.offset);
        assert_ne!(one.past_now, Some(0), "5,778 + 1 and 5,778 + 8,388,610 are odd to 8");
    }
    // By hand: 6 is the first offset that makes 5,778 a multiple of 8; 6 + 8,388,608 + 1 = 8,388,615 → 8,388,622.
    assert_eq!(placed.iter().map(|one| one.offset).collect::<Vec<_>>(), [6, 8_388_622]);
    assert_eq!((5_778 + 8_388_622) % 8, 0);

    let plan = softpart::plan(&request).expect("a plan");
    let online = &plan.remedies[0];
    assert_eq!(online.harm, Harm::Online);
    let commands: Vec<&str> = online.steps.iter().map(|step| step.command.as_str()).collect();
    assert_eq!(
        commands,
        [
            "metastat -p > metastat-p.before",
            "metadetach d70 d71 && metaclear d71 && metaclear d72",
            "metadetach d55 d56 && metaclear d56 && metaclear d57",
            "metainit d57 -p c3t8d0s0 -o 6 -b 8388608",
            "metainit d72 -p c3t8d0s0 -o 8388622 -b 12582912",
            "metainit d56 1 1 d57 && metattach d55 d56",
            "metainit d71 1 1 d72 && metattach d70 d71",
        ]
    );
    assert_eq!(
        online.steps[2].undo,
        "metainit d57 -p c3t8d0s0 -o 1 -b 8388608 && metainit d56 1 1 d57 && metattach d55 d56"
    );
}

/// Without a label it is not known where the slice starts, and no offset is made up.
#[test]
fn soft_partitions_of_an_unknown_slice_are_not_planned() {
    let mut builder = Builder::default();
    let slice = builder.node("c3t8d0s0");
    builder.place(
        slice,
        Placing::Unknown { members: Vec::new(), why: "no label was given".to_owned() },
        &FROM,
    );
    cut(&mut builder, "d57", Kind::SoftPartition, slice, 1, 8_388_608);
    let stack = builder.finish();
    let refused = of_stack::softpart(&stack, find(&stack, "c3t8d0s0"), None);
    assert!(matches!(refused, Err(PlanError::Missing { .. })), "{refused:?}");
}

#[test]
fn a_file_system_is_told_the_true_stripe() {
    let mut builder = Builder::default();
    let members: Vec<Member> = ["sda", "sdb", "sdc"]
        .map(|name| Member { node: disk(&mut builder, name, "gpt", physical(0), 100_000), start: Bytes(0) })
        .to_vec();
    let array = builder.node("md0");
    builder.kind(array, Kind::ParityRaid, &FROM);
    let chunks = Chunks { chunk: Bytes(64 << 10), members, parity: 1, copies: 1, layout: None };
    builder.place(array, Placing::Chunks(chunks), &FROM);
    // What the kernel states for three disks that state 512 KiB: the least common multiple.
    let hint = Grid::unit(Bytes(524_288)).expect("a grid");
    builder.grid(array, GridFact::believed(hint, What::OptimalIo, FROM));
    // Mounted, and not.
    for name in ["/srv/data", "ext4 on md0"] {
        let node = builder.node(name);
        builder.kind(node, Kind::FileSystem, &FROM);
        let part = Part { upper: Bytes(0), node: array, start: Bytes(0), len: None };
        builder.place(node, Placing::Parts { parts: vec![part] }, &FROM);
    }
    let stack = builder.finish();
    for name in ["md0", "/srv/data", "ext4 on md0"] {
        let request =
            of_stack::filesystem(&stack, find(&stack, name), filesystem::Type::Ext4).expect("a request");
        let plan = filesystem::plan(&request).expect("a plan");
        let commands: Vec<&str> =
            plan.remedies.iter().flat_map(|way| &way.steps).map(|s| s.command.as_str()).collect();
        let make = "mkfs.ext4 -b 4096 -E stride=16,stripe_width=32 /dev/md0";
        assert!(commands.contains(&make), "{name}: {commands:?}");
    }
}

/// An array has another number after the next boot, perhaps, and the name that it was made with all the same.
#[test]
fn arrays_go_by_the_name_that_lasts() {
    for (aliases, host, expected) in [
        (&["disk/by-id/md-name-h:data", "md/data"][..], None, "/dev/md/data"),
        (&["md/data"], Some("kvm3"), "/dev/md/data"),
        (&["disk/by-id/md-uuid-1"], None, "/dev/md127"),
    ] {
        let mut builder = Builder::default();
        let sda = disk(&mut builder, "sda", "gpt", physical(0), 100_000);
        let part = cut(&mut builder, "sda1", Kind::Partition, sda, 63, 1_000);
        builder.fact(part, keys::PARTITION_NUMBER, "1", &FROM);
        let array = builder.node("md127");
        builder.fact(array, keys::MANAGER, "md", &FROM);
        let member = Member { node: part, start: sectors(8) };
        let members = vec![member, member];
        let chunks = Chunks { chunk: Bytes(65_536), members, parity: 0, copies: 1, layout: None };
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
        assert_eq!(request.content, Some(Content::Md { array: expected.to_owned() }));
        let ext4 = of_stack::filesystem(&stack, find(&stack, &name("md127")), filesystem::Type::Ext4);
        assert_eq!(ext4.expect("a request").device, expected);
    }
}

/// Gaps stay where there is room for them, and are given up before an extent would end beyond the component.
#[test]
fn gaps_are_kept_as_long_as_there_is_room() {
    let one = |name: &str, at, size| softpart::SoftPartition {
        name: name.to_owned(),
        extents: vec![(at, size)],
        mirror: None,
    };
    let mut request = softpart::Request {
        component: "c1t0d0s0".to_owned(),
        unit: Bytes(4096),
        base: Bytes(0),
        component_bytes: Some(sectors(1_000)),
        existing: vec![one("d1", 1, 80), one("d2", 901, 90)],
        new: Vec::new(),
    };
    let offsets = |request: &softpart::Request| {
        place(request).expect("places").iter().map(|one| one.offset).collect::<Vec<_>>()
    };
    assert_eq!(offsets(&request), [8, 904]);
    request.component_bytes = Some(sectors(992));
    assert_eq!(
        offsets(&request),
        [8, 96],
        "904 + 90 is more than 992, so the gap goes: 8 + 80 + 1 = 89 → 96"
    );
    assert!(!softpart::plan(&request).expect("a plan").remedies.is_empty());
    // From 8 and 96 on, the second one would end at 194.
    request.existing[1] = one("d2", 82, 98);
    request.component_bytes = Some(sectors(180));
    let plan = softpart::plan(&request).expect("a plan");
    assert!(plan.remedies.is_empty(), "no commands for what does not fit");
    assert!(plan.refusal.as_ref().is_some_and(|why| why.contains("14 sectors beyond")), "{:?}", plan.refusal);
    // From 8 and 128 on it would end at 226, from 96 on at 194.
    request.existing[1] = one("d2", 121, 59 + 39);
    request.component_bytes = Some(sectors(219));
    assert_eq!(offsets(&request), [8, 96]);
    request.component_bytes = Some(sectors(180));
    let refusal = softpart::plan(&request).expect("a plan").refusal.expect("why");
    assert!(refusal.starts_with("d2 ends 39 sectors beyond the component already now"), "{refusal}");
}

/// Findings lead to the layer that can be mended, however far below the node that they are about.
#[test]
fn findings_lead_to_plans() {
    let mut builder = Builder::default();
    let sda = disk(&mut builder, "sda", "gpt", physical(0), 100_000);
    let part = cut(&mut builder, "sda1", Kind::Partition, sda, 63, 1_000);
    builder.fact(part, keys::PARTITION_NUMBER, "1", &FROM);
    let volume = cut(&mut builder, "vg0/data", Kind::LogicalVolume, part, 200, 400);
    let members: Vec<Member> = ["sdb", "sdc"]
        .map(|name| Member { node: disk(&mut builder, name, "gpt", physical(0), 100_000), start: Bytes(0) })
        .to_vec();
    let unit = Grid::unit(Bytes(48 << 10)).expect("a grid");
    builder.grid(members[0].node, GridFact::believed(unit, What::ArrayUnit, FROM));
    let stripe = builder.node("d10");
    builder.fact(stripe, keys::MANAGER, "svm", &FROM);
    let chunks = Chunks { chunk: Bytes(32 << 10), members, parity: 0, copies: 1, layout: None };
    builder.place(stripe, Placing::Chunks(chunks), &FROM);
    let data = builder.node("tank/db");
    builder.fact(data, keys::RECORD_SIZE, "131072", &FROM);
    let stack = builder.finish();
    let wishes = plumb_plan::Wishes { page: Some(Bytes(8192)), ..Default::default() };
    let plan = |finding: &str, node: NodeId| {
        plumb_plan::for_finding(&stack, finding, node, &wishes).expect("has plans").expect("a plan")
    };
    let start = plan("misaligned-partition", volume);
    assert_eq!(start.changes, part, "not the volume that is off");
    let start = start.plan;
    assert_eq!(start.value("start_sectors"), Some(&plumb_plan::Value::Count(64)));
    // 32 KiB are no whole segment of 48 KiB; 816 KiB = 17 × 48 KiB is the first with 1 % or less.
    let stripe = plan("stripe-segment-mismatch", stripe).plan;
    assert_eq!(stripe.value("past_segment_bytes"), Some(&plumb_plan::Value::Count(32 << 10)));
    assert!(stripe.remedies[0].steps[0].command.ends_with("1 2 sdb sdc -i 816k"), "{:?}", stripe.remedies);
    let record = plan("record-mismatch", data).plan;
    assert_eq!(record.value("record_bytes"), Some(&plumb_plan::Value::Count(8192)));
    assert!(plumb_plan::for_finding(&stack, "read-policy", data, &wishes).is_none());
    let unknown = plumb_plan::for_finding(&stack, "misaligned-partition", sda, &wishes).expect("has plans");
    assert!(unknown.is_err(), "a whole disk has no start to choose");
}

/// On x86 a VTOC counts from the start of the fdisk partition, and labels put boot and alternates in front.
#[test]
fn slices_on_x86_count_from_their_fdisk_partition() {
    let request = partition::Request {
        device: "c1t0d0".to_owned(),
        label: Label::SmiX86 { cylinder_sectors: 255 * 63, fdisk_start: sectors(16_065) },
        is_new_label: false,
        sector_bytes: 512,
        disk_bytes: Some(Bytes(10 << 30)),
        grids: vec![physical(0)],
        are_grids_assumed: false,
        after: Bytes(0),
        before: None,
        size: Some(sectors(16_065 * 10)),
        number: 0,
        current: None,
        content: None,
        file_system: None,
        smaller_by: None,
    };
    // 16,065 is odd, so the eighth multiple of it is the first on 8 sectors: cylinder 7 of the partition.
    assert_eq!(layout(&request).expect("a layout").start, sectors(8 * 16_065));
    let plan = partition::plan(&request).expect("a plan");
    let commands: Vec<&str> =
        plan.remedies.iter().flat_map(|way| &way.steps).map(|s| s.command.as_str()).collect();
    assert!(commands.iter().any(|command| command.contains("echo '0 4 00 112455 160650'")), "{commands:?}");
    assert!(commands.iter().any(|command| command.contains("\n0\nusr\nwm\n7\n10c\n")), "{commands:?}");
    let mut first = request.clone();
    first.grids = vec![Grid::unit(Bytes(512)).expect("a grid")];
    assert_eq!(
        layout(&first).expect("a layout").start,
        sectors(16_065 * 4),
        "cylinder 0 boots, 1 and 2 are spare"
    );
}

/// An image keeps the name by which it was read, and has no device nodes; commands of volume managers would need them.
#[test]
fn an_image_in_a_file_keeps_its_name() {
    let mut builder = Builder::default();
    let dump = "label: gpt\nlabel-id: 5C96A4D4-29DD-4DF7-BAF1-41D6FA4D4ABF\ndevice: disk.img\nunit: sectors\n\
                first-lba: 34\nlast-lba: 131038\nsector-size: 512\n\n\
                disk.img1 : start=63, size=2000, type=0FC63DAF-8483-4772-8E79-3D69D8477DE4\n";
    plumb_stack::dump::read(&plumb_stack::dump::Input { name: "dump", text: dump }, &mut builder)
        .expect("a dump");
    plumb_stack::dump::join(&mut builder);
    let stack = builder.finish();
    let mut request = of_stack::partition(&stack, find(&stack, "disk.img1")).expect("a request");
    assert_eq!(request.device, "disk.img");
    request.content = Some(Content::Lvm { group: "vg0".to_owned() });
    request.before = None;
    let plan = partition::plan(&request).expect("a plan");
    let commands = plan.remedies.iter().flat_map(|way| &way.steps).map(|step| step.command.as_str());
    let commands: Vec<&str> = commands.collect();
    assert!(commands.contains(&"sfdisk -d disk.img > disk.img.sfdisk"), "{commands:?}");
    assert!(commands.iter().all(|command| !command.contains("/dev/")), "{commands:?}");
    assert_eq!(plan.nodes, None);
}

/// A partition at 34 that ends where the next one begins. Which way there is hangs on what it holds.
#[test]
fn partitions_without_room_behind_them() {
    let planned = |content: Option<&str>, mount: Option<&str>, next: u64| {
        let mut builder = Builder::default();
        let sda = disk(&mut builder, "sda", "gpt", physical(0), 1_000_000);
        let part = cut(&mut builder, "sda1", Kind::Partition, sda, 34, 10_000);
        builder.fact(part, keys::PARTITION_NUMBER, "1", &FROM);
        cut(&mut builder, "sda2", Kind::Partition, sda, next, 5_000);
        if content == Some("lvm") {
            let volume = cut(&mut builder, "vg0/data", Kind::LogicalVolume, part, 2_048, 4_096);
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
        plumb_plan::for_finding(&stack, "misaligned-partition", part, &wishes)
            .expect("has plans")
            .map(|answer| answer.plan)
    };
    let commands = |plan: &plumb_plan::Plan| {
        let steps =
            plan.remedies.iter().filter(|way| way.harm == Harm::Shift).flat_map(|way| way.steps.clone());
        steps.map(|step| step.command).collect::<Vec<_>>()
    };
    // 34 goes to 40, and 40 to 10,034 has room for 1,249 whole 4 KiB: 9,992 sectors.
    let ext4 = planned(Some("ext4"), None, 10_034).expect("a plan");
    assert_eq!(ext4.value("len_sectors"), Some(&plumb_plan::Value::Count(9_992)));
    assert_eq!(
        commands(&ext4)[1..5],
        [
            "umount /dev/sda1; e2fsck -f /dev/sda1",
            "resize2fs /dev/sda1 9992s",
            "echo 'start=34, size=9992' | sfdisk -N 1 /dev/sda",
            "echo 'start=40, size=9992' | sfdisk --move-data=sda.log --move-use-fsync -N 1 /dev/sda",
        ]
    );
    let btrfs = planned(Some("btrfs"), Some("/srv"), 10_034).expect("a plan");
    assert_eq!(commands(&btrfs)[1], format!("btrfs filesystem resize {} /srv", 9_992 * SECTOR));
    for (content, why) in [(Some("xfs"), "XFS cannot be made smaller"), (None, "what it holds is not known")]
    {
        let plan = planned(content, None, 10_034).expect("a plan");
        assert_eq!(commands(&plan), [""; 0], "nothing is moved in place");
        assert!(plan.notes.iter().any(|note| note.contains(why)), "{:?}", plan.notes);
        let all = plan
            .remedies
            .iter()
            .all(|way| way.constraints.iter().any(|words| words.contains("becomes smaller")));
        assert!(!plan.remedies.is_empty() && all, "made anew it is smaller too");
    }
    // Swap has no data, and is made anew like what is not known.
    let swap = planned(Some("swap"), None, 10_034).expect("a plan");
    assert!(swap.notes.iter().any(|note| note.contains("how swap is made smaller is not planned")));
    let lvm = planned(Some("lvm"), None, 10_034).expect("a plan");
    assert!(lvm.notes.iter().any(|note| note.contains("part of what LVM manages")), "{:?}", lvm.notes);
    assert_eq!(lvm.remedies[0].harm, Harm::Online, "pvmove needs no room");
    // A neighbour within it is no want of room: they overlap, and nothing is planned.
    let refused = planned(Some("ext4"), None, 5_000);
    assert!(matches!(&refused, Err(PlanError::Conflict { .. })), "{refused:?}");
    // With room behind it nothing becomes smaller.
    let room = planned(Some("xfs"), None, 11_000).expect("a plan");
    assert_eq!(room.value("len_sectors"), Some(&plumb_plan::Value::Count(10_000)));
    assert_eq!(commands(&room).len(), 3);
}

/// Linux counts the slices of a label of Solaris from 1, and `format` from 0.
#[test]
fn slices_go_by_the_number_of_solaris() {
    for (label, linux, slice, planned) in [
        ("sun", 1, Some(0), Ok(0)),
        ("efi", 2, Some(1), Ok(1)),
        ("sun", 8, Some(7), Ok(7)),
        ("sun", 1, None, Err(())),
    ] {
        let mut builder = Builder::default();
        let disk = disk(&mut builder, "disk.img", label, physical(0), 1_000_000);
        builder.fact(disk, keys::CYLINDER_SECTORS, "2889", &FROM);
        let part = cut(&mut builder, "disk.img#1", Kind::Partition, disk, 2_889, 28_890);
        builder.fact(part, keys::PARTITION_NUMBER, linux.to_string(), &FROM);
        if let Some(slice) = slice {
            builder.fact(part, keys::SLICE, u32::to_string(&slice), &FROM);
        }
        let stack = builder.finish();
        let request = of_stack::partition(&stack, find(&stack, "disk.img#1"));
        assert_eq!(request.map(|request| request.number).map_err(|_| ()), planned, "{label} {linux}");
    }
}

/// A label counts in the block that it was made for, and tools in that of the device: in a file 512 bytes.
#[test]
fn labels_of_4k_are_counted_in_4k() {
    let request = |kind, in_label: Option<&str>, device: Option<u64>, len| {
        let mut builder = Builder::default();
        // The first kind stands.
        let sdb = builder.node("sdb");
        builder.kind(sdb, kind, &FROM);
        let disk = disk(&mut builder, "sdb", "gpt", Grid::unit(Bytes(65_536)).expect("a grid"), 131_072);
        if let Some(block) = in_label {
            builder.fact(disk, keys::LABEL_BLOCK, block, &FROM);
        }
        if let Some(block) = device {
            let grid = Grid::unit(Bytes(block)).expect("a grid");
            builder.grid(disk, GridFact::believed(grid, What::LogicalBlock, FROM));
        }
        // Blocks 7 to 4,000 of 4 KiB.
        let part = cut(&mut builder, "sdb1", Kind::Partition, disk, 7 * 8, len);
        builder.fact(part, keys::PARTITION_NUMBER, "1", &FROM);
        let stack = builder.finish();
        of_stack::partition(&stack, find(&stack, "sdb1"))
    };
    let len = 3_994 * 8;
    for (in_label, device) in [(Some("4096"), None), (None, Some(4096)), (Some("4096"), Some(4096))] {
        let plan =
            partition::plan(&request(Kind::Disk, in_label, device, len).expect("a request")).expect("a plan");
        let steps = plan.remedies.iter().flat_map(|way| &way.steps);
        // 16 × 4 KiB are 64 KiB, and 16 + 3,994 - 1 = 4,009.
        assert!(steps.clone().any(|step| step.command.contains(" -n 1:16:4009 ")), "{in_label:?} {device:?}");
    }
    assert_eq!(
        request(Kind::Disk, None, None, len - 1).expect("a request").sector_bytes,
        512,
        "not of 4 KiB"
    );
    for (kind, in_label, device) in
        [(Kind::File, Some("4096"), None), (Kind::Disk, Some("4096"), Some(512)), (Kind::Disk, None, None)]
    {
        assert!(request(kind, in_label, device, len).is_err(), "{kind:?} {in_label:?} {device:?}");
    }
}

/// The first link of the logical partitions lies where the extended one begins, in front of all of them.
#[test]
fn nothing_reaches_into_an_extended_partition() {
    let sfdisk = "label: dos\ndevice: /dev/sdb\nunit: sectors\nsector-size: 512\n\n\
                  /dev/sdb1 : start=          63, size=       20000, type=83\n\
                  /dev/sdb2 : start=       20063, size=      100000, type=5\n\
                  /dev/sdb5 : start=       20126, size=        1000, type=83\n";
    let json = r#"{"partitiontable": {"label": "dos", "device": "/dev/sdb", "unit": "sectors", "sectorsize": 512,
        "partitions": [{"node": "/dev/sdb1", "start": 63, "size": 20000, "type": "83"},
        {"node": "/dev/sdb2", "start": 20063, "size": 100000, "type": "5"},
        {"node": "/dev/sdb5", "start": 20126, "size": 1000, "type": "83"}]}}"#;
    let parted = "Model: ATA X (scsi)\nDisk /dev/sdb: 20971520s\nSector size (logical/physical): 512B/4096B\n\
                  Partition Table: msdos\nDisk Flags: \n\n\
                  Number  Start   End       Size      Type      File system  Flags\n \
                  1      63s     20062s    20000s    primary   ext4\n \
                  2      20063s  120062s   100000s   extended\n \
                  5      20126s  21125s    1000s     logical\n";
    let fdisk = "Disk /dev/sdb: 64 MiB, 67108864 bytes, 131072 sectors\nUnits: sectors of 1 * 512 = 512 bytes\n\
                 Sector size (logical/physical): 512 bytes / 512 bytes\nDisklabel type: dos\n\n\
                 Device     Boot Start    End Sectors  Size Id Type\n\
                 /dev/sdb1          63  20062   20000  9.8M 83 Linux\n\
                 /dev/sdb2       20063 120062  100000 48.8M  5 Extended\n\
                 /dev/sdb5       20126  21125    1000  500K 83 Linux\n";
    let lsblk = r#"{"blockdevices": [{"name": "sdb", "type": "disk", "pttype": "dos", "log-sec": 512,
        "children": [{"name": "sdb1", "type": "part", "partn": 1, "start": 63, "size": 10240000},
        {"name": "sdb2", "type": "part", "partn": 2, "parttype": "0x5", "start": 20063, "size": 1024},
        {"name": "sdb5", "type": "part", "partn": 5, "start": 20126, "size": 512000}]}]}"#;
    for text in [sfdisk, json, parted, fdisk, lsblk] {
        let mut builder = Builder::default();
        plumb_stack::dump::read(&plumb_stack::dump::Input { name: "dump", text }, &mut builder)
            .expect("a dump");
        plumb_stack::dump::join(&mut builder);
        let stack = builder.finish();
        let request = of_stack::partition(&stack, find(&stack, "sdb1")).expect("a request");
        assert_eq!(request.before, Some(sectors(20_063)), "{text}");
    }
}

/// As sfdisk prints a label that Solaris made: slice 8 is partition 9, and nobody's data.
#[test]
fn what_solaris_reserves_is_left_alone() {
    const USR: &str = "type=6A898CC3-1DD2-11B2-99A6-080020736631";
    const RESERVED: &str = "type=6A945A3B-1DD2-11B2-99A6-080020736631";
    for (number, len, kind, is_refused) in [
        (9, 16_384, RESERVED, true),
        (9, 16_000, RESERVED, true),
        (3, 20_480, RESERVED, true),
        (9, 16_384, "bootable", true),
        (9, 20_480, USR, false),
        (1, 16_384, USR, false),
    ] {
        let text = format!(
            "label: gpt\ndevice: /dev/sdb\nunit: sectors\nfirst-lba: 34\nlast-lba: 409566\nsector-size: 512\n\n\
             /dev/sdb{number} : start=      300002, size=       {len}, {kind}\n"
        );
        let mut builder = Builder::default();
        plumb_stack::dump::read(&plumb_stack::dump::Input { name: "dump", text: &text }, &mut builder)
            .expect("a dump");
        plumb_stack::dump::join(&mut builder);
        let stack = builder.finish();
        let request = of_stack::partition(&stack, find(&stack, &format!("sdb{number}")));
        assert_eq!(request.is_err(), is_refused, "{number} {len} {kind}: {request:?}");
    }
}
