//! Superblocks with a checksum that does not fit, against the checksums that the tools of the file systems print.

use plumb_stack::ProblemId;
use plumb_stack::node::{NodeFacts, keys};
use plumb_stack::{Kind, Stack};
use plumb_testkit::require;

use crate::ondisk::tools::{Images, KIB, MIB, node, problems, run};

/// Checks that the only problem is a broken superblock, that its text has this checksum under this word, and that
/// nothing of the superblock is believed.
fn check_broken(stack: &Stack, name: &str, word: &str, checksum: &str) {
    assert_eq!(
        problems(stack),
        [ProblemId::BrokenSuperblock],
        "{:?}",
        stack.problems()
    );
    let text = &stack.problems()[0].text;
    assert!(
        text.contains(format!("{word} {checksum}").trim_end()),
        "no {word} {checksum} in {text}"
    );
    let node = node(stack, name);
    assert_eq!(
        (node.kind, node.value(keys::CONTENT).map(|word| word.text())),
        (Kind::FileSystem, name.split(' ').next())
    );
    let content_alone = NodeFacts {
        content: node.facts.content.clone(),
        ..NodeFacts::default()
    };
    assert!(node.grids.is_empty(), "{node:?}");
    assert_eq!(node.facts, content_alone);
}

/// The word after a name in the output of a tool.
fn word<'a>(text: &'a str, name: &str) -> &'a str {
    let line = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
    line.split_whitespace()
        .next()
        .unwrap_or_else(|| panic!("nothing behind {name}"))
}

/// Inverts a byte of an image.
fn invert(images: &Images, at: u64) {
    let byte = images.byte("disk.img", at);
    images.write("disk.img", at, &[!byte]);
}

#[test]
fn a_block_count_of_ext4_is_believed_only_with_its_checksum() {
    require!(Tool("mkfs.ext4"), Tool("dumpe2fs"), Tool("debugfs"));
    const BLOCKS_AT: u64 = KIB + 4;
    for (features, expected) in [
        ("metadata_csum", ProblemId::BrokenSuperblock),
        ("^metadata_csum,uninit_bg", ProblemId::BeyondDevice),
    ] {
        let images = Images::new();
        let path = images.make("disk.img", 64 * MIB);
        run("mkfs.ext4", &["-q", "-F", "-O", features, &path], "");
        let text = run("dumpe2fs", &["-h", &path], "");
        images.write("disk.img", BLOCKS_AT, &[0xff; 3]);
        let stack = images.stack(&["disk.img"]);
        assert_eq!(problems(&stack), [expected]);
        if features == "metadata_csum" {
            check_broken(
                &stack,
                "ext4 on disk.img",
                "found checksum",
                word(&text, "Checksum:"),
            );
        }
    }
    // The same count with a checksum that fits.
    let images = Images::new();
    let path = images.make("disk.img", 64 * MIB);
    run("mkfs.ext4", &["-q", "-F", "-O", "metadata_csum", &path], "");
    run(
        "debugfs",
        &["-w", "-R", "set_super_value blocks_count 16777215", &path],
        "",
    );
    assert_eq!(
        problems(&images.stack(&["disk.img"])),
        [ProblemId::BeyondDevice]
    );
}

#[test]
fn the_expected_checksum_of_ext4_is_the_original() {
    require!(Tool("mkfs.ext4"), Tool("dumpe2fs"));
    let images = Images::new();
    let path = images.make("disk.img", 64 * MIB);
    run("mkfs.ext4", &["-q", "-F", "-O", "metadata_csum", &path], "");
    let text = run("dumpe2fs", &["-h", &path], "");
    invert(&images, KIB + 0x3fc);
    let stack = images.stack(&["disk.img"]);
    check_broken(
        &stack,
        "ext4 on disk.img",
        "expected",
        word(&text, "Checksum:"),
    );
    // A log of the size of a block that cannot be.
    invert(&images, KIB + 0x3fc);
    images.write("disk.img", KIB + 0x18, &[7]);
    let stack = images.stack(&["disk.img"]);
    check_broken(
        &stack,
        "ext4 on disk.img",
        "found checksum",
        word(&text, "Checksum:"),
    );
}

/// Without a checksum a number that cannot be still tells; two bytes that are the mark by chance do not.
#[test]
fn an_ext4_of_no_blocks_or_of_blocks_that_cannot_be() {
    require!(Tool("mkfs.ext4"));
    let images = Images::new();
    let path = images.make("disk.img", 64 * MIB);
    run(
        "mkfs.ext4",
        &["-q", "-F", "-O", "^metadata_csum,^64bit", &path],
        "",
    );
    assert_eq!(problems(&images.stack(&["disk.img"])), [] as [ProblemId; 0]);
    let count: Vec<u8> = (4..8).map(|at| images.byte("disk.img", KIB + at)).collect();
    for (at, bytes, text) in [
        (4, &[0_u8; 4] as &[u8], "found 0 blocks"),
        (0x18, &[60], "blocks of 2^70 bytes"),
    ] {
        images.write("disk.img", KIB + at, bytes);
        let stack = images.stack(&["disk.img"]);
        check_broken(&stack, "ext4 on disk.img", text, "");
        images.write("disk.img", KIB + 4, &count);
    }
    images.write("disk.img", KIB, &[0; 0x38]);
    assert!(
        images
            .stack(&["disk.img"])
            .find("ext4 on disk.img")
            .is_none()
    );
}

#[test]
fn an_xfs_is_believed_only_with_its_checksum() {
    require!(Tool("mkfs.xfs"), Tool("xfs_db"));
    // The number of blocks, and a byte near the end of the sector.
    for (sector, places) in [("512", [11_u64, 500]), ("4096", [11, 4000])] {
        let images = Images::new();
        let path = images.make("disk.img", 300 * MIB);
        run(
            "mkfs.xfs",
            &["-q", "-f", "-s", &format!("size={sector}"), &path],
            "",
        );
        let text = run(
            "xfs_db",
            &["-r", "-c", "sb 0", "-c", "print crc", &path],
            "",
        );
        // The tool prints no leading zeros.
        let checksum = word(&text, "crc =").trim_start_matches("0x");
        let checksum = &format!("0x{checksum:0>8}");
        for at in places {
            invert(&images, at);
            let stack = images.stack(&["disk.img"]);
            check_broken(&stack, "xfs on disk.img", "found checksum", checksum);
            invert(&images, at);
        }
        assert_eq!(problems(&images.stack(&["disk.img"])), [] as [ProblemId; 0]);
        invert(&images, 224);
        check_broken(
            &images.stack(&["disk.img"]),
            "xfs on disk.img",
            "expected",
            checksum,
        );
    }
    // Version 4 has none.
    let images = Images::new();
    let path = images.make("disk.img", 300 * MIB);
    run("mkfs.xfs", &["-q", "-f", "-m", "crc=0", &path], "");
    invert(&images, 11);
    assert_eq!(
        problems(&images.stack(&["disk.img"])),
        [ProblemId::BeyondDevice]
    );
}

#[test]
fn a_btrfs_is_believed_only_with_its_checksum() {
    require!(Tool("mkfs.btrfs"), Tool("btrfs"));
    const SIZE_OF_DEVICE_AT: u64 = 64 * KIB + 0xd1 + 7;
    for (kind, is_verified) in [
        ("crc32c", true),
        ("xxhash", true),
        ("sha256", false),
        ("blake2", false),
    ] {
        let images = Images::new();
        let path = images.make("disk.img", 300 * MIB);
        run("mkfs.btrfs", &["-q", "-f", "--csum", kind, &path], "");
        let text = run("btrfs", &["inspect-internal", "dump-super", &path], "");
        assert_eq!(
            problems(&images.stack(&["disk.img"])),
            [] as [ProblemId; 0],
            "{kind}"
        );
        invert(&images, SIZE_OF_DEVICE_AT);
        let stack = images.stack(&["disk.img"]);
        if !is_verified {
            assert_eq!(problems(&stack), [ProblemId::BeyondDevice], "{kind}");
            continue;
        }
        let checksum = word(&text, "csum\t");
        check_broken(&stack, "btrfs on disk.img", "found checksum", checksum);
        invert(&images, SIZE_OF_DEVICE_AT);
        invert(&images, 64 * KIB);
        check_broken(
            &images.stack(&["disk.img"]),
            "btrfs on disk.img",
            "expected",
            checksum,
        );
    }
}

/// The other device answers for the one whose superblock is broken, in whichever order they are seen.
#[test]
fn a_whole_superblock_of_btrfs_answers_for_a_broken_one() {
    require!(Tool("mkfs.btrfs"));
    let images = Images::new();
    let (one, two) = (
        images.make("one.img", 300 * MIB),
        images.make("disk.img", 300 * MIB),
    );
    run(
        "mkfs.btrfs",
        &["-q", "-f", "-d", "raid1", "-m", "raid1", &one, &two],
        "",
    );
    // The number of devices.
    invert(&images, 64 * KIB + 0x88);
    for names in [["one.img", "disk.img"], ["disk.img", "one.img"]] {
        let stack = images.stack(&names);
        assert_eq!(problems(&stack), [ProblemId::BrokenSuperblock]);
        let node = node(&stack, &format!("btrfs on {}", names[0]));
        assert_eq!(node.number(keys::FS_BLOCK).map(|bytes| bytes.0), Some(4096));
        assert_eq!(stack.notes(), [""; 0]);
    }
}
