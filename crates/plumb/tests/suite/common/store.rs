//! Histories with known I/O, written as an agent writes them.

use plumb_history::{DeviceIncrement, Sender, Senders, Span, Writer};
use plumb_profile::histogram::log_linear_index;
use plumb_profile::table::Row;
use plumb_profile::top::ProcessShare;
use plumb_profile::{Profile, Table};
use plumb_trace::{Layer, Op};

pub const SECOND: i64 = 1_000_000_000;
pub const WINDOW: i64 = 300 * SECOND;
pub const HOUR: i64 = 3600 * SECOND;
pub const DAY: i64 = 24 * HOUR;
/// 2026-11-01, a begin of a day.
pub const BEGIN: i64 = 1_793_491_200 * SECOND;
pub const IDENTITY: &str = "wwn-0x5000c500a1b2c3d4";

/// A number of I/O of one kind, in a profile.
pub fn add_ios(profile: &mut Profile, op: Op, ios: u64, (residue, len): (u64, u64), ns: u64) {
    let row = Row {
        ios,
        timed: ios,
        ns_sum: u128::from(ns * ios),
        ns_squared_sum: u128::from(ns) * u128::from(ns * ios),
        regions: 1,
    };
    profile.add_residue(op, residue, len, false, &row);
    let latencies = &mut profile.ops[op as usize].device_ns;
    latencies.add(log_linear_index(ns), ios);
}

pub fn empty(name: &str) -> Profile {
    let table = Table::new(1 << 20).expect("a modulus");
    Profile::new(name, Layer::Request, table)
}

pub fn sender(command: &str, ios: u64) -> Senders {
    let mut senders = Senders::default();
    let of = Sender {
        command: command.to_owned(),
        cgroup: "/system.slice/postgresql.service".to_owned(),
    };
    let bytes = ios * 4096;
    senders.add(of, ProcessShare { ios, bytes });
    senders
}

/// Adds the profile of a window that begins at a time.
pub fn store(writer: &mut Writer, identity: &str, at_ns: i64, profile: &Profile) {
    let span = Span {
        from_ns: at_ns,
        to_ns: at_ns + WINDOW,
    };
    let increment = DeviceIncrement {
        identity,
        name: &profile.device,
        profile,
        senders: Some(&sender("postgres", 71)),
    };
    writer.add(span, &increment).expect("an increment");
    writer.checkpoint(span.to_ns).expect("a checkpoint");
}
