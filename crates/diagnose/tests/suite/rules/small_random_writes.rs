//! Tests of `small-random-writes`.

use plumb_geometry::Bounds;
use plumb_trace::Op::Write;

use crate::common::{Io, RuleBench, few, number};
use crate::facts;
use crate::rules::reads;

#[test]
fn small_random_writes() {
    let (rule, bench) = ("small-random-writes", RuleBench::default());
    let writes: Vec<Io> = reads(1000, 8, 0, 16)
        .into_iter()
        .map(|io| Io(Write, io.1, io.2))
        .collect();
    let judged = bench.judge_ios(writes.clone());
    let finding = judged.finding(rule);
    let facts = facts!(finding, SmallRandomWrites);
    assert_eq!(
        (facts.counted.count, facts.counted.of),
        (Bounds::exact(1000), 1000)
    );
    assert_eq!(facts.gathered_writes, 63, "1,000 / 16, rounded up");
    // 1000 writes in 999 ms.
    assert_eq!(number(finding, "per_second").round(), 1001.0);
    assert!(
        bench.judge_ios(reads(1000, 8, 0, 16)).is_silent(rule),
        "reads are no writes"
    );
    let stream = (0..1000).map(|at| Io(Write, at * 16, 16));
    assert!(
        bench.judge_ios(stream).is_silent(rule),
        "a log is no random I/O"
    );
    assert_eq!(
        *bench.judge_ios(writes.into_iter().take(50)).unknown(rule),
        few(50)
    );
}
