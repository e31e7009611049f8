//! SYSTOR '17 CSV: a real line, and damage.

use plumb_testkit::require;

use crate::common::lines::{check_excerpt, header_line as header_line_of, tests_of_lines};

/// Two lines.
const SAMPLE: &str = "1456095145.133076000,0.000806000,R,0,4096,512\n1456095145.2,,,1,8192,512\n";

tests_of_lines!("systor", SAMPLE);

#[test]
fn header_line() {
    header_line_of(
        "systor",
        "Timestamp,Response,IOType,LUN,Offset,Size",
        SAMPLE,
    );
}

#[test]
fn excerpt() {
    require!(RealTraces);
    let sums = (1, 0, 899_056_122_368, 131_072, 1_456_095_145_133_076_000);
    check_excerpt("cloud/systor-1-line.csv", "systor", sums);
}
