//! Shards of millions of I/O in several formats are, byte for byte, one pass over them.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use plumb_testkit::event::{SynthEvent, SynthOp};
use plumb_testkit::require;
use plumb_testkit::workload::Mixed;
use plumb_testkit::write::{Style, blktrace, msr, write_all};
use plumb_trace::{Batch, Clock, Event, Layer, Op, SourceInfo};

use crate::common::Folder;
use crate::fleet::{compare_shards, report};

/// Recordings: 24 hosts with two disks, each in two pieces.
const FILES: u64 = 96;

/// The number of I/O: 5 million, or `PLUMB_FLEET_EVENTS`.
fn wanted() -> u64 {
    let wanted = std::env::var("PLUMB_FLEET_EVENTS").ok();
    wanted.map_or(5_000_000, |wanted| wanted.parse().expect("a number of I/O"))
}

/// Writes the recordings; of 16 files one is of blktrace, three are MSR CSV, and the others Parquet. Returns the number of I/O.
fn recorded(root: &Path, events: u64) -> u64 {
    let mut written = 0;
    for file in 0..FILES {
        let place = root.join(format!("host=h{:02}", file / 4));
        fs::create_dir_all(&place).expect("room");
        let workload = Mixed {
            seed: file + 1,
            events: events / FILES + u64::from(file < events % FILES),
            devices: 1,
            mean_gap_ns: 400_000,
            ..Mixed::default()
        };
        written += match file % 16 {
            0 => raw(
                &place.join(format!("{file}.blktrace.0")),
                &blktrace::WRITER,
                &workload,
            ),
            1..4 => raw(&place.join(format!("{file}.csv")), &msr::WRITER, &workload),
            _ => parquet(&place.join(format!("{file}.parquet")), file, &workload),
        };
    }
    written
}

fn raw(path: &Path, writer: &plumb_testkit::write::Writer, workload: &Mixed) -> u64 {
    let file = BufWriter::new(File::create(path).expect("room"));
    let mut sink = (writer.open)(Box::new(file), &Style::default()).expect("room");
    write_all(sink.as_mut(), workload.iter())
        .expect("room")
        .events
}

/// Returns the number of I/O.
pub fn parquet(path: &Path, file: u64, workload: &Mixed) -> u64 {
    let info = SourceInfo {
        clock: Clock::Unix,
        ..SourceInfo::default()
    };
    let mut writer = plumb_trace::write::create(path, None, &info).expect("room");
    let mut batch = Batch::default();
    let disk = ["sda", "sdb"][(file / 2 % 2) as usize];
    let device = Arc::make_mut(&mut batch.names).device(disk);
    for event in workload.iter() {
        let comm = Arc::make_mut(&mut batch.names).word(event.comm);
        batch.push(&traced(&event, device, comm));
        if batch.len() == 4096 {
            writer.write(&batch).expect("room");
            batch.clear();
        }
    }
    writer.write(&batch).expect("room");
    writer.finish(&info).expect("room");
    workload.events
}

fn traced(from: &SynthEvent, device: u32, comm: u32) -> Event {
    let op = match from.op {
        SynthOp::Read => Op::Read,
        SynthOp::Write => Op::Write,
        SynthOp::Discard => Op::Discard,
        SynthOp::Flush => Op::Flush,
    };
    let (start, len) = (from.start_bytes, from.len_bytes);
    Event {
        device_ns: from.device_ns,
        queue_ns: from.queue_ns,
        pid: i32::try_from(from.pid).ok(),
        comm,
        ..Event::new(from.time_ns, device, Layer::Request, op, start, len)
    }
}

/// `make soak` runs it with ten times as many.
#[test]
fn shards_of_millions_of_events_are_one_pass() {
    require!(Patience);
    let folder = Folder::new("fleet-millions");
    let root = folder.path("in");
    let written = recorded(&root, wanted());
    let compared = compare_shards(&root, &[1, 7, 64], "", &[0]);
    // All of them are in the sums.
    let document = report(&compared.path("whole.fleet"), "--json").json();
    assert_eq!(document["result"]["ios"].as_u64(), Some(written));
    assert_eq!(document["result"]["inputs"].as_u64(), Some(FILES));
}
