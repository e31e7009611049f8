//! Scales from values to places in a picture, and ticks at round values.

use crate::format;

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The position, in units of the view box.
    pub at: f64,
    /// Its text; empty for a mark without words.
    pub label: String,
}

/// Equal steps for equal differences.
#[derive(Clone, Copy, Debug)]
pub struct Linear {
    /// Values at both ends.
    pub domain: (f64, f64),
    /// Their places.
    pub range: (f64, f64),
}

impl Linear {
    /// Place of a value; values outside stay at the edge.
    #[must_use]
    pub fn at(&self, value: f64) -> f64 {
        let span = self.domain.1 - self.domain.0;
        let part = if span > 0.0 {
            ((value - self.domain.0) / span).clamp(0.0, 1.0)
        } else {
            0.0
        };
        self.range.0 + part * (self.range.1 - self.range.0)
    }
}

/// Equal steps for equal ratios.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    /// Values at both ends; above 0.
    pub domain: (f64, f64),
    /// Their places.
    pub range: (f64, f64),
}

impl Log {
    /// Place of a value; values outside stay at the edge.
    #[must_use]
    pub fn at(&self, value: f64) -> f64 {
        let log = |value: f64| value.max(f64::MIN_POSITIVE).ln();
        Linear {
            domain: (log(self.domain.0), log(self.domain.1)),
            range: self.range,
        }
        .at(log(value))
    }

    /// Ticks at 1, 2 and 5 times each power of ten, in ns. Over a ratio of
    /// `named_up_to` only the powers are in words, or these would touch.
    #[must_use]
    pub fn time_ticks(&self, named_up_to: f64) -> Vec<Tick> {
        let mut ticks = Vec::new();
        let few = self.domain.1 < self.domain.0 * named_up_to;
        let mut decade = 1u64;
        while (decade as f64) <= self.domain.1 {
            for (factor, named) in [(1, true), (2, few), (5, few)] {
                let value = decade.saturating_mul(factor);
                if (self.domain.0..=self.domain.1).contains(&(value as f64)) {
                    let label = if named {
                        round_time(value)
                    } else {
                        String::new()
                    };
                    ticks.push(Tick {
                        at: self.at(value as f64),
                        label,
                    });
                }
            }
            let Some(next) = decade.checked_mul(10) else {
                break;
            };
            decade = next;
        }
        ticks
    }
}

/// 1, 2 or 5 times a power of ten in ns: `100 µs`.
fn round_time(value: u64) -> String {
    match value {
        1_000_000_000.. => format!("{} s", format::count(value / 1_000_000_000)),
        1_000_000.. => format!("{} ms", value / 1_000_000),
        1_000.. => format!("{} µs", value / 1_000),
        _ => format!("{value} ns"),
    }
}

/// The largest of 1, 2, 5 × 10ⁿ that gives at least `marks` steps up to `span`, so never fewer and at most 2.5
/// times as many.
#[must_use]
pub fn round_step(span: f64, marks: f64) -> f64 {
    let wanted = span / marks;
    if !wanted.is_normal() || wanted < 0.0 {
        return 1.0;
    }
    let decade = 10f64.powf(wanted.log10().floor());
    let factor = [5.0, 2.0, 1.0]
        .into_iter()
        .find(|factor| factor * decade <= wanted * 1.000_001);
    factor.unwrap_or(1.0) * decade
}

/// Multiples of `step` from 0 to `max`.
#[must_use]
pub fn multiples(step: f64, max: f64) -> Vec<f64> {
    let count = (max / step * 1.000_001).floor().clamp(0.0, 64.0) as u32;
    (0..=count).map(|n| f64::from(n) * step).collect()
}

/// A number on an axis whose ticks are `step` apart: no digits that all ticks have as zeros.
#[must_use]
pub fn tick_label(value: f64, step: f64) -> String {
    if step >= 1.0 {
        return format::count(value.round() as u64);
    }
    let decimals = (-step.log10() - 1e-9).ceil().clamp(1.0, 9.0) as usize;
    if value == 0.0 {
        "0".to_owned()
    } else {
        format!("{value:.decimals$}")
    }
}

/// Binary unit in which values up to `max` are readable: (bytes, name).
#[must_use]
pub fn binary_unit(max: f64) -> (f64, &'static str) {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let found = units
        .into_iter()
        .map(|(power, name)| ((1u64 << power) as f64, name));
    found
        .into_iter()
        .find(|(size, _)| max >= *size)
        .unwrap_or((1.0, "B"))
}

/// Multiples of a power of two, 4 to 8 of them, up to `max` bytes: (value, label).
#[must_use]
pub fn byte_ticks(max: f64) -> Vec<(f64, String)> {
    let step = 2f64.powf((max / 4.0).max(1.0).log2().floor());
    let label = |value: f64| {
        if value == 0.0 {
            "0".to_owned()
        } else {
            format::bytes(value as u64)
        }
    };
    multiples(step, max)
        .into_iter()
        .map(|value| (value, label(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_enough() {
        for (span, marks, step) in [
            (100.0, 5.0, 20.0),
            (99.0, 5.0, 10.0),
            (7.0, 4.0, 1.0),
            (0.3, 3.0, 0.1),
            (1.0, 4.0, 0.2),
        ] {
            let found = round_step(span, marks);
            assert!(
                (found / step - 1.0).abs() < 1e-9,
                "{span} by {marks}: {found}"
            );
        }
        for hostile in [0.0, f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(round_step(hostile, 4.0), 1.0);
        }
        assert_eq!(multiples(0.1, 0.3).len(), 4);
    }

    #[test]
    fn labels_have_the_digits_of_their_step() {
        for (value, step, shown) in [
            (1_500.0, 500.0, "1,500"),
            (0.4, 0.2, "0.4"),
            (0.25, 0.05, "0.25"),
            (0.0, 0.1, "0"),
        ] {
            assert_eq!(tick_label(value, step), shown);
        }
    }

    #[test]
    fn decades_of_time() {
        let log = Log {
            domain: (100.0, 2e6),
            range: (0.0, 100.0),
        };
        let named: Vec<String> = log
            .time_ticks(300.0)
            .into_iter()
            .map(|tick| tick.label)
            .filter(|label| !label.is_empty())
            .collect();
        assert_eq!(named, ["100 ns", "1 µs", "10 µs", "100 µs", "1 ms"]);
        assert_eq!(log.at(50.0), 0.0);
        assert!((log.at(1e9) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn bytes_step_by_powers_of_two() {
        let labels: Vec<String> = byte_ticks((5u64 << 30) as f64)
            .into_iter()
            .map(|(_, label)| label)
            .collect();
        assert_eq!(labels, ["0", "1 GiB", "2 GiB", "3 GiB", "4 GiB", "5 GiB"]);
    }
}
