//! `read-ahead-off` and `read-ahead-too-large`: each fires, stays silent, and lacks data. Numbers are those of fio on a loop device:
//! 30,754 sequential reads of 4 KiB without read-ahead, and 180 random page faults with 4 MiB of it.

use plumb_diagnose::Reason;
use plumb_diagnose::layout::{Sender, Watch};
use plumb_geometry::Bytes;
use plumb_model::reason::Counting;
use plumb_profile::Table;
use plumb_profile::table::Row;
use plumb_stack::node::keys;
use plumb_trace::{Layer, Op};

use crate::facts;
use crate::layout::lab::{JudgedLayout, Lab};

/// A disk with one partition that a watch of 10 s saw.
#[derive(Clone, Copy)]
struct Seen {
    read_ahead: u64,
    /// Length, whether they continue a stream, and number.
    reads: &'static [(u64, bool, u64)],
    cached: Option<u64>,
    faults: u64,
    /// The read-ahead of a volume on the partition.
    above: Option<u64>,
}

const IN_ORDER: Seen = Seen {
    read_ahead: 0,
    reads: &[(4096, true, 30_751), (4096, false, 3)],
    cached: Some(30_754),
    faults: 0,
    above: None,
};

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

fn judge(seen: Seen) -> JudgedLayout {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    lab.fact(disk, keys::READ_AHEAD, Bytes(seen.read_ahead));
    let part = lab.partition("sda1", disk, 2048);
    if let Some(above) = seen.above {
        let volume = lab.runs(
            plumb_stack::Kind::LogicalVolume,
            "dm-0",
            &[(part, 0, 1 << 20)],
        );
        lab.fact(volume, keys::READ_AHEAD, Bytes(above));
    }
    lab.known.watch = Some(Watch {
        seconds: 10.0,
        senders: vec![Sender {
            device: "sda1".to_owned(),
            comm: "fio".to_owned(),
            ios: 680,
            faults: seen.faults,
        }],
    });
    let table = || Table::new(1 << 20).expect("a modulus");
    let profile = lab.profiles.entry("sda", Layer::Request, table);
    for &(len_bytes, continues, ios) in seen.reads {
        let row = Row {
            ios,
            ..Row::default()
        };
        profile.add_residue(Op::Read, 0, len_bytes, continues, &row);
    }
    profile.answers.get_or_insert_default().cached_reads = seen.cached;
    lab.judge()
}

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

/// 100 reads of those, and many writes.
fn judge_with_writes(seen: Seen) -> JudgedLayout {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    lab.fact(disk, keys::READ_AHEAD, Bytes(seen.read_ahead));
    lab.known.watch = Some(Watch {
        seconds: 10.0,
        senders: vec![Sender {
            device: "sda".to_owned(),
            comm: "fio".to_owned(),
            ios: 1_100,
            faults: seen.faults,
        }],
    });
    let table = || Table::new(1 << 20).expect("a modulus");
    let profile = lab.profiles.entry("sda", Layer::Request, table);
    for (op, ios) in [(Op::Read, 100), (Op::Write, 1_000)] {
        let row = Row {
            ios,
            ..Row::default()
        };
        profile.add_residue(op, 0, 4096, true, &row);
    }
    profile.answers.get_or_insert_default().cached_reads = seen.cached;
    lab.judge()
}

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
