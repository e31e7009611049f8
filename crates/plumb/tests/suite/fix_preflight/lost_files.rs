//! Files with lost bytes are named. The oracle is the content of the files: every block of a file repeats the number of
//! the file, and the image from before the move shows the numbers in a lost range.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use plumb_relocate::moving::recover_unchecked;
use plumb_relocate::{Direction, JournalFile, Raw};
use plumb_sys::{Access, DirectDisk};
use plumb_testkit::bad_block::BadBlockDisk;
use plumb_testkit::loop_device::{LoopDevice, Mounted, run};
use plumb_testkit::wait::RunLimited;
use plumb_testkit::{require, wait};
use serde_json::Value;

use crate::fix_preflight::disk::{PreflightDisk, assert_refused, output_text};

const SECTOR: u64 = 512;
/// 64 MiB, moved by 2 MiB.
const PART: (u64, u64) = (34, 131_105);
const TO: u64 = 4_096;
const PART_BYTES: u64 = (PART.1 + 1 - PART.0) * SECTOR;
/// Files of a length that no block divides, until there is no room for more.
const FILE_BYTES: usize = 700_001;
const NAME_BYTES: usize = "/dir a/000".len();

/// Fills a mounted file system with files that repeat their own name; returns these names.
fn fill(at: &Path) -> BTreeSet<String> {
    fs::create_dir(at.join("dir a")).expect("room");
    let mut names = BTreeSet::new();
    for number in 0..1000 {
        let name = format!("/dir a/{number:03}");
        let mut bytes = name.repeat(FILE_BYTES / NAME_BYTES + 1).into_bytes();
        bytes.truncate(FILE_BYTES);
        let path = at.join(name.trim_start_matches('/'));
        if fs::write(&path, bytes).is_err() {
            fs::remove_file(path).expect("the last one");
            break;
        }
        names.insert(name);
    }
    names
}

/// Names of the files with one of these bytes.
fn named_in(bytes: &[u8]) -> BTreeSet<String> {
    bytes
        .windows(NAME_BYTES)
        .filter(|window| window.starts_with(b"/dir a/"))
        .map(|window| String::from_utf8(window.to_vec()).expect("plain"))
        .collect()
}

struct TestedFileSystem {
    name: &'static str,
    make: &'static [&'static str],
    /// Its type for mount.
    kind: &'static str,
}

/// As `EXT4` makes it.
const EXT4_BLOCK: usize = 1024;
const EXT4: TestedFileSystem = TestedFileSystem {
    name: "ext",
    make: &["mkfs.ext4", "-q", "-F", "-b", "1024"],
    kind: "ext4",
};
const XFS: TestedFileSystem = TestedFileSystem {
    name: "xfs",
    make: &["mkfs.xfs", "-q", "-f", "--unsupported"],
    kind: "xfs",
};
const NTFS: TestedFileSystem = TestedFileSystem {
    name: "ntfs",
    make: &["mkntfs", "-q", "-Q", "-F", "-c", "4096"],
    kind: "ntfs-3g",
};

/// A partition before its move.
struct Before {
    bytes: Vec<u8>,
    /// Paths of the files. Free space may repeat other paths: the last file had no room and was deleted, but the kernel may have
    /// written a part of it.
    names: BTreeSet<String>,
}

impl Before {
    /// Names of the files with bytes in a range of the partition, or with a block of ext4 that lists their extents.
    fn files_in(&self, range: Range<usize>) -> BTreeSet<String> {
        let mut found = named_in(&self.bytes[range.clone()]);
        for at in range.step_by(EXT4_BLOCK) {
            found.extend(self.file_with_extents_at(at));
        }
        found.intersection(&self.names).cloned().collect()
    }

    /// The file whose extents a block lists: a file in more than four pieces has such a block. The data of its first extent
    /// names the file. The journal holds copies of such blocks, and starts before all ranges that are lost here.
    fn file_with_extents_at(&self, at: usize) -> Option<String> {
        let block = self.bytes.get(at..at + EXT4_BLOCK)?;
        let short = |at: usize| u16::from_le_bytes([block[at], block[at + 1]]);
        let (magic, entries, depth) = (short(0), short(2), short(6));
        if (magic, depth) != (0xf30a, 0) || entries == 0 {
            return None;
        }
        let first = u32::from_le_bytes(block[20..24].try_into().expect("four bytes"));
        let data = first as usize * EXT4_BLOCK;
        named_in(self.bytes.get(data..data + EXT4_BLOCK)?).pop_first()
    }

    /// The first block of 4,096 bytes within a range that a file fills: a deleted file does not count.
    fn block_of_a_file(&self, within: Range<usize>) -> u64 {
        let is_full = |at: &usize| {
            let block = &self.bytes[*at..*at + 4096];
            let named = block.windows(7).filter(|part| *part == b"/dir a/");
            named.count() >= 4096 / NAME_BYTES - 1
                && named_in(block).len() == 1
                && self.files_in(*at..*at + 4096).len() == 1
        };
        let at = within.step_by(4096).find(is_full);
        at.expect("a block of a file") as u64
    }
}

impl TestedFileSystem {
    /// Makes the file system in a partition and fills it with files.
    fn make(&self, node: &Path, at: &Path) -> Before {
        run(Command::new(self.make[0]).args(&self.make[1..]).arg(node));
        let mounted = match self.kind {
            "ntfs-3g" => {
                run(Command::new("ntfs-3g").arg(node).arg(at));
                None
            }
            _ => Some(Mounted::mount(node, at)),
        };
        let names = fill(at);
        match mounted {
            Some(mounted) => drop(mounted),
            None => {
                run(Command::new("umount").arg(at));
                // Its process writes on behind the back of umount.
                let free = || DirectDisk::open(node, Access::Exclusive).is_ok();
                wait::until("ntfs-3g ends", wait::PATIENCE, free);
            }
        }
        let bytes = fs::read(node).expect("the partition");
        Before { bytes, names }
    }
}

/// The document of a command that ended so.
#[track_caller]
fn document(command: &mut Command, code: i32) -> Value {
    let output = command.limited_output();
    assert_eq!(output.status.code(), Some(code), "{}", output_text(&output));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    document["result"].clone()
}

fn files(owners: &Value) -> BTreeSet<String> {
    let owners = owners.as_array().expect("owners");
    let files = owners.iter().filter(|owner| owner["kind"] == "file");
    files
        .map(|owner| owner["name"].as_str().expect("a path").to_owned())
        .collect()
}

/// Each lost range, with the names of its files, matches the old bytes; so does the file that lists them.
fn assert_named(result: &Value, before: &Before, file_system: &str) {
    assert_eq!(result["owner_search"]["file_system"], file_system);
    assert_eq!(result["owner_search"]["is_complete"], true, "{result}");
    let listed = fs::read_to_string(result["lost_file"].as_str().expect("a file")).expect("it");
    let mut named = BTreeSet::new();
    for lost in result["lost"].as_array().expect("ranges") {
        let start = lost["start_bytes"].as_u64().expect("a number") as usize;
        let len = lost["len_bytes"].as_u64().expect("a number") as usize;
        // Whole blocks of the file system: a file may end in the first or the last of them.
        let expected = before.files_in(start..start + len);
        let found = files(&lost["owners"]);
        assert_eq!(found, expected, "bytes {start} to {}", start + len);
        named.extend(expected);
    }
    assert!(!named.is_empty(), "no file was hit");
    for name in named {
        assert!(listed.contains(&format!("\n  file {name}\n")), "{listed}");
    }
}

fn plumb(what: &str, journal: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command
        .args(["fix", what, "--accept-loss", "--json"])
        .arg(journal);
    command
}

/// Somebody overwrites a block that has arrived and whose source is gone; the window of it is lost, onwards and back.
fn assert_spoiled_files_are_named(file_system: &TestedFileSystem) {
    for (what, state) in [("resume", "complete"), ("rollback", "rolled back")] {
        let disk = PreflightDisk::gpt(&[PART]);
        let before = file_system.make(&disk.node(1), &disk.at());
        disk.stopped(1, TO);
        let store = JournalFile::open(&disk.journal()).expect("the journal");
        let direct = DirectDisk::open(disk.device.path(), Access::Write).expect("root");
        let mut moving =
            recover_unchecked(Direction::Forward, store, Raw(&direct)).expect("a move");
        while moving.progress().bytes < 40 << 20 {
            assert_eq!(moving.step().expect("no failure"), None);
        }
        drop(moving);
        drop(direct);
        // Of the last 40 MiB the source is overwritten, but for 2 MiB.
        let (first, last) = (PART_BYTES - (36 << 20), PART_BYTES - (1 << 20));
        let at = before.block_of_a_file(first as usize..last as usize);
        let image = disk.image_file();
        image
            .write_all_at(&[0xa5; 512], TO * SECTOR + at)
            .and_then(|()| image.sync_all())
            .expect("room");
        run(Command::new("blockdev")
            .arg("--flushbufs")
            .arg(disk.device.path()));
        assert_refused(&disk.go(what), 6, &["do not match their sum"]);
        let result = document(&mut plumb(what, &disk.journal()), 7);
        assert_eq!(result["state"], state);
        assert_named(&result, &before, file_system.name);
        let lost = &result["lost"][0];
        let start = lost["start_bytes"].as_u64().expect("a number");
        let end = start + lost["len_bytes"].as_u64().expect("a number");
        assert!((start..end).contains(&at), "{at} in {start} to {end}");
    }
}

#[test]
fn spoiled_files_of_ext4_are_named() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"), Tool("debugfs"));
    assert_spoiled_files_are_named(&EXT4);
}

#[test]
fn spoiled_files_of_xfs_are_named() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.xfs"), Tool("xfs_db"));
    assert_spoiled_files_are_named(&XFS);
}

#[test]
fn spoiled_files_of_ntfs_are_named() {
    require!(
        Loop,
        Tool("sgdisk"),
        Tool("mkntfs"),
        Tool("ntfs-3g"),
        Tool("ntfscluster")
    );
    assert_spoiled_files_are_named(&NTFS);
}

/// A block of the old place cannot be read: exactly it is zeros at the new place, and its file is named.
#[test]
fn the_file_of_an_unreadable_block_is_named() {
    require!(
        Loop,
        Tool("sgdisk"),
        Tool("mkfs.ext4"),
        Tool("debugfs"),
        Tool("nbdkit"),
        Tool("nbdfuse"),
    );
    let dir = plumb_testkit::root_dir("lost-files");
    let (image, at) = (dir.path().join("disk.img"), dir.path().join("at"));
    fs::create_dir(&at).expect("room");
    fs::File::create(&image)
        .and_then(|image| image.set_len((PART.1 + 16_384) * SECTOR))
        .expect("room");
    let part = format!("-n1:{}:{}", PART.0, PART.1);
    run(Command::new("sgdisk").args(["-a1", &part]).arg(&image));
    let served = BadBlockDisk::over(&image);
    let device = LoopDevice::attach(served.path(), &[]);
    assert!(device.add_partitions() > 0);
    let node = Path::new("/dev").join(format!("{}p1", device.name()));
    let before = EXT4.make(&node, &at);
    run(Command::new("blockdev").arg("--flushbufs").arg(&node));
    // A block of the file system is one of the disk here only at every fourth place: 34 sectors are 17 KiB.
    let hole = before.block_of_a_file((20 << 20) + 3072..40 << 20);
    served.spoil(PART.0 * SECTOR + hole);
    let journal = dir.path().join("journal");
    let mut begin = Command::new(env!("CARGO_BIN_EXE_plumb"));
    begin.args(["fix", "move", "--to", "4096s", "--journal-same-disk"]);
    begin
        .args(["--yes", &format!("{}p1", device.name())])
        .arg("--journal")
        .arg(&journal);
    let begun = begin.arg(&node).limited_output();
    assert_refused(&begun, 6, &["cannot be read", "--accept-loss"]);
    let result = document(&mut plumb("resume", &journal), 7);
    assert_eq!(result["state"], "complete");
    assert!(!served.is_bad(), "the block was overwritten");
    assert_named(&result, &before, "ext");
    let lost = &result["lost"][0];
    let (start, len) = (
        lost["start_bytes"].as_u64().expect("a number"),
        lost["len_bytes"].as_u64().expect("a number"),
    );
    assert_eq!((start, len), (hole, 4096));
    let now = fs::read(&node).expect("the partition");
    let (start, end) = (hole as usize, hole as usize + 4096);
    assert!(now[..start] == before.bytes[..start] && now[end..] == before.bytes[end..]);
    assert!(now[start..end].iter().all(|byte| *byte == 0));
}

/// Nothing that a tool knows: it is said, and the ranges are there all the same.
#[test]
fn contents_without_a_tool_are_reported() {
    require!(Loop, Tool("sgdisk"));
    let disk = PreflightDisk::gpt(&[PART]);
    disk.fill(1);
    disk.stopped(1, TO);
    let store = JournalFile::open(&disk.journal()).expect("the journal");
    let direct = DirectDisk::open(disk.device.path(), Access::Write).expect("root");
    let mut moving = recover_unchecked(Direction::Forward, store, Raw(&direct)).expect("a move");
    while moving.progress().bytes < 16 << 20 {
        assert_eq!(moving.step().expect("no failure"), None);
    }
    drop(moving);
    drop(direct);
    let image = disk.image_file();
    let at = TO * SECTOR + PART_BYTES - (1 << 20);
    image
        .write_all_at(&[0xa5; 512], at)
        .and_then(|()| image.sync_all())
        .expect("room");
    run(Command::new("blockdev")
        .arg("--flushbufs")
        .arg(disk.device.path()));
    let result = document(&mut plumb("resume", &disk.journal()), 7);
    let search = &result["owner_search"];
    assert_eq!(search["obstacle"]["kind"], "unknown_contents");
    assert_eq!(search["is_complete"], false);
    assert_eq!(result["lost"][0]["owners"], Value::Null);
    let listed = fs::read_to_string(result["lost_file"].as_str().expect("a file"));
    assert!(listed.expect("it").contains("\n# the files"));
}
