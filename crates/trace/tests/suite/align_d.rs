//! Output of align.d: a run with its slips, the figures of the paper, and damage.

use plumb_testkit::{real_trace, require};
use plumb_trace::{AlignTotals, Measured};

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
        interval("120.000000005", 300, 190, 437, 10),
    );
    let all = read(&text);
    let totals = |elapsed_ns, ios, misaligned_ios, mean_offset_bytes, odd_length_ios| AlignTotals {
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
