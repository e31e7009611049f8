//! Tests of `small-resync-io`.

use plumb_diagnose::Reason;
use plumb_geometry::Bytes;
use plumb_stack::node::keys;

use crate::common::host::with_settings;
use crate::common::lab::Lab;
use crate::common::number;

#[test]
fn small_resync_io() {
    let rule = "small-resync-io";
    let judged = with_settings(|lab| {
        lab.host(keys::RESYNC_BYTES, Bytes(32 << 10));
        lab.host(keys::MAXPHYS, Bytes(256 << 10));
    });
    let finding = judged.finding(rule);
    assert!(finding.target.is_host());
    assert_eq!(number(finding, "resync_bytes"), f64::from(32 << 10));
    assert_eq!(
        number(finding, "maxphys_bytes"),
        f64::from(256 << 10),
        "both have to change"
    );
    // 2,048 blocks of 512 bytes; the paper's "512-Kbyte blocks" are a slip.
    assert!(
        with_settings(|lab| {
            lab.host(keys::RESYNC_BYTES, Bytes(2048 * 512));
        })
        .is_silent(rule)
    );
    assert_eq!(*with_settings(|_| {}).unknown(rule), Reason::ResyncSize);
    assert!(Lab::default().judge().is_not_asked(rule), "no mirror");
}
