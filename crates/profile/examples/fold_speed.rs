//! Measures how long a collector takes for an event.
//!
//! `cargo run --release -p plumb-profile --example fold_speed -- [EVENTS [REPEATS [SHAPE]]]`
//!
//! The events are those of the testkit's busy host with 16 devices, put into batches of 4096 before the clock
//! starts. Each batch is copied to one place right before it is folded, since a reader would have just written it.
//! SHAPE is `files` (each device in a file of its own, so a batch has one device), `mixed` (all devices in one
//! file), `bare` (as `files`, but with the columns only that every source has), or all of them. Printed are ns per
//! event, the least and the median of the repeats, and a checksum of the encoded profiles: a change that is to be
//! faster and nothing else leaves it as it is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_profile::codec::{Saved, encode};
use plumb_profile::{Collector, ProfileSet, Settings};
use plumb_testkit::SynthOp;
use plumb_testkit::event::device_name;
use plumb_testkit::workload::Mixed;
use plumb_trace::{Batch, Clock, Event, Layer, Names, Op, SourceInfo};

const DEVICES: u32 = 16;
const BATCH_EVENTS: usize = 4096;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |absent: u64| {
        arguments
            .next()
            .and_then(|text| text.parse().ok())
            .unwrap_or(absent)
    };
    let (events, repeats) = (number(4_000_000), number(5).max(1));
    let shape = arguments.next().unwrap_or_default();
    for (name, by_device, bare) in [
        ("files", true, false),
        ("mixed", false, false),
        ("bare", true, true),
    ] {
        if !shape.is_empty() && shape != name {
            continue;
        }
        let files = generate(events, by_device, bare);
        let mut ns: Vec<f64> = Vec::new();
        let mut sum = 0;
        for _ in 0..repeats {
            let (spent_ns, set) = measure(&files);
            ns.push(spent_ns as f64 / events as f64);
            sum = checksum(&set);
        }
        ns.sort_by(f64::total_cmp);
        println!(
            "{name:6} {:.1} ns per event at least, {:.1} in the median of {repeats}; checksum {sum:016x}",
            ns[0],
            ns[ns.len() / 2]
        );
    }
}

/// Batches of each file.
fn generate(events: u64, by_device: bool, bare: bool) -> Vec<Vec<Batch>> {
    let mut names = Names::default();
    (0..DEVICES).for_each(|device| {
        names.device(&device_name(device));
    });
    let mut files: Vec<Vec<Batch>> = vec![Vec::new(); if by_device { DEVICES as usize } else { 1 }];
    for io in (Mixed {
        events,
        devices: DEVICES,
        ..Mixed::default()
    })
    .iter()
    {
        let op = match io.op {
            SynthOp::Read => Op::Read,
            SynthOp::Write => Op::Write,
            SynthOp::Discard => Op::Discard,
            SynthOp::Flush => Op::Flush,
        };
        let mut event = Event::new(
            io.time_ns,
            io.device,
            Layer::Request,
            op,
            io.start_bytes,
            io.len_bytes,
        );
        (event.device_ns, event.queue_ns) = (io.device_ns, io.queue_ns);
        event.pid = i32::try_from(io.pid).ok();
        event.comm = names.word(io.comm);
        let batches = &mut files[if by_device { io.device as usize } else { 0 }];
        if batches
            .last()
            .is_none_or(|batch| batch.len() == BATCH_EVENTS)
        {
            batches.push(Batch::default());
        }
        if let Some(batch) = batches.last_mut() {
            batch.push(&event);
        }
    }
    let names = Arc::new(names);
    for batch in files.iter_mut().flatten() {
        batch.names = names.clone();
        if bare {
            batch.queue_ns = Vec::new();
            batch.device_ns = Vec::new();
            batch.pid = Vec::new();
            batch.comm = Vec::new();
            batch.cgroup = Vec::new();
            batch.file = Vec::new();
        }
    }
    files
}

fn measure(files: &[Vec<Batch>]) -> (u64, ProfileSet) {
    let mut set = ProfileSet::default();
    let mut spent = Duration::ZERO;
    let mut here = Batch::default();
    for batches in files {
        let Ok(mut collector) = Collector::new(&Settings::default()) else {
            continue;
        };
        collector.set_clock(Clock::Start);
        for batch in batches {
            copy(batch, &mut here);
            let started = Instant::now();
            collector.fold(&here);
            spent += started.elapsed();
        }
        set.merge(&collector.finish(&SourceInfo::default()));
    }
    (spent.as_nanos() as u64, set)
}

/// Copies all columns into memory that is there already.
fn copy(from: &Batch, to: &mut Batch) {
    to.time_ns.clone_from(&from.time_ns);
    to.device.clone_from(&from.device);
    to.layer.clone_from(&from.layer);
    to.op.clone_from(&from.op);
    to.flags.clone_from(&from.flags);
    to.start_bytes.clone_from(&from.start_bytes);
    to.len_bytes.clone_from(&from.len_bytes);
    to.queue_ns.clone_from(&from.queue_ns);
    to.device_ns.clone_from(&from.device_ns);
    to.pid.clone_from(&from.pid);
    to.comm.clone_from(&from.comm);
    to.names = from.names.clone();
}

/// FNV-1a.
fn checksum(set: &ProfileSet) -> u64 {
    let saved = Saved {
        profiles: set.clone(),
        ..Saved::default()
    };
    let bytes = encode(&saved).unwrap_or_default();
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}
