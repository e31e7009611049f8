//! DiskSim and MQSim: a real trace, the unit of time, and damage.

use plumb_testkit::require;
use plumb_trace::{Clock, Latency};

use crate::common::lines::{check_trace, read, read_real, tests_of_lines};

tests_of_lines!("disksim", "11413000 0 657728 16 1\n11565000 1 8 8 0\n");

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
    insta::assert_snapshot!(whole.info.notes.join("\n\n"));
}

#[test]
fn disksim_keeps_to_one_unit() {
    let whole = read(b"0 0 8 8 1\n1.5 0 8 8 1\n7 0 8 8 1\n2.25 0 8 8 1\n").unwrap();
    let times: Vec<i64> = whole.events.iter().map(|event| event.time_ns).collect();
    assert_eq!(
        (times, whole.info.counts.damaged),
        (vec![0, 1_500_000, 2_250_000], 1)
    );
    insta::assert_snapshot!(whole.info.notes.join("\n\n"));
    assert!(!whole.info.verified);
}
