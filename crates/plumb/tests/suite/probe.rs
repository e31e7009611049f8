//! `plumb probe` on devices that really charge for reads off a grid, and on such that answer without a medium.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use crate::common::Ran;
use crate::common::probed::{ProbeDocument, probe, probe_text, probe_until_decided};
use crate::common::terminal::Terminal;
use plumb_testkit::charging::{ChargedCells, delayed_blocks};
use plumb_testkit::loop_device::{LoopDevice, run};
use plumb_testkit::slow_disk::SlowDisk;
use plumb_testkit::{Machine, Rng, require, temp_dir, wait};
use serde_json::Value;

/// A file of noise, or of anything else than zeros at least.
fn noise(path: &Path, mib: u64) {
    let mut file = fs::File::create(path).expect("a file");
    let mut random = Rng::new(mib);
    let mut block = vec![0; 1 << 20];
    for _ in 0..mib {
        block
            .chunks_exact_mut(8)
            .for_each(|word| word.copy_from_slice(&random.next_u64().to_le_bytes()));
        file.write_all(&block).expect("room");
    }
    file.sync_all().expect("written");
}

/// The results of runs on cells of a known ratio.
#[derive(Debug, Default)]
struct Rates {
    runs: u32,
    wrong: u32,
    inconclusive: u32,
    covered: u32,
    /// Of a machine that is busy.
    near: u32,
    seconds: Vec<f64>,
}

impl Rates {
    fn count(&mut self, (cell, phase): (u64, u64), ratio: f64, probed: &ProbeDocument) {
        self.runs += 1;
        self.seconds.push(probed.seconds());
        if probed.is_open() {
            self.inconclusive += 1;
        } else if probed.is_right(cell, (cell - phase) % cell) {
            self.covered += u32::from(probed.holds(ratio));
            self.near += u32::from(probed.is_near(ratio));
        } else {
            eprintln!("{ratio} {cell}/{phase}: {}", probed.result);
            self.wrong += 1;
        }
    }

    fn decided(&self) -> u32 {
        self.runs - self.inconclusive
    }

    fn median_seconds(&mut self) -> f64 {
        self.seconds.sort_by(f64::total_cmp);
        self.seconds[self.seconds.len() / 2]
    }
}

/// Phases and lengths of cells, as often as runs are wanted.
fn cells(runs: usize) -> impl Iterator<Item = (u64, u64)> {
    let all = [
        (4096, 3584),
        (8192, 1024),
        (4096, 0),
        (8192, 3584),
        (4096, 1024),
        (8192, 0),
    ];
    all.into_iter().cycle().take(runs)
}

/// Never wrong; five that are decided of ten at most, since other tests leave some open and make each slower. How often that
/// is on a quiet machine, and how long it takes, `make soak` and `make bench` show.
#[test]
fn cells_behind_a_throttle() {
    require!(Patience, Tool("qemu-storage-daemon"), Tool("fusermount3"));
    let machine = Machine::watched();
    let mut why_open = None;
    for ratio in [2.0, 1.5, 1.25, 1.1] {
        let mut rates = Rates::default();
        for (cell, phase) in cells(10) {
            let device = ChargedCells::of_ratio(cell, phase, ratio).up();
            rates.count((cell, phase), ratio, &probe(device.path(), "--limit 30s"));
            if rates.decided() == 5 {
                break;
            }
        }
        eprintln!("ratio {ratio}: {rates:?}");
        assert_eq!(rates.wrong, 0, "{ratio}: {rates:?}");
        if (rates.decided(), rates.near) != (5, 5) {
            let why = machine.was_busy();
            why_open = Some(
                why.unwrap_or_else(|| panic!("{ratio}: expected 5 decided and near, {rates:?}")),
            );
        }
    }
    if let Some(why) = why_open {
        plumb_testkit::undecided!(why);
    }
}

/// Cells that cost nothing to miss show no grid, and of zeros nobody says that there is no penalty.
#[test]
fn cells_without_a_penalty() {
    require!(Patience, Tool("qemu-storage-daemon"), Tool("fusermount3"));
    let folder = temp_dir("image");
    let image = folder.path().join("image");
    noise(&image, 256);
    let device = ChargedCells {
        image: Some(&image),
        ..ChargedCells::of_ratio(4096, 1024, 1.0)
    }
    .up();
    let probed = probe(device.path(), "--margin 15 --limit 60s");
    assert_eq!(probed.grid(), None, "{}", probed.result);
    // A machine that is busy with other tests may not get to the end of it; it never says anything else.
    assert!(
        probed.is_blank() || (probed.verdict(), probed.code) == ("no-penalty", 0),
        "{}",
        probed.result
    );
    let device = ChargedCells::of_ratio(4096, 1024, 1.0).up();
    let probed = probe(device.path(), "");
    assert!(
        probed.is_blank() && probed.reason().contains("zeros"),
        "{}",
        probed.result
    );
}

/// Partitions of a disk whose loop device declares nothing: the grid of each follows from its first sector.
#[test]
fn partitions_of_a_disk_that_declares_nothing() {
    require!(
        Root,
        Loop,
        Tool("qemu-storage-daemon"),
        Tool("fusermount3"),
        Tool("sgdisk"),
        Tool("partx")
    );
    let folder = temp_dir("label");
    let image = folder.path().join("image");
    noise(&image, 300);
    run(Command::new("sgdisk")
        .args(["--clear", "--set-alignment=1"])
        .arg(&image)
        .args([
            "--new=1:34:200062",
            "--new=2:200063:400000",
            "--new=3:401408:600000",
        ]));
    // Slow enough for the way through two more servers on a busy machine.
    let cells = ChargedCells {
        image: Some(&image),
        units_per_second: 500,
        ..ChargedCells::of_ratio(4096, 0, 2.0)
    };
    let device = cells.up();
    let disk = LoopDevice::attach(
        device.path(),
        &["--direct-io=on", "--sector-size", "512", "--read-only"],
    );
    assert_eq!(disk.add_partitions(), 3);
    // (4096 − 512 · first sector mod 4096) mod 4096.
    let machine = Machine::watched();
    for (number, offset) in [(1, 3072), (2, 512), (3, 0)] {
        let node = partition(&disk, number, folder.path());
        let probed = probe_until_decided(&node, "--limit 30s");
        crate::undecided_on_a_busy_machine!(machine, probed);
        assert!(probed.is_right(4096, offset), "{number}: {}", probed.result);
        assert!(probed.is_near(2.0), "{}", probed.result["penalty"]);
        if offset != 0 {
            assert_eq!(probed.document["findings"][0]["rule"], "misaligned-target");
        }
    }
}

/// A node of its own: nobody may make one below /dev.
fn partition(disk: &LoopDevice, number: u32, folder: &Path) -> PathBuf {
    let name = format!("{}p{number}", disk.name());
    let dev = fs::read_to_string(format!("/sys/class/block/{name}/dev")).expect("its number");
    let (major, minor) = dev.trim().split_once(':').expect("two numbers");
    let node = folder.join(name);
    run(Command::new("mknod").arg(&node).args(["b", major, minor]));
    node
}

/// Blocks of 4 KiB that each take a millisecond, at any depth.
#[test]
fn blocks_with_a_delay() {
    require!(
        Patience,
        Tool("nbdkit"),
        Tool("nbdfuse"),
        Tool("fusermount3")
    );
    let device = delayed_blocks(512, "1ms");
    let machine = Machine::watched();
    for flags in ["--depth 1", "--depth 16"] {
        let probed = probe_until_decided(device.path(), flags);
        crate::undecided_on_a_busy_machine!(machine, probed);
        assert!(probed.is_right(4096, 0), "{flags}: {}", probed.result);
    }
}

/// A loop device that reads through the page cache has the grid of its pages, for any start of the blocks below: each
/// page is read whole. The result is that, or nothing.
#[test]
fn pages_of_a_loop_device() {
    require!(
        Root,
        Loop,
        Tool("qemu-storage-daemon"),
        Tool("fusermount3"),
        Tool("blockdev")
    );
    let folder = temp_dir("pages");
    let image = folder.path().join("image");
    noise(&image, 256);
    // Of cells that begin elsewhere a page takes two, and two pages take three.
    for (phase, ratio) in [(0, 2.0), (1024, 1.5)] {
        let cells = ChargedCells {
            image: Some(&image),
            units_per_second: 500,
            ..ChargedCells::of_ratio(4096, phase, 2.0)
        };
        let device = cells.up();
        let below = LoopDevice::attach(
            device.path(),
            &["--direct-io=on", "--sector-size", "512", "--read-only"],
        );
        let disk = LoopDevice::attach(below.path(), &["--read-only"]);
        run(Command::new("blockdev")
            .arg("--flushbufs")
            .args([below.path(), disk.path()]));
        let probed = probe(disk.path(), "--limit 20s");
        assert!(
            probed.is_open() || probed.is_right(4096, 0),
            "{phase}: {}",
            probed.result
        );
        assert!(
            probed.is_open() || probed.is_near(ratio),
            "{phase}: {}",
            probed.result["penalty"]
        );
        let notes = probed.notes();
        assert!(notes.contains("through a page cache"), "{notes}");
    }
}

/// Reads that fail are counted, with the place of the first one, and decide nothing.
#[test]
fn devices_that_fail_meanwhile() {
    require!(Tool("nbdkit"), Tool("nbdfuse"), Tool("fusermount3"));
    for (name, fail) in [
        ("errors", SlowDisk::fail as fn(&SlowDisk)),
        ("without its server", SlowDisk::die),
    ] {
        let disk = SlowDisk::new(512 << 20, "1ms");
        let running = crate::common::command()
            .args(["probe", "--json"])
            .arg(disk.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("plumb runs");
        sleep(Duration::from_millis(1000));
        fail(&disk);
        let done = wait::output("plumb probe", wait::PATIENCE, running);
        let probed = ProbeDocument::from_run(&Ran::from_output(done));
        let result = &probed.result;
        assert!(probed.is_blank(), "{name}: {result}");
        let (failed, reads) = (result["failed"]["reads"].as_u64(), result["reads"].as_u64());
        assert!(
            failed > Some(0) && failed < reads,
            "{name}: {failed:?} of {reads:?}"
        );
        assert!(
            result["failed"]["at_bytes"].as_u64() < Some(512 << 20),
            "{name}: {result}"
        );
        assert!(
            result["grid"].is_null() && result["sweep"] == Value::Array(Vec::new()),
            "{name}: {result}"
        );
        let why = probed.reason();
        assert!(
            why.contains(" failed, expected none: the first one at byte "),
            "{name}: {why}"
        );
    }
    // From the beginning on: the first read of all.
    let disk = SlowDisk::new(512 << 20, "1ms");
    disk.fail();
    let said = probe_text(disk.path(), "");
    said.ends(3)
        .says("1 read failed, expected none: the first one at byte ");
    said.says("Input/output error (os error 5)")
        .says(" s, 1 read, 0 B");
}

/// A file in memory behind a loop device: for any noise, no grid.
#[test]
fn a_plain_loop_device_has_no_grid() {
    require!(Root, Loop);
    let folder = temp_dir("plain");
    let image = folder.path().join("image");
    noise(&image, 128);
    let disk = LoopDevice::attach(&image, &[]);
    for seed in 0..3 {
        let probed = probe(disk.path(), &format!("--limit 8s --seed {seed}"));
        assert_eq!(probed.grid(), None, "{}", probed.result);
        assert_ne!(probed.verdict(), "aligned");
    }
}

/// An unwritten range answers without a medium, and is never called aligned.
#[test]
fn a_thin_volume_never_written() {
    require!(Root, Loop, Tool("dmsetup"));
    let folder = temp_dir("thin");
    let Some(thin) = Thin::new(folder.path()) else {
        let why = "no thin volumes in this kernel";
        plumb_testkit::skip!(why);
    };
    let probed = probe(&thin.node, "--limit 8s");
    assert!(probed.is_blank(), "{}", probed.result);
    let commands = probed.result["commands"].to_string();
    assert!(commands.contains("dd if=/dev/urandom"), "{commands}");
}

/// A thin volume of 1 GiB in a pool on two loop devices.
struct Thin {
    node: PathBuf,
    names: [String; 2],
    _disks: [LoopDevice; 2],
}

impl Thin {
    fn new(folder: &Path) -> Option<Thin> {
        let file = |name: &str, bytes: u64| {
            let path = folder.join(name);
            fs::File::create(&path)
                .and_then(|file| file.set_len(bytes))
                .expect("room");
            LoopDevice::attach(&path, &[])
        };
        let disks = [file("metadata", 16 << 20), file("data", 256 << 20)];
        let own = std::process::id();
        let names = [format!("plumb-pool-{own}"), format!("plumb-thin-{own}")];
        let [metadata, data] = [&disks[0], &disks[1]].map(|disk| disk.path().display().to_string());
        let pool = format!("0 {} thin-pool {metadata} {data} 128 0", (256 << 20) / 512);
        let make = |name: &str, table: &str| {
            let done = Command::new("dmsetup")
                .args(["create", name, "--verifyudev", "--table", table])
                .output();
            done.is_ok_and(|done| done.status.success())
        };
        let mut thin = Thin {
            node: PathBuf::new(),
            names,
            _disks: disks,
        };
        if !make(&thin.names[0], &pool) {
            return None;
        }
        let pool = format!("/dev/mapper/{}", thin.names[0]);
        run(Command::new("dmsetup").args(["message", &pool, "0", "create_thin 0"]));
        assert!(make(
            &thin.names[1],
            &format!("0 {} thin {pool} 0", (1u64 << 30) / 512)
        ));
        thin.node = PathBuf::from(format!("/dev/mapper/{}", thin.names[1]));
        Some(thin)
    }
}

impl Drop for Thin {
    fn drop(&mut self) {
        for name in self.names.iter().rev() {
            let _ = Command::new("dmsetup")
                .args(["remove", "--retry", name])
                .output();
        }
    }
}

/// A file without a written byte, and one that is too small.
#[test]
fn files_without_media() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let sparse = folder.path().join("sparse");
    fs::File::create(&sparse)
        .and_then(|file| file.set_len(1 << 30))
        .expect("room");
    let probed = probe(&sparse, "--limit 5s");
    assert!(probed.is_without_media(), "{}", probed.result);
    let small = folder.path().join("small");
    fs::write(&small, [1; 4096]).expect("room");
    insta::assert_snapshot!(probe_text(&small, "").ends(2).complaint());
}

#[test]
fn unmeasurable_probes_are_refused() {
    let folder = temp_dir("refused");
    for (target, flags, status, words) in [
        (folder.path().join("none"), "", 5, "none"),
        (folder.path().to_owned(), "", 2, "expected"),
        (
            folder.path().join("none"),
            "--margin 0",
            2,
            "expected percent",
        ),
        (folder.path().join("none"), "--depth 0", 2, "1..=256"),
    ] {
        let said = probe_text(&target, flags);
        assert_eq!(said.ends(status).complains(words).out, "");
    }
}

/// How many runs `make soak` asks for, for each ratio.
fn runs_asked() -> usize {
    std::env::var("PLUMB_PROBE_RUNS")
        .ok()
        .and_then(|runs| runs.parse().ok())
        .unwrap_or(100)
}

/// Does `one` for each number below `runs`, several of them side by side: a probe waits for its device most of the
/// time.
fn side_by_side<T: Send>(runs: usize, workers: usize, one: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        numbers
            .take_while(|number| *number < runs)
            .map(&one)
            .collect::<Vec<T>>()
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("no panic"))
            .collect()
    })
}

/// Hundreds of runs: `make soak` shows the rates. `PLUMB_PROBE_RUNS` is how many for each ratio.
#[test]
#[ignore = "a quarter of an hour: make soak"]
fn rates_over_many_runs() {
    let runs = runs_asked();
    let (mut all, mut decided) = (0, 0);
    for ratio in [2.0, 1.5, 1.25, 1.1] {
        let places: Vec<(u64, u64)> = cells(runs).collect();
        let probed = side_by_side(runs, 2, |number| {
            let (cell, phase) = places[number];
            let device = ChargedCells::of_ratio(cell, phase, ratio).up();
            (places[number], probe(device.path(), ""))
        });
        let mut rates = Rates::default();
        probed
            .iter()
            .for_each(|(place, probed)| rates.count(*place, ratio, probed));
        let seconds = rates.median_seconds();
        let Rates {
            runs,
            wrong,
            inconclusive,
            covered,
            ..
        } = rates;
        println!(
            "ratio {ratio}: {runs} runs, {wrong} wrong, {inconclusive} inconclusive, {covered} intervals hold it, {seconds:.1} s"
        );
        assert_eq!(wrong, 0);
        assert!(inconclusive * 50 <= runs);
        all += covered;
        decided += runs - inconclusive;
    }
    assert!(all * 100 >= decided * 97, "{all} of {decided}");
}

/// As many runs where no start costs more: cells that charge nothing for a miss, and a loop device on memory.
#[test]
#[ignore = "half an hour: make soak"]
fn false_alarms_over_many_runs() {
    require!(Root, Loop);
    let runs = 2 * runs_asked();
    let folder = temp_dir("image");
    let image = folder.path().join("image");
    noise(&image, 256);
    let places: Vec<(u64, u64)> = cells(runs).collect();
    let is_alarm =
        |probed: &ProbeDocument| probed.grid().is_some() || probed.verdict() == "aligned";
    let of_cells = side_by_side(runs, 4, |number| {
        let (cell, phase) = places[number];
        let device = ChargedCells {
            image: Some(&image),
            ..ChargedCells::of_ratio(cell, phase, 1.0)
        }
        .up();
        is_alarm(&probe(device.path(), "--limit 12s"))
    });
    let disk = LoopDevice::attach(&image, &["--read-only"]);
    let of_loop = side_by_side(runs, 1, |number| {
        is_alarm(&probe(disk.path(), &format!("--limit 6s --seed {number}")))
    });
    let alarms = |found: &[bool]| found.iter().filter(|is_alarm| **is_alarm).count();
    let (of_cells, of_loop) = (alarms(&of_cells), alarms(&of_loop));
    println!(
        "ratio 1.0: {runs} runs, {of_cells} false alarms; loop device: {runs} runs, {of_loop} false alarms"
    );
    assert!(of_cells + of_loop <= 1);
}

/// A terminal shows the progress of a probe, and Ctrl-C prints the results so far.
#[test]
fn progress_and_control_c() {
    require!(
        Tool("tmux"),
        Tool("qemu-storage-daemon"),
        Tool("fusermount3")
    );
    // Reads are so slow that the probe decides no granularity in its first seconds.
    let device = ChargedCells {
        units_per_second: 40,
        ..ChargedCells::of_ratio(4096, 1024, 2.0)
    }
    .up();
    let terminal = Terminal::open("probe", 80, 24, "");
    let command = format!(
        "clear; {} probe --limit 100s {}; echo status $?",
        env!("CARGO_BIN_EXE_plumb"),
        device.path().display()
    );
    terminal.press(&[&command, "Enter"]);
    let is_progress = |line: &str| {
        line.contains(" reads, ")
            && line.contains("/s, ")
            && line.contains(" of up to 100 s, ")
            && line.contains(" s left; ")
    };
    terminal.until("the progress", |screen| screen.lines().any(is_progress));
    terminal.press(&["C-c"]);
    let screen = terminal.shows("status 3");
    assert!(!screen.lines().any(is_progress), "{screen}");
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("INCONCLUSIVE: reads of") && words.contains("ended early; so far "),
        "{screen}"
    );
}
