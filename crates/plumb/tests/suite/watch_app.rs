//! `plumb watch --app`: bytes that processes ask of a file system of their own, beside those at its device.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::{Folder, plumb};
use plumb_testkit::loop_device::{LoopDevice, Mounted, run};
use plumb_testkit::{machine, require, wait};
use serde_json::Value;

/// ext4 in blocks of 4 KiB on a loop device, mounted, with a file of 32 MiB in it that no cache holds.
struct AppDisk {
    _mounted: Mounted,
    device: LoopDevice,
    at: PathBuf,
}

impl AppDisk {
    fn new(folder: &Folder) -> AppDisk {
        let image = folder.path("disk");
        File::create(&image)
            .and_then(|file| file.set_len(64 << 20))
            .expect("room for a sparse file");
        // `plumb check` of another test reads the labels of all disks.
        let device = LoopDevice::attach_hidden(&image, &[]);
        // Nothing is to be initialized later, while somebody counts.
        let now = [
            "-q",
            "-b",
            "4096",
            "-E",
            "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
        ];
        run(Command::new("mkfs.ext4").args(now).arg(device.path()));
        let at = folder.path("at");
        std::fs::create_dir(&at).expect("a directory");
        let mut disk = AppDisk {
            _mounted: Mounted::mount(device.path(), &at),
            device,
            at,
        };
        std::fs::write(disk.file(), vec![7; 32 << 20]).expect("a file");
        File::open(disk.file())
            .and_then(|file| file.sync_all())
            .expect("written");
        disk.mount_again();
        disk
    }

    /// A file system that is mounted again is in no cache.
    fn mount_again(&mut self) {
        run(Command::new("mount")
            .args(["-o", "remount,ro"])
            .arg(&self.at));
        run(Command::new("umount").arg(&self.at));
        // A mount namespace that another test made meanwhile has a copy of the mount, read-only as it was: until that
        // namespace ends, the kernel refuses to mount the device for writing.
        wait::until(
            "mount of a device without copies of its mount",
            wait::PATIENCE,
            || {
                let mount = Command::new("mount")
                    .arg(self.device.path())
                    .arg(&self.at)
                    .output();
                mount.expect("mount starts").status.success()
            },
        );
    }

    fn file(&self) -> PathBuf {
        self.at.join("data")
    }
}

/// A watch whose programs are at work.
struct Watching {
    child: Child,
    lines: wait::Lines,
}

impl Watching {
    fn begin(disk: &AppDisk, args: &[&str]) -> Watching {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command
            .args(["watch", &disk.device.name(), "--app", "--interval", "1s"])
            .args(args);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("plumb runs");
        let mut lines = wait::Lines::of("plumb watch", child.stdout.take().expect("its output"));
        // The first interval is over.
        lines.next().expect("an interval");
        Watching { child, lines }
    }

    /// Ends it as Ctrl-C does; its output since it was at work, and its status.
    fn end(mut self) -> (String, Option<i32>) {
        run(Command::new("kill").args(["-INT", &self.child.id().to_string()]));
        let text: Vec<String> = self.lines.by_ref().collect();
        let status = wait::exit("plumb watch", wait::PATIENCE, &mut self.child);
        (text.join("\n"), status.code())
    }

    /// The documents of all intervals.
    fn documents(self) -> Vec<Value> {
        let (text, _) = self.end();
        documents(&text)
    }
}

fn documents(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a document"))
        .collect()
}

/// The entries of all intervals in a list of `app`.
fn entries(documents: &[Value], list: &str) -> Vec<Value> {
    let all = documents
        .iter()
        .map(|document| document["result"]["app"][list].as_array().expect("a list"));
    all.flatten().cloned().collect()
}

/// The entries with this value for a key.
fn list(documents: &[Value], list: &str, key: &str, value: &str) -> Vec<Value> {
    let mut all = entries(documents, list);
    all.retain(|one| one[key] == value);
    all
}

/// Uncounted I/O of another program on a file system that is not known: they may belong to the watched one, so that its
/// sums are unknown. Those of fio, which the tests start, are an error.
fn uncounted_of_others(documents: &[Value]) -> Option<String> {
    let mut all = entries(documents, "processes");
    all.retain(|by| {
        by["comm"] != "fio"
            && by["file_system"].is_null()
            && by["unknown_ways"] != serde_json::json!([])
    });
    (!all.is_empty()).then(|| format!("another program has I/O of an unknown file system: {all:?}"))
}

impl Drop for Watching {
    fn drop(&mut self) {
        wait::stop(&mut self.child);
    }
}

fn sum(all: &[Value], direction: &str, name: &str) -> u64 {
    all.iter()
        .map(|one| one[direction][name].as_u64().expect("a number"))
        .sum()
}

fn fio(disk: &AppDisk, args: &[&str]) {
    run(Command::new("fio")
        .args([
            "--name=ask",
            "--size=32m",
            "--allow_file_create=0",
            "--output-format=json",
            "--overwrite=1",
        ])
        .arg(format!("--filename={}", disk.file().display()))
        .args(args));
}

/// 211 direct reads of 8 KiB are as many bytes at the device, but for the file system's own reads.
#[test]
fn direct_reads_are_as_many_bytes_at_the_device() {
    require!(Bpf, Loop, Tool("mkfs.ext4"), Tool("fio"));
    let folder = Folder::new("app-direct");
    let disk = AppDisk::new(&folder);
    let bytes = 211 * 8192;
    for engine in ["psync", "io_uring", "libaio"] {
        for of_what in ["file_systems", "processes"] {
            let watching = Watching::begin(&disk, &["--json"]);
            fio(
                &disk,
                &[
                    "--rw=randread",
                    "--bs=8k",
                    "--io_size=1688k",
                    "--direct=1",
                    &format!("--ioengine={engine}"),
                ],
            );
            let heard = watching.documents();
            if of_what == "processes" {
                let by = list(&heard, of_what, "comm", "fio");
                assert_eq!(sum(&by, "reads", "calls"), 211, "{engine}");
                assert!(
                    by.iter()
                        .all(|by| by["unknown_ways"] == serde_json::json!([])),
                    "{engine}: {by:?}"
                );
                let sent: u64 = by.iter().filter_map(|by| by["device_bytes"].as_u64()).sum();
                assert!(sent >= bytes, "{engine}: {sent} bytes by {heard:#?}");
                continue;
            }
            if let Some(why) = uncounted_of_others(&heard) {
                plumb_testkit::undecided!(why);
            }
            let of = list(&heard, of_what, "name", disk.at.to_str().expect("text"));
            for (name, expected) in [
                ("calls", 211),
                ("asked_bytes", bytes),
                ("moved_bytes", bytes),
                ("direct_bytes", bytes),
            ] {
                assert_eq!(sum(&of, "reads", name), expected, "{engine}: {name}");
            }
            let device = sum(&of, "reads", "device_bytes");
            assert!(
                (bytes..bytes + (256 << 10)).contains(&device),
                "{engine}: {device}"
            );
            for of in &of {
                assert_eq!(of["devices"], serde_json::json!([disk.device.name()]));
                let reads = &of["reads"];
                let asked = reads["asked_bytes"].as_f64().filter(|asked| *asked > 0.0);
                let times =
                    asked.map(|asked| reads["device_bytes"].as_f64().expect("a number") / asked);
                // Reading a number may change its last bit: this one is written and read, too.
                let times = serde_json::to_string(&times).expect("a number");
                let times: Value = serde_json::from_str(&times).expect("JSON");
                assert_eq!(
                    (&reads["amplification"], &reads["ratio_with_cache"]),
                    (&times, &Value::Null)
                );
            }
        }
    }
}

/// A file that is mapped: the process is unknown, and no ratio is printed.
#[test]
fn uncounted_io_make_sums_unknown() {
    require!(Bpf, Loop, Tool("mkfs.ext4"), Tool("fio"));
    let folder = Folder::new("app-mapped");
    let disk = AppDisk::new(&folder);
    for of_what in ["file_systems", "processes"] {
        let watching = Watching::begin(&disk, &["--json"]);
        fio(
            &disk,
            &[
                "--rw=randread",
                "--bs=8k",
                "--io_size=1688k",
                "--ioengine=mmap",
            ],
        );
        let heard = watching.documents();
        if of_what == "processes" {
            let by = list(&heard, of_what, "comm", "fio");
            let unknown = |by: &Value| {
                by["unknown_ways"]
                    .as_array()
                    .is_some_and(|ways| ways.contains(&"mapped files".into()))
            };
            assert!(by.iter().any(unknown), "{by:?}");
            // An uncounted number is not 0.
            let is_null = |by: &Value| by["reads"]["asked_bytes"].is_null();
            assert!(by.iter().filter(|by| unknown(by)).all(is_null), "{by:?}");
            // From Linux 6.11 on the kernel shows each page fault; 211 blocks have 422 pages.
            let faults: u64 = by
                .iter()
                .filter(|by| unknown(by))
                .filter_map(|by| by["mapped_files"]["page_faults"].as_u64())
                .sum();
            let is_shown = machine::has_tracepoint("mm_filemap_fault");
            assert_eq!(faults > 0, is_shown, "{by:?}");
            assert!(faults <= 422, "{by:?}");
            continue;
        }
        for of in list(&heard, of_what, "name", disk.at.to_str().expect("text")) {
            assert!(
                of["reads"]["amplification"].is_null() && of["reads"]["ratio_with_cache"].is_null(),
                "{of}"
            );
        }
    }
}

/// The result of the whole time is in the last line: findings, and bytes written against those at the device.
#[test]
fn the_last_line_has_the_whole_time() {
    require!(Bpf, Loop, Tool("mkfs.ext4"));
    let folder = Folder::new("app-whole");
    let disk = AppDisk::new(&folder);
    let watching = Watching::begin(&disk, &["--json", "--sync"]);
    let file = File::options()
        .write(true)
        .open(disk.file())
        .expect("the file");
    (0..1009).for_each(|at| {
        file.write_all_at(&[1; 512], at * 7 * 4096 + 1024)
            .expect("a write")
    });
    let (text, status) = watching.end();
    assert_eq!(status, Some(1), "{text}");
    let documents = documents(&text);
    if let Some(why) = uncounted_of_others(&documents) {
        plumb_testkit::undecided!(why);
    }
    let (last, before) = documents.split_last().expect("a line");
    assert!(
        before
            .iter()
            .all(|line| line["result"]["whole"].is_null()
                && line["findings"] == serde_json::json!([]))
    );
    let found = last["findings"].as_array().expect("a list");
    assert!(
        found
            .iter()
            .any(|finding| finding["rule"] == "throughput-inflation"),
        "{found:?}"
    );
    let all = last["result"]["whole"]["app"]["file_systems"]
        .as_array()
        .expect("a list")
        .clone();
    let of: Vec<Value> = all
        .into_iter()
        .filter(|of| of["name"] == disk.at.to_str().expect("text"))
        .collect();
    assert_eq!(
        (
            sum(&of, "writes", "calls"),
            sum(&of, "writes", "asked_bytes")
        ),
        (1009, 1009 * 512),
        "{of:?}"
    );
    // Single intervals have the cache in them.
    assert!(
        of[0]["writes"]["amplification"]
            .as_f64()
            .is_some_and(|times| times >= 8.0),
        "{of:?}"
    );
}

/// The kernel's read-ahead has no requester: it is at the device, and with the cache in the ratio.
#[test]
fn advice_asks_for_nothing() {
    require!(Bpf, Loop, Tool("mkfs.ext4"));
    let folder = Folder::new("app-advice");
    let disk = AppDisk::new(&folder);
    let watching = Watching::begin(&disk, &["--json"]);
    let file = File::open(disk.file()).expect("the file");
    // Each as short as any kernel takes it whole.
    let len = std::num::NonZeroU64::new(64 << 10);
    for at in 0..16 {
        rustix::fs::fadvise(&file, at << 20, len, rustix::fs::Advice::WillNeed).expect("advice");
    }
    // Some of it is asked for, so that there is something to set the rest against.
    let mut part = vec![0; 64 << 10];
    file.read_exact_at(&mut part, 0).expect("a read");
    std::thread::sleep(std::time::Duration::from_millis(500));
    let heard = watching.documents();
    if let Some(why) = uncounted_of_others(&heard) {
        plumb_testkit::undecided!(why);
    }
    let of = list(
        &heard,
        "file_systems",
        "name",
        disk.at.to_str().expect("text"),
    );
    assert_eq!(sum(&of, "reads", "asked_bytes"), 64 << 10, "{of:?}");
    assert!(
        sum(&of, "reads", "device_bytes") >= 16 * (64 << 10),
        "{of:?}"
    );
    assert!(
        of.iter().all(|of| of["reads"]["amplification"].is_null()),
        "{of:?}"
    );
}

/// Random writes of 512 bytes through the cache: a block of 4 KiB is read and written for each.
#[test]
fn partial_writes_inflate() {
    require!(Bpf, Loop, Tool("mkfs.ext4"), Tool("fio"));
    let folder = Folder::new("app-partial");
    let disk = AppDisk::new(&folder);
    let saved = folder.path("saved.profile");
    let watching = Watching::begin(
        &disk,
        &["--plain", "--sync", "--save", saved.to_str().expect("text")],
    );
    // Each block once, so that none is gathered in the cache.
    let file = File::options()
        .write(true)
        .open(disk.file())
        .expect("the file");
    (0..1009).for_each(|at| {
        file.write_all_at(&[1; 512], at * 7 * 4096 + 1024)
            .expect("a write")
    });
    let (text, status) = watching.end();
    // The test itself reads and writes by system calls alone.
    if text.contains("not counted: ") {
        plumb_testkit::undecided!(format!(
            "another program has I/O of an unknown file system:\n{text}"
        ));
    }
    assert_eq!(status, Some(1), "{text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "WARNING throughput-inflation: device",
        "bytes are written at the device of",
        "for each byte asked",
    ] {
        assert!(flat.contains(words), "no {words:?} in\n{text}");
    }
    assert!(
        flat.contains("were read beside that nobody asked for"),
        "{text}"
    );
    let long: Vec<&str> = text
        .lines()
        .filter(|line| line.chars().count() > 80)
        .collect();
    assert!(long.is_empty(), "{long:?}");
    // The least that it can be is 8 bytes for one; metadata come on top.
    let times = flat
        .split_once(" bytes are written at the device")
        .and_then(|(before, _)| before.split_whitespace().next_back()?.parse::<f64>().ok());
    assert!(
        (8.0..9.5).contains(&times.expect("a number")),
        "{times:?} in\n{text}"
    );
    takes_the_profile(&saved, &disk.at);
}

/// A saved profile is judged by the record that it is for.
fn takes_the_profile(saved: &Path, at: &Path) {
    let analyzed = plumb([
        "analyze".as_ref(),
        saved.as_os_str(),
        "--layer".as_ref(),
        "vfs".as_ref(),
        "--json".as_ref(),
    ]);
    let document = analyzed.json();
    let profile = &document["result"]["profiles"][0];
    assert_eq!(profile["target"]["device"], at.to_str().expect("text"));
    assert_eq!(profile["ios"], 1009, "{profile}");
    let planned = plumb([
        "plan".as_ref(),
        "record".as_ref(),
        "data".as_ref(),
        "--profile".as_ref(),
        saved.as_os_str(),
    ]);
    planned.ends(0);
    // Of the disk's own requests nothing is said, since they ask for no record.
    let of = format!("the I/O of {} (vfs layer)", at.display());
    let out = planned.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(out.contains(&of) && !out.contains("request layer"), "{out}");
}

/// Without a sync the writes may still be in the cache: that is unknown and not clean.
#[test]
fn buffered_writes_without_a_sync_are_unknown() {
    require!(Bpf, Loop, Tool("mkfs.ext4"));
    let folder = Folder::new("app-unsynced");
    let disk = AppDisk::new(&folder);
    let watching = Watching::begin(&disk, &["--plain"]);
    let file = File::options()
        .write(true)
        .open(disk.file())
        .expect("the file");
    (0..401).for_each(|at| file.write_all_at(&[1; 4096], at * 4096).expect("a write"));
    let (text, _) = watching.end();
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("did not start and end synced"), "{text}");
}
