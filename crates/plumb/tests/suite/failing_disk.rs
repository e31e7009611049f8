//! A disk that fails reads: `watch`, `diagnose`, `record` and `analyze` name the operation and count the failures.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use plumb_testkit::loop_device::LoopDevice;
use plumb_testkit::slow_disk::SlowDisk;
use plumb_testkit::{require, wait};
use serde_json::{Value, json};

use crate::common::attached::await_programs;
use crate::common::direct::DirectReader;
use crate::common::recording::number;
use crate::common::{Folder, command, plumb};
use crate::stalled_disk::ServedDisk;

/// The first MiB can be read, the second cannot: a loop device ends reads behind the end of its file with EIO.
pub fn half_readable(folder: &Folder, attach: fn(&Path, &[&str]) -> LoopDevice) -> LoopDevice {
    let image = folder.path("disk");
    let file = File::create(&image).expect("an image");
    file.set_len(2 << 20).expect("room for a sparse file");
    let disk = attach(&image, &[]);
    file.set_len(1 << 20).expect("a shorter file");
    disk
}

/// Reads each 8 KiB once, without the page cache; how many of them failed.
pub fn read_all(disk: &Path) -> u64 {
    let mut device = DirectReader::open(disk, 8192);
    let failed = (0..256).filter(|at| device.read_at(at * 8192).is_err());
    failed.count() as u64
}

fn failing(findings: &Value, disk: &str) -> Value {
    let findings = findings.as_array().expect("findings");
    let of_disk = |one: &&Value| one["rule"] == "failing-io" && one["target"]["device"] == disk;
    findings
        .iter()
        .find(of_disk)
        .unwrap_or_else(|| panic!("no failing-io of {disk}: {findings:?}"))
        .clone()
}

fn assert_half_failed(finding: &Value) {
    assert_eq!(finding["severity"], "critical");
    let reads = &finding["facts"]["ops"][0];
    assert_eq!(reads["op"], "read");
    assert_eq!(
        (&reads["failed"], &reads["ios"]),
        (&json!(128), &json!(256))
    );
}

#[test]
fn watch_and_record_count_failed_reads() {
    require!(Bpf, Loop);
    let folder = Folder::new("failing-disk");
    // Nobody else reads it: the counts are exact.
    let disk = half_readable(&folder, LoopDevice::attach_hidden);
    let recorded = folder.path("reads.parquet");
    let recording = command()
        .args(["record", &disk.name(), "-o"])
        .arg(&recorded)
        .args(["--duration", "8s", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("plumb runs");
    let mut watching = command()
        .args([
            "watch",
            &disk.name(),
            "--json",
            "--interval",
            "1s",
            "--count",
            "5",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .expect("plumb runs");
    let mut lines = wait::Lines::of("plumb watch", watching.stdout.take().expect("its output"));
    // The programs are loaded when the first interval is over.
    lines.next().expect("an interval");
    wait::until("the recording has begun", wait::PATIENCE, || {
        recorded.exists()
    });
    assert_eq!(read_all(disk.path()), 128);
    let lines: Vec<String> = lines.collect();
    assert_eq!(
        wait::exit("the watch", wait::PATIENCE, &mut watching).code(),
        Some(1),
        "{lines:?}"
    );
    let last = lines.last().expect("a line");
    let last: Value = serde_json::from_str(last).expect("a document");
    assert_half_failed(&failing(&last["findings"], &disk.name()));

    let told = wait::output("the recording", wait::PATIENCE, recording);
    assert_eq!(told.status.code(), Some(1));
    let told: Value = serde_json::from_slice(&told.stdout).expect("a document");
    assert_half_failed(&failing(&told["findings"], &disk.name()));
    assert_eq!(told["verdict"]["word"], "PROBLEM");
    let analyzed = plumb(["analyze".as_ref(), recorded.as_os_str(), "--json".as_ref()]);
    let analyzed = analyzed.ends(1).json();
    assert_half_failed(&failing(&analyzed["findings"], &disk.name()));
    let ops = &analyzed["result"]["profiles"][0]["ops"][0];
    assert_eq!(number(&ops["failed"]), 128);
}

/// A recording and a watch of a disk, begun at once.
struct Both {
    recording: Child,
    watching: Child,
    /// The documents of the watch.
    watched: wait::Lines,
}

impl Both {
    /// Both have begun when this returns.
    fn begin(folder: &Folder, disk: &str) -> Both {
        let recorded = folder.path("both.parquet");
        let run = |command: &mut Command| {
            let child = command.stdout(Stdio::piped()).spawn();
            child.expect("plumb runs")
        };
        let mut record = command();
        record.args(["record", disk, "--json", "-o"]).arg(&recorded);
        let recording = run(&mut record);
        let mut watch = command();
        watch.args(["watch", disk, "--json", "--interval", "1s"]);
        let mut watching = run(&mut watch);
        // The programs are loaded when the first interval is over.
        let mut watched =
            wait::Lines::of("plumb watch", watching.stdout.take().expect("its output"));
        watched.next().expect("an interval");
        wait::until("the recording has begun", wait::PATIENCE, || {
            recorded.exists()
        });
        Both {
            recording,
            watching,
            watched,
        }
    }

    /// The failed I/O that the recording and the watch report, by operation.
    fn end(mut self, disk: &str) -> [Value; 2] {
        interrupt(self.recording.id());
        let told = wait::output("plumb record", wait::PATIENCE, self.recording);
        assert_eq!(told.status.code(), Some(1));
        interrupt(self.watching.id());
        let last = self.watched.last().expect("one more interval");
        let status = wait::exit("plumb watch", wait::PATIENCE, &mut self.watching);
        assert_eq!(status.code(), Some(1));
        [told.stdout, last.into_bytes()].map(|document| {
            let told: Value = serde_json::from_slice(&document).expect("a document");
            failing(&told["findings"], disk)["facts"]["ops"].clone()
        })
    }
}

/// A flush has no sectors and no place. A watch counts only the flushes that fail, also in an interval without any other I/O.
#[test]
fn failed_flushes_are_counted() {
    require!(Bpf, Loop, Tool("nbdkit"), Tool("nbdfuse"));
    let folder = Folder::new("failing-flushes");
    let server = SlowDisk::new(64 << 20, "0ms");
    let disk = LoopDevice::attach_hidden(server.path(), &[]);
    let name = disk.name();
    let file = File::options().write(true).open(disk.path());
    let file = file.expect("a disk");
    let both = Both::begin(&folder, &name);
    // The flush is issued in one interval and fails in another.
    server.stop();
    let failed = std::thread::scope(|scope| {
        let flush = scope.spawn(|| file.sync_data().is_err());
        std::thread::sleep(std::time::Duration::from_millis(2500));
        server.die();
        server.go_on();
        u64::from(flush.join().expect("a flush"))
    });
    let failed = failed + (0..2).filter(|_| file.sync_data().is_err()).count() as u64;
    assert_eq!(failed, 3);
    let flushes = |all: Value| json!([{"op": "flush", "failed": 3, "ios": all}]);
    assert_eq!(both.end(&name), [flushes(json!(3)), flushes(Value::Null)]);
}

/// Reads hang, somebody begins to look, and the reads fail: nothing else is sent to the disk.
#[test]
fn failures_of_earlier_reads_are_counted() {
    require!(Bpf, Loop, Tool("nbdkit"), Tool("nbdfuse"));
    let served = ServedDisk::new();
    let name = served.disk.name();
    let mut reads = served.stop();
    let folder = Folder::new("failing-earlier");
    let both = Both::begin(&folder, &name);
    served.server.die();
    served.server.go_on();
    assert!(!wait::exit("the reads", wait::PATIENCE, &mut reads).success());
    let told = both.end(&name);
    for ops in &told {
        let [read] = ops.as_array().expect("operations").as_slice() else {
            panic!("{told:?}");
        };
        assert_eq!((&read["op"], &read["failed"]), (&json!("read"), &json!(1)));
    }
    // The watch saw no issue of a read at all.
    assert_eq!(told[1][0]["ios"], Value::Null, "{told:?}");
}

/// Ends a program as Ctrl-C does.
fn interrupt(process: u32) {
    let status = Command::new("kill")
        .args(["-INT", &process.to_string()])
        .status();
    assert!(status.expect("kill runs").success());
}

/// The disk with the file of a recording may be the one that fails: the finding is printed although the file is lost.
#[test]
fn a_recording_without_its_file_names_the_failure() {
    require!(Bpf, Loop);
    let folder = Folder::new("failing-no-file");
    let disk = half_readable(&folder, LoopDevice::attach_hidden);
    let recorded = folder.path("lost.parquet");
    let recording = command()
        .args(["record", &disk.name(), "-o"])
        .arg(&recorded)
        .args(["--duration", "60s", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("plumb runs");
    wait::until("the recording has begun", wait::PATIENCE, || {
        recorded.exists()
    });
    assert_eq!(read_all(disk.path()), 128);
    std::fs::remove_file(&recorded).expect("it is there");
    let told = wait::output("the recording", wait::PATIENCE, recording);
    let said = String::from_utf8_lossy(&told.stderr);
    assert_eq!(told.status.code(), Some(5), "{said}");
    let failure = format!("{} fails I/O: 128 of 256 reads", disk.name());
    assert!(
        said.contains(&failure) && said.contains("found no file"),
        "{said}"
    );
}

/// The first words of the report are the failure, although there are too few I/O to judge their places.
#[test]
fn diagnose_names_the_failure() {
    require!(Bpf, Loop);
    let folder = Folder::new("failing-diagnosed");
    let disk = half_readable(&folder, LoopDevice::attach);
    let child = command()
        .args(["diagnose", &disk.name(), "--for", "8s", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("plumb runs");
    await_programs(child.id());
    assert_eq!(read_all(disk.path()), 128);
    let output = wait::output("plumb", wait::PATIENCE, child);
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let finding = failing(&document["findings"], &disk.name());
    let reads = &finding["facts"]["ops"][0];
    let (failed, ios) = (number(&reads["failed"]), number(&reads["ios"]));
    // Every second read fails, also those of the programs of the host that look at a disk that appears.
    assert!(failed >= 128 && ios >= 256, "{reads}");
    assert!(ios.abs_diff(2 * failed) <= 64, "{reads}");
}
