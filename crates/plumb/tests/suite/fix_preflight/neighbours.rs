//! A neighbour that has sectors in a block which a move writes as a whole: 512 on 4,096.

use std::fs;
use std::path::Path;
use std::process::Command;

use plumb_testkit::loop_device::{Mounted, run};
use plumb_testkit::require;
use plumb_testkit::rng::noise;
use plumb_testkit::wait::RunLimited;

use crate::fix_preflight::disk::{PreflightDisk, assert_done, assert_refused, output_text, stop};

/// Sectors of a neighbour before and behind: the block of 8 that begins at 51,200 is shared, and so is that at 90,112.
const BEFORE: (u64, u64) = (34, 51_203);
const MOVED: (u64, u64) = (51_204, 90_114);
const BEHIND: (u64, u64) = (90_115, 141_315);
/// Shares no block with the others, but one with the table of entries if that were written to its end.
const FAR: (u64, u64) = (147_456, 180_000);

fn make_ext4(node: &Path) {
    run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(node));
}

#[test]
fn a_neighbour_in_the_same_block_must_not_be_in_use() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"), Tool("swapon"));
    // To the right the block before it is shared, to the left the one behind: no other block of a neighbour is written.
    for (moved, neighbour, used, to) in [
        ((51_204, 90_111), BEFORE, 1, "53248s"),
        ((51_208, 90_114), BEHIND, 3, "51200s"),
    ] {
        let before = if used == 1 { BEFORE } else { (34, 51_199) };
        let behind = if used == 3 {
            neighbour
        } else {
            (98_304, 141_315)
        };
        let disk = PreflightDisk::gpt(&[before, moved, behind]);
        make_ext4(&disk.node(used));
        let words = format!("{} has bytes in a block", disk.name(used));
        let mounted = Mounted::mount(&disk.node(used), &disk.at());
        let said_mounted = format!("is mounted at {}", disk.at().display());
        let yes = ["--to", to, "--yes", &disk.name(2)];
        assert_refused(&disk.fix_move(2, &yes), 5, &[&words, &said_mounted]);
        let shown = disk.fix_move(2, &["--to", to]);
        assert_done(&shown);
        assert!(output_text(&shown).contains("in the way: "));
        assert!(
            disk.node(2).exists() && !disk.journal().exists(),
            "nothing was begun"
        );
        drop(mounted);
        // A database on a raw device mounts nothing.
        let open = fs::File::open(disk.node(used)).expect("root");
        assert_refused(&disk.fix_move(2, &yes), 5, &[&words, "is open in "]);
        drop(open);
        run(Command::new("mkswap").arg("-q").arg(disk.node(used)));
        run(Command::new("swapon").arg(disk.node(used)));
        let refused = disk.fix_move(2, &yes);
        run(Command::new("swapoff").arg(disk.node(used)));
        assert_refused(&refused, 5, &[&words, "is used for paging"]);
        // If unused, it is reported, and kept so.
        fs::write(disk.node(used), noise(20 << 20, 5)).expect("room");
        let kept = disk.bytes_of(used);
        let data = disk.fill(2);
        let shown = disk.fix_move(2, &["--to", to]);
        assert_done(&shown);
        assert!(
            output_text(&shown).contains(&words),
            "{}",
            output_text(&shown)
        );
        assert_done(&disk.fix_move(2, &["--to", to, "--yes", &disk.name(2)]));
        assert!(disk.bytes_of(2) == data && disk.bytes_of(used) == kept);
    }
}

/// The neighbour's sectors are in no block of the partition's; its first is in the block that the table of entries ends in.
#[test]
fn a_neighbour_in_other_blocks_may_be_in_use() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = PreflightDisk::gpt(&[BEFORE, MOVED, BEHIND, FAR]);
    make_ext4(&disk.node(1));
    let mounted = Mounted::mount(&disk.node(1), &disk.at());
    fs::write(disk.at().join("file"), noise(1 << 20, 3)).expect("room");
    let data = disk.fill(4);
    assert_done(&disk.fix_move(4, &["--to", "149504s", "--yes", &disk.name(4)]));
    assert!(disk.bytes_of(4) == data);
    assert!(fs::read(disk.at().join("file")).expect("it") == noise(1 << 20, 3));
    drop(mounted);
    run(Command::new("e2fsck").args(["-f", "-n"]).arg(disk.node(1)));
}

/// While it is moved nobody can mount the neighbour, nor when the move was stopped and is gone on with.
#[test]
fn a_neighbour_is_kept_from_use_meanwhile() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = PreflightDisk::gpt(&[(34, 51_203), (51_204, 313_348), (321_536, 341_000)]);
    make_ext4(&disk.node(1));
    make_ext4(&disk.node(3));
    let data = disk.fill(2);
    // The disk cannot be had alone.
    let sibling = Mounted::mount(&disk.node(3), &disk.at());
    let child = disk.begun(2, 53_264);
    let elsewhere = disk.dir().join("elsewhere");
    fs::create_dir(&elsewhere).expect("room");
    let tried = Command::new("mount")
        .arg(disk.node(1))
        .arg(&elsewhere)
        .limited_output();
    if tried.status.success() {
        run(Command::new("umount").arg(&elsewhere));
    }
    assert!(
        !tried.status.success(),
        "the neighbour was mounted during the move"
    );
    stop(child);
    drop(sibling);
    let mounted = Mounted::mount(&disk.node(1), &disk.at());
    for what in ["resume", "rollback"] {
        assert_refused(
            &disk.go(what),
            5,
            &["has bytes in a block", "is mounted at"],
        );
    }
    drop(mounted);
    assert_done(&disk.go("resume"));
    assert!(disk.bytes_of(2) == data);
    run(Command::new("e2fsck").args(["-f", "-n"]).arg(disk.node(1)));
}
