//! Tests of `read-ahead-too-large`.

use plumb_diagnose::Reason;
use plumb_geometry::Bytes;
use plumb_model::reason::Counting;

use crate::common::read_ahead::{Seen, judge, judge_with_writes};
use crate::facts;

/// 180 faults; requests to this device have at most 1,280 KiB.
const MAPPED: Seen = Seen {
    read_ahead: 4 << 20,
    reads: &[
        (1280 << 10, false, 180),
        (1280 << 10, true, 360),
        (256 << 10, true, 140),
    ],
    cached: Some(680),
    faults: 180,
    above: None,
};

#[test]
fn read_ahead_too_large() {
    let rule = "read-ahead-too-large";
    let judged = judge(MAPPED);
    assert_eq!(judged.found_on(rule), ["sda"]);
    assert!(
        judged.found_on("queue-setting").is_empty(),
        "one cause, one finding"
    );
    let facts = facts!(judged.finding(rule), ReadAheadTooLarge);
    let read_bytes = (540 * 1280 + 140 * 256) << 10;
    assert_eq!((facts.jumps, facts.read_bytes), (180, read_bytes));
    assert_eq!(facts.better_bytes, Bytes(128 << 10), "as the kernel has it");

    let silent = [
        Seen {
            read_ahead: 128 << 10,
            ..MAPPED
        },
        // Reported by queue-setting, whatever is read.
        Seen {
            read_ahead: 64 << 20,
            ..MAPPED
        },
        // read(2), which asks for what it gets.
        Seen {
            faults: 9,
            ..MAPPED
        },
        // A mapped file that is read from its start to its end.
        Seen {
            reads: &[(1280 << 10, false, 2), (1280 << 10, true, 678)],
            ..MAPPED
        },
        // The program advised the kernel that it reads at random.
        Seen {
            reads: &[(4096, false, 680)],
            ..MAPPED
        },
        // Direct I/O of the process that faults elsewhere.
        Seen {
            cached: Some(5),
            ..MAPPED
        },
    ];
    for (at, seen) in silent.into_iter().enumerate() {
        assert!(judge(seen).is_silent(rule), "case {at}");
    }
    let few = Reason::TooFew {
        what: Counting::Ios,
        seen: 100,
        needed: 200,
    };
    assert_eq!(*judge_with_writes(MAPPED).unknown(rule), few);
}
