//! The CSV and simple text formats against real traces, and against damage.
//!
//! Expected numbers come from `EXPECTED.json` beside the real traces, or were counted with awk and Python.

use plumb_testkit::{real_trace, require};
use std::collections::BTreeMap;

use plumb_trace::format::FORMATS;
use plumb_trace::input::Input;
use plumb_trace::open::{open, open_input, pieces};
use plumb_trace::{
    Batch, Clock, Error, Event, Fill, Latency, Layer, LayerChoice, Names, Op, ReadOptions, Reader,
    SourceInfo,
};
use serde_json::Value;

const OURS: [&str; 10] = [
    "msr",
    "systor",
    "alibaba",
    "tencent",
    "spc",
    "disksim",
    "fio-iolog",
    "wpa-csv",
    "xperf",
    "oracleGeneral",
];

struct Whole {
    events: Vec<Event>,
    names: Names,
    info: SourceInfo,
}

fn drain(mut reader: Box<dyn Reader>) -> Result<Whole, Error> {
    let (mut batch, mut events, mut names) = (Batch::default(), Vec::new(), Names::default());
    while reader.fill(&mut batch)? != Fill::End {
        events.extend(batch.events());
        names = (*batch.names).clone();
    }
    Ok(Whole {
        events,
        names,
        info: reader.info().clone(),
    })
}

fn read_real(path: &str) -> Whole {
    let piece = pieces(&[real_trace(path)]).remove(0);
    drain(open(&piece, &ReadOptions::default()).unwrap()).unwrap()
}

fn input(text: &[u8]) -> Result<Input, Error> {
    Input::from_reader("memory", Box::new(std::io::Cursor::new(text.to_vec())))
}

fn read_as(format: &str, text: &[u8]) -> Result<Whole, Error> {
    let options = ReadOptions {
        format: Some(format.to_owned()),
        ..ReadOptions::default()
    };
    drain(open_input(input(text)?, &options)?)
}

fn read(text: &[u8]) -> Result<Whole, Error> {
    drain(open_input(input(text)?, &ReadOptions::default())?)
}

fn count(events: &[Event], what: impl Fn(&Event) -> bool) -> u64 {
    events.iter().filter(|event| what(event)).count() as u64
}

/// Holds one section of the expectations (all I/O, or one operation) against the events.
fn check_section(events: &[Event], expected: &Value, name: &str) {
    let number = |key: &str| {
        expected[key]
            .as_u64()
            .unwrap_or_else(|| panic!("{name}: {key}"))
    };
    let counted = |key: &str| {
        expected[key]["count"]
            .as_u64()
            .unwrap_or_else(|| panic!("{name}: {key}"))
    };
    assert_eq!(events.len() as u64, number("n"), "{name}");
    for unit in [512, 4096, 8192, 16_384, 65_536, 131_072, 1_048_576] {
        let found = count(events, |event| event.start_bytes % unit != 0);
        assert_eq!(
            found,
            counted(&format!("start_not_mod_{unit}")),
            "{name}: start, {unit}"
        );
    }
    for unit in [512, 4096, 8192] {
        let found = count(events, |event| event.len_bytes % unit != 0);
        assert_eq!(
            found,
            counted(&format!("len_not_mult_{unit}")),
            "{name}: length, {unit}"
        );
    }
    for unit in [4096, 8192] {
        let end = |event: &Event| (event.start_bytes + event.len_bytes) % unit;
        let found = count(events, |event| {
            event.start_bytes % unit != 0 || end(event) != 0
        });
        assert_eq!(
            found,
            counted(&format!("start_or_end_not_mod_{unit}")),
            "{name}: ends, {unit}"
        );
    }
    for (sectors, ios) in expected["start_mod_4096_in_sectors"].as_object().unwrap() {
        let found = count(events, |event| {
            (event.start_bytes % 4096 / 512).to_string() == *sectors
        });
        assert_eq!(found, ios.as_u64().unwrap(), "{name}: sector {sectors}");
    }
    for (size, ios) in expected["size_hist_top20_exact"].as_object().unwrap() {
        let found = count(events, |event| event.len_bytes.to_string() == *size);
        assert_eq!(found, ios.as_u64().unwrap(), "{name}: size {size}");
    }
    for (size, ios) in expected["size_hist_pow2_upper"].as_object().unwrap() {
        let found = count(events, |event| {
            event.len_bytes.next_power_of_two().max(512).to_string() == *size
        });
        assert_eq!(found, ios.as_u64().unwrap(), "{name}: size up to {size}");
    }
    let cells = |event: &Event| {
        (event.start_bytes + event.len_bytes).div_ceil(4096) - event.start_bytes / 4096
    };
    assert_eq!(
        events.iter().map(cells).sum::<u64>(),
        number("blocks4k_touched"),
        "{name}"
    );
    let least = events
        .iter()
        .map(|event| event.len_bytes.div_ceil(4096))
        .sum::<u64>();
    assert_eq!(least, number("blocks4k_minimum_ceil_len"), "{name}");
    let (min, max) = (
        &expected["size_min_max_mean"][0],
        &expected["size_min_max_mean"][1],
    );
    assert_eq!(
        events.iter().map(|event| event.len_bytes).min(),
        min.as_u64(),
        "{name}"
    );
    assert_eq!(
        events.iter().map(|event| event.len_bytes).max(),
        max.as_u64(),
        "{name}"
    );
    let end = events
        .iter()
        .map(|event| event.start_bytes + event.len_bytes)
        .max();
    assert_eq!(end, expected["max_end_byte"].as_u64(), "{name}");
}

/// I/O that start where the one before them on the same device (and of the same operation) ended.
fn sequential(events: &[Event], by_op: bool) -> u64 {
    let mut ends = BTreeMap::new();
    count_mut(events, |event| {
        let key = (event.device, if by_op { event.op } else { Op::Read });
        let before = ends.insert(key, event.start_bytes + event.len_bytes);
        before == Some(event.start_bytes)
    })
}

fn count_mut(events: &[Event], mut what: impl FnMut(&Event) -> bool) -> u64 {
    events.iter().map(|event| u64::from(what(event))).sum()
}

/// Holds a whole trace against the expectations of its file.
fn check_trace(path: &str, whole: &Whole, time_zero: i128) {
    let text = std::fs::read_to_string(real_trace("EXPECTED.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let expected = &all[path];
    let events = &whole.events[..];
    let of = |op: Op| {
        events
            .iter()
            .filter(|event| event.op == op)
            .copied()
            .collect::<Vec<_>>()
    };
    check_section(events, &expected["all"], path);
    for (letter, op) in [("R", Op::Read), ("W", Op::Write)] {
        check_section(&of(op), &expected[letter], letter);
        assert_eq!(
            of(op).len() as u64,
            expected["ops"][letter].as_u64().unwrap()
        );
        let bytes = of(op).iter().map(|event| event.len_bytes).sum::<u64>();
        assert_eq!(bytes, expected["bytes_by_op"][letter].as_u64().unwrap());
    }
    let devices = expected["devices"].as_object().unwrap();
    assert_eq!(whole.names.devices().len(), devices.len());
    for (name, ios) in devices {
        let id = whole
            .names
            .find_device(name)
            .unwrap_or_else(|| panic!("{path}: no device {name}"));
        assert_eq!(
            count(events, |event| event.device == id),
            ios.as_u64().unwrap(),
            "{name}"
        );
    }
    let (any, same) = (
        "sequential_same_dev_any_op_file_order",
        "sequential_same_dev_same_op_file_order",
    );
    assert_eq!(sequential(events, false), expected[any].as_u64().unwrap());
    assert_eq!(sequential(events, true), expected[same].as_u64().unwrap());
    let times = || {
        events
            .iter()
            .map(|event| i128::from(event.time_ns) + time_zero)
    };
    let found = [
        times().next(),
        times().next_back(),
        times().min(),
        times().max(),
    ];
    for (found, expected) in found
        .iter()
        .zip(expected["t_first_last_min_max_ns"].as_array().unwrap())
    {
        assert_eq!(
            found.unwrap().to_string(),
            expected.to_string(),
            "{path}: time"
        );
    }
    assert_eq!(
        whole.info.counts.out_of_order,
        expected["out_of_order_records"].as_u64().unwrap()
    );
    assert_eq!(whole.info.counts.events, events.len() as u64);
    assert!(
        whole.info.is_whole() && whole.info.verified,
        "{:?}",
        whole.info
    );
}

#[test]
fn msr_to_the_last_io() {
    require!(RealTraces);
    let path = "msr/msr-cambridge1-sample.csv";
    let whole = read_real(path);
    // 1601 to 1970 in ns; beyond i64 together with the times, as the expectations are.
    check_trace(path, &whole, 11_644_473_600 * 1_000_000_000);
    let responses: Vec<i64> = whole
        .events
        .iter()
        .map(|event| event.device_ns.unwrap())
        .collect();
    let found = [
        responses.iter().sum::<i64>(),
        *responses.iter().min().unwrap(),
        *responses.iter().max().unwrap(),
    ];
    assert_eq!(
        found,
        [989_497_500, 68_600, 28_412_500],
        "100 times response_time_100ns_sum_min_max"
    );
    assert_eq!((whole.info.format, whole.info.clock), ("msr", Clock::Unix));
    assert_eq!(
        (whole.info.latency, whole.events[0].layer),
        (Latency::Known, Layer::Request)
    );
}

#[test]
fn mqsim_to_the_last_io() {
    require!(RealTraces);
    let path = "mqsim/wsrch-small.trace";
    let whole = read_real(path);
    check_trace(path, &whole, 0);
    assert_eq!(
        (whole.info.format, whole.info.clock),
        ("disksim", Clock::Start)
    );
    assert!(matches!(whole.info.latency, Latency::None(_)));
    assert!(
        whole
            .info
            .notes
            .iter()
            .any(|note| note.contains("taken as ns")),
        "{:?}",
        whole.info.notes
    );
}

/// The MQSim trace is the SPC one, converted by others: both readers have to see the same I/O.
#[test]
fn spc_as_converted_by_others() {
    require!(RealTraces);
    let spc = read_real("spc/WebSearch-sample.spc");
    let mqsim = read_real("mqsim/wsrch-small.trace");
    assert_eq!((spc.info.format, spc.events.len()), ("spc", 10));
    let name =
        |whole: &Whole, event: &Event| whole.names.devices()[event.device as usize].name.clone();
    for (one, other) in spc.events.iter().zip(&mqsim.events) {
        assert_eq!(name(&spc, one), name(&mqsim, other));
        assert_eq!((one.time_ns, one.op), (other.time_ns, other.op));
        assert_eq!(
            (one.start_bytes, one.len_bytes),
            (other.start_bytes, other.len_bytes)
        );
    }
}

#[test]
fn fio_to_the_last_io() {
    require!(RealTraces);
    let path = "fio-iolog/local_v3.iolog";
    let whole = read_real(path);
    let text = std::fs::read_to_string(real_trace("EXPECTED.json")).unwrap();
    let expected = &serde_json::from_str::<Value>(&text).unwrap()[path];
    let number = |value: &Value| value.as_u64().unwrap();
    for (name, key) in [
        ("read", "read"),
        ("write", "write"),
        ("sync", "sync"),
        ("add", "FILE:add"),
        ("open", "FILE:open"),
        ("close", "FILE:close"),
    ] {
        assert_eq!(
            whole.info.tallies.get(name),
            Some(&number(&expected["ops"][key])),
            "{name}"
        );
    }
    let moving: Vec<Event> = whole
        .events
        .iter()
        .filter(|event| matches!(event.op, Op::Read | Op::Write))
        .copied()
        .collect();
    assert_eq!(
        count(&moving, |event| event.op == Op::Read),
        number(&expected["ops"]["read"])
    );
    assert_eq!(moving.len() as u64, number(&expected["rw"]));
    assert_eq!(
        moving.iter().map(|event| event.len_bytes).sum::<u64>(),
        number(&expected["bytes"])
    );
    assert_eq!(
        count(&moving, |event| event.start_bytes % 4096 != 0),
        number(&expected["start_not_mod_4096"])
    );
    assert_eq!(
        count(&moving, |event| event.len_bytes % 4096 != 0),
        number(&expected["len_not_mult_4096"])
    );
    // Counted with Python: the offsets' sum, the first and last I/O; two syncs, whose offsets mean nothing.
    assert_eq!(
        moving.iter().map(|event| event.start_bytes).sum::<u64>(),
        426_351_616
    );
    assert_eq!(
        whole.events.first().map(|event| event.time_ns),
        Some(159_000)
    );
    assert_eq!(
        whole.events.last().map(|event| event.time_ns),
        Some(13_494_000)
    );
    let syncs: Vec<&Event> = whole
        .events
        .iter()
        .filter(|event| event.op == Op::Flush)
        .collect();
    assert_eq!(
        syncs.iter().map(|it| it.time_ns).collect::<Vec<_>>(),
        [4_823_000, 10_932_000]
    );
    assert!(
        syncs
            .iter()
            .all(|it| it.start_bytes == 0 && it.len_bytes == 0)
    );
    assert!(whole.events.iter().all(|event| event.layer == Layer::Vfs));
    assert_eq!(whole.names.devices()[0].name, "f.dat");
    assert_eq!(whole.names.word_of(whole.events[0].file), Some("f.dat"));
    assert!(whole.info.is_whole() && whole.info.verified);
}

#[test]
fn windows_export_in_german_numbers() {
    require!(RealTraces);
    let whole = read_real("etw/wpaexporter-head.csv");
    let sum = |what: fn(&Event) -> i64| whole.events.iter().map(what).sum::<i64>();
    assert_eq!(
        [Op::Read, Op::Write, Op::Flush].map(|op| count(&whole.events, |it| it.op == op)),
        [46, 2, 2]
    );
    assert_eq!(sum(|it| it.len_bytes as i64), 6_539_776);
    assert_eq!(sum(|it| it.start_bytes as i64), 4_530_715_583_488);
    assert_eq!(sum(|it| it.device_ns.unwrap()), 11_081_700);
    assert_eq!(
        sum(|it| it.queue_ns.unwrap() + it.device_ns.unwrap()),
        14_350_100
    );
    let init = |it: &Event| it.time_ns - it.queue_ns.unwrap();
    assert_eq!(whole.events.iter().map(init).min(), Some(1_079_943_800));
    assert_eq!(whole.events.iter().map(init).max(), Some(1_720_723_400));
    assert_eq!(whole.names.devices().len(), 1);
    assert_eq!(whole.names.word_of(whole.events[0].comm), Some("System"));
    assert!(whole.info.is_whole() && whole.info.verified);
}

#[test]
fn excerpts() {
    require!(RealTraces);
    let check = |path: &str, format, verified, sums: (usize, u64, u64, u64, i128)| {
        let whole = read_real(path);
        let events = &whole.events;
        let found = (
            events.len(),
            count(events, |event| event.op == Op::Write),
            events.iter().map(|event| event.start_bytes).sum(),
            events.iter().map(|event| event.len_bytes).sum(),
            events.iter().map(|event| i128::from(event.time_ns)).sum(),
        );
        assert_eq!(found, sums, "{path}");
        assert_eq!((whole.info.format, whole.info.verified), (format, verified));
        assert!(whole.info.is_whole(), "{path}");
    };
    let alibaba_ns = (7 * 1_577_808_000_000_000 + 3527) * 1000;
    check(
        "cloud/alibaba-7-lines.csv",
        "alibaba",
        false,
        (7, 5, 307_019_595_776, 118_784, alibaba_ns),
    );
    let tencent_ns = 15_383_231_999 * 1_000_000_000;
    check(
        "cloud/tencent-10-lines.csv",
        "tencent",
        false,
        (10, 3, 1_776_291_684_352, 698_368, tencent_ns),
    );
    let systor = (1, 0, 899_056_122_368, 131_072, 1_456_095_145_133_076_000);
    check("cloud/systor-1-line.csv", "systor", false, systor);
    check(
        "etw/xperf_dumper_1line.txt",
        "xperf",
        false,
        (1, 0, 0x1_8f0b_8000, 4096, (8612 - 283) * 1000),
    );
}

/// Which of the formats here takes which of the real files; all others are left to other formats.
#[test]
fn no_other_file_is_taken() {
    require!(RealTraces);
    let root = real_trace("");
    let mut seen = 0;
    for folder in std::fs::read_dir(root)
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().is_dir())
    {
        let folder_name = folder.file_name().into_string().unwrap();
        for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
            let bytes = std::fs::read(file.path()).unwrap();
            let prefix = &bytes[..bytes.len().min(4096)];
            let taken: Vec<&str> = FORMATS
                .iter()
                .filter(|it| OURS.contains(&it.name))
                .filter(|it| {
                    (it.sniff)(prefix, bytes.len() < 4096) == plumb_trace::reader::Sniff::Yes
                })
                .map(|it| it.name)
                .collect();
            let name = file.file_name().into_string().unwrap();
            let expected: &[&str] = match (&*folder_name, &*name) {
                ("msr", _) => &["msr"],
                ("mqsim", _) => &["disksim"],
                ("spc", _) => &["spc"],
                ("fio-iolog", _) => &["fio-iolog"],
                ("etw", "xperf_dumper_1line.txt") => &["xperf"],
                ("etw", _) => &["wpa-csv"],
                ("cloud", "alibaba-7-lines.csv") => &["alibaba"],
                ("cloud", "tencent-10-lines.csv") => &["tencent"],
                ("cloud", "systor-1-line.csv") => &["systor"],
                _ => &[],
            };
            assert_eq!(taken, expected, "{folder_name}/{name}");
            seen += 1;
        }
    }
    assert!(seen > 60, "only {seen} files");
}

const WPA_HEADER: &str = "IO Type;Init Time (s);IO Time (\u{b5}s);Disk Service Time (\u{b5}s);Size (B);Min Offset;\
                          Max Offset;Disk";

/// Two lines of each format, with what has to come before them.
fn samples() -> Vec<(&'static str, String)> {
    let xperf = "BeginHeader\nDiskRead, TimeStamp, ByteOffset, IOSize, ElapsedTime, DiskNum, DiskSvcTime\nEndHeader\n\
                 DiskRead, 700, 0x1000, 0x200, 30, 0, 20\nDiskRead, 900, 0x1200, 0x200, 30, 0, 20\n";
    let own = |text: &str| text.to_owned();
    vec![
        (
            "msr",
            own(
                "128166372003061629,hm,1,Read,3072,512,413\n128166372003061630,hm,1,Write,1024,2048,99\n",
            ),
        ),
        (
            "systor",
            own("1456095145.133076000,0.000806000,R,0,4096,512\n1456095145.2,,,1,8192,512\n"),
        ),
        (
            "alibaba",
            own("419,W,4096,16384,1577808144360767\n7,R,0,512,1577808144360768\n"),
        ),
        (
            "tencent",
            own("1538323200,12910952,128,1,1063\n1538323201,8,8,0,1063\n"),
        ),
        ("spc", own("0,240840,32768,W,0.011565\n1,8,512,r,0.5\n")),
        ("disksim", own("11413000 0 657728 16 1\n11565000 1 8 8 0\n")),
        (
            "fio-iolog",
            own("fio version 3 iolog\n18 f.dat read 4096 512\n424 f.dat sync 0 0\n"),
        ),
        (
            "fio-iolog",
            own("fio version 2 iolog\nf.dat write 4096 512\nf.dat wait 500 0\nf.dat trim 0 4096\n"),
        ),
        (
            "wpa-csv",
            format!(
                "{WPA_HEADER}\nRead;1,7;1.077,7;30,7;512;0x0;0x1FF;1\nFlush;1,8;2,0;1,0;0;0x0;0x0;1\n"
            ),
        ),
        ("xperf", own(xperf)),
    ]
}

#[test]
fn two_lines_of_each() {
    for (format, text) in samples() {
        let sniffed = read(text.as_bytes()).unwrap();
        assert_eq!(
            (sniffed.info.format, sniffed.events.len()),
            (format, 2),
            "{text}"
        );
        let crlf = text.replace('\n', "\r\n");
        let marked = [b"\xef\xbb\xbf", text.trim_end().as_bytes()].concat();
        for other in [crlf.as_bytes(), &marked] {
            let whole = read(other).unwrap();
            assert_eq!(
                (whole.info.format, whole.events),
                (format, sniffed.events.clone()),
                "{text}"
            );
            assert!(whole.info.is_whole());
        }
        assert_eq!(sniffed.info.layers, [sniffed.events[0].layer]);
        let other = LayerChoice::Only(Layer::Bio);
        let refused = open_input(
            input(text.as_bytes()).unwrap(),
            &ReadOptions {
                layer: other,
                ..Default::default()
            },
        );
        assert!(
            matches!(
                refused.err(),
                Some(Error::NoLayer {
                    asked: Layer::Bio,
                    ..
                })
            ),
            "{format}"
        );
    }
}

#[test]
fn header_lines() {
    for (format, header) in [
        (
            "msr",
            "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
        ),
        ("systor", "Timestamp,Response,IOType,LUN,Offset,Size"),
        ("alibaba", "device_id,opcode,offset,length,timestamp"),
        ("tencent", "Timestamp,Offset,Size,IOType,VolumeID"),
    ] {
        let (_, text) = samples()
            .into_iter()
            .find(|(name, _)| *name == format)
            .unwrap();
        let whole = read(format!("{header}\n{text}").as_bytes()).unwrap();
        assert_eq!((whole.info.format, whole.events.len()), (format, 2));
        assert!(whole.info.is_whole(), "{format}");
    }
}

/// Cut anywhere, a trace keeps every event of the lines before the cut.
#[test]
fn cut_off() {
    for (format, text) in samples() {
        let whole = read_as(format, text.as_bytes()).unwrap();
        for cut in 1..text.len() {
            let lines = text.as_bytes()[..cut]
                .iter()
                .filter(|&&byte| byte == b'\n')
                .count();
            let all_lines = text.lines().count();
            let Ok(part) = read_as(format, &text.as_bytes()[..cut]) else {
                assert!(lines < all_lines - 1, "{format}, cut at {cut}");
                continue;
            };
            if lines == all_lines - 1 {
                // The cut may leave a shorter time, with which the last line comes first.
                assert!(
                    part.events.contains(&whole.events[0]),
                    "{format}, cut at {cut}"
                );
            }
            assert!(part.events.len() <= 2);
        }
    }
}

/// One bit off anywhere: no panic, and of two lines the other one stays.
#[test]
fn bits_flipped() {
    for (format, text) in samples() {
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                let in_lines = at > text.len() - text.lines().last().unwrap().len() - 1;
                match read_as(format, &bytes) {
                    Ok(whole) => {
                        assert!(!in_lines || !whole.events.is_empty(), "{format} {at}.{bit}")
                    }
                    Err(Error::Malformed { .. }) => assert!(!in_lines, "{format} {at}.{bit}"),
                    Err(other) => panic!("{format} {at}.{bit}: {other}"),
                }
            }
        }
    }
}

#[test]
fn damaged_lines_are_counted_and_placed() {
    for (format, text) in samples() {
        let mut lines: Vec<&str> = text.lines().collect();
        let last = lines.len() - 1;
        lines.insert(last, "NaN,-1,NaN;-1 -1 nonsense");
        let whole = read_as(format, lines.join("\n").as_bytes()).unwrap();
        if format == "xperf" {
            // Of an unknown kind, which is no damage there.
            continue;
        }
        assert_eq!(
            (whole.events.len(), whole.info.counts.damaged),
            (2, 1),
            "{format}"
        );
        let said = whole.info.damages[0].to_string();
        assert!(
            said.starts_with(&format!("line {}: found ", last + 1)),
            "{said}"
        );
    }
}

#[test]
fn nothing_and_endless_lines() {
    for (format, text) in samples() {
        assert!(matches!(
            read_as(format, b"").err(),
            Some(Error::Empty { .. })
        ));
        for endless in [
            vec![b'1'; 3 << 20],
            vec![b','; 3 << 20],
            vec![0; 3 << 20],
            vec![b' '; 3 << 20],
        ] {
            let alone = read_as(format, &endless);
            assert!(
                matches!(alone.err(), Some(Error::Malformed { .. })),
                "{format}"
            );
            let after = read_as(format, &[text.as_bytes(), &endless].concat()).unwrap();
            assert_eq!(
                (after.events.len(), after.info.counts.damaged),
                (2, 1),
                "{format}"
            );
        }
    }
}

#[test]
fn fio_version_2_has_the_times_of_its_waits() {
    let text =
        b"fio version 2 iolog\nf add\nf open\nf read 0 512\nf wait 500 0\nf read 512 512\nf wait 250 0\n\
                 f write 0 512\nf close\n";
    let whole = read(text).unwrap();
    let times: Vec<i64> = whole.events.iter().map(|event| event.time_ns).collect();
    assert_eq!(
        (times, whole.info.clock),
        (vec![0, 500_000, 750_000], Clock::Start)
    );
    assert!(!whole.info.verified);
    let whole = read(b"fio version 2 iolog\nf read 0 512\n").unwrap();
    assert_eq!(whole.info.clock, Clock::Unknown);
    assert!(whole.info.cannot_tell.contains(&"times"));
}

#[test]
fn disksim_keeps_to_one_unit() {
    let whole = read(b"0 0 8 8 1\n1.5 0 8 8 1\n7 0 8 8 1\n2.25 0 8 8 1\n").unwrap();
    let times: Vec<i64> = whole.events.iter().map(|event| event.time_ns).collect();
    assert_eq!(
        (times, whole.info.counts.damaged),
        (vec![0, 1_500_000, 2_250_000], 1)
    );
    assert!(
        whole
            .info
            .notes
            .iter()
            .any(|note| note.contains("taken as ms"))
    );
    assert!(!whole.info.verified);
}

#[test]
fn oracle_general_is_refused_with_the_reason() {
    let record = |k: u32| {
        [
            &(k / 9).to_le_bytes()[..],
            &u64::from(k).to_le_bytes(),
            &4096u32.to_le_bytes(),
            &(-1i64).to_le_bytes(),
        ]
        .concat()
    };
    let bytes: Vec<u8> = (0..500).flat_map(record).collect();
    for refused in [read(&bytes), read_as("oracleGeneral", b"anything")] {
        let Some(error @ Error::Refused { .. }) = refused.err() else {
            panic!("not refused")
        };
        assert!(error.to_string().contains("first access"), "{error}");
    }
}
