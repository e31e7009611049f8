//! Histograms of DTrace and bcc: rows, the examples that ship with the tools, and damage.

use plumb_testkit::{real_trace, require};
use plumb_trace::{Layer, Measured, Op};

use crate::common::counts::{
    DISTRIBUTION, bucket, no_cut_and_no_flipped_bit_panics as no_cut_or_bit_panics, read, sum,
    the_text_before_an_endless_line_stays as before_an_endless_line, try_file,
};

#[test]
fn rows_of_quantize_are_ranges_of_counts() {
    let table = format!(
        "  22349  tar cf /dev/null\\0\n\n{DISTRIBUTION}  -4 | 1\n  -1 |@ 2\n  0 |@@ 3\n  1 | 4\n  8 | 5\n"
    );
    let all = read(&format!(
        "# ./seeksize.d\nTracing... Hit Ctrl-C to end.\n^C\n{table}"
    ));
    let [seeks] = &all.histograms[..] else {
        panic!("one")
    };
    assert_eq!(
        (seeks.measured, seeks.subject.as_str()),
        (Measured::SeekBytes, "22349 tar cf /dev/null")
    );
    assert_eq!(
        seeks.buckets,
        [
            bucket(-7 * 512, -4 * 512, 1),
            bucket(-512, -512, 2),
            bucket(0, 0, 3),
            bucket(512, 512, 4),
            bucket(8 * 512, 15 * 512, 5),
        ]
    );
    // The same table under no tool's name may be anything.
    let all = read(&table);
    assert!(all.histograms.is_empty());
    insta::assert_snapshot!(all.info.notes.join("\n\n"));
}

#[test]
fn a_bare_histogram_of_lengths_is_taken_for_that_with_a_note() {
    let all = read(&format!(
        "\n  sd\n{DISTRIBUTION}  256 | 0\n  512 |@ 7\n  65536 |@@ 9\n  131072 | 0\n"
    ));
    let [lengths] = &all.histograms[..] else {
        panic!("one")
    };
    assert_eq!(
        (lengths.measured, lengths.subject.as_str(), sum(lengths)),
        (Measured::LenBytes, "sd", 16)
    );
    assert_eq!(lengths.buckets[2], bucket(65_536, 131_071, 9));
    insta::assert_snapshot!(all.info.notes.join("\n\n"));
    for other in [
        "  8 | 1\n  16 | 1\n",
        "  134217728 | 1\n",
        "  < 0 | 0\n  0 | 5\n  >= 9 | 1\n",
        "  2303 | 5\n",
    ] {
        assert!(
            read(&format!("sd\n{DISTRIBUTION}{other}"))
                .histograms
                .is_empty(),
            "{other}"
        );
    }
}

/// Two intervals of `io-profiler.d`, ten seconds apart over midnight, as `printa("%s %s\\n%@d\\n", @)` prints them.
#[test]
fn intervals_of_the_profiler_have_times() {
    let head = DISTRIBUTION;
    let all = read(&format!(
        "2026 Nov 24 23:59:58\nsd0 R\n\n{head}  2048 | 0\n  4096 |@@ 12\n  8192 |@ 3\n  16384 | 0\n\n\
         sd0 W\n\n{head}  256 | 0\n  512 |@ 1\n  1024 | 0\n\n\
         2026 Nov 25 00:00:08\nsd0 R\n\n{head}  2048 | 0\n  4096 |@ 5\n  8192 | 0\n\n"
    ));
    assert_eq!(all.info.counts.damaged, 0);
    let second = 1_000_000_000;
    let found: Vec<_> = all
        .histograms
        .iter()
        .map(|one| {
            let time = one
                .interval
                .map(|time| (time.from_ns / second, time.to_ns / second));
            (one.subject.as_str(), one.op, sum(one), time)
        })
        .collect();
    assert_eq!(
        found,
        [
            ("sd0", Some(Op::Read), 15, Some((0, 10))),
            ("sd0", Some(Op::Write), 1, Some((0, 10))),
            ("sd0", Some(Op::Read), 5, Some((10, 20))),
        ]
    );
    assert_eq!(all.info.layers, [Layer::Bio]);
}

#[test]
fn damaged_rows_of_a_histogram_are_counted() {
    for bad in [
        "x | 5",
        "1024 | NaN",
        "1024 |",
        "1023 | 5",
        "256 | 5",
        "9223372036854775808 | 1",
        "1024 | -5",
    ] {
        let all = read(&format!("bitesize\n{DISTRIBUTION} 512 |@ 7\n {bad}\n"));
        assert_eq!(
            (all.histograms.len(), all.info.counts.damaged),
            (1, 1),
            "{bad}"
        );
        assert_eq!(sum(&all.histograms[0]), 7, "{bad}");
    }
    let head = "Process Name = 'x y'\n     Kbytes              : count     distribution\n";
    for bad in [
        "4 -> 2 : 1",
        "-4 -> 7 : 1",
        "4 -> 9223372036854775807 : 1",
        "4 -> 7 : x",
        "0 -> 1 : 1 |*|",
    ] {
        let all = read(&format!(
            "{head}  0 -> 1          : 3        |****|\n  {bad}\n"
        ));
        assert_eq!(all.info.counts.damaged, 1, "{bad}");
        assert_eq!(
            (all.histograms[0].subject.as_str(), sum(&all.histograms[0])),
            ("x y", 3)
        );
        assert_eq!(all.histograms[0].buckets, [bucket(0, 2047, 3)]);
    }
}

#[test]
fn example_outputs_of_quantize_and_bitesize() {
    require!(RealTraces);
    for (path, histograms, ios, measured, layer) in [
        (
            "dtrace/bitesize_example.txt",
            6,
            7364,
            Measured::LenBytes,
            Layer::Bio,
        ),
        (
            "dtrace/seeksize_example.txt",
            5,
            8523,
            Measured::SeekBytes,
            Layer::Bio,
        ),
        (
            "bcc/bitesize_example.txt",
            9,
            2540,
            Measured::LenBytes,
            Layer::Request,
        ),
    ] {
        let path = real_trace(path);
        let all = try_file(&path).expect("reads");
        assert_eq!(
            (
                all.histograms.len(),
                all.histograms.iter().map(sum).sum::<u64>()
            ),
            (histograms, ios)
        );
        assert!(
            all.histograms
                .iter()
                .all(|found| found.measured == measured && !found.subject.is_empty())
        );
        assert_eq!(
            (all.info.layers.as_slice(), all.info.counts.damaged),
            (&[layer][..], 0)
        );
    }
    let path = real_trace("bcc/bitesize_example.txt");
    let all = try_file(&path).expect("reads");
    let of = |name: &str| {
        all.histograms
            .iter()
            .find(|found| found.subject == name)
            .map(sum)
    };
    assert_eq!(
        (of("dd"), of("cat"), of("ntpd"), of("kworker/u128:1")),
        (Some(500), Some(1926), Some(104), Some(3))
    );
}

#[test]
fn no_cut_and_no_flipped_bit_panics() {
    no_cut_or_bit_panics(&format!(
        "# ./seeksize.d\n 1  x\\0\n{DISTRIBUTION}  -4 | 1\n  0 |@@ 3\n  8 | 5\n"
    ));
}

#[test]
fn the_text_before_an_endless_line_stays() {
    before_an_endless_line(&format!("bitesize\n{DISTRIBUTION}  512 | 1\n"));
}
