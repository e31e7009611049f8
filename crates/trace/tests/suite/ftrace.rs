//! Block events of perf script and ftrace, compared with awk's counts of a real recording.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plumb_trace::input::Input;
use plumb_trace::{
    Batch, Error, Event, Fill, Layer, LayerChoice, Op, ReadOptions, SourceInfo, UNKNOWN_NS, flags,
    open,
};

use crate::common::completions_without_length;

fn read_input(input: Input, layer: LayerChoice) -> Result<(Vec<Event>, SourceInfo, Batch), Error> {
    let mut reader = open::open_input(
        input,
        &ReadOptions {
            layer,
            ..ReadOptions::default()
        },
    )?;
    let mut batch = Batch::default();
    let (mut events, mut last) = (Vec::new(), Batch::default());
    while let Fill::Events = reader.fill(&mut batch)? {
        events.extend(batch.events());
        last = batch.clone();
    }
    Ok((events, reader.info().clone(), last))
}

fn read_file(path: &Path, layer: LayerChoice) -> (Vec<Event>, SourceInfo, Batch) {
    read_input(Input::open(path).unwrap(), layer).unwrap()
}

fn read_text(text: &str, layer: LayerChoice) -> Result<(Vec<Event>, SourceInfo, Batch), Error> {
    let bytes = std::io::Cursor::new(text.as_bytes().to_vec());
    read_input(Input::from_reader("text", Box::new(bytes))?, layer)
}

fn bundled(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/traces")
        .join(name)
}

/// `NAME VALUE` lines that awk made.
fn counts(name: &str) -> BTreeMap<String, i64> {
    let text = std::fs::read_to_string(bundled(name)).unwrap();
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs
        .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
        .collect()
}

#[test]
fn the_bundled_recording_of_postgres() {
    let path = bundled("postgres-sector34.txt.gz");
    let counts = counts("postgres-sector34.counts");
    let (events, info, batch) = read_file(&path, LayerChoice::Lowest);
    assert_eq!(info.layers, [Layer::Bio, Layer::Request]);
    assert_eq!(events.len() as i64, counts["block_rq_issue"]);
    for (op, letter) in [(Op::Read, "R"), (Op::Write, "W"), (Op::Flush, "F")] {
        let of_op: Vec<&Event> = events.iter().filter(|event| event.op == op).collect();
        let us = of_op
            .iter()
            .filter_map(|event| event.device_ns)
            .map(|ns| ns / 1000);
        let all: Vec<i64> = us.collect();
        let found = [
            all.len() as i64,
            all.iter().sum(),
            *all.iter().min().unwrap(),
            *all.iter().max().unwrap(),
        ];
        let of = |name: &str| counts[&format!("device_us.{letter}.{name}")];
        let expected = [
            counts[&format!("paired.{letter}")],
            of("sum"),
            of("min"),
            of("max"),
        ];
        assert_eq!(found, expected, "{letter}");
        assert_eq!(
            of_op.len() as i64,
            counts[&format!("block_rq_issue.{letter}")]
        );
        if op != Op::Flush {
            let sectors: u64 = of_op.iter().map(|event| event.len_bytes / 512).sum();
            assert_eq!(
                sectors as i64,
                counts[&format!("block_rq_issue.sectors.{letter}")]
            );
            assert!(of_op.iter().all(|event| event.start_bytes / 512 % 8 == 2));
        }
    }
    let c = &info.counts;
    assert_eq!(
        (c.unmatched_issues as i64, c.unmatched_completions),
        (counts["issue_unpaired"], 0)
    );
    assert_eq!(
        completions_without_length(&info) as i64,
        counts["complete_unpaired.no_length"]
    );
    assert_eq!(
        (c.records as i64, c.damaged, c.out_of_order),
        (counts["lines"], 0, 0)
    );
    assert_eq!(events[0].time_ns, 1_816_960_287_000);
    assert_eq!(
        (events[0].pid, batch.names.word_of(events[0].comm)),
        (Some(5566), Some("postgres"))
    );
    assert_eq!(batch.names.devices()[0].name, "7,0");

    let (bios, info, _) = read_file(&path, LayerChoice::Only(Layer::Bio));
    assert_eq!(bios.len() as i64, counts["block_bio_queue"]);
    assert!(bios.iter().all(|bio| bio.device_ns.is_none()) && info.counts.damaged == 0);
}

#[test]
fn lines_from_elsewhere() {
    plumb_testkit::require!(RealTraces);
    let folder = plumb_testkit::real_traces().expect("required before");
    let (events, info, batch) = read_file(
        &folder.join("perf/perf_script_3.14.txt"),
        LayerChoice::Lowest,
    );
    let found: Vec<_> = events
        .iter()
        .map(|event| (event.start_bytes / 512, event.len_bytes, event.device_ns))
        .collect();
    assert_eq!(
        found,
        [
            (21_997_888, 4096, Some(153_000)),
            (21_997_896, 4096, Some(185_000))
        ]
    );
    assert_eq!(
        (info.format, info.clock.word(), info.counts.damaged),
        ("ftrace", "boot", 0)
    );
    assert_eq!(batch.names.devices()[0].name, "202,16");

    let path = folder.join("perf/ftrace_5.x_flush_error.txt");
    let (events, info, _) = read_file(&path, LayerChoice::Lowest);
    let flush = Event {
        device_ns: Some(210_000),
        ..events[0]
    };
    assert_eq!((events.len(), events[0]), (1, flush));
    assert_eq!(
        (flush.op, flush.time_ns, flush.len_bytes),
        (Op::Flush, 19_654_923_352_000, 0)
    );
    assert_eq!(
        (
            info.counts.unmatched_completions,
            completions_without_length(&info)
        ),
        (0, 1)
    );
}

#[test]
fn sniffing_the_real_traces() {
    plumb_testkit::require!(RealTraces);
    let folder = plumb_testkit::real_traces().expect("required before");
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
            let prefix = &bytes[..bytes.len().min(64 * 1024)];
            let answer = (plumb_trace::format::ftrace::FORMAT.sniff)(prefix, true);
            let ours = directory.ends_with("perf");
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

const LINES: &str = "# tracer: nop
#
cpus=2
 a b-c-7 [000] d..1 1.000001: block_bio_remap: 8,0 WS 2082 + 8 <- (8,1) 34
 a b-c-7 [000] d..1 1.000002: block_bio_queue: 8,0 WS 2082 + 8 [a b-c]
 a b-c-7 [000] d..1 1.000003: block_split: 8,0 WS 2082 / 2086 [a b-c]
 a b-c-7 [000] d..1 1.000004: sched_switch: prev_comm=x
 a b-c-7 [000] d..1 1.000005: block_plug: [a b-c]
 a b-c-7 [000] d..1 1.000006: block_rq_insert: 8,0 WS 4096 () 2082 + 8 be,0,4 [a b-c]
 a b-c-7 [000] d..1 1.000009: block_rq_issue: 8,0 WS 4096 () 2082 + 8 be,0,4 [a b-c]
\tffffffff81234567 blk_mq_start_request ([kernel])
 <idle>-0 [001] d.h1 1.000020: block_rq_requeue: 8,0 WS () 2082 + 8 be,0,4 [0]
 a b-c-7 [000] d..1 1.000030: block_rq_issue: 8,0 WS 4096 () 2082 + 8 be,0,4 [a b-c]
 <idle>-0 [001] d.h1 1.000040: block_rq_complete: 8,0 WS () 2082 + 8 be,0,4 [-5]
 a b-c-7 [000] d..1 1.000041: block_rq_issue: 8,0 N 36 (12 00 00 00 24 00) 0 + 0 [a b-c]
";

#[test]
fn one_request_from_queue_to_failure() {
    let (events, info, batch) = read_text(LINES, LayerChoice::Lowest).unwrap();
    let [event] = events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(
        (event.op, event.flags),
        (Op::Write, flags::SYNC | flags::FAILED)
    );
    // Issued twice; the first was taken back, and the insert belonged to it.
    assert_eq!(
        (event.time_ns, event.queue_ns, event.device_ns),
        (1_000_030_000, None, Some(10_000))
    );
    assert_eq!(
        (event.pid, batch.names.word_of(event.comm)),
        (Some(7), Some("a b-c"))
    );
    assert_eq!(
        batch.names.devices()[0].partitions,
        [("8,1".to_owned(), 2048 * 512)]
    );
    assert_eq!(
        (
            info.tallies["passthrough"],
            info.tallies["block_split"],
            info.counts.damaged
        ),
        (1, 1, 0)
    );
    assert_eq!(info.counts.unmatched_issues, 0);
    let (both, ..) = read_text(LINES, LayerChoice::All).unwrap();
    assert_eq!(
        both.iter().map(|event| event.layer).collect::<Vec<_>>(),
        [Layer::Bio, Layer::Request]
    );
}

#[test]
fn bios_alone_have_the_latency_of_bios() {
    let text = "fio 9 [001] 5.000000001: block:block_bio_queue: 253,0 R 0 + 8 [fio]
fio 9 [001] 5.000000500: block:block_bio_complete: 253,0 R 0 + 8 [0]
";
    let (events, info, _) = read_text(text, LayerChoice::Lowest).unwrap();
    assert_eq!(
        (events[0].layer, events[0].device_ns),
        (Layer::Bio, Some(499))
    );
    assert_eq!(info.counts.unmatched_completions, 0);
}

#[test]
fn damaged_lines_are_counted() {
    let good = "fio 9 [001] 5.0: block:block_rq_issue: 8,0 R 4096 () 8 + 8 [fio]\n";
    for (bad, place) in [
        (
            "fio 9 [001] 5.0: block:block_rq_issue: 8,0 R 4096 () 8 + x [fio]",
            1,
        ),
        (
            "fio 9 [001] 5.0: block:block_rq_issue: 8,0 R 4096 () 36028797018963968 + 8 [fio]",
            1,
        ),
        (
            "fio 9 [001] 5.0: block:block_rq_issue: 8,0 R 4096 () 8 + 36028797018963968 [fio]",
            1,
        ),
        ("fio 9 [001] 5.0: block:block_rq_issue: 8,0 R 4096 (", 1),
        (
            "fio 9 [001] 99999999999.0: block:block_rq_issue: 8,0 R 4096 () 8 + 8 [fio]",
            1,
        ),
        (
            "fio 9 [001] NaN: block:block_rq_issue: 8,0 R 4096 () 8 + 8 [fio]",
            1,
        ),
        ("\u{0}\u{1}\u{2}", 1),
        ("CPU:3 [LOST 12 EVENTS]", 0),
    ] {
        let (events, info, _) =
            read_text(&format!("{good}{bad}\n{good}"), LayerChoice::Lowest).unwrap();
        assert_eq!((events.len(), info.counts.damaged), (2, place), "{bad}");
        assert_eq!(info.counts.lost, if place == 0 { 12 } else { 0 });
    }
    let endless = format!("{good}{}", "x".repeat(3 << 20));
    let (events, info, _) = read_text(&endless, LayerChoice::Lowest).unwrap();
    assert_eq!((events.len(), info.counts.damaged), (1, 1));
    assert!(matches!(
        read_text("x", LayerChoice::Lowest),
        Err(Error::UnknownFormat { .. })
    ));
    assert!(matches!(
        read_text(good, LayerChoice::Only(Layer::Bio)),
        Err(Error::NoLayer { .. })
    ));
    assert_ne!(UNKNOWN_NS, 0);
}

/// Any single byte of a good text may be anything.
#[test]
fn flipped_bits_harm_one_line() {
    let whole = read_text(LINES, LayerChoice::All).unwrap().0.len();
    for at in 0..LINES.len() {
        for bit in 0..8 {
            let mut bytes = LINES.as_bytes().to_vec();
            bytes[at] ^= 1 << bit;
            let input = Input::from_reader("text", Box::new(std::io::Cursor::new(bytes))).unwrap();
            if let Ok((events, ..)) = read_input(input, LayerChoice::All) {
                assert!(events.len() <= whole + 1, "byte {at}, bit {bit}");
            }
        }
    }
}
