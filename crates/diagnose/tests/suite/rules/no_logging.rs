//! Tests of `no-logging`.

use plumb_diagnose::{Reason, Severity};
use plumb_model::Confidence;

use crate::common::host::mounted;
use crate::common::lab::Lab;

#[test]
fn no_logging() {
    let rule = "no-logging";
    assert!(mounted(Some("rw,logging"), None, None).is_silent(rule));
    assert_eq!(
        mounted(Some("rw,nologging"), None, None)
            .finding(rule)
            .severity,
        Severity::Warning
    );
    let unsaid = mounted(Some("rw"), None, None);
    assert_eq!(unsaid.finding(rule).severity, Severity::Note);
    assert_eq!(
        unsaid.finding(rule).confidence,
        Confidence::Low,
        "it is the default of later systems"
    );
    assert_eq!(
        *mounted(None, None, None).unknown(rule),
        Reason::MountOptions
    );
    assert!(Lab::default().judge().is_not_asked(rule));
}
