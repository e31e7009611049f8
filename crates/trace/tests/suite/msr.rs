//! MSR Cambridge CSV: a real excerpt, and damage.

use plumb_testkit::require;
use plumb_trace::{Clock, Latency, Layer};

use crate::common::lines::{check_trace, header_line as header_line_of, read_real, tests_of_lines};

/// Two lines.
const SAMPLE: &str = "128166372003061629,hm,1,Read,3072,512,413\n\
                      128166372003061630,hm,1,Write,1024,2048,99\n";

tests_of_lines!("msr", SAMPLE);

#[test]
fn header_line() {
    header_line_of(
        "msr",
        "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
        SAMPLE,
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
