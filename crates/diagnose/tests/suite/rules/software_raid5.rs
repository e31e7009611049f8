//! Tests of `software-raid5`.

use plumb_diagnose::{Reason, Severity};

use crate::common::stripes::raid;

#[test]
fn software_raid5() {
    let rule = "software-raid5";
    assert_eq!(
        raid(1, 5, Some("svm"), None).judge().finding(rule).severity,
        Severity::Warning
    );
    assert_eq!(
        raid(2, 6, Some("md"), None).judge().finding(rule).severity,
        Severity::Note
    );
    assert!(
        raid(1, 5, Some("zfs"), None).judge().is_silent(rule),
        "RAID-Z writes whole stripes"
    );
    assert_eq!(
        *raid(1, 5, None, None).judge().unknown(rule),
        Reason::ParityManager
    );
}
