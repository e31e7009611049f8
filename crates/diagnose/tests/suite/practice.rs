//! Typical workloads, and statements that would mislead an administrator.

use crate::common::{Io, Judged, Random, RuleBench};
use crate::facts;
use plumb_diagnose::Severity;
use plumb_geometry::{Bounds, Bytes};
use plumb_model::facts::{IoOffset, KnownStart, OffsetAdvice, RecordMismatch};
use plumb_profile::infer::InferenceVerdict;
use plumb_trace::Op::{Read, Write};

fn rules_that_spoke(judged: &crate::common::Judged) -> Vec<(&'static str, Severity)> {
    judged
        .diagnosis
        .findings
        .iter()
        .map(|finding| (finding.rule().name(), finding.severity))
        .collect()
}

fn offset(judged: &Judged) -> &IoOffset {
    let facts = facts!(judged.finding("misaligned-io"), MisalignedIo);
    facts.offset.as_ref().expect("an offset")
}

/// A database: random pages of 8 KiB, three reads for each write.
fn database(count: u64, past: u64) -> Vec<Io> {
    let mut random = Random(21);
    (0..count)
        .map(|at| {
            Io(
                if at % 4 == 0 { Write } else { Read },
                past + random.below(1 << 24) * 16,
                16,
            )
        })
        .collect()
}

#[test]
fn an_aligned_database_has_no_finding() {
    let mut bench = RuleBench::chunk(64 << 10, Some(4));
    bench.questions.grids = RuleBench::grid("8k").questions.grids;
    let judged = bench.judge_ios(database(20_000, 0));
    for rule in [
        "misaligned-io",
        "odd-length-io",
        "split-io",
        "member-skew",
        "looks-sequential",
    ] {
        assert!(
            judged.is_silent(rule),
            "{rule}: {:?}",
            rules_that_spoke(&judged)
        );
    }
}

/// The same behind an EFI label at sector 34: every page covers two, which is one defect and not three.
#[test]
fn a_database_behind_sector_34_is_reported_once() {
    let judged = RuleBench::grid("8k").judge_ios(database(20_000, 34));
    let finding = judged.finding("misaligned-io");
    assert!(judged.is_silent("odd-length-io"), "its pages are whole");
    assert_eq!(
        facts!(finding, MisalignedIo).counted.count.known(),
        Some(20_000)
    );
    let offset = offset(&judged);
    let InferenceVerdict::One { phase } = offset.verdict else {
        panic!("found {:?}", offset.verdict);
    };
    assert_eq!(
        (phase.granularity_bytes, phase.offset_bytes, phase.ios),
        (Bytes(8192), Bytes(2 * 512), 20_000)
    );
    assert_eq!(offset.known_starts, [Some(KnownStart::Sector34)]);
    let shift = OffsetAdvice::Shift {
        up_bytes: Bytes(14 * 512),
        blocks_bytes: None,
        misaligned: Bounds::exact(0),
        ios: 20_000,
    };
    assert_eq!(offset.advice, shift);
}

/// Without a grid the move serves the pages: six sectors would do for 4 KiB, and leave every page across two of its own.
#[test]
fn a_database_without_a_grid_is_moved_to_whole_pages() {
    let judged = RuleBench::default().judge_ios(database(20_000, 34));
    let shift = OffsetAdvice::Shift {
        up_bytes: Bytes(14 * 512),
        blocks_bytes: Some(Bytes(8192)),
        misaligned: Bounds::exact(0),
        ios: 20_000,
    };
    assert_eq!(offset(&judged).advice, shift);
}

/// Large random reads of whole megabytes: a file server at its work.
#[test]
fn a_file_server_has_no_finding() {
    let mut random = Random(22);
    let ios = (0..5000).map(|_| Io(Read, random.below(1 << 18) * 2048, 2048));
    let judged = RuleBench::grid("4k").judge_ios(ios.collect::<Vec<_>>());
    assert_eq!(rules_that_spoke(&judged), []);
}

/// Backup: a few long streams, from an aligned start.
#[test]
fn streams_have_no_finding() {
    let ios = (0..20_000u64).map(|at| Io(Read, (at % 4) * (1 << 30) + at / 4 * 256, 256));
    let judged = RuleBench::grid("4k").judge_ios(ios);
    assert_eq!(rules_that_spoke(&judged), []);
}

/// The same off the grid: it is counted, and no layout is made up from four heads.
#[test]
fn few_heads_show_no_layout() {
    let ios = (0..20_000u64).map(|at| Io(Read, 63 + (at % 4) * (1 << 30) + at / 4 * 256, 256));
    let judged = RuleBench::grid("4k").judge_ios(ios);
    let finding = judged.finding("misaligned-io");
    assert_eq!(offset(&judged).heads, 4);
    assert!(matches!(
        offset(&judged).verdict,
        InferenceVerdict::NotEnoughData { .. }
    ));
    assert!(finding.fix.is_empty());
}

/// Odd lengths put the next I/O of a stream off the grid; the cost of one is not counted for the other.
#[test]
fn odd_lengths_and_off_starts_are_counted_apart() {
    let mut random = Random(23);
    let ios: Vec<Io> = (0..4000)
        .map(|_| {
            Io(
                Read,
                random.below(1 << 24) * 8 + random.below(2) * 3,
                8 - random.below(2) * 2,
            )
        })
        .collect();
    let off = ios.iter().filter(|io| io.1 % 8 != 0).count() as f64;
    let odd = ios.iter().filter(|io| io.2 % 8 != 0).count() as f64;
    let cells = |io: &Io| ((io.1 + io.2).div_ceil(8) - io.1 / 8) as f64;
    let (touched, sectors): (f64, u64) =
        (ios.iter().map(cells).sum(), ios.iter().map(|io| io.2).sum());
    let judged = RuleBench::grid("4k").judge_ios(ios);
    let cost = |rule| judged.finding(rule).cost.as_ref().expect("a cost").value;
    assert_eq!(
        cost("misaligned-io"),
        touched / 4000.0,
        "cells touched for one that is needed"
    );
    assert_eq!(
        cost("odd-length-io"),
        4000.0 * 8.0 / sectors as f64,
        "whole cells for parts of them"
    );
    assert_eq!(
        crate::common::number(judged.finding("misaligned-io"), "counted.count"),
        off
    );
    assert_eq!(
        crate::common::number(judged.finding("odd-length-io"), "counted.count"),
        odd
    );
}

/// A log that is appended to in small parts: the cache makes whole records of them, so it is no warning.
#[test]
fn an_appended_file_is_no_warning_for_its_records() {
    let ios = (0..5000).map(|at| Io(Write, at * 8, 8));
    let judged = RuleBench::record(128 << 10).judge_ios(ios);
    let finding = judged.finding("record-mismatch");
    assert_eq!(finding.severity, Severity::Note);
    let RecordMismatch::Requests(facts) = facts!(finding, RecordMismatch) else {
        panic!("found {:?}", finding.facts);
    };
    assert_eq!(facts.following.known(), Some(4999), "all but the first");
}
