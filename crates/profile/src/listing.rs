//! The histograms of operations and the rows of the residue table as lists, each value with its bounds. `docs/schema/api.json`
//! has the same fields.

use plumb_geometry::{Bounds, SmallSort};
use plumb_trace::Op;
use serde::Serialize;

use crate::Profile;
use crate::histogram::{Counts, log_linear_bounds};
use crate::profile::OpTotals;

/// The histograms of an operation.
#[derive(Debug, Serialize)]
pub struct OpHistograms {
    op: &'static str,
    ios: u64,
    bytes: u64,
    failed: u64,
    timed: u64,
    sizes: Vec<SizeBucket>,
    device: Vec<TimeBucket>,
    queue: Vec<TimeBucket>,
}

/// I/O with lengths in a range, both ends included.
#[derive(Debug, Serialize)]
struct SizeBucket {
    len_min_bytes: u64,
    len_max_bytes: u64,
    ios: u64,
}

/// I/O with times in a range, both ends included.
#[derive(Debug, Serialize)]
struct TimeBucket {
    min_ns: u64,
    max_ns: u64,
    ios: u64,
}

/// I/O of one operation, residue and length.
#[derive(Debug, Serialize)]
pub struct ListedRow {
    op: &'static str,
    residue_bytes: u64,
    len_bytes: Bounds<u64>,
    continues: bool,
    ios: u64,
    timed: u64,
    device_ns_sum: u128,
}

/// The histograms of the operations of a profile that have I/O.
#[must_use]
pub fn histograms(totals: &[OpTotals; 6]) -> Vec<OpHistograms> {
    let all = Op::ALL.into_iter().zip(totals);
    let with_io = all.filter(|(_, totals)| totals.has_io());
    with_io.map(|(op, totals)| of_op(op, totals)).collect()
}

fn of_op(op: Op, totals: &OpTotals) -> OpHistograms {
    let sizes = totals.sizes.iter().map(|(power, ios)| {
        let below = (power as u32).checked_sub(1);
        SizeBucket {
            len_min_bytes: below.map_or(0, |below| end_of_power(below).saturating_add(1)),
            len_max_bytes: end_of_power(power as u32),
            ios,
        }
    });
    OpHistograms {
        op: op.word(),
        ios: totals.ios,
        bytes: totals.bytes,
        failed: totals.failed,
        timed: totals.timed,
        sizes: sizes.collect(),
        device: times(&totals.device_ns),
        queue: times(&totals.queue_ns),
    }
}

/// The largest length of a class.
fn end_of_power(power: u32) -> u64 {
    1u64.checked_shl(power).unwrap_or(u64::MAX)
}

fn times(counts: &Counts) -> Vec<TimeBucket> {
    let buckets = counts.iter().map(|(bucket, ios)| {
        let (min_ns, max_ns) = log_linear_bounds(bucket);
        TimeBucket {
            min_ns,
            max_ns,
            ios,
        }
    });
    buckets.collect()
}

/// Rows of the residue table of a profile, most I/O first: at most `count` of them behind the first `skip`.
#[must_use]
pub fn rows(profile: &Profile, skip: usize, count: usize) -> Vec<ListedRow> {
    let table = &profile.places.table;
    let mut all: Vec<_> = table.iter().collect();
    all.small_sort_by_key(|(key, row)| (std::cmp::Reverse(row.ios), *key));
    let shown = all.into_iter().skip(skip).take(count);
    let shown = shown.map(|(key, row)| ListedRow {
        op: key.op().word(),
        residue_bytes: key.residue() * table.unit_bytes(),
        len_bytes: table.len_bytes(key),
        continues: key.continues(),
        ios: row.ios,
        timed: row.timed,
        device_ns_sum: row.ns_sum,
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other() {
        let mut totals = OpTotals::default();
        for power in [0, 1, 2, 12, 63, 64] {
            totals.sizes.add(power, 1 + power as u64);
        }
        let sizes = of_op(Op::Read, &totals).sizes;
        let bounds: Vec<(u64, u64, u64)> = sizes
            .iter()
            .map(|size| (size.len_min_bytes, size.len_max_bytes, size.ios))
            .collect();
        let expected = [
            (0, 1, 1),
            (2, 2, 2),
            (3, 4, 3),
            (2049, 4096, 13),
            ((1 << 62) + 1, 1 << 63, 64),
            ((1 << 63) + 1, u64::MAX, 65),
        ];
        assert_eq!(bounds, expected);
        // 1,000 ns is in the bucket from 992 to 1,023.
        totals
            .device_ns
            .add(crate::histogram::log_linear_index(1000), 7);
        let times = of_op(Op::Read, &totals).device;
        assert_eq!(
            (times[0].min_ns, times[0].max_ns, times[0].ios),
            (992, 1023, 7)
        );
    }
}
