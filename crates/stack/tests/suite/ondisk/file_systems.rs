//! ext2 to ext4, XFS, btrfs and swap.

use plumb_stack::ProblemId;
use plumb_stack::node::keys;
use plumb_stack::{CellKind, Kind, Placing};
use plumb_testkit::require;

use crate::ondisk::tools::{Images, KIB, MIB, grid, node, printed, problems, run, run_of};

#[test]
fn ext_agrees_with_dumpe2fs() {
    require!(Tool("mkfs.ext4"), Tool("dumpe2fs"));
    let made = [
        ("ext2", "4096", "stride=16,stripe_width=48"),
        ("ext3", "1024", "stride=64"),
        ("ext4", "4096", "stride=32,stripe_width=96"),
        ("ext4", "2048", "resize=100000"),
    ];
    for (kind, block, extended) in made {
        let images = Images::new();
        let path = images.make("disk.img", 64 * MIB);
        run(
            "mkfs.ext4",
            &["-q", "-F", "-t", kind, "-b", block, "-E", extended, &path],
            "",
        );
        let stack = images.stack(&["disk.img"]);
        let node = node(&stack, &format!("{kind} on disk.img"));
        let text = run("dumpe2fs", &["-h", &path], "");
        let block = printed(&text, "Block size:");
        assert_eq!(
            node.number(keys::FS_BLOCK).map(|bytes| bytes.0),
            Some(block)
        );
        let or_none = |name: &str| {
            if text.contains(name) {
                printed(&text, name)
            } else {
                0
            }
        };
        assert_eq!(
            node.number(keys::FS_STRIPE_UNIT).map(|bytes| bytes.0),
            Some(or_none("RAID stride:") * block),
            "{kind} {extended}"
        );
        let width = or_none("RAID stripe width:") * block;
        assert_eq!(
            node.number(keys::FS_STRIPE_WIDTH).map(|bytes| bytes.0),
            Some(width)
        );
        assert_eq!(
            (
                node.kind,
                grid(node, CellKind::FileSystemBlock).granularity().0
            ),
            (Kind::FileSystem, block)
        );
        assert_eq!(
            run_of(&stack, &node.name),
            ("disk.img".to_owned(), 0, Some(64 * MIB))
        );
        assert_eq!(problems(&stack), [] as [ProblemId; 0]);
        assert_eq!(stack.notes(), [""; 0]);
    }
}

/// 600 MiB: below some 300 mkfs.xfs refuses.
#[test]
fn xfs_agrees_with_xfs_db() {
    require!(Tool("mkfs.xfs"), Tool("xfs_db"));
    for options in [
        &["-d", "su=64k,sw=3"] as &[&str],
        &["-d", "su=32k,sw=4", "-l", "su=16k", "-s", "size=4096"],
        &["-b", "size=1024", "-s", "size=512", "-d", "noalign"],
    ] {
        let images = Images::new();
        let path = images.make("disk.img", 1200 * MIB);
        run("mkfs.xfs", &[options, &["-q", "-f", &path]].concat(), "");
        let stack = images.stack(&["disk.img"]);
        let node = node(&stack, "xfs on disk.img");
        let text = run("xfs_db", &["-r", "-c", "sb 0", "-c", "print", &path], "");
        let block = printed(&text, "blocksize =");
        let numbers = [
            keys::FS_BLOCK,
            keys::FS_SECTOR,
            keys::FS_STRIPE_UNIT,
            keys::FS_STRIPE_WIDTH,
        ];
        let log = printed(&text, "logsunit =");
        assert_eq!(
            numbers.map(|key| node.number(key).expect("a number").0),
            [
                block,
                printed(&text, "sectsize ="),
                printed(&text, "unit =") * block,
                printed(&text, "width =") * block
            ]
        );
        assert_eq!(
            node.number(keys::FS_LOG_STRIPE_UNIT).map(|bytes| bytes.0),
            Some(if log > 1 { log } else { 0 })
        );
        assert_eq!(problems(&stack), [] as [ProblemId; 0]);
    }
    // Parameters of mkfs, in bytes: dozens of bugs have their cause in the two units.
    let images = Images::new();
    let path = images.make("disk.img", 1200 * MIB);
    run("mkfs.xfs", &["-q", "-f", "-d", "su=64k,sw=3", &path], "");
    let stack = images.stack(&["disk.img"]);
    let node = node(&stack, "xfs on disk.img");
    let told = [keys::FS_STRIPE_UNIT, keys::FS_STRIPE_WIDTH]
        .map(|key| node.number(key).map(|bytes| bytes.0));
    assert_eq!(told, [Some(64 * KIB), Some(192 * KIB)]);
}

#[test]
fn btrfs_on_two_devices_is_one() {
    require!(Tool("mkfs.btrfs"), Tool("btrfs"));
    let images = Images::new();
    let (one, two) = (
        images.make("one.img", 300 * MIB),
        images.make("two.img", 300 * MIB),
    );
    run(
        "mkfs.btrfs",
        &[
            "-q", "-f", "-s", "4096", "-n", "32768", "-d", "raid1", "-m", "raid1", &one, &two,
        ],
        "",
    );
    let stack = images.stack(&["one.img", "two.img"]);
    let node = node(&stack, "btrfs on one.img");
    let text = run("btrfs", &["inspect-internal", "dump-super", &one], "");
    assert_eq!(
        node.number(keys::FS_BLOCK).map(|bytes| bytes.0),
        Some(printed(&text, "sectorsize"))
    );
    assert_eq!(
        (
            node.number(keys::FS_NODE).map(|bytes| bytes.0),
            printed(&text, "nodesize")
        ),
        (Some(32 * KIB), 32 * KIB)
    );
    let Placing::Unknown { members, .. } = &node.placing else {
        panic!("{:?}", node.placing)
    };
    assert_eq!(members.len(), 2);
    assert_eq!(
        (problems(&stack), stack.notes()),
        (vec![], &[] as &[String])
    );
    let half = images.stack(&["two.img"]);
    insta::assert_snapshot!(half.notes().join("\n\n"));
}

#[test]
fn swap_has_the_page_that_it_was_made_for() {
    require!(Tool("mkswap"));
    for page in [4096, 8192, 65_536] {
        let images = Images::new();
        let path = images.make("disk.img", 8 * MIB);
        run("mkswap", &["-p", &page.to_string(), &path], "");
        let stack = images.stack(&["disk.img"]);
        let node = node(&stack, "swap on disk.img");
        assert_eq!(
            (node.kind, node.number(keys::FS_BLOCK).map(|bytes| bytes.0)),
            (Kind::Swap, Some(page))
        );
        assert_eq!(problems(&stack), [] as [ProblemId; 0]);
        // Half of it is gone.
        std::fs::File::options()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_len(4 * MIB))
            .expect("a shorter image");
        assert_eq!(
            problems(&images.stack(&["disk.img"])),
            [ProblemId::BeyondDevice]
        );
    }
}

/// A newer file system over an older one leaves the older one's superblock, which other tools then find.
#[test]
fn remains_are_reported() {
    require!(Tool("mkfs.ext4"), Tool("mkfs.btrfs"));
    let images = Images::new();
    let path = images.make("disk.img", 300 * MIB);
    run("mkfs.btrfs", &["-q", "-f", &path], "");
    run("mkfs.ext4", &["-q", "-F", "-E", "nodiscard", &path], "");
    images.write("disk.img", 64 * KIB + 0x40, b"_BHRfS_M");
    images.write("disk.img", 64 * KIB + 0x30, &(64 * KIB).to_le_bytes());
    images.write("disk.img", 64 * KIB + 0x90, &[0, 0x10, 0, 0, 0, 0x40, 0, 0]);
    let stack = images.stack(&["disk.img"]);
    insta::assert_snapshot!(stack.notes().join("\n\n"));
}
