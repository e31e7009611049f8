//! Disks with an unfinished move: all other changes of their label are refused, so that the move continues or goes
//! back.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Output};

use plumb_testkit::loop_device::run;
use plumb_testkit::require;
use plumb_testkit::wait::RunLimited;
use serde_json::Value;

use crate::fix_preflight::disk::{PreflightDisk, assert_done, assert_refused, disk_bytes};

const PART: (u64, u64) = (4_096, 135_167);
const TO: u64 = 2_048;

/// `plumb fix WHAT …` of the whole disk, so that it acts; the old label goes to a file of that name.
fn acted(disk: &PreflightDisk, words: &[&str], save: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command
        .arg("fix")
        .args(words)
        .args(["--yes", &disk.device.name()]);
    command
        .arg("--save")
        .arg(disk.dir().join(save))
        .limited_output()
}

/// Checks that everything but resume and rollback is refused, with the evidence and the next commands, and that nothing
/// is written.
fn assert_only_the_move_goes_on(disk: &PreflightDisk, found: &[&str]) {
    let device = disk.device.path().display().to_string();
    let (saved, plan) = (disk.dir().join("before"), disk.dir().join("plan.json"));
    let saved = saved.to_str().expect("text");
    // After a restart the kernel has found the entry over both places.
    let partx = Command::new("partx")
        .args(["--add", "--nr", "1"])
        .arg(&device)
        .output();
    assert!(partx.expect("partx runs").status.success());
    let planned = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args([
            "plan",
            "partition",
            &device,
            "--grid",
            "1m",
            "--current",
            "2048s",
            "--after",
            "4m",
            "--json",
        ])
        .limited_output();
    std::fs::write(&plan, planned.stdout).expect("room");
    let before = disk_bytes(disk);
    let status = format!("plumb fix status {device}");
    let words = [
        &[device.as_str(), "nothing was written", status.as_str()],
        found,
    ]
    .concat();
    for args in [
        &["relabel", &device, "--new-label"][..],
        &["relabel", &device, "--number", "1", "--start", "4096s"],
        &["relabel", &device, "--number", "2", "--start", "145408s"],
        &["relabel", &device, "--plan", plan.to_str().expect("text")],
        &["backup-label", &device],
        &["undo", saved, &device],
        &["undo", saved, &device, "--force"],
    ] {
        assert_refused(&acted(disk, args, "save"), 5, &words);
        assert!(!disk.dir().join("save").exists(), "{args:?}");
    }
    let journal = disk.dir().join("other");
    for (number, to) in [(1, "1024s"), (1, "4096s"), (2, "145408s")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command
            .args(["fix", "move"])
            .arg(disk.node(number))
            .args(["--to", to, "--journal"])
            .arg(&journal);
        command.args(["--journal-same-disk", "--yes", &disk.name(number)]);
        assert_refused(&command.limited_output(), 5, &words);
        assert!(!journal.exists(), "{number} to {to}");
    }
    assert!(disk_bytes(disk) == before, "something was written");
}

/// A label that `undo` could go back to: that of before a change of the neighbour.
fn relabelled_once(disk: &PreflightDisk) {
    let device = disk.device.path().to_str().expect("text");
    assert_done(&acted(
        disk,
        &["relabel", device, "--number", "2", "--start", "143360s"],
        "before",
    ));
}

/// The findings of `plumb check` on the whole disk, with a grid that no partition starts on.
fn findings(disk: &PreflightDisk) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    let output = command
        .arg("check")
        .arg(disk.device.path())
        .args(["--grid", "1g", "--json"])
        .limited_output();
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    document["findings"].as_array().expect("findings").clone()
}

/// That no finding about the disk or one of its partitions has a command, since each would change the label.
fn assert_no_commands(disk: &PreflightDisk) {
    let findings = findings(disk);
    let device = disk.device.name();
    let of_disk = findings.iter().filter(|finding| {
        let target = finding["target"]["device"].as_str().expect("text");
        target.starts_with(&device) && finding["rule"] != "queue-setting"
    });
    let of_disk: Vec<&Value> = of_disk.collect();
    assert!(
        of_disk
            .iter()
            .any(|finding| finding["rule"] == "misaligned-partition"),
        "{of_disk:?}"
    );
    for finding in of_disk {
        assert_eq!(
            finding["fix"].as_array().map(Vec::len),
            Some(0),
            "{finding:#}"
        );
    }
}

/// `plumb check`'s findings about moves on the whole disk: the partition of each, with the words.
fn moves_found(disk: &PreflightDisk) -> Vec<(String, String)> {
    let findings = findings(disk);
    let of_moves = findings
        .iter()
        .filter(|finding| finding["rule"] == "unfinished-move");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    of_moves
        .map(|finding| {
            (
                text(&finding["target"]["device"]),
                text(&finding["facts"]["text"]),
            )
        })
        .collect()
}

#[test]
fn a_disk_with_a_move_that_was_stopped() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = PreflightDisk::gpt(&[PART, (141_312, 151_551)]);
    relabelled_once(&disk);
    // All zeros: nothing but the label and the journal tells of a move.
    let journal = disk.journal().display().to_string();
    let of_move = (
        disk.name(1),
        format!(
            "{}: the move of partition 1 has not ended",
            disk.device.name()
        ),
    );
    for what in ["resume", "rollback"] {
        assert_eq!(moves_found(&disk), []);
        disk.stopped(1, TO);
        assert_only_the_move_goes_on(&disk, &["partition 1 of type moving at byte 1048576"]);
        assert_eq!(moves_found(&disk), std::slice::from_ref(&of_move));
        assert_no_commands(&disk);
        assert_done(&disk.go(what));
        if what == "resume" {
            assert_done(&disk.fix_move(1, &["--to", "4096s", "--yes", &disk.name(1)]));
        }
    }
    // With a file system there is a mark as well, which names the journal.
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(disk.node(1)));
    let data = disk.bytes_of(1);
    disk.stopped(1, TO);
    let words = [
        "partition 1 of type moving at byte 1048576 and the mark of a move at byte ",
        &journal,
    ];
    assert_only_the_move_goes_on(&disk, &words);
    assert_done(&disk.go("rollback"));
    assert!(disk.bytes_of(1) == data);
}

/// Somebody has put the old label back: the marks are there still.
#[test]
fn a_mark_without_the_label() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = PreflightDisk::gpt(&[PART, (141_312, 151_551)]);
    relabelled_once(&disk);
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(disk.node(1)));
    let (data, label) = (disk.bytes_of(1), disk_bytes(&disk));
    disk.stopped(1, 4_608);
    let hidden = disk_bytes(&disk);
    let size = label.len();
    let put = |bytes: &[u8]| {
        let image = disk.image_file();
        for place in [0..34 * 512, size - 33 * 512..size] {
            image
                .write_all_at(&bytes[place.clone()], place.start as u64)
                .expect("room");
        }
        image.sync_all().expect("room");
        run(Command::new("blockdev")
            .arg("--flushbufs")
            .arg(disk.device.path()));
    };
    put(&label);
    let journal = disk.journal().display().to_string();
    assert_only_the_move_goes_on(&disk, &["found the mark of a move at byte ", &journal]);
    assert!(Path::new(&journal).exists());
    // And if an interrupted write has destroyed the label.
    put(&vec![0; size]);
    let device = disk.device.path().to_str().expect("text");
    let refused = acted(&disk, &["relabel", device, "--start", "4096s"], "save");
    assert_refused(
        &refused,
        5,
        &["found the mark of a move at byte ", &journal],
    );
    put(&hidden);
    assert_done(&disk.go("rollback"));
    assert!(disk.bytes_of(1) == data);
}

/// In an MBR the type is one that is free for uses like this.
#[test]
fn a_move_in_an_mbr() {
    require!(Loop, Tool("sfdisk"), Tool("mkfs.ext4"));
    let disk = PreflightDisk::sfdisk(
        160_000,
        "label: dos\nstart=4096, size=131072, type=83\nstart=141312, size=10240, type=83\n",
    );
    relabelled_once(&disk);
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(disk.node(1)));
    let data = disk.bytes_of(1);
    disk.stopped(1, TO);
    let journal = disk.journal().display().to_string();
    assert_only_the_move_goes_on(
        &disk,
        &["partition 1 of type moving at byte 1048576", &journal],
    );
    assert_eq!(moves_found(&disk).len(), 1);
    assert_done(&disk.go("resume"));
    assert_eq!(moves_found(&disk), []);
    assert!(disk.bytes_of(1) == data);
}
