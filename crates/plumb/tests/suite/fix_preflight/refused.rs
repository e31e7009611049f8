//! The conditions for label, kernel and disk.

use std::fs;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::process::Command;

use plumb_testkit::loop_device::{Mounted, run};
use plumb_testkit::require;
use plumb_testkit::wait::RunLimited;

use crate::common::recorded;
use crate::fix_preflight::disk::{
    PreflightDisk, assert_done, assert_refused, disk_bytes, fix, output_text,
};

/// O_EXCL of Linux, on all processors.
const EXCLUSIVE: i32 = 0o200;

#[test]
fn users_of_the_partition() {
    require!(Loop, Tool("sgdisk"), Tool("swapon"));
    let disk = PreflightDisk::gpt(&[(34, 20_000)]);
    run(Command::new("mkswap").arg("-q").arg(disk.node(1)));
    run(Command::new("swapon").arg(disk.node(1)));
    let refused = disk.fix_move(1, &["--to", "2048s", "--yes", &disk.name(1)]);
    run(Command::new("swapoff").arg(disk.node(1)));
    assert_refused(
        &refused,
        5,
        &["nothing was written", "is used for paging", "swapoff /dev/"],
    );
    // An open partition is not removed, and stays unchanged.
    let yes = ["--to", "2048s", "--yes", &disk.name(1)];
    for flags in [0, EXCLUSIVE] {
        let held = fs::File::options()
            .read(true)
            .custom_flags(flags)
            .open(disk.node(1))
            .expect("root");
        assert_refused(&disk.fix_move(1, &yes), 5, &["in use"]);
        drop(held);
    }
    assert!(disk.node(1).exists() && !disk.journal().exists());
    assert_eq!(disk.start(1), Some(34));
    // A disk that somebody has as a whole: its partitions cannot be had.
    let held = fs::File::options()
        .read(true)
        .custom_flags(EXCLUSIVE)
        .open(disk.device.path())
        .expect("root");
    assert_refused(&disk.fix_move(1, &yes), 5, &["in use"]);
    drop(held);
    assert_done(&disk.fix_move(1, &yes));
}

#[test]
fn places_that_are_not_free() {
    require!(Loop, Tool("sgdisk"));
    let disk = PreflightDisk::gpt(&[(2_048, 20_000), (30_000, 40_000)]);
    let words: [(&str, i32, &[&str]); 6] = [
        // The request, and not all that is between.
        (
            "20000s",
            5,
            &[
                "partition 1 would take bytes 10240000 to 19431936",
                "partition 2 begins at",
            ],
        ),
        ("33s", 5, &["expected it within"]),
        ("56000s", 5, &["partition 1 would take"]),
        ("1000", 2, &["without a unit"]),
        (
            "1000b",
            2,
            &["found unit `b`", "expected s (sectors of 512 bytes)"],
        ),
        ("9000000g", 5, &["partition 1"]),
    ];
    for (to, code, said) in words {
        assert_refused(&disk.fix_move(1, &["--to", to]), code, said);
    }
    let mut messages = Vec::new();
    for args in [&["--to", "2048s"][..], &["--aligned"]] {
        for yes in [&[][..], &["--yes", &disk.name(1)]] {
            let done = disk.fix_move(1, &[args, yes].concat());
            assert_done(&done);
            messages.push(recorded(&output_text(&done)));
            assert!(!disk.journal().exists());
        }
    }
    insta::assert_snapshot!(messages.join("\n\n"));
    assert_refused(
        &disk.fix_move(1, &["--to", "100s", "--yes", "sda1"]),
        2,
        &["--yes: found `sda1`"],
    );
    assert_refused(
        &disk.fix_move(1, &["--to", "100s", "--yes", &disk.device.name()]),
        2,
        &["expected"],
    );
    assert_refused(&fix("move", disk.device.path()), 2, &["--to"]);
    let whole = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["fix", "move", "--to", "2048s"])
        .arg(disk.device.path())
        .output();
    assert_refused(
        &whole.expect("plumb runs"),
        2,
        &["found no partition", "expected a partition of a disk"],
    );
    // Behind the neighbour: the move would have to jump over it.
    let apart = PreflightDisk::gpt(&[(2_048, 10_000), (12_000, 20_000)]);
    let words = [
        "partition 2 begins at 6144000",
        "between the old and the new place of partition 1",
    ];
    assert_refused(&apart.fix_move(1, &["--to", "25000s"]), 5, &words);
    // No start on the grid is free on either side.
    let full = PreflightDisk::gpt(&[(34, 20_000), (20_001, 40_000)]);
    assert_refused(
        &full.fix_move(1, &["--aligned"]),
        5,
        &["no start on the grid"],
    );
}

/// A disk set read-only until this is dropped: a loop device keeps that for the next file.
struct ReadOnly<'a>(&'a PreflightDisk);

impl ReadOnly<'_> {
    fn set(disk: &PreflightDisk) -> ReadOnly<'_> {
        run(Command::new("blockdev")
            .arg("--setro")
            .arg(disk.device.path()));
        ReadOnly(disk)
    }
}

impl Drop for ReadOnly<'_> {
    fn drop(&mut self) {
        let _ = Command::new("blockdev")
            .arg("--setrw")
            .arg(self.0.device.path())
            .status();
    }
}

/// It opens for writing all the same, and would fail in the middle.
#[test]
fn a_disk_that_is_read_only() {
    require!(Loop, Tool("sgdisk"), Tool("blockdev"));
    let disk = PreflightDisk::gpt(&[(34, 131_105)]);
    let words = [
        "found a read-only disk",
        "nothing was written",
        "blockdev --setrw",
    ];
    let protected = ReadOnly::set(&disk);
    for args in [
        &["--to", "2048s"][..],
        &["--to", "2048s", "--yes", &disk.name(1)],
    ] {
        assert_refused(&disk.fix_move(1, args), 5, &words);
    }
    assert!(disk.start(1) == Some(34) && !disk.journal().exists());
    drop(protected);
    disk.stopped(1, 4_096);
    let (stopped, journal) = (
        disk_bytes(&disk),
        fs::read(disk.journal()).expect("a journal"),
    );
    let protected = ReadOnly::set(&disk);
    for what in ["resume", "rollback"] {
        assert_refused(&disk.go(what), 5, &words);
    }
    assert!(
        disk_bytes(&disk) == stopped && fs::read(disk.journal()).expect("a journal") == journal
    );
    drop(protected);
    assert_done(&disk.go("rollback"));
    assert_eq!(disk.start(1), Some(34));
}

/// Commands that change labels save none without a change.
#[test]
fn a_label_of_a_disk_that_is_read_only() {
    require!(Loop, Tool("sgdisk"), Tool("blockdev"));
    let disk = PreflightDisk::gpt(&[(34, 20_000)]);
    let saved = disk.dir().join("saved");
    let command = |what: &str, args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command
            .args(["fix", what])
            .args(args)
            .args(["--yes", &disk.device.name()]);
        command
    };
    let relabel = || {
        let mut relabel = command("relabel", &["--start", "2048s"]);
        relabel
            .arg(disk.device.path())
            .arg("--save")
            .arg(&saved)
            .limited_output()
    };
    let words = [
        "found a read-only disk",
        "nothing was written",
        "blockdev --setrw",
    ];
    let protected = ReadOnly::set(&disk);
    let before = disk_bytes(&disk);
    assert_refused(&relabel(), 5, &words);
    let mut backup = command("backup-label", &[]);
    let backup = backup
        .arg(disk.device.path())
        .arg("--save")
        .arg(&saved)
        .output();
    assert_refused(&backup.expect("plumb runs"), 5, &words);
    assert!(disk_bytes(&disk) == before && !saved.exists());
    drop(protected);
    assert_done(&relabel());
    let _protected = ReadOnly::set(&disk);
    let undo = command("undo", &[])
        .arg(&saved)
        .arg(disk.device.path())
        .output();
    assert_refused(&undo.expect("plumb runs"), 5, &words);
    assert_eq!(disk.start(1), Some(2_048));
}

/// The kernel counts on another table than is on the disk.
#[test]
fn label_and_kernel_that_disagree() {
    require!(Loop, Tool("sgdisk"));
    let disk = PreflightDisk::gpt(&[(2_048, 20_000)]);
    let image = disk.dir().join("disk.img");
    run(Command::new("sgdisk")
        .args(["-d1", "-a1", "-n1:2050:20000"])
        .arg(&image));
    assert_refused(
        &disk.fix_move(1, &["--to", "4096s"]),
        5,
        &["label and kernel disagree", "partx --update"],
    );
    run(Command::new("sgdisk")
        .args(["-d1", "-a1", "-n2:2048:20000"])
        .arg(&image));
    assert_refused(
        &disk.fix_move(1, &["--to", "4096s"]),
        5,
        &["no such partition in the label"],
    );
    // A broken copy is repaired first: it could count as the good one after a crash.
    run(Command::new("sgdisk")
        .args(["-d2", "-a1", "-n1:2048:20000"])
        .arg(&image));
    let file = disk.image_file();
    let mut byte = [0];
    file.read_exact_at(&mut byte, 512 + 56).expect("a GUID");
    file.write_all_at(&[!byte[0]], 512 + 56).expect("room");
    assert_refused(
        &disk.fix_move(1, &["--to", "4096s"]),
        5,
        &["the label has a problem", "backup-label"],
    );
}

/// A mounted partition that is deleted from a label stays with the kernel, and its data are as good as before.
#[test]
fn partitions_that_only_the_kernel_has() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = PreflightDisk::gpt(&[(34, 20_000), (30_000, 60_000)]);
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(disk.node(2)));
    // The file system writes nothing by itself, so that each change of a byte is one of the move.
    let mounted = Mounted::mount_with("ro", &disk.node(2), &disk.at());
    run(Command::new("sgdisk")
        .arg("-d2")
        .arg(disk.dir().join("disk.img")));
    let before = disk_bytes(&disk);
    let words = [
        &format!("the kernel has {} between", disk.name(2)),
        "nothing was written",
        "partx --delete --nr 2",
    ];
    for args in [
        &["--to", "25000s"][..],
        &["--to", "25000s", "--yes", &disk.name(1)],
    ] {
        assert_refused(&disk.fix_move(1, args), 5, &words);
    }
    assert!(disk.node(1).exists() && !disk.journal().exists());
    assert!(disk_bytes(&disk) == before, "nothing was written");
    // Beside it there is room.
    assert_done(&disk.fix_move(1, &["--to", "2048s", "--yes", &disk.name(1)]));
    assert_eq!((disk.start(1), disk.start(2)), (Some(2_048), Some(30_000)));
    drop(mounted);
    run(Command::new("e2fsck").args(["-f", "-n"]).arg(disk.node(2)));
}

/// The file behind the loop device ends before the partition does: reads there fail, like bad blocks. File system data
/// at the end are then unknown.
#[test]
fn unreadable_data_refuse_a_move() {
    require!(Loop, Tool("sfdisk"));
    // A label without a copy at the end of the disk.
    let disk = PreflightDisk::sfdisk(40_000, "label: dos\nstart=34, size=35000, type=83\n");
    disk.image_file().set_len(30_000 * 512).expect("a file");
    for args in [
        &["--to", "2048s"][..],
        &["--to", "2048s", "--scan", "--yes", &disk.name(1)],
    ] {
        assert_refused(
            &disk.fix_move(1, args),
            5,
            &["cannot be read: nothing was written"],
        );
    }
    assert!(disk.node(1).exists() && !disk.journal().exists());
}
