//! md: superblocks laid out by hand, which mdadm reads alike.

use plumb_geometry::{Bytes, ParityLayout};
use plumb_stack::Obstacle;
use plumb_stack::ProblemId;
use plumb_stack::node::keys;
use plumb_stack::{Kind, Placing};
use plumb_testkit::require;

use crate::ondisk::tools::{Images, KIB, MIB, node, problems, run};

const UUID: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
const SIZE: u64 = 64 * MIB;

/// `struct mdp_superblock_1` of the kernel's md_p.h, field by field.
struct One {
    at: u64,
    level: i32,
    layout: u32,
    chunk_sectors: u32,
    disks: u32,
    data_offset: u64,
    feature_map: u32,
    events: u64,
}

impl One {
    fn bytes(&self, number: u32) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &0xa92b_4efc_u32.to_le_bytes());
        put(4, &1_u32.to_le_bytes());
        put(8, &self.feature_map.to_le_bytes());
        put(16, &UUID);
        put(32, b"host:data");
        put(72, &self.level.to_le_bytes());
        put(76, &self.layout.to_le_bytes());
        put(80, &60_000_u64.to_le_bytes());
        put(88, &self.chunk_sectors.to_le_bytes());
        put(92, &self.disks.to_le_bytes());
        put(128, &self.data_offset.to_le_bytes());
        put(136, &60_000_u64.to_le_bytes());
        put(144, &(self.at / 512).to_le_bytes());
        put(160, &number.to_le_bytes());
        put(168, &[number as u8 + 1; 16]);
        put(200, &self.events.to_le_bytes());
        put(208, &u64::MAX.to_le_bytes());
        put(220, &self.disks.to_le_bytes());
        for role in 0..self.disks as usize {
            put(256 + 2 * role, &(role as u16).to_le_bytes());
        }
        let used = 256 + 2 * self.disks as usize;
        let sum: u64 = bytes[..used]
            .chunks(4)
            .map(|word| match word {
                [a, b, c, d] => u64::from(u32::from_le_bytes([*a, *b, *c, *d])),
                [a, b] => u64::from(u16::from_le_bytes([*a, *b])),
                _ => unreachable!("roles of two bytes"),
            })
            .sum();
        let folded = (sum & 0xffff_ffff) as u32 + (sum >> 32) as u32;
        bytes[216..220].copy_from_slice(&folded.to_le_bytes());
        bytes
    }

    fn write(&self, images: &Images, names: &[&str]) {
        for (number, name) in names.iter().enumerate() {
            images.make(name, SIZE);
            images.write(name, self.at, &self.bytes(number as u32));
        }
    }
}

const NAMES: [&str; 3] = ["a.img", "b.img", "c.img"];

#[test]
fn arrays_of_version_1_agree_with_mdadm() {
    require!(Tool("mdadm"));
    let last = (SIZE / 512 - 16) / 8 * 8 * 512;
    for (version, at, data_offset) in [("1.2", 4096, 2048), ("1.1", 0, 264), ("1.0", last, 0)] {
        for (level, word, kind) in [(5, "raid5", Kind::ParityRaid), (0, "raid0", Kind::Stripe)] {
            let images = Images::new();
            let one = One {
                at,
                level,
                layout: if level == 5 { 2 } else { 0 },
                chunk_sectors: 128,
                disks: 3,
                data_offset,
                feature_map: 0,
                events: 7,
            };
            one.write(&images, &NAMES);
            let text = run(
                "mdadm",
                &["--examine", images.path("b.img").to_str().expect("text")],
                "",
            );
            let has = |wanted: &str| assert!(text.contains(wanted), "{wanted} in {text}");
            has(&format!("Version : {version}"));
            has(&format!("Raid Level : {word}"));
            has("- correct");
            has("Chunk Size : 64K");
            has("Active device 1");
            has("01020304:05060708:090a0b0c:0d0e0f10");
            if data_offset > 0 {
                has(&format!("Data Offset : {data_offset} sectors"));
            }
            // Put together in any order.
            let stack = images.stack(&["c.img", "a.img", "b.img"]);
            let array = node(&stack, "md/data");
            assert_eq!((array.kind, array.word(keys::LEVEL)), (kind, Some(word)));
            let Placing::Chunks(chunks) = &array.placing else {
                panic!("{:?}", array.placing)
            };
            let members: Vec<_> = chunks
                .members
                .iter()
                .map(|one| (stack.node(one.node).name.as_str(), one.start.0))
                .collect();
            assert_eq!(
                members,
                NAMES.map(|name| (name, data_offset * 512)),
                "{version} {word}"
            );
            assert_eq!(chunks.chunk, Bytes(64 * KIB));
            assert_eq!(
                chunks.layout,
                (level == 5).then_some(ParityLayout::LeftSymmetric)
            );
            assert_eq!(problems(&stack), [] as [ProblemId; 0]);
        }
    }
}

#[test]
fn a_missing_member_and_a_wrong_checksum_are_reported() {
    let images = Images::new();
    let one = One {
        at: 4096,
        level: 10,
        layout: 0x102,
        chunk_sectors: 1024,
        disks: 4,
        data_offset: 2048,
        feature_map: 0,
        events: 7,
    };
    one.write(&images, &["a.img", "b.img", "c.img", "d.img"]);
    let stack = images.stack(&["a.img", "c.img", "d.img"]);
    let Placing::Chunks(chunks) = &node(&stack, "md/data").placing else {
        panic!("no chunks")
    };
    let names: Vec<_> = chunks
        .members
        .iter()
        .map(|one| stack.node(one.node).name.as_str())
        .collect();
    assert_eq!(
        (names, chunks.copies),
        (vec!["a.img", "md/data:missing-1", "c.img", "d.img"], 2)
    );
    // A member that was left behind takes no place of one that went on.
    let stale = One { events: 3, ..one };
    images.make("old.img", SIZE);
    images.write("old.img", 4096, &stale.bytes(2));
    let stack = images.stack(&["a.img", "c.img", "old.img"]);
    let Placing::Chunks(chunks) = &node(&stack, "md/data").placing else {
        panic!("no chunks")
    };
    assert_eq!(stack.node(chunks.members[2].node).name, "c.img");
    images.write("a.img", 4096 + 89, &[0]);
    assert_eq!(
        problems(&images.stack(&["a.img"])),
        [ProblemId::BrokenSuperblock]
    );
}

#[test]
fn an_array_in_two_shapes_is_not_placed() {
    let images = Images::new();
    One {
        at: 4096,
        level: 5,
        layout: 2,
        chunk_sectors: 128,
        disks: 3,
        data_offset: 2048,
        feature_map: 4,
        events: 7,
    }
    .write(&images, &NAMES);
    let stack = images.stack(&NAMES);
    let Placing::Unknown { why, members } = &node(&stack, "md/data").placing else {
        panic!("it is placed")
    };
    assert_eq!(
        (why, members.len()),
        (&Obstacle::Reshaping { sector: None }, 3)
    );
}

/// A mirror with its superblock at the end shows the file system in it, which is not the device's own.
#[test]
fn version_0_90_at_the_end_comes_first() {
    require!(Tool("mdadm"), Tool("mkfs.ext4"));
    let images = Images::new();
    let path = images.make("a.img", SIZE);
    run("mkfs.ext4", &["-q", "-F", "-b", "4096", &path, "16000"], "");
    let mut words = [0_u32; 1024];
    for (at, value) in [
        (0, 0xa92b_4efc),
        (2, 90),
        (4, 10),
        (5, 0x0102_0304),
        (7, 1),
        (8, 65_000),
        (9, 2),
        (10, 2),
        (11, 3),
        (13, 0x0506_0708),
        (14, 0x090a_0b0c),
        (15, 0x0d0e_0f10),
        (34, 2),
        (39, 9),
        (992 + 3, 1),
        (992 + 4, 6),
    ] {
        words[at] = value;
    }
    let sum: u64 = words.iter().map(|word| u64::from(*word)).sum();
    words[38] = (sum & 0xffff_ffff) as u32 + (sum >> 32) as u32;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    images.write("a.img", SIZE - 64 * KIB, &bytes);
    let text = run("mdadm", &["--examine", &path], "");
    for wanted in [
        "Version : 0.90.00",
        "Raid Level : raid1",
        "- correct",
        "01020304:05060708:090a0b0c:0d0e0f10",
    ] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
    let stack = images.stack(&["a.img"]);
    let array = node(&stack, "md3");
    assert_eq!(
        array.aliases,
        ["md-uuid-01020304:05060708:090a0b0c:0d0e0f10"]
    );
    let Placing::Copies { members } = &array.placing else {
        panic!("{:?}", array.placing)
    };
    assert_eq!(
        (stack.node(members[1].node).name.as_str(), members[1].start),
        ("a.img", Bytes(0))
    );
    assert_eq!(array.kind, Kind::Mirror);
    assert!(stack.find("ext4 on a.img").is_none() && stack.notes().is_empty());
}
