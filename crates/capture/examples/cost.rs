//! What the programs of `plumb watch` and `plumb record` cost an I/O, by the kernel's own count of their run time, beside
//! empty programs and beside a bpftrace program that does no more than send a record for each event.
//!
//!   cost DEVICE ROUNDS SECONDS
//!
//! Each round reads DEVICE at random with fio, with empty programs attached, with those of a watch, with those of a recording
//! and with bpftrace's, in turn.
//!
//!   cost empty
//!
//! keeps the empty programs attached until its input ends: a control for measurements from outside.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aya::programs::BtfTracePoint;
use aya::sys::{Stats, enable_stats};
use aya::{Btf, Ebpf, EbpfLoader};
use plumb_capture::{Block, Options, RecordOptions, Recorder};

static EMPTY: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/empty.o"));

/// Where programs are, and how each begins its name there: the empty one, Plumb's, bpftrace's.
const PLACES: [(&str, &str, &str, &str); 3] = [
    ("block_rq_issue", "empty_issue", "issue_", "block_rq_issue"),
    ("block_rq_complete", "empty_complete", "complete_", "block_rq_complete"),
    ("block_bio_queue", "empty_queue", "queue_bio", "(none)"),
];

/// A record with the time, for each event.
const RECORDS_ONLY: &str = "tracepoint:block:block_rq_issue { printf(\"%llu\", nsecs) } \
    tracepoint:block:block_rq_complete { printf(\"%llu\", nsecs) }";

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1).peekable();
    if args.next_if_eq("empty").is_some() {
        let _attached = attach_empty()?;
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
        return Ok(());
    }
    let (Some(device), Some(rounds), Some(seconds)) = (args.next(), args.next(), args.next()) else {
        return Err("usage: cost DEVICE ROUNDS SECONDS, or: cost empty".into());
    };
    let _counting = enable_stats(Stats::RunTime)?;
    let options = Options { devices: vec![plumb_capture::disk_of(&device)?], ..Options::default() };
    let recording = RecordOptions { devices: options.devices.clone(), ..RecordOptions::default() };
    let mut found: [Vec<[f64; 3]>; 4] = Default::default();
    for _ in 0..rounds.parse()? {
        let empty = attach_empty()?;
        found[0].push(cost(&device, &seconds, |place| place.1)?);
        drop(empty);
        let mut block = Block::attach(&options)?;
        found[1].push(cost(&device, &seconds, |place| place.2)?);
        let seen: u64 = block.read().profiles.iter().map(plumb_profile::Profile::ios).sum();
        eprintln!("{seen} I/O watched");
        drop(block);
        found[2].push(cost_of_recording(&recording, &device, &seconds)?);
        let mut tracing = trace()?;
        let costs = cost(&device, &seconds, |place| place.3);
        tracing.kill()?;
        tracing.wait()?;
        found[3].push(costs?);
    }
    for (name, rounds) in ["empty", "watch", "record", "bpftrace"].iter().zip(&found) {
        let medians = [0, 1, 2].map(|at| median(rounds.iter().map(|round| round[at])));
        let [issue, complete, queue] = medians;
        println!("{name}: issue {issue:.0} ns, complete {complete:.0} ns, queue {queue:.0} ns");
    }
    let both = |round: &[f64; 3]| round[0] + round[1];
    let above = found[0].iter().zip(&found[1]).map(|(empty, watch)| both(watch) - both(empty));
    println!("watch, issue and complete above empty: {:.0} ns an I/O", median(above));
    let beside = found[2].iter().zip(&found[3]).map(|(record, bpftrace)| both(record) / both(bpftrace));
    println!("record, issue and complete: {:.2} times those of bpftrace", median(beside));
    Ok(())
}

/// The same while a recording takes up what comes.
fn cost_of_recording(options: &RecordOptions, device: &str, seconds: &str) -> Result<[f64; 3], Error> {
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
        let costs = cost(device, seconds, |place| place.2).map_err(|error| error.to_string());
        is_over.store(true, Ordering::Relaxed);
        taking.join().map_err(|_| "the thread that takes records ended".to_owned())?;
        costs
    })?;
    eprintln!("{records} I/O recorded, {} lost", recorder.lost());
    Ok(costs)
}

/// Starts bpftrace, and gives it the time to attach.
fn trace() -> Result<Child, Error> {
    let mut command = Command::new("bpftrace");
    // Its buffer is as large as that of a recording.
    command.env("BPFTRACE_PERF_RB_PAGES", "4096").args(["-e", RECORDS_ONLY]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    std::thread::sleep(Duration::from_secs(4));
    Ok(child)
}

fn attach_empty() -> Result<Ebpf, Error> {
    let btf = Btf::from_sys_fs()?;
    let mut programs = EbpfLoader::new().btf(Some(&btf)).load(EMPTY)?;
    for (tracepoint, name, ..) in PLACES {
        let program: &mut BtfTracePoint = programs.program_mut(name).ok_or("no such program")?.try_into()?;
        program.load(tracepoint, &btf)?;
        program.attach()?;
    }
    Ok(programs)
}

/// ns that a run of the program at each place takes, on average, while fio reads.
fn cost(
    device: &str,
    seconds: &str,
    name: impl Fn(&(&'static str, &'static str, &'static str, &'static str)) -> &'static str,
) -> Result<[f64; 3], Error> {
    let file = if device.starts_with('/') { device.to_owned() } else { format!("/dev/{device}") };
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
        let is_it = |place: &(&'static str, &'static str, &'static str, &'static str)| {
            let name = name(place);
            called.starts_with(&name[..name.len().min(15)]) && program.run_count() > 0
        };
        if let Some(at) = PLACES.iter().position(is_it) {
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
