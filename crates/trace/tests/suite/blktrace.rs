//! Binary blktrace, held against `blkparse` record by record and against damage.

use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_testkit::tempdir::TempDir;
use plumb_testkit::wait::RunLimited;
use plumb_testkit::{require, temp_dir};
use plumb_trace::format::blktrace::{self, LETTERS, split_sector};
use plumb_trace::open::{self, Piece};
use plumb_trace::{
    Batch, Clock, Error, Event, Fill, Latency, Layer, LayerChoice, Op, ReadOptions, SourceInfo,
    flags,
};

use crate::common::completions_without_length;

/// A real trace. Only after `require!(RealTraces)`.
fn real(path: &str) -> PathBuf {
    plumb_testkit::real_traces()
        .expect("required before")
        .join(path)
}

/// Copies of the files of CPU 0, 1 and 10, and empty ones between so that the set looks complete.
fn set_with_empty_files(test: &str) -> TempDir {
    let dir = temp_dir(test);
    for cpu in 0..=10 {
        let file = format!("sdb.blktrace.{cpu}");
        let bytes = if matches!(cpu, 0 | 1 | 10) {
            std::fs::read(real("blktrace").join(&file)).unwrap()
        } else {
            Vec::new()
        };
        std::fs::write(dir.path().join(file), bytes).unwrap();
    }
    dir
}

fn run(dir: &TempDir, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(dir.path())
        .limited_output();
    assert!(
        output.status.success(),
        "{program}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn read(piece: &Piece, layer: LayerChoice) -> Result<(Vec<Event>, SourceInfo), Error> {
    let mut reader = open::open(
        piece,
        &ReadOptions {
            layer,
            ..ReadOptions::default()
        },
    )?;
    let mut batch = Batch::default();
    let mut events = Vec::new();
    while let Fill::Events = reader.fill(&mut batch)? {
        events.extend(batch.events());
    }
    Ok((events, reader.info().clone()))
}

fn read_path(path: &Path) -> (Vec<Event>, SourceInfo) {
    let pieces = open::pieces(&[path.to_owned()]);
    assert_eq!(pieces.len(), 1, "{}", path.display());
    read(&pieces[0], LayerChoice::Lowest).unwrap()
}

/// The fields that both programs print for a record.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PrintedRecord {
    time_ns: i64,
    cpu: u32,
    sequence: u32,
    device: (u32, u32),
    action: String,
    op: char,
    bits: i32,
    sector: u64,
    len_bytes: u64,
    pid: u32,
    split: Option<u64>,
}

const FORMAT: &str = "P %M %m %c %s %T %t %p %a %d %S %N %U\n";

/// A line of blkparse in [`FORMAT`]; its letters are parsed here separately, without the code under test.
fn line_of(text: &str) -> Option<PrintedRecord> {
    let words: Vec<&str> = text.strip_prefix("P ")?.split_whitespace().collect();
    let number = |index: usize| words[index].parse::<u64>().unwrap();
    let letters = words[8];
    let len_bytes = number(10);
    let main = letters
        .trim_start_matches('F')
        .chars()
        .next()
        .unwrap_or('N');
    let flush = letters.starts_with('F');
    let fua = letters.trim_start_matches('F').contains('F');
    let op = match main {
        _ if len_bytes == 0 && (flush || fua) => 'F',
        'R' | 'W' | 'D' => main,
        _ => 'O',
    };
    let bit = |letter: char, bit: i32| {
        if letters[1..].contains(letter) {
            bit
        } else {
            0
        }
    };
    let bits = bit('S', flags::SYNC)
        | bit('M', flags::META)
        | bit('A', flags::AHEAD)
        | if flush { flags::PREFLUSH } else { 0 }
        | if fua { flags::FUA } else { 0 };
    Some(PrintedRecord {
        time_ns: (number(4) * 1_000_000_000 + number(5)) as i64,
        cpu: number(2) as u32,
        sequence: number(3) as u32,
        device: (number(0) as u32, number(1) as u32),
        action: words[7].to_owned(),
        op,
        bits,
        sector: number(9),
        len_bytes,
        pid: number(6) as u32,
        // Printed through 32 bits, and so compared.
        split: (words[7] == "X").then(|| number(11) & 0xffff_ffff),
    })
}

fn lines_of_ours(files: &[PathBuf]) -> Vec<PrintedRecord> {
    let mut records = blktrace::records(files).unwrap();
    let mut lines = Vec::new();
    let mut first_ns = None;
    while let Some(seen) = records.next_record().unwrap() {
        let record = seen.record;
        let first_ns = *first_ns.get_or_insert(record.time_ns);
        if record.note().is_some() {
            continue;
        }
        let (op, bits) = record.op_and_flags();
        let action = LETTERS[record.action_index()];
        lines.push(PrintedRecord {
            time_ns: record.time_ns - first_ns,
            cpu: record.cpu,
            sequence: record.sequence,
            device: blktrace::RawRecord::major_minor(record.device),
            action: action.to_owned(),
            op: op.letter(),
            bits,
            sector: record.sector,
            len_bytes: u64::from(record.len_bytes),
            pid: record.pid,
            split: split_sector(seen.data)
                .filter(|_| action == "X")
                .map(|sector| sector & 0xffff_ffff),
        });
    }
    lines
}

fn count(lines: &[PrintedRecord], action: &str) -> usize {
    lines.iter().filter(|line| line.action == action).count()
}

#[test]
fn every_record_equals_the_line_of_blkparse() {
    require!(RealTraces, Tool("blkparse"));
    let dir = set_with_empty_files("blkparse");
    let text = run(&dir, "blkparse", &["-q", "-i", "sdb", "-f", FORMAT]);
    let mut theirs: Vec<PrintedRecord> = text.lines().filter_map(line_of).collect();
    let pieces = open::pieces(&[dir.path().join("sdb")]);
    let ours = lines_of_ours(&pieces[0].files);
    assert!(ours.is_sorted_by_key(|line| (line.time_ns, line.cpu, line.sequence)));
    // Records of one time on two CPUs may come in either order there.
    theirs.sort_by_key(|line| (line.time_ns, line.cpu, line.sequence));
    let kinds = ["Q", "D", "C", "X", "M", "R", "G", "I", "F"];
    let counts = kinds.map(|kind| (kind, count(&ours, kind), count(&theirs, kind)));
    println!("compared {} records: {counts:?}", ours.len());
    assert!(
        counts
            .iter()
            .all(|(_, ours, theirs)| ours == theirs && *ours > 0),
        "{counts:?}"
    );
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}

/// Time of the first record, as a Python decoder reads it.
const FIRST_NS: i64 = 2_556_205_113_763_856;

#[test]
fn a_merged_file_equals_the_set() {
    require!(RealTraces, Tool("blkparse"));
    let dir = set_with_empty_files("merged");
    run(&dir, "blkparse", &["-q", "-i", "sdb", "-d", "all", "-O"]);
    let (from_set, set) = read_path(&dir.path().join("sdb"));
    let packed = zstd::encode_all(&std::fs::read(dir.path().join("all")).unwrap()[..], 3).unwrap();
    std::fs::write(dir.path().join("packed"), packed).unwrap();
    for name in ["all", "packed"] {
        let (events, info) = read_path(&dir.path().join(name));
        assert_eq!(
            events.len(),
            7250,
            "issues of 7250 I/O: the two that were requeued are not issued again"
        );
        for (merged, single) in events.iter().zip(&from_set) {
            // blkparse writes times since the first record, and puts the names of processes first.
            let time_ns = merged.time_ns + FIRST_NS;
            assert_eq!(
                Event {
                    time_ns,
                    comm: single.comm,
                    ..*merged
                },
                *single,
                "{name}"
            );
        }
        assert_eq!(
            (info.format, info.verified, info.counts),
            ("blktrace", true, set.counts.clone())
        );
        assert_eq!((info.clock, set.clock), (Clock::Start, Clock::Boot));
        assert!(info.notes.is_empty(), "{:?}", info.notes);
    }
}

/// Against a matcher in Python that keeps, by device and sector, the last issue; it knows nothing of this
/// code: 2445 reads in 6,563,713,498 ns, 44 writes in 24,600,466 ns, 34 completions without issue.
#[test]
fn latencies_of_a_set() {
    require!(RealTraces);
    let dir = set_with_empty_files("latency");
    let (events, info) = read_path(&dir.path().join("sdb"));
    let sum = |op: Op| {
        let timed = events
            .iter()
            .filter(|event| event.op == op)
            .filter_map(|event| event.device_ns);
        timed.fold((0, 0), |(ios, ns), one| (ios + 1, ns + one))
    };
    assert_eq!(sum(Op::Read), (2445, 6_563_713_498));
    assert_eq!(sum(Op::Write), (44, 24_600_466));
    // 2 of the 34 have no length.
    assert_eq!(
        (
            info.counts.unmatched_completions,
            completions_without_length(&info)
        ),
        (32, 2)
    );
    assert_eq!(info.counts.unmatched_issues, 7250 - 2489);
    assert_eq!(info.latency, Latency::Known);
    assert!(
        events
            .iter()
            .filter(|event| event.queue_ns.is_some())
            .count()
            > 7000
    );
}

#[test]
fn an_incomplete_set_has_no_latency() {
    require!(RealTraces);
    let from = real("blktrace");
    let all: Vec<PathBuf> = [0, 1, 10]
        .map(|cpu| from.join(format!("sdb.blktrace.{cpu}")))
        .into();
    let check = |paths: &[PathBuf], issues: usize, said: &str| {
        let pieces = open::pieces(paths);
        assert_eq!(pieces.len(), 1, "{pieces:?}");
        let (events, info) = read(&pieces[0], LayerChoice::Lowest).unwrap();
        assert_eq!(events.len(), issues);
        assert!(events.iter().all(|event| event.device_ns.is_none()));
        let reason = format!("completions may be in the missing files of CPU {said}");
        assert_eq!(info.latency, Latency::None(reason));
        assert!(
            info.notes.iter().any(|note| note.ends_with(said)),
            "{:?}",
            info.notes
        );
        assert_eq!((info.counts.lost, info.counts.damaged), (0, 0));
    };
    // Issues of each CPU as counted by a Python decoder: 2574, 2173, 2503.
    check(std::slice::from_ref(&from), 7250, "2–9");
    check(&[from.join("sdb")], 7250, "2–9");
    check(&all, 7250, "2–9");
    check(&all[..2], 2574 + 2173, "10");
    check(&all[1..2], 2173, "0, 10");
    check(&all[2..], 2503, "0–9");
    // The records carry their CPU, under any file name.
    let dir = temp_dir("other-name");
    for (file, issues, said) in [(&all[1], 2173, "0"), (&all[2], 2503, "0–9")] {
        let other = dir.path().join("trace.bin");
        std::fs::copy(file, &other).unwrap();
        check(&[other], issues, said);
    }
    let first = dir.path().join("first.bin");
    std::fs::copy(&all[0], &first).unwrap();
    let (events, info) = read_path(&first);
    // All completions came in on CPU 10. Without any it looks like a recording that left them out.
    assert_eq!((events.len(), info.counts.missing_files), (2574, 0));
    insta::assert_debug_snapshot!(info.latency);
}

#[test]
fn layers_can_be_chosen() {
    require!(RealTraces);
    let from = real("blktrace/sdb.blktrace.10");
    let piece = &open::pieces(&[from])[0];
    let count = |layer| read(piece, layer).map(|(events, _)| events.len());
    assert_eq!(count(LayerChoice::Only(Layer::Bio)).unwrap(), 2415);
    assert_eq!(count(LayerChoice::Only(Layer::Request)).unwrap(), 2503);
    assert_eq!(count(LayerChoice::All).unwrap(), 2415 + 2503);
    let refused = count(LayerChoice::Only(Layer::Vfs));
    let Err(Error::NoLayer { asked, present, .. }) = refused else {
        panic!("it is read");
    };
    assert_eq!((asked, present.as_str()), (Layer::Vfs, "bio, request"));
}

#[test]
fn named_files_become_pieces() {
    let dir = temp_dir("pieces");
    for name in [
        "sda.blktrace.0",
        "sda.blktrace.1",
        "sdb.blktrace.0",
        "notes.txt",
    ] {
        std::fs::write(dir.path().join(name), "").unwrap();
    }
    let check = |named: &[&str], expected: &[(&str, usize)]| {
        let paths: Vec<PathBuf> = named.iter().map(|name| dir.path().join(name)).collect();
        let pieces = open::pieces(&paths);
        let found: Vec<_> = pieces
            .iter()
            .map(|piece| (piece.path.clone(), piece.files.len()))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(path, files)| (dir.path().join(path), *files))
            .collect();
        assert_eq!(found, expected, "{named:?}");
    };
    check(&[""], &[("sda", 2), ("sdb.blktrace.0", 1)]);
    check(&["sda"], &[("sda", 2)]);
    check(
        &["sda.blktrace.1", "notes.txt", "sda.blktrace.0"],
        &[("sda", 2), ("notes.txt", 0)],
    );
    check(&["sda.blktrace.1"], &[("sda.blktrace.1", 1)]);
    check(
        &["", "sda.blktrace.1", "sda"],
        &[("sda", 2), ("sdb.blktrace.0", 1)],
    );
    check(&["sdc"], &[("sdc", 0)]);
    assert!(open::exists(&dir.path().join("sda")) && !open::exists(&dir.path().join("sdc")));
    let empty = read(
        &open::pieces(&[dir.path().join("sda")])[0],
        LayerChoice::Lowest,
    )
    .unwrap_err();
    assert!(matches!(empty, Error::Empty { .. }), "{empty}");
    let nothing = temp_dir("pieces-none");
    let none = read(
        &open::pieces(std::slice::from_ref(&nothing.path().to_owned()))[0],
        LayerChoice::Lowest,
    )
    .unwrap_err();
    assert!(matches!(none, Error::Directory { .. }), "{none}");
}

/// Ends of the records of an undamaged little-endian file of version 7.
fn ends_of_records(bytes: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = 0;
    while let Some(length) = bytes.get(at + 46..at + 48) {
        at += 48 + usize::from(u16::from_le_bytes([length[0], length[1]]));
        ends.push(at);
    }
    ends
}

/// One bit anywhere, or a cut anywhere, costs a record or two and is said.
#[test]
fn damage_costs_little_and_is_reported() {
    require!(RealTraces);
    let from = real("blktrace/sdb.blktrace.0");
    let whole = std::fs::read(from).unwrap();
    let ends = ends_of_records(&whole);
    let records = 4000;
    let file = &whole[..ends[records - 1]];
    let dir = temp_dir("damage");
    let path = dir.path().join("damaged");
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let mut records = blktrace::records(std::slice::from_ref(&path)).unwrap();
        let mut count = 0;
        while records.next_record().unwrap().is_some() {
            count += 1;
        }
        let (places, damaged, skipped) = records.damages();
        assert_eq!(places.len() as u64, damaged.min(5));
        (count, damaged, skipped)
    };
    assert_eq!(read(file), (records, 0, 0));
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut worst = (records, 0, 0);
    for _ in 0..400 {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // Not the first magic, by which the file is recognised.
        let bit = 64 + (seed >> 33) as usize % ((file.len() - 8) * 8);
        let mut damaged = file.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let (left, places, skipped) = read(&damaged);
        worst = (worst.0.min(left), worst.1.max(places), worst.2.max(skipped));
        let cut = bit / 8;
        let whole_ones = ends.iter().filter(|end| **end <= cut).count();
        let rest = (cut - ends[..whole_ones].last().unwrap_or(&0)) as u64;
        assert_eq!(
            read(&file[..cut]),
            (whole_ones, u64::from(rest > 0), rest),
            "cut at {cut}"
        );
    }
    println!("of {records} records, damaged places, bytes passed over at worst: {worst:?}");
    assert!(
        worst.0 >= records - 1 && worst.1 == 1 && worst.2 <= 64,
        "{worst:?}"
    );
}

/// A hole in the middle of one file does not hurt the others.
#[test]
fn a_hole_is_passed_over() {
    require!(RealTraces);
    let dir = set_with_empty_files("hole");
    let path = dir.path().join("sdb.blktrace.1");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100_001..400_001].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let (events, info) = read_path(&dir.path().join("sdb"));
    assert_eq!(info.counts.damaged, 1);
    assert!(
        (299_950..300_100).contains(&info.counts.skipped_bytes),
        "{:?}",
        info.counts
    );
    // The numbers of CPU 1 jump by the content of the hole.
    assert!(
        (5900..6200).contains(&info.counts.lost),
        "{:?}",
        info.counts
    );
    assert!(
        info.damages[0].found.ends_with("in sdb.blktrace.1"),
        "{:?}",
        info.damages
    );
    assert!(events.len() > 6000 && events.is_sorted_by_key(|event| event.time_ns));
}

/// No other real trace is taken for this format, and each of this format is.
#[test]
fn sniffing_the_real_traces() {
    require!(RealTraces);
    let folder = real(".");
    let mut looked_at = 0;
    for directory in std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| Some(entry.ok()?.path()))
    {
        let Ok(files) = std::fs::read_dir(&directory) else {
            continue;
        };
        for file in files
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
        {
            let bytes = std::fs::read(&file).unwrap();
            let prefix = &bytes[..bytes.len().min(4096)];
            let answer = (blktrace::FORMAT.sniff)(prefix, bytes.len() < 4096);
            let ours = directory.ends_with("blktrace");
            assert_eq!(
                answer == plumb_trace::reader::Sniff::Yes,
                ours,
                "{}",
                file.display()
            );
            looked_at += 1;
        }
    }
    assert!(looked_at > 40, "{looked_at}");
}
