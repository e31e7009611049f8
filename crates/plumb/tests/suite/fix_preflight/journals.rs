//! Allowed places of a journal, and the fate of a move whose journal has changed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output};

use plumb_testkit::loop_device::{LoopDevice, Mounted, run};
use plumb_testkit::require;
use plumb_testkit::wait::RunLimited;
use plumb_testkit::zram::Zram;

use crate::common::recorded;
use crate::fix_preflight::disk::{
    PreflightDisk, assert_done, assert_refused, disk_bytes, fix, fix_marked, output_text,
};

fn with_journal(disk: &PreflightDisk, journal: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command
        .args(["fix", "move"])
        .arg(disk.node(1))
        .args(["--to", "2048s", "--journal"])
        .arg(journal);
    command.args(args).limited_output()
}

/// Files in memory are lost with the power, even with a disk file system above.
#[test]
fn places_in_memory() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = PreflightDisk::gpt(&[(34, 20_000)]);
    let at = |name: &str| {
        let at = disk.dir().join(name);
        fs::create_dir(&at).expect("room");
        at
    };
    let refused = |journal: &Path| {
        // That it may be on the same disk does not make memory a disk.
        let refused = with_journal(
            &disk,
            journal,
            &["--journal-same-disk", "--yes", &disk.name(1)],
        );
        assert_refused(&refused, 5, &["no place for a journal"]);
        assert!(!journal.exists());
        output_text(&refused)
    };
    let tmpfs = at("tmpfs");
    let _tmpfs = Mounted::tmpfs(64 << 20, &tmpfs);
    refused(&tmpfs.join("journal"));
    let ramfs = at("ramfs");
    run(Command::new("mount")
        .args(["-t", "ramfs", "ramfs"])
        .arg(&ramfs));
    let words = refused(&ramfs.join("journal"));
    run(Command::new("umount").arg(&ramfs));
    let mut messages = vec![recorded(&words)];
    let (upper, work, merged) = (tmpfs.join("upper"), tmpfs.join("work"), at("merged"));
    fs::create_dir(&upper)
        .and_then(|()| fs::create_dir(&work))
        .expect("room");
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        disk.dir().display(),
        upper.display(),
        work.display()
    );
    run(Command::new("mount")
        .args(["-t", "overlay", "overlay", "-o", &options])
        .arg(&merged));
    refused(&merged.join("journal"));
    run(Command::new("umount").arg(&merged));
    // A file in memory shown as a disk.
    let file = tmpfs.join("file");
    fs::File::create(&file)
        .and_then(|file| file.set_len(32 << 20))
        .expect("room");
    let over = LoopDevice::attach(&file, &[]);
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(over.path()));
    let looped = at("looped");
    let mounted = Mounted::mount(over.path(), &looped);
    let words = refused(&looped.join("journal"));
    messages.push(recorded(&words));
    insta::assert_snapshot!(messages.join("\n\n"));
    drop(mounted);
}

#[test]
fn compressed_memory_is_memory() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let Some(zram) = Zram::new(32 << 20) else {
        plumb_testkit::skip!("the kernel has no zram");
    };
    let disk = PreflightDisk::gpt(&[(34, 20_000)]);
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(zram.path()));
    let mounted = Mounted::mount(zram.path(), &disk.at());
    let refused = with_journal(&disk, &disk.at().join("journal"), &["--yes", &disk.name(1)]);
    assert_refused(
        &refused,
        5,
        &["it would be in memory, and lost with the power"],
    );
    drop(mounted);
}

#[test]
fn places_on_disks() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = PreflightDisk::gpt(&[(34, 60_000), (70_000, 130_000)]);
    let name = disk.name(1);
    // A sibling of the same disk, through a loop device and the file system of its file.
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(disk.node(2)));
    let mounted = Mounted::mount(&disk.node(2), &disk.at());
    let journal = disk.at().join("journal");
    let refused = with_journal(&disk, &journal, &["--yes", &disk.name(1)]);
    assert_refused(
        &refused,
        5,
        &["one broken disk would destroy both", "--journal-same-disk"],
    );
    drop(mounted);
    // On the moved partition: then it is mounted.
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(disk.node(1)));
    let mounted = Mounted::mount(&disk.node(1), &disk.at());
    assert_refused(
        &with_journal(&disk, &journal, &["--journal-same-disk", "--yes", &name]),
        5,
        &["is mounted at"],
    );
    drop(mounted);
    let nowhere = disk.dir().join("nowhere/journal");
    assert_refused(
        &with_journal(&disk, &nowhere, &["--yes", &name]),
        5,
        &["make the directory first"],
    );
    fs::write(disk.journal(), "mine").expect("room");
    assert_refused(
        &with_journal(&disk, &disk.journal(), &["--yes", &name]),
        5,
        &["found a file of that name"],
    );
    fs::remove_file(disk.journal()).expect("it");
    std::os::unix::fs::symlink("nowhere", disk.journal()).expect("room");
    assert_refused(
        &with_journal(&disk, &disk.journal(), &["--yes", &name]),
        5,
        &["found a file of that name"],
    );
    assert!(!disk.dir().join("nowhere").exists());
    fs::remove_file(disk.journal()).expect("it");
    // Without room for it nothing is begun.
    let small = PreflightDisk::gpt(&[(40, 8_191)]);
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(small.node(1)));
    let mounted = Mounted::mount(&small.node(1), &disk.at());
    let full = with_journal(
        &disk,
        &journal,
        &["--journal-same-disk", "--yes", &disk.name(1)],
    );
    assert_refused(
        &full,
        5,
        &["no place for a journal", "No space left", ": it takes "],
    );
    assert!(!journal.exists() && disk.node(1).exists());
    drop(mounted);
}

/// The statement of the disk below a directory.
fn physical_block_bytes(directory: &Path) -> Option<u64> {
    let device = fs::metadata(directory).ok()?.dev();
    let device = format!("/sys/dev/block/{}:{}", (device >> 8) & 0xfff, device & 0xff);
    let queues = [format!("{device}/queue"), format!("{device}/../queue")];
    let stated = queues
        .iter()
        .find_map(|queue| fs::read_to_string(format!("{queue}/physical_block_size")).ok());
    stated?.trim().parse().ok()
}

/// A file system at sector 34: 4 KiB of it take two blocks of 4 KiB of the disk.
#[test]
fn places_off_the_blocks_of_their_disk() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = PreflightDisk::gpt(&[(34, 20_000)]);
    let off = PreflightDisk::gpt(&[(34, 60_000)]);
    if physical_block_bytes(off.dir()) != Some(4096) {
        let why = "no disk with physical blocks of 4 KiB below the test's directory";
        plumb_testkit::skip!(why);
    }
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(off.node(1)));
    let mounted = Mounted::mount(&off.node(1), &disk.at());
    let journal = disk.at().join("journal");
    let refused = with_journal(
        &disk,
        &journal,
        &["--journal-same-disk", "--yes", &disk.name(1)],
    );
    let words =
        ["found physical blocks of 4 KiB that begin 3 KiB into its file system, expected 0 B"];
    assert_refused(&refused, 5, &words);
    assert!(!journal.exists() && disk.node(1).exists());
    drop(mounted);
}

/// A disk leads to its journal by the mark; if the journal is missing, damaged or another one, it says so, and writes
/// nothing.
#[test]
fn replaced_journals_are_refused() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = PreflightDisk::gpt(&[(34, 131_105)]);
    let data = disk.fill(1);
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(disk.node(1)));
    let data = if disk.bytes_of(1) == data {
        panic!("no file system was made")
    } else {
        disk.bytes_of(1)
    };
    disk.stopped(1, 4_096);
    for on in [
        disk.device.path().to_owned(),
        disk.node(1),
        disk.name(1).into(),
        disk.journal(),
    ] {
        assert_refused(
            &fix("status", &on),
            6,
            &["plumb fix resume", &disk.journal().display().to_string()],
        );
    }
    let before = disk_bytes(&disk);
    let (journal, aside) = (disk.journal(), disk.dir().join("aside"));
    // Lost.
    fs::rename(&journal, &aside).expect("it");
    for what in ["status", "resume", "rollback"] {
        let lost = fix(what, disk.device.path());
        assert_refused(
            &lost,
            5,
            &[
                "waits for the journal",
                "No such file",
                "mount the file system that it is on",
            ],
        );
        assert_refused(
            &fix(what, &journal),
            5,
            &["found no such file or device, expected the journal of a move"],
        );
    }
    // Another move's in its place: of another disk.
    let other = PreflightDisk::gpt(&[(34, 131_105)]);
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(other.node(1)));
    other.stopped(1, 4_096);
    fs::copy(other.journal(), &journal).expect("room");
    assert_refused(
        &fix("resume", disk.device.path()),
        5,
        &["waits for the journal", "found the journal"],
    );
    let named = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["fix", "resume"])
        .arg(&journal)
        .arg("--disk")
        .arg(disk.device.path())
        .output();
    assert_refused(
        &named.expect("plumb runs"),
        5,
        &["the move was begun on another disk"],
    );
    fs::remove_file(&journal).expect("it");
    // Damaged: a bit in the plan, and one in the middle of the log.
    let whole = fs::read(&aside).expect("the journal");
    let records: Vec<usize> = (0..whole.len())
        .step_by(4_096)
        .filter(|at| whole[*at..].starts_with(b"PLUMBJRN"))
        .collect();
    for (at, words) in [
        (100, "no good record at byte 0"),
        (records[records.len() / 2] + 70, "a later one is"),
    ] {
        let mut spoiled = whole.clone();
        spoiled[at] ^= 0x10;
        fs::write(&journal, &spoiled).expect("room");
        for what in ["status", "resume", "rollback"] {
            let damaged = fix(what, &journal);
            assert!(
                matches!(damaged.status.code(), Some(5 | 6)),
                "{}",
                output_text(&damaged)
            );
            assert!(
                output_text(&damaged).contains(words),
                "{at}: {}",
                output_text(&damaged)
            );
        }
    }
    fs::write(&journal, "this is no journal").expect("room");
    assert_refused(&fix("resume", &journal), 5, &["no journal of a move"]);
    assert!(disk_bytes(&disk) == before, "nothing was written meanwhile");
    fs::remove_file(&journal).expect("it");
    fs::rename(&aside, &journal).expect("it");
    // A mark leads to it: its writes are printed first.
    assert_refused(
        &fix("resume", disk.device.path()),
        6,
        &[
            "a mark on the disk led to the journal",
            "nothing was written",
            "--yes",
        ],
    );
    assert!(disk_bytes(&disk) == before, "nothing was written");
    assert_done(&fix_marked("resume", disk.device.path(), &disk));
    assert!(disk.bytes_of(1) == data);
    assert_refused(
        &fix("resume", disk.device.path()),
        2,
        &["no journal and no mark of a move"],
    );
    assert_done(&fix_marked("rollback", other.device.path(), &other));
}

/// Killed while the journal was being made: it holds zeros, and is in the way of another move.
#[test]
fn a_journal_that_was_not_written_yet() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = PreflightDisk::gpt(&[(34, 131_105)]);
    fs::File::create(disk.journal())
        .and_then(|file| file.set_len(1 << 20))
        .expect("room");
    let remove = "remove the file if plumb fix status DISK finds no mark";
    for what in ["status", "resume", "rollback"] {
        assert_refused(
            &disk.go(what),
            5,
            &["zeros at its start", "that move never began", remove],
        );
    }
    let yes = ["--to", "2048s", "--yes", &disk.name(1)];
    let again = disk.fix_move(1, &yes);
    assert_refused(
        &again,
        5,
        &[
            "found a file of that name",
            "whose move never began",
            remove,
        ],
    );
    fs::write(disk.journal(), b"a letter").expect("room");
    let other = disk.fix_move(1, &yes);
    assert_refused(&other, 5, &["found a file of that name"]);
    assert!(
        !output_text(&other).contains("never began"),
        "{}",
        output_text(&other)
    );
    assert_refused(&disk.go("status"), 5, &["no journal of a move"]);
    // The disk waits for a former journal.
    fs::remove_file(disk.journal()).expect("a file");
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(disk.node(1)));
    disk.stopped(1, 4_096);
    let kept = fs::read(disk.journal()).expect("a journal");
    fs::write(disk.journal(), vec![0; kept.len()]).expect("room");
    let refused = fix("status", disk.device.path());
    assert_refused(
        &refused,
        5,
        &["waits for the journal", "found zeros at its start"],
    );
    fs::write(disk.journal(), kept).expect("room");
    assert_done(&disk.go("rollback"));
}
