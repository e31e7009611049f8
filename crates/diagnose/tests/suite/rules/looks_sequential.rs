//! Tests of `looks-sequential`.

use plumb_diagnose::Severity;
use plumb_geometry::Bounds;
use plumb_trace::Op::Read;

use crate::common::{Io, RuleBench, few};
use crate::facts;
use crate::rules::reads;

#[test]
fn looks_sequential() {
    let (rule, bench) = ("looks-sequential", RuleBench::default());
    let judged = bench.judge_ios([reads(900, 8, 0, 8), reads(100, 8, 0, 256)].concat());
    let finding = judged.finding(rule);
    let facts = facts!(finding, LooksSequential);
    assert_eq!(
        (facts.counted.count, facts.counted.of),
        (Bounds::exact(100), 1000)
    );
    assert_eq!(facts.of_that_size, 100);
    assert_eq!(finding.severity, Severity::Note, "a tenth needs no repair");
    assert!(
        bench.judge_ios(reads(1000, 8, 0, 120)).is_silent(rule),
        "60 KiB is not yet large"
    );
    let stream = (0..1000).map(|at| Io(Read, at * 256, 256));
    assert!(
        bench.judge_ios(stream).is_silent(rule),
        "a stream is sequential, and does not only look so"
    );
    assert_eq!(
        *bench.judge_ios(reads(199, 8, 0, 256)).unknown(rule),
        few(199)
    );
}
