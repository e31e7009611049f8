//! Tests of `read-ahead-off`.

use plumb_diagnose::Reason;
use plumb_geometry::Bytes;
use plumb_model::reason::Counting;

use crate::common::read_ahead::{Seen, judge, judge_with_writes};
use crate::facts;

const IN_ORDER: Seen = Seen {
    read_ahead: 0,
    reads: &[(4096, true, 30_751), (4096, false, 3)],
    cached: Some(30_754),
    faults: 0,
    above: None,
};

#[test]
fn read_ahead_off() {
    let rule = "read-ahead-off";
    let judged = judge(IN_ORDER);
    assert_eq!(judged.found_on(rule), ["sda"]);
    let facts = facts!(judged.finding(rule), ReadAheadOff);
    assert_eq!((facts.reads, facts.continuing_reads), (30_754, 30_751));
    assert_eq!(facts.better_bytes, Bytes(128 << 10), "as the kernel has it");

    let silent = [
        Seen {
            read_ahead: 128 << 10,
            ..IN_ORDER
        },
        // Direct I/O has no use for read-ahead.
        Seen {
            cached: Some(0),
            ..IN_ORDER
        },
        // Random reads have none either.
        Seen {
            reads: &[(4096, true, 1_500), (4096, false, 28_500)],
            ..IN_ORDER
        },
        // Reads of 1 MiB lose little.
        Seen {
            reads: &[(1 << 20, true, 1_500)],
            cached: Some(1_500),
            ..IN_ORDER
        },
    ];
    for (at, seen) in silent.into_iter().enumerate() {
        assert!(judge(seen).is_silent(rule), "case {at}");
    }
    // The watch of I/O without flags, and the disk below a volume with its own read-ahead.
    for seen in [
        Seen {
            cached: None,
            ..IN_ORDER
        },
        Seen {
            above: Some(128 << 10),
            ..IN_ORDER
        },
    ] {
        assert!(judge(seen).is_not_asked(rule));
    }
    let mostly_written = judge_with_writes(IN_ORDER);
    let few = Reason::TooFew {
        what: Counting::Ios,
        seen: 100,
        needed: 200,
    };
    assert_eq!(*mostly_written.unknown(rule), few);
}
