//! Tests of `mirror-write-copy`.

use plumb_diagnose::Reason;
use plumb_geometry::Bytes;
use plumb_stack::node::keys;

use crate::common::host::with_settings;
use crate::common::lab::Lab;
use crate::common::number;

#[test]
fn mirror_write_copy() {
    let rule = "mirror-write-copy";
    let judged = with_settings(|lab| {
        lab.host(keys::MIRROR_WOW, 0x20_u64);
    });
    assert_eq!(number(judged.finding(rule), "flags"), 32.0);
    assert!(
        with_settings(|lab| {
            lab.host(keys::MIRROR_WOW, 0x10_u64);
        })
        .is_silent(rule),
        "another flag"
    );
    assert!(
        with_settings(|lab| {
            lab.host(keys::MAXPHYS, Bytes(1 << 20));
        })
        .is_silent(rule),
        "/etc/system was read and has no such line"
    );
    assert_eq!(*with_settings(|_| {}).unknown(rule), Reason::SystemFile);
    let mut lab = Lab::default();
    lab.host(keys::MIRROR_WOW, 0x20_u64);
    assert!(lab.judge().is_not_asked(rule), "no mirror");
}
