//! Offsets and moves: the report on the I/O's offset, and the correctness of the advice.

use crate::common::{Io, Judged, Random, RuleBench};
use crate::facts;
use plumb_diagnose::RuleId;
use plumb_geometry::{Bounds, Bytes, Grid, GridKind};
use plumb_model::Part;
use plumb_model::facts::{IoOffset, OffsetAdvice, OtherOffset, PartitionStart};
use plumb_profile::codec::{self, Saved};
use plumb_profile::infer::InferenceVerdict;
use plumb_trace::Op::Read;
use proptest::prelude::*;

/// `count` random blocks of `block` sectors in `[from, from + blocks × block)`, none beside the last.
fn blocks(random: &mut Random, count: u64, from: u64, block: u64) -> Vec<Io> {
    let span = (1 << 26) / block;
    (0..count)
        .map(|_| Io(Read, from + random.below(span) * block, block))
        .collect()
}

fn offset(judged: &Judged) -> &IoOffset {
    let facts = facts!(judged.finding("misaligned-io"), MisalignedIo);
    facts.offset.as_ref().expect("an offset")
}

/// Sectors of the `--shift` that a finding advises.
fn advised(judged: &Judged) -> Option<u64> {
    let command = &judged.finding("misaligned-io").fix.first()?.command;
    let (_, after) = command.split_once("--shift +")?;
    after.split_once('s')?.0.parse().ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any phase and grid: if a move is advised, these very I/O are all on the grid after it; and one is advised
    /// whenever the blocks are whole cells and misaligned.
    #[test]
    fn the_move_advised_puts_all_on_the_grid(
        power in 3u32..9,
        cell in prop::sample::select(vec![4u64, 8, 16, 24, 96, 128, 256]),
        phase in 0u64..256,
        offset in 0u64..256,
        seed in 1u64..1000,
    ) {
        let block = 1 << power;
        let (phase, offset) = (phase % block, offset % cell);
        let grid = Grid::new(Bytes(cell * 512), Bytes(offset * 512), GridKind::Unit).expect("a grid");
        let mut bench = RuleBench::default();
        bench.questions.grids = vec![grid];
        let ios = blocks(&mut Random(seed), 2000, phase, block);
        let off = |io: &&Io| !(io.1 + cell - offset).is_multiple_of(cell);
        let (misaligned, wholes) = (ios.iter().filter(off).count(), block % cell == 0);
        let judged = bench.judge_ios(ios.iter().copied());
        if misaligned == 0 {
            prop_assert!(judged.is_silent("misaligned-io"));
            return Ok(());
        }
        match advised(&judged) {
            Some(by) => {
                prop_assert!(wholes, "blocks of {block} on cells of {cell} cannot all be moved onto them");
                prop_assert!(by < cell, "no more than a cell");
                let moved = ios.iter().map(|io| Io(Read, io.1 + by, io.2));
                prop_assert!(bench.judge_ios(moved).is_silent("misaligned-io"), "+{by}");
            }
            None => prop_assert!(!wholes, "blocks of {block} at {phase}, cells of {cell} at {offset}: no advice"),
        }
    }
}

#[test]
fn two_layouts_are_two_answers() {
    for first in 0..8 {
        for second in 0..8 {
            if first == second {
                continue;
            }
            let mut random = Random(1 + first * 8 + second);
            let ios = [
                blocks(&mut random, 1200, first, 8),
                blocks(&mut random, 800, (1 << 27) + second, 8),
            ];
            let judged = RuleBench::grid("4k").judge_ios(ios.concat());
            let verdict = &judged.analysis.places[0].inference.verdict;
            let at = |sectors: u64| Bytes(sectors * 512);
            match verdict {
                InferenceVerdict::Two { phases } => {
                    assert_eq!(
                        phases.map(|phase| phase.granularity_bytes),
                        [at(8); 2],
                        "{first} {second}"
                    );
                    assert_eq!(
                        phases.map(|phase| phase.offset_bytes),
                        [at(first), at(second)]
                    );
                    assert_eq!(offset(&judged).advice, OffsetAdvice::EachPart);
                }
                // Half a block apart they look the same as one layout of half blocks: only a phase of 2 KiB is shown.
                InferenceVerdict::One { phase } => {
                    assert_eq!(first.abs_diff(second), 4, "{first} {second}");
                    assert_eq!(
                        (phase.granularity_bytes, phase.offset_bytes),
                        (at(4), at(first % 4))
                    );
                }
                other => panic!("{first} {second}: {other:?}"),
            }
        }
    }
}

#[test]
fn an_offset_of_continuations_is_no_layout() {
    let mut random = Random(5);
    let mut ios = blocks(&mut random, 3000, 7, 8);
    // Three streams whose first I/O has an odd length, so that all that follow it start at sector 4 of 8.
    for stream in 0..3 {
        let begin = (1 << 28) + stream * (1 << 20) + 7;
        ios.push(Io(Read, begin, 5));
        ios.extend((0..400).map(|at| Io(Read, begin + 5 + at * 16, 16)));
    }
    let judged = RuleBench::default().judge_ios(ios);
    let offset = offset(&judged);
    let InferenceVerdict::One { phase } = offset.verdict else {
        panic!("found {:?}", offset.verdict);
    };
    // Blocks and first I/O of streams: 3,003 of 4,203.
    assert_eq!(
        (phase.offset_bytes, phase.ios, offset.ios),
        (Bytes(7 * 512), 3003, 4203)
    );
    assert_eq!(phase.heads, offset.heads);
    let [other] = offset.others.as_slice() else {
        panic!("found {:?}", offset.others);
    };
    let OtherOffset {
        offset_bytes, ios, ..
    } = *other;
    assert_eq!((offset_bytes, ios), (Bytes(4 * 512), 1200));
    assert!(other.continues_streams);
}

fn parted(partitions: &[(&'static str, u64)], grid: Option<&str>) -> RuleBench {
    let bench = grid.map_or_else(RuleBench::default, RuleBench::grid);
    RuleBench {
        partitions: partitions.to_vec(),
        ..bench
    }
}

const FAR: u64 = 1 << 28;

#[test]
fn different_alignments_are_judged_separately() {
    let bench = parted(&[("8,1", 63), ("8,2", FAR)], Some("4k"));
    let mut random = Random(9);
    let ios = [
        blocks(&mut random, 1000, 63, 8),
        blocks(&mut random, 3000, FAR, 8),
    ]
    .concat();
    let judged = bench.judge_ios(ios);
    let finding = judged.finding("misaligned-io");
    assert_eq!(finding.target.part, Some(Part::Partition("8,1".to_owned())));
    let counted = facts!(finding, MisalignedIo).counted;
    assert_eq!((counted.count, counted.of), (Bounds::exact(1000), 1000));
    let start = PartitionStart {
        name: "8,1".to_owned(),
        start_bytes: Bytes(63 * 512),
        past_bytes: Bytes(3584),
    };
    assert_eq!(offset(&judged).partitions, [start]);
    assert_eq!(
        offset(&judged).known_starts,
        [None],
        "nothing to guess where the start is known"
    );
    insta::assert_snapshot!(finding.fix[0].command);

    // The same from the saved profile.
    let mut saved = Saved::default();
    saved.profiles.add(&judged.profile);
    let bytes = codec::encode(&saved).expect("encodes");
    let back = codec::decode(&bytes).expect("decodes");
    let again = bench.judge(back.profiles.iter().next().expect("one profile").clone());
    assert_eq!(again.diagnosis, judged.diagnosis);
    assert_eq!(again.analysis, judged.analysis);
}

#[test]
fn two_phases_of_two_partitions_are_two_findings() {
    let bench = parted(&[("8,1", 63), ("8,2", FAR + 34)], Some("4k"));
    let mut random = Random(10);
    let ios = [
        blocks(&mut random, 500, 63, 8),
        blocks(&mut random, 500, FAR + 34, 8),
    ]
    .concat();
    let judged = bench.judge_ios(ios);
    let commands: Vec<_> = judged
        .findings("misaligned-io")
        .map(|finding| finding.fix[0].command.as_str())
        .collect();
    insta::assert_snapshot!(commands.join("\n"));
}

#[test]
fn equal_alignments_are_one_finding() {
    let bench = parted(&[("8,1", 63), ("8,2", FAR + 63), ("8,3", 2 * FAR)], None);
    let mut random = Random(11);
    let ios = [
        blocks(&mut random, 900, 63, 8),
        blocks(&mut random, 900, FAR + 63, 8),
    ]
    .concat();
    let few = (0..20).map(|at| Io(Read, 2 * FAR + at * 1600, 8));
    let judged = bench.judge_ios(ios.into_iter().chain(few));
    let finding = judged.finding("misaligned-io");
    assert_eq!(finding.target.part, None);
    let counted = facts!(finding, MisalignedIo).counted;
    assert_eq!((counted.count, counted.of), (Bounds::exact(1800), 1820));
}

#[test]
fn a_partition_with_few_io_among_different_ones_is_unknown() {
    let bench = parted(&[("8,1", 63), ("8,2", FAR), ("8,3", 2 * FAR)], Some("4k"));
    let mut random = Random(12);
    let ios = [
        blocks(&mut random, 900, 63, 8),
        blocks(&mut random, 900, FAR, 8),
    ]
    .concat();
    let few = (0..20).map(|at| Io(Read, 2 * FAR + at * 1600, 8));
    let judged = bench.judge_ios(ios.into_iter().chain(few));
    assert_eq!(judged.findings("misaligned-io").count(), 1);
    let unknown = judged
        .diagnosis
        .unknown
        .iter()
        .find(|unjudged| unjudged.rule == RuleId::MisalignedIo);
    let unknown = unknown.expect("a partition of 20 I/O");
    assert_eq!(unknown.target.part, Some(Part::Partition("8,3".to_owned())));
    assert_eq!(unknown.reason, crate::common::few(20));
}

#[test]
fn misalignment_inside_an_aligned_partition_is_reported() {
    let bench = parted(&[("8,1", 2048)], Some("4k"));
    let judged = bench.judge_ios(blocks(&mut Random(13), 900, 2048 + 3, 8));
    let start = PartitionStart {
        name: "8,1".to_owned(),
        start_bytes: Bytes(1 << 20),
        past_bytes: Bytes(0),
    };
    assert_eq!(offset(&judged).partitions, [start]);
}

/// A few I/O beside an aligned layout: a move would only break it.
#[test]
fn no_move_is_recommended_for_an_aligned_layout() {
    let mut random = Random(14);
    let ios = [
        blocks(&mut random, 970, 0, 8),
        blocks(&mut random, 30, 3, 8),
    ]
    .concat();
    let judged = RuleBench::grid("4k").judge_ios(ios);
    let finding = judged.finding("misaligned-io");
    assert!(finding.fix.is_empty());
    assert_eq!(offset(&judged).advice, OffsetAdvice::OnGrid);
}

#[test]
fn places_in_files_have_no_partition() {
    let bench = RuleBench {
        layer: plumb_trace::Layer::Vfs,
        ..RuleBench::grid("4k")
    };
    let judged = bench.judge_ios(blocks(&mut Random(15), 900, 7, 8));
    assert!(judged.finding("misaligned-io").fix.is_empty());
    let offset = offset(&judged);
    assert_eq!(offset.advice, OffsetAdvice::InFiles);
    assert_eq!(offset.known_starts, [None]);
}
