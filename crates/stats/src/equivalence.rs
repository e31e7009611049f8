//! Equivalence: that two things do not differ by more than a margin is a separate statement, and does not follow from a
//! difference that could not be shown (D. J. Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15, 1987). Here it
//! holds if the whole interval is within the margin.

use crate::error::StatsError;
use crate::interval::Interval;

/// A margin around a ratio of 1: a difference that does not matter. 0.03 is from 1/1.03 to 1.03.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Margin(f64);

impl Margin {
    /// 3 %, where nobody says otherwise.
    pub const USUAL: Margin = Margin(0.03);

    /// Takes a share above 0 and below 1.
    ///
    /// # Errors
    /// If it is not a share.
    pub fn new(share: f64) -> Result<Margin, StatsError> {
        if share > 0.0 && share < 1.0 {
            Ok(Margin(share))
        } else {
            Err(StatsError::NotProbability { value: share })
        }
    }

    /// The share.
    #[must_use]
    pub const fn share(self) -> f64 {
        self.0
    }

    /// The ratio at its upper end; the lower one is its inverse.
    #[must_use]
    pub const fn ratio(self) -> f64 {
        1.0 + self.0
    }

    /// Whether an interval with these ends is inside. A difference of the margin itself does not matter: an end on it
    /// is inside.
    #[must_use]
    pub fn holds(self, [low, high]: [f64; 2]) -> bool {
        low >= 1.0 / self.ratio() && high <= self.ratio()
    }
}

/// The relation of a ratio's interval to a margin around 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// All of it below: less by more than the margin.
    Below,
    /// All of it inside: no difference above the margin.
    Within,
    /// All of it above: more by more than the margin.
    Above,
    /// Across an end: nothing can be said yet.
    Open,
}

/// The relation of a ratio.
#[must_use]
pub fn standing<N>(ratio: &Interval<N>, margin: Margin) -> Standing {
    if ratio.low > margin.ratio() {
        Standing::Above
    } else if ratio.high < 1.0 / margin.ratio() {
        Standing::Below
    } else if margin.holds([ratio.low, ratio.high]) {
        Standing::Within
    } else {
        Standing::Open
    }
}

/// Whether a ratio differs from 1, where both that it does and that it does not matter are answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Below 1, by any amount.
    Less,
    /// Above 1, by any amount.
    More,
    /// No difference above the margin, whether or not 1 is inside.
    Within,
    /// The interval holds both 1 and a difference above the margin.
    Unclear,
}

/// How a ratio with an interval of these ends differs from 1.
#[must_use]
pub fn difference([low, high]: [f64; 2], margin: Margin) -> Difference {
    if margin.holds([low, high]) {
        Difference::Within
    } else if low > 1.0 {
        Difference::More
    } else if high < 1.0 {
        Difference::Less
    } else {
        Difference::Unclear
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Level;

    #[test]
    fn intervals_have_positions() {
        let margin = Margin::new(0.03).expect("a share");
        for (low, high, expected) in [
            (1.04, 1.2, Standing::Above),
            (1.03, 1.2, Standing::Open),
            (0.98, 1.02, Standing::Within),
            (0.9, 1.02, Standing::Open),
            (0.5, 2.0, Standing::Open),
            (0.8, 0.95, Standing::Below),
            (0.95, 1.03, Standing::Open),
            (1.0 / 1.03, 1.03, Standing::Within),
            (1.0 / 1.03, 1.031, Standing::Open),
        ] {
            let ratio = Interval {
                estimate: 1.0,
                low,
                high,
                level: Level::P99,
                n: 10,
            };
            assert_eq!(standing(&ratio, margin), expected, "{low} to {high}");
        }
    }

    /// Whether 1 is inside makes no difference where the margin holds both ends, ends on the margin included.
    #[test]
    fn differences_matter_beyond_the_margin() {
        let margin = Margin::new(0.03).expect("a share");
        for (low, high, expected) in [
            (0.98, 1.02, Difference::Within),
            (1.01, 1.02, Difference::Within),
            (1.0 / 1.03, 1.03, Difference::Within),
            (1.01, 1.04, Difference::More),
            (1.04, 1.2, Difference::More),
            (0.96, 0.99, Difference::Less),
            (1.0, 1.2, Difference::Unclear),
            (0.8, 1.0, Difference::Unclear),
            (0.5, 2.0, Difference::Unclear),
        ] {
            assert_eq!(difference([low, high], margin), expected, "{low} to {high}");
        }
    }

    #[test]
    fn margins_are_shares() {
        for share in [0.0, 1.0, -0.5, f64::INFINITY, f64::NAN] {
            assert!(Margin::new(share).is_err(), "{share}");
        }
        assert_eq!(Margin::new(0.25).map(Margin::ratio), Ok(1.25));
    }
}
