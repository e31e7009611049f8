//! A trace that is read while it is written, and after its writer was killed at any moment.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plumb_trace::open::{open, pieces};
use plumb_trace::parquet::grow::{COMMIT_AFTER, GrowingWriter};
use plumb_trace::{Batch, Clock, Error, Event, Fill, Layer, Names, Op, ReadOptions, SourceInfo};
use tempfile::TempDir;

fn batch(from: u64, count: u64) -> Batch {
    let mut names = Names::default();
    let device = names.device("sda");
    let comm = names.word("writer");
    let mut batch = Batch::default();
    for number in from..from + count {
        let mut event = Event::new(
            number as i64 * 1000,
            device,
            Layer::Request,
            Op::Write,
            number * 7919 % 99_991 * 512,
            4096,
        );
        event.device_ns = Some((number * 31 % 977) as i64);
        event.comm = comm;
        batch.push(&event);
    }
    batch.names = Arc::new(names);
    batch
}

fn info(lost: u64) -> SourceInfo {
    let mut info = SourceInfo {
        clock: Clock::Boot,
        format: "parquet",
        ..SourceInfo::default()
    };
    info.counts.lost = lost;
    info
}

fn read(path: &Path) -> Result<(Vec<Event>, SourceInfo), Error> {
    let mut reader = open(&pieces(&[path.to_owned()])[0], &ReadOptions::default())?;
    let (mut batch, mut events) = (Batch::default(), Vec::new());
    while reader.fill(&mut batch)? == Fill::Events {
        events.extend(batch.events());
    }
    Ok((events, reader.info().clone()))
}

fn expected(count: u64) -> Vec<Event> {
    batch(0, count).events().collect()
}

const NOW: Duration = Duration::ZERO;

#[test]
fn it_can_be_read_after_each_commit() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("growing.parquet");
    let mut writer = GrowingWriter::create(&path, &info(0)).unwrap();
    assert_eq!(read(&path).unwrap().0, []);
    for part in 0..5 {
        writer
            .write(&batch(part * 101, 101), &info(part), NOW)
            .unwrap();
        assert_eq!(
            read(&path).unwrap().0.len() as u64,
            part * 101,
            "before it is committed"
        );
        writer.commit(&info(part), NOW).unwrap();
        let (events, found) = read(&path).unwrap();
        assert_eq!(events, expected((part + 1) * 101));
        assert_eq!(
            (found.counts.lost, found.clock, found.counts.skipped_bytes),
            (part, Clock::Boot, 0)
        );
    }
    assert_eq!((writer.events(), writer.committed_events()), (505, 505));
    let bytes = writer.finish(&info(9), NOW).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), bytes);
    let (events, found) = read(&path).unwrap();
    assert_eq!((events, found.counts.lost), (expected(505), 9));
    assert!(
        matches!(
            GrowingWriter::create(&path, &info(0)),
            Err(Error::Write { .. })
        ),
        "it is there already"
    );
}

/// For any end of the last write, all rows up to the footer before it are read, and the cut is reported.
#[test]
fn a_file_that_ends_anywhere_is_read_up_to_its_last_footer() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("killed.parquet");
    let mut writer = GrowingWriter::create(&path, &info(0)).unwrap();
    let mut ends = vec![(fs::metadata(&path).unwrap().len(), 0)];
    for part in 0..3 {
        writer
            .write(&batch(part * 211, 211), &info(0), NOW)
            .unwrap();
        writer.commit(&info(0), NOW).unwrap();
        ends.push((fs::metadata(&path).unwrap().len(), (part + 1) * 211));
    }
    let whole = fs::read(&path).unwrap();
    let cut = dir.path().join("cut.parquet");
    for len in ends[0].0..=whole.len() as u64 {
        // Each byte near a footer's end, some of those between.
        if len % 13 != 0 && !ends.iter().any(|(end, _)| len.abs_diff(*end) < 20) {
            continue;
        }
        fs::write(&cut, &whole[..len as usize]).unwrap();
        let (end, events) = *ends.iter().rfind(|(end, _)| *end <= len).unwrap();
        let (found, info) = read(&cut).unwrap_or_else(|error| panic!("{len}: {error}"));
        assert_eq!(found, expected(events), "{len} bytes");
        assert_eq!(
            (info.counts.skipped_bytes, info.is_whole()),
            (len - end, len == end)
        );
        assert_eq!(
            info.notes.iter().any(|note| note.contains("cut off")),
            len != end
        );
    }
    fs::write(&cut, &whole[..ends[0].0 as usize - 1]).unwrap();
    assert!(matches!(read(&cut), Err(Error::Malformed { .. })));
}

#[test]
fn rows_do_not_wait_for_long() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("slow.parquet");
    let mut writer = GrowingWriter::create(&path, &info(0)).unwrap();
    let none = Batch::default();
    writer
        .write(&batch(0, 3), &info(0), COMMIT_AFTER / 2)
        .unwrap();
    assert_eq!(read(&path).unwrap().0.len(), 0);
    writer.write(&none, &info(0), COMMIT_AFTER).unwrap();
    assert_eq!(read(&path).unwrap().0.len(), 3);
    let len = fs::metadata(&path).unwrap().len();
    writer.write(&none, &info(0), COMMIT_AFTER * 5).unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().len(),
        len,
        "no footer without a row"
    );
    // After a day they wait for longer.
    let day = Duration::from_secs(86_400);
    writer.write(&batch(3, 1), &info(0), day).unwrap();
    assert_eq!(read(&path).unwrap().0.len(), 4);
    writer
        .write(&batch(4, 1), &info(0), day + COMMIT_AFTER)
        .unwrap();
    assert_eq!(read(&path).unwrap().0.len(), 4);
    writer.write(&none, &info(0), day + day / 16).unwrap();
    assert_eq!(read(&path).unwrap().0.len(), 5);
}

/// A busy disk fills row groups long before any time is over.
#[test]
fn whole_row_groups_do_not_wait() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("busy.parquet");
    let mut writer = GrowingWriter::create(&path, &info(0)).unwrap();
    for part in 0..140 {
        writer
            .write(&batch(part * 4096, 4096), &info(0), NOW)
            .unwrap();
        assert!(writer.events() - writer.committed_events() <= 524_288 + 4096);
    }
    assert_eq!(writer.committed_events(), 524_288);
    assert_eq!(read(&path).unwrap().0.len(), 524_288);
    // Rows of a group that is not whole count as if they were not packed; after a commit nothing but a footer is unknown.
    let unpacked = writer.bytes_max();
    assert!(writer.bytes() < unpacked);
    writer.commit(&info(0), NOW).unwrap();
    let bytes_max = writer.bytes_max();
    let bytes = writer.finish(&info(0), NOW).unwrap();
    assert!(
        bytes <= bytes_max && bytes * 5 > bytes_max && bytes_max <= unpacked,
        "{bytes} bytes, at most {bytes_max}, unpacked {unpacked}"
    );
    assert_eq!(read(&path).unwrap().0.len(), 140 * 4096);
}

/// It contains the accesses of all users of this host.
#[test]
fn a_recording_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("t.parquet");
    let writer = GrowingWriter::create(&path, &info(0)).expect("it is created");
    let mode = fs::metadata(&path).expect("it has its name").permissions();
    assert_eq!(mode.mode() & 0o7777, 0o600);
    let (events, ..) = read(&path).expect("an empty trace");
    assert_eq!(events, []);
    GrowingWriter::create(&path, &info(0)).err().expect("taken");
    drop(writer);
    // Never through a link.
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(dir.path().join("free"), &link).expect("room");
    let refused = GrowingWriter::create(&link, &info(0)).err();
    let Some(Error::Write { source, .. }) = refused else {
        panic!("a link");
    };
    let refused = source.to_string();
    assert!(refused.contains("link"), "{refused}");
    assert!(!dir.path().join("free").exists());
}

/// A recording that lasts: from 50 million I/O to 400 million the memory of this process hardly grows, while the file grows eightfold.
/// Run it alone, in a process of its own: other tests take memory as well.
#[test]
#[ignore = "some minutes: run by make soak"]
fn memory_does_not_grow_with_a_recording() {
    const ROWS_OF_BATCH: u64 = 1 << 16;
    const EARLY: u64 = 50_000_000;
    const ALL: u64 = 400_000_000;
    const MORE_MAX_KIB: u64 = 32 << 10;
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("long.parquet");
    let batches: Vec<Batch> = (0..16)
        .map(|part| batch(part * ROWS_OF_BATCH, ROWS_OF_BATCH))
        .collect();
    let mut writer = GrowingWriter::create(&path, &info(0)).unwrap();
    let (mut rows, mut early_kib, mut most_kib) = (0, 0, 0);
    for batch in batches.iter().cycle() {
        // A disk of 300,000 I/O a second.
        let now = Duration::from_micros(rows * 10 / 3);
        writer.write(batch, &info(0), now).unwrap();
        rows += ROWS_OF_BATCH;
        let kib = resident_kib();
        if rows <= EARLY {
            early_kib = early_kib.max(kib);
        } else {
            most_kib = most_kib.max(kib);
        }
        if rows >= ALL {
            break;
        }
    }
    let bytes = writer.finish(&info(0), Duration::ZERO).unwrap();
    println!("{rows} I/O, {bytes} bytes: {early_kib} KiB of memory at first, {most_kib} KiB later");
    assert!(most_kib <= early_kib + MORE_MAX_KIB);
}

/// Anonymous memory of this process.
fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .expect("RssAnon")
}
