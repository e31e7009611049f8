//! Attacks by those who can write to a file, to a disk or to both, and want root to write for them.

use std::fs;
use std::hash::Hasher;
use std::os::unix::fs::{FileExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use plumb_geometry::Bytes;
use plumb_relocate::journal::write_unchecked;
use plumb_relocate::labels::{Change, ChangeStep, SavedLabel};
use plumb_relocate::moving::{ByteChange, Plan, status};
use plumb_relocate::{DiskOffset, JournalFile, Raw};
use plumb_sys::{Access, DirectDisk};
use plumb_testkit::loop_device::{LoopDevice, Mounted, run};
use plumb_testkit::tempdir::TempDir;
use plumb_testkit::wait::RunLimited;
use plumb_testkit::{require, root_dir, wait};

use crate::common::passages;
use crate::fix_preflight::disk::{
    PreflightDisk, assert_done, assert_refused, disk_bytes, fix, fix_marked, output_text,
};

/// User and group of everybody who is nobody.
const NOBODY: u32 = 65_534;
/// 32 MiB that are moved, and a partition behind them that is none of the move's business.
const PARTS: [(u64, u64); 2] = [(34, 65_569), (81_920, 98_303)];
const TO: u64 = 4_096;
const BLOCK: usize = 4_096;
/// A byte of the second partition.
const VICTIM: u64 = 81_920 * 512;

/// The victim's disk, and the forgery of an intruder with knowledge of its label, on a copy of it.
struct Attack {
    disk: PreflightDisk,
    before: Vec<u8>,
    room: TempDir,
    copy: LoopDevice,
    plan: Plan,
}

impl Attack {
    fn new(make: impl FnOnce(&PreflightDisk)) -> Attack {
        let disk = PreflightDisk::gpt(&PARTS);
        disk.fill(2);
        make(&disk);
        let before = disk_bytes(&disk);
        let room = root_dir("attack");
        let image = room.path().join("copy.img");
        fs::write(&image, &before).expect("room");
        let copy = LoopDevice::attach(&image, &["--direct-io=on"]);
        assert_eq!(copy.add_partitions(), 2);
        let plan = planned(&copy, &room.path().join("real"), &disk);
        Attack {
            disk,
            before,
            room,
            copy,
            plan,
        }
    }

    /// A journal of a plan, with the first label change of it pending.
    fn journal(&self, name: &str, plan: &Plan) -> PathBuf {
        let path = self.room.path().join(name);
        let len = plan.journal_bytes(BLOCK as u32);
        let store = JournalFile::create(&path, len, BLOCK as u32).expect("room");
        let disk = DirectDisk::open(self.copy.path(), Access::Read).expect("the copy");
        let saved = plan.signatures.iter().map(|range| {
            let mut bytes = vec![0; (range.end - range.start) as usize];
            let at = plan.from.0 + range.start;
            plumb_label::Disk::read_at(&Raw(&disk), at, &mut bytes).expect("the copy");
            bytes
        });
        let saved: Vec<Vec<u8>> = saved.collect();
        write_unchecked(store, plan, &saved).expect("a journal that is long enough");
        path
    }

    /// The journal of the real plan with one more record: bytes for the second partition.
    fn with_forged_image(&self, name: &str) -> PathBuf {
        let path = self.journal(name, &self.plan);
        let mut payload = Vec::new();
        for number in [0, VICTIM, 0, BLOCK as u64] {
            payload.extend(number.to_le_bytes());
        }
        payload.extend([0xee; BLOCK]);
        append(&path, 4, &payload);
        path
    }

    /// That the attack failed: nothing on the disk is another byte than before.
    fn assert_unharmed(&self) {
        assert!(
            disk_bytes(&self.disk) == self.before,
            "something was written"
        );
    }
}

/// The plan of a real move of the first partition of a copy, in the words of the disk that it is a copy of.
fn planned(copy: &LoopDevice, journal: &Path, disk: &PreflightDisk) -> Plan {
    let node = format!("/dev/{}p1", copy.name());
    // The journal is made before anything is written: a disk that refuses writes keeps both.
    run(Command::new("blockdev").arg("--setro").arg(copy.path()));
    run(Command::new("blockdev").arg("--setrw").arg(copy.path()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command
        .args(["fix", "move", &node, "--to", &format!("{TO}s"), "--journal"])
        .arg(journal)
        .args(["--journal-same-disk", "--yes", &node]);
    let before = fs::read(copy.path()).expect("the copy");
    let child = command
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("plumb starts");
    // The move goes on meanwhile: a later look may find a record that is being written.
    let mut plan = None;
    wait::until("the journal of a real move", wait::PATIENCE, || {
        let found = JournalFile::open_to_look(journal).ok();
        plan = found.and_then(|mut found| status(&mut found).ok().map(|status| status.plan));
        plan.is_some()
    });
    let plan = plan.expect("a journal");
    let output = wait::output("a real move", wait::PATIENCE, child);
    assert_done(&output);
    // Back to the bytes of before.
    fs::OpenOptions::new()
        .write(true)
        .open(copy.path())
        .and_then(|file| file.write_all_at(&before, 0).and_then(|()| file.sync_all()))
        .expect("room");
    let told = [copy.name(), disk.device.name()];
    Plan {
        partition: plan.partition.replace(&told[0], &told[1]),
        disk: plan.disk.replace(&told[0], &told[1]),
        ..plan
    }
}

/// Puts a record behind the last one of a journal, with a right sum.
fn append(path: &Path, kind: u32, payload: &[u8]) {
    let mut bytes = fs::read(path).expect("the journal");
    let number_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let records = (0..bytes.len())
        .step_by(BLOCK)
        .filter(|at| bytes[*at..].starts_with(b"PLUMBJRN"));
    let last = records
        .max_by_key(|at| number_at(at + 24))
        .expect("a record");
    let (number, before) = (number_at(last + 24) + 1, number_at(last + 56));
    let behind = last + (64 + number_at(last + 40) as usize).next_multiple_of(BLOCK);
    let mut record = bytes[last..last + 24].to_vec();
    record.extend(number.to_le_bytes());
    record.extend(kind.to_le_bytes());
    record.extend((BLOCK as u32).to_le_bytes());
    record.extend((payload.len() as u64).to_le_bytes());
    record.extend(before.to_le_bytes());
    let mut hasher = twox_hash::XxHash64::with_seed(0);
    hasher.write(&record);
    hasher.write(payload);
    record.extend(hasher.finish().to_le_bytes());
    record.extend(payload);
    bytes[behind..behind + record.len()].copy_from_slice(&record);
    fs::write(path, bytes).expect("room");
}

/// A sector that marks the disk as one that waits for a journal, as a move writes it.
fn marker(id: [u8; 16], path: &Path) -> Vec<u8> {
    let path = path.to_str().expect("text");
    let mut hasher = twox_hash::XxHash64::with_seed(0);
    hasher.write(&id);
    hasher.write(path.as_bytes());
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let text = format!(
        "PLUMB IS MOVING THIS\n{id}\n{:016x}\n{path}\n",
        hasher.finish()
    );
    let mut sector = text.into_bytes();
    sector.resize(512, 0);
    sector
}

fn go(what: &str, journal: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["fix", what])
        .arg(journal)
        .args(more)
        .limited_output()
}

/// Gives a directory and a file in it to nobody.
fn given_away(room: &TempDir, from: &Path) -> PathBuf {
    let home = room.path().join("home");
    fs::create_dir_all(&home).expect("room");
    let path = home.join("journal");
    fs::copy(from, &path).expect("room");
    for own in [&home, &path] {
        chown(own, Some(NOBODY), Some(NOBODY)).expect("root gives away");
    }
    path
}

fn ext4(disk: &PreflightDisk) {
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(disk.node(1)));
}

/// A user without rights fills a file of a mounted file system with marks that name a journal of theirs.
#[test]
fn a_marker_in_a_users_file() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let attack = Attack::new(ext4);
    let journal = given_away(&attack.room, &attack.with_forged_image("forged"));
    let mounted = Mounted::mount(&attack.disk.node(1), &attack.disk.at());
    let sectors = marker(attack.plan.journal.0, &journal).repeat(16 << 11);
    // Until the file system is full, so that marks are in its last MiB as well.
    for number in 0.. {
        let path = attack.disk.at().join(number.to_string());
        if fs::write(&path, &sectors).is_err() {
            break;
        }
    }
    drop(mounted);
    let filled = disk_bytes(&attack.disk);
    let place = 34 * 512 + ((65_570 - 34) * 512 - (1 << 20))..65_570 * 512;
    let last = &filled[place];
    assert!(
        last.chunks(512)
            .any(|sector| sector.starts_with(b"PLUMB IS MOVING THIS")),
        "marks stand where they were obeyed"
    );
    for what in ["status", "resume", "rollback"] {
        let found = fix(what, attack.disk.device.path());
        assert_refused(&found, 2, &["found no journal and no mark of a move"]);
    }
    // Nor do they keep anybody from a move.
    assert_done(&attack.disk.fix_move(1, &["--to", "4096s"]));
    assert!(disk_bytes(&attack.disk) == filled, "nothing was written");
}

/// A mark where a move writes one, in a partition without a file system that a database's user can write.
#[test]
fn a_marker_in_a_raw_partition() {
    require!(Loop, Tool("sgdisk"));
    let attack = Attack::new(|disk| drop(disk.fill(1)));
    let mut forged = attack.plan.clone();
    forged.signatures = std::iter::once(0..512).collect();
    let journal = given_away(&attack.room, &attack.journal("forged", &forged));
    let plant = |sector: &[u8]| {
        let node = fs::OpenOptions::new().write(true).open(attack.disk.node(1));
        node.and_then(|node| node.write_all_at(sector, 0).and_then(|()| node.sync_all()))
            .expect("the partition");
    };
    plant(&marker(forged.journal.0, &journal));
    let planted = disk_bytes(&attack.disk);
    let device = attack.disk.device.path();
    for what in ["status", "resume", "rollback"] {
        let words = [
            "others than root may have written",
            "user 65534 owns",
            "name the journal",
        ];
        assert_refused(&fix(what, device), 5, &words);
        assert_refused(
            &fix_marked(what, device, &attack.disk),
            if what == "status" { 2 } else { 5 },
            &[],
        );
    }
    // Other commands refuse the disk until somebody says that the mark is none.
    let refused = attack.disk.fix_move(1, &["--to", "4096s"]);
    assert_refused(
        &refused,
        5,
        &["found the mark of a move", "--ignore-marker"],
    );
    let name = attack.disk.device.name();
    assert_done(
        &attack
            .disk
            .fix_move(1, &["--to", "4096s", "--ignore-marker", &name]),
    );
    let other = attack
        .disk
        .fix_move(1, &["--to", "4096s", "--ignore-marker", "sdx"]);
    assert_refused(&other, 2, &["--ignore-marker: found `sdx`"]);
    // A mark that names a file that is no journal, or a journal without a mark there.
    let trap = attack.room.path().join("trap");
    assert!(Command::new("mkfifo").arg(&trap).limited_status().success());
    for (path, words) in [
        (trap.as_path(), "found a FIFO"),
        (Path::new("/dev/zero"), "found a character device"),
        (Path::new("relative"), "a path that no journal has"),
    ] {
        plant(&marker(forged.journal.0, path));
        assert_refused(&fix("resume", device), 5, &[words]);
    }
    let elsewhere = marker(forged.journal.0, &attack.journal("elsewhere", &forged));
    plant(&[&[0; 1024], &elsewhere[..]].concat());
    let words = "a journal whose move writes no mark at byte 18432";
    assert_refused(&fix("resume", device), 5, &[words]);
    plant(&planted[34 * 512..37 * 512]);
    assert!(disk_bytes(&attack.disk) == planted, "nothing was written");
}

/// A journal with a record that no move writes, for any owner and any way to it.
#[test]
fn a_record_outside_of_the_plan() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let attack = Attack::new(ext4);
    let forged = attack.with_forged_image("forged");
    let name = attack.disk.device.name();
    let device = attack.disk.device.path().to_str().expect("text");
    for what in ["status", "resume", "rollback"] {
        let more: &[&str] = match what {
            "status" => &[],
            _ => &["--disk", device, "--yes", &name],
        };
        let refused = go(what, &forged, more);
        assert_refused(&refused, 5, &["an image of the blocks of its step"]);
    }
    attack.assert_unharmed();
}

/// Plans with right sums, but wrong labels: the boot code, and bytes of a neighbour.
#[test]
fn a_label_that_no_move_makes() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let attack = Attack::new(ext4);
    let name = attack.disk.device.name();
    let device = attack.disk.device.path().to_str().expect("text");
    let at = |at: u64, len: usize| ByteChange {
        at: DiskOffset(at),
        old: attack.before[at as usize..at as usize + len].to_vec(),
        new: vec![0xee; len],
    };
    let mut with_boot_code = attack.plan.clone();
    with_boot_code.hide.push(at(0, 440));
    let mut with_neighbour = attack.plan.clone();
    with_neighbour.hide = vec![at(VICTIM, 512)];
    with_neighbour.finish.clear();
    for (number, plan) in [with_boot_code, with_neighbour].iter().enumerate() {
        let forged = attack.journal(&format!("forged-{number}"), plan);
        for what in ["resume", "rollback"] {
            let refused = go(what, &forged, &["--disk", device, "--yes", &name]);
            assert_refused(
                &refused,
                5,
                &["that a move of this partition does not make"],
            );
        }
        attack.assert_unharmed();
    }
}

/// A named journal that another user can have written: its writes are printed, and the disk has to be named.
#[test]
fn a_journal_of_another_user() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = PreflightDisk::gpt(&PARTS);
    ext4(&disk);
    let (data, name) = (disk.bytes_of(1), disk.device.name());
    disk.stopped(1, TO);
    let stopped = disk_bytes(&disk);
    let room = root_dir("home");
    let own = disk.journal();
    // In the home of another user, as a second name, and in a directory where everybody can write.
    let theirs = given_away(&room, &own);
    let linked = room.path().join("linked");
    fs::hard_link(&own, disk.dir().join("second")).expect("room");
    symlink(&own, &linked).expect("room");
    let open = room.path().join("open");
    fs::create_dir(&open).expect("room");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).expect("mine");
    fs::copy(&own, open.join("journal")).expect("room");
    let other = |path: &Path, words: &str| {
        for what in ["resume", "rollback"] {
            let asked = go(what, path, &[]);
            let told = [
                words,
                "old place",
                "new place",
                "label",
                "nothing was written",
            ];
            assert_refused(&asked, 6, &told);
            assert!(output_text(&asked).contains(&format!("--yes {name}")));
            let wrong = go(what, path, &["--yes", "sdx"]);
            assert_refused(&wrong, 2, &["--yes: found `sdx`"]);
        }
        assert!(disk_bytes(&disk) == stopped, "nothing was written");
    };
    other(&theirs, "user 65534 owns");
    other(&own, "the file has 2 names");
    other(&open.join("journal"), "others can write to");
    let refused = go("resume", &linked, &["--yes", &name]);
    assert_refused(
        &refused,
        5,
        &["found a symbolic link, expected a regular file"],
    );
    assert!(disk_bytes(&disk) == stopped, "nothing was written");
    // It is the journal of the move all the same, and continues on request.
    assert_done(&go("rollback", &theirs, &["--yes", &name]));
    assert!(disk.bytes_of(1) == data);
}

/// Pipes and devices in the place of a journal or of an old label are refused at once.
#[test]
fn journals_must_be_regular_files() {
    require!(Loop, Tool("sgdisk"));
    let disk = PreflightDisk::gpt(&PARTS);
    let fifo = disk.dir().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).limited_status().success());
    let before = disk_bytes(&disk);
    for (path, found) in [
        (fifo.as_path(), "found a FIFO, expected a regular file"),
        (
            Path::new("/dev/zero"),
            "found a character device, expected a regular file",
        ),
        (disk.dir(), "found a directory, expected a regular file"),
    ] {
        for what in ["status", "resume", "rollback"] {
            assert_refused(&fix(what, path), 5, &[found]);
        }
        let name = disk.device.name();
        let undo = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(["fix", "undo"])
            .arg(path)
            .arg(disk.device.path())
            .args(["--yes", &name])
            .output();
        assert_refused(&undo.expect("plumb runs"), 5, &[found]);
    }
    let refused = disk.fix_move(1, &["--to", "4096s", "--journal", "a\nb"]);
    assert_ne!(refused.status.code(), Some(0), "{}", output_text(&refused));
    let journal = disk.dir().join("a\nb");
    let refused = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["fix", "move"])
        .arg(disk.node(1))
        .args(["--to", "4096s", "--yes", &disk.name(1)])
        .args(["--journal-same-disk", "--journal"])
        .arg(&journal)
        .output();
    assert_refused(
        &refused.expect("plumb runs"),
        5,
        &["found a control character in its path"],
    );
    assert!(disk_bytes(&disk) == before, "nothing was written");
}

/// A file that says it is an old label, with a place in a partition that is mounted.
#[test]
fn an_old_label_in_a_mounted_partition() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = PreflightDisk::gpt(&PARTS);
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(disk.node(2)));
    let mounted = Mounted::mount(&disk.node(2), &disk.at());
    run(&mut Command::new("sync"));
    let before = disk_bytes(&disk);
    let at = VICTIM + (1 << 20);
    let old = vec![0xee; 512];
    let new = before[at as usize..at as usize + 512].to_vec();
    let change = Change::from_steps([ChangeStep::Write {
        at: Bytes(at),
        old,
        new,
    }]);
    let forged = SavedLabel {
        disk_bytes: before.len() as u64,
        sector_bytes: 512,
        unix_s: 0,
        device: disk.device.path().display().to_string(),
        identity: String::new(),
        what: "backup-label".to_owned(),
        change: change.expect("a place"),
    };
    let path = disk.dir().join("forged");
    forged.save(&path).expect("room");
    for more in [&[][..], &["--force"]] {
        let undo = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(["fix", "undo"])
            .arg(&path)
            .args(["--yes", &disk.device.name()])
            .args(more)
            .output();
        let words = ["in a partition that is in use", "is mounted at"];
        assert_refused(&undo.expect("plumb runs"), 5, &words);
    }
    assert!(disk_bytes(&disk)[at as usize..][..512] == before[at as usize..][..512]);
    drop(mounted);
    chown(&path, Some(NOBODY), Some(NOBODY)).expect("root gives away");
    let shown = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["fix", "undo"])
        .arg(&path)
        .output();
    let words = output_text(&shown.expect("plumb runs"));
    insta::assert_snapshot!(passages(&words, &["note:"]));
}

/// A virtual machine or a database has the whole disk open, and shows nothing else.
#[test]
fn a_writer_of_the_whole_disk() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = PreflightDisk::gpt(&PARTS);
    ext4(&disk);
    let data = disk.bytes_of(1);
    let open = |path: &Path| {
        fs::OpenOptions::new()
            .write(true)
            .open(path)
            .expect("a node")
    };
    let (to, name) = (format!("{TO}s"), disk.name(1));
    let words = ["is open for writing in", "nothing was written"];
    for node in [disk.device.path().to_owned(), disk.node(1)] {
        let writer = open(&node);
        assert_refused(&disk.fix_move(1, &["--to", &to, "--yes", &name]), 5, &words);
        drop(writer);
    }
    // A mere reader does no harm, nor does a writer of a neighbour without a common block.
    let reader = fs::File::open(disk.device.path()).expect("the disk");
    let neighbour = open(&disk.node(2));
    disk.stopped(1, TO);
    drop((reader, neighbour));
    let writer = open(disk.device.path());
    let stopped = disk_bytes(&disk);
    for what in ["resume", "rollback"] {
        assert_refused(&disk.go(what), 5, &words);
    }
    assert!(disk_bytes(&disk) == stopped, "nothing was written");
    drop(writer);
    assert_done(&disk.go("rollback"));
    assert!(disk.bytes_of(1) == data);
}

/// After a restart with the journal on the disk itself, found by the mark alone.
#[test]
fn a_journal_on_the_same_disk_after_a_restart() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    let disk = PreflightDisk::gpt(&[(34, 65_569), (81_920, 147_455)]);
    ext4(&disk);
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F"])
        .arg(disk.node(2)));
    let data = disk.bytes_of(1);
    let mounted = Mounted::mount(&disk.node(2), &disk.at());
    let journal = disk.at().join("journal");
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command
        .args(["fix", "move"])
        .arg(disk.node(1))
        .args([
            "--to",
            "4096s",
            "--journal-same-disk",
            "--yes",
            &disk.name(1),
        ])
        .arg("--journal")
        .arg(&journal);
    let child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("plumb starts");
    wait::until("data are copied", wait::PATIENCE, || {
        output_text(&fix("status", &journal)).contains("copying")
    });
    run(Command::new("kill").args(["-INT", &child.id().to_string()]));
    let stopped = wait::output("a move that was told to stop", wait::PATIENCE, child);
    assert_eq!(stopped.status.code(), Some(6), "{}", output_text(&stopped));
    drop(mounted);
    // The machine starts again: the same bytes come up as another device, and are mounted at the same place.
    let image = disk.dir().join("again.img");
    fs::write(&image, disk_bytes(&disk)).expect("room");
    let again = LoopDevice::attach(&image, &["--direct-io=on"]);
    assert!(again.add_partitions() > 0);
    let node = PathBuf::from(format!("/dev/{}p2", again.name()));
    let mounted = Mounted::mount(&node, &disk.at());
    let asked = go("resume", again.path(), &[]);
    assert_refused(
        &asked,
        6,
        &["a mark on the disk led to the journal", "new place"],
    );
    assert_done(&go("resume", again.path(), &["--yes", &again.name()]));
    drop(mounted);
    let moved = fs::read(format!("/dev/{}p1", again.name())).expect("the partition");
    assert!(moved == data);
}
