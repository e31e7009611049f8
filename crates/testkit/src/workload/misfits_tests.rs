//! Planted counts, found again by brute force.

use super::*;
use crate::workload::streams::tests::heads_by_brute_force;

const KINDS: [MisfitKind; 7] = [
    MisfitKind::Misaligned,
    MisfitKind::OddLength,
    MisfitKind::SplitChunk {
        chunk_bytes: 65_536,
    },
    MisfitKind::LooksSequential,
    MisfitKind::SmallRandomWrites,
    MisfitKind::MemberSkew {
        chunk_bytes: 131_072,
        members: 5,
    },
    MisfitKind::RecordMismatch {
        record_bytes: 131_072,
    },
];

#[test]
fn planted_are_exactly_as_many_as_stated() {
    for kind in KINDS {
        for plan in [
            PlantedMisfits::standard(kind, 7),
            PlantedMisfits::control(kind, 8),
        ] {
            let found = plan.iter().filter(|e| kind.matches(e)).count() as u64;
            assert_eq!(found, plan.matching(), "{kind:?}");
            assert_eq!(plan.iter().count(), 100_000);
        }
    }
}

#[test]
fn all_and_none_can_be_planted() {
    for misfits in [0, 500] {
        let plan = PlantedMisfits {
            total: 500,
            misfits,
            ..PlantedMisfits::standard(MisfitKind::Misaligned, 1)
        };
        assert_eq!(
            plan.iter().filter(|e| plan.kind.matches(e)).count() as u64,
            misfits
        );
    }
}

#[test]
fn split_by_walking_every_byte() {
    let kind = MisfitKind::SplitChunk {
        chunk_bytes: 16_384,
    };
    let plan = PlantedMisfits {
        total: 300,
        misfits: 30,
        ..PlantedMisfits::standard(kind, 3)
    };
    let walks_over =
        |e: &SynthEvent| (e.start_bytes..e.end_bytes() - 1).any(|b| b / 16_384 != (b + 1) / 16_384);
    assert_eq!(plan.iter().filter(walks_over).count(), 30);
}

#[test]
fn members_are_even_but_for_the_planted() {
    let kind = MisfitKind::MemberSkew {
        chunk_bytes: 65_536,
        members: 4,
    };
    let mut counts = [0u64; 4];
    for event in PlantedMisfits::standard(kind, 4).iter() {
        counts[(event.start_bytes / 65_536 % 4) as usize] += 1;
        let last_chunk = (event.end_bytes() - 1) / 65_536;
        assert_eq!(event.start_bytes / 65_536, last_chunk, "one member an I/O");
    }
    assert_eq!(counts, [25_750, 24_750, 24_750, 24_750]);
}

#[test]
fn random_means_that_nothing_continues() {
    for kind in KINDS {
        let plan = PlantedMisfits {
            total: 20_000,
            ..PlantedMisfits::standard(kind, 5)
        };
        let expected = match kind {
            // The stream of clean writes has one head.
            MisfitKind::SmallRandomWrites => plan.misfits + 1,
            _ => plan.total,
        };
        assert_eq!(heads_by_brute_force(plan.iter(), 256), expected, "{kind:?}");
    }
}

#[test]
fn penalty_is_on_the_planted_alone() {
    let kind = MisfitKind::Misaligned;
    let with = PlantedMisfits {
        penalty_ns: 5_000,
        ..PlantedMisfits::standard(kind, 6)
    };
    let without = PlantedMisfits {
        penalty_ns: 0,
        ..with.clone()
    };
    for (slow, plain) in with.iter().zip(without.iter()) {
        let difference = slow.device_ns.expect("timed") - plain.device_ns.expect("timed");
        assert_eq!(difference, if kind.matches(&plain) { 5_000 } else { 0 });
    }
}
