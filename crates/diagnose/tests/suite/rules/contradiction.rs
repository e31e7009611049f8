//! Tests of `contradiction`.

use plumb_geometry::Bytes;
use plumb_stack::Source;

use crate::common::lab::{Lab, kernel};
use crate::common::problems::facts;

#[test]
fn contradiction() {
    let rule = "contradiction";
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    lab.builder.size(disk, Bytes(1 << 30), &kernel());
    lab.builder.size(disk, Bytes(1 << 31), &Source::User);
    let judged = lab.judge();
    let facts = facts(judged.finding(rule));
    insta::assert_snapshot!(facts.text);
    assert_eq!(facts.source, Source::User);
    let mut lab = Lab::default();
    lab.disk("sda", 4096, 0);
    assert!(lab.judge().is_silent(rule));
}
