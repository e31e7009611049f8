//! What the programs of `plumb watch` cost an I/O, by the kernel's own count of their run time, beside empty programs.
//!
//!   cost DEVICE ROUNDS SECONDS
//!
//! Each round reads DEVICE at random with fio, once with empty programs attached and once with those of a watch, in turn.
//!
//!   cost empty
//!
//! keeps the empty programs attached until its input ends: a control for measurements from outside.

use std::process::{Command, Stdio};

use aya::programs::BtfTracePoint;
use aya::sys::{Stats, enable_stats};
use aya::{Btf, Ebpf, EbpfLoader};
use plumb_capture::{Block, Options};

static EMPTY: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/empty.o"));

/// Where programs are, and how each begins its name there.
const PLACES: [(&str, &str, &str); 3] = [
    ("block_rq_issue", "empty_issue", "issue_"),
    ("block_rq_complete", "empty_complete", "complete_"),
    ("block_bio_queue", "empty_queue", "queue_bio"),
];

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
    let mut found: [Vec<[f64; 3]>; 2] = Default::default();
    for _ in 0..rounds.parse()? {
        let empty = attach_empty()?;
        found[0].push(cost(&device, &seconds, |place| place.1)?);
        drop(empty);
        let mut block = Block::attach(&options)?;
        found[1].push(cost(&device, &seconds, |place| place.2)?);
        let seen: u64 = block.read().profiles.iter().map(plumb_profile::Profile::ios).sum();
        eprintln!("{seen} I/O watched");
    }
    for (name, rounds) in ["empty", "watch"].iter().zip(&found) {
        let medians = [0, 1, 2].map(|at| median(rounds.iter().map(|round| round[at])));
        let [issue, complete, queue] = medians;
        println!("{name}: issue {issue:.0} ns, complete {complete:.0} ns, queue {queue:.0} ns");
    }
    let both = |round: &[f64; 3]| round[0] + round[1];
    let above = found[0].iter().zip(&found[1]).map(|(empty, watch)| both(watch) - both(empty));
    println!("issue and complete above empty: {:.0} ns an I/O", median(above));
    Ok(())
}

fn attach_empty() -> Result<Ebpf, Error> {
    let btf = Btf::from_sys_fs()?;
    let mut programs = EbpfLoader::new().btf(Some(&btf)).load(EMPTY)?;
    for (tracepoint, name, _) in PLACES {
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
    name: impl Fn(&(&str, &'static str, &'static str)) -> &'static str,
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
        let is_it = |place: &(&str, &'static str, &'static str)| {
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
