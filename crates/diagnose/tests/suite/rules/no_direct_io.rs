//! Tests of `no-direct-io`.

use plumb_diagnose::{Reason, Severity};
use plumb_model::Confidence;

use crate::common::host::mounted;
use crate::common::number;
use crate::facts;

#[test]
fn no_direct_io() {
    let rule = "no-direct-io";
    let judged = mounted(Some("rw,logging"), None, Some(2048));
    let finding = judged.finding(rule);
    assert_eq!(
        (finding.severity, finding.confidence),
        (Severity::Note, Confidence::Low),
        "try it first"
    );
    assert_eq!(number(finding, "block_bytes"), 8192.0, "read first");
    let whole = mounted(Some("rw"), None, Some(8192));
    assert_eq!(facts!(whole.finding(rule), NoDirectIo).block_bytes, None);
    assert!(mounted(Some("rw,forcedirectio"), None, Some(2048)).is_silent(rule));
    assert_eq!(
        *mounted(None, None, Some(2048)).unknown(rule),
        Reason::MountOptions
    );
    assert!(
        mounted(Some("rw"), None, None).is_not_asked(rule),
        "nobody spoke of a database"
    );
}
