//! Answers of the HTTP API to questions about the history. The parts that `plumb history --json` prints as well have the same shape here.

use plumb_geometry::{Bounds, SmallSort};
use plumb_profile::Profile;
use plumb_profile::histogram::{Counts, log_linear_bounds};
use plumb_profile::profile::OpTotals;
use plumb_trace::Op;
use serde::Serialize;

use crate::history::{HistoryCourse, HistoryDevice, HistoryFinding, HistorySenders};

/// The document of an answer.
#[derive(Debug, Serialize)]
pub struct ApiDocument {
    schema: &'static str,
    version: &'static str,
    /// Begin of the time of the answer, widened to whole windows; absent if no window is in it.
    pub from: Option<String>,
    /// Its end, excluded.
    pub to: Option<String>,
    /// Link to the rest of an answer that was cut at its limit.
    pub next: Option<String>,
    result: ApiAnswer,
}

/// The answer.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", content = "is", rename_all = "kebab-case")]
pub enum ApiAnswer {
    /// The devices.
    Devices(Vec<HistoryDevice>),
    /// The I/O of a device over time, a course for each layer.
    Courses(Vec<HistoryCourse>),
    /// The findings, in the order in which they appeared.
    Findings(Vec<HistoryFinding>),
    /// The histograms of a device, one entry for each layer.
    Histograms(Vec<ApiHistograms>),
    /// The senders and the residue table of a device, one entry for each layer.
    Tables(Vec<ApiTables>),
}

/// The histograms of a device over a time.
#[derive(Debug, Serialize)]
pub struct ApiHistograms {
    /// Its last name.
    pub device: String,
    /// WWN, serial number or UUID; a name without them.
    pub identity: String,
    /// Layer at which its I/O were counted.
    pub layer: &'static str,
    /// Begin of the time, widened to whole windows.
    pub from: String,
    /// Its end, excluded.
    pub to: String,
    /// Operations with I/O.
    pub ops: Vec<ApiOp>,
    /// Damaged records in this time, whose I/O are in no figure.
    pub damaged: u64,
}

/// The histograms of an operation.
#[derive(Debug, Serialize)]
pub struct ApiOp {
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

/// The senders and the places of a device's I/O.
#[derive(Debug, Serialize)]
pub struct ApiTables {
    /// The senders, as `plumb history senders` has them.
    pub senders: HistorySenders,
    /// I/O of windows without a residue table.
    pub untabled_ios: u64,
    /// The modulus of the residues, bytes.
    pub modulus_bytes: u64,
    /// Whether `device_ns_sum` of a row may be its share of that of all rows of its operation, length and stream bit.
    pub are_latencies_shared: bool,
    /// Rows of the whole table.
    pub rows_total: u64,
    /// Rows of this answer, most I/O first.
    pub rows: Vec<ApiRow>,
}

/// I/O of one operation, residue and length.
#[derive(Debug, Serialize)]
pub struct ApiRow {
    op: &'static str,
    residue_bytes: u64,
    len_bytes: Bounds<u64>,
    continues: bool,
    ios: u64,
    timed: u64,
    device_ns_sum: u128,
}

impl ApiDocument {
    /// An answer without a time and whole.
    #[must_use]
    pub fn new(version: &'static str, result: ApiAnswer) -> ApiDocument {
        ApiDocument {
            schema: "plumb.api/1",
            version,
            from: None,
            to: None,
            next: None,
            result,
        }
    }

    /// The document in JSON.
    ///
    /// # Errors
    /// When a number cannot be written as JSON.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        Ok(plumb_quoting::json::line(self)? + "\n")
    }
}

/// The histograms of the operations of a profile that have I/O.
#[must_use]
pub fn ops(totals: &[OpTotals; 6]) -> Vec<ApiOp> {
    let all = Op::ALL.into_iter().zip(totals);
    let with_io = all.filter(|(_, totals)| totals.has_io());
    with_io.map(|(op, totals)| of_op(op, totals)).collect()
}

fn of_op(op: Op, totals: &OpTotals) -> ApiOp {
    let sizes = totals.sizes.iter().map(|(power, ios)| {
        let below = (power as u32).checked_sub(1);
        SizeBucket {
            len_min_bytes: below.map_or(0, |below| end_of_power(below).saturating_add(1)),
            len_max_bytes: end_of_power(power as u32),
            ios,
        }
    });
    ApiOp {
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
pub fn rows(profile: &Profile, skip: usize, count: usize) -> Vec<ApiRow> {
    let table = &profile.places.table;
    let mut all: Vec<_> = table.iter().collect();
    all.small_sort_by_key(|(key, row)| (std::cmp::Reverse(row.ios), *key));
    let shown = all.into_iter().skip(skip).take(count);
    let shown = shown.map(|(key, row)| ApiRow {
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
            .add(plumb_profile::histogram::log_linear_index(1000), 7);
        let times = of_op(Op::Read, &totals).device;
        assert_eq!(
            (times[0].min_ns, times[0].max_ns, times[0].ios),
            (992, 1023, 7)
        );
    }
}
