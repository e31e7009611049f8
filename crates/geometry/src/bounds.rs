//! A figure with only a lower and an upper end.

use serde::{Deserialize, Serialize};

/// The truth is at least `low` and at most `high`. Both ends are equal where nothing was lost.
///
/// In JSON a known figure is a number, and a range an object of `low` and `high`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Written<T>", into = "Written<T>")]
#[serde(bound(
    serialize = "T: Copy + PartialEq + Serialize",
    deserialize = "T: Copy + PartialEq + Deserialize<'de>"
))]
pub struct Bounds<T> {
    /// The figure is at least this.
    pub low: T,
    /// The figure is at most this.
    pub high: T,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written<T> {
    Known(T),
    Range { low: T, high: T },
}

impl<T: Copy + PartialEq> From<T> for Bounds<T> {
    fn from(value: T) -> Self {
        Bounds::exact(value)
    }
}

impl<T: Copy + PartialEq> From<Bounds<T>> for Written<T> {
    fn from(bounds: Bounds<T>) -> Self {
        match bounds.known() {
            Some(value) => Written::Known(value),
            None => Written::Range {
                low: bounds.low,
                high: bounds.high,
            },
        }
    }
}

impl<T: Copy + PartialEq> From<Written<T>> for Bounds<T> {
    fn from(written: Written<T>) -> Self {
        match written {
            Written::Known(value) => Bounds::exact(value),
            Written::Range { low, high } => Bounds { low, high },
        }
    }
}

impl<T: Copy + PartialEq> Bounds<T> {
    /// A figure that is known.
    #[must_use]
    pub const fn exact(value: T) -> Self {
        Self {
            low: value,
            high: value,
        }
    }

    /// The figure, if both ends agree on it.
    #[must_use]
    pub fn known(&self) -> Option<T> {
        (self.low == self.high).then_some(self.low)
    }

    /// Both ends through a function that keeps their order.
    #[must_use]
    pub fn map<U>(self, rising: impl Fn(T) -> U) -> Bounds<U> {
        Bounds {
            low: rising(self.low),
            high: rising(self.high),
        }
    }
}

macro_rules! sums {
    ($inner:ty) => {
        impl Bounds<$inner> {
            /// Adds another figure. A sum saturates instead of wrapping.
            pub fn add(&mut self, other: Self) {
                self.low = self.low.saturating_add(other.low);
                self.high = self.high.saturating_add(other.high);
            }

            /// The sum of `count` equal figures.
            #[must_use]
            pub fn times(self, count: u64) -> Self {
                self.map(|end| end.saturating_mul(count.into()))
            }

            /// Whether a value can be the truth.
            #[must_use]
            pub fn contains(&self, value: $inner) -> bool {
                self.low <= value && value <= self.high
            }
        }
    };
}

sums!(u64);
sums!(u128);

impl Bounds<bool> {
    /// The count of a property that holds for all of `count` alike.
    #[must_use]
    pub fn count(self, count: u64) -> Bounds<u64> {
        self.map(|holds| if holds { count } else { 0 })
    }
}
