//! The gain of `plumb fix`: on a disk that charges for misaligned reads a partition at sector 34 or 63 is moved with
//! its file system, and benchmark, probe and check measure it before and after.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::common::probed::probe_until_decided;
use crate::common::{MOVE_VERIFIED, Ran, plumb};
use plumb_testkit::charging::{Charging, delayed_blocks};
use plumb_testkit::loop_device::{LoopDevice, Mounted, run};
use plumb_testkit::tempdir::TempDir;
use plumb_testkit::{Machine, Rng, require};
use serde_json::Value;

const MIB: usize = 1 << 20;

/// Sectors of the partition: 40 MiB.
const SECTORS: u64 = 40 * 2048;

/// Blocks of 4 KiB with a delay of a millisecond each behind a loop device that declares nothing, with one GPT partition with
/// ext4 from a sector on. Fields are dropped in this order.
struct ThrottledDisk {
    loops: LoopDevice,
    _server: Charging,
    dir: TempDir,
    files: Vec<(PathBuf, Vec<u8>)>,
    _alone: MutexGuard<'static, ()>,
}

/// Held by the test that measures: others would be in its times.
static ALONE: Mutex<()> = Mutex::new(());

impl ThrottledDisk {
    /// With a partition from a sector on, and nothing in it.
    fn empty(start: u64) -> ThrottledDisk {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let server = delayed_blocks(64, "1ms");
        let last = start + SECTORS - 1;
        let one = format!("-n1:{start}:{last}");
        run(Command::new("sgdisk")
            .args(["-a1", &one])
            .arg(server.path()));
        let loops = LoopDevice::attach(server.path(), &["--direct-io=on", "--sector-size", "512"]);
        assert_eq!(loops.add_partitions(), 1);
        let dir = plumb_testkit::temp_dir("fix-gain");
        ThrottledDisk {
            loops,
            _server: server,
            dir,
            files: Vec::new(),
            _alone: alone,
        }
    }

    /// The same with a file system and files.
    fn new(start: u64) -> ThrottledDisk {
        let mut disk = ThrottledDisk::empty(start);
        run(Command::new("mkfs.ext4")
            .args(["-q", "-F"])
            .arg(disk.node()));
        disk.fill();
        disk
    }

    fn node(&self) -> PathBuf {
        PathBuf::from(format!("{}p1", self.loops.path().display()))
    }

    fn name(&self) -> String {
        format!("{}p1", self.loops.name())
    }

    fn start(&self) -> u64 {
        let path = format!(
            "/sys/class/block/{}/{}/start",
            self.loops.name(),
            self.name()
        );
        fs::read_to_string(path)
            .expect("the partition")
            .trim()
            .parse()
            .expect("a number")
    }

    fn mount(&self) -> (Mounted, PathBuf) {
        let at = self.dir.path().join("at");
        fs::create_dir_all(&at).expect("room");
        (Mounted::mount(&self.node(), &at), at)
    }

    fn fill(&mut self) {
        let (mounted, at) = self.mount();
        let mut random = Rng::new(self.start());
        for (number, len) in [8 * MIB, 100_001, 1].into_iter().enumerate() {
            let name = PathBuf::from(format!("file{number}"));
            let bytes: Vec<u8> = (0..len.div_ceil(8))
                .flat_map(|_| random.next_u64().to_le_bytes())
                .take(len)
                .collect();
            fs::write(at.join(&name), &bytes).expect("room");
            self.files.push((name, bytes));
        }
        drop(mounted);
    }

    /// Files are right, on a file system that its own tool finds nothing wrong with.
    fn assert_whole(&self) {
        run(Command::new("e2fsck").args(["-f", "-n"]).arg(self.node()));
        let (mounted, at) = self.mount();
        for (name, bytes) in &self.files {
            assert!(
                fs::read(at.join(name)).expect("a file") == *bytes,
                "{}",
                name.display()
            );
        }
        drop(mounted);
    }

    fn plumb(&self, command: &str, flags: &str) -> Ran {
        let words = command.split(' ').map(str::to_owned);
        let node = self.node().display().to_string();
        plumb(
            words
                .chain([node])
                .chain(flags.split_whitespace().map(str::to_owned)),
        )
    }

    /// Random reads of 4 KiB, one and sixteen at a time; the documents.
    fn bench(&self, when: &str) -> [PathBuf; 2] {
        [1, 16].map(|threads| {
            let flags =
                format!("--threads {threads} --for 2s --warmup 200ms --interval 200ms --json");
            let ran = self.plumb("bench", &flags);
            let path = self.dir.path().join(format!("{when}-{threads}.json"));
            fs::write(&path, &ran.ends(0).out).expect("room");
            path
        })
    }

    /// Asserts that the blocks begin a number of bytes after the partition's start; the reason why a probe on a busy machine stayed
    /// open.
    fn open_offset(&self, offset: u64) -> Option<String> {
        let machine = Machine::watched();
        let probed = probe_until_decided(&self.node(), "--limit 60s");
        let busy = machine.was_busy().filter(|_| probed.is_open());
        assert!(
            busy.is_some() || probed.is_right(4096, offset),
            "{:#}",
            probed.result
        );
        busy
    }

    /// The path of the journal: the disk is a file of this machine, which has only one.
    fn journal(&self) -> String {
        format!(
            "--journal {} --journal-same-disk",
            self.dir.path().join("journal").display()
        )
    }
}

/// The verdict of `plumb compare`, and the least ratio of reads a second: the lower end of the 95 % interval, which a
/// busy machine lowers.
fn gain(before: &Path, after: &Path) -> (String, f64) {
    let ran = plumb([
        "compare".as_ref(),
        before.as_os_str(),
        after.as_os_str(),
        "--json".as_ref(),
    ]);
    let json = ran.json();
    assert_eq!(json["result"]["level"], 0.95);
    let verdict = &json["result"]["comparisons"][0]["verdict"];
    println!("{verdict}");
    let outcome = verdict["outcome"].as_str().expect("an outcome").to_owned();
    (
        outcome,
        verdict["rate"]["low"].as_f64().expect("an interval"),
    )
}

/// Built to be twice as fast one at a time, because a misaligned read needs two blocks, and more than that with several
/// in flight, which wait for each other on their blocks. The rest of either is room for the machine.
fn assert_gained(before: &[PathBuf; 2], after: &[PathBuf; 2]) {
    let [(one, alone), (other, together)] = [0, 1].map(|at| gain(&before[at], &after[at]));
    assert_eq!((one.as_str(), other.as_str()), ("better", "better"));
    assert!(alone > 1.2, "one at a time: × {alone} at the least");
    assert!(
        together > 2.0,
        "sixteen at a time: × {together} at the least"
    );
}

/// Whether `plumb check` finds the partition's start off the grid.
fn is_found_off(disk: &ThrottledDisk) -> bool {
    let json = disk.plumb("check", "--grid 4k --json").json();
    let findings = json["findings"].as_array().expect("findings");
    let is_it = |finding: &Value| {
        finding["rule"] == "misaligned-partition" && finding["target"]["device"] == disk.name()
    };
    findings.iter().any(is_it)
}

#[test]
#[ignore = "times of a machine that does nothing else: make soak"]
fn a_moved_file_system_is_faster() {
    require!(
        Loop,
        Tool("nbdkit"),
        Tool("nbdfuse"),
        Tool("sgdisk"),
        Tool("partx"),
        Tool("mkfs.ext4")
    );
    let disk = ThrottledDisk::new(34);
    assert!(is_found_off(&disk));
    let before = disk.bench("before");
    let flags = format!("--to 2048s {} --yes {}", disk.journal(), disk.name());
    disk.plumb("fix move", &flags).ends(0).says(MOVE_VERIFIED);
    assert_eq!(disk.start(), 2048);
    let after = disk.bench("after");
    assert_gained(&before, &after);
    disk.assert_whole();
    assert!(!is_found_off(&disk));
}

/// By a plan, which ends with the results of check and probe.
#[test]
fn a_plan_ends_with_a_probe() {
    require!(
        Loop,
        Tool("nbdkit"),
        Tool("nbdfuse"),
        Tool("sgdisk"),
        Tool("partx"),
        Tool("mkfs.ext4")
    );
    let disk = ThrottledDisk::new(63);
    // 63 · 512 = 7 · 4096 + 3584: the first boundary is 512 bytes later.
    if let Some(why) = disk.open_offset(512) {
        plumb_testkit::undecided!(why);
    }
    let file = disk.dir.path().join("plan.json");
    let device = disk.loops.path().display().to_string();
    let flags = [
        "plan",
        "partition",
        &device,
        "--current",
        "63s",
        "--size",
        "40m",
        "--grid",
        "1m",
        "--json",
    ];
    fs::write(&file, &plumb(flags).ends(0).out).expect("room");
    let fix = |more: &str| {
        let words = [
            "fix".to_owned(),
            "plan".to_owned(),
            file.display().to_string(),
            "--probe".to_owned(),
        ];
        let more = format!("{} {more}", disk.journal());
        plumb(
            words
                .into_iter()
                .chain(more.split_whitespace().map(str::to_owned)),
        )
    };
    let node = disk.node().display().to_string();
    let shown = fix("");
    shown.ends(0).says(&node);
    insta::assert_snapshot!(shown.passages(&["nothing was", "and afterwards"]));
    assert_eq!(disk.start(), 63);
    let done = fix(&format!("--yes {}", disk.name()));
    done.says(MOVE_VERIFIED)
        .says(&format!("plumb check {node}"));
    // It has the time of a probe; questions that a busy machine leaves open are asked again below.
    let told = [
        "OK: reads: the grid of {} is 4 KiB at offset 0.",
        "INCONCLUSIVE: reads of {}",
    ];
    let told = told.map(|words| format!("plumb probe {node} {}", words.replace("{}", &node)));
    assert!(
        told.iter().any(|words| done.flat().contains(words)),
        "{}",
        done.out
    );
    if let Some(why) = disk.open_offset(0) {
        plumb_testkit::undecided!(why);
    }
    assert_eq!(disk.start(), 2048);
    disk.assert_whole();
}

/// An empty partition takes no more than a label.
#[test]
#[ignore = "times of a machine that does nothing else: make soak"]
fn a_relabelled_partition_is_aligned() {
    require!(
        Loop,
        Tool("nbdkit"),
        Tool("nbdfuse"),
        Tool("sgdisk"),
        Tool("partx")
    );
    let disk = ThrottledDisk::empty(63);
    if let Some(why) = disk.open_offset(512) {
        plumb_testkit::undecided!(why);
    }
    let device = disk.loops.path().display().to_string();
    let saved = disk.dir.path().join("saved").display().to_string();
    let name = disk.loops.name();
    let flags = [
        "fix", "relabel", &device, "--start", "2048s", "--save", &saved, "--yes", &name,
    ];
    plumb(flags).ends(0);
    assert_eq!(disk.start(), 2048);
    if let Some(why) = disk.open_offset(0) {
        plumb_testkit::undecided!(why);
    }
}
