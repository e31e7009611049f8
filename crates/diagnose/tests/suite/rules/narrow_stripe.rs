//! Tests of `narrow-stripe`.

use plumb_diagnose::{Reason, Severity};
use plumb_geometry::Bytes;
use plumb_model::Confidence;
use plumb_trace::Op;

use crate::common::lab::Lab;
use crate::common::number;
use crate::common::stripes::{ASSUMED, judge_volume};

#[test]
fn narrow_stripe() {
    let rule = "narrow-stripe";
    let judged = judge_volume(32 << 10, 64, Some(8192));
    let finding = judged.finding(rule);
    assert_eq!(finding.target.device, "d10");
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(
        number(finding, "split"),
        15.0 / 64.0,
        "the seed's exact share"
    );
    assert_eq!(number(finding, "members"), 2.0);
    assert_eq!(number(finding, "wanted_chunk_bytes"), f64::from(1 << 20));
    assert_eq!(
        number(finding, "wanted_split"),
        15.0 / 2048.0,
        "15 of 2,048 sectors of 1 MiB"
    );
    assert_eq!(
        judge_volume(64 << 10, 64, Some(8192))
            .finding(rule)
            .severity,
        Severity::Note,
        "8 pages"
    );
    assert!(
        judge_volume(128 << 10, 64, Some(8192)).is_silent(rule),
        "16 pages"
    );
    assert!(
        judge_volume(1 << 20, 64, None).is_silent(rule),
        "1 MiB whatever is asked"
    );
    let default = judge_volume(16 << 10, 64, None);
    assert_eq!(
        default.finding(rule).severity,
        Severity::Note,
        "4 KiB are assumed"
    );
    assert_eq!(default.finding(rule).confidence, Confidence::Low);
    let wide = Reason::WideForAssumed {
        chunk_bytes: Bytes(256 << 10),
        io: ASSUMED,
    };
    assert_eq!(*judge_volume(256 << 10, 64, None).unknown(rule), wide);
}

/// The commonest I/O seen says more than the page that somebody gave.
#[test]
fn stripes_are_narrow_for_the_observed_io() {
    let mut lab = Lab::default();
    lab.known.page = Some(Bytes(4096));
    let disks = ["sda", "sdb"].map(|name| lab.disk(name, 512, 0));
    lab.stripe("md0", 64 << 10, &disks);
    lab.seen("md0", (0..300).map(|at| (Op::Read, at * 64, 64)));
    let judged = lab.judge();
    assert_eq!(number(judged.finding("narrow-stripe"), "io.bytes"), 32768.0);
}
