//! Alibaba's CSV of 2020: real lines, and damage.

use plumb_testkit::require;

use crate::common::lines::{check_excerpt, header_line as header_line_of, tests_of_lines};

/// Two lines.
const SAMPLE: &str = "419,W,4096,16384,1577808144360767\n7,R,0,512,1577808144360768\n";

tests_of_lines!("alibaba", SAMPLE);

#[test]
fn header_line() {
    header_line_of(
        "alibaba",
        "device_id,opcode,offset,length,timestamp",
        SAMPLE,
    );
}

#[test]
fn excerpt() {
    require!(RealTraces);
    let ns = (7 * 1_577_808_000_000_000 + 3527) * 1000;
    let sums = (7, 5, 307_019_595_776, 118_784, ns);
    check_excerpt("cloud/alibaba-7-lines.csv", "alibaba", sums);
}
