//! biosnoop.bt: the example that ships with it, and damage.

use plumb_testkit::{real_trace, require};
use plumb_trace::Fill;

use crate::common::tool::{
    no_cut_and_no_flipped_bit_panics as no_cut_or_bit_panics, read_file,
    the_text_before_an_endless_line_stays as before_an_endless_line,
};

/// One line.
const SAMPLE: &str = "TIME(ms) DISK COMM PID LAT(ms)\n611 nvme0n1 bash 4179 10\n";

#[test]
fn example_output_of_bpftrace_biosnoop() {
    require!(RealTraces);
    let path = real_trace("bpftrace/biosnoop_example.txt");
    let all = read_file(&path);
    let [Fill::Distribution(latencies)] = &all.extras[..] else {
        panic!("one histogram")
    };
    assert_eq!(latencies.subject, "nvme0n1");
    let ms = [0, 3, 6, 8, 10, 12, 13, 14, 15, 17, 25, 32].map(|ms: i64| ms * 1_000_000);
    let ios = [3, 1, 2, 1, 3, 1, 3, 2, 1, 1, 1, 1];
    let found: Vec<_> = latencies
        .buckets
        .iter()
        .map(|bucket| (bucket.low, bucket.high, bucket.ios))
        .collect();
    let wanted: Vec<_> = ms
        .iter()
        .zip(ios)
        .map(|(&low, ios)| (Some(low), Some(low + 999_999), ios))
        .collect();
    assert_eq!(found, wanted);
    assert!(all.info.cannot_tell.contains(&"start alignment") && all.events.is_empty());
}

#[test]
fn no_cut_and_no_flipped_bit_panics() {
    no_cut_or_bit_panics(SAMPLE);
}

#[test]
fn the_text_before_an_endless_line_stays() {
    before_an_endless_line(SAMPLE);
}
