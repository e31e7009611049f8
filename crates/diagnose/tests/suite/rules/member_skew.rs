//! Tests of `member-skew`.

use plumb_diagnose::Reason;
use plumb_geometry::Bounds;
use plumb_model::reason::Counting;
use plumb_trace::Op::Read;

use crate::common::{Io, Random, RuleBench, few, number};
use crate::facts;
use crate::rules::reads;

#[test]
fn member_skew() {
    let (rule, bench) = ("member-skew", RuleBench::chunk(64 << 10, Some(4)));
    let evenly =
        |from: u64, to: u64| (from..to).map(|at| Io(Read, at * 7 % 4 * 128 + at / 4 * 512, 16));
    let hot = (0..500).map(|at| Io(Read, (at + 1000) * 512 + 256, 16));
    let judged = bench.judge_ios(evenly(0, 2000).chain(hot));
    let finding = judged.finding(rule);
    let facts = facts!(finding, MemberSkew);
    assert_eq!((facts.member, facts.members), (2, 4));
    assert_eq!(
        (facts.counted.count, facts.counted.of),
        (Bounds::exact(1000), 2500)
    );
    assert_eq!(number(finding, "ratio"), 1.6);
    assert!(bench.judge_ios(evenly(0, 2000)).is_silent(rule));
    assert_eq!(
        *bench.judge_ios(evenly(0, 199)).unknown(rule),
        few(199),
        "too few I/O for anything"
    );
    let many = RuleBench::chunk(4 << 10, Some(64));
    let pieces = Reason::TooFew {
        what: Counting::Pieces { members: 64 },
        seen: 400,
        needed: 3200,
    };
    assert_eq!(*many.judge_ios(reads(400, 8, 0, 8)).unknown(rule), pieces);
}

/// The fullest of many members has more than its part by chance alone: in 99 of 100 cases that is no finding.
#[test]
fn member_skew_is_not_fooled_by_many_members() {
    let mut fired = 0;
    for members in [8, 16, 32] {
        for seed in 1..=100 {
            let mut random = Random(seed * 1000 + members);
            let ios = (0..50 * members).map(|_| Io(Read, random.below(1 << 30) * 8, 8));
            let bench = RuleBench::chunk(4 << 10, u32::try_from(members).ok());
            fired += bench
                .judge_ios(ios.collect::<Vec<_>>())
                .findings("member-skew")
                .count();
        }
    }
    assert!(fired <= 6, "{fired} of 300 even stripes were called uneven");
}
