//! A share with its interval: how many of how many, and what that says of the I/O that were not seen.

use plumb_model::CountedShare;
use serde::Serialize;

/// Width of intervals in standard errors: 95 of 100 hold the true share.
const Z: f64 = 1.96;

/// So many of so many.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// How many.
    pub part: u64,
    /// Of how many; at least `part`.
    pub whole: u64,
}

impl Share {
    /// `part` of `whole`; a larger part counts as the whole.
    #[must_use]
    pub fn new(part: u64, whole: u64) -> Share {
        Share {
            part: part.min(whole),
            whole,
        }
    }

    /// The share itself, 0 to 1; 0 of nothing is 0.
    #[must_use]
    pub fn value(self) -> f64 {
        if self.whole == 0 {
            0.0
        } else {
            self.part as f64 / self.whole as f64
        }
    }

    /// Both ends of Wilson's 95 % interval, which holds for small shares and few I/O as well (E. B. Wilson, 1927).
    #[must_use]
    pub fn interval(self) -> (f64, f64) {
        if self.whole == 0 {
            return (0.0, 1.0);
        }
        let (n, p) = (self.whole as f64, self.value());
        let weight = 1.0 + Z * Z / n;
        let middle = p + Z * Z / (2.0 * n);
        let reach = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        (
            ((middle - reach) / weight).max(0.0),
            ((middle + reach) / weight).min(1.0),
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

#[cfg(test)]
mod tests {
    use super::*;

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
