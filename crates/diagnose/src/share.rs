//! A share with its interval: the count, the total, and the meaning for unseen I/O.

use plumb_geometry::Bounds;
use plumb_model::CountedShare;
use serde::Serialize;

/// Width of intervals in standard errors: 95 of 100 hold the true share.
const Z: f64 = 1.96;

/// A count of a total.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The count: a range if a table dropped the necessary detail.
    pub part: Bounds<u64>,
    /// Of how many; at least `part`.
    pub whole: u64,
}

impl Share {
    /// `part` of `whole`; a larger part counts as the whole.
    #[must_use]
    pub fn new(part: u64, whole: u64) -> Share {
        Share::between(Bounds::exact(part), whole)
    }

    /// As [`Share::new`], of a part that may be a range.
    #[must_use]
    pub fn between(part: Bounds<u64>, whole: u64) -> Share {
        Share {
            part: part.map(|part| part.min(whole)),
            whole,
        }
    }

    /// The largest share that the part leaves possible.
    #[must_use]
    pub fn at_most(self) -> Share {
        Share::new(self.part.high, self.whole)
    }

    /// The share itself, 0 to 1, or the lower end of its range; 0 of nothing is 0.
    #[must_use]
    pub fn value(self) -> f64 {
        ratio(self.part.low, self.whole)
    }

    /// Both ends of Wilson's 95 % interval, which holds for small shares and few I/O as well (E. B. Wilson, 1927). Of
    /// a range it reaches from the lower end of one to the upper end of the other.
    #[must_use]
    pub fn interval(self) -> (f64, f64) {
        (
            wilson(self.part.low, self.whole).0,
            wilson(self.part.high, self.whole).1,
        )
    }

    /// The share with its interval.
    #[must_use]
    pub fn counted(self) -> CountedShare {
        let (share_low, share_high) = self.interval();
        CountedShare {
            count: self.part,
            of: self.whole,
            share_low,
            share_high,
            lost: None,
        }
    }

    /// Lower end of the interval.
    #[must_use]
    pub fn low(self) -> f64 {
        self.interval().0
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

fn wilson(part: u64, whole: u64) -> (f64, f64) {
    if whole == 0 {
        return (0.0, 1.0);
    }
    let (n, p) = (whole as f64, ratio(part, whole));
    let weight = 1.0 + Z * Z / n;
    let middle = p + Z * Z / (2.0 * n);
    let reach = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    (
        ((middle - reach) / weight).max(0.0),
        ((middle + reach) / weight).min(1.0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_spans_both_ends_of_a_range() {
        let share = Share::between(Bounds { low: 15, high: 81 }, 263);
        let (low, high) = share.interval();
        assert_eq!(low, Share::new(15, 263).interval().0);
        assert!((high - 0.3662).abs() < 1e-4, "{high}");
    }

    /// Values of Wilson's interval as tabled by R. G. Newcombe, Statistics in Medicine 17 (1998), table I.
    #[test]
    fn agrees_with_newcombes_table() {
        for (part, whole, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let (found_low, found_high) = Share::new(part, whole).interval();
            assert!(
                (found_low - low).abs() < 1e-4,
                "{part}/{whole}: {found_low}"
            );
            assert!(
                (found_high - high).abs() < 1e-4,
                "{part}/{whole}: {found_high}"
            );
        }
    }
}
