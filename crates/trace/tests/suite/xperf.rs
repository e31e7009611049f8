//! Text of `xperf -a dumper`: a real line, and damage.

use plumb_testkit::require;

use crate::common::lines::{check_excerpt, tests_of_lines};

/// The headings, and two lines.
const SAMPLE: &str = "BeginHeader\nDiskRead, TimeStamp, ByteOffset, IOSize, ElapsedTime, DiskNum, DiskSvcTime\n\
                      EndHeader\nDiskRead, 700, 0x1000, 0x200, 30, 0, 20\nDiskRead, 900, 0x1200, 0x200, 30, 0, 20\n";

tests_of_lines!("xperf", SAMPLE);

#[test]
fn excerpt() {
    require!(RealTraces);
    let sums = (1, 0, 0x1_8f0b_8000, 4096, (8612 - 283) * 1000);
    check_excerpt("etw/xperf_dumper_1line.txt", "xperf", sums);
}
