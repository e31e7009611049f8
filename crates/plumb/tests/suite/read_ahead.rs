//! Read-ahead that does harm, planted on a loop device: `plumb diagnose` finds it under the load that suffers, and not under the same
//! setting with a load that does not.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use plumb_testkit::loop_device::LoopDevice;
use plumb_testkit::{require, wait};
use serde_json::Value;

use crate::alarms::RunningLoad;
use crate::common::{Folder, command};

/// A device with a read-ahead of its own.
struct Device {
    disk: LoopDevice,
    _folder: Folder,
}

impl Device {
    fn with_read_ahead(kib: u64) -> Device {
        let folder = Folder::new("read-ahead");
        let image = folder.path("disk");
        let file = File::create(&image).expect("an image");
        file.set_len(8 << 30).expect("room for a sparse file");
        let disk = LoopDevice::attach(&image, &[]);
        disk.set_queue("read_ahead_kb", &kib.to_string());
        Device {
            disk,
            _folder: folder,
        }
    }

    /// fio on it until it is killed; it has begun when this returns.
    fn load(&self, args: &[&str]) -> RunningLoad {
        let fio = Command::new("fio")
            .args(["--name=load", "--thread", "--bs=4k", "--size=8g"])
            .args(["--time_based", "--runtime=120"])
            .arg(format!("--filename={}", self.disk.path().display()))
            .args(args)
            .stdout(Stdio::null())
            .spawn();
        let load = RunningLoad(fio.expect("fio runs"));
        let stat = format!("/sys/class/block/{}/stat", self.disk.name());
        let reads = || {
            let line = fs::read_to_string(&stat).unwrap_or_default();
            line.split_ascii_whitespace()
                .next()
                .and_then(|reads| reads.parse::<u64>().ok())
        };
        let before = reads();
        wait::until("fio reads", wait::PATIENCE, || reads() > before);
        load
    }

    /// The finding of a rule on it while fio runs.
    fn finding(&self, rule: &str, args: &[&str]) -> Option<Value> {
        let _load = self.load(args);
        let name = self.disk.name();
        let output = command()
            .args(["diagnose", &name, "--for", "4s", "--json"])
            .output();
        let output = output.expect("plumb runs").stdout;
        let document: Value = serde_json::from_slice(&output).expect("JSON");
        let findings = document["findings"].as_array().expect("findings");
        let of_disk =
            |one: &&Value| one["rule"] == rule && one["target"]["device"] == name.as_str();
        findings.iter().find(of_disk).cloned()
    }
}

/// The command that sets read-ahead to the default of the kernel.
fn assert_is_set_back(finding: &Value, disk: &str) {
    let fix = finding["fix"].as_array().expect("commands");
    let path = format!("/sys/block/{disk}/queue/read_ahead_kb");
    let is_it = |line: &Value| {
        let line = line.to_string();
        line.contains("echo 128") && line.contains(&path)
    };
    assert!(fix.iter().any(is_it), "{fix:?}");
}

#[test]
fn read_ahead_that_is_off_is_found_under_sequential_reads() {
    require!(Bpf, Loop, Tool("fio"));
    let device = Device::with_read_ahead(0);
    let in_order = ["--rw=read", "--ioengine=psync", "--rate_iops=1000"];
    let found = device.finding("read-ahead-off", &in_order);
    let finding = found.expect("the finding");
    let facts = &finding["facts"];
    let number = |name: &str| facts[name].as_u64().expect("a number");
    // Each read of fio is one page.
    assert_eq!(number("cached_reads"), number("reads"));
    assert!(
        number("continuing_reads") * 10 > number("reads") * 9,
        "{facts}"
    );
    assert_is_set_back(&finding, &device.disk.name());

    let direct = [&in_order[..], &["--direct=1"]].concat();
    assert_eq!(device.finding("read-ahead-off", &direct), None);
}

/// Four open files, because the kernel reads around 100 misses of each.
#[test]
fn read_ahead_that_is_too_large_is_found_under_page_faults() {
    require!(Bpf, Loop, Tool("fio"));
    let device = Device::with_read_ahead(4096);
    let mapped = [
        "--rw=randread",
        "--ioengine=mmap",
        "--norandommap",
        "--numjobs=4",
        "--rate_iops=8",
    ];
    let unadvised = [&mapped[..], &["--fadvise_hint=0"]].concat();
    let found = device.finding("read-ahead-too-large", &unadvised);
    let finding = found.expect("the finding");
    let facts = &finding["facts"];
    assert_eq!(facts["bytes"], 4 << 20);
    assert_is_set_back(&finding, &device.disk.name());

    // fio calls madvise(MADV_RANDOM) unless it is kept from it.
    let advised = [&mapped[..4], &["--rate_iops=200"]].concat();
    assert_eq!(device.finding("read-ahead-too-large", &advised), None);
}
