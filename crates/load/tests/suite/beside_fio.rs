//! Percentiles beside those of fio, on a disk whose latency is given, in turns.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_load::{Job, LoadPlan, Target, Workload, run};
use plumb_testkit::require;
use plumb_testkit::slow_disk::SlowDisk;
use plumb_testkit::wait::RunLimited;

const TURNS: usize = 3;

/// fio's histograms have 64 steps a power of two.
const RESOLUTION_OF_FIO: f64 = 1.0 / 64.0;

/// How both load the disk.
#[derive(Clone, Copy)]
struct Load<'a> {
    depth: u32,
    seconds: u64,
    percentiles: &'a [f64],
}

/// Percentiles in ns, and how many I/O there were.
struct LatencyPercentiles {
    ns: Vec<f64>,
    ios: u64,
}

fn ours(disk: &SlowDisk, load: Load<'_>) -> LatencyPercentiles {
    let target = Target::open(disk.path()).expect("a file");
    let job = Job {
        depth: load.depth,
        ..Job::new(&target, Workload::random_reads(4096))
    };
    let plan = LoadPlan::new(vec![job], Duration::from_secs(load.seconds));
    let outcome = run(&plan, &AtomicBool::new(false), &mut |_| (), None).expect("it fits");
    let reads = &outcome.jobs[0].tally.reads.latency;
    let quantile = |percentile: &f64| reads.quantile(percentile / 100.0).expect("some").0 as f64;
    LatencyPercentiles {
        ns: load.percentiles.iter().map(quantile).collect(),
        ios: reads.count(),
    }
}

/// The same of fio, issue to complete.
fn fio(disk: &SlowDisk, load: Load<'_>) -> LatencyPercentiles {
    let list: Vec<String> = load.percentiles.iter().map(f64::to_string).collect();
    let out = Command::new("fio")
        .args([
            "--name=x",
            "--rw=randread",
            "--bs=4k",
            "--ioengine=io_uring",
            "--direct=1",
            "--time_based",
        ])
        .args([
            "--norandommap",
            "--lat_percentiles=1",
            "--output-format=json",
        ])
        .arg(format!("--percentile_list={}", list.join(":")))
        .args([
            format!("--iodepth={}", load.depth),
            format!("--runtime={}", load.seconds),
        ])
        .arg(format!("--filename={}", disk.path().display()))
        .limited_output();
    let text = String::from_utf8_lossy(&out.stdout);
    let read = &text[text.find("\"read\"").expect("its reads")..];
    let latencies = &read[read.find("\"lat_ns\"").expect("its latencies")..];
    let ns = load
        .percentiles
        .iter()
        .map(|p| number(latencies, &format!("\"{p:.6}\"")) as f64)
        .collect();
    LatencyPercentiles {
        ns,
        ios: number(read, "\"total_ios\""),
    }
}

/// The whole number behind a name.
fn number(text: &str, name: &str) -> u64 {
    let behind = text
        .split_once(name)
        .unwrap_or_else(|| panic!("no {name}"))
        .1;
    let digits = behind.trim_start_matches([' ', ':']);
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .expect("more text");
    digits[..end].parse().expect("a number")
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// The distance of the extremes, as a share of the median.
fn spread(values: &[f64]) -> f64 {
    let (low, high) = values.iter().fold((f64::MAX, 0.0f64), |(low, high), &v| {
        (low.min(v), high.max(v))
    });
    (high - low) / median(values)
}

/// Medians of turns agree within 2 % plus the resolution of fio, or within the spread of each one's own turns.
fn agree(delay: &str, load: Load<'_>) {
    let disk = SlowDisk::new(64 << 20, delay);
    let turns: Vec<(LatencyPercentiles, LatencyPercentiles)> = (0..TURNS)
        .map(|_| (ours(&disk, load), fio(&disk, load)))
        .collect();
    let ios: Vec<(u64, u64)> = turns
        .iter()
        .map(|(ours, theirs)| (ours.ios, theirs.ios))
        .collect();
    eprintln!("I/O a turn, ours and fio's: {ios:?}");
    for (at, percentile) in load.percentiles.iter().enumerate() {
        let ours: Vec<f64> = turns.iter().map(|turn| turn.0.ns[at]).collect();
        let theirs: Vec<f64> = turns.iter().map(|turn| turn.1.ns[at]).collect();
        let allowed = (0.02 + RESOLUTION_OF_FIO)
            .max(spread(&ours))
            .max(spread(&theirs));
        let ratio = median(&ours) / median(&theirs);
        eprintln!(
            "p{percentile}: {ratio:.4} of fio's, allowed 1 ± {allowed:.4}; {ours:?}, {theirs:?}"
        );
        assert!(
            (ratio - 1.0).abs() <= allowed,
            "p{percentile}: {ours:?} beside {theirs:?}"
        );
    }
}

#[test]
fn percentiles_are_those_of_fio() {
    require!(
        Patience,
        Tool("nbdkit"),
        Tool("nbdfuse"),
        Tool("umount"),
        Tool("fio")
    );
    agree(
        "5ms",
        Load {
            depth: 4,
            seconds: 2,
            percentiles: &[50.0, 90.0],
        },
    );
}

/// 10,000 I/O above the 99th percentile.
#[test]
#[ignore = "minutes: scripts/soak runs it"]
fn high_percentiles_are_those_of_fio() {
    require!(Tool("nbdkit"), Tool("nbdfuse"), Tool("umount"), Tool("fio"));
    agree(
        "1ms",
        Load {
            depth: 16,
            seconds: 100,
            percentiles: &[50.0, 90.0, 99.0],
        },
    );
}
