//! FAT, exFAT and NTFS, and bcache.

use plumb_stack::CellKind;
use plumb_stack::ProblemId;
use plumb_stack::node::keys;
use plumb_testkit::require;

use crate::ondisk::tools::{Images, KIB, MIB, grid, node, printed, problems, run, run_of_content};

#[test]
fn fat_agrees_with_mkfs_and_fsck() {
    require!(Tool("mkfs.fat"), Tool("fsck.fat"));
    for (bits, size, cluster_sectors) in [("12", 2, 4), ("16", 64, 4), ("32", 300, 8)] {
        let images = Images::new();
        let path = images.make("disk.img", size * MIB);
        let cluster = cluster_sectors.to_string();
        run(
            "mkfs.fat",
            &["-F", bits, "-s", &cluster, "-h", "63", &path],
            "",
        );
        let text = run("fsck.fat", &["-n", "-v", &path], "");
        let stack = images.stack(&["disk.img"]);
        let node = node(&stack, "vfat on disk.img");
        // "Data area starts at byte 36864 (sector 72)", "2048 bytes per cluster".
        let data = printed(&text, "Data area starts at byte");
        let (before, _) = text.split_once(" bytes per cluster").expect("a line");
        let cluster: u64 = before
            .split_whitespace()
            .next_back()
            .and_then(|word| word.parse().ok())
            .expect("a number");
        assert_eq!(
            node.number(keys::FS_DATA_START).map(|bytes| bytes.0),
            Some(data),
            "FAT{bits}"
        );
        let fact = grid(node, CellKind::FileSystemBlock);
        assert_eq!(
            (fact.granularity().0, fact.grid.offset().0),
            (cluster, data % cluster)
        );
        assert_eq!(
            node.number(keys::HIDDEN_BYTES).map(|bytes| bytes.0),
            Some(63 * 512)
        );
        assert!(
            fact.source.to_string().starts_with(&format!("FAT{bits}")),
            "{}",
            fact.source
        );
    }
}

#[test]
fn exfat_and_ntfs_agree_with_mkfs() {
    require!(Tool("mkfs.exfat"), Tool("mkfs.ntfs"));
    let images = Images::new();
    let (exfat, ntfs) = (
        images.make("exfat.img", 64 * MIB),
        images.make("ntfs.img", 64 * MIB),
    );
    run("mkfs.exfat", &["-c", "32K", "-b", "1M", &exfat], "");
    run(
        "mkfs.ntfs",
        &[
            "-Q", "-F", "-q", "-c", "8192", "-s", "512", "-p", "2048", &ntfs,
        ],
        "",
    );
    let stack = images.stack(&["exfat.img", "ntfs.img"]);
    let one = node(&stack, "exfat on exfat.img");
    assert_eq!(
        one.number(keys::FS_BLOCK).map(|bytes| bytes.0),
        Some(32 * KIB)
    );
    // `-b` is the boundary on which the heap of clusters begins.
    let start = one
        .number(keys::FS_DATA_START)
        .map(|bytes| bytes.0)
        .expect("a start");
    assert_eq!((start % MIB, start > 0), (0, true));
    let two = node(&stack, "ntfs on ntfs.img");
    assert_eq!(
        (
            two.number(keys::FS_BLOCK).map(|bytes| bytes.0),
            two.number(keys::HIDDEN_BYTES).map(|bytes| bytes.0)
        ),
        (Some(8 * KIB), Some(2048 * 512))
    );
    assert_eq!(problems(&stack), [] as [ProblemId; 0]);
}

/// The start that FAT has noted is held against the true one; it breaks booting only.
#[test]
fn a_moved_file_system_is_reported() {
    require!(Tool("mkfs.fat"), Tool("sfdisk"));
    let images = Images::new();
    let path = images.make("disk.img", 64 * MIB);
    run(
        "sfdisk",
        &["-q", &path],
        "label: dos\nstart=2048,size=100000,type=c\n",
    );
    for (hidden, expected) in [
        ("2048", vec![]),
        ("63", vec![ProblemId::HiddenSectors]),
        ("0", vec![]),
    ] {
        let part = images.make("part.img", 100_000 * 512);
        run("mkfs.fat", &["-h", hidden, &part], "");
        images.write("disk.img", MIB, &std::fs::read(&part).expect("an image"));
        let stack = images.stack(&["disk.img"]);
        assert_eq!(problems(&stack), expected, "hidden {hidden}");
        assert_eq!(run_of_content(&stack, "vfat", "disk.img#1").0, "disk.img#1");
    }
}

#[test]
fn bcache_agrees_with_super_show() {
    require!(Tool("make-bcache"), Tool("bcache-super-show"));
    let images = Images::new();
    let (backing, cache) = (
        images.make("backing.img", 64 * MIB),
        images.make("cache.img", 64 * MIB),
    );
    run("make-bcache", &["-B", &backing, "-o", "2048"], "");
    run("make-bcache", &["-C", &cache, "-w", "4096"], "");
    let stack = images.stack(&["backing.img", "cache.img"]);
    let text = run("bcache-super-show", &[&backing], "");
    let start = printed(&text, "dev.data.first_sector") * 512;
    assert_eq!(
        run_of_content(&stack, "bcache", "backing.img"),
        ("backing.img".to_owned(), start, Some(64 * MIB - start))
    );
    assert_eq!(start, MIB);
    let text = run("bcache-super-show", &[&cache], "");
    let block = printed(&text, "dev.sectors_per_block") * 512;
    assert_eq!(
        node(&stack, "cache.img")
            .number(keys::CACHE_BLOCK)
            .map(|bytes| bytes.0),
        Some(block)
    );
}
