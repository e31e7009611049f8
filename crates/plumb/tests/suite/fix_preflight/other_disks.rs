//! Moves that were stopped, and disks that are not theirs: names change with every start, and copies of a disk are alike.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Output};

use plumb_testkit::loop_device::{LoopDevice, run};
use plumb_testkit::require;
use plumb_testkit::rng::noise;
use plumb_testkit::wait::RunLimited;

use crate::fix_preflight::disk::{
    PreflightDisk, assert_done, assert_refused, disk_bytes, fix, fix_marked, output_text,
};

/// 64 MiB, moved by 2 MiB: some tens of windows.
const PART: (u64, u64) = (34, 131_105);
const TO: u64 = 4_096;

fn on_disk(what: &str, journal: &Path, disk: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command
        .args(["fix", what])
        .arg(journal)
        .arg("--disk")
        .arg(disk)
        .limited_output()
}

fn put(disk: &PreflightDisk, bytes: &[u8]) {
    let image = disk.image_file();
    image
        .write_all_at(bytes, 0)
        .and_then(|()| image.sync_all())
        .expect("room");
}

/// A disk with a file system, whose signature markers replace.
fn formatted() -> (PreflightDisk, Vec<u8>) {
    let disk = PreflightDisk::gpt(&[PART]);
    disk.fill(1);
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(disk.node(1)));
    let data = disk.bytes_of(1);
    (disk, data)
}

/// After a restart two disks have changed names. Neither states an identity, and the other one has no label.
#[test]
fn names_that_were_swapped() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let (was, data) = formatted();
    let is = PreflightDisk::gpt(&[PART]);
    was.stopped(1, TO);
    let stopped = disk_bytes(&was);
    put(&is, &stopped);
    let stranger = noise(stopped.len(), 5);
    put(&was, &stranger);
    let journal = was.journal();
    for what in ["resume", "rollback"] {
        let refused = was.go(what);
        let device = was.device.path().display().to_string();
        assert_refused(
            &refused,
            5,
            &[
                &device,
                "found no label, expected a mark of the journal",
                "--disk",
            ],
        );
        assert_refused(
            &on_disk(what, &journal, was.device.path()),
            5,
            &["found no label"],
        );
        assert_refused(
            &fix(what, was.device.path()),
            2,
            &["no journal and no mark of a move"],
        );
    }
    assert!(
        disk_bytes(&was) == stranger && disk_bytes(&is) == stopped,
        "nothing was written"
    );
    // A resume names the disk, and writes to the named one.
    let words = output_text(&fix("status", is.device.path()));
    let again = format!(
        "plumb fix resume {} --disk {}",
        journal.display(),
        is.device.path().display()
    );
    assert!(words.contains(&again), "{words}");
    assert_done(&fix_marked("resume", &is.node(1), &is));
    assert!(disk_bytes(&was) == stranger, "the other one is as it was");
    assert!(is.bytes_of(1) == data && !journal.exists());
    assert_eq!(is.start(1), Some(TO));
}

/// A copy of a disk has its label, with the same identities; it lacks the writes of the move.
#[test]
fn a_copy_is_another_disk() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let (disk, data) = formatted();
    let copy = PreflightDisk::gpt(&[PART]);
    let before = disk_bytes(&disk);
    put(&copy, &before);
    disk.stopped(1, TO);
    for what in ["resume", "rollback"] {
        let refused = on_disk(what, &disk.journal(), copy.device.path());
        assert_refused(
            &refused,
            5,
            &["found the label ", "expected a mark of the journal"],
        );
        assert_refused(
            &fix(what, copy.device.path()),
            2,
            &["no journal and no mark of a move"],
        );
    }
    assert!(disk_bytes(&copy) == before, "nothing was written");
    assert_done(&disk.go("rollback"));
    assert!(disk.bytes_of(1) == data);
}

/// The node of a loop device stays when its file is detached; the file has another one by now.
#[test]
fn a_node_without_a_disk() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let (disk, data) = formatted();
    disk.stopped(1, TO);
    let unbound = LoopDevice::attach(&disk.dir().join("disk.img"), &[]);
    let node = unbound.path().to_owned();
    drop(unbound);
    for what in ["resume", "rollback"] {
        let refused = on_disk(what, &disk.journal(), &node);
        assert!(
            !refused.status.success() && output_text(&refused).contains("--disk DEVICE"),
            "{}",
            output_text(&refused)
        );
    }
    assert_done(&disk.go("rollback"));
    assert!(disk.bytes_of(1) == data);
}

/// It has another name, which the journal cannot know.
#[test]
fn a_name_that_is_gone() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let (disk, data) = formatted();
    disk.stopped(1, TO);
    let (node, away) = (
        disk.device.path(),
        disk.device.path().with_extension("away"),
    );
    fs::rename(node, &away).expect("root");
    let refused = disk.go("resume");
    fs::rename(&away, node).expect("root");
    assert_refused(
        &refused,
        5,
        &[
            &node.display().to_string(),
            "found no such device",
            "--disk DEVICE",
        ],
    );
    assert_done(&on_disk("resume", &disk.journal(), node));
    assert!(disk.bytes_of(1) == data);
}
