//! Arrays of md.

use plumb_geometry::Bytes;
use plumb_stack::Obstacle;
use plumb_stack::node::keys;
use plumb_stack::{CellKind, Kind, Placing, Verdict};
use plumb_testkit::fake_sysfs::{FakeArray, FakeDisk, FakeHost};
use plumb_testkit::temp_dir;

use crate::linux::{grid, misaligned, node, stack_of, verdicts};

/// md over partitions, one of them misaligned: RAID 5 with a data offset, degraded RAID 10, and a chain of lengths.
#[test]
fn arrays_are_laid_by_their_data_offsets() {
    let dir = temp_dir("arrays");
    let mut fake = FakeHost::new(dir.path());
    for disk in ["sda", "sdb", "sdc"] {
        fake.disk(&FakeDisk::named(disk));
        fake.partition(disk, 1, 2048, 1 << 20);
    }
    fake.partition("sdc", 2, 2_097_215, 1 << 20);
    let members = [
        ("sda1", Some(0), 2048, 1000),
        ("sdb1", Some(1), 2048, 1000),
        ("sdc2", Some(2), 2048, 1000),
    ];
    let raid5 = FakeArray {
        name: "md0",
        level: "raid5",
        layout: 2,
        chunk: 64 << 10,
        disks: 3,
        members: &members,
    };
    fake.array(&raid5, 4000);
    fake.array(
        &FakeArray {
            name: "md1",
            level: "raid10",
            layout: 0x102,
            disks: 4,
            members: &members[..2],
            ..raid5
        },
        4000,
    );
    let spare = [
        ("sda1", Some(1), 3, 10),
        ("sdb1", Some(0), 8, 20),
        ("sdc1", None, 8, 20),
    ];
    fake.array(
        &FakeArray {
            name: "md2",
            level: "linear",
            disks: 2,
            members: &spare,
            ..raid5
        },
        60,
    );
    fake.partition("md0", 1, 34, 100);
    let stack = stack_of(&fake);

    // 63 + 2048 sectors and one sector past 1 GiB: 512 bytes times 63 on 4 KiB is 3584.
    assert_eq!(
        verdicts(&stack, "md0"),
        [Verdict::Aligned, Verdict::Aligned, misaligned(3584)]
    );
    // The partition begins at 34: 34 mod 8 = 2 sectors more, on every member.
    assert_eq!(
        verdicts(&stack, "md0p1"),
        [misaligned(1024), misaligned(1024), misaligned(512)]
    );
    let md0 = node(&stack, "md0");
    let Placing::Chunks(chunks) = &md0.placing else {
        panic!("{:?}", md0.placing)
    };
    assert_eq!(chunks.stripe_bytes(), Some(Bytes(128 << 10)));
    assert_eq!(
        (md0.kind, md0.word(keys::LEVEL)),
        (Kind::ParityRaid, Some("raid5"))
    );
    assert_eq!(
        grid(md0, CellKind::MinimumIo),
        Some((64 << 10, 0, false)),
        "a stacked limit"
    );
    assert_eq!(
        grid(md0, CellKind::PhysicalBlock),
        Some((4096, 0, false)),
        "a stacked limit"
    );

    let Placing::Chunks(chunks) = &node(&stack, "md1").placing else {
        panic!("no chunks")
    };
    assert_eq!(
        (chunks.members.len(), chunks.copies, chunks.data_chunks()),
        (4, 2, 2)
    );
    assert!(
        stack
            .notes()
            .iter()
            .any(|note| note == "md1 runs without its member 3"),
        "{:?}",
        stack.notes()
    );

    let Placing::Parts { parts } = &node(&stack, "md2").placing else {
        panic!("no parts")
    };
    let found: Vec<_> = parts
        .iter()
        .map(|part| {
            (
                stack.node(part.node).name.as_str(),
                part.upper.0,
                part.start.0,
                part.len,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("sdb1", 0, 4096, Some(Bytes(20 << 10))),
            ("sda1", 20 << 10, 1536, Some(Bytes(10 << 10)))
        ]
    );
}

#[test]
fn arrays_that_do_not_run_are_unknown() {
    let dir = temp_dir("stopped");
    let mut fake = FakeHost::new(dir.path());
    fake.disk(&FakeDisk::named("sda"));
    let array = FakeArray {
        name: "md0",
        level: "raid0",
        layout: -1,
        chunk: 4096,
        disks: 1,
        members: &[],
    };
    fake.array(&array, 8);
    fake.attribute("md0", "md/array_state", "inactive");
    fake.slaves("md0", &["sda"]);
    let members = [("sda", Some(0), 8, 10)];
    fake.array(
        &FakeArray {
            name: "md1",
            members: &members,
            ..array
        },
        8,
    );
    fake.attribute("md1", "md/reshape_position", "2048");
    fake.attribute("md1", "md/raid_disks", "4 (3)");
    let stack = stack_of(&fake);
    let why = |name| {
        let lost = stack.landings(stack.find(name).expect(name)).lost;
        lost.into_iter().map(|(_, why)| why).collect::<Vec<_>>()
    };
    let inactive = Obstacle::ArrayState {
        state: "inactive".to_owned(),
    };
    assert_eq!(why("md0"), [inactive]);
    let reshaping = Obstacle::Reshaping {
        sector: Some("2048".to_owned()),
    };
    assert_eq!(why("md1"), [reshaping]);
    assert_eq!(
        stack.above(stack.find("sda").expect("it")).len(),
        2,
        "it is known what they stand on"
    );
}
