//! Tests of `small-maxphys`.

use plumb_diagnose::{Reason, Severity};
use plumb_geometry::Bytes;
use plumb_stack::node::keys;

use crate::common::host::{mirrored, with_settings};
use crate::common::lab::Lab;

#[test]
fn small_maxphys() {
    let rule = "small-maxphys";
    let small = with_settings(|lab| {
        lab.host(keys::MAXPHYS, Bytes(256 << 10));
    });
    assert_eq!(small.finding(rule).severity, Severity::Note);
    let wanted = with_settings(|lab| {
        lab.host(keys::MAXPHYS, Bytes(256 << 10));
        lab.host(keys::RESYNC_BYTES, Bytes(1 << 20));
    });
    assert_eq!(wanted.finding(rule).severity, Severity::Warning);
    let mut lab = Lab::default();
    mirrored(&mut lab);
    let disks = ["c3t0d0s0", "c4t0d0s0"].map(|name| lab.bare(name));
    lab.stripe("d10", 512 << 10, &disks);
    lab.host(keys::MAXPHYS, Bytes(256 << 10));
    assert_eq!(
        lab.judge().finding(rule).severity,
        Severity::Warning,
        "less than a chunk"
    );
    assert!(
        with_settings(|lab| {
            lab.host(keys::MAXPHYS, Bytes(1 << 20));
        })
        .is_silent(rule)
    );
    assert_eq!(*with_settings(|_| {}).unknown(rule), Reason::Maxphys);
    let mut linux = Lab::default();
    linux.host(keys::SYSTEM, "linux");
    assert!(linux.judge().is_not_asked(rule));
}
