//! `plumb bench`: its measurements, its refusals, and its messages about failing targets.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::recording::read;
use crate::common::terminal::Terminal;
use crate::common::{Folder, Ran, command, paragraph, plumb, recorded};
use plumb_testkit::loop_device::LoopDevice;
use plumb_testkit::slow_disk::SlowDisk;
use plumb_testkit::wait::RunLimited;
use plumb_testkit::{require, wait};
use serde_json::Value;

fn file(folder: &Folder, name: &str, bytes: u64) -> PathBuf {
    let path = folder.path(name);
    fs::write(&path, vec![7; bytes as usize]).expect("room for a file");
    path
}

fn bench(target: &Path, flags: &str) -> Ran {
    plumb(
        [
            &["bench", target.to_str().expect("a plain name")],
            &flags.split_whitespace().collect::<Vec<_>>()[..],
        ]
        .concat(),
    )
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("found {value}, expected a whole number"))
}

#[test]
fn intervals_and_summary() {
    let folder = Folder::new("bench-text");
    let target = file(&folder, "disk", 1 << 20);
    let machine = plumb_testkit::Machine::watched();
    let ran = bench(
        &target,
        "--for 1s --interval 250ms --warmup 250ms --rate 1000 --size 4k:3,8k --threads 2",
    );
    ran.ends(0);
    // Standard output is no terminal here: the verdict is printed above the intervals and below the summary.
    let lines: Vec<&str> = ran.out.lines().collect();
    let [verdict, "", lines @ ..] = &lines[..] else {
        panic!("no verdict above an empty line in\n{}", ran.out)
    };
    assert!(
        verdict.starts_with("OK: ") && verdict.contains(" I/O in 1."),
        "{}",
        ran.out
    );
    assert!(
        lines
            .join(" ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .ends_with(verdict),
        "{}",
        ran.out
    );
    assert!(
        lines[0].trim_start().starts_with("interval") && lines[1].contains("1024**2"),
        "{}",
        ran.out
    );
    assert!(lines[2].trim_start().starts_with("w1 "), "{}", ran.out);
    let columns: Vec<&str> = lines[3].split_whitespace().collect();
    assert_eq!(
        (columns[0], columns[4], columns.len()),
        ("2", "100", 13),
        "{}",
        ran.out
    );
    let rate: f64 = columns[1].parse().expect("I/O a second");
    let is_kept = (rate - 1000.0).abs() < 100.0;
    if let Some(why) = machine.was_busy().filter(|_| !is_kept) {
        plumb_testkit::undecided!(why);
    }
    assert!(is_kept, "{rate}");
    // Three of four I/O are 4 KiB, one is 8 KiB.
    let mean: u64 = columns[3].parse().expect("bytes an I/O");
    assert!((4500..5800).contains(&mean), "{mean}");
    // Numbers follow behind a gap, and the engine is that of the machine.
    let heads = ran.out.lines().filter_map(|line| {
        let head = line.trim_start().split("  ").next()?;
        head.contains("reads, ").then_some(head)
    });
    let (_, ended) = ran.out.split_once("; ended ").expect("an end");
    let ended = ended.lines().take(1);
    insta::assert_snapshot!(heads.chain(ended).collect::<Vec<_>>().join("\n"));
}

/// Share of the time in which the only target's threads ran on a processor or waited for one.
fn processor_share(json: &Value) -> Option<f64> {
    json["result"]["runs"][0]["targets"][0]["processor_share"].as_f64()
}

/// Reads from memory never wait, so the thread that calls for them is always busy, also beside other programs.
#[test]
fn a_disk_in_memory_is_limited_by_the_processor() {
    let shm = Path::new("/dev/shm");
    if !shm.is_dir() || !Path::new("/proc/thread-self/schedstat").exists() {
        plumb_testkit::skip!("no file system in memory, or no times of threads");
    }
    let target = shm.join(format!("plumb-bench-memory-{}", std::process::id()));
    fs::write(&target, vec![7; 8 << 20]).expect("room for a file");
    let flags = "--engine blocking --for 1s --interval 500ms --warmup 200ms";
    let machine = plumb_testkit::Machine::watched();
    let ran = bench(&target, flags);
    let json = bench(&target, &format!("{flags} --json"));
    fs::remove_file(&target).expect("a file");
    let Some(share) = processor_share(&json.ends(0).json()) else {
        plumb_testkit::skip!("the kernel counts no time of threads");
    };
    // The share lacks the time that a hypervisor takes.
    match machine.was_busy() {
        Some(why) if share < 0.9 => plumb_testkit::undecided!(why),
        _ => assert!(share >= 0.9, "{}", json.out),
    }
    ran.ends(0).says("note: the processor was the limit");
}

/// Threads that wait 1 ms for each I/O are not the limit; all processors may be, if others keep them busy.
#[test]
fn a_slow_disk_is_not_limited_by_the_processor() {
    require!(Tool("nbdkit"), Tool("nbdfuse"));
    let disk = SlowDisk::new(8 << 20, "1ms");
    let flags = "--for 1s --interval 500ms --warmup 200ms";
    let machine = plumb_testkit::Machine::watched();
    let ran = bench(disk.path(), flags);
    let json = bench(disk.path(), &format!("{flags} --json"));
    let Some(share) = processor_share(&json.json()) else {
        plumb_testkit::skip!("the kernel counts no time of threads");
    };
    assert!(share > 0.0, "{}", json.out);
    let names_threads = share >= 0.5 || ran.out.contains("the threads that sent I/O");
    let is_limited = names_threads || ran.out.contains("the processor was the limit");
    match machine.was_busy() {
        Some(why) if names_threads => plumb_testkit::undecided!(why),
        Some(_) => {}
        None => assert!(!is_limited, "{} {}", ran.out, json.out),
    }
}

/// A person at a terminal sees each interval as it ends, and the verdict once, at the end.
#[test]
fn intervals_on_a_terminal() {
    require!(Tool("tmux"));
    let folder = Folder::new("bench-terminal");
    let target = file(&folder, "disk", 1 << 20);
    let program = env!("CARGO_BIN_EXE_plumb");
    let terminal = Terminal::open("bench", 110, 40, "LC_ALL=C.UTF-8");
    let typed = format!(
        "{program} bench {} --for 60s --interval 500ms --rate 200",
        target.display()
    );
    terminal.press(&[&typed, "Enter"]);
    let is_third = |line: &str| line.split_whitespace().next() == Some("3");
    let screen = terminal.until("the third interval", |screen| screen.lines().any(is_third));
    assert!(!screen.contains("OK: "), "{screen}");
    terminal.press(&["C-c"]);
    let screen = terminal.shows("OK: ");
    assert_eq!(screen.matches("OK: ").count(), 1, "{screen}");
}

#[test]
fn counts_are_exact_and_the_trace_has_them() {
    let folder = Folder::new("bench-trace");
    let (target, trace) = (file(&folder, "disk", 1 << 20), folder.path("all.parquet"));
    let flags = format!(
        "--ios 1009 --depth 8 --shift 512 --json --trace {}",
        trace.display()
    );
    let ran = bench(&target, &flags);
    let result = ran.ends(0).json()["result"].clone();
    let total = &result["runs"][0]["total"];
    assert_eq!(
        (number(&total["ios"]), number(&total["bytes"])),
        (1009, 1009 * 4096)
    );
    assert_eq!(
        number(
            &total["reads"]["latency"]["buckets"]
                .as_array()
                .expect("buckets")
                .iter()
                .map(|bucket| number(&bucket[1]))
                .sum::<u64>()
                .into()
        ),
        1009
    );
    assert_eq!(result["runs"][0]["targets"][0]["ended"], "after its I/O");
    let analyzed = plumb(["analyze", &trace.display().to_string(), "--fail-on", "none"]);
    analyzed.ends(0).says("1,009 of 1,009 (100 %) I/O on");
    // A trace takes nobody's place.
    insta::assert_snapshot!(bench(&target, &flags).ends(2).complaint());
}

#[test]
fn hits_have_their_area_alone() {
    let folder = Folder::new("bench-hits");
    let (target, trace) = (file(&folder, "disk", 1 << 20), folder.path("t.parquet"));
    let flags = "--hit-area 64k --hit-percent 30 --ios 2003 --trace";
    let ran = bench(&target, &format!("{flags} {}", trace.display()));
    let asked = recorded(paragraph(&ran.ends(0).out, "reads, "));
    let starts: Vec<u64> = read(&trace)
        .events
        .iter()
        .map(|event| event.start_bytes)
        .collect();
    let hits = starts.iter().filter(|start| **start < 65_536).count();
    // 601 expected, with a standard deviation of 21.
    assert!(
        starts.len() == 2003 && (500..700).contains(&hits),
        "{hits} of {}",
        starts.len()
    );
    let refused = [
        "--hit-area 64k",
        "--hit-percent 5",
        "--hit-area 1m --hit-percent 5",
    ];
    let messages = refused.map(|flags| {
        let ran = bench(&target, flags);
        assert_eq!(ran.out, "", "nothing was measured");
        ran.ends(2).complaint()
    });
    insta::assert_snapshot!([asked, messages.join("\n\n")].join("\n\n"));
}

#[test]
fn several_targets_side_by_side() {
    let folder = Folder::new("bench-several");
    let (one, other) = (
        file(&folder, "one", 1 << 20),
        file(&folder, "other", 1 << 20),
    );
    let (one, other) = (one.display().to_string(), other.display().to_string());
    let page = folder.path("page.html");
    let ran = plumb([
        "bench",
        &one,
        &other,
        "--ios",
        "101",
        "--json",
        "--html",
        &page.display().to_string(),
    ]);
    let result = ran.ends(0).json()["result"]["runs"][0].clone();
    let ios: Vec<u64> = result["targets"]
        .as_array()
        .expect("targets")
        .iter()
        .map(|target| number(&target["measured"]["ios"]))
        .collect();
    assert_eq!(
        (ios, number(&result["total"]["ios"])),
        (vec![101, 101], 202)
    );
    let page = fs::read_to_string(page).expect("a page");
    assert!(
        page.contains("<!DOCTYPE html>")
            && page.contains("Time, cumulative")
            && page.contains(&other)
    );
    let twice = plumb(["bench", &one, &one, "--ios", "1"]);
    insta::assert_snapshot!(twice.ends(2).complaint());
}

/// A hole is answered without a medium, which a rate would not show.
#[test]
fn holes_are_reported() {
    let folder = Folder::new("bench-holes");
    let target = file(&folder, "disk", 1 << 20);
    let of_holes = || -> Option<String> {
        let document = bench(&target, "--ios 11 --json").ends(0).json();
        let notes = document["result"]["notes"].as_array().expect("notes");
        let mut notes = notes.iter().filter_map(Value::as_str);
        Some(recorded(notes.find(|note| note.contains("ever written"))?))
    };
    assert_eq!(of_holes(), None);
    let longer = fs::File::options()
        .write(true)
        .open(&target)
        .and_then(|file| file.set_len(4 << 20));
    longer.expect("a longer file");
    if let Some(note) = of_holes() {
        return insta::assert_snapshot!(note);
    }
    // Only a file system that maps files can tell.
    require!(Tool("filefrag"));
    let asked = Command::new("filefrag").arg(&target).limited_output();
    assert!(!asked.status.success(), "no note");
}

#[test]
fn writes_are_asked_for_twice_and_stay_in_their_range() {
    let folder = Folder::new("bench-write");
    let target = file(&folder, "disk", 1 << 20);
    let before = fs::read(&target).expect("its content");
    let refused = [
        "--read 0 --ios 1",
        "--write --ios 1",
        "--read 0 --write --ios 1",
        "--read 0 --write --yes dis --ios 1",
    ];
    let messages = refused.map(|flags| bench(&target, flags).ends(2).complaint());
    insta::assert_snapshot!(messages.join("\n\n"));
    assert!(
        fs::read(&target).expect("its content") == before,
        "something was written without permission"
    );
    let flags = "--read 0 --write --yes disk --sequential --range 64k-128k --ios 16 --json";
    let total = bench(&target, flags).ends(0).json()["result"]["runs"][0]["total"].clone();
    assert_eq!(
        (
            number(&total["writes"]["ios"]),
            number(&total["reads"]["ios"])
        ),
        (16, 0)
    );
    let after = fs::read(&target).expect("its content");
    assert!(after[..65536] == before[..65536] && after[131_072..] == before[131_072..]);
    assert!(
        after[65536..131_072]
            .chunks(4096)
            .all(|block| block != &before[..4096])
    );
}

#[test]
fn bad_input_is_named() {
    let folder = Folder::new("bench-bad");
    let target = file(&folder, "disk", 8192);
    let refused = [
        "--size 16k",
        "--shift 100",
        "--range 4k-1m",
        "--size 4MB",
        "--batch 2",
        "--open",
        "--zipf 11",
        // Flags without a meaning beside the others are not ignored.
        "--set a=b",
    ];
    let messages = refused.map(|flags| bench(&target, flags).ends(2).complaint());
    let beside_a_file = [
        "--open",
        "--hit-percent 5",
        "--record 1k",
        "--gather 2",
        "--at-threads 2",
    ];
    let of_series = beside_a_file.map(|flags| {
        let series = ["bench", "--vdbench", "no-such-file"]
            .into_iter()
            .chain(flags.split(' '));
        plumb(series).ends(2).complaint()
    });
    let messages = [messages.as_slice(), &of_series].concat();
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn devices_that_may_not_be_written() {
    require!(Loop);
    let folder = Folder::new("bench-loop");
    let image = file(&folder, "image", 1 << 20);
    let device = LoopDevice::attach(&image, &["--read-only"]);
    let writes = |target: &Path| {
        bench(
            target,
            &format!("--read 0 --write --yes {} --ios 1", target.display()),
        )
    };
    let mut messages = vec![
        writes(device.path()).ends(5).complaint(),
        writes(&image).ends(5).complaint(),
    ];
    let blocks = file(&folder, "blocks", 1 << 20);
    let device = LoopDevice::attach(&blocks, &["--sector-size", "4096"]);
    messages.push(bench(device.path(), "--shift 512").ends(2).complaint());
    messages.push(bench(device.path(), "--size 512").ends(2).complaint());
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn ctrl_c_ends_with_the_summary() {
    is_ended_by_int(command());
}

/// A shell without job control starts each command behind `&` like this.
#[test]
fn an_interrupt_ends_all_children_of_a_script() {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "trap '' INT; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_plumb"));
    is_ended_by_int(shell);
}

/// Starts a benchmark without an end, and sends SIGINT to it.
fn is_ended_by_int(mut plumb: Command) {
    let folder = Folder::new("bench-stop");
    let target = file(&folder, "disk", 1 << 20);
    let running = plumb
        .args(["bench", &target.display().to_string(), "--rate", "100"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let sent = Command::new("kill")
        .args(["-s", "INT", &running.id().to_string()])
        .status();
    assert!(sent.expect("kill").success());
    let done = wait::output("plumb bench", wait::PATIENCE, running);
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success() && text.contains("ended by a signal"),
        "{text}"
    );
}

/// Refuses io_uring_setup with EPERM to a program, as containers do by their filters of system calls.
const FILTERED: &str = r#"
import ctypes, os, struct, sys
SETUP = 425
# Load the number of the call; when it is the one, answer EPERM; allow all others.
program = struct.pack("=HBBIHBBIHBBIHBBI", 0x20, 0, 0, 0, 0x15, 0, 1, SETUP, 0x06, 0, 0, 0x00050001, 0x06, 0, 0, 0x7fff0000)
code = ctypes.create_string_buffer(program, len(program))
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("program", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
wanted = Filter(4, ctypes.cast(code, ctypes.c_void_p))
for call in ((38, 1, 0, 0, 0), (22, 2, ctypes.byref(wanted), 0, 0)):
    if libc.prctl(*call) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn a_refused_ring_is_replaced_by_calls_and_reported() {
    require!(Tool("python3"));
    let folder = Folder::new("bench-refused");
    let target = file(&folder, "disk", 1 << 20);
    let done = Command::new("python3")
        .args([
            "-c",
            FILTERED,
            env!("CARGO_BIN_EXE_plumb"),
            "bench",
            &target.display().to_string(),
        ])
        .args(["--ios", "1009", "--threads", "2", "--depth", "4", "--json"])
        .limited_output();
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{text}");
    let result: Value = serde_json::from_slice(&done.stdout).expect("a document");
    let target = &result["result"]["runs"][0]["targets"][0];
    let engine = target["engine"].as_str().expect("words");
    assert!(
        engine.starts_with("blocking I/O, as the kernel refused io_uring"),
        "{engine}"
    );
    assert!(engine.contains("not permitted"), "{engine}");
    assert_eq!(number(&target["measured"]["ios"]), 1009);
}
