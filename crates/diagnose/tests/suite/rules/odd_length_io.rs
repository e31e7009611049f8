//! Tests of `odd-length-io`.

use plumb_geometry::{Bounds, Bytes};
use plumb_model::facts::OfLength;

use crate::common::{RuleBench, few};
use crate::facts;
use crate::rules::reads;

#[test]
fn odd_length_io() {
    let (rule, bench) = ("odd-length-io", RuleBench::grid("4k"));
    let judged = bench.judge_ios([reads(600, 8, 0, 8), reads(400, 8, 0, 3)].concat());
    let finding = judged.finding(rule);
    let facts = facts!(finding, OddLengthIo);
    assert_eq!(
        (facts.counted.count, facts.counted.of),
        (Bounds::exact(400), 1000)
    );
    assert_eq!(facts.unit_bytes, Bytes(4096));
    let odd = OfLength {
        len_bytes: Bytes(1536),
        ios: 400,
    };
    assert_eq!(facts.commonest, [odd]);
    // 1000 cells of 8 sectors for 600 × 8 + 400 × 3 of them.
    assert_eq!(
        finding.cost.as_ref().expect("a cost").value,
        8000.0 / 6000.0
    );
    assert!(judged.is_silent("misaligned-io"));
    assert!(bench.judge_ios(reads(1000, 8, 0, 16)).is_silent(rule));
    assert_eq!(
        *bench.judge_ios(reads(150, 8, 0, 3)).unknown(rule),
        few(150)
    );
}
