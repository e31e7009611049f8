//! Moves that have ended and are held, that never began, and that cannot begin yet; and bytes that are lost.

use std::fs::{self, OpenOptions};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use plumb_relocate::moving::recover_unchecked;
use plumb_relocate::{Direction, Ending, JournalFile, Raw};
use plumb_sys::{Access, DirectDisk};
use plumb_testkit::loop_device::{Mounted, run};
use plumb_testkit::wait::RunLimited;
use plumb_testkit::{require, wait};

use crate::common::{passages, recorded};
use crate::fix_preflight::disk::{
    PreflightDisk, assert_done, assert_refused, disk_bytes, fix, output_text,
};

/// 64 MiB, moved by 2 MiB: some tens of windows.
const PART: (u64, u64) = (34, 131_105);
const TO: u64 = 4_096;
const BLOCK: usize = 4_096;

/// The plan can be read while the partition is in use, and lists the steps before it.
#[test]
fn a_preview_needs_no_more_than_reading() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = PreflightDisk::gpt(&[PART]);
    // The file system itself writes nothing later: neither the rest of its tables nor the mount.
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"])
        .arg(disk.node(1)));
    let mounted = Mounted::mount(&disk.node(1), &disk.at());
    run(Command::new("sync").arg("-f").arg(disk.at()));
    let before = disk_bytes(&disk);
    let shown = disk.fix_move(1, &["--to", "4096s"]);
    assert_done(&shown);
    let words = output_text(&shown);
    for word in [
        "from sector 34 to sector 4,096",
        "in the way: ",
        "is mounted at",
    ] {
        assert!(words.contains(word), "{word}: {words}");
    }
    // A place for the journal that does not do is one more.
    let nowhere = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args([
            "fix",
            "move",
            "--to",
            "4096s",
            "--journal",
            "/proc/journal",
            "--json",
        ])
        .arg(disk.node(1))
        .limited_output();
    assert_done(&nowhere);
    let document: serde_json::Value = serde_json::from_slice(&nowhere.stdout).expect("JSON");
    let obstacles = document["result"]["obstacles"].as_array().expect("a list");
    assert_eq!(obstacles.len(), 2, "{obstacles:?}");
    assert!(disk_bytes(&disk) == before, "something was written");
    assert_refused(
        &disk.fix_move(1, &["--to", "4096s", "--yes", &disk.name(1)]),
        5,
        &["nothing was written", "is mounted at"],
    );
    drop(mounted);
}

/// The kernel holds the partition as it was meanwhile, since somebody has it open: the move has ended all the same, and a
/// resume later tells the kernel.
#[test]
fn a_finished_move_is_reported_while_its_partition_is_open() {
    require!(Loop, Tool("sgdisk"));
    let disk = PreflightDisk::gpt(&[PART]);
    let data = disk.fill(1);
    disk.stopped(1, TO);
    run(Command::new("partx")
        .args(["--add", "--nr", "1"])
        .arg(disk.device.path()));
    let held = fs::File::open(disk.node(1)).expect("the kernel has it");
    // As a process that is killed behind its last write.
    let store = JournalFile::open(&disk.journal()).expect("the journal");
    let direct = DirectDisk::open(disk.device.path(), Access::Write).expect("root");
    let mut moving = recover_unchecked(Direction::Forward, store, Raw(&direct)).expect("a move");
    let ended = moving.run(|_| ControlFlow::Continue(())).expect("it ends");
    assert_eq!(ended, Some(Ending::Moved));
    drop(moving);
    drop(direct);
    let told = disk.go("resume");
    assert_done(&told);
    let words = output_text(&told);
    insta::assert_snapshot!(passages(&words, &["kernel does"]));
    assert!(disk.journal().exists(), "it is needed once more");
    drop(held);
    assert_done(&disk.go("resume"));
    assert!(!disk.journal().exists());
    assert_eq!(disk.start(1), Some(TO));
    assert!(disk.bytes_of(1) == data, "the data are others");
}

/// A journal that has a plan and no turn to move. If its disk shows nothing of the move, the program was killed before it wrote
/// there. If it does, the journal has lost its records, and nothing may be said to be well.
#[test]
fn a_journal_that_never_began_is_nothing_to_do() {
    require!(Loop, Tool("sgdisk"));
    let disk = PreflightDisk::gpt(&[PART]);
    disk.stopped(1, TO);
    let bytes = fs::read(disk.journal()).expect("the journal");
    let payload = u64::from_le_bytes(bytes[40..48].try_into().expect("8 bytes")) as usize;
    let begin = (64 + payload).next_multiple_of(BLOCK);
    let mut only = vec![0; bytes.len()];
    only[..begin].copy_from_slice(&bytes[..begin]);
    let path = disk.dir().join("never");
    fs::write(&path, only).expect("room");
    let with_json = |what: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command.args(["fix", what, "--json"]).arg(&path);
        command.limited_output()
    };
    for what in ["resume", "rollback"] {
        for told in [fix(what, &path), with_json(what)] {
            assert_eq!(told.status.code(), Some(5), "{told:?}");
            let words = output_text(&told);
            for part in [
                "found no record that its move began",
                "has bytes that only this move writes",
                "keep the disk and the journal",
            ] {
                assert!(words.contains(part), "{words}");
            }
        }
    }
    assert_done(&disk.go("rollback"));
    let mut messages = Vec::new();
    for what in ["resume", "rollback"] {
        let told = fix(what, &path);
        assert_done(&told);
        messages.push(recorded(&output_text(&told)));
        let told = with_json(what);
        assert_done(&told);
        let document: serde_json::Value = serde_json::from_slice(&told.stdout).expect("JSON");
        assert_eq!(document["result"]["action"], what);
        assert_eq!(document["result"]["state"], "never begun");
        assert_eq!(document["result"]["bytes_done"], 0);
    }
    // Without its disk nobody can tell.
    let words = output_text(&{
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command.args(["fix", "resume", "--disk", "/dev/not-there"]);
        command.arg(&path).limited_output()
    });
    messages.push(recorded(&words));
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// With `--scan-write` the free part of the new place holds zeros before the first data arrive: a move to the right begins at
/// the end, 64 MiB at once, and is stopped before it comes to the start.
#[test]
fn a_new_place_is_filled_with_zeros_first() {
    require!(Loop, Tool("sfdisk"));
    const FAR: u64 = 204_800;
    const SHOWN_BYTES: usize = 64 << 10;
    let disk = PreflightDisk::sfdisk(409_600, "label: dos\nstart=34, size=196608, type=83\n");
    let data = disk.fill(1);
    let garbage = vec![0xa5; SHOWN_BYTES];
    let written = disk.image_file().write_all_at(&garbage, FAR * 512);
    written.expect("room");
    disk.stopped_with(1, FAR, &["--scan-write"]);
    let mut found = vec![1; SHOWN_BYTES];
    let read = disk.image_file().read_exact_at(&mut found, FAR * 512);
    read.expect("the image");
    assert!(found.iter().all(|byte| *byte == 0), "no zeros");
    assert_done(&disk.go("resume"));
    assert!(disk.bytes_of(1) == data, "the data are others");
}

/// The last physical block, with the header of the backup label, cannot be read until it is written. The primary label shows the
/// move; it goes on, or back, and writes the block.
#[test]
fn an_unreadable_copy_of_the_label_keeps_no_move_from_going_on() {
    require!(Loop, Tool("sgdisk"));
    for (what, start) in [("resume", TO), ("rollback", PART.0)] {
        let disk = PreflightDisk::gpt(&[PART]);
        let data = disk.fill(1);
        disk.stopped(1, TO);
        let image = disk.image_file();
        let len = image.metadata().expect("the image").len();
        let last = len - BLOCK as u64;
        image.set_len(last).expect("a shorter image");
        let device = DirectDisk::open(disk.device.path(), Access::Read).expect("root");
        let mut block = plumb_sys::AlignedBuffer::new(BLOCK);
        device
            .read_at(last, &mut block)
            .expect_err("no bytes are left there");
        drop(device);
        assert_done(&disk.go(what));
        assert_eq!(image.metadata().expect("the image").len(), len, "{what}");
        assert_eq!(disk.start(1), Some(start), "{what}");
        assert!(disk.bytes_of(1) == data, "{what}: the data are others");
        let verified = Command::new("sgdisk")
            .arg("-v")
            .arg(disk.device.path())
            .output();
        let words = output_text(&verified.expect("sgdisk runs"));
        crate::common::assert_sgdisk_agrees(&format!("{what}: {words}"));
    }
}

/// The report of a move that has ended cannot be written: a script that needs the document has to know (status 5), any
/// other user gets a warning. The move has ended all the same.
#[test]
fn a_report_that_cannot_be_written_is_a_warning() {
    require!(Loop, Tool("sgdisk"));
    let mut messages = Vec::new();
    for (flags, status) in [(&[][..], 0), (&["--json"][..], 5)] {
        let disk = PreflightDisk::gpt(&[PART]);
        let data = disk.fill(1);
        disk.stopped(1, TO);
        let full = OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("the device");
        let told = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(["fix", "resume"])
            .args(flags)
            .arg(disk.journal())
            .stdout(full)
            .stderr(Stdio::piped())
            .spawn()
            .expect("plumb runs");
        let told = wait::output("plumb fix resume", wait::PATIENCE, told);
        let words = output_text(&told);
        assert_eq!(told.status.code(), Some(status), "{words}");
        messages.push(recorded(&words));
        assert!(!disk.journal().exists(), "the move has ended");
        assert_eq!(disk.start(1), Some(TO));
        assert!(disk.bytes_of(1) == data, "the data are others");
    }
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// Somebody changes bytes that were copied, where the source is overwritten already. Nothing says that the partition has moved;
/// accepted, the loss is named, in the report, in the journal and in a file, with an exit status of its own.
#[test]
fn bytes_that_are_lost_are_named() {
    require!(Loop, Tool("sgdisk"));
    for (what, state) in [("resume", "complete"), ("rollback", "rolled back")] {
        let disk = PreflightDisk::gpt(&[PART]);
        let data = disk.fill(1);
        disk.stopped(1, TO);
        let store = JournalFile::open(&disk.journal()).expect("the journal");
        let direct = DirectDisk::open(disk.device.path(), Access::Write).expect("root");
        let mut moving =
            recover_unchecked(Direction::Forward, store, Raw(&direct)).expect("a move");
        while moving.progress().bytes < 16 << 20 {
            assert_eq!(moving.step().expect("no failure"), None);
        }
        drop(moving);
        drop(direct);
        // Its last windows are copied first, and the second MiB from the end was overwritten since.
        let at = PART.1 * 512 - (1 << 20) + (TO - PART.0) * 512;
        let image = disk.image_file();
        image.write_all_at(&[0xa5; 512], at).expect("room");
        image.sync_all().expect("a disk");
        run(Command::new("blockdev")
            .arg("--flushbufs")
            .arg(disk.device.path()));
        let refused = disk.go(what);
        assert_refused(&refused, 6, &["do not match their sum", "--accept-loss"]);
        assert!(disk.journal().exists(), "the journal is kept");
        // Without the file that names the loss the journal stays, and `status` names it.
        let taken = disk.journal().with_added_extension("lost");
        fs::create_dir(&taken).expect("a directory");
        let ended_with_loss = |args: &[&str]| -> serde_json::Value {
            let ended = Command::new(env!("CARGO_BIN_EXE_plumb"))
                .arg("fix")
                .args(args)
                .arg("--json")
                .arg(disk.journal())
                .limited_output();
            let words = output_text(&ended);
            assert_eq!(ended.status.code(), Some(7), "{args:?}: {words}");
            serde_json::from_slice(&ended.stdout).expect("JSON")
        };
        let unnamed = ended_with_loss(&[what, "--accept-loss"]);
        assert_eq!(unnamed["result"]["lost_file"], serde_json::Value::Null);
        let told = ended_with_loss(&["status"]);
        assert_eq!(told["result"]["lost"], unnamed["result"]["lost"]);
        fs::remove_dir(&taken).expect("an empty directory");
        let document = ended_with_loss(&[what, "--accept-loss"]);
        assert!(!disk.journal().exists(), "the move has ended");
        assert_eq!(document["result"]["state"], state);
        let lost = &document["result"]["lost"][0];
        let (start, len) = (
            lost["start_bytes"].as_u64().expect("a number") as usize,
            lost["len_bytes"].as_u64().expect("a number") as usize,
        );
        assert_eq!(lost["why"], "unproven");
        let name = document["result"]["lost_file"].as_str().expect("a file");
        let listed = fs::read_to_string(name).expect("the file");
        let line = format!("{start} {} unproven", start + len - 1);
        assert!(listed.contains(&line), "{line}: {listed}");
        // Everything else is right.
        let now = disk.bytes_of(1);
        assert!(now[..start] == data[..start] && now[start + len..] == data[start + len..]);
        let wrong = now.iter().zip(&data).position(|(now, data)| now != data);
        assert!(wrong.is_some_and(|at| (start..start + len).contains(&at)));
    }
}
