//! `plumb probe` on devices that really charge for reads off a grid, and on such that answer without a medium.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use plumb_testkit::charging::{Cells, delayed_blocks};
use plumb_testkit::loop_device::{LoopDevice, run};
use plumb_testkit::{Rng, require, temp_dir};
use serde_json::Value;

/// A probe that has ended.
struct Probed {
    status: i32,
    result: Value,
    document: Value,
}

fn plumb(target: &Path, flags: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command.arg("probe").arg(target).args(flags.split_whitespace()).output().expect("plumb runs")
}

fn probe(target: &Path, flags: &str) -> Probed {
    let done = plumb(target, &format!("--json {flags}"));
    let document: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|error| {
        panic!("{}: {error}: {}", target.display(), String::from_utf8_lossy(&done.stderr))
    });
    let result = document["result"].clone();
    Probed { status: done.status.code().expect("an end"), result, document }
}

impl Probed {
    fn verdict(&self) -> &str {
        self.result["verdict"].as_str().expect("a verdict")
    }

    fn grid(&self) -> Option<(u64, u64)> {
        let grid = &self.result["grid"];
        grid["granularity_bytes"].as_u64().zip(grid["offset_bytes"].as_u64())
    }

    fn seconds(&self) -> f64 {
        self.result["seconds"].as_f64().expect("a time")
    }

    fn covers(&self, ratio: f64) -> bool {
        let end = |name: &str| self.result["penalty"][name].as_f64();
        end("low").zip(end("high")).is_some_and(|(low, high)| low <= ratio && ratio <= high)
    }
}

/// A file of noise, or of anything else than zeros at least.
fn noise(path: &Path, mib: u64) {
    let mut file = fs::File::create(path).expect("a file");
    let mut random = Rng::new(mib);
    let mut block = vec![0; 1 << 20];
    for _ in 0..mib {
        block.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&random.next_u64().to_le_bytes()));
        file.write_all(&block).expect("room");
    }
    file.sync_all().expect("written");
}

/// What runs on cells of a known ratio came to.
#[derive(Debug, Default)]
struct Rates {
    runs: u32,
    wrong: u32,
    inconclusive: u32,
    covered: u32,
    seconds: Vec<f64>,
}

impl Rates {
    fn count(&mut self, (cell, phase): (u64, u64), ratio: f64, probed: &Probed) {
        let offset = (cell - phase) % cell;
        self.runs += 1;
        self.seconds.push(probed.seconds());
        match probed.verdict() {
            "inconclusive" => self.inconclusive += 1,
            verdict => {
                let expected = if offset == 0 { ("aligned", 0) } else { ("misaligned", 1) };
                if probed.grid() != Some((cell, offset)) || (verdict, probed.status) != expected {
                    eprintln!("{ratio} {cell}/{phase}: {}", probed.result);
                    self.wrong += 1;
                }
                self.covered += u32::from(probed.covers(ratio));
            }
        }
    }

    fn median_seconds(&mut self) -> f64 {
        self.seconds.sort_by(f64::total_cmp);
        self.seconds[self.seconds.len() / 2]
    }
}

/// Phases and lengths of cells, as often as runs are wanted.
fn cells(runs: usize) -> impl Iterator<Item = (u64, u64)> {
    let all = [(4096, 3584), (8192, 1024), (4096, 0), (8192, 3584), (4096, 1024), (8192, 0)];
    all.into_iter().cycle().take(runs)
}

fn rates(ratio: f64, runs: usize, flags: &str) -> Rates {
    let mut rates = Rates::default();
    for (cell, phase) in cells(runs) {
        let device = Cells::of_ratio(cell, phase, ratio).up();
        rates.count((cell, phase), ratio, &probe(device.path(), flags));
    }
    rates
}

#[test]
fn cells_behind_a_throttle() {
    require!(Tool("qemu-storage-daemon"), Tool("fusermount3"));
    // Times are for a machine that runs other tests beside: `make bench` shows them alone.
    for (ratio, seconds_max) in [(2.0, 15.0), (1.5, 20.0), (1.25, 30.0), (1.1, 60.0)] {
        let mut rates = rates(ratio, 5, "--limit 60s");
        let seconds = rates.median_seconds();
        eprintln!("ratio {ratio}: {rates:?}");
        assert_eq!(rates.wrong, 0, "{ratio}");
        assert!(rates.inconclusive <= 1, "{ratio}: {} of {}", rates.inconclusive, rates.runs);
        assert!(rates.covered + rates.inconclusive + 1 >= rates.runs, "{ratio}: {} covered", rates.covered);
        assert!(seconds < seconds_max, "{ratio}: {seconds} s");
    }
}

/// Cells that cost nothing to miss show no grid, and of zeros nobody says that there is no penalty.
#[test]
fn cells_without_a_penalty() {
    require!(Tool("qemu-storage-daemon"), Tool("fusermount3"));
    let folder = temp_dir("image");
    let image = folder.path().join("image");
    noise(&image, 256);
    let device = Cells { image: Some(&image), ..Cells::of_ratio(4096, 1024, 1.0) }.up();
    let probed = probe(device.path(), "--margin 15 --limit 60s");
    assert_eq!(probed.grid(), None, "{}", probed.result);
    // A machine that is busy with other tests may not get to the end of it; it never says anything else.
    let is_one = [("no-penalty", 0), ("inconclusive", 3)].contains(&(probed.verdict(), probed.status));
    assert!(is_one, "{}", probed.result);
    let device = Cells::of_ratio(4096, 1024, 1.0).up();
    let probed = probe(device.path(), "");
    assert_eq!(
        (probed.verdict(), probed.status, probed.grid()),
        ("inconclusive", 3, None),
        "{}",
        probed.result
    );
    let reason = probed.result["reason"].as_str().expect("why");
    assert!(reason.contains("zeros"), "{reason}");
}

/// Partitions of a disk whose loop device declares nothing: the grid of each follows from its first sector.
#[test]
fn partitions_of_a_disk_that_declares_nothing() {
    require!(Root, Loop, Tool("qemu-storage-daemon"), Tool("fusermount3"), Tool("sgdisk"), Tool("partx"));
    let folder = temp_dir("label");
    let image = folder.path().join("image");
    noise(&image, 300);
    run(Command::new("sgdisk").args(["--clear", "--set-alignment=1"]).arg(&image).args([
        "--new=1:34:200062",
        "--new=2:200063:400000",
        "--new=3:401408:600000",
    ]));
    // Slow enough for the way through two more servers on a busy machine.
    let cells = Cells { image: Some(&image), units_per_second: 500, ..Cells::of_ratio(4096, 0, 2.0) };
    let device = cells.up();
    let disk = LoopDevice::attach(device.path(), &["--direct-io=on", "--sector-size", "512", "--read-only"]);
    assert_eq!(disk.add_partitions(), 3);
    // (4096 − 512 · first sector mod 4096) mod 4096.
    for (number, offset) in [(1, 3072), (2, 512), (3, 0)] {
        let node = partition(&disk, number, folder.path());
        let probed = probe(&node, "--limit 60s");
        assert_eq!(probed.grid(), Some((4096, offset)), "{number}: {}", probed.result);
        assert_eq!(probed.status, i32::from(offset != 0));
        assert!(probed.covers(2.0), "{}", probed.result["penalty"]);
        if offset != 0 {
            assert_eq!(probed.document["findings"][0]["id"], "misaligned-target");
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
    require!(Tool("nbdkit"), Tool("nbdfuse"), Tool("fusermount3"));
    let device = delayed_blocks(512, "1ms");
    for flags in ["--depth 1", "--depth 16"] {
        let probed = probe(device.path(), flags);
        assert_eq!((probed.verdict(), probed.status), ("aligned", 0), "{flags}: {}", probed.result);
        assert_eq!(probed.grid(), Some((4096, 0)), "{flags}");
    }
}

/// A file in memory behind a loop device: whatever the noise, no grid.
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

/// What was never written answers without a medium, and is never called aligned.
#[test]
fn a_thin_volume_never_written() {
    require!(Root, Loop, Tool("dmsetup"));
    let folder = temp_dir("thin");
    let Some(thin) = Thin::new(folder.path()) else {
        let why = "no thin volumes in this kernel";
        return plumb_testkit::require::record_skip(plumb_testkit::test_name!(), why);
    };
    let probed = probe(&thin.node, "--limit 8s");
    assert_eq!(
        (probed.verdict(), probed.status, probed.grid()),
        ("inconclusive", 3, None),
        "{}",
        probed.result
    );
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
            fs::File::create(&path).and_then(|file| file.set_len(bytes)).expect("room");
            LoopDevice::attach(&path, &[])
        };
        let disks = [file("metadata", 16 << 20), file("data", 256 << 20)];
        let own = std::process::id();
        let names = [format!("plumb-pool-{own}"), format!("plumb-thin-{own}")];
        let [metadata, data] = [&disks[0], &disks[1]].map(|disk| disk.path().display().to_string());
        let pool = format!("0 {} thin-pool {metadata} {data} 128 0", (256 << 20) / 512);
        let make = |name: &str, table: &str| {
            let done =
                Command::new("dmsetup").args(["create", name, "--verifyudev", "--table", table]).output();
            done.is_ok_and(|done| done.status.success())
        };
        let mut thin = Thin { node: PathBuf::new(), names, _disks: disks };
        if !make(&thin.names[0], &pool) {
            return None;
        }
        let pool = format!("/dev/mapper/{}", thin.names[0]);
        run(Command::new("dmsetup").args(["message", &pool, "0", "create_thin 0"]));
        assert!(make(&thin.names[1], &format!("0 {} thin {pool} 0", (1u64 << 30) / 512)));
        thin.node = PathBuf::from(format!("/dev/mapper/{}", thin.names[1]));
        Some(thin)
    }
}

impl Drop for Thin {
    fn drop(&mut self) {
        for name in self.names.iter().rev() {
            let _ = Command::new("dmsetup").args(["remove", "--retry", name]).output();
        }
    }
}

/// A file without a written byte, and one that is too small.
#[test]
fn files_without_media() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let sparse = folder.path().join("sparse");
    fs::File::create(&sparse).and_then(|file| file.set_len(1 << 30)).expect("room");
    let probed = probe(&sparse, "--limit 5s");
    assert_eq!((probed.verdict(), probed.status), ("inconclusive", 3), "{}", probed.result);
    let reason = probed.result["reason"].as_str().expect("why");
    assert!(reason.starts_with("not backed by media"), "{reason}");
    let small = folder.path().join("small");
    fs::write(&small, [1; 4096]).expect("room");
    let said = plumb(&small, "");
    assert_eq!(said.status.code(), Some(2));
    let words = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(words.contains("found 4 KiB, expected 1 MiB or more"), "{words}");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let folder = temp_dir("refused");
    for (target, flags, words) in [
        (folder.path().join("none"), "", "none"),
        (folder.path().to_owned(), "", "expected"),
        (folder.path().join("none"), "--margin 0", "expected percent"),
        (folder.path().join("none"), "--depth 0", "1..=256"),
    ] {
        let said = plumb(&target, flags);
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert_eq!(said.status.code(), Some(2), "{text}");
        assert!(text.contains(words) && said.stdout.is_empty(), "{text}");
    }
}

/// Hundreds of runs: `make soak` shows the rates. `PLUMB_PROBE_RUNS` is how many for each ratio.
#[test]
#[ignore = "an hour or more: make soak"]
fn rates_over_many_runs() {
    let runs = std::env::var("PLUMB_PROBE_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(100);
    let (mut all, mut decided) = (0, 0);
    for ratio in [2.0, 1.5, 1.25, 1.1] {
        let mut rates = rates(ratio, runs, "");
        let seconds = rates.median_seconds();
        let Rates { runs, wrong, inconclusive, covered, .. } = rates;
        println!(
            "ratio {ratio}: {runs} runs, {wrong} wrong, {inconclusive} inconclusive, {covered} intervals hold it, {seconds:.1} s"
        );
        assert_eq!(wrong, 0);
        assert!(inconclusive * 50 <= runs);
        all += covered;
        decided += runs - inconclusive;
    }
    assert!(all * 100 >= decided * 97, "{all} of {decided}");
    let folder = temp_dir("image");
    let image = folder.path().join("image");
    noise(&image, 256);
    let mut alarms = 0;
    for (cell, phase) in cells(4 * runs) {
        let device = Cells { image: Some(&image), ..Cells::of_ratio(cell, phase, 1.0) }.up();
        alarms += u32::from(probe(device.path(), "--limit 20s").grid().is_some());
    }
    println!("ratio 1.0: {} runs, {alarms} false alarms", 4 * runs);
    assert!(alarms <= 1);
}
