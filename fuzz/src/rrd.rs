//! Reads bytes as an RRD of io-profiler, and adds up its rows.

use plumb_profile::imported::Imported;
use plumb_trace::rrd;

/// Seconds of a day.
const DAY_S: i64 = 86_400;

/// One dump.
pub fn dump(data: &[u8]) -> bool {
    let dump = match rrd::read("dump", data) {
        Ok(dump) => dump,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    let mut sum = Imported::default();
    let mut end_s = i64::MIN;
    for row in dump.counts(dump.counted_over_s()) {
        assert!(end_s <= row.from_s, "no time counts twice");
        assert!(row.from_s < row.to_s && !row.histograms.is_empty());
        let day = |at_s: i64| at_s.div_euclid(DAY_S);
        assert_eq!(day(row.from_s), day(row.to_s - 1), "a row is in one day");
        end_s = row.to_s;
        for histogram in &row.histograms {
            let rises = |pair: &[plumb_trace::Bucket]| pair[0].high < pair[1].low;
            assert!(histogram.buckets.windows(2).all(rises));
            sum.add_histogram(histogram);
        }
    }
    true
}
