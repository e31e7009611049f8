//! The meaning of column values: numbers unchanged or in another unit, words by their names, and messages about invalid
//! ones.

use std::fmt::Display;

use parquet::data_type::ByteArray;

use crate::batch::UNKNOWN_NS;
use crate::parquet::schema::{At, COLUMNS};

/// The meaning of a column's values.
pub trait Meaning<V> {
    /// How a meaning is kept.
    type Is: Copy;

    /// The meaning of a value; `None` if it is invalid.
    fn decode(&mut self, value: &V) -> Option<Self::Is>;

    /// Appends the meanings of values if all are valid, else nothing and `false`. May take the values out.
    fn of_all(&mut self, values: &mut Vec<V>, out: &mut Vec<Self::Is>) -> bool;

    /// Used in place of a missing or invalid value.
    fn unknown(&self) -> Self::Is;

    /// The texts found and expected for an invalid value (`None`: null); `None` if null is valid.
    fn complaint(&self, value: Option<&V>) -> Option<(String, &'static str)>;
}

/// The meaning of numbers that mean themselves.
pub struct Plain<S, V> {
    makes_sense: S,
    unknown: V,
    at: At,
    expected: &'static str,
}

impl<V: Copy + Display, S: Fn(V) -> bool> Meaning<V> for Plain<S, V> {
    type Is = V;

    fn decode(&mut self, value: &V) -> Option<V> {
        Some(*value).filter(|value| (self.makes_sense)(*value))
    }

    fn of_all(&mut self, values: &mut Vec<V>, out: &mut Vec<V>) -> bool {
        let all = all(values, &self.makes_sense);
        if all && out.is_empty() {
            std::mem::swap(values, out);
        } else if all {
            out.append(values);
        }
        all
    }

    fn unknown(&self) -> V {
        self.unknown
    }

    fn complaint(&self, value: Option<&V>) -> Option<(String, &'static str)> {
        complaint(self.at, value, self.expected)
    }
}

/// The meaning of numbers in another unit.
pub struct Scaled<S, I, T> {
    /// The test for valid values.
    pub makes_sense: S,
    /// Their meaning.
    pub is: I,
    /// Used in place of a missing value.
    pub unknown: T,
    /// The column.
    pub at: At,
    /// The valid values, in words.
    pub expected: &'static str,
}

impl<V, T, S, I> Meaning<V> for Scaled<S, I, T>
where
    V: Copy + Display,
    T: Copy,
    S: Fn(V) -> bool,
    I: Fn(V) -> T,
{
    type Is = T;

    fn decode(&mut self, value: &V) -> Option<T> {
        (self.makes_sense)(*value).then(|| (self.is)(*value))
    }

    fn of_all(&mut self, values: &mut Vec<V>, out: &mut Vec<T>) -> bool {
        let all = all(values, &self.makes_sense);
        if all {
            out.extend(values.iter().map(|value| (self.is)(*value)));
        }
        all
    }

    fn unknown(&self) -> T {
        self.unknown
    }

    fn complaint(&self, value: Option<&V>) -> Option<(String, &'static str)> {
        complaint(self.at, value, self.expected)
    }
}

/// Whether all values make sense. Looks at each of them, which is faster than to stop at the first that does not.
fn all<V: Copy>(values: &[V], makes_sense: impl Fn(V) -> bool) -> bool {
    values
        .iter()
        .fold(true, |all, value| all & makes_sense(*value))
}

fn complaint(
    at: At,
    value: Option<&impl Display>,
    expected: &'static str,
) -> Option<(String, &'static str)> {
    let column = COLUMNS[at as usize];
    match value {
        Some(value) => Some((value.to_string(), expected)),
        None => (!column.nullable).then(|| (format!("null in {}", column.name), "a number")),
    }
}

/// Any number makes sense.
pub fn any_number<V: Copy>(at: At, unknown: V) -> Plain<impl Fn(V) -> bool, V> {
    Plain {
        makes_sense: |_| true,
        unknown,
        at,
        expected: "a number",
    }
}

/// A time that is never below 0, or unknown.
pub fn latency(at: At) -> Plain<impl Fn(i64) -> bool, i64> {
    let expected = match at {
        At::QueueNs => "a time not below 0 in queue_ns",
        _ => "a time not below 0 in device_ns",
    };
    Plain {
        makes_sense: |ns| ns >= 0,
        unknown: UNKNOWN_NS,
        at,
        expected,
    }
}

/// Whether a number is not below 0 and has at most this number of bits.
pub fn is_within(value: i64, bits: u32) -> bool {
    value.cast_unsigned() >> bits == 0
}

/// The meaning of words.
pub struct Word<F, T> {
    /// The meaning of a word.
    pub of: F,
    /// Used in place of a missing value.
    pub unknown: T,
    /// The column.
    pub at: At,
}

impl<T: Copy, F: FnMut(&str) -> Option<T>> Meaning<ByteArray> for Word<F, T> {
    type Is = T;

    fn decode(&mut self, value: &ByteArray) -> Option<T> {
        (self.of)(value.as_utf8().ok()?)
    }

    fn of_all(&mut self, values: &mut Vec<ByteArray>, out: &mut Vec<T>) -> bool {
        let first = out.len();
        out.extend(values.iter().map_while(|value| self.decode(value)));
        let all = out.len() - first == values.len();
        if !all {
            out.truncate(first);
        }
        all
    }

    fn unknown(&self) -> T {
        self.unknown
    }

    fn complaint(&self, value: Option<&ByteArray>) -> Option<(String, &'static str)> {
        let expected = match self.at {
            At::Layer => "a layer: vfs, bio or request",
            At::Op => "an operation: read, write, discard, flush, write-zeroes or other",
            At::Device => "the name of a device",
            _ => "text in UTF-8",
        };
        match value {
            Some(value) => Some((
                String::from_utf8_lossy(value.data())
                    .escape_debug()
                    .collect(),
                expected,
            )),
            None => (!COLUMNS[self.at as usize].nullable).then(|| ("null".to_owned(), expected)),
        }
    }
}
