//! Tencent's CSV of 2018: real lines, and damage.

use plumb_testkit::require;

use crate::common::lines::{check_excerpt, header_line as header_line_of, tests_of_lines};

/// Two lines.
const SAMPLE: &str = "1538323200,12910952,128,1,1063\n1538323201,8,8,0,1063\n";

tests_of_lines!("tencent", SAMPLE);

#[test]
fn header_line() {
    header_line_of("tencent", "Timestamp,Offset,Size,IOType,VolumeID", SAMPLE);
}

#[test]
fn excerpt() {
    require!(RealTraces);
    let ns = 15_383_231_999 * 1_000_000_000;
    let sums = (10, 3, 1_776_291_684_352, 698_368, ns);
    check_excerpt("cloud/tencent-10-lines.csv", "tencent", sums);
}
