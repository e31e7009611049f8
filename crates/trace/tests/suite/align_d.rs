//! Output of align.d: a run with its slips, the figures of the paper, and damage.

use plumb_testkit::{real_trace, require};
use plumb_trace::{AlignTotals, Contradiction, Measured};

use crate::common::counts::{
    DISTRIBUTION, bucket, no_cut_and_no_flipped_bit_panics as no_cut_or_bit_panics, read, sum,
    the_text_before_an_endless_line_stays as before_an_endless_line, try_file,
};

fn interval(seconds: &str, ios: u64, misaligned: u64, byte_offset: u64, odd: u64) -> String {
    format!(
        "{seconds} seconds elapsed\n\n{ios:8} IOs issued\n{misaligned:8} IOs misaligned, {:8} block offset \
         {byte_offset:8} byte offset\n{odd:8} IOs non-multiple of 8KB\n{:8} Percent non-8k IOs\n\n\n",
        byte_offset / 512,
        odd * 100 / ios
    )
}

/// A run of one interval whose statements agree, but for those given: 12,000 I/O, 3,000 of them 2 sectors off and 1,500
/// between 4 and 7; 9,000 of 8 KiB, 2,000 of 8,704 bytes and 1,000 of 4 KiB.
fn run_with(misaligned: u64, byte_offset: u64, odd: u64, rows: &str, lengths: &str) -> String {
    let totals = interval("5.000000000", 12_000, misaligned, byte_offset, odd);
    format!(
        "{totals}{DISTRIBUTION}{rows}\nTotals\n\n IO size Count\n\n{lengths}\n IO misalignment Count\n\n\
         {DISTRIBUTION}{rows}\n{totals}"
    )
}

const ROWS: &str = "  -1 | 0\n   0 |@@@@ 7500\n   1 | 0\n   2 |@@ 3000\n   4 |@ 1500\n   8 | 0\n";
const LENGTHS: &str = "    8192     9000\n    8704     2000\n    4096     1000\n";

fn histogram(rows: [u64; 3]) -> String {
    format!(
        "\n{DISTRIBUTION}  -1 |   0\n   0 |@@@ {}\n   1 |@ {}\n   2 |@ {}\n   4 |  0\n\n",
        rows[0], rows[1], rows[2]
    )
}

#[test]
fn a_run_of_align_d_with_its_slips() {
    let text = format!(
        "{}{}{}{}Totals\n\n IO size Count\n\n  512  30\n  8192  270\n\n IO misalignment Count\n{}{}",
        interval("50.000000284", 100, 60, 512, 7),
        histogram([40, 20, 40]),
        interval("5.100000000", 150, 100, 400, 2),
        histogram([90, 60, 100]),
        histogram([110, 70, 120]),
        interval("120.000000005", 300, 190, 600, 30),
    );
    let all = read(&text);
    let totals = |elapsed_ns, ios, misaligned_ios, mean_offset_bytes, odd_length_ios| AlignTotals {
        subject: "all devices".to_owned(),
        elapsed_ns: Some(elapsed_ns),
        ios,
        misaligned_ios,
        start_unit_bytes: 4096,
        mean_offset_bytes,
        odd_length_ios,
        len_unit_bytes: 8192,
    };
    assert_eq!(
        all.totals,
        [
            totals(5_000_000_284, 100, 60, 512, 7),
            totals(5_100_000_000, 150, 100, 400, 2)
        ]
    );
    let [lengths, residues] = &all.histograms[..] else {
        panic!("{:?}", all.histograms)
    };
    assert_eq!(lengths.measured, Measured::LenBytes);
    assert_eq!(
        lengths.buckets,
        [bucket(512, 512, 30), bucket(8192, 8192, 270)]
    );
    assert_eq!(residues.measured, Measured::ResidueBytes);
    assert_eq!(
        residues.buckets[1..4],
        [
            bucket(0, 0, 110),
            bucket(512, 512, 70),
            bucket(1024, 1536, 120)
        ]
    );
    assert_eq!(all.info.counts.damaged, 0);
    for note in ["wrong divisor", "count 300 I/O, its intervals 250"] {
        assert!(
            all.info.notes.iter().any(|found| found.contains(note)),
            "{note}"
        );
    }
}

#[test]
fn align_d_without_a_whole_interval_gives_its_totals() {
    let text = format!(
        "Totals\n{}{}",
        histogram([1, 1, 1]),
        interval("0.300000000", 3, 2, 300, 1)
    );
    let all = read(&text);
    let [totals] = &all.totals[..] else {
        panic!("one")
    };
    assert_eq!(
        (totals.ios, totals.misaligned_ios, totals.elapsed_ns),
        (3, 2, None)
    );
    assert_eq!(all.histograms.iter().map(sum).collect::<Vec<_>>(), [3]);
}

#[test]
fn counts_of_align_d_that_cannot_be_are_damage() {
    let good = interval("5.000000000", 100, 60, 512, 7);
    for bad in [
        interval("5.000000000", 100, 101, 512, 7),
        interval("5.000000000", 100, 60, 4096, 7),
        interval("5.000000000", 100, 0, 512, 7),
        interval("5.000000000", 100, 60, 512, 101),
        interval("5.000000000", 100, 60, 512, 7).replace("     100 IOs", "     1oo IOs"),
        interval("NaN", 100, 60, 512, 7),
        interval("5.000000000", 100, 60, 512, 7).replace("100 IOs issued", "-100 IOs issued"),
        "     100 IOs issued\n".to_owned(),
    ] {
        let all = read(&format!("{good}{bad}{good}"));
        assert!(all.info.counts.damaged > 0, "{bad}");
        assert!(matches!(all.totals.len(), 2 | 3), "{bad}");
        assert!(
            all.totals.iter().all(|totals| totals.misaligned_ios == 60),
            "{bad}"
        );
    }
}

#[test]
fn statements_that_agree_are_no_contradiction() {
    // 3,000 × 1,024 bytes and 1,500 × 2,048 to 3,584 are 512 to 704 bytes an I/O.
    let all = read(&run_with(4500, 600, 3000, ROWS, LENGTHS));
    assert_eq!(all.info.contradictions, []);
    assert!(all.info.is_whole());
    let [lengths, _] = &all.histograms[..] else {
        panic!("{:?}", all.histograms)
    };
    assert_eq!(lengths.subject, all.totals[0].subject, "one device in all");
    let mut counts: Vec<_> = lengths
        .buckets
        .iter()
        .map(|b| (b.low, b.high, b.ios))
        .collect();
    counts.sort();
    let exact = |len, ios| (Some(len), Some(len), ios);
    assert_eq!(
        counts,
        [exact(4096, 1000), exact(8192, 9000), exact(8704, 2000)]
    );
}

#[test]
fn a_source_that_contradicts_itself_is_no_whole_source() {
    // The second heading: 8 lines of counts, 7 of a histogram, 4 down to the lengths, and 3 of these precede it.
    let line = 27;
    let issued = 12_000;
    let swapped = ROWS.replace("4 |@ 1500\n   8 | 0", "4 | 0\n   8 |@ 1500");
    let cases = [
        (
            run_with(4500, 600, 3000, &swapped, LENGTHS),
            vec![
                Contradiction::ImpossibleRemainder {
                    line,
                    from_sectors: 8,
                    unit_sectors: 8,
                    ios: 1500,
                },
                // 3,000 × 1,024 to 1,536 bytes, and 1,500 × 3,584 at most.
                Contradiction::MeanOffset {
                    line,
                    counted_low: 704,
                    counted_high: 832,
                    printed: 600,
                },
            ],
        ),
        (
            run_with(0, 0, 3000, ROWS, LENGTHS),
            vec![
                Contradiction::Misaligned {
                    line,
                    counted: 4500,
                    printed: 0,
                    issued,
                },
                // 3,000 × 1,024 to 1,536 bytes, and 1,500 × 2,048 to 3,584.
                Contradiction::MeanOffset {
                    line,
                    counted_low: 512,
                    counted_high: 832,
                    printed: 0,
                },
            ],
        ),
        (
            run_with(4500, 600, 3000, &ROWS.replace("7500", "2500"), LENGTHS),
            vec![Contradiction::HistogramSum {
                line,
                counted: 7000,
                issued,
            }],
        ),
        (
            run_with(4500, 900, 3000, ROWS, LENGTHS),
            vec![Contradiction::MeanOffset {
                line,
                counted_low: 512,
                counted_high: 832,
                printed: 900,
            }],
        ),
        (
            run_with(4500, 600, 3000, ROWS, &LENGTHS.replace("9000", "8000")),
            vec![Contradiction::LengthSum {
                counted: 11_000,
                issued,
            }],
        ),
        (
            run_with(4500, 600, 1000, ROWS, LENGTHS),
            vec![Contradiction::OddLengths {
                counted: 3000,
                printed: 1000,
                unit_bytes: 8192,
            }],
        ),
    ];
    for (text, expected) in cases {
        let all = read(&text);
        assert_eq!(all.info.contradictions, expected, "{text}");
        assert!(!all.info.is_whole(), "{text}");
    }
}

/// Sums by hand over the two figures. Figure 3: rows 0 to 8 are 4,253 + 6 + 33 + 27 = 4,319. Figure 5: 7 + 7 + 48 + 49.
#[test]
fn the_figures_of_the_paper_contradict_themselves() {
    require!(RealTraces);
    let all = try_file(&real_trace("../seeds/000_a8bb8adeb2159d78.txt")).expect("reads");
    let [line_3, line_5] = [106, 278];
    assert_eq!(
        all.info.contradictions,
        [
            Contradiction::ImpossibleRemainder {
                line: line_3,
                from_sectors: 8,
                unit_sectors: 8,
                ios: 27
            },
            Contradiction::Misaligned {
                line: line_3,
                counted: 6 + 33 + 27,
                printed: 71_682,
                issued: 72_627
            },
            Contradiction::HistogramSum {
                line: line_3,
                counted: 4319,
                issued: 72_627
            },
            Contradiction::Misaligned {
                line: line_5,
                counted: 111,
                printed: 0,
                issued: 94_878
            },
            Contradiction::HistogramSum {
                line: line_5,
                counted: 111,
                issued: 94_878
            },
        ]
    );
}

#[test]
fn the_figures_of_the_paper() {
    require!(RealTraces);
    let path = real_trace("../seeds/000_a8bb8adeb2159d78.txt");
    let all = try_file(&path).expect("reads");
    let found: Vec<_> = all
        .totals
        .iter()
        .map(|t| {
            (
                t.elapsed_ns,
                t.ios,
                t.misaligned_ios,
                t.mean_offset_bytes,
                t.odd_length_ios,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (Some(5_000_000_284), 72_627, 71_682, 1011, 484),
            (Some(5_000_007_182), 94_878, 0, 0, 629)
        ]
    );
    assert_eq!(all.info.counts.damaged, 0);
}

#[test]
fn no_cut_and_no_flipped_bit_panics() {
    no_cut_or_bit_panics(&format!(
        "Totals\n IO size Count\n 512 3\n{}{}",
        histogram([1, 1, 1]),
        interval("0.300000000", 3, 2, 300, 1)
    ));
}

#[test]
fn the_text_before_an_endless_line_stays() {
    before_an_endless_line(&interval("5.000000000", 100, 60, 512, 7));
}
