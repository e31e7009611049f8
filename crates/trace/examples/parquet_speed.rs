//! Measures the Parquet format: writes a synthetic trace, or decodes one and uses nothing of it.
//!
//!     parquet_speed write EVENTS FILE [--no-queue]  # one disk, reads and writes, a third of them sequential
//!     parquet_speed read FILE… [--ahead]              # a thread a file; columns as for a profile
//!
//! Prints events, seconds and ns per event and file. It is a yardstick, not a benchmark of record.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use plumb_trace::ahead::ReadAhead;
use plumb_trace::open::{Piece, open, pieces};
use plumb_trace::write::create;
use plumb_trace::{
    Batch, Clock, Columns, Error, Event, Fill, Layer, LayerChoice, Names, Op, ReadOptions,
    SourceInfo,
};

/// Xorshift: the same numbers every time, and no crate for it.
struct Chance(u64);

impl Chance {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }

    /// Many small values and few large ones, as latencies are: up to `most`, halving from step to step.
    fn skewed(&mut self, most: u64) -> u64 {
        let halvings = self.next(1 << 12).leading_zeros() - 52;
        self.next((most >> halvings).max(1)) + (most >> halvings) / 4
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match names.as_slice() {
        ["write", events, file] => Ok(write(events.parse()?, Path::new(file), true)?),
        ["write", events, file, "--no-queue"] => {
            Ok(write(events.parse()?, Path::new(file), false)?)
        }
        ["read", files @ .., "--ahead"] => read(files, true),
        ["read", files @ ..] => read(files, false),
        _ => {
            Err("usage: parquet_speed write EVENTS FILE [--no-queue] | read FILE… [--ahead]".into())
        }
    }
}

fn write(events: u64, path: &Path, queue: bool) -> Result<(), Error> {
    let info = SourceInfo {
        format: "synthetic",
        clock: Clock::Start,
        ..SourceInfo::default()
    };
    let mut names = Names::default();
    let device = names.device("259,0");
    let comms: Vec<u32> = (0..24)
        .map(|number| names.word(&format!("worker-{number}")))
        .collect();
    let names = Arc::new(names);
    let mut writer = create(path, None, &info)?;
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let (mut time_ns, mut next_bytes) = (0i64, 0u64);
    let started = Instant::now();
    let mut batch = Batch {
        names,
        ..Batch::default()
    };
    for number in 0..events {
        time_ns += chance.skewed(40_000).cast_signed();
        let len = [4096, 8192, 16384, 65536, 131_072, 512][chance.skewed(6).min(5) as usize];
        let start = if chance.next(3) == 0 {
            next_bytes
        } else {
            chance.next(1 << 28) * 4096
        };
        next_bytes = start + len;
        let op = if chance.next(10) < 7 {
            Op::Read
        } else {
            Op::Write
        };
        let mut event = Event::new(time_ns, device, Layer::Request, op, start, len);
        event.flags = i32::from(op == Op::Write && chance.next(4) == 0);
        event.queue_ns = queue.then(|| chance.skewed(8_000).cast_signed());
        event.device_ns = Some(60_000 + chance.skewed(400_000).cast_signed());
        let comm = chance.skewed(24).min(23) as usize;
        event.pid = Some(1000 + comm as i32 * 7);
        event.comm = comms[comm];
        batch.push(&event);
        if batch.len() == 4096 || number + 1 == events {
            writer.write(&batch)?;
            batch.clear();
        }
    }
    writer.finish(&info)?;
    let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
    let ns = started.elapsed().as_nanos() / u128::from(events.max(1));
    let hundredths = bytes * 100 / events.max(1);
    println!(
        "{events} events, {bytes} bytes, {}.{:02} bytes/event, {ns} ns/event",
        hundredths / 100,
        hundredths % 100
    );
    Ok(())
}

fn read(files: &[&str], ahead: bool) -> Result<(), Box<dyn std::error::Error>> {
    let started = Instant::now();
    let threads: Vec<_> = files
        .iter()
        .map(|file| {
            let piece = pieces(&[PathBuf::from(file)]).remove(0);
            std::thread::spawn(move || count(&piece, ahead))
        })
        .collect();
    let mut events = 0;
    for thread in threads {
        events += thread.join().map_err(|_| "a reader panicked")??;
    }
    let elapsed = started.elapsed();
    let tenths = elapsed.as_nanos() * 10 / u128::from(events.max(1));
    println!(
        "{events} events in {} ms: {}.{} ns/event",
        elapsed.as_millis(),
        tenths / 10,
        tenths % 10
    );
    Ok(())
}

fn count(piece: &Piece, ahead: bool) -> Result<u64, Error> {
    let options = ReadOptions {
        layer: LayerChoice::Lowest,
        format: None,
        columns: Columns::PROFILE,
        ..ReadOptions::default()
    };
    let mut reader = open(piece, &options)?;
    if ahead {
        reader = ReadAhead::wrap(reader);
    }
    let mut batch = Batch::default();
    while reader.fill(&mut batch)? == Fill::Events {}
    Ok(reader.info().counts.events)
}
