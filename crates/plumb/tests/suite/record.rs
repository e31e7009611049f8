//! `plumb record`: every known I/O is in the file, for any fate of the recording.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::recording::{Recording, dd, fio, number, read};
use crate::common::{Folder, passages, plumb, recorded};
use plumb_testkit::loop_device::{LoopDevice, Mounted, run};
use plumb_testkit::wait::RunLimited;
use plumb_testkit::{require, wait};
use plumb_trace::Op;
use serde_json::Value;

const SIZE: u64 = 64 << 20;
/// Behind an EFI label.
const FIRST_SECTOR: u64 = 34;

fn disk(folder: &Folder) -> LoopDevice {
    let image = folder.path("disk");
    File::create(&image)
        .and_then(|file| file.set_len(SIZE))
        .expect("room for a sparse file");
    LoopDevice::attach_hidden(&image, &[])
}

/// The node of the partition of a disk: no udev runs everywhere.
fn partition(disk: &LoopDevice, folder: &Folder) -> PathBuf {
    let sysfs = format!("/sys/class/block/{}p1/dev", disk.name());
    let number = std::fs::read_to_string(sysfs).expect("its number");
    let (major, minor) = number.trim().split_once(':').expect("two numbers");
    let node = folder.path("partition");
    run(Command::new("mknod").arg(&node).args(["b", major, minor]));
    node
}

/// 1,009 reads and writes of six processes, through the disk and through a partition of it.
#[test]
fn every_io_is_in_the_file() {
    require!(
        Bpf,
        Loop,
        Tool("dd"),
        Tool("sgdisk"),
        Tool("partx"),
        Tool("mknod")
    );
    let folder = Folder::new("record-every");
    let disk = disk(&folder);
    run(Command::new("sgdisk")
        .args(["-a", "1", "-n", &format!("1:{FIRST_SECTOR}:100000")])
        .arg(disk.path()));
    assert_eq!(disk.add_partitions(), 1);
    let part = partition(&disk, &folder);
    let file = folder.path("every.parquet");
    let recording = Recording::begin(
        &file,
        &["--output", &file.display().to_string(), &disk.name()],
    );
    let (whole, first) = (disk.path().to_owned(), FIRST_SECTOR * 512);
    let plan = [
        (&whole, 0, Op::Read, 4096, 400, 1 << 20),
        (&part, first, Op::Read, 8192, 300, 0),
        (&part, first, Op::Write, 512, 101, 7 * 512),
        (&whole, 0, Op::Write, 65_536, 99, 50 << 20),
        (&part, first, Op::Read, 1024, 102, 1 << 20),
        (&whole, 0, Op::Read, 16_384, 7, 51 << 20),
    ];
    let (mut expected, mut in_partition) = (Vec::new(), 0);
    for (node, begins, op, block, count, at) in plan {
        let pid = dd(node, op, block, count, at) as i32;
        expected.extend((0..count).map(|io| (op, begins + at + io * block, block, Some(pid))));
        in_partition += if begins > 0 { count } else { 0 };
    }
    assert_eq!(expected.len(), 1009);
    let result = recording.end(0);
    let found = read(&file);
    let dd_only = found.events_of("dd");
    let got: Vec<_> = dd_only
        .iter()
        .map(|event| (event.op, event.start_bytes, event.len_bytes, event.pid))
        .collect();
    assert_eq!(got, expected);
    assert!(dd_only.iter().all(|event| event.queue_ns.is_some()));
    // The kernel skips a program for a completion that interrupts it. Each of these is reported, and they are few.
    let untimed = found
        .events
        .iter()
        .filter(|event| event.device_ns.is_none());
    let untimed = untimed.count() as u64;
    assert_eq!(number(&result["devices"][0]["unmatched_issues"]), untimed);
    assert!(
        untimed <= 1009 / 100,
        "{untimed} of 1,009 without a completion"
    );
    assert_eq!(number(&result["ios"]), found.events.len() as u64);
    assert_eq!(
        (&result["ended"], number(&result["lost"])),
        (&Value::from("by a signal"), 0)
    );
    let device = &found.names.devices()[dd_only[0].device as usize];
    assert_eq!(
        (&device.name, device.size_bytes),
        (&disk.name(), Some(SIZE))
    );
    assert_eq!(device.partitions, [(format!("{}p1", disk.name()), first)]);
    assert!(found.info.unix_ns_at_zero.is_some());
    let answer = plumb([
        "analyze",
        &file.display().to_string(),
        "--json",
        "--fail-on",
        "none",
    ])
    .json();
    let places = answer["result"]["profiles"][0]["places"]
        .as_array()
        .expect("places")
        .clone();
    assert!(places.len() == 2 && in_partition < 1009, "{places:?}");
}

#[test]
fn the_count_is_that_of_fio() {
    require!(Bpf, Loop, Tool("fio"));
    let folder = Folder::new("record-fio");
    let disk = disk(&folder);
    let file = folder.path("fio.parquet");
    let name = file.display().to_string();
    let (seen, saved) = (folder.path("watched"), folder.path("watched.profile"));
    let watch = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["watch", &disk.name(), "--json", "--interval", "1s"])
        .arg("--save")
        .arg(&saved)
        .stdout(File::create(&seen).expect("a file"))
        .spawn();
    let mut watch = watch.expect("plumb runs");
    let recording = Recording::begin(&file, &["-o", &name, &disk.name()]);
    // The programs count when the first interval is printed.
    wait::until("the watch counts", wait::PATIENCE, || {
        std::fs::metadata(&seen).is_ok_and(|seen| seen.len() > 0)
    });
    let sent = fio(disk.path(), "randrw", 40_009);
    run(Command::new("kill").args(["-INT", &watch.id().to_string()]));
    wait::exit("plumb watch", wait::PATIENCE, &mut watch);
    let result = recording.end(0);
    let read = read(&file);
    assert_eq!(
        (number(&result["ios"]), read.events_of("fio").len() as u64),
        (read.events.len() as u64, sent)
    );
    assert_eq!(
        (number(&result["lost"]), number(&result["out_of_order"])),
        (0, 0)
    );
    assert!(read.events.is_sorted_by_key(|event| event.time_ns));
    // A simultaneous watch has the same numbers.
    let watched = plumb([
        "analyze".as_ref(),
        saved.as_os_str(),
        "--json".as_ref(),
        "--fail-on".as_ref(),
        "none".as_ref(),
    ])
    .json();
    let analyzed = plumb(["analyze", &name, "--json", "--fail-on", "none"]).json();
    let numbers = |document: &Value| {
        let profile = &document["result"]["profiles"][0];
        let ops: Vec<_> = profile["ops"]
            .as_array()
            .expect("operations")
            .iter()
            .collect();
        let ops: BTreeMap<String, (u64, u64)> = ops
            .into_iter()
            .map(|op| {
                (
                    op["op"].to_string(),
                    (number(&op["ios"]), number(&op["bytes"])),
                )
            })
            .filter(|(_, (ios, _))| *ios > 0)
            .collect();
        (ops, profile["places"][0]["grids"][0]["all"].clone())
    };
    assert_eq!(numbers(&watched), numbers(&analyzed));
}

/// I/O completed some seconds before the kill are in the file, in order and without a gap.
#[test]
fn a_killed_recording_can_be_read() {
    require!(Bpf, Loop, Tool("dd"));
    let mut rng = plumb_testkit::Rng::new(u64::from(std::process::id()));
    for round in 0..3 {
        let folder = Folder::new(&format!("record-killed-{round}"));
        let disk = disk(&folder);
        let file = folder.path("killed.parquet");
        let recording = Recording::begin(&file, &["-o", &file.display().to_string(), &disk.name()]);
        let kill_at = Instant::now() + Duration::from_millis(4000 + rng.below(3000));
        let (mut sent, mut settled) = (Vec::new(), 0);
        while Instant::now() < kill_at {
            let at = sent.len() as u64 % 8000 * 8192;
            dd(disk.path(), Op::Read, 4096, 40, at);
            sent.extend((0..40).map(|io| at + io * 4096));
            // Two seconds until rows are written, and some for a busy machine.
            if kill_at.saturating_duration_since(Instant::now()) > Duration::from_millis(3500) {
                settled = sent.len();
            }
        }
        recording.kill("-KILL");
        assert!(recording.output().status.code().is_none(), "it was killed");
        let read = read(&file);
        let starts: Vec<u64> = read
            .events_of("dd")
            .iter()
            .map(|event| event.start_bytes)
            .collect();
        assert!(
            starts.len() >= settled && settled > 0,
            "{} of {settled}",
            starts.len()
        );
        assert_eq!(starts, sent[..starts.len()]);
        let _ = plumb(["analyze", &file.display().to_string(), "--fail-on", "none"]).says("I/O");
    }
}

#[test]
fn files_follow_each_other_and_the_oldest_go() {
    require!(Bpf, Loop, Tool("fio"));
    let folder = Folder::new("record-files");
    let disk = disk(&folder);
    let file = folder.path("part.parquet");
    let (name, first) = (file.display().to_string(), folder.path("part-0001.parquet"));
    let recording = Recording::begin(
        &first,
        &[
            "-o",
            &name,
            "--max-size",
            "1m",
            "--files",
            "2",
            &disk.name(),
        ],
    );
    let sent = fio(disk.path(), "randread", 500_009);
    let result = recording.end(0);
    let files = result["files"].as_array().expect("files");
    assert!(files.len() >= 3, "{files:?}");
    let issued = number(&result["devices"][0]["sent"]);
    assert_eq!(
        files.iter().map(|file| number(&file["ios"])).sum::<u64>(),
        issued
    );
    assert!(issued >= sent, "{issued} of {sent}");
    let mut last_ns = i64::MIN;
    for (at, told) in files.iter().enumerate() {
        let path = folder.path(&format!("part-{:04}.parquet", at + 1));
        assert_eq!(told["path"], path.display().to_string());
        let is_deleted = at + 2 < files.len();
        assert_eq!(
            (told["deleted"].as_bool(), path.exists()),
            (Some(is_deleted), !is_deleted)
        );
        if is_deleted {
            continue;
        }
        let len = std::fs::metadata(&path).expect("it is there").len();
        assert!(len == number(&told["bytes"]) && len <= 1 << 20, "{len}");
        let events = read(&path).events;
        assert_eq!(events.len() as u64, number(&told["ios"]));
        assert!(events[0].time_ns >= last_ns);
        last_ns = events[events.len() - 1].time_ns;
    }
    // None of the names is taken over.
    let refused = plumb(["record", "-o", &name, "--max-size", "1m", "--files", "2"]);
    let said = refused.ends(2).complaint();
    let (_, expected) = said.split_once(".parquet: ").expect("a file");
    insta::assert_snapshot!(expected);
}

#[test]
fn a_recording_ends_where_its_file_is_full() {
    require!(Bpf, Loop, Tool("fio"));
    let folder = Folder::new("record-full");
    let disk = disk(&folder);
    let file = folder.path("full.parquet");
    let recording = Recording::begin(
        &file,
        &[
            "-o",
            &file.display().to_string(),
            "--max-size",
            "1m",
            &disk.name(),
        ],
    );
    let sent = fio(disk.path(), "randread", 300_007);
    let result = recording.ends_by_itself();
    assert_eq!(result["ended"], "as the file is full");
    let in_file = read(&file).events.len() as u64;
    assert!(
        number(&result["ios"]) == in_file && in_file > 10_000 && in_file < sent,
        "{in_file} of {sent}"
    );
    assert!(std::fs::metadata(&file).expect("it is there").len() <= 1 << 20);
    let issued = number(&result["devices"][0]["sent"]);
    assert_eq!(
        in_file + number(&result["after_the_end"]) + number(&result["lost"]),
        issued
    );
}

/// Writes to a file without a name are lost: the recording ends soon, and not with success.
#[test]
fn a_recording_whose_file_is_deleted_fails() {
    require!(Bpf, Loop, Tool("fio"));
    let folder = Folder::new("record-deleted");
    let disk = disk(&folder);
    let mut messages = Vec::new();
    for replacement in [None, Some("another file")] {
        let file = folder.path("deleted.parquet");
        let recording = Recording::begin(&file, &["-o", &file.display().to_string(), &disk.name()]);
        fio(disk.path(), "randread", 101);
        std::fs::remove_file(&file).expect("it is there");
        if let Some(text) = replacement {
            std::fs::write(&file, text).expect("room for a file");
        }
        let output = recording.output();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(5), "{said}");
        messages.push(passages(&said, &["expected the"]));
        let _ = std::fs::remove_file(&file);
    }
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// A small file system keeps three quarters of its free space; a smaller one takes no recording.
#[test]
fn a_recording_takes_at_most_a_quarter_of_the_free_space() {
    require!(Bpf, Loop, Tool("fio"));
    let folder = Folder::new("record-quarter");
    let disk = disk(&folder);
    let place = folder.path("small");
    std::fs::create_dir(&place).expect("a directory");
    let _mounted = Mounted::tmpfs(8 << 20, &place);
    let file = place.join("trace.parquet");
    let recording = Recording::begin(&file, &["-o", &file.display().to_string(), &disk.name()]);
    fio(disk.path(), "randread", 600_011);
    let result = recording.ends_by_itself();
    assert_eq!(
        result["ended"],
        "as the file has taken a quarter of the free space"
    );
    let bytes = std::fs::metadata(&file).expect("it is there").len();
    assert!((1 << 20..=2 << 20).contains(&bytes), "{bytes} of 8 MiB");
    assert_eq!(read(&file).events.len() as u64, number(&result["ios"]));

    let place = folder.path("smaller");
    std::fs::create_dir(&place).expect("a directory");
    let _mounted = Mounted::tmpfs(1 << 20, &place);
    let file = place.join("trace.parquet");
    insta::assert_snapshot!(
        plumb(["record", "-o", &file.display().to_string(), &disk.name()])
            .ends(5)
            .complaint()
    );
}

#[test]
fn a_full_disk_keeps_the_written_events() {
    require!(Bpf, Loop, Tool("fio"));
    let folder = Folder::new("record-no-room");
    let disk = disk(&folder);
    let place = folder.path("small");
    std::fs::create_dir(&place).expect("a directory");
    let _mounted = Mounted::tmpfs(1 << 20, &place);
    let file = place.join("trace.parquet");
    let name = file.display().to_string();
    let recording = Recording::begin(&file, &["-o", &name, "--max-size", "1g", &disk.name()]);
    let first = fio(disk.path(), "randread", 20_011);
    sleep(Duration::from_secs(4));
    fio(disk.path(), "randread", 600_011);
    let output = recording.output();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(5), "{said}");
    let read = read(&file);
    assert!(
        read.events.len() as u64 >= first,
        "{} of {first}",
        read.events.len()
    );
    // Cut behind the last footer: any reader takes it.
    assert_eq!(read.info.counts.skipped_bytes, 0);
    let ios = plumb_geometry::group_digits(read.events.len() as u64);
    let ended = recorded(&said);
    assert!(ended.contains(&ios), "{said}");
    insta::assert_snapshot!(ended.replace(&ios, "COUNT"));
}

/// A buffer of a page loses nearly everything, and reports it: in the output, in the file and by the exit status.
#[test]
fn lost_events_are_reported() {
    require!(Bpf, Loop, Tool("fio"));
    let folder = Folder::new("record-lost");
    let disk = disk(&folder);
    let file = folder.path("lost.parquet");
    let name = file.display().to_string();
    let recording = Recording::begin(&file, &["-o", &name, "--buffer", "4k", &disk.name()]);
    let sent = fio(disk.path(), "randread", 50_021);
    let result = recording.end(3);
    let lost = number(&result["lost"]);
    let issued = number(&result["devices"][0]["sent"]);
    assert_eq!(number(&result["ios"]) + lost, issued);
    assert!(
        issued >= sent && lost > 1000,
        "{issued} of {sent}, {lost} lost"
    );
    assert_eq!(read(&file).info.counts.lost, lost);
    let said = format!("{} events were lost", plumb_geometry::group_digits(lost));
    plumb(["analyze", &name, "--fail-on", "none"])
        .ends(3)
        .says(&said);
}

fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("its memory");
    line.trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number")
}

/// The ring buffer seen twice (32 MiB), waiting and ordered records (each 20 MiB, vectors that grow by doubling),
/// batches between the threads (24 MiB), a row group, the kernel's types during their reading. To keep all two million
/// I/O would take 160 MiB more.
const MEMORY_KIB: u64 = 288 << 10;

/// A machine that is too busy may lose some, and keeps no more of them for that.
#[test]
fn memory_is_bounded() {
    require!(Bpf, Loop, Tool("fio"));
    let folder = Folder::new("record-memory");
    let disk = disk(&folder);
    let file = folder.path("long.parquet");
    let recording = Recording::begin(&file, &["-o", &file.display().to_string(), &disk.name()]);
    let mut sent = fio(disk.path(), "randread", 700_001);
    let early = resident_kib(recording.pid());
    sent += fio(disk.path(), "randread", 1_400_003);
    let late = resident_kib(recording.pid());
    recording.kill("-INT");
    let output = recording.output();
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let lost = number(&document["result"]["lost"]);
    assert_eq!(output.status.code(), Some(if lost > 0 { 3 } else { 0 }));
    let (in_file, issued) = (
        read(&file).events.len() as u64,
        number(&document["result"]["devices"][0]["sent"]),
    );
    assert!(
        in_file + lost == issued && issued >= sent,
        "{in_file} and {lost} lost of {issued}, fio sent {sent}"
    );
    eprintln!("{early} KiB, then {late} KiB");
    assert!(late < MEMORY_KIB, "{early} KiB, then {late} KiB");
}

#[test]
fn operations_and_processes() {
    require!(Bpf, Loop, Tool("dd"));
    let folder = Folder::new("record-some");
    let disk = disk(&folder);
    let begin = |name: &str, flags: &[&str]| {
        let file = folder.path(name);
        let (path, disk) = (file.display().to_string(), disk.name());
        Recording::begin(&file, &[flags, &["-o", &path, &disk]].concat())
    };
    let writes = begin("writes.parquet", &["--op", "W,discard"]);
    let nobody = begin("nobody.parquet", &["--pid", "1"]);
    dd(disk.path(), Op::Read, 4096, 13, 0);
    dd(disk.path(), Op::Write, 4096, 5, 0);
    assert_eq!(number(&writes.end(0)["ios"]), 5);
    assert_eq!(number(&nobody.end(0)["ios"]), 0);
}

#[test]
fn without_rights_the_command_is_printed() {
    require!(Root, Tool("setpriv"));
    let folder = Folder::new("record-nobody");
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(""), all).expect("a folder that everybody may write to");
    let file = folder.path("not-permitted.parquet");
    let done = Command::new("setpriv")
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--bounding-set=-all",
            "--inh-caps=-all",
        ])
        .arg(env!("CARGO_BIN_EXE_plumb"))
        .args(["record", "-o"])
        .arg(&file)
        .limited_output();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(4), "{said}");
    insta::assert_snapshot!(recorded(&said));
    assert!(!file.exists());
    drop(folder);
}

#[test]
fn invalid_recordings_are_refused() {
    let folder = Folder::new("record-usage");
    let taken = folder.path("taken.parquet");
    std::fs::write(&taken, "mine").expect("room");
    let taken = taken.display().to_string();
    let mut messages = vec![plumb(["record", "-o", &taken]).ends(2).complaint()];
    assert_eq!(std::fs::read(&taken).expect("it stays"), b"mine");
    let free = folder.path("free.parquet").display().to_string();
    plumb(["record"]).ends(2);
    messages.push(plumb(["record", "-o", "-"]).ends(2).complaint());
    messages.push(
        plumb(["record", "-o", "/no/such/folder/x.parquet"])
            .ends(5)
            .complaint(),
    );
    messages.push(
        plumb(["record", "-o", &free, "no-such-disk"])
            .ends(5)
            .complaint(),
    );
    messages.push(
        plumb(["record", "-o", &free, "--max-size", "4k"])
            .ends(2)
            .complaint(),
    );
    messages.push(
        plumb(["record", "-o", &free, "--files", "3"])
            .ends(2)
            .complaint(),
    );
    messages.push(
        plumb(["record", "-o", &free, "--buffer", "5000"])
            .ends(2)
            .complaint(),
    );
    messages.push(
        plumb(["record", "-o", &free, "--duration", "0"])
            .ends(2)
            .complaint(),
    );
    let many: Vec<String> = (1..=17).map(|pid| pid.to_string()).collect();
    messages.push(
        plumb(["record", "-o", &free, "--pid", &many.join(",")])
            .ends(2)
            .complaint(),
    );
    insta::assert_snapshot!(messages.join("\n\n"));
    assert!(!Path::new(&free).exists());
}
