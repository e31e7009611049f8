//! Disk tables of Windows Performance Analyzer: a real export, and damage.

use plumb_testkit::require;
use plumb_trace::{Event, Op};

use crate::common::lines::{count, read_real, tests_of_lines};

/// The headings, and two lines.
const SAMPLE: &str = "IO Type;Init Time (s);IO Time (\u{b5}s);Disk Service Time (\u{b5}s);Size (B);Min Offset;\
                      Max Offset;Disk\nRead;1,7;1.077,7;30,7;512;0x0;0x1FF;1\nFlush;1,8;2,0;1,0;0;0x0;0x0;1\n";

tests_of_lines!("wpa-csv", SAMPLE);

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
    assert_eq!(sum(|it| it.device_ns.unwrap()), 14_350_100);
    assert!(whole.events.iter().all(|event| event.queue_ns.is_none()));
    let times = || whole.events.iter().map(|event| event.time_ns);
    assert_eq!(times().min(), Some(1_079_943_800));
    assert_eq!(times().max(), Some(1_720_723_400));
    assert_eq!(whole.names.devices().len(), 1);
    assert_eq!(whole.names.word_of(whole.events[0].comm), Some("System"));
    assert!(whole.info.is_whole() && whole.info.verified);
}

/// The depth at each issue is the one that the file tells beside it (`QD/I`).
#[test]
fn depth_is_that_of_the_file() {
    require!(RealTraces);
    let path = plumb_testkit::require::real_trace("etw/wpaexporter-head.csv");
    let text = std::fs::read_to_string(path).expect("a file");
    let mut rows = text.lines().map(|line| line.split(';').collect::<Vec<_>>());
    let heads = rows.next().expect("headings");
    let at = |name: &str| {
        heads
            .iter()
            .position(|head| head.starts_with(name))
            .expect("a column")
    };
    let (init, depth) = (at("Init Time"), at("QD/I"));
    let whole = read_real("etw/wpaexporter-head.csv");
    for row in rows {
        let init_ns: i64 = row[init].replace(',', "").parse().expect("digits");
        let in_flight = whole.events.iter().filter(|event| {
            let end_ns = event.time_ns + event.device_ns.unwrap_or(0);
            event.time_ns < init_ns && end_ns > init_ns
        });
        let told: usize = row[depth].parse().expect("a depth");
        assert_eq!(in_flight.count(), told, "{row:?}");
    }
}

/// Four requests that wait for each other are four in flight: the service time alone would tell one after the other.
#[test]
fn queued_requests_are_in_flight() {
    let row = |number: u64, took: u64| {
        format!(
            "Read;1,0;{took},0;10,0;512;0x{:x};0x{:x};1\n",
            number << 9,
            (number << 9) + 511
        )
    };
    let head = SAMPLE.lines().next().expect("headings");
    let rows: String = (1..=4).map(|number| row(number, number * 10)).collect();
    let whole = crate::common::lines::read_as("wpa-csv", format!("{head}\n{rows}").as_bytes())
        .expect("a table");
    let found: Vec<_> = whole
        .events
        .iter()
        .map(|event| (event.time_ns, event.device_ns))
        .collect();
    let expected = [10_000, 20_000, 30_000, 40_000].map(|ns| (1_000_000_000, Some(ns)));
    assert_eq!(found, expected);
}
