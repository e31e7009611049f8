//! Cached reads for `read-ahead-off` and `read-ahead-too-large`. Numbers are those of fio on a loop device: 30,754 sequential reads of
//! 4 KiB without read-ahead, and 180 random page faults with 4 MiB of it.

use plumb_diagnose::layout::{Sender, Watch};
use plumb_geometry::Bytes;
use plumb_profile::Table;
use plumb_profile::table::Row;
use plumb_stack::node::keys;
use plumb_trace::{Layer, Op};

use crate::common::lab::{JudgedLayout, Lab};

/// A disk with one partition that a watch of 10 s saw.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) read_ahead: u64,
    /// Length, whether they continue a stream, and number.
    pub(crate) reads: &'static [(u64, bool, u64)],
    pub(crate) cached: Option<u64>,
    pub(crate) faults: u64,
    /// The read-ahead of a volume on the partition.
    pub(crate) above: Option<u64>,
}

pub(crate) fn judge(seen: Seen) -> JudgedLayout {
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

/// 100 reads of those, and many writes.
pub(crate) fn judge_with_writes(seen: Seen) -> JudgedLayout {
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
