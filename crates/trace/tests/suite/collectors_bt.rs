//! Outputs of `align.bt` and `io-profiler.bt`. The layout is that of bpftrace 0.17; the numbers are small, so that sums can be done
//! by hand.

use plumb_trace::{CountedTime, Distribution, Layer, Measured, Op};

use crate::common::counts::{bucket, no_cut_and_no_flipped_bit_panics, read, sum};

const ALIGN: &str = "\
Attaching 4 probes...
5159 ms elapsed, units of 8 sectors

device 7,2
     211 I/O issued
     201 I/O misaligned, 2 block offset, 1024 byte offset
       3 I/O of odd length (1 percent)

@sectors_off[7, 2]: 
[0]                   10 |@@                                                  |
[2, 4)               201 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

4999 ms elapsed, units of 8 sectors

device 7,2
       5 I/O issued
       0 I/O misaligned, 0 block offset, 0 byte offset
       0 I/O of odd length (0 percent)

@sectors_off[7, 2]: 
[0]                    5 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|


@lengths[7, 2, 6144]: 3
@lengths[7, 2, 512]: 13
@lengths[7, 2, 8192]: 200
";

const PROFILE: &str = "\
Attaching 2 probes...
2026-11-26 23:59:55
@len_bytes[7, 2, RS]: 
[8K, 16K)            211 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

@len_bytes[7, 2, WS]: 
[512, 1K)              1 |@@                                                  |
[1K, 2K)               0 |                                                    |
[2K, 4K)               4 |@@@@@@@@@@                                          |

@ios[7, 2, WS]: 5
@ios[7, 2, RS]: 211
@bytes[7, 2, WS]: 12800
@bytes[7, 2, RS]: 1728512
2026-11-27 00:00:05
@len_bytes[7, 2, R]: 
[8K, 16K)              7 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

@ios[7, 2, R]: 7
@bytes[7, 2, R]: 57344


@bytes[7, 2, R]: 8192

@ios[7, 2, R]: 1

@len_bytes[7, 2, R]: 
[8K, 16K)              1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
";

const SECOND: i64 = 1_000_000_000;

fn seconds(histogram: &Distribution) -> Option<(i64, i64)> {
    let time = |time: CountedTime| (time.from_ns / SECOND, time.to_ns / SECOND);
    histogram.interval.map(time)
}

#[test]
fn each_interval_of_align_is_a_total() {
    let all = read(ALIGN);
    assert_eq!(all.info.counts.damaged, 0);
    assert_eq!(all.info.layers, [Layer::Request]);
    let totals: Vec<_> = all
        .totals
        .iter()
        .map(|totals| {
            (
                totals.subject.as_str(),
                totals.elapsed_ns,
                totals.ios,
                totals.misaligned_ios,
                totals.mean_offset_bytes,
                totals.odd_length_ios,
            )
        })
        .collect();
    assert_eq!(
        totals,
        [
            ("7,2", Some(5_159_000_000), 211, 201, 1024, 3),
            ("7,2", Some(4_999_000_000), 5, 0, 0, 0),
        ]
    );
    assert!(
        all.totals
            .iter()
            .all(|totals| (totals.start_unit_bytes, totals.len_unit_bytes) == (4096, 4096))
    );
    let [first, second, lengths] = &all.histograms[..] else {
        panic!("{:?}", all.histograms)
    };
    assert_eq!(first.measured, Measured::ResidueBytes);
    assert_eq!(first.buckets, [bucket(0, 0, 10), bucket(1024, 1536, 201)]);
    assert_eq!(sum(second), 5);
    assert_eq!((lengths.measured, lengths.op), (Measured::LenBytes, None));
    assert_eq!(
        lengths.buckets,
        [
            bucket(512, 512, 13),
            bucket(6144, 6144, 3),
            bucket(8192, 8192, 200),
        ]
    );
}

#[test]
fn intervals_of_the_profiler_have_times() {
    let all = read(PROFILE);
    assert_eq!(all.info.counts.damaged, 0);
    let found: Vec<_> = all
        .histograms
        .iter()
        .map(|one| {
            (
                one.subject.as_str(),
                one.op,
                sum(one),
                one.bytes,
                seconds(one),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("7,2", Some(Op::Read), 211, Some(1_728_512), Some((0, 10))),
            ("7,2", Some(Op::Write), 5, Some(12_800), Some((0, 10))),
            ("7,2", Some(Op::Read), 7, Some(57_344), Some((10, 20))),
            // Ctrl-C came at an unknown time.
            ("7,2", Some(Op::Read), 1, Some(8_192), Some((0, 0))),
        ]
    );
    assert_eq!(
        all.histograms[1].buckets,
        [
            bucket(512, 1023, 1),
            bucket(1024, 2047, 0),
            bucket(2048, 4095, 4)
        ]
    );
}

#[test]
fn damaged_lines_are_counted() {
    for (good, bad) in [
        ("[2, 4)               201", "[4, 2)               201"),
        ("[2, 4)               201", "[2, 4)               x"),
        ("[0]                   10", "[9]                   10"),
        ("     211 I/O issued", "     -11 I/O issued"),
        ("     201 I/O misaligned", "     212 I/O misaligned"),
        ("@lengths[7, 2, 512]: 13", "@lengths[7, 2, x]: 13"),
    ] {
        assert!(ALIGN.contains(good), "{good}");
        let all = read(&ALIGN.replacen(good, bad, 1));
        assert_eq!(all.info.counts.damaged, 1, "{bad}");
    }
}

#[test]
fn no_damage_panics() {
    no_cut_and_no_flipped_bit_panics(ALIGN);
    no_cut_and_no_flipped_bit_panics(PROFILE);
}
