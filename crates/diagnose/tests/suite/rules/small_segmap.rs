//! Tests of `small-segmap`.

use plumb_diagnose::Reason;

use crate::common::host::mounted;
use crate::common::number;

#[test]
fn small_segmap() {
    let rule = "small-segmap";
    let twelve = Some(12);
    assert_eq!(
        number(
            mounted(Some("rw"), twelve, None).finding(rule),
            "segmap_percent"
        ),
        12.0
    );
    assert!(mounted(Some("rw"), Some(30), None).is_silent(rule));
    assert!(
        mounted(Some("rw,forcedirectio"), twelve, None).is_not_asked(rule),
        "does without"
    );
    let default_percent = 12;
    assert_eq!(
        *mounted(Some("rw"), None, None).unknown(rule),
        Reason::Segmap { default_percent }
    );
}
