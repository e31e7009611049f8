//! Tests of `stripe-segment-mismatch`.

use plumb_diagnose::Reason;
use plumb_geometry::Bytes;
use plumb_stack::node::keys;

use crate::common::lab::Lab;
use crate::common::number;
use crate::common::stripes::{judge_volume, on_array};
use crate::facts;

/// The paper's example: 20 segments of 48 KiB.
#[test]
fn stripe_segment_mismatch() {
    let rule = "stripe-segment-mismatch";
    let right = 20 * (48 << 10);
    assert_eq!(right, 960 << 10);
    assert!(on_array(right, Some(48 << 10), None).is_silent(rule));
    assert!(on_array(right, None, Some(48 << 10)).is_silent(rule));
    let judged = on_array(1 << 20, Some(48 << 10), None);
    let finding = judged.finding(rule);
    assert_eq!(number(finding, "past_bytes"), f64::from(16 << 10));
    let facts = facts!(finding, StripeSegmentMismatch);
    let nearest = [21 * (48 << 10), 22 * (48 << 10)].map(Bytes);
    assert_eq!(facts.nearest_bytes, nearest);
    assert_eq!(facts.proposed_bytes, Some(nearest[0]), "1,008 KiB");
    assert_eq!((facts.devices_off, facts.devices), (2, 2));
    assert_eq!(
        on_array(1 << 20, None, Some(48 << 10)).found_on(rule),
        ["d10"]
    );
    let on = "c5t0d0".to_owned();
    assert_eq!(
        *on_array(1 << 20, None, None).unknown(rule),
        Reason::Segment { on }
    );
    let mut lab = Lab::default();
    lab.known.segment = Some(Bytes(48 << 10));
    let disks = ["sda", "sdb"].map(|name| lab.disk(name, 512, 0));
    for disk in disks {
        lab.fact(disk, keys::MODEL, "ST18000NM000J");
    }
    lab.stripe("md0", 1 << 20, &disks);
    assert!(
        lab.judge().is_not_asked(rule),
        "a drive has no segment, whatever the arrays have"
    );
    let drives = judge_volume(1 << 20, 0, None);
    assert!(drives.is_not_asked(rule), "no array and no segment");
}
