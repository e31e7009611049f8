//! The recording of a guest that ships with the sources: complete, so that latencies can be held against btt,
//! and the same recording as version 8 and big-endian.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use plumb_testkit::convert::convert_blktrace;
use plumb_testkit::write::blkrecord::{Endian, Version};
use plumb_trace::format::blktrace;
use plumb_trace::{
    Batch, Clock, Error, Event, Fill, Latency, Layer, LayerChoice, Op, ReadOptions, SourceInfo,
    open,
};

use crate::common::completions_without_length;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/guest-blktrace")
}

fn read(path: &Path, layer: LayerChoice) -> Result<(Vec<Event>, SourceInfo, Batch), Error> {
    let pieces = open::pieces(&[path.to_owned()]);
    assert_eq!(pieces.len(), 1, "{}", path.display());
    let mut reader = open::open(
        &pieces[0],
        &ReadOptions {
            layer,
            ..ReadOptions::default()
        },
    )?;
    let (mut batch, mut last, mut events) = (Batch::default(), Batch::default(), Vec::new());
    while let Fill::Events = reader.fill(&mut batch)? {
        events.extend(batch.events());
        last = batch.clone();
    }
    Ok((events, reader.info().clone(), last))
}

/// `NAME VALUE` lines that awk made of the text of blkparse.
fn counts() -> BTreeMap<String, i64> {
    let text = std::fs::read_to_string(folder().join("counts.txt")).unwrap();
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs
        .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
        .collect()
}

#[test]
fn issues_and_latencies_are_those_that_awk_counts() {
    let counts = counts();
    let (events, info, batch) = read(&folder(), LayerChoice::Lowest).unwrap();
    assert_eq!(events.len() as i64, counts["D"]);
    let without_length = completions_without_length(&info);
    assert_eq!(
        (info.latency, info.clock, info.verified),
        (Latency::Known, Clock::Boot, true)
    );
    let found = |op: Op| {
        let of_op: Vec<&Event> = events.iter().filter(|event| event.op == op).collect();
        let sectors: u64 = of_op.iter().map(|event| event.len_bytes / 512).sum();
        let ns: Vec<i64> = of_op.iter().filter_map(|event| event.device_ns).collect();
        let (least, most) = (ns.iter().min().copied(), ns.iter().max().copied());
        (
            ns.len() as i64,
            sectors as i64,
            ns.iter().sum::<i64>(),
            least.unwrap(),
            most.unwrap(),
        )
    };
    // Counts, sums and extremes as the README of the recording has them from awk.
    let sectors = |letter: &str| counts[&format!("D.sectors.{letter}")];
    assert_eq!(
        found(Op::Read),
        (407, sectors("R"), 162_746_870, 21_150, 5_610_780)
    );
    assert_eq!(
        found(Op::Write),
        (292, sectors("W"), 127_650_810, 19_870, 3_436_840)
    );
    assert_eq!(
        (found(Op::Discard).0, found(Op::Discard).1),
        (3, sectors("D"))
    );
    assert_eq!(
        (found(Op::Flush).0, found(Op::Flush).1),
        (counts["D.rwbs.FN"], 0)
    );
    for kind in ["Q", "G", "I", "D", "C", "M", "F", "X", "A", "P", "U", "UT"] {
        assert_eq!(info.tallies[kind] as i64, counts[kind], "{kind}");
    }
    let c = &info.counts;
    assert_eq!(
        (
            c.unmatched_issues,
            c.unmatched_completions,
            c.lost,
            c.damaged
        ),
        (0, 0, 0, 0)
    );
    assert_eq!(without_length as i64, counts["C"] - counts["D"]);
    // Every I was found again at its D: flushes have none.
    let queued = events
        .iter()
        .filter(|event| event.queue_ns.is_some())
        .count();
    assert_eq!(queued as i64, counts["I"]);
    // The partition that the remaps show begins at sector 34.
    let disk = &batch.names.devices()[batch.names.find_device("259,1").unwrap() as usize];
    assert_eq!(disk.partitions, [("259,2".to_owned(), 34 * 512)]);
    assert!(
        events
            .iter()
            .all(|event| event.device == batch.names.find_device("259,1").unwrap())
    );
}

#[test]
fn each_latency_of_btt_is_one_of_ours() {
    let mut text = String::new();
    let packed = std::fs::File::open(folder().join("btt-d2c.dat.gz")).unwrap();
    flate2::read::GzDecoder::new(packed)
        .read_to_string(&mut text)
        .unwrap();
    let us = |word: &str| {
        let (whole, part) = word.split_once('.').unwrap();
        assert_eq!(part.len(), 6);
        whole.parse::<i64>().unwrap() * 1_000_000 + part.parse::<i64>().unwrap()
    };
    let theirs: Vec<(i64, i64)> = text
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(at, latency)| (us(at), us(latency)))
        .collect();
    let (events, ..) = read(&folder(), LayerChoice::Lowest).unwrap();
    let first_ns = first_record_ns();
    let ours: Vec<(i64, i64)> = events
        .iter()
        .filter(|event| event.op != Op::Flush)
        .map(|event| {
            (
                event.time_ns - first_ns + event.device_ns.unwrap(),
                event.device_ns.unwrap(),
            )
        })
        .collect();
    // btt goes through floating-point numbers: its microseconds may be one off.
    let near = |ns: i64, us: i64| (ns - us * 1000).abs() <= 1000;
    let same = |our: &(i64, i64), their: &(i64, i64)| near(our.0, their.0) && near(our.1, their.1);
    for their in &theirs {
        assert!(
            ours.iter().any(|our| same(our, their)),
            "{their:?} is not among ours"
        );
    }
    // btt knows no part of the 11 split I/O, 33 parts and 11 rests, and skips two writes of 4 KiB whose D and C are in
    // the text of blkparse (completed at 3.483769300 and 3.516059730).
    let unknown: Vec<_> = ours
        .iter()
        .filter(|our| !theirs.iter().any(|their| same(our, their)))
        .collect();
    let single = unknown
        .iter()
        .filter(|(at, _)| matches!(at, 3_483_769_300 | 3_516_059_730))
        .count();
    assert_eq!((unknown.len() as i64, single), (counts()["X"] + 11 + 2, 2));
    // One line for each queued I/O of a request, 1222 by btt's own count.
    assert_eq!((theirs.len(), ours.len()), (1222, 407 + 292 + 3));
}

fn files() -> Vec<PathBuf> {
    open::pieces(&[folder()])[0].files.clone()
}

fn first_record_ns() -> i64 {
    let mut records = blktrace::records(&files()).unwrap();
    loop {
        let record = records.next_record().unwrap().unwrap().record;
        if record.note().is_none() {
            return record.time_ns;
        }
    }
}

#[test]
fn bios_have_their_place_on_the_disk() {
    let counts = counts();
    let (events, ..) = read(&folder(), LayerChoice::Only(Layer::Bio)).unwrap();
    assert_eq!(events.len() as i64, counts["Q"]);
    let at_2 = |op: Op| {
        events
            .iter()
            .filter(|e| e.op == op && e.start_bytes / 512 % 8 == 2)
            .count() as i64
    };
    assert_eq!(at_2(Op::Write), counts["Q.start_mod8.W.2"]);
    assert_eq!(
        events.iter().filter(|event| event.op == Op::Flush).count() as i64,
        counts["Q.rwbs.FWS"]
    );
}

/// The time of day at boot, against the note that a Python decoder finds.
#[test]
fn time_of_day() {
    let mut records = blktrace::records(&files()).unwrap();
    let mut expected = None;
    while let Some(seen) = records.next_record().unwrap() {
        if seen.record.note() == Some(blktrace::Note::Timestamp) && expected.is_none() {
            let word = |at: usize| u32::from_le_bytes(seen.data[at..at + 4].try_into().unwrap());
            expected =
                Some(i64::from(word(0)) * 1_000_000_000 + i64::from(word(4)) - seen.record.time_ns);
        }
    }
    let (_, info, _) = read(&folder(), LayerChoice::Lowest).unwrap();
    assert!(
        expected.is_some(),
        "the recording has a note of the time of day"
    );
    assert_eq!(info.unix_ns_at_zero, expected);
    // Selections and writers ask for it before anything is read.
    let piece = open::pieces(&[folder()]).remove(0);
    let reader = open::open(&piece, &ReadOptions::default()).unwrap();
    assert_eq!(reader.info().unix_ns_at_zero, expected);
}

#[test]
fn version_8_and_big_endian_give_the_same() {
    let (expected, plain, _) = read(&folder(), LayerChoice::All).unwrap();
    for (version, endian) in [
        (Version::V7, Endian::Big),
        (Version::V8, Endian::Little),
        (Version::V8, Endian::Big),
    ] {
        let dir = plumb_testkit::temp_dir("variant");
        for file in files() {
            let to = std::fs::File::create(dir.path().join(file.file_name().unwrap())).unwrap();
            convert_blktrace(std::fs::File::open(file).unwrap(), to, version, endian).unwrap();
        }
        let (events, info, _) = read(dir.path(), LayerChoice::All).unwrap();
        assert_eq!(events, expected, "{version:?} {endian:?}");
        assert_eq!(
            (info.counts, info.tallies),
            (plain.counts.clone(), plain.tallies.clone())
        );
        assert_eq!(
            (info.unix_ns_at_zero, info.verified),
            (plain.unix_ns_at_zero, false)
        );
    }
}

#[test]
fn files_of_different_layout_are_refused() {
    let dir = plumb_testkit::temp_dir("mixed");
    let [first, second] = &files()[..] else {
        panic!("two CPUs")
    };
    let bytes = std::fs::read(first).unwrap();
    std::fs::write(dir.path().join("sda.blktrace.0"), &bytes).unwrap();
    let mut converted = Vec::new();
    let source = std::fs::read(second).unwrap();
    convert_blktrace(&source[..], &mut converted, Version::V8, Endian::Little).unwrap();
    std::fs::write(dir.path().join("sda.blktrace.1"), &converted).unwrap();
    let said = read(dir.path(), LayerChoice::Lowest).unwrap_err();
    assert!(matches!(said, Error::Refused { .. }), "{said}");

    // In one file: the data before the other layout stay.
    let joined = [bytes, converted].concat();
    let input =
        plumb_trace::input::Input::from_reader("joined", Box::new(Cursor::new(joined))).unwrap();
    let mut reader = open::open_input(input, &ReadOptions::default()).unwrap();
    let (mut batch, mut events) = (Batch::default(), 0);
    while let Fill::Events = reader.fill(&mut batch).unwrap() {
        events += batch.len();
    }
    let info = reader.info();
    assert!(
        events > 400 && info.counts.damaged == 1,
        "{events} {info:?}"
    );
    insta::assert_snapshot!(info.notes.join("\n\n"));
}
