//! Binary blktrace of records put together here byte by byte, in all four layouts.

use std::io::Cursor;

use plumb_trace::input::Input;
use plumb_trace::{
    Batch, Error, Event, Fill, Latency, LayerChoice, Op, ReadOptions, SourceInfo, flags, open,
};

#[derive(Clone, Copy)]
struct RecordLayout {
    version: u8,
    big: bool,
}

const LAYOUTS: [RecordLayout; 4] = [
    RecordLayout {
        version: 7,
        big: false,
    },
    RecordLayout {
        version: 7,
        big: true,
    },
    RecordLayout {
        version: 8,
        big: false,
    },
    RecordLayout {
        version: 8,
        big: true,
    },
];

/// A record's numbers: sequence, time, sector, bytes, action with its categories, process, CPU, error.
#[derive(Clone, Copy)]
struct Numbers(u32, u64, u64, u32, u64, u32, u32, u16);

/// 8,16 as the kernel packs it.
const DEVICE: u32 = 8 << 20 | 16;

impl RecordLayout {
    fn put(self, out: &mut Vec<u8>, number: u64, bytes: usize) {
        let all = number.to_be_bytes();
        let mut low = all[8 - bytes..].to_vec();
        if !self.big {
            low.reverse();
        }
        out.extend(low);
    }

    fn record(self, numbers: Numbers, data: &[u8]) -> Vec<u8> {
        let Numbers(sequence, time, sector, bytes, action, pid, cpu, error) = numbers;
        let mut out = Vec::new();
        self.put(&mut out, 0x6561_7400 | u64::from(self.version), 4);
        self.put(&mut out, sequence.into(), 4);
        self.put(&mut out, time, 8);
        self.put(&mut out, sector, 8);
        self.put(&mut out, bytes.into(), 4);
        if self.version == 7 {
            self.put(&mut out, action, 4);
            self.put(&mut out, pid.into(), 4);
        } else {
            self.put(&mut out, pid.into(), 4);
            self.put(&mut out, action, 8);
        }
        self.put(&mut out, DEVICE.into(), 4);
        self.put(&mut out, cpu.into(), 4);
        self.put(&mut out, error.into(), 2);
        self.put(&mut out, data.len() as u64, 2);
        out.resize(if self.version == 7 { 48 } else { 64 }, 0);
        out.extend(data);
        out
    }

    fn u32s(self, numbers: &[u32]) -> Vec<u8> {
        let mut out = Vec::new();
        numbers
            .iter()
            .for_each(|number| self.put(&mut out, (*number).into(), 4));
        out
    }
}

// Categories, above the action.
const READ: u64 = 1 << 16;
const WRITE: u64 = 1 << 17;
const FLUSH: u64 = 1 << 18;
const SYNC: u64 = 1 << 19;
const PASSTHROUGH: u64 = 1 << 25;
const NOTE: u64 = 1 << 26;
const DISCARD: u64 = 1 << 29;
const FUA: u64 = 1 << 31;
const ZONE_RESET: u64 = 1 << 33;
const WRITE_ZEROES: u64 = 1 << 38;
const CGROUP: u64 = 1 << 8;

fn read(bytes: Vec<u8>, layer: LayerChoice) -> Result<(Vec<Event>, SourceInfo, Batch), Error> {
    let input = Input::from_reader("records", Box::new(Cursor::new(bytes)))?;
    let mut reader = open::open_input(
        input,
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

#[test]
fn a_little_of_everything() {
    for layout in LAYOUTS {
        let mut bytes = Vec::new();
        let mut put = |numbers, data: &[u8]| bytes.extend(layout.record(numbers, data));
        let at = 5_000_000_000;
        put(
            Numbers(0, at, 0, 0, NOTE, 77, 0, 0),
            b"db writer\0\0\0\0\0\0\0",
        );
        put(
            Numbers(0, at, 0, 0, NOTE | 1, 0, 0, 0),
            &layout.u32s(&[1_600_000_000, 500]),
        );
        put(Numbers(0, at, 0, 0, NOTE | 2, 0, 0, 0), b"cfq idle");
        // From 8,17 at sector 100, to sector 2148.
        let from = [
            &(8u32 << 20 | 17).to_be_bytes()[..],
            &DEVICE.to_be_bytes(),
            &100u64.to_be_bytes(),
        ]
        .concat();
        put(Numbers(1, at + 1, 2148, 4096, WRITE | 15, 77, 0, 0), &from);
        let mut group = Vec::new();
        layout.put(&mut group, 4242, 8);
        put(
            Numbers(2, at + 2, 2148, 4096, WRITE | SYNC | CGROUP | 1, 77, 0, 0),
            &group,
        );
        put(
            Numbers(3, at + 3, 2148, 4096, WRITE | SYNC | 12, 77, 0, 0),
            b"",
        );
        put(
            Numbers(4, at + 4, 0, 36, READ | PASSTHROUGH | 7, 9, 0, 0),
            &[0x12, 0, 0, 0, 36, 0],
        );
        put(
            Numbers(5, at + 5, 2148, 4096, WRITE | SYNC | FUA | 7, 77, 0, 0),
            b"",
        );
        put(
            Numbers(6, at + 9, 2148, 4096, WRITE | SYNC | 8, 0, 0, 5),
            b"",
        );
        let (events, info, batch) = read(bytes, LayerChoice::All).unwrap();
        let [bio, request] = events[..] else {
            panic!("{events:?}")
        };
        assert_eq!((bio.cgroup, request.cgroup), (Some(4242), None));
        assert_eq!(
            (request.start_bytes, request.len_bytes, request.op),
            (2148 * 512, 4096, Op::Write)
        );
        assert_eq!((request.queue_ns, request.device_ns), (Some(2), Some(4)));
        assert_eq!(request.flags, flags::SYNC | flags::FUA | flags::FAILED);
        assert_eq!(
            (request.pid, batch.names.word_of(request.comm)),
            (Some(77), Some("db writer"))
        );
        assert_eq!(
            info.unix_ns_at_zero,
            Some(1_600_000_000_000_000_500 - 5_000_000_000)
        );
        let disk = &batch.names.devices()[request.device as usize];
        assert_eq!(
            (disk.name.as_str(), &disk.partitions),
            ("8,16", &vec![("8,17".to_owned(), 2048 * 512)])
        );
        assert_eq!(
            (info.tallies["passthrough"], info.tallies["message"]),
            (1, 1)
        );
        assert_eq!(
            (info.counts.lost, info.counts.damaged, info.counts.records),
            (0, 0, 9)
        );
        assert_eq!(info.verified, layout.version == 7 && !layout.big);
    }
}

/// A file of one CPU under any name: CPU 0 alone may be all there is, unless issues and completions do not meet.
#[test]
fn the_only_cpu_of_a_file() {
    let layout = RecordLayout {
        version: 7,
        big: false,
    };
    let check = |cpu: u32, elsewhere: u64, missing: u64| {
        let mut bytes = Vec::new();
        for at in 0..200u64 {
            let (ns, sector) = (1_000 + at * 10, at * 8);
            let done = if at < elsewhere {
                1 << 30 | sector
            } else {
                sector
            };
            let sequence = at as u32 * 2;
            bytes.extend(layout.record(
                Numbers(sequence + 1, ns, sector, 4096, READ | 7, 1, cpu, 0),
                b"",
            ));
            bytes.extend(layout.record(
                Numbers(sequence + 2, ns + 5, done, 4096, READ | 8, 0, cpu, 0),
                b"",
            ));
        }
        let (events, info, _) = read(bytes, LayerChoice::Lowest).unwrap();
        assert_eq!(
            (events.len(), info.counts.missing_files),
            (200, missing),
            "{cpu} {elsewhere}"
        );
        let is_timed = events.iter().any(|event| event.device_ns.is_some());
        assert_eq!(
            (is_timed, info.is_whole()),
            (missing == 0, missing == 0),
            "{cpu} {elsewhere}"
        );
    };
    check(0, 0, 0);
    check(0, 32, 0);
    check(0, 33, 1);
    check(5, 0, 5);
}

#[test]
fn operations() {
    let check = |version: u8, action: u64, bytes: u32, op: Op, bits: i32| {
        let layout = RecordLayout {
            version,
            big: false,
        };
        let record = layout.record(Numbers(1, 7, 8, bytes, action | 7, 1, 0, 0), b"");
        let (events, ..) = read(record, LayerChoice::Lowest).unwrap();
        assert_eq!(
            (events[0].op, events[0].flags),
            (op, bits),
            "{action:x} {bytes}"
        );
    };
    check(7, READ, 512, Op::Read, 0);
    check(7, READ | 1 << 27, 512, Op::Read, flags::AHEAD);
    check(7, WRITE | 1 << 28, 512, Op::Write, flags::META);
    check(7, WRITE | DISCARD, 512, Op::Discard, 0);
    check(7, READ | FLUSH, 0, Op::Flush, flags::PREFLUSH);
    check(
        7,
        WRITE | FLUSH | FUA,
        512,
        Op::Write,
        flags::PREFLUSH | flags::FUA,
    );
    check(7, READ, 0, Op::Other, 0);
    check(8, WRITE | WRITE_ZEROES, 512, Op::WriteZeroes, 0);
    check(8, WRITE | ZONE_RESET, 0, Op::Other, 0);
    check(8, WRITE | 1 << 32, 512, Op::Write, 0);
}

#[test]
fn losses_and_odd_records_are_reported() {
    let layout = LAYOUTS[0];
    let put = |numbers: &[Numbers]| -> Vec<u8> {
        numbers
            .iter()
            .flat_map(|numbers| layout.record(*numbers, b""))
            .collect()
    };
    let d = |sequence, time, cpu| {
        Numbers(
            sequence,
            time,
            8 * u64::from(sequence),
            4096,
            READ | 7,
            1,
            cpu,
            0,
        )
    };
    let (events, info, _) = read(
        put(&[d(1, 10, 0), d(5, 20, 0), d(6, 15, 0)]),
        LayerChoice::Lowest,
    )
    .unwrap();
    assert_eq!((events.len(), info.counts.lost), (3, 3));
    assert!(events.is_sorted_by_key(|event| event.time_ns));
    insta::assert_debug_snapshot!((info.latency, info.notes));

    let mut bytes = put(&[d(1, 10, 0)]);
    bytes.extend(layout.record(
        Numbers(0, 11, 0, 0, NOTE | 2, 0, 0, 0),
        b"dropped 17 events",
    ));
    let (_, info, _) = read(bytes, LayerChoice::Lowest).unwrap();
    assert_eq!(info.counts.lost, 17);
    assert!(
        info.notes
            .iter()
            .any(|note| note.contains("dropped 17 events")),
        "{:?}",
        info.notes
    );

    // An action that is not known yet is counted.
    let odd = put(&[d(1, 10, 0), Numbers(2, 11, 0, 0, READ | 40, 1, 0, 0)]);
    let (_, info, _) = read(odd, LayerChoice::Lowest).unwrap();
    assert_eq!((info.tallies["unknown"], info.counts.damaged), (1, 0));
}

#[test]
fn files_named_for_a_cpu() {
    let layout = LAYOUTS[0];
    let dir = plumb_testkit::temp_dir("cpu");
    let write = |cpu: u32, bytes: &[u8]| {
        std::fs::write(dir.path().join(format!("sda.blktrace.{cpu}")), bytes).unwrap();
    };
    let issue = |cpu, time| layout.record(Numbers(1, time, 8, 4096, READ | 7, 1, cpu, 0), b"");
    write(0, &issue(0, 10));
    write(
        1,
        &layout.record(Numbers(1, 25, 8, 4096, READ | 8, 0, 9, 0), b""),
    );
    write(2, b"");
    let piece = &open::pieces(&[dir.path().join("sda")])[0];
    let mut reader = open::open(piece, &ReadOptions::default()).unwrap();
    let mut batch = Batch::default();
    assert_eq!(reader.fill(&mut batch).unwrap(), Fill::Events);
    assert_eq!(batch.event(0).device_ns, Some(15));
    assert_eq!(reader.fill(&mut batch).unwrap(), Fill::End);
    let notes = reader.info().notes.join("\n\n");
    assert_eq!(reader.info().latency, Latency::Known);

    // A file of the set that is something else.
    write(2, b"8,0 text");
    let said = open::open(piece, &ReadOptions::default())
        .err()
        .unwrap()
        .to_string();
    let said = said.replace(dir.path().to_str().unwrap(), "FOLDER");
    insta::assert_snapshot!([notes, said].join("\n\n"));
}

#[test]
fn unreadable_records_are_rejected() {
    let layout = LAYOUTS[0];
    let good = layout.record(Numbers(1, 10, 8, 4096, READ | 7, 1, 0, 0), b"");
    let check = |bytes: Vec<u8>, events: usize, damaged: u64, skipped_bytes: u64| {
        let (found, info, _) = read(bytes, LayerChoice::Lowest).unwrap();
        assert_eq!(
            (found.len(), info.counts.damaged, info.counts.skipped_bytes),
            (events, damaged, skipped_bytes)
        );
    };
    check(good.clone(), 1, 0, 0);
    check(good[..47].to_vec(), 0, 1, 47);
    check(good[..4].to_vec(), 0, 1, 4);
    // A time after the year 2262, a CPU that cannot be, data beyond the end.
    let after_2262 = layout.record(Numbers(2, u64::MAX, 8, 4096, READ | 7, 1, 0, 0), b"");
    check([good.clone(), after_2262, good.clone()].concat(), 2, 1, 48);
    let cpu = layout.record(Numbers(2, 11, 8, 4096, READ | 7, 1, u32::MAX, 0), b"");
    check([good.clone(), cpu, good.clone()].concat(), 2, 1, 48);
    let mut long = good.clone();
    long[46..48].copy_from_slice(&u16::MAX.to_le_bytes());
    check([good.clone(), long, good.clone()].concat(), 2, 1, 48);
    // Data that is not there: the next record is found within it, and none is lost.
    let mut more = good.clone();
    more[46] = 8;
    check(
        [good.clone(), more, good.clone(), good.clone()].concat(),
        4,
        1,
        0,
    );
    // A place beyond the range of bytes; a flush has none.
    let far = layout.record(Numbers(2, 11, 1 << 55, 4096, READ | 7, 1, 0, 0), b"");
    check([good.clone(), far, good.clone()].concat(), 2, 1, 48);
    check(
        layout.record(Numbers(2, 11, u64::MAX, 0, READ | FLUSH | 7, 1, 0, 0), b""),
        1,
        0,
        0,
    );
    // Magic after magic, and nothing else.
    let magics = good[..4].repeat(300_000);
    let (events, info, _) = read(
        [good.clone(), magics, good.clone()].concat(),
        LayerChoice::Lowest,
    )
    .unwrap();
    assert_eq!((events.len(), info.counts.damaged), (2, 1));
    assert!(matches!(
        read(vec![7, 0x74], LayerChoice::Lowest),
        Err(Error::UnknownFormat { .. })
    ));
}

/// Everything is random but the magic: nothing panics, and no record is made up twice.
#[test]
fn noise() {
    let mut seed = 7u64;
    for round in 0..200 {
        let layout = LAYOUTS[round % 4];
        let mut bytes = layout.record(Numbers(1, 10, 8, 4096, READ | 7, 1, 0, 0), b"");
        for _ in 0..200 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let head = bytes[..4].to_vec();
            bytes.extend(if seed >> 40 & 1 == 0 {
                head
            } else {
                Vec::new()
            });
            bytes.extend(
                seed.to_le_bytes()
                    .iter()
                    .cycle()
                    .take((seed >> 50) as usize % 90),
            );
        }
        let length = bytes.len();
        let (events, info, _) = read(bytes, LayerChoice::All).unwrap();
        assert!(events.len() * 48 <= length && info.counts.skipped_bytes <= length as u64);
    }
}

/// A million records with known I/O: each event equals its source.
#[test]
fn a_synthetic_recording() {
    use plumb_testkit::workload::Mixed;
    use plumb_testkit::write::blkrecord::{Endian, Version};
    use plumb_testkit::write::blktrace::{Blktrace, create_files};
    use plumb_testkit::write::lifecycle::Shapes;

    let load = Mixed {
        seed: 3,
        events: 100_000,
        devices: 3,
        cpus: 4,
        ..Mixed::default()
    };
    let dir = plumb_testkit::temp_dir("synthetic");
    let base = dir.path().join("sds");
    let shapes = Shapes {
        cpus: 4,
        ..Shapes::default()
    };
    let mut writer = Blktrace::new(
        create_files(&base, 4).unwrap(),
        Version::V8,
        Endian::Little,
        shapes,
    );
    plumb_testkit::write_all(&mut writer, load.iter()).unwrap();
    let mut reader = open::open(&open::pieces(&[base])[0], &ReadOptions::default()).unwrap();
    let (mut batch, mut expected, mut first_ns) = (Batch::default(), load.iter(), None);
    let (mut ns, mut other_ns, mut count) = (0, 0, 0);
    // End of the last I/O at a place, and how many began before it.
    let (mut open_until, mut ambiguous) = (std::collections::HashMap::new(), 0);
    while let Fill::Events = reader.fill(&mut batch).unwrap() {
        for event in batch.events() {
            let meant = expected.next().unwrap();
            let first_ns = *first_ns.get_or_insert(event.time_ns - meant.time_ns);
            let found = (
                event.time_ns - first_ns,
                event.start_bytes,
                event.len_bytes,
                event.queue_ns,
            );
            assert_eq!(
                found,
                (
                    meant.time_ns,
                    meant.start_bytes,
                    meant.len_bytes,
                    meant.queue_ns
                )
            );
            assert_eq!(event.op.letter(), meant.op.letter());
            assert_eq!(event.pid, i32::try_from(meant.pid).ok());
            assert_eq!(batch.names.word_of(event.comm), Some(meant.comm));
            ns += event.device_ns.unwrap() - meant.device_ns.unwrap();
            // Two flushes, or two equal I/O at one place, cannot be distinguished at completion.
            let place = (
                meant.device,
                (meant.len_bytes > 0).then_some(meant.start_bytes),
            );
            let until = open_until.entry(place).or_insert(0);
            ambiguous += 2 * u32::from(meant.time_ns < *until);
            *until = meant.complete_ns().unwrap().max(*until);
            other_ns += u32::from(event.device_ns != meant.device_ns);
            count += 1;
        }
    }
    assert_eq!((count, ns, expected.next()), (100_000, 0, None));
    println!("{other_ns} latencies of {ambiguous} ambiguous ones are those of another");
    assert!(
        other_ns <= ambiguous && ambiguous < 100,
        "{other_ns} of {ambiguous}"
    );
    assert_eq!(reader.info().counts.unmatched_issues, 0);
}
