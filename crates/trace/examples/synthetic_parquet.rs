//! Writes synthetic traces in the project's own format, for benchmarks: `synthetic_parquet DIR EVENTS [RECORDINGS]`.
//!
//! RECORDINGS (default: 1) is the number of equal recordings that each file holds, one after the other. The time jumps back
//! between two of them, and EVENTS is the sum of all.
//! 4 hosts of 4 devices, a file each, as a busy mixed host has them; the same bytes every time.

use std::path::Path;
use std::sync::Arc;

use plumb_testkit::event::{SynthEvent, SynthOp};
use plumb_testkit::workload::Mixed;
use plumb_trace::{Batch, Clock, Error, Event, Layer, Names, Op, SourceInfo, write};

const HOSTS: u64 = 4;
const DEVICES: u64 = 4;
const THREADS: u64 = 2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(directory), Some(events)) = (arguments.next(), arguments.next()) else {
        return Err("usage: synthetic_parquet DIR EVENTS [RECORDINGS]".into());
    };
    let recordings: u64 = arguments.next().map_or(Ok(1), |count| count.parse())?;
    let events = events.parse::<u64>()? / recordings;
    let files = HOSTS * DEVICES;
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let directory = directory.clone();
            std::thread::spawn(move || {
                for file in (thread..files).step_by(THREADS as usize) {
                    let share = events / files + u64::from(file < events % files);
                    write_file(Path::new(&directory), file, share, recordings)?;
                }
                Ok::<(), Error>(())
            })
        })
        .collect();
    for thread in threads {
        thread.join().map_err(|_| "a writer panicked")??;
    }
    Ok(())
}

fn write_file(directory: &Path, file: u64, events: u64, recordings: u64) -> Result<(), Error> {
    let info = SourceInfo {
        clock: Clock::Unix,
        ..SourceInfo::default()
    };
    let path = directory.join(format!(
        "host{}-disk{}.parquet",
        file / DEVICES,
        file % DEVICES
    ));
    let mut writer = write::create(&path, None, &info)?;
    let mut names = Names::default();
    let disk = (b'a' + (file % DEVICES) as u8) as char;
    let device = names.device(&format!("host{}/sd{disk}", file / DEVICES));
    let workload = Mixed {
        seed: file + 1,
        events,
        devices: 1,
        mean_gap_ns: 400_000,
        ..Mixed::default()
    };
    let mut batch = Batch::default();
    for event in (0..recordings).flat_map(|_| workload.iter()) {
        let comm = names.word(event.comm);
        batch.push(&event_of(&event, device, comm));
        if batch.len() == 4096 {
            batch.names = Arc::new(names.clone());
            writer.write(&batch)?;
            batch.clear();
        }
    }
    batch.names = Arc::new(names);
    writer.write(&batch)?;
    writer.finish(&info)?;
    Ok(())
}

fn event_of(from: &SynthEvent, device: u32, comm: u32) -> Event {
    let op = match from.op {
        SynthOp::Read => Op::Read,
        SynthOp::Write => Op::Write,
        SynthOp::Discard => Op::Discard,
        SynthOp::Flush => Op::Flush,
    };
    Event {
        device_ns: from.device_ns,
        queue_ns: from.queue_ns,
        pid: i32::try_from(from.pid).ok(),
        comm,
        ..Event::new(
            from.time_ns,
            device,
            Layer::Request,
            op,
            from.start_bytes,
            from.len_bytes,
        )
    }
}
