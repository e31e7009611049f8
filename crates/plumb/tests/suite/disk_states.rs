//! A stopped, a failing, a slow and a healthy busy disk: `watch`, `record` and `diagnose` say the same of it, end in time, and end with
//! status 1 unless the disk is healthy.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use plumb_testkit::charging::ChargedCells;
use plumb_testkit::loop_device::{LoopDevice, Mounted};
use plumb_testkit::{require, wait};
use serde_json::Value;

use crate::alarms::RunningLoad;
use crate::common::Folder;
use crate::failing_disk::{half_readable, read_all};
use crate::stalled_disk::{ServedDisk, in_flight, run};

/// Time of a watch or a recording.
const FOR: &str = "5s";
/// More than that, with the start on a busy machine and 5 s for a label that is not answered.
const IN_TIME: Duration = Duration::from_secs(20);

/// The result of a command.
struct CommandResult {
    command: &'static str,
    status: Option<i32>,
    document: Value,
}

impl CommandResult {
    /// The findings on a disk that count.
    fn rules(&self, disk: &str) -> Vec<&str> {
        let findings = self.document["findings"].as_array().expect("findings");
        let counted = findings
            .iter()
            .filter(|one| one["target"]["device"] == disk && one["severity"] != "note");
        counted.filter_map(|one| one["rule"].as_str()).collect()
    }

    fn finding(&self, rule: &str, disk: &str) -> &Value {
        let findings = self.document["findings"].as_array().expect("findings");
        let mut of_disk = findings.iter().filter(|one| {
            one["rule"] == rule
                && one["target"]["device"] == disk
                && one["target"]["part"].is_null()
        });
        of_disk
            .next()
            .unwrap_or_else(|| panic!("{}: no {rule} of {disk} in {findings:?}", self.command))
    }
}

/// Runs each command, one after the other.
fn each(disk: &LoopDevice, folder: &Folder) -> Vec<CommandResult> {
    let name = disk.name();
    let recorded = folder.path("recorded.parquet");
    let recorded = recorded.to_str().expect("text");
    let watch = ["watch", &name, "--interval", FOR, "--count", "1", "--json"];
    let record = ["record", &name, "-o", recorded, "--duration", FOR, "--json"];
    let diagnose = ["diagnose", &name, "--for", FOR, "--json"];
    [&watch[..], &record, &diagnose]
        .map(|args| {
            let (output, took) = run(disk, args);
            let shown = String::from_utf8_lossy(&output.stdout);
            assert!(took < IN_TIME, "{} took {took:?}", args[0]);
            CommandResult {
                command: ["watch", "record", "diagnose"]
                    .into_iter()
                    .find(|command| *command == args[0])
                    .expect("one of the three"),
                status: output.status.code(),
                document: serde_json::from_str(&shown)
                    .unwrap_or_else(|error| panic!("{error}: {shown}")),
            }
        })
        .into()
}

/// Reads at random, past the page cache, until it is dropped.
fn fio(disk: &LoopDevice, args: &[&str]) -> RunningLoad {
    let fio = Command::new("fio")
        .args(["--name=load", "--rw=randread", "--bs=4k", "--direct=1"])
        .args(["--ioengine=io_uring", "--thread", "--readonly"])
        .args(["--time_based", "--runtime=600"])
        .arg(format!("--filename={}", disk.path().display()))
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let load = RunningLoad(fio.expect("fio runs"));
    let stat = Path::new("/sys/block").join(disk.name()).join("stat");
    wait::until("fio reads", wait::PATIENCE, || in_flight(&stat) > 0);
    load
}

#[test]
fn each_says_that_a_stopped_disk_is_silent() {
    require!(Bpf, Loop, Tool("nbdkit"), Tool("nbdfuse"));
    let served = ServedDisk::new();
    let name = served.disk.name();
    let mut reads = served.stop();
    for told in each(&served.disk, &Folder::new("stopped")) {
        let stall = &told.finding("stalled-io", &name)["facts"]["stall"];
        let said = (told.status, stall["kind"].as_str());
        assert_eq!(said, (Some(1), Some("silent")), "{}", told.command);
    }
    served.server.go_on();
    assert!(wait::exit("the reads", wait::PATIENCE, &mut reads).success());
}

#[test]
fn each_says_that_a_failing_disk_fails() {
    require!(Bpf, Loop);
    let folder = Folder::new("failing");
    let disk = half_readable(&folder, LoopDevice::attach_hidden);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let all = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                read_all(disk.path());
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        let all = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| each(&disk, &folder)));
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        all.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    for told in all {
        let finding = told.finding("failing-io", &disk.name());
        let said = (told.status, finding["severity"].as_str());
        assert_eq!(said, (Some(1), Some("critical")), "{}", told.command);
        let first = &finding["facts"]["first"][0];
        // The second half of the disk fails, and this process reads it.
        assert!(first["start_bytes"].as_u64() >= Some(1 << 20), "{first}");
        let sender = first["sender"]["pid"].as_u64();
        assert_eq!(sender, Some(u64::from(std::process::id())), "{first}");
        assert_eq!(first["error"], "io", "{first}");
    }
}

/// A throttle charges each cell of 4 KiB, and most of these reads touch two: 100 reads a second of 64 in flight. Of so few I/O many are in
/// flight at the end.
#[test]
fn each_says_that_a_slow_disk_is_saturated() {
    require!(
        Bpf,
        Loop,
        Tool("qemu-storage-daemon"),
        Tool("fusermount3"),
        Tool("fio")
    );
    let folder = Folder::new("slow");
    let slow = ChargedCells {
        units_per_second: 200,
        ..ChargedCells::of_ratio(4096, 0, 2.0)
    }
    .up();
    let disk = LoopDevice::attach_hidden(slow.path(), &["--read-only"]);
    let load = fio(&disk, &["--blockalign=512", "--iodepth=64"]);
    for told in each(&disk, &folder) {
        let finding = told.finding("saturated-device", &disk.name());
        assert_eq!(told.status, Some(1), "{}: {finding}", told.command);
        let depth = finding["facts"]["depth_mean"].as_f64().expect("a depth");
        // As many are in flight but at the ends of the time, and one at a time would be 1.
        assert!((32.0..65.0).contains(&depth), "{}: {depth}", told.command);
    }
    drop(load);
}

#[test]
fn none_finds_a_healthy_busy_disk_at_fault() {
    require!(Bpf, Loop, Tool("fio"));
    let folder = Folder::new("healthy");
    let place = folder.path("memory");
    std::fs::create_dir(&place).expect("a directory");
    let _memory = Mounted::tmpfs(128 << 20, &place);
    let image = place.join("disk");
    std::fs::write(&image, vec![7; 64 << 20]).expect("an image");
    let disk = LoopDevice::attach_hidden(&image, &[]);
    let load = fio(&disk, &["--iodepth=8"]);
    for told in each(&disk, &folder) {
        let rules = told.rules(&disk.name());
        assert!(rules.is_empty(), "{}: {rules:?}", told.command);
        let sent = &told.document["result"];
        assert_ne!(told.status, Some(1), "{}: {sent}", told.command);
        if told.command == "record" {
            // A busy machine may lose I/O.
            let lost = sent["lost"].as_u64().expect("a count");
            assert_eq!(told.status, Some(if lost > 0 { 3 } else { 0 }));
            assert!(sent["ios"].as_u64() > Some(1_000), "{sent}");
            assert!(told.document.get("verdict").is_none());
        }
    }
    drop(load);
}
