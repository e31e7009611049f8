//! `plumb watch --app`: bytes that processes ask of a file system of their own, beside those at its device.

mod common;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Folder, plumb};
use plumb_testkit::loop_device::{LoopDevice, Mounted, run};
use plumb_testkit::require;
use serde_json::Value;

/// ext4 in blocks of 4 KiB on a loop device, mounted, with a file of 32 MiB in it that no cache holds.
struct Disk {
    _mounted: Mounted,
    device: LoopDevice,
    at: PathBuf,
}

impl Disk {
    fn new(folder: &Folder) -> Disk {
        let image = folder.path("disk");
        File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("room for a sparse file");
        let device = LoopDevice::attach(&image, &[]);
        // Nothing is to be initialized later, while somebody counts.
        let now = ["-q", "-b", "4096", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"];
        run(Command::new("mkfs.ext4").args(now).arg(device.path()));
        let at = folder.path("at");
        std::fs::create_dir(&at).expect("a directory");
        let mut disk = Disk { _mounted: Mounted::mount(device.path(), &at), device, at };
        std::fs::write(disk.file(), vec![7; 32 << 20]).expect("a file");
        File::open(disk.file()).and_then(|file| file.sync_all()).expect("written");
        disk.mount_again();
        disk
    }

    /// What is mounted afresh is in no cache.
    fn mount_again(&mut self) {
        run(Command::new("mount").args(["-o", "remount,ro"]).arg(&self.at));
        run(Command::new("umount").arg(&self.at));
        run(Command::new("mount").arg(self.device.path()).arg(&self.at));
    }

    fn file(&self) -> PathBuf {
        self.at.join("data")
    }
}

/// A watch that prints one interval, once its programs are at work.
fn watch(disk: &Disk, args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command.args(["watch", &disk.device.name(), "--app", "--count", "1", "--interval", "5s"]).args(args);
    let child = command.stdout(Stdio::piped()).spawn().expect("plumb runs");
    // It holds descriptors of programs as soon as they are attached.
    let began = Instant::now();
    while programs(child.id()) < 6 && began.elapsed() < Duration::from_secs(4) {
        std::thread::sleep(Duration::from_millis(20));
    }
    // The cache is written out behind that.
    std::thread::sleep(Duration::from_millis(500));
    child
}

fn programs(pid: u32) -> usize {
    let all = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let links = all.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    links.filter(|link| link.to_string_lossy().contains("bpf-prog")).count()
}

fn fio(disk: &Disk, args: &[&str]) {
    run(Command::new("fio")
        .args(["--name=ask", "--size=32m", "--allow_file_create=0", "--output-format=json", "--overwrite=1"])
        .arg(format!("--filename={}", disk.file().display()))
        .args(args));
}

fn lines(child: Child) -> (Value, i32) {
    let done = child.wait_with_output().expect("an end");
    let text = String::from_utf8(done.stdout).expect("text");
    let line = text.lines().next().expect("an interval");
    (serde_json::from_str(line).expect("a document"), done.status.code().expect("a status"))
}

fn find<'a>(list: &'a Value, key: &str, value: &str) -> &'a Value {
    let list = list.as_array().expect("a list");
    list.iter().find(|one| one[key] == value).unwrap_or_else(|| panic!("no {value} in {list:?}"))
}

/// 211 direct reads of 8 KiB are as many bytes at the device, but for what the file system reads of itself.
#[test]
fn direct_reads_are_as_many_bytes_at_the_device() {
    require!(Bpf, Loop, Tool("mkfs.ext4"), Tool("fio"));
    let folder = Folder::new("app-direct");
    let disk = Disk::new(&folder);
    for engine in ["psync", "io_uring"] {
        let watching = watch(&disk, &["--json"]);
        fio(
            &disk,
            &["--rw=randread", "--bs=8k", "--io_size=1688k", "--direct=1", &format!("--ioengine={engine}")],
        );
        let (document, _) = lines(watching);
        let app = &document["result"]["app"];
        let of = find(&app["file_systems"], "name", disk.at.to_str().expect("text"));
        assert_eq!(of["devices"], serde_json::json!([disk.device.name()]));
        let reads = &of["reads"];
        for (name, expected) in [("calls", 211), ("asked_bytes", 211 * 8192), ("moved_bytes", 211 * 8192)] {
            assert_eq!(reads[name], expected, "{engine}: {name}");
        }
        let device = reads["device_bytes"].as_u64().expect("a number");
        assert!((211 * 8192..211 * 8192 + (256 << 10)).contains(&device), "{engine}: {device}");
        let times = reads["amplification"].as_f64().expect("a number");
        assert!(
            (times - device as f64 / (211.0 * 8192.0)).abs() < 1e-9 && reads["ratio_with_cache"].is_null()
        );
        let by = find(&app["processes"], "comm", "fio");
        assert_eq!((by["reads"]["calls"].as_u64(), &by["unknown_ways"]), (Some(211), &serde_json::json!([])));
        assert!(by["device_bytes"].as_u64() >= Some(211 * 8192), "{by}");
    }
}

/// A file that is mapped: the process and the file system are unknown, and no ratio is told.
#[test]
fn what_is_not_counted_is_unknown() {
    require!(Bpf, Loop, Tool("mkfs.ext4"), Tool("fio"));
    let folder = Folder::new("app-mapped");
    let disk = Disk::new(&folder);
    for (engine, way) in [("mmap", "mapped files"), ("libaio", "io_submit")] {
        let watching = watch(&disk, &["--json"]);
        fio(&disk, &["--rw=randread", "--bs=8k", "--io_size=1688k", &format!("--ioengine={engine}")]);
        let (document, _) = lines(watching);
        let app = &document["result"]["app"];
        let processes = app["processes"].as_array().expect("a list");
        let unknown =
            |by: &&Value| by["unknown_ways"].as_array().is_some_and(|ways| ways.contains(&way.into()));
        assert!(processes.iter().filter(unknown).any(|by| by["comm"] == "fio"), "{engine}: {app}");
        let file_systems = app["file_systems"].as_array().expect("a list");
        for of in file_systems.iter().filter(|of| of["name"] == *disk.at.to_string_lossy()) {
            assert!(
                of["reads"]["amplification"].is_null() && of["reads"]["ratio_with_cache"].is_null(),
                "{of}"
            );
        }
    }
}

/// Random writes of 512 bytes through the cache: a block of 4 KiB is read and written for each.
#[test]
fn partial_writes_inflate() {
    require!(Bpf, Loop, Tool("mkfs.ext4"), Tool("fio"));
    let folder = Folder::new("app-partial");
    let disk = Disk::new(&folder);
    let saved = folder.path("saved.profile");
    let watching = watch(&disk, &["--plain", "--sync", "--save", saved.to_str().expect("text")]);
    // Each block once, so that none is gathered in the cache.
    let file = File::options().write(true).open(disk.file()).expect("the file");
    (0..1009).for_each(|at| file.write_all_at(&[1; 512], at * 7 * 4096 + 1024).expect("a write"));
    let done = watching.wait_with_output().expect("an end");
    let text = String::from_utf8(done.stdout).expect("text");
    assert_eq!(done.status.code(), Some(1), "{text}");
    for words in ["WARNING  throughput-inflation: device", "bytes written at the device for each byte asked"]
    {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    assert!(text.contains("were read beside that nobody asked for"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    // The least that it can be is 8 bytes for one; metadata come on top.
    let times = text.split("  bytes written").next().and_then(|_| {
        let (before, _) = text.split_once(" bytes written at the device")?;
        before.split_whitespace().next_back()?.parse::<f64>().ok()
    });
    assert!((8.0..9.5).contains(&times.expect("a number")), "{times:?} in\n{text}");
    takes_the_profile(&saved, &disk.at);
}

/// What was saved is judged by the record that it is for.
fn takes_the_profile(saved: &Path, at: &Path) {
    let analyzed =
        plumb(["analyze".as_ref(), saved.as_os_str(), "--layer".as_ref(), "vfs".as_ref(), "--json".as_ref()]);
    let document = analyzed.json();
    let profile = find(&document["result"]["profiles"], "device", at.to_str().expect("text"));
    assert_eq!(profile["ios"], 1009, "{profile}");
}

/// Without a sync the writes may still be in the cache: that is unknown and not clean.
#[test]
fn buffered_writes_without_a_sync_are_unknown() {
    require!(Bpf, Loop, Tool("mkfs.ext4"));
    let folder = Folder::new("app-unsynced");
    let disk = Disk::new(&folder);
    let watching = watch(&disk, &["--plain"]);
    let file = File::options().write(true).open(disk.file()).expect("the file");
    (0..401).for_each(|at| file.write_all_at(&[1; 4096], at * 4096).expect("a write"));
    let done = watching.wait_with_output().expect("an end");
    let text = String::from_utf8(done.stdout).expect("text");
    assert!(text.contains("did not begin and end synced"), "{text}");
}
