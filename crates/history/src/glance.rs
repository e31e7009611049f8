//! The narrowest width of a record: integers that SQL can sum.

use plumb_geometry::{Bytes, Grid};
use plumb_profile::fit::Select;
use plumb_profile::histogram::log_linear_bounds;
use plumb_profile::{Profile, Unknown};
use plumb_trace::Op;
use serde::{Deserialize, Serialize};

use crate::tier::Window;

/// Grid of the column `off_4k`. A start off it is off every larger power of two as well.
const GRID: Grid = match Grid::unit(Bytes(4096)) {
    Ok(grid) => grid,
    Err(_) => panic!("4096 is a granularity"),
};

/// Upper ends of the classes of the size mix, bytes. A fifth class has all longer I/O.
pub(crate) const MIX_BYTES: [u64; 4] = [4 << 10, 16 << 10, 64 << 10, 256 << 10];

/// The columns, in their order after `id`.
pub(crate) const COLUMNS: &str = "ios, reads, writes, read_bytes, write_bytes, off_4k, timed, p50_ns, p99_ns, max_ns, \
     to_4k, to_16k, to_64k, to_256k, longer";

/// Number of [`COLUMNS`].
pub(crate) const COLUMNS_COUNT: usize = 15;

/// Totals of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Glance {
    /// I/O of all operations.
    pub ios: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Reads and writes that do not start on a 4 KiB boundary of the device; `None` if the table does not tell.
    pub off_4k: Option<u64>,
    /// Reads and writes with a known latency.
    pub timed: u64,
    /// Half of the latencies are at most this, ns; at most 1/16 too large. `None` without timed I/O.
    pub p50_ns: Option<u64>,
    /// The same for 99 %.
    pub p99_ns: Option<u64>,
    /// No latency is larger, ns.
    pub max_ns: Option<u64>,
    /// Reads and writes by length: up to 4, 16, 64, 256 KiB, and longer.
    pub mix: [u64; 5],
}

impl Glance {
    /// The totals of a profile.
    #[must_use]
    pub fn of_profile(profile: &Profile) -> Glance {
        let (reads, writes) = (profile.op(Op::Read), profile.op(Op::Write));
        let mut latencies = reads.device_ns.clone();
        latencies.merge(&writes.device_ns);
        let quantile = |part| latencies.log_linear_quantile(part, 100);
        let mut mix = [0; 5];
        for (power, ios) in reads.sizes.iter().chain(writes.sizes.iter()) {
            let len_max = 1u64.checked_shl(power as u32).unwrap_or(u64::MAX);
            let class = MIX_BYTES.partition_point(|end| *end < len_max);
            mix[class] += ios;
        }
        let off_4k = match profile.places.table.fit(&GRID, Select::DATA) {
            Ok(tally) => tally.misaligned.known(),
            Err(Unknown::NoIo) => Some(0),
            Err(_) => None,
        };
        Glance {
            ios: profile.ios(),
            reads: reads.ios,
            writes: writes.ios,
            read_bytes: reads.bytes,
            write_bytes: writes.bytes,
            off_4k,
            timed: reads.timed.saturating_add(writes.timed),
            p50_ns: quantile(50).map(|(_, high)| high),
            p99_ns: quantile(99).map(|(_, high)| high),
            max_ns: latencies
                .iter()
                .next_back()
                .map(|(bucket, _)| log_linear_bounds(bucket).1),
            mix,
        }
    }

    /// The values of [`COLUMNS`]; counts above 2^63 − 1 become that.
    pub(crate) fn to_columns(self) -> [Option<i64>; COLUMNS_COUNT] {
        let whole = |count: u64| Some(i64::try_from(count).unwrap_or(i64::MAX));
        let mix = self.mix.map(whole);
        [
            whole(self.ios),
            whole(self.reads),
            whole(self.writes),
            whole(self.read_bytes),
            whole(self.write_bytes),
            self.off_4k.and_then(whole),
            whole(self.timed),
            self.p50_ns.and_then(whole),
            self.p99_ns.and_then(whole),
            self.max_ns.and_then(whole),
            mix[0],
            mix[1],
            mix[2],
            mix[3],
            mix[4],
        ]
    }

    /// The totals of these columns. The file may come from anywhere: a negative count is 0.
    pub(crate) fn from_columns(columns: [Option<i64>; COLUMNS_COUNT]) -> Glance {
        let known = |at: usize| columns[at].map(|count| u64::try_from(count).unwrap_or(0));
        let count = |at: usize| known(at).unwrap_or(0);
        Glance {
            ios: count(0),
            reads: count(1),
            writes: count(2),
            read_bytes: count(3),
            write_bytes: count(4),
            off_4k: known(5),
            timed: count(6),
            p50_ns: known(7),
            p99_ns: known(8),
            max_ns: known(9),
            mix: [count(10), count(11), count(12), count(13), count(14)],
        }
    }
}

/// The totals of one window of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlanceRow {
    /// Number of the series.
    pub series: u32,
    /// The window.
    pub window: Window,
    /// Its totals.
    pub glance: Glance,
}
