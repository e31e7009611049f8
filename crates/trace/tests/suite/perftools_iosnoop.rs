//! iosnoop of perf-tools: its options, the example that ships with it, and damage.

use plumb_testkit::{real_trace, require};
use plumb_trace::{Op, UNKNOWN_NS, flags};

use crate::common::tool::{
    count, no_cut_and_no_flipped_bit_panics as no_cut_or_bit_panics, read, read_file, sums,
};

#[test]
fn iosnoop_of_perf_tools_with_and_without_times() {
    let rest = "COMM             PID    TYPE DEV      BLOCK        BYTES     LATms\n";
    let row = "jbd2/xvda1 212   212    WS   202,1    1066720      45056     41.52\n";
    let mut unknown = Vec::new();
    for (head, times, time_ns, device_ns) in [
        ("", "", UNKNOWN_NS, 41_520_000),
        ("STARTs ", "5.000001 ", 5_000_001_000, 41_520_000),
        ("ENDs ", "5.100000 ", 5_058_480_000, 41_520_000),
        (
            "STARTs ENDs ",
            "5.000001 5.041522 ",
            5_000_001_000,
            41_521_000,
        ),
    ] {
        let all = read(&format!(
            "Tracing block I/O. Ctrl-C to end.\n{head}{rest}{times}{row}"
        ));
        let (device, comm, event) = &all.events[0];
        assert_eq!(
            (device.as_str(), comm.as_str(), event.pid),
            ("202,1", "jbd2/xvda1 212", Some(212))
        );
        assert_eq!(
            (event.time_ns, event.device_ns),
            (time_ns, Some(device_ns)),
            "{head}"
        );
        assert_eq!((event.op, event.flags), (Op::Write, flags::SYNC));
        assert_eq!(event.start_bytes, 1_066_720 * 512);
        unknown.push(format!("{head}{:?}", all.info.cannot_tell));
    }
    insta::assert_snapshot!(unknown.join("\n"));
    let backwards = format!("STARTs ENDs {rest}5.1 5.0 {row}5.0 5.1 {row}");
    assert_eq!(read(&backwards).info.counts.damaged, 1);
}

#[test]
fn example_output_of_perf_tools_iosnoop() {
    require!(RealTraces);
    let path = real_trace("perf-tools/iosnoop_example.txt");
    let all = read_file(&path);
    assert_eq!(sums(&all), (95, 1_286_144, 1_140_459_000));
    for (name, ios) in [("202,1", 47), ("202,16", 34), ("202,32", 14)] {
        assert_eq!(count(&all, |(device, _, _)| device == name), ios, "{name}");
    }
    assert_eq!(count(&all, |(_, _, event)| event.time_ns != UNKNOWN_NS), 21);
    assert_eq!(count(&all, |(_, _, event)| event.op == Op::Read), 22 + 11);
    assert_eq!(
        count(&all, |(_, _, event)| event.flags & flags::META != 0),
        11
    );
    assert_eq!(all.info.counts.damaged, 0);
}

#[test]
fn no_cut_and_no_flipped_bit_panics() {
    no_cut_or_bit_panics(
        "STARTs ENDs COMM PID TYPE DEV BLOCK BYTES LATms\n1.0 1.1 x 1 R 8,0 8 512 100.00\n",
    );
}
