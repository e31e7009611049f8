//! Histograms of vscsiStats: a real output, and damage.

use plumb_testkit::{real_trace, require};
use plumb_trace::{Bucket, Measured, Op};

use crate::common::counts::{
    bucket, no_cut_and_no_flipped_bit_panics as no_cut_or_bit_panics, read, sum,
    the_text_before_an_endless_line_stays as before_an_endless_line, try_file,
};

const VSCSI_HEAD: &str = ",virtual machine worldGroupID,20,virtual disk handleID,8 (scsi0:0)\n";

fn vscsi(what: &str, count: u64, rows: &str) -> String {
    format!(
        "Histogram: {what}{VSCSI_HEAD}min,-3\nmax,9\nmean,1\ncount,{count}\nFrequency,Histogram Bucket Limit\n{rows}"
    )
}

#[test]
fn limits_of_vscsistats_become_buckets_in_bytes_and_ns() {
    let open = |low, high, ios| Bucket { low, high, ios };
    for (what, measured, op, first, second, last, extremes) in [
        (
            "IO lengths of Write commands",
            Measured::LenBytes,
            Some(Op::Write),
            (Some(0), Some(1)),
            (Some(2), Some(4)),
            Some(5),
            (-3, 9, 1),
        ),
        // One block from the last block of the command before is 0 bytes from its end.
        (
            "distance (in LBNs) between successive commands",
            Measured::SeekBytes,
            None,
            (None, Some(0)),
            (Some(512), Some(1536)),
            Some(2048),
            (-2048, 4096, 0),
        ),
        (
            "latency of Read IOs in Microseconds (us)",
            Measured::DeviceNs,
            Some(Op::Read),
            (Some(0), Some(1999)),
            (Some(2000), Some(4999)),
            Some(5000),
            (-3000, 9000, 1000),
        ),
        (
            "latency of IO interarrival time for Reads in Microseconds (us)",
            Measured::InterarrivalNs,
            Some(Op::Read),
            (Some(0), Some(1999)),
            (Some(2000), Some(4999)),
            Some(5000),
            (-3000, 9000, 1000),
        ),
        (
            "number of outstanding IOs when a new IO is issued",
            Measured::Depth,
            None,
            (Some(0), Some(1)),
            (Some(2), Some(4)),
            Some(5),
            (-3, 9, 1),
        ),
    ] {
        let all = read(&vscsi(what, 15, "1,1\n4,4\n10,4\n"));
        let [histogram] = &all.histograms[..] else {
            panic!("{what}")
        };
        assert_eq!((histogram.measured, histogram.op), (measured, op), "{what}");
        assert_eq!(
            histogram.buckets,
            [
                open(first.0, first.1, 1),
                open(second.0, second.1, 4),
                open(last, None, 10)
            ],
            "{what}"
        );
        assert_eq!(histogram.min_max_mean, Some(extremes), "{what}");
        assert_eq!(histogram.subject, "vm 20 disk 8 (scsi0:0)");
    }
}

#[test]
fn damaged_sections_of_vscsistats_are_left_out_and_counted() {
    let good = vscsi("IO lengths of commands", 5, "1,1\n4,4\n0,4\n");
    for (bad, damaged) in [
        (vscsi("IO lengths of commands", 6, "1,1\n4,4\n0,4\n"), 1),
        (vscsi("IO lengths of commands", 1, "1,1\nNaN,4\n"), 1),
        (vscsi("IO lengths of commands", 5, "1,4\n4,1\n"), 1),
        (
            vscsi("IO lengths of commands", 0, "18446744073709551615,1\n1,2\n"),
            1,
        ),
        (vscsi("latency of IOs", 1, "1,9223372036854775807\n"), 1),
        (
            vscsi(
                "distance (in LBNs) between successive commands",
                1,
                "1,-9223372036854775808\n",
            ),
            1,
        ),
        ("Histogram: cut".to_owned(), 1),
    ] {
        let all = read(&format!("{good}{bad}"));
        assert_eq!(
            (all.histograms.len(), all.info.counts.damaged),
            (1, damaged),
            "{bad}"
        );
    }
}

#[test]
fn real_output_of_vscsistats_matches_its_own_counts() {
    require!(RealTraces);
    let (path, expected) = (
        real_trace("vscsiStats/algonquin.csv"),
        real_trace("EXPECTED.json"),
    );
    let text = std::fs::read_to_string(expected).expect("reads");
    let expected: serde_json::Value = serde_json::from_str(&text).expect("parses");
    let detail = expected["vscsiStats/algonquin.csv"]["detail"]
        .as_object()
        .expect("an object");
    let all = try_file(&path).expect("reads");
    // The distance to the closest of 16 is the one that is left out.
    assert_eq!(
        (detail.len(), all.histograms.len(), all.info.counts.damaged),
        (16, 15, 0)
    );
    for (name, figures) in detail.iter().filter(|(name, _)| !name.contains("closest")) {
        let op = match name {
            name if name.contains("Read") => Some(Op::Read),
            name if name.contains("Write") => Some(Op::Write),
            _ => None,
        };
        let (measured, scale, shift) = match name {
            name if name.contains("lengths") => (Measured::LenBytes, 1, 0),
            name if name.contains("distance") => (Measured::SeekBytes, 512, -1),
            name if name.contains("outstanding") => (Measured::Depth, 1, 0),
            name if name.contains("interarrival") => (Measured::InterarrivalNs, 1000, 0),
            _ => (Measured::DeviceNs, 1000, 0),
        };
        let found: Vec<_> = all
            .histograms
            .iter()
            .filter(|found| (found.measured, found.op) == (measured, op))
            .collect();
        let [found] = found[..] else {
            panic!("{name}: {} histograms", found.len())
        };
        let figure = |key: &str| (figures[key].as_i64().expect(key) + shift) * scale;
        assert_eq!(Some(sum(found)), figures["count"].as_u64(), "{name}");
        assert_eq!(
            Some(found.buckets.len() as u64),
            figures["nbins"].as_u64(),
            "{name}"
        );
        assert_eq!(
            found.min_max_mean,
            Some((figure("min"), figure("max"), figure("mean"))),
            "{name}"
        );
        assert!(
            found.buckets.last().is_some_and(|last| last.high.is_none()),
            "{name}"
        );
    }
    // 42 of 512 B or less, 13 in 2049..=4095, 608 of 4096: read off the file.
    let lengths = &all.histograms[0].buckets;
    assert_eq!(
        (lengths[0], lengths[3], lengths[4]),
        (
            bucket(0, 512, 42),
            bucket(2049, 4095, 13),
            bucket(4096, 4096, 608)
        )
    );
    // 213 sequential commands.
    let seeks = all
        .histograms
        .iter()
        .find(|found| found.measured == Measured::SeekBytes)
        .expect("one");
    assert!(seeks.buckets.contains(&bucket(0, 0, 213)));
}

#[test]
fn no_cut_and_no_flipped_bit_panics() {
    no_cut_or_bit_panics(&vscsi(
        "distance (in LBNs) between successive commands",
        15,
        "1,-1\n4,4\n10,4\n",
    ));
}

#[test]
fn the_text_before_an_endless_line_stays() {
    before_an_endless_line(&vscsi("IO lengths of commands", 5, "1,1\n4,4\n0,4\n"));
}
