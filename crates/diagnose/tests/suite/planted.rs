//! The hard requirement: each rule finds one misfit in a hundred at its default threshold, counts it exactly, and is
//! silent without one, for any seed.

use crate::common::{RuleBench, number};
use plumb_diagnose::Severity;
use plumb_testkit::workload::{MisfitKind, PlantedMisfits};

const SEEDS: std::ops::Range<u64> = 0..10;

/// The rule for each kind of misfit, and the user's question.
fn kinds() -> Vec<(MisfitKind, &'static str, RuleBench)> {
    vec![
        (
            MisfitKind::Misaligned,
            "misaligned-io",
            RuleBench::grid("4k"),
        ),
        (
            MisfitKind::OddLength,
            "odd-length-io",
            RuleBench::grid("4k"),
        ),
        (
            MisfitKind::SplitChunk {
                chunk_bytes: 65_536,
            },
            "split-io",
            RuleBench::chunk(65_536, None),
        ),
        (
            MisfitKind::LooksSequential,
            "looks-sequential",
            RuleBench::default(),
        ),
        (
            MisfitKind::SmallRandomWrites,
            "small-random-writes",
            RuleBench::default(),
        ),
        (
            MisfitKind::MemberSkew {
                chunk_bytes: 131_072,
                members: 5,
            },
            "member-skew",
            RuleBench::chunk(131_072, Some(5)),
        ),
        (
            MisfitKind::MemberSkew {
                chunk_bytes: 65_536,
                members: 4,
            },
            "member-skew",
            RuleBench::chunk(65_536, Some(4)),
        ),
        (
            MisfitKind::RecordMismatch {
                record_bytes: 131_072,
            },
            "record-mismatch",
            RuleBench::record(131_072),
        ),
    ]
}

/// CountedShare from the definition of the misfit, event by event.
fn brute_force(plan: &PlantedMisfits) -> u64 {
    plan.iter().filter(|event| plan.kind.matches(event)).count() as u64
}

#[test]
fn one_percent_is_found_and_counted_exactly() {
    for (kind, rule, bench) in kinds() {
        for seed in SEEDS {
            let plan = PlantedMisfits::standard(kind, seed);
            let expected = brute_force(&plan);
            let judged = bench.judge_synthetic(plan.iter());
            let finding = judged.finding(rule);
            assert_eq!(finding.severity, Severity::Note, "{kind:?}, seed {seed}");
            let (part, whole) = ("counted.count", "counted.of");
            assert_eq!(
                number(finding, part),
                expected as f64,
                "{kind:?}, seed {seed}"
            );
            assert_eq!(
                number(finding, whole),
                plan.total as f64,
                "{kind:?}, seed {seed}"
            );
        }
    }
}

#[test]
fn none_is_not_found() {
    for (kind, rule, bench) in kinds() {
        for seed in SEEDS {
            let judged = bench.judge_synthetic(PlantedMisfits::control(kind, seed).iter());
            assert!(
                judged.is_silent(rule),
                "{kind:?}, seed {seed}: {:?}",
                judged.diagnosis.unknown
            );
        }
    }
}

#[test]
fn three_in_ten_are_worth_a_fix() {
    for (kind, rule, bench) in kinds() {
        let plan = PlantedMisfits {
            total: 20_000,
            misfits: 6_000,
            ..PlantedMisfits::standard(kind, 77)
        };
        let judged = bench.judge_synthetic(plan.iter());
        let finding = judged.finding(rule);
        assert_eq!(finding.severity, Severity::Warning, "{kind:?}");
        assert_eq!(
            number(finding, "counted.count"),
            brute_force(&plan) as f64,
            "{kind:?}"
        );
    }
}
