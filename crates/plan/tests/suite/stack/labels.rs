//! Partitions of one label and of another: their numbers, blocks, names, and protected labels.

use plumb_geometry::{Bytes, Grid};
use plumb_model::{Action, PlanKind};
use plumb_plan::partition::{Content, LabelScheme, layout};
use plumb_plan::{Harm, PlanError, Wishes, of_stack, partition};
use plumb_stack::ProblemId;
use plumb_stack::node::{Problem, keys};
use plumb_stack::{Builder, CellKind, GridFact, Kind};

use crate::stack::{FROM, cut, disk, find, physical, sectors};

/// A tool for labels writes every entry again, so a wrong entry of any partition blocks all.
#[test]
fn a_label_that_has_a_problem_is_not_written() {
    let mut messages = Vec::new();
    for (about, id) in [
        ("sda", ProblemId::BrokenLabel),
        ("sda2", ProblemId::OverlappingPartitions),
        ("sda2", ProblemId::BeyondDevice),
    ] {
        let mut builder = Builder::default();
        let sda = disk(&mut builder, "sda", "gpt", physical(0), 100_000);
        let part = cut(&mut builder, "sda1", Kind::Partition, sda, 63, 1_000);
        builder.fact(part, keys::PARTITION_NUMBER, 1_u64, &FROM);
        cut(&mut builder, "sda2", Kind::Partition, sda, 2_000, 5_000);
        cut(
            &mut builder,
            "vg0/data",
            Kind::LogicalVolume,
            part,
            200,
            400,
        );
        let node = Some(builder.node(about));
        builder.problem(Problem {
            node,
            id,
            text: String::new(),
            source: FROM,
        });
        let stack = builder.finish();
        let why = PlanError::LabelProblem {
            disk: "sda".to_owned(),
            problem: id.into(),
        };
        assert_eq!(
            of_stack::partition(&stack, find(&stack, "sda1")),
            Err(why.clone()),
            "{id:?} of {about}"
        );
        for kind in [PlanKind::Start, PlanKind::FileSystem] {
            let node = find(&stack, "vg0/data");
            let answer = plumb_plan::for_finding(&stack, kind, node, &Wishes::default());
            assert_eq!(answer, Err(why.clone()), "{kind:?}, {id:?} of {about}");
        }
        assert!(!why.is_usage());
        messages.push(why.to_string());
    }
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// The plan for a disk with a stranded backup label, and with another problem of its label or none.
fn grown(kind: Kind, other: Option<ProblemId>) -> Result<plumb_plan::Plan, PlanError> {
    let mut builder = Builder::default();
    let sda = builder.node("sda");
    builder.kind(sda, kind, &FROM);
    builder.size(sda, sectors(100_000), &FROM);
    cut(&mut builder, "sda1", Kind::Partition, sda, 2_048, 1_000);
    for id in [Some(ProblemId::StrandedBackupLabel), other]
        .into_iter()
        .flatten()
    {
        builder.problem(Problem {
            node: Some(sda),
            id,
            text: String::new(),
            source: FROM,
        });
    }
    let (stack, wishes) = (builder.finish(), Wishes::default());
    let answer =
        plumb_plan::for_finding(&stack, PlanKind::BackupLabel, find(&stack, "sda"), &wishes);
    answer.map(|answer| answer.plan)
}

#[test]
fn a_stranded_backup_goes_to_the_end_of_its_disk() {
    let plan = grown(Kind::Disk, None).expect("a plan");
    let [way] = &plan.remedies[..] else {
        panic!("one way: {plan:?}");
    };
    assert_eq!(way.harm, Harm::Tune);
    let commands: Vec<&str> = way.steps.iter().map(|step| step.command.as_str()).collect();
    assert_eq!(
        commands,
        ["", " --yes sda"].map(|yes| format!("plumb fix backup-label /dev/sda{yes}"))
    );
    let [Action::BackupLabel { disk }] = &way.actions[..] else {
        panic!("one action: {way:?}");
    };
    assert_eq!(disk.device, "/dev/sda");
}

#[test]
fn a_stranded_backup_stays_where_the_label_has_another_problem() {
    for id in [
        ProblemId::BrokenLabel,
        ProblemId::BeyondDevice,
        ProblemId::OverlappingPartitions,
        ProblemId::SectorSizeMismatch,
    ] {
        let refused = grown(Kind::Disk, Some(id));
        let is_label = matches!(&refused, Err(PlanError::LabelProblem { problem, .. }) if *problem == id.into());
        assert!(is_label, "{id:?}: {refused:?}");
    }
    let moving = grown(Kind::Disk, Some(ProblemId::UnfinishedMove));
    assert!(
        matches!(moving, Err(PlanError::UnfinishedMove { .. })),
        "{moving:?}"
    );
    // A file has no device to write to.
    let file = grown(Kind::File, None);
    assert!(matches!(file, Err(PlanError::Missing { .. })), "{file:?}");
}

/// On x86 a VTOC counts from the start of the fdisk partition, and labels put boot and alternates in front.
#[test]
fn slices_on_x86_count_from_their_fdisk_partition() {
    let request = partition::PartitionRequest {
        device: "c1t0d0".to_owned(),
        label: LabelScheme::SmiX86 {
            cylinder_sectors: 255 * 63,
            fdisk_start: sectors(16_065),
        },
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
        reserved_from: None,
        smaller_by: None,
    };
    // 16,065 is odd, so the eighth multiple of it is the first on 8 sectors: cylinder 7 of the partition.
    assert_eq!(
        layout(&request).expect("a layout").start,
        sectors(8 * 16_065)
    );
    let plan = partition::plan(&request).expect("a plan");
    let commands: Vec<&str> = plan
        .remedies
        .iter()
        .flat_map(|way| &way.steps)
        .map(|s| s.command.as_str())
        .collect();
    assert!(
        commands
            .iter()
            .any(|command| command.contains("echo '0 4 00 112455 160650'")),
        "{commands:?}"
    );
    assert!(
        commands
            .iter()
            .any(|command| command.contains(" 0 usr wm 7 10c ")),
        "{commands:?}"
    );
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
    plumb_stack::dump::read(
        &plumb_stack::dump::Input {
            name: "dump",
            text: dump,
        },
        &mut builder,
    )
    .expect("a dump");
    plumb_stack::dump::join(&mut builder);
    let stack = builder.finish();
    let mut request = of_stack::partition(&stack, find(&stack, "disk.img1")).expect("a request");
    assert_eq!(request.device, "disk.img");
    request.content = Some(Content::Lvm {
        group: "vg0".to_owned(),
    });
    request.before = None;
    let plan = partition::plan(&request).expect("a plan");
    let commands = plan
        .remedies
        .iter()
        .flat_map(|way| &way.steps)
        .map(|step| step.command.as_str());
    let commands: Vec<&str> = commands.collect();
    insta::assert_snapshot!(commands.join("\n"));
    assert!(
        commands.iter().all(|command| !command.contains("/dev/")),
        "{commands:?}"
    );
    assert_eq!(plan.nodes, None);
}

/// Linux counts the slices of a label of Solaris from 1, and `format` from 0.
#[test]
fn slices_go_by_the_number_of_solaris() {
    for (label, linux, slice, planned) in [
        ("sun", 1_u64, Some(0_u64), Ok(0)),
        ("efi", 2, Some(1), Ok(1)),
        ("sun", 8, Some(7), Ok(7)),
        ("sun", 1, None, Err(())),
    ] {
        let mut builder = Builder::default();
        let disk = disk(&mut builder, "disk.img", label, physical(0), 1_000_000);
        builder.fact(disk, keys::CYLINDER_SECTORS, 2889_u64, &FROM);
        let part = cut(
            &mut builder,
            "disk.img#1",
            Kind::Partition,
            disk,
            2_889,
            28_890,
        );
        builder.fact(part, keys::PARTITION_NUMBER, linux, &FROM);
        if let Some(slice) = slice {
            builder.fact(part, keys::SLICE, slice, &FROM);
        }
        let stack = builder.finish();
        let request = of_stack::partition(&stack, find(&stack, "disk.img#1"));
        assert_eq!(
            request.map(|request| request.number).map_err(|_| ()),
            planned,
            "{label} {linux}"
        );
    }
}

/// A label counts in the block that it was made for, and tools in that of the device: in a file 512 bytes.
#[test]
fn labels_of_4k_are_counted_in_4k() {
    let request = |kind, in_label: Option<u64>, device: Option<u64>, len| {
        let mut builder = Builder::default();
        // The first kind stays.
        let sdb = builder.node("sdb");
        builder.kind(sdb, kind, &FROM);
        let disk = disk(
            &mut builder,
            "sdb",
            "gpt",
            Grid::unit(Bytes(65_536)).expect("a grid"),
            131_072,
        );
        if let Some(block) = in_label {
            builder.fact(disk, keys::LABEL_BLOCK, Bytes(block), &FROM);
        }
        if let Some(block) = device {
            let grid = Grid::unit(Bytes(block)).expect("a grid");
            builder.grid(disk, GridFact::believed(grid, CellKind::LogicalBlock, FROM));
        }
        // Blocks 7 to 4,000 of 4 KiB.
        let part = cut(&mut builder, "sdb1", Kind::Partition, disk, 7 * 8, len);
        builder.fact(part, keys::PARTITION_NUMBER, 1_u64, &FROM);
        let stack = builder.finish();
        of_stack::partition(&stack, find(&stack, "sdb1"))
    };
    let len = 3_994 * 8;
    for (in_label, device) in [
        (Some(4096), None),
        (None, Some(4096)),
        (Some(4096), Some(4096)),
    ] {
        let plan = partition::plan(&request(Kind::Disk, in_label, device, len).expect("a request"))
            .expect("a plan");
        let steps = plan.remedies.iter().flat_map(|way| &way.steps);
        // 16 × 4 KiB are 64 KiB, and 16 + 3,994 - 1 = 4,009.
        assert!(
            steps
                .clone()
                .any(|step| step.command.contains(" -n 1:16:4009 ")),
            "{in_label:?} {device:?}"
        );
    }
    assert_eq!(
        request(Kind::Disk, None, None, len - 1)
            .expect("a request")
            .sector_bytes,
        512,
        "not of 4 KiB"
    );
    for (kind, in_label, device) in [
        (Kind::File, Some(4096), None),
        (Kind::Disk, Some(4096), Some(512)),
        (Kind::Disk, None, None),
    ] {
        assert!(
            request(kind, in_label, device, len).is_err(),
            "{kind:?} {in_label:?} {device:?}"
        );
    }
}

/// The first link of the logical partitions is at the start of the extended one, in front of all of them.
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
        plumb_stack::dump::read(
            &plumb_stack::dump::Input { name: "dump", text },
            &mut builder,
        )
        .expect("a dump");
        plumb_stack::dump::join(&mut builder);
        let stack = builder.finish();
        let request = of_stack::partition(&stack, find(&stack, "sdb1")).expect("a request");
        assert_eq!(request.before, Some(sectors(20_063)), "{text}");
    }
}

/// As sfdisk prints a label that Solaris made: slice 8 is partition 9, and nobody's data.
#[test]
fn reserved_areas_of_solaris_are_kept() {
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
        plumb_stack::dump::read(
            &plumb_stack::dump::Input {
                name: "dump",
                text: &text,
            },
            &mut builder,
        )
        .expect("a dump");
        plumb_stack::dump::join(&mut builder);
        let stack = builder.finish();
        let request = of_stack::partition(&stack, find(&stack, &format!("sdb{number}")));
        assert_eq!(
            request.is_err(),
            is_refused,
            "{number} {len} {kind}: {request:?}"
        );
    }
}
