//! Little's law as a check on a source: the number in flight is the arrival rate times the mean time. Numbers that
//! contradict it were not measured together, or not copied correctly.

use serde::Serialize;

/// The relation of a source to the law.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Law {
    /// In flight on average, as the source has it.
    pub in_flight: f64,
    /// In flight as rates and latencies have it.
    pub expected: f64,
    /// Observations that were held against it.
    pub checked: u64,
    /// Of these, in which the two differ by more than can be.
    pub broken: u64,
    /// Line of the first of these; absent if it has none.
    pub line: Option<u64>,
}

/// A source is not believed where more than this share of its observations break the law: single ones do where a burst
/// falls on the border of two.
const BROKEN_SHARE_MAX: f64 = 0.2;

impl Law {
    /// Whether the source can be believed.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.broken as f64 <= BROKEN_SHARE_MAX * self.checked as f64
    }

    /// The fault, in words; `None` without one.
    #[must_use]
    pub fn broken_words(&self, unit: &str) -> Option<String> {
        if self.broken == 0 {
            return None;
        }
        let line = self
            .line
            .map_or_else(String::new, |line| format!(", first on line {line}"));
        Some(match self.checked {
            1 => format!(
                "{:.1} I/O in flight, and {:.1} by rate times latency: this contradicts Little's law",
                self.in_flight, self.expected
            ),
            checked => format!(
                "{} of {checked} {unit}s break Little's law{line}",
                self.broken
            ),
        })
    }
}
