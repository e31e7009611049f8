//! The cost of the programs of `plumb watch` and `plumb record` for an I/O, by the kernel's own count of their run
//! time, beside empty programs, beside programs that only pass a record on, and beside a bpftrace program that does the
//! same.
//!
//!   cost DEVICE ROUNDS SECONDS
//!
//! Each round reads DEVICE at random with fio, with each of these attached in turn. Processors pass the counters of a device to
//! each other; how long a cache line takes from one to another is measured in each round as well, since a hypervisor may place
//! them near each other or far apart.
//!
//!   cost empty
//!
//! keeps the empty programs attached until its input ends: a control for measurements from outside.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use aya::maps::RingBuf;
use aya::programs::BtfTracePoint;
use aya::sys::{Stats, enable_stats};
use aya::{Btf, Ebpf, EbpfLoader};
use plumb_capture::{BlockWatch, Options, RecordOptions, Recorder};

static CONTROLS: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/empty.o"));

const TRACEPOINTS: [&str; 3] = ["block_rq_issue", "block_rq_complete", "block_bio_queue"];

/// How the programs at the tracepoints begin their names.
type ProgramNames = [&'static str; 3];
const EMPTY: ProgramNames = ["empty_issue", "empty_complete", "empty_queue"];
const RING: ProgramNames = ["ring_issue", "ring_complete", "(none)"];
const PLUMB: ProgramNames = ["issue_", "complete_", "queue_bio"];
const BPFTRACE: ProgramNames = ["block_rq_issue", "block_rq_complete", "(none)"];

/// A record with the time, for each event.
const RECORDS_ONLY: &str = "tracepoint:block:block_rq_issue { printf(\"%llu\", nsecs) } \
    tracepoint:block:block_rq_complete { printf(\"%llu\", nsecs) }";

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1).peekable();
    if args.next_if_eq("empty").is_some() {
        let _attached = attach(EMPTY)?;
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
        return Ok(());
    }
    let (Some(device), Some(rounds), Some(seconds)) = (args.next(), args.next(), args.next())
    else {
        return Err("usage: cost DEVICE ROUNDS SECONDS, or: cost empty".into());
    };
    let _counting = enable_stats(Stats::RunTime)?;
    let options = Options {
        devices: vec![plumb_capture::disk_of(&device)?],
        ..Options::default()
    };
    let recording = RecordOptions {
        devices: options.devices.clone(),
        ..RecordOptions::default()
    };
    let mut found: [Vec<[f64; 3]>; 5] = Default::default();
    let mut lines = Vec::new();
    for _ in 0..rounds.parse()? {
        lines.push(cache_line_ns());
        let empty = attach(EMPTY)?;
        found[0].push(cost(&device, &seconds, EMPTY)?);
        drop(empty);
        let mut block = BlockWatch::attach(&options)?;
        found[1].push(cost(&device, &seconds, PLUMB)?);
        let seen: u64 = block
            .read()
            .profiles
            .iter()
            .map(plumb_profile::Profile::ios)
            .sum();
        eprintln!("{seen} I/O watched");
        drop(block);
        found[2].push(cost_of_recording(&recording, &device, &seconds)?);
        found[3].push(cost_of_records(&device, &seconds)?);
        let mut tracing = trace()?;
        let costs = cost(&device, &seconds, BPFTRACE);
        tracing.kill()?;
        tracing.wait()?;
        found[4].push(costs?);
    }
    for (name, rounds) in [
        "empty",
        "watch",
        "record",
        "a record of 32 bytes alone",
        "bpftrace's printf",
    ]
    .iter()
    .zip(&found)
    {
        let [issue, complete, queue] =
            [0, 1, 2].map(|at| median(rounds.iter().map(|round| round[at])));
        println!("{name}: issue {issue:.0} ns, complete {complete:.0} ns, queue {queue:.0} ns");
    }
    let both = |round: &[f64; 3]| round[0] + round[1];
    let above: Vec<f64> = found[0]
        .iter()
        .zip(&found[1])
        .map(|(empty, watch)| both(watch) - both(empty))
        .collect();
    println!(
        "watch, issue and complete above empty: {} ns an I/O",
        spread(&above)
    );
    println!(
        "a cache line from one processor to the other: {} ns",
        spread(&lines)
    );
    for (name, at) in [("a record of 32 bytes alone", 3), ("bpftrace's printf", 4)] {
        let ratios: Vec<f64> = found[2]
            .iter()
            .zip(&found[at])
            .map(|(record, other)| both(record) / both(other))
            .collect();
        println!(
            "record, issue and complete, in percent of {name}: {}",
            spread(&ratios.iter().map(|ratio| ratio * 100.0).collect::<Vec<_>>())
        );
    }
    Ok(())
}

/// How long a line of the cache takes from one processor to another, with two threads that wait for each other.
fn cache_line_ns() -> f64 {
    const TURNS: u32 = 100_000;
    let turn = AtomicU32::new(0);
    let wait_for = |number: u32| {
        while turn.load(Ordering::Acquire) != number {
            std::hint::spin_loop();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in (1..2 * TURNS).step_by(2) {
                wait_for(number);
                turn.store(number + 1, Ordering::Release);
            }
        });
        let begun = Instant::now();
        for number in (0..2 * TURNS).step_by(2) {
            wait_for(number);
            turn.store(number + 1, Ordering::Release);
        }
        begun.elapsed().as_nanos() as f64 / f64::from(2 * TURNS)
    })
}

/// That of records that are handed over and taken up.
fn cost_of_records(device: &str, seconds: &str) -> Result<[f64; 3], Error> {
    let mut programs = attach(RING)?;
    let mut ring = RingBuf::try_from(programs.take_map("ring").ok_or("no ring")?)?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(10));
                while ring.next().is_some() {}
            }
        });
        let costs = cost(device, seconds, RING);
        is_over.store(true, Ordering::Relaxed);
        costs
    })
}

/// The same while a recording reads the records.
fn cost_of_recording(
    options: &RecordOptions,
    device: &str,
    seconds: &str,
) -> Result<[f64; 3], Error> {
    let mut recorder = Recorder::attach(options)?;
    let (is_over, mut records) = (AtomicBool::new(false), 0);
    let costs = std::thread::scope(|scope| {
        let taking = scope.spawn(|| {
            let mut ready = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(10));
                recorder.read(&mut ready);
                records += ready.len();
                ready.clear();
            }
            recorder.finish(&mut ready);
            records += ready.len();
        });
        let costs = cost(device, seconds, PLUMB).map_err(|error| error.to_string());
        is_over.store(true, Ordering::Relaxed);
        taking
            .join()
            .map_err(|_| "the thread that takes records ended".to_owned())?;
        costs
    })?;
    eprintln!("{records} I/O recorded, {} lost", recorder.lost());
    Ok(costs)
}

/// Starts bpftrace, and gives it the time to attach.
fn trace() -> Result<Child, Error> {
    let mut command = Command::new("bpftrace");
    // Its buffer is as large as that of a recording.
    command
        .env("BPFTRACE_PERF_RB_PAGES", "4096")
        .args(["-e", RECORDS_ONLY]);
    let child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    std::thread::sleep(Duration::from_secs(4));
    Ok(child)
}

/// Loads those of the control programs that have these names, and attaches them.
fn attach(names: ProgramNames) -> Result<Ebpf, Error> {
    let btf = Btf::from_sys_fs()?;
    let mut programs = EbpfLoader::new().btf(Some(&btf)).load(CONTROLS)?;
    for (tracepoint, name) in TRACEPOINTS.into_iter().zip(names) {
        let Some(program) = programs.program_mut(name) else {
            continue;
        };
        let program: &mut BtfTracePoint = program.try_into()?;
        program.load(tracepoint, &btf)?;
        program.attach()?;
    }
    Ok(programs)
}

/// ns that a run of the program at each tracepoint takes, on average, while fio reads.
fn cost(device: &str, seconds: &str, names: ProgramNames) -> Result<[f64; 3], Error> {
    let file = if device.starts_with('/') {
        device.to_owned()
    } else {
        format!("/dev/{device}")
    };
    let done = Command::new("fio")
        .args([
            "--name=cost",
            "--direct=1",
            "--rw=randread",
            "--bs=4k",
            "--ioengine=io_uring",
            "--iodepth=32",
        ])
        .args([
            "--norandommap",
            "--time_based",
            &format!("--runtime={seconds}"),
            &format!("--filename={file}"),
        ])
        .stdout(Stdio::null())
        .status()?;
    if !done.success() {
        return Err(format!("fio ended with {done}").into());
    }
    let mut costs = [0.0; 3];
    for program in aya::programs::loaded_programs() {
        let program = program?;
        let called = program.name_as_str().unwrap_or("").to_owned();
        // The kernel keeps fifteen letters of a name.
        let is_it = |name: &&str| {
            called.starts_with(&name[..name.len().min(15)]) && program.run_count() > 0
        };
        if let Some(at) = names.iter().position(is_it) {
            costs[at] = program.run_time().as_nanos() as f64 / program.run_count() as f64;
        }
    }
    Ok(costs)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Median, least and most.
fn spread(values: &[f64]) -> String {
    let [least, most] =
        [f64::min, f64::max].map(|of| values.iter().copied().reduce(of).unwrap_or(f64::NAN));
    format!(
        "{:.0} ({least:.0}-{most:.0})",
        median(values.iter().copied())
    )
}
