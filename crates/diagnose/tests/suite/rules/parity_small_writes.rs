//! Tests of `parity-small-writes`.

use plumb_diagnose::{Reason, Severity};
use plumb_geometry::Bytes;
use plumb_model::reason::Counting;
use plumb_profile::fit::Unknown;
use plumb_trace::Op;

use crate::common::number;
use crate::common::stripes::raid;

/// Five disks with one of parity: a full stripe is 4 × 64 KiB.
#[test]
fn parity_small_writes() {
    let rule = "parity-small-writes";
    let judged = raid(1, 5, Some("md"), Some(8192)).judge();
    let finding = judged.finding(rule);
    assert_eq!(number(finding, "stripe_bytes"), f64::from(256 << 10));
    assert_eq!(
        finding.cost.as_ref().map(|cost| cost.value),
        Some(4.0),
        "read and write of data and parity"
    );
    let six = raid(2, 6, Some("md"), Some(8192)).judge();
    assert_eq!(
        six.finding(rule).cost.as_ref().map(|cost| cost.value),
        Some(6.0),
        "two parities"
    );
    assert!(
        raid(1, 5, Some("md"), Some(256 << 10))
            .judge()
            .is_silent(rule)
    );
    let stripe_bytes = Bytes(256 << 10);
    assert_eq!(
        *raid(1, 5, Some("md"), None).judge().unknown(rule),
        Reason::WritesToStripe { stripe_bytes }
    );
    assert!(
        raid(1, 5, Some("zfs"), Some(8192))
            .judge()
            .is_not_asked(rule)
    );
}

#[test]
fn parity_small_writes_that_were_seen() {
    let rule = "parity-small-writes";
    let seen = |len: u64, op: Op, count: u64| {
        let mut lab = raid(1, 5, Some("md"), None);
        lab.seen("md0", (0..count).map(|at| (op, at * 512, len)));
        lab.judge()
    };
    let judged = seen(16, Op::Write, 500);
    assert_eq!(number(judged.finding(rule), "counted.count"), 500.0);
    assert_eq!(judged.finding(rule).severity, Severity::Warning);
    assert!(
        seen(512, Op::Write, 500).is_silent(rule),
        "whole stripes of 512 sectors"
    );
    let few = Reason::TooFew {
        what: Counting::Writes,
        seen: 50,
        needed: 200,
    };
    assert_eq!(*seen(16, Op::Write, 50).unknown(rule), few);
    let none = Reason::Table { why: Unknown::NoIo };
    assert_eq!(
        *seen(16, Op::Read, 500).unknown(rule),
        none,
        "reads need no parity"
    );
}
