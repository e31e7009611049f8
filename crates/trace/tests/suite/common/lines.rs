//! Formats with an I/O a line: their real traces against counts made by others, and damage.
//!
//! Expected numbers come from `EXPECTED.json` beside the real traces, or were counted with awk and Python.

use std::collections::BTreeMap;

use plumb_testkit::real_trace;
use plumb_trace::input::Input;
use plumb_trace::open::{open, open_input, pieces};
use plumb_trace::{
    Batch, Error, Event, Fill, Layer, LayerChoice, Names, Op, ReadOptions, Reader, SourceInfo,
};
use serde_json::Value;

pub struct Whole {
    pub events: Vec<Event>,
    pub names: Names,
    pub info: SourceInfo,
}

pub fn drain(mut reader: Box<dyn Reader>) -> Result<Whole, Error> {
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

pub fn read_real(path: &str) -> Whole {
    let piece = pieces(&[real_trace(path)]).remove(0);
    drain(open(&piece, &ReadOptions::default()).unwrap()).unwrap()
}

pub fn input(text: &[u8]) -> Result<Input, Error> {
    Input::from_reader("memory", Box::new(std::io::Cursor::new(text.to_vec())))
}

pub fn read_as(format: &str, text: &[u8]) -> Result<Whole, Error> {
    let options = ReadOptions {
        format: Some(format.to_owned()),
        ..ReadOptions::default()
    };
    drain(open_input(input(text)?, &options)?)
}

pub fn read(text: &[u8]) -> Result<Whole, Error> {
    drain(open_input(input(text)?, &ReadOptions::default())?)
}

pub fn count(events: &[Event], what: impl Fn(&Event) -> bool) -> u64 {
    events.iter().filter(|event| what(event)).count() as u64
}

/// Holds one section of the expectations (all I/O, or one operation) against the events.
pub fn check_section(events: &[Event], expected: &Value, name: &str) {
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
pub fn sequential(events: &[Event], by_op: bool) -> u64 {
    let mut ends = BTreeMap::new();
    count_mut(events, |event| {
        let key = (event.device, if by_op { event.op } else { Op::Read });
        let before = ends.insert(key, event.start_bytes + event.len_bytes);
        before == Some(event.start_bytes)
    })
}

pub fn count_mut(events: &[Event], mut what: impl FnMut(&Event) -> bool) -> u64 {
    events.iter().map(|event| u64::from(what(event))).sum()
}

/// Holds a whole trace against the expectations of its file.
pub fn check_trace(path: &str, whole: &Whole, time_zero: i128) {
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

/// Holds an excerpt against its number of I/O, of writes, and the sums of starts, lengths and times.
pub fn check_excerpt(path: &str, format: &str, sums: (usize, u64, u64, u64, i128)) {
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
    assert_eq!((whole.info.format, whole.info.verified), (format, false));
    assert!(whole.info.is_whole(), "{path}");
}

/// The tests that each format of lines has to pass, for a text that ends in two of its lines and gives two I/O. Formats that
/// may begin with a line of headings add a test with it.
macro_rules! tests_of_lines {
    ($format:literal, $text:expr) => {
        #[test]
        fn two_lines() {
            crate::common::lines::two_lines($format, &$text);
        }

        #[test]
        fn cut_off() {
            crate::common::lines::cut_off($format, &$text);
        }

        #[test]
        fn bits_flipped() {
            crate::common::lines::bits_flipped($format, &$text);
        }

        #[test]
        fn damaged_lines_are_counted_and_placed() {
            crate::common::lines::damaged_lines_are_counted_and_placed($format, &$text);
        }

        #[test]
        fn nothing_and_endless_lines() {
            crate::common::lines::nothing_and_endless_lines($format, &$text);
        }
    };
}

pub(crate) use tests_of_lines;

pub fn two_lines(format: &str, text: &str) {
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

/// Cut anywhere, a trace keeps every event of the lines before the cut.
pub fn cut_off(format: &str, text: &str) {
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

/// One bit off anywhere: no panic, and of two lines the other one stays.
pub fn bits_flipped(format: &str, text: &str) {
    for at in 0..text.len() {
        for bit in 0..8 {
            let mut bytes = text.as_bytes().to_vec();
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

pub fn damaged_lines_are_counted_and_placed(format: &str, text: &str) {
    let mut lines: Vec<&str> = text.lines().collect();
    let last = lines.len() - 1;
    lines.insert(last, "NaN,-1,NaN;-1 -1 nonsense");
    let whole = read_as(format, lines.join("\n").as_bytes()).unwrap();
    if format == "xperf" {
        // A line of an unknown kind is no damage there.
        return;
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

pub fn nothing_and_endless_lines(format: &str, text: &str) {
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

/// A line of headings before the lines is passed over.
pub fn header_line(format: &str, header: &str, text: &str) {
    let whole = read(format!("{header}\n{text}").as_bytes()).unwrap();
    assert_eq!((whole.info.format, whole.events.len()), (format, 2));
    assert!(whole.info.is_whole(), "{format}");
}
