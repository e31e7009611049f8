//! How I/O are made of block-layer records: pairing, parts, requeues, losses, partitions.

use plumb_trace::blk::{Action, BlockEvents, BlockRecord, Present};
use plumb_trace::pending::WAITING_MAX;
use plumb_trace::{Batch, Event, LayerChoice, Names, Op, SourceInfo, flags};

use crate::common::completions_without_length;

fn record(action: Action, time_ns: i64, sector: u64, sectors: u64) -> BlockRecord {
    let op = if sectors == 0 { Op::Flush } else { Op::Write };
    let len_bytes = sectors * 512;
    BlockRecord {
        action,
        time_ns,
        device: 0,
        sector,
        len_bytes,
        op,
        flags: 0,
        pid: Some(1),
        comm: 0,
        cgroup: None,
        failed: false,
    }
}

struct BlkRun {
    events: BlockEvents,
    info: SourceInfo,
    batch: Batch,
}

impl BlkRun {
    fn new(layer: LayerChoice) -> BlkRun {
        let mut info = SourceInfo::default();
        let present = Present {
            queues: true,
            issues: true,
            completions: true,
        };
        BlkRun {
            events: BlockEvents::new(present, layer, None, &mut info),
            info,
            batch: Batch::default(),
        }
    }

    fn take(&mut self, record: &BlockRecord) {
        self.events.accept(record, &mut self.info);
        self.events
            .drain(&mut self.batch, usize::MAX, &mut self.info);
    }

    fn end(mut self) -> (Vec<Event>, SourceInfo) {
        self.events
            .drain_rest(&mut self.batch, usize::MAX, &mut self.info);
        (self.batch.events().collect(), self.info)
    }
}

use Action::{Complete as C, FrontMerge as F, Insert as I, Issue as D, Queue as Q, Requeue as R};

/// Expects (issue, queue, device) times, and the unmatched issues and completions.
fn check(
    records: &[(Action, i64, u64, u64)],
    expected: &[(i64, Option<i64>, Option<i64>)],
    unmatched: (u64, u64),
) {
    let mut run = BlkRun::new(LayerChoice::Lowest);
    for &(action, time_ns, sector, sectors) in records {
        run.take(&record(action, time_ns, sector, sectors));
    }
    let (events, info) = run.end();
    let found: Vec<_> = events
        .iter()
        .map(|event| (event.time_ns, event.queue_ns, event.device_ns))
        .collect();
    assert_eq!(found, expected, "{records:?}");
    assert_eq!(
        (
            info.counts.unmatched_issues,
            info.counts.unmatched_completions
        ),
        unmatched,
        "{records:?}"
    );
}

#[test]
fn pairing() {
    check(&[], &[], (0, 0));
    check(
        &[(D, 10, 8, 8), (C, 15, 8, 8)],
        &[(10, None, Some(5))],
        (0, 0),
    );
    check(
        &[(I, 3, 8, 8), (D, 10, 8, 8), (C, 15, 8, 8)],
        &[(10, Some(7), Some(5))],
        (0, 0),
    );
    // In the order of issue, for any order of completion.
    let crossed = [(D, 1, 8, 8), (D, 2, 80, 8), (C, 9, 80, 8), (C, 10, 8, 8)];
    check(&crossed, &[(1, None, Some(9)), (2, None, Some(7))], (0, 0));
    check(&[(C, 5, 8, 8), (D, 6, 8, 8)], &[(6, None, None)], (1, 1));
    // Completed before it was issued: not this one.
    check(&[(D, 10, 8, 8), (C, 9, 8, 8)], &[(10, None, None)], (1, 0));
    // A bio put in front of the request that waits.
    check(
        &[(I, 1, 16, 8), (F, 2, 8, 8), (D, 5, 8, 16), (C, 6, 8, 16)],
        &[(5, Some(4), Some(1))],
        (0, 0),
    );
    check(&[(Q, 1, 8, 8)], &[], (0, 0));
}

#[test]
fn a_request_that_completes_in_parts() {
    let parts = [
        (D, 10, 8, 24),
        (C, 12, 8, 8),
        (C, 13, 16, 8),
        (C, 20, 24, 8),
    ];
    check(&parts, &[(10, None, Some(10))], (0, 0));
    check(&parts[..3], &[(10, None, None)], (1, 0));
    // The rest would begin where another one is in flight: that one keeps its place.
    let clash = [
        (D, 10, 8, 16),
        (D, 11, 16, 8),
        (C, 12, 8, 8),
        (C, 14, 16, 8),
    ];
    check(&clash, &[(10, None, None), (11, None, Some(3))], (1, 0));
}

#[test]
fn two_of_one_place() {
    let two = |first, second, gap: i64| {
        [
            (D, 10, 8, first),
            (D, 10 + gap, 8, second),
            (C, 20 + gap, 8, second),
            (C, 90 + gap, 8, first),
        ]
    };
    // By length where lengths differ, else the older one first.
    check(
        &two(8, 16, 1),
        &[(10, None, Some(81)), (11, None, Some(10))],
        (0, 0),
    );
    check(
        &two(8, 8, 1),
        &[(10, None, Some(11)), (11, None, Some(80))],
        (0, 0),
    );
    // After a second the first must have lost its completion.
    let late = 1_000_000_001;
    check(
        &two(8, 8, late),
        &[(10, None, None), (10 + late, None, Some(10))],
        (1, 1),
    );
    // Flushes of one device are all of one place, and may take long.
    check(
        &two(0, 0, late),
        &[(10, None, Some(10 + late)), (10 + late, None, Some(80))],
        (0, 0),
    );
    let three = [
        (D, 1, 8, 8),
        (D, 2, 8, 16),
        (D, 3, 8, 24),
        (C, 4, 8, 24),
        (C, 5, 8, 16),
        (C, 6, 8, 8),
    ];
    check(
        &three,
        &[(1, None, Some(5)), (2, None, Some(3)), (3, None, Some(1))],
        (0, 0),
    );
}

#[test]
fn a_requeued_request_is_one() {
    check(
        &[(D, 1, 8, 8), (R, 2, 8, 8), (D, 3, 8, 8), (C, 9, 8, 8)],
        &[(3, None, Some(6))],
        (0, 0),
    );
    check(
        &[(R, 2, 8, 8), (D, 3, 8, 8), (C, 9, 8, 8)],
        &[(3, None, Some(6))],
        (0, 0),
    );
    // It was issued, whether or not the recording still holds the next issue.
    check(&[(D, 1, 8, 8), (R, 2, 8, 8)], &[(1, None, None)], (1, 0));
    // A later issue at the same place, after the second issue, is another I/O.
    let twice = [
        (D, 1, 8, 8),
        (R, 2, 8, 8),
        (D, 3, 8, 8),
        (C, 4, 8, 8),
        (D, 5, 8, 8),
        (C, 7, 8, 8),
    ];
    check(&twice, &[(3, None, Some(1)), (5, None, Some(2))], (0, 0));
}

/// Without known latencies nothing waits, and a requeued request still counts once.
#[test]
fn a_requeued_request_is_one_without_latencies_too() {
    let count = |records: &[(Action, i64, u64, u64)]| {
        let present = Present {
            queues: true,
            issues: true,
            completions: true,
        };
        let mut info = SourceInfo::default();
        let events = BlockEvents::new(
            present,
            LayerChoice::Lowest,
            Some("a CPU is missing".to_owned()),
            &mut info,
        );
        let mut run = BlkRun {
            events,
            info,
            batch: Batch::default(),
        };
        for &(action, time_ns, sector, sectors) in records {
            run.take(&record(action, time_ns, sector, sectors));
        }
        run.end().0.len()
    };
    assert_eq!(
        count(&[(D, 1, 8, 8), (R, 2, 8, 8), (D, 3, 8, 8), (C, 9, 8, 8)]),
        1
    );
    assert_eq!(count(&[(D, 1, 8, 8), (R, 2, 8, 8)]), 1);
    assert_eq!(
        count(&[(R, 2, 8, 8), (D, 3, 8, 8)]),
        1,
        "the first issue was not recorded"
    );
    assert_eq!(
        count(&[(D, 1, 8, 8), (R, 2, 8, 8), (D, 3, 8, 8), (D, 5, 8, 8)]),
        2
    );
}

#[test]
fn after_a_loss_nothing_old_is_paired() {
    let mut run = BlkRun::new(LayerChoice::Lowest);
    run.take(&record(D, 1, 8, 8));
    run.events.lost_some();
    run.take(&record(D, 5, 8, 8));
    run.take(&record(C, 9, 8, 8));
    let (events, info) = run.end();
    assert_eq!((events[0].device_ns, events[1].device_ns), (None, Some(4)));
    assert_eq!(
        (
            info.counts.unmatched_issues,
            info.counts.unmatched_completions
        ),
        (1, 0)
    );
}

#[test]
fn the_second_completion_of_a_flush() {
    let mut run = BlkRun::new(LayerChoice::Lowest);
    run.take(&record(D, 1, 0, 8));
    run.take(&record(D, 2, 0, 0));
    run.take(&record(C, 5, u64::MAX, 0));
    run.take(&BlockRecord {
        op: Op::Write,
        ..record(C, 6, 0, 0)
    });
    run.take(&BlockRecord {
        failed: true,
        ..record(C, 9, 0, 8)
    });
    let (events, info) = run.end();
    assert_eq!(
        (events[0].device_ns, events[0].flags),
        (Some(8), flags::FAILED)
    );
    assert_eq!((events[1].op, events[1].device_ns), (Op::Flush, Some(3)));
    assert_eq!(
        (
            info.counts.unmatched_completions,
            completions_without_length(&info)
        ),
        (0, 1)
    );
}

/// One that hangs does not hold up more than the ring, and its completion is said to be late.
#[test]
fn one_that_hangs() {
    let mut run = BlkRun::new(LayerChoice::Lowest);
    run.take(&record(D, 0, 8, 8));
    let others = WAITING_MAX as i64 + 10;
    for at in 1..=others {
        run.take(&record(D, at, 1000 + 8 * at as u64, 8));
        run.take(&record(C, at, 1000 + 8 * at as u64, 8));
    }
    assert!(run.batch.len() as i64 >= others - 1, "{}", run.batch.len());
    run.take(&record(C, 7_000_000, 8, 8));
    let (events, info) = run.end();
    assert_eq!(
        (events.len() as i64, events[0].device_ns),
        (others + 1, None)
    );
    let c = &info.counts;
    assert_eq!(
        (c.unmatched_issues, c.late_completions, c.late_ns_max),
        (1, 1, 7_000_000)
    );
    assert_eq!(c.unmatched_completions, 0);
}

#[test]
fn partitions_and_similar_names() {
    let check = |from: &str, to: &str, maps: &[(u64, u64)], expected: &[u64]| {
        let mut run = BlkRun::new(LayerChoice::Lowest);
        let mut names = Names::default();
        let (from_id, to_id) = (names.device(from), names.device(to));
        for &(from_sector, sector) in maps {
            let remap = BlockRecord {
                device: to_id,
                ..record(Action::Remap, 1, sector, 8)
            };
            run.events.remap(from_id, from_sector, &remap, &mut names);
        }
        let found: Vec<u64> = names.devices()[to_id as usize]
            .partitions
            .iter()
            .map(|(_, start)| start / 512)
            .collect();
        assert_eq!(found, expected, "{from} {to} {maps:?}");
    };
    check("8,1", "8,0", &[(0, 34), (100, 134)], &[34]);
    check("259,2", "259,1", &[(0, 2048)], &[2048]);
    // Device mapper is on a disk with another driver, and at many places.
    check("253,0", "8,0", &[(0, 2048)], &[]);
    check(
        "253,1",
        "253,0",
        &[(0, 2048), (100, 9000), (200, 2248)],
        &[],
    );
    check("8,1", "8,0", &[(100, 34)], &[]);
    check("8,0", "8,0", &[(0, 0)], &[]);
    check("8,1", "8,0", &[(0, u64::MAX)], &[u64::MAX / 512]);
}
