//! Alarms of `plumb diagnose`, true and false: each planted fault is found in every run, and healthy loads give no finding that counts.
//!
//! The disks are loop devices over files in memory. A loop device takes its settings from the disk that holds its file, so each disk here
//! sets those that matter.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use plumb_testkit::loop_device::{LoopDevice, Mounted, run};
use plumb_testkit::slow_disk::SlowDisk;
use plumb_testkit::{require, wait};
use serde_json::Value;

use crate::common::{Folder, command};

/// Runs for each planted fault: three, or as many as `PLUMB_ALARM_RUNS` says.
pub fn runs() -> usize {
    let given = std::env::var("PLUMB_ALARM_RUNS").ok();
    given.and_then(|runs| runs.parse().ok()).unwrap_or(3)
}

/// Settings of the kernel for a disk, with its defaults.
const SETTINGS: [(&str, &str); 2] = [("read_ahead_kb", "128"), ("max_sectors_kb", "1280")];

/// A disk, with all below and above it, in the order of taking it down.
struct Disk {
    mounted: Option<Mounted>,
    disk: LoopDevice,
    _server: Option<SlowDisk>,
    _memory: Option<Mounted>,
    folder: Folder,
}

impl Disk {
    /// A sparse disk in memory.
    fn in_memory(bytes: u64) -> Disk {
        let folder = Folder::new("alarms");
        let place = folder.path("memory");
        fs::create_dir(&place).expect("a directory");
        let memory = Mounted::tmpfs(bytes, &place);
        let image = place.join("disk");
        let file = File::create(&image).expect("an image");
        file.set_len(bytes).expect("room for a sparse file");
        Disk::over(&image, folder, Some(memory), None)
    }

    /// A disk whose reads take this time.
    fn slow(delay: &str) -> Disk {
        let server = SlowDisk::new(64 << 20, delay);
        let image = server.path().to_owned();
        Disk::over(&image, Folder::new("alarms"), None, Some(server))
    }

    fn over(
        image: &Path,
        folder: Folder,
        memory: Option<Mounted>,
        server: Option<SlowDisk>,
    ) -> Disk {
        let disk = LoopDevice::attach(image, &[]);
        let made = Disk {
            mounted: None,
            disk,
            _server: server,
            _memory: memory,
            folder,
        };
        for (name, value) in SETTINGS {
            made.disk.set_queue(name, value);
        }
        made
    }

    /// One partition that begins at a sector.
    fn partition(&self, start: u32) -> PathBuf {
        let label = format!("label: gpt\nstart={start}, size=200000\n");
        let label = File::open(self.folder.file("label", label)).expect("the label");
        run(Command::new("sfdisk")
            .arg("--quiet")
            .arg(self.disk.path())
            .stdin(label));
        let _ = Command::new("partx")
            .args(["--add"])
            .arg(self.disk.path())
            .output();
        self.disk.partition(1)
    }

    /// ext4 on a partition at 1 MiB; the place where it is mounted.
    fn file_system(&mut self, block: &str) -> PathBuf {
        let part = self.partition(2048);
        run(Command::new("mkfs.ext4")
            .args([
                "-q",
                "-b",
                block,
                "-E",
                "lazy_itable_init=0,lazy_journal_init=0",
            ])
            .arg(&part));
        let at = self.folder.path("mounted");
        fs::create_dir(&at).expect("a directory");
        self.mounted = Some(Mounted::mount(&part, &at));
        at
    }

    /// Starts a load that runs until it is dropped, and waits until the disk has seen I/O of it.
    fn load(&self, program: &str, args: &[String]) -> RunningLoad {
        let before = self.ios();
        let child = Command::new(program)
            .args(args)
            .current_dir(self.folder.path("."))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let load = RunningLoad(child.expect("the load runs"));
        wait::until("the load sends I/O", wait::PATIENCE, || self.ios() > before);
        load
    }

    fn fio(&self, target: &str, args: &[&str]) -> RunningLoad {
        let mut all = vec!["--name=load", "--thread", "--time_based", "--runtime=600"];
        all.extend(args);
        let mut all: Vec<String> = all.into_iter().map(str::to_owned).collect();
        all.push(target.to_owned());
        self.load("fio", &all)
    }

    fn node(&self) -> String {
        format!("--filename={}", self.disk.path().display())
    }

    /// Reads and writes that began.
    fn ios(&self) -> u64 {
        let stat = format!("/sys/class/block/{}/stat", self.disk.name());
        let line = fs::read_to_string(stat).unwrap_or_default();
        let numbers: Vec<u64> = line
            .split_ascii_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        [0, 4, 8].iter().filter_map(|at| numbers.get(*at)).sum()
    }

    /// The findings on the disk and its partitions, as rule and severity.
    fn judge(&self, time: &str) -> Vec<(String, String)> {
        let name = self.disk.name();
        let output = command()
            .args(["diagnose", &name, "--for", time, "--grid", "4k", "--json"])
            .output();
        let output = output.expect("plumb runs").stdout;
        let document: Value = serde_json::from_slice(&output).expect("JSON");
        let findings = document["findings"].as_array().expect("findings");
        let word = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
        findings
            .iter()
            .filter(|one| word(&one["target"], "device").starts_with(&name))
            .map(|one| (word(one, "rule"), word(one, "severity")))
            .collect()
    }

    /// The fault is found in every run.
    fn is_found(&self, rule: &str, time: &str) {
        (1..=runs()).for_each(|run| self.is_found_once(rule, time, run));
    }

    fn is_found_once(&self, rule: &str, time: &str, run: usize) {
        let found = self.judge(time);
        assert!(
            found.iter().any(|(one, _)| one == rule),
            "run {run}: no {rule} in {found:?}"
        );
    }

    /// No warning and nothing critical in any of these runs, beside the statement that small writes are random: the loads that write at
    /// random do just that.
    fn is_healthy(&self, what: &str, runs: usize) {
        for at in 1..=runs {
            let mut found = self.judge("3s");
            found.retain(|(rule, severity)| severity != "note" && rule != "small-random-writes");
            assert!(found.is_empty(), "{what}, run {at} of {runs}: {found:?}");
        }
    }
}

/// A load, ended with its processes when it is dropped.
pub struct RunningLoad(pub Child);

impl Drop for RunningLoad {
    fn drop(&mut self) {
        plumb_testkit::wait::stop(&mut self.0);
    }
}

fn file_in(at: &Path) -> String {
    format!("--directory={}", at.display())
}

#[test]
fn a_misaligned_partition_is_found_every_time() {
    require!(Bpf, Loop, Tool("fio"), Tool("sfdisk"), Tool("partx"));
    let disk = Disk::in_memory(256 << 20);
    let part = disk.partition(2049);
    let target = format!("--filename={}", part.display());
    let _load = disk.fio(
        &target,
        &["--rw=randread", "--bs=4k", "--direct=1", "--rate_iops=500"],
    );
    disk.is_found("misaligned-partition", "3s");
}

#[test]
fn short_blocks_are_found_every_time() {
    require!(Bpf, Loop, Tool("fio"), Tool("sfdisk"), Tool("mkfs.ext4"));
    let mut disk = Disk::in_memory(256 << 20);
    let at = disk.file_system("1024");
    let _load = disk.fio(
        &file_in(&at),
        &[
            "--rw=randwrite",
            "--bs=1k",
            "--direct=1",
            "--size=16m",
            "--rate_iops=500",
        ],
    );
    disk.is_found("misaligned-io", "3s");
}

#[test]
fn an_offset_of_the_application_is_found_every_time() {
    require!(Bpf, Loop, Tool("fio"), Tool("sfdisk"), Tool("mkfs.ext4"));
    let mut disk = Disk::in_memory(256 << 20);
    let at = disk.file_system("4096");
    let _load = disk.fio(
        &file_in(&at),
        &[
            "--rw=randread",
            "--bs=4k",
            "--offset=512",
            "--direct=1",
            "--size=16m",
            "--rate_iops=500",
        ],
    );
    disk.is_found("misaligned-io", "3s");
}

#[test]
fn read_ahead_that_is_off_is_found_every_time() {
    require!(Bpf, Loop, Tool("fio"));
    let disk = Disk::in_memory(4 << 30);
    disk.disk.set_queue("read_ahead_kb", "0");
    let _load = disk.fio(&disk.node(), &["--rw=read", "--bs=4k", "--rate_iops=1000"]);
    disk.is_found("read-ahead-off", "3s");
}

/// fio opens the disk 32 times: the kernel reads around 100 misses of each. After a minute all of the disk is in the page cache, so
/// that each run has a disk of its own.
#[test]
fn read_ahead_that_is_too_large_is_found_every_time() {
    require!(Bpf, Loop, Tool("fio"));
    for run in 1..=runs() {
        let disk = Disk::in_memory(8 << 30);
        disk.disk.set_queue("read_ahead_kb", "4096");
        let _load = disk.fio(
            &disk.node(),
            &[
                "--rw=randread",
                "--bs=4k",
                "--size=8g",
                "--ioengine=mmap",
                "--fadvise_hint=0",
                "--norandommap",
                "--numjobs=32",
                "--rate_iops=1",
            ],
        );
        disk.is_found_once("read-ahead-too-large", "6s", run);
    }
}

#[test]
fn small_requests_are_found_every_time() {
    require!(Bpf, Loop, Tool("fio"));
    let disk = Disk::in_memory(256 << 20);
    disk.disk.set_queue("max_sectors_kb", "64");
    let _load = disk.fio(
        &disk.node(),
        &["--rw=read", "--bs=1m", "--direct=1", "--rate_iops=50"],
    );
    disk.is_found("queue-setting", "3s");
}

#[test]
fn failures_are_found_every_time() {
    require!(Bpf, Loop, Tool("fio"));
    let disk = Disk::in_memory(256 << 20);
    let image = disk.folder.path("memory/disk");
    let file = File::options().write(true).open(image).expect("the image");
    file.set_len(128 << 20).expect("a shorter file");
    let _load = disk.fio(
        &disk.node(),
        &[
            "--rw=randread",
            "--bs=4k",
            "--direct=1",
            "--size=256m",
            "--continue_on_error=io",
            "--rate_iops=300",
        ],
    );
    disk.is_found("failing-io", "3s");
}

#[test]
fn saturation_is_found_every_time() {
    require!(Bpf, Loop, Tool("fio"), Tool("nbdkit"), Tool("nbdfuse"));
    let disk = Disk::slow("50ms");
    let _load = disk.fio(
        &disk.node(),
        &[
            "--rw=randread",
            "--bs=8k",
            "--direct=1",
            "--ioengine=io_uring",
            "--iodepth=32",
        ],
    );
    disk.is_found("saturated-device", "5s");
}

/// Loads on aligned ext4, slow enough for any machine: by name, and arguments of fio.
const HEALTHY: [(&str, &[&str]); 6] = [
    (
        "random reads",
        &["--rw=randread", "--bs=4k", "--direct=1", "--rate_iops=300"],
    ),
    (
        "a direct stream",
        &["--rw=read", "--bs=128k", "--direct=1", "--rate_iops=50"],
    ),
    (
        "a stream through the cache",
        &["--rw=read", "--bs=64k", "--rate_iops=50", "--invalidate=1"],
    ),
    (
        "random writes with fdatasync",
        &[
            "--rw=randwrite",
            "--bs=8k",
            "--fdatasync=8",
            "--rate_iops=200",
        ],
    ),
    (
        "a database",
        &[
            "--rw=randrw",
            "--bs=16k",
            "--direct=1",
            "--rwmixread=70",
            "--rate_iops=150",
        ],
    ),
    (
        "a log",
        &["--rw=write", "--bs=4k", "--fdatasync=1", "--rate_iops=100"],
    ),
];

/// Shell scripts in the file system, over and over.
const SCRIPTS: [(&str, &str); 3] = [
    (
        "mkfs",
        "while :; do truncate -s 16M image; mkfs.ext4 -q image; sync image; rm image; done",
    ),
    (
        "a compiler",
        "for n in $(seq 2000); do echo \"int f$n(int a) { return a * $n; }\"; done > a.c; while :; do cc -c a.c && sync a.o; rm a.o; done",
    ),
    (
        "SQLite",
        "sqlite3 db 'create table t(a, b)'; while :; do sqlite3 db \"insert into t values(random(), hex(randomblob(100)))\"; done",
    ),
];

fn healthy(runs: usize, loads: &[(&str, &[&str])]) {
    let mut disk = Disk::in_memory(256 << 20);
    let at = disk.file_system("4096");
    for (what, args) in loads {
        let load = disk.fio(&file_in(&at), &[&["--size=32m"], *args].concat());
        // The file that fio lays out is no load of interest.
        run(Command::new("sync").arg("-f").arg(&at));
        disk.is_healthy(what, runs);
        drop(load);
    }
    disk.is_healthy("idle", runs);
}

#[test]
fn healthy_loads_raise_no_alarm() {
    require!(Bpf, Loop, Tool("fio"), Tool("sfdisk"), Tool("mkfs.ext4"));
    healthy(1, &HEALTHY);
}

/// Ten loads, ten times each.
#[test]
#[ignore = "make soak: about 15 minutes"]
fn ten_healthy_loads_raise_no_alarm_in_a_hundred_runs() {
    require!(
        Bpf,
        Loop,
        Tool("fio"),
        Tool("sfdisk"),
        Tool("mkfs.ext4"),
        Tool("cc"),
        Tool("sqlite3")
    );
    healthy(10, &HEALTHY);
    let mut disk = Disk::in_memory(256 << 20);
    let at = disk.file_system("4096");
    for (what, script) in SCRIPTS {
        let script = format!("cd '{}' && {script}", at.display());
        let load = disk.load("sh", &["-c".to_owned(), script]);
        disk.is_healthy(what, 10);
        drop(load);
    }
}
