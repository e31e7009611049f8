//! The fuzzer's findings, input by input: small, and each with its fault.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::Path;

use plumb_testkit::write::WRITERS;
use plumb_trace::format::FORMATS;
use plumb_trace::input::Input;
use plumb_trace::open::open_input;
use plumb_trace::write::create;
use plumb_trace::{
    Batch, Error, Event, Fill, IOS_MAX, Layer, Names, Op, ReadOptions, Reader, SourceInfo,
};

/// Everything that a format makes of bytes.
struct All {
    events: Vec<Event>,
    ready_made: Vec<Fill>,
    info: SourceInfo,
}

fn read(format: &str, bytes: &[u8]) -> Result<All, Error> {
    let input = Input::from_reader("input", Box::new(Cursor::new(bytes.to_vec())))?;
    let options = ReadOptions {
        format: Some(format.to_owned()),
        ..ReadOptions::default()
    };
    read_all(open_input(input, &options)?)
}

fn read_all(mut reader: Box<dyn Reader>) -> Result<All, Error> {
    let (mut events, mut ready_made) = (Vec::new(), Vec::new());
    let mut batch = Batch::default();
    loop {
        match reader.fill(&mut batch)? {
            Fill::Events => events.extend(batch.events()),
            Fill::End => break,
            other => ready_made.push(other),
        }
    }
    Ok(All {
        events,
        ready_made,
        info: reader.info().clone(),
    })
}

/// Each format has its own fuzz target, with a seed: a file in the target's folder, or output of a writer of the
/// testkit.
#[test]
fn every_format_has_a_fuzz_target() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let mut targets = BTreeSet::new();
    for format in FORMATS {
        let target = format.fuzz_target();
        let is_written = WRITERS.iter().any(|writer| writer.format == format.name);
        let has_seed = |mut files: std::fs::ReadDir| files.next().is_some();
        assert!(
            is_written || seeds.join(&target).read_dir().is_ok_and(has_seed),
            "{}: put a seed into fuzz/seeds/{target}",
            format.name
        );
        assert!(targets.insert(target), "{}: a second target", format.name);
    }
}

/// Counts near 2^64 made the sums of the profile overflow: a table may count no more than can have been.
#[test]
fn residue_counts_that_cannot_be() {
    let head = "# plumb-residue 1 unit=512 modulus=2048\n";
    let check = |rows: &str, kept: usize, damaged: u64| {
        let all = read("residue", format!("{head}{rows}").as_bytes()).unwrap();
        let [Fill::Residue(table)] = &all.ready_made[..] else {
            panic!("one table of {rows}")
        };
        assert_eq!(
            (table.rows.len(), all.info.counts.damaged),
            (kept, damaged),
            "{rows}"
        );
        assert!(all.events.is_empty());
    };
    check("sda R 7 8 281474976710656\n", 1, 0);
    check("sda R 7 8 1\nsda R 7 8 281474976710656\n", 1, 1);
    check(
        "sda R 7 8 1\nsda W 7 8 18446744073709551615\nsda W 7 8 2\n",
        2,
        1,
    );
    check(
        "sda R 7 8 3 3 9\nsda R 7 8 1 1 340282366920938463463374607431768211455\n",
        1,
        1,
    );
}

/// Counts of ready-made histograms overflowed in the same way.
#[test]
fn histogram_counts_that_cannot_be() {
    let heading = "bitesize\n  value  ------------- Distribution ------------- count\n";
    let check = |rows: &str, buckets: usize, damaged: u64| {
        let all = read("quantize", format!("{heading}{rows}").as_bytes()).unwrap();
        let [Fill::Distribution(histogram)] = &all.ready_made[..] else {
            panic!("one histogram of {rows}")
        };
        assert_eq!(
            (histogram.buckets.len(), all.info.counts.damaged),
            (buckets, damaged),
            "{rows}"
        );
    };
    check("  512 |@@ 3\n 1024 |@ 281474976710656\n", 2, 0);
    check("  512 |@@ 3\n 1024 |@ 281474976710657\n", 1, 1);
    check("  512 |@@ 3\n 1024 |@ 18446744073709551615\n", 1, 1);
}

/// A bio of 512 bytes that was queued, as version 7 of blktrace records it on a little-endian host.
fn queued(sequence: u32, sector: u64, len_bytes: u32) -> Vec<u8> {
    let (magic, time_ns, write_queued) =
        (0x6561_7407_u32, 1000 + u64::from(sequence), 0x0012_0001_u32);
    let mut record = Vec::new();
    record.extend([magic, sequence].map(u32::to_le_bytes).concat());
    record.extend([time_ns, sector].map(u64::to_le_bytes).concat());
    // Length, action, process, device 8,16, CPU; no error and no data.
    record.extend(
        [len_bytes, write_queued, 7, 0x0080_0010, 0]
            .map(u32::to_le_bytes)
            .concat(),
    );
    record.extend([0; 4]);
    record
}

/// A sector whose place in bytes is beyond 2^64 came out as an event that had no end.
#[test]
fn blktrace_places_beyond_all_bytes() {
    let check = |sector: u64, len_bytes: u32, starts: &[u64]| {
        let records = [
            queued(1, 8, 512),
            queued(2, sector, len_bytes),
            queued(3, 16, 512),
        ]
        .concat();
        let all = read("blktrace", &records).unwrap();
        let found: Vec<u64> = all.events.iter().map(|event| event.start_bytes).collect();
        assert_eq!(found, starts, "sector {sector}");
        assert_eq!(all.info.is_whole(), starts.len() == 3, "sector {sector}");
    };
    check(12, 512, &[4096, 6144, 8192]);
    check(u64::MAX, 32_768, &[4096, 8192]);
    check(1 << 55, 512, &[4096, 8192]);
    check((1 << 55) - 1, 1024, &[4096, 8192]);
}

/// A Parquet file's number of losses overflowed when more was added to it.
#[test]
fn parquet_claims_of_losses() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.parquet");
    let mut info = SourceInfo::default();
    info.counts.lost = u64::MAX;
    info.counts.damaged = u64::MAX;
    info.counts.late_completions = 3;
    let mut names = Names::default();
    let mut batch = Batch::default();
    batch.push(&Event::new(
        5,
        names.device("sda"),
        Layer::Bio,
        Op::Read,
        512,
        512,
    ));
    batch.names = std::sync::Arc::new(names);
    let mut writer = create(&path, None, &info).unwrap();
    writer.write(&batch).unwrap();
    writer.finish(&info).unwrap();
    let reader = open_input(Input::open(&path).unwrap(), &ReadOptions::default()).unwrap();
    let all = read_all(reader).unwrap();
    let counts = &all.info.counts;
    assert_eq!(
        (counts.lost, counts.damaged, counts.late_completions),
        (IOS_MAX, IOS_MAX, 3)
    );
    assert_eq!(all.events.len(), 1);
}
