//! `plumb probe --write` on devices that charge for misaligned writes and not for reads: its result, and the unchanged
//! content of the target, for any fate of the probe.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::probed::{ProbeDocument, probe, probe_text};
use crate::common::schema::Schema;
use crate::common::{Folder, Ran, recorded};
use plumb_testkit::cell_disk::{CellDisk, Served};
use plumb_testkit::charging::delayed_writes;
use plumb_testkit::loop_device::{LoopDevice, Mounted, run};
use plumb_testkit::opener::Opener;
use plumb_testkit::{Machine, Rng, require};

/// With the name typed.
fn probe_writes(target: &Path, flags: &str) -> ProbeDocument {
    probe(
        target,
        &format!("--write --yes {} {flags}", target.display()),
    )
}

/// Some MiB without a zero.
fn noise(mib: usize) -> Vec<u8> {
    let mut random = Rng::new(mib as u64);
    (0..mib << 17)
        .flat_map(|_| (random.next_u64() | 1).to_le_bytes())
        .collect()
}

/// Reads show no grid there, and do not call it aligned; writes show the grid and the cost, and change nothing.
#[test]
fn writes_are_charged_and_reads_are_not() {
    require!(Patience, Tool("nbdfuse"), Tool("fusermount3"));
    let disk = CellDisk::with_offset(1024, 1.0).up();
    let read = probe(disk.path(), "--margin 15 --limit 5s");
    assert_eq!(
        (read.grid(), &read.result["op"]),
        (None, &"read".into()),
        "{}",
        read.result
    );
    assert!(
        ["no-penalty", "inconclusive"].contains(&read.verdict()),
        "{}",
        read.result
    );
    assert_eq!(disk.writes(), 0);
    let machine = Machine::watched();
    let probed = probe_writes(disk.path(), "--limit 60s");
    assert_eq!(disk.changes(), 0, "of {} writes", disk.writes());
    crate::undecided_on_a_busy_machine!(machine, probed);
    let ProbeDocument {
        document, result, ..
    } = &probed;
    assert!(probed.is_right(4096, 1024), "{result}");
    assert_eq!(
        (&result["op"], &result["durability"]),
        (&"write".into(), &"medium".into())
    );
    assert!(probed.is_near(2.0), "{}", result["penalty"]);
    assert_eq!(document["findings"][0]["rule"], "misaligned-target");
    let facts = &document["findings"][0]["facts"];
    assert_eq!(
        (&facts["op"], &facts["offset_bytes"]),
        (&"write".into(), &1024.into())
    );
    let said = result["writes"].as_u64().expect("a count");
    assert!(
        said > 500 && disk.writes() >= said,
        "{said} said, {} seen",
        disk.writes()
    );
    assert_eq!(Schema::read("probe").faults(document), Vec::<String>::new());
}

/// Seen through a loop device that begins elsewhere and declares nothing: a device, with a write cache that it states. Its
/// flushes are in the times, so that a miss costs less than two writes.
#[test]
fn a_device_at_an_offset() {
    require!(Root, Loop, Tool("nbdfuse"), Tool("fusermount3"));
    let disk = CellDisk::with_offset(0, 1.0).up();
    let shifted = LoopDevice::attach(
        disk.path(),
        &["--direct-io=on", "--sector-size", "512", "--offset", "1536"],
    );
    let machine = Machine::watched();
    let ran = probe_text(
        shifted.path(),
        &format!("--write --yes {} --limit 60s", shifted.name()),
    );
    assert_eq!(disk.changes(), 0);
    if let Some(why) = machine.was_busy().filter(|_| ran.code == 3) {
        plumb_testkit::undecided!(why);
    }
    ran.ends(1)
        .says("MISFIT: writes: the grid of")
        .says("is 4 KiB at offset 2.50 KiB (5 sectors)");
    ran.says("reads: unknown, a probe of writes says nothing of them")
        .says("O_DSYNC");
}

/// The same by a server of others, which reads and rewrites blocks itself. Its overhead makes a miss cost a little less than
/// two writes.
#[test]
fn blocks_that_are_rewritten() {
    require!(
        Patience,
        Tool("nbdkit"),
        Tool("nbdfuse"),
        Tool("fusermount3")
    );
    let device = delayed_writes(64, "2ms", 1536);
    let content = &noise(64)[1536..];
    fs::File::options()
        .write(true)
        .open(device.path())
        .and_then(|file| file.write_all_at(content, 0))
        .expect("room");
    // It writes whole blocks side by side, and parts of blocks one after the other.
    let machine = Machine::watched();
    let probed = probe_writes(device.path(), "--depth 1 --limit 60s");
    assert!(
        fs::read(device.path()).expect("its bytes") == content,
        "the probe has changed it"
    );
    crate::undecided_on_a_busy_machine!(machine, probed);
    assert!(probed.is_right(4096, 2560), "{}", probed.result);
    let (low, high) = probed.penalty();
    assert!(low < 2.1 && high > 1.5, "{low} to {high}");
}

/// Writes that cost the same wherever they start: no grid.
#[test]
fn writes_without_a_penalty() {
    require!(Tool("nbdfuse"), Tool("fusermount3"));
    let disk = CellDisk::with_offset(1024, 0.0).up();
    let probed = probe_writes(disk.path(), "--margin 15 --limit 20s");
    assert_eq!(probed.grid(), None, "{}", probed.result);
    // A machine that is busy with other tests may not get to the end of it; it never says anything else.
    assert!(
        probed.is_blank() || (probed.verdict(), probed.code) == ("no-penalty", 0),
        "{}",
        probed.result
    );
    assert_eq!(disk.changes(), 0);
}

/// Ended in the middle, by any signal: every write that arrived had the present content.
#[test]
fn a_probe_that_is_killed_changes_nothing() {
    require!(Tool("nbdfuse"), Tool("fusermount3"));
    let disk = CellDisk::with_offset(512, 1.0).up();
    for signal in ["INT", "KILL"] {
        let before = disk.writes();
        let mut running = started(disk.path());
        wait_until(&disk, before + 100);
        run(Command::new("kill").args([&format!("-{signal}"), &running.id().to_string()]));
        plumb_testkit::wait::exit("a probe", plumb_testkit::wait::PATIENCE, &mut running);
        assert_eq!(disk.changes(), 0, "{signal}: of {} writes", disk.writes());
    }
}

fn started(target: &Path) -> Child {
    let mut command = crate::common::command();
    command
        .arg("probe")
        .arg(target)
        .arg("--write")
        .arg("--yes")
        .arg(target);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts")
}

fn wait_until(disk: &Served, writes: u64) {
    let until = Instant::now() + Duration::from_secs(20);
    while disk.writes() < writes {
        assert!(
            Instant::now() < until,
            "{} writes, expected {writes}",
            disk.writes()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Targets in use, read-only or not named are not written to, and the reason is printed.
#[test]
fn write_probes_refuse_protected_targets() {
    require!(Root, Loop, Tool("mkfs.ext4"));
    let folder = Folder::new("refused");
    let before = noise(16);
    let image = folder.file("image", &before);
    let disk = LoopDevice::attach(&image, &[]);
    let (path, shown) = (disk.path(), disk.path().display().to_string());
    let named = format!("--write --yes {shown}");
    // Nobody can be asked, and another name is none.
    let mut messages = vec![probe_text(path, "--write").ends(2).complaint()];
    messages.push(probe_text(path, "--write --yes loop").ends(2).complaint());
    messages.push(
        probe_text(path, &format!("--yes {shown}"))
            .ends(2)
            .complaint(),
    );
    messages.push(
        probe_text(&image, &format!("--write --yes {}", image.display()))
            .ends(5)
            .complaint(),
    );
    let file = fs::File::open(path).expect("the device");
    let mut other = Command::new("sleep")
        .arg("60")
        .stdin(file)
        .spawn()
        .expect("sleep");
    let by = format!("is open in process {} (sleep)", other.id());
    let refused = probe_beside_opener(path, &named, &by);
    plumb_testkit::wait::killed("sleep", &mut other);
    refused.ends(5).complains(&by);
    let above = LoopDevice::attach(path, &[]);
    let refused = probe_text(path, &named);
    messages.push(refused.ends(5).complains(&above.name()).complaint());
    drop(above);
    assert!(
        fs::read(&image).expect("the image") == before,
        "something was written"
    );
    drop(disk);
    let disk = LoopDevice::attach(&image, &["--read-only"]);
    let shown = disk.path().display().to_string();
    messages.push(
        probe_text(disk.path(), &format!("--write --yes {shown}"))
            .ends(5)
            .complaint(),
    );
    drop(disk);
    assert!(
        fs::read(&image).expect("the image") == before,
        "something was written"
    );
    run(Command::new("mkfs.ext4").arg("-q").arg(&image));
    let disk = LoopDevice::attach(&image, &[]);
    let at = folder.path("mounted");
    fs::create_dir(&at).expect("a directory");
    let mounted = Mounted::mount(disk.path(), &at);
    let shown = disk.path().display().to_string();
    messages.push(
        probe_text(disk.path(), &format!("--write --yes {shown}"))
            .ends(5)
            .complaint(),
    );
    insta::assert_snapshot!(messages.join("\n\n"));
    drop(mounted);
}

/// Probes a device that a process has open, until the refusal names this process: the `plumb check` of another test opens all disks for a
/// moment, and is named in its place.
fn probe_beside_opener(target: &Path, flags: &str, words: &str) -> Ran {
    let mut ran = probe_text(target, flags);
    for _ in 0..20 {
        let names_another = ran.err.contains("is open in process") && !ran.err.contains(words);
        if !names_another {
            break;
        }
        std::thread::sleep(Duration::from_millis(300));
        ran = probe_text(target, flags);
    }
    ran
}

/// Partitions have bytes of their disk: a process with one open would find older ones written back.
#[test]
fn devices_that_share_bytes_are_checked() {
    require!(Root, Loop, Tool("addpart"));
    let folder = Folder::new("sharers");
    let before = noise(16);
    let image = folder.file("image", &before);
    let disk = LoopDevice::attach(&image, &[]);
    run(Command::new("addpart")
        .arg(disk.path())
        .args(["1", "2048", "16384"]));
    let part = format!("{}p1", disk.path().display());
    let part = Path::new(&part);
    for (open, target) in [(part, disk.path()), (disk.path(), part)] {
        let name = open.file_name().expect("a node").to_string_lossy();
        let other = Opener::start(open);
        let by = format!("{} ({})", other.pid(), other.command());
        let shown = target.display();
        let words = format!("{shown}: {name} is open in process {by}");
        probe_beside_opener(target, &format!("--write --yes {shown}"), &words)
            .ends(5)
            .complains(&words);
    }
    let above = LoopDevice::attach(part, &[]);
    let words = format!(
        "{}p1 is the file of {}: detach that first",
        disk.name(),
        above.name()
    );
    probe_text(disk.path(), &format!("--write --yes {}", disk.name()))
        .ends(5)
        .complains(&words);
    drop(above);
    assert!(
        fs::read(&image).expect("the image") == before,
        "something was written"
    );
}

/// Zeros may be unwritten: a thin volume would have to allocate them.
#[test]
fn zeros_are_not_written_back() {
    require!(Root, Loop);
    let folder = Folder::new("zeros");
    let image = folder.file("image", []);
    fs::File::options()
        .write(true)
        .open(&image)
        .and_then(|file| file.set_len(64 << 20))
        .expect("room");
    let disk = LoopDevice::attach(&image, &[]);
    let probed = probe_writes(disk.path(), "");
    let ProbeDocument {
        document, result, ..
    } = &probed;
    assert!(probed.is_blank() && result["writes"] == 0, "{result}");
    assert_eq!(Schema::read("probe").faults(document), Vec::<String>::new());
    let reason = probed.reason();
    assert!(probed.is_without_media(), "{reason}");
    insta::assert_snapshot!(recorded(reason));
    assert!(
        result["commands"].to_string().contains("--write --range"),
        "{}",
        result["commands"]
    );
    assert_eq!(
        fs::metadata(&image).expect("the image").blocks(),
        0,
        "it has grown"
    );
}

/// Hundreds of runs: `make soak` shows the rates. `PLUMB_PROBE_RUNS` is how many for each ratio.
#[test]
#[ignore = "an hour or more: make soak"]
fn rates_of_writes_over_many_runs() {
    let runs = std::env::var("PLUMB_PROBE_RUNS")
        .ok()
        .and_then(|runs| runs.parse().ok())
        .unwrap_or(100);
    let (mut held, mut decided) = (0, 0);
    for more in [1.0, 0.5, 0.25, 0.1] {
        let (mut wrong, mut inconclusive, mut covered, mut seconds) = (0, 0, 0, Vec::new());
        for number in 0..runs {
            let (cell, offset) = [(4096, 512), (8192, 7168), (4096, 0), (8192, 512)][number % 4];
            let disk = CellDisk {
                cell_bytes: cell,
                ..CellDisk::with_offset(offset, more)
            }
            .up();
            let probed = probe_writes(disk.path(), "");
            seconds.push(probed.seconds());
            assert_eq!(disk.changes(), 0);
            match probed {
                _ if probed.is_open() => inconclusive += 1,
                _ if probed.is_right(cell, offset) => {
                    covered += u32::from(probed.holds(1.0 + more))
                }
                _ => wrong += 1,
            }
        }
        seconds.sort_by(f64::total_cmp);
        let median = seconds[seconds.len() / 2];
        let ratio = 1.0 + more;
        println!(
            "writes, ratio {ratio}: {runs} runs, {wrong} wrong, {inconclusive} inconclusive, {covered} intervals hold it, {median:.1} s"
        );
        assert_eq!(wrong, 0);
        assert!(inconclusive * 50 <= runs as u32);
        held += covered;
        decided += runs as u32 - inconclusive;
    }
    assert!(held * 100 >= decided * 97, "{held} of {decided}");
    let alarms = (0..runs).filter(|_| {
        let disk = CellDisk::with_offset(512, 0.0).up();
        probe_writes(disk.path(), "--limit 20s").grid().is_some()
    });
    let alarms = alarms.count();
    println!("writes, ratio 1.0: {runs} runs, {alarms} false alarms");
    assert!(alarms <= 1);
}
