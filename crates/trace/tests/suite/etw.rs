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
