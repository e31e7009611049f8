//! Stopped moves: those that continue, those that go back, and those that do neither.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::process::Command;
use std::time::{Duration, Instant};

use plumb_testkit::loop_device::run;
use plumb_testkit::wait::RunLimited;
use plumb_testkit::{require, wait};
use serde_json::Value;

use crate::fix_preflight::disk::{
    PreflightDisk, assert_done, assert_refused, disk_bytes, fix, fix_marked, output_text, stop,
};

/// 64 MiB, moved by 2 MiB: some tens of windows.
const PART: (u64, u64) = (34, 131_105);
const TO: u64 = 4_096;

/// A database opens its raw device as its own user, by its own name.
#[test]
fn nodes_are_whose_they_were() {
    require!(Loop, Tool("sgdisk"));
    let disk = PreflightDisk::gpt(&[PART]);
    let node = disk.node(1);
    let own = || {
        let found = fs::metadata(&node).expect("the node");
        (found.uid(), found.gid(), found.mode() & 0o7777)
    };
    let identity = || run(Command::new("sgdisk").arg("-i1").arg(disk.device.path()));
    let kept = |text: String| {
        let is_kept = |line: &&str| line.contains("GUID") || line.contains("name");
        text.lines()
            .filter(is_kept)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let given = |uid: u32, gid: u32, mode: u32| {
        chown(&node, Some(uid), Some(gid)).expect("root");
        fs::set_permissions(&node, fs::Permissions::from_mode(mode)).expect("root");
    };
    let before = kept(identity());
    given(12_345, 54_321, 0o640);
    assert_done(&disk.fix_move(1, &["--to", "4096s", "--yes", &disk.name(1)]));
    assert_eq!((disk.start(1), own()), (Some(TO), (12_345, 54_321, 0o640)));
    given(12_346, 54_322, 0o604);
    disk.stopped(1, 34);
    assert!(!node.exists(), "nobody finds it meanwhile");
    assert_done(&disk.go("resume"));
    assert_eq!((disk.start(1), own()), (Some(34), (12_346, 54_322, 0o604)));
    disk.stopped(1, TO);
    assert_done(&disk.go("rollback"));
    assert_eq!((disk.start(1), own()), (Some(34), (12_346, 54_322, 0o604)));
    assert_eq!(kept(identity()), before, "type, identity and name");
}

#[test]
fn a_second_one_does_no_harm() {
    require!(Loop, Tool("sgdisk"));
    let disk = PreflightDisk::gpt(&[PART, (140_000, 150_000)]);
    let data = disk.fill(1);
    disk.stopped(1, TO);
    // After a restart the kernel has found the entry over both places.
    run(Command::new("partx")
        .args(["--add", "--nr", "1"])
        .arg(disk.device.path()));
    // The first holds the disk; the second is refused, for any request.
    let first = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["fix", "resume"])
        .arg(disk.journal())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("plumb starts");
    let second = disk.go("resume");
    let first = wait::output("the first plumb fix resume", wait::PATIENCE, first);
    let codes = [first.status.code(), second.status.code()];
    assert!(
        codes.contains(&Some(0)),
        "{}{}",
        output_text(&first),
        output_text(&second)
    );
    assert!(
        disk.bytes_of(1) == data,
        "{}{}",
        output_text(&first),
        output_text(&second)
    );
    assert_eq!(disk.start(1), Some(TO));
    for what in ["resume", "rollback"] {
        assert_refused(&disk.go(what), 5, &["found no such file or device"]);
    }
    assert!(disk.bytes_of(1) == data);
}

/// Cut off behind its last record, it has a journal still. The way back from there is another move.
#[test]
fn finished_moves_have_no_rollback() {
    require!(Loop, Tool("sgdisk"));
    let disk = PreflightDisk::gpt(&[PART]);
    let data = disk.fill(1);
    disk.stopped(1, TO);
    let kept = disk.dir().join("kept");
    fs::hard_link(disk.journal(), &kept).expect("room");
    // A journal of two names may be somebody else's.
    assert_done(&fix_marked("resume", &disk.journal(), &disk));
    let refused = fix("rollback", &kept);
    assert_refused(&refused, 5, &["ended already", "at its new place"]);
    assert_eq!(
        disk.start(1),
        Some(TO),
        "it is finished, and stays with the kernel"
    );
    assert!(disk.bytes_of(1) == data);
    // A resume updates the kernel.
    run(Command::new("partx")
        .args(["--delete", "--nr", "1"])
        .arg(disk.device.path()));
    assert_done(&fix("resume", &kept));
    assert!(disk.start(1) == Some(TO) && disk.bytes_of(1) == data && !kept.exists());
}

/// Interrupted after its last write, before the record of that: a mount followed by a rollback would lose later writes.
/// The signature is no help: a volume or a database on the raw partition changes none.
#[test]
fn rolled_back_moves_have_no_rollback() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    for has_signature in [true, false] {
        let disk = PreflightDisk::gpt(&[PART]);
        disk.fill(1);
        if has_signature {
            run(Command::new("mkfs.ext4")
                .args(["-q", "-F"])
                .arg(disk.node(1)));
        }
        let data = disk.bytes_of(1);
        disk.stopped(1, TO);
        let kept = disk.dir().join("kept");
        fs::hard_link(disk.journal(), &kept).expect("room");
        assert_done(&fix_marked("resume", &disk.journal(), &disk));
        // The record of its end is in the last block that is not empty.
        let blocks = fs::read(&kept).expect("the journal");
        let last = blocks
            .chunks(4096)
            .rposition(|block| block.iter().any(|byte| *byte != 0));
        let file = fs::File::options()
            .write(true)
            .open(&kept)
            .expect("the journal");
        file.write_all_at(&[0; 4096], last.expect("records") as u64 * 4096)
            .expect("room");
        let stands = fix("status", &kept);
        assert_refused(
            &stands,
            6,
            &["incomplete: writing label and signatures", "fix resume"],
        );
        assert!(
            !output_text(&stands).contains("fix rollback"),
            "{}",
            output_text(&stands)
        );
        // A user writes behind all identifying bytes.
        let node = fs::File::options()
            .write(true)
            .open(disk.node(1))
            .expect("the node");
        node.write_all_at(&[1; 4096], 8 << 20)
            .and_then(|()| node.sync_all())
            .expect("room");
        drop(node);
        assert_refused(
            &fix("rollback", &kept),
            6,
            &["does not go back any more", "fix resume"],
        );
        assert_done(&fix("resume", &kept));
        let now = disk.bytes_of(1);
        assert!(disk.start(1) == Some(TO) && !kept.exists());
        assert!(
            now[8 << 20..][..4096] == [1; 4096],
            "what was written since is kept"
        );
        assert!(
            now[..8 << 20] == data[..8 << 20]
                && now[(8 << 20) + 4096..] == data[(8 << 20) + 4096..]
        );
    }
}

/// The disk fails between the last look and the first write: by then the partition is taken away.
#[test]
fn an_unstarted_move_leaves_the_partition() {
    require!(Loop, Tool("sgdisk"));
    for _ in 0..8 {
        let disk = PreflightDisk::gpt(&[PART]);
        let node = disk.node(1);
        chown(&node, Some(12_345), None).expect("root");
        // By less than a MiB: a journal of more than all data, whose zeros take their time.
        let mut command = disk.command(1, &["--to", "1024s", "--yes", &disk.name(1)]);
        command
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        let mut child = command.spawn().expect("plumb starts");
        // Without a pause: a move of so little is fast.
        let until = Instant::now() + wait::PATIENCE;
        while !disk.journal().exists() && child.try_wait().expect("a child").is_none() {
            assert!(Instant::now() < until, "waited in vain for a journal");
        }
        disk.image_file().set_len(0).expect("the image");
        let output = wait::output("plumb fix move", wait::PATIENCE, child);
        if disk.journal().exists() {
            // It was faster: the move has begun.
            continue;
        }
        assert_refused(
            &output,
            5,
            &[&disk.name(1), "nothing was written", "disk cannot be read"],
        );
        assert_eq!(disk.start(1), Some(34), "{}", output_text(&output));
        assert_eq!(fs::metadata(&node).expect("the node").uid(), 12_345);
        return;
    }
    panic!("every move had begun before its disk failed");
}

/// Stopped and gone on with, again and again, in both directions.
#[test]
fn directions_may_change() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = PreflightDisk::gpt(&[PART]);
    disk.fill(1);
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(disk.node(1)));
    let data = disk.bytes_of(1);
    let words = output_text(&disk.stopped(1, TO));
    let resume = format!("plumb fix resume {}", disk.journal().display());
    assert!(words.contains(&resume), "{words}");
    // Once a rollback has begun, going on means going back.
    let mut back = Command::new(env!("CARGO_BIN_EXE_plumb"));
    back.args(["fix", "rollback"]).arg(disk.journal());
    assert_done(&back.limited_output());
    assert_eq!(disk.start(1), Some(34));
    assert!(disk.bytes_of(1) == data && !disk.journal().exists());
    assert_done(&disk.fix_move(1, &["--to", "4096s", "--yes", &disk.name(1)]));
    assert!(disk.bytes_of(1) == data);
}

/// Nothing but the disk as it was left is gone on with.
#[test]
fn a_disk_that_was_changed_meanwhile() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = PreflightDisk::gpt(&[PART]);
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(disk.node(1)));
    let data = disk.bytes_of(1);
    let saved = disk.dir().join("label");
    let image = disk.dir().join("disk.img");
    run(Command::new("sgdisk").arg("-b").arg(&saved).arg(&image));
    disk.stopped(1, TO);
    // The old label is restored: later copies would be invisible.
    run(Command::new("sgdisk").arg("-l").arg(&saved).arg(&image));
    assert_refused(
        &disk.go("resume"),
        6,
        &["another writer has changed it", "plumb fix rollback"],
    );
    assert_done(&disk.go("rollback"));
    assert!(disk.bytes_of(1) == data);
    assert_eq!(disk.start(1), Some(34));
    disk.stopped(1, TO);
    // The disk grows.
    let file = disk.image_file();
    let len = file.metadata().expect("the image").len();
    file.set_len(len + (1 << 20)).expect("room");
    run(Command::new("losetup")
        .arg("--set-capacity")
        .arg(disk.device.path()));
    let device = disk.device.path().display().to_string();
    for what in ["resume", "rollback"] {
        let words = [
            &device,
            "size of the disk: found",
            "as when the move began",
            "--disk DEVICE",
            "old size",
        ];
        assert_refused(&disk.go(what), 6, &words);
    }
    file.set_len(len).expect("room");
    run(Command::new("losetup")
        .arg("--set-capacity")
        .arg(disk.device.path()));
    assert_done(&disk.go("resume"));
    assert!(disk.bytes_of(1) == data);
    assert_eq!(fix("status", disk.device.path()).status.code(), Some(2));
}

/// A neighbour was made smaller by somebody: neither direction goes on, and the way out is not the other one.
#[test]
fn a_neighbour_that_was_resized_meanwhile() {
    require!(Loop, Tool("sgdisk"), Tool("sfdisk"));
    let disk = PreflightDisk::gpt(&[PART, (140_000, 150_000)]);
    let data = disk.fill(1);
    disk.stopped(1, TO);
    let resize = |sectors: u64| {
        let command = format!(
            "echo ',{sectors}' | sfdisk -q --no-reread --no-tell-kernel -N2 {}",
            disk.device.path().display()
        );
        run(Command::new("sh").args(["-c", &command]));
    };
    resize(5_000);
    let changed = disk_bytes(&disk);
    let device = disk.device.path().display().to_string();
    let found =
        "partition 2: found sectors 140,000 to 144,999, expected sectors 140,000 to 150,000";
    for what in ["resume", "rollback"] {
        let refused = disk.go(what);
        assert_refused(
            &refused,
            6,
            &[
                "neither resume nor rollback",
                "then go on",
                "run: plumb fix resume",
            ],
        );
        let words = output_text(&refused)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(words.contains(found), "{device}: {words}");
    }
    assert!(disk_bytes(&disk) == changed, "nothing was written");
    resize(10_001);
    assert_done(&disk.go("resume"));
    assert!(disk.bytes_of(1) == data && disk.start(1) == Some(TO));
}

/// The content of a partition is searched before a move, and not afterwards.
#[test]
fn contents_of_a_partition() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.vfat"));
    let disk = PreflightDisk::gpt(&[PART]);
    run(Command::new("mkfs.vfat").arg("-F32").arg(disk.node(1)));
    let holds = |output: &std::process::Output| -> Option<Value> {
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        document["result"].get("holds").cloned()
    };
    let shown = disk.fix_move(1, &["--to", "4096s", "--json"]);
    assert_eq!(
        holds(&shown),
        Some(serde_json::json!(["fat"])),
        "{}",
        output_text(&shown)
    );
    let placed = disk.fix_move(1, &["--to", "34s", "--json"]);
    assert_done(&placed);
    assert_eq!(holds(&placed), None, "{}", output_text(&placed));
    disk.stopped(1, TO);
    let mut status = Command::new(env!("CARGO_BIN_EXE_plumb"));
    let status = status
        .args(["fix", "status", "--json"])
        .arg(disk.journal())
        .limited_output();
    assert_eq!(status.status.code(), Some(6));
    assert_eq!(holds(&status), None, "{}", output_text(&status));
    assert_done(&disk.go("rollback"));
}

/// Ctrl-C of a terminal goes to all of its processes, and more than once.
#[test]
fn signals_may_come_twice() {
    require!(Loop, Tool("sgdisk"));
    let disk = PreflightDisk::gpt(&[PART]);
    let data = disk.fill(1);
    for signal in ["-TERM", "-HUP"] {
        let child = disk.begun(1, TO);
        let began = Instant::now();
        run(Command::new("kill").args([signal, &child.id().to_string()]));
        let output = stop(child);
        assert!(began.elapsed() < Duration::from_secs(30));
        assert!(
            output_text(&output).contains("plumb fix resume"),
            "{}",
            output_text(&output)
        );
        assert_done(&disk.go("rollback"));
        assert!(disk.bytes_of(1) == data, "{signal}");
    }
}

/// udev asks for a lock of the disk before it looks at a partition, and leaves it alone where somebody has another one.
#[test]
fn the_disk_is_locked_throughout() {
    require!(Loop, Tool("sgdisk"), Tool("flock"));
    let disk = PreflightDisk::gpt(&[PART]);
    let data = disk.fill(1);
    let is_locked = || {
        let mut udev = Command::new("flock");
        let asked = udev
            .args(["--shared", "--nonblock"])
            .arg(disk.device.path())
            .arg("true")
            .status();
        !asked.expect("flock runs").success()
    };
    assert!(!is_locked());
    let (name, mut locked) = (disk.name(1), 0);
    let mut child = disk
        .command(1, &["--to", "4096s", "--yes", &name])
        .spawn()
        .expect("plumb starts");
    let until = Instant::now() + wait::PATIENCE;
    while child.try_wait().expect("a child").is_none() {
        assert!(
            Instant::now() < until,
            "waited in vain for the end of a move"
        );
        let is_away = || !disk.node(1).exists();
        if is_away() {
            let held = is_locked();
            // It may have come back in between.
            assert!(
                held || !is_away(),
                "nobody locks the disk while its partition is away"
            );
            locked += u32::from(held);
        }
    }
    assert!(
        wait::exit("a move", wait::PATIENCE, &mut child).success() && locked > 0,
        "{locked}"
    );
    assert!(!is_locked() && disk.bytes_of(1) == data);
}
