//! The tables that `align.d` prints: exact counts of each length, and `quantize()` of the sectors by which starts are off.
//!
//! In copies of the paper labels and counts of a histogram are on separate lines, and its bars were read as `L` or `1`.
//! A number on a separate line is the count of the row above it that lacks one; if no row lacks one, it is the label of
//! a new row if it is a larger power of two, else a count whose row was lost.

use std::collections::BTreeMap;

use super::block::UNIT_SECTORS;
use crate::format::quantize::{is_distribution, row_range};
use crate::number::{parse_i64, parse_ios};
use crate::reader::IOS_MAX;
use crate::text::split_words;

/// The result of a line below the heading of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowTaken {
    /// It is a row, a part of one, or empty.
    Row,
    /// It was meant as one.
    Unreadable,
    /// It is no row.
    Other,
}

/// A count; the letter O in place of a zero is one.
pub fn parse_count(word: &[u8]) -> Option<u64> {
    if word == b"O" {
        Some(0)
    } else {
        parse_ios(word)
    }
}

/// The heading of a histogram, or the second half of one that was broken in two.
pub fn is_heading(line: &[u8]) -> bool {
    let mut words = split_words(line);
    is_distribution(line)
        || words.next().is_some_and(|word| word.starts_with(b"--"))
            && words.next() == Some(b"Distribution")
            && words.last() == Some(b"count")
}

/// Takes a line of the table `IO size Count`.
pub fn take_length(lengths: &mut BTreeMap<i64, u64>, line: &[u8]) -> RowTaken {
    let words: Vec<&[u8]> = split_words(line).take(3).collect();
    match words[..] {
        [] => RowTaken::Row,
        [len, count] => match (parse_i64(len), parse_count(count)) {
            (Some(len), Some(count)) => {
                add(lengths, len, count);
                RowTaken::Row
            }
            (Some(_), None) => RowTaken::Unreadable,
            (None, _) => RowTaken::Other,
        },
        [first, ..] if parse_i64(first).is_some() => RowTaken::Unreadable,
        _ => RowTaken::Other,
    }
}

fn add(table: &mut BTreeMap<i64, u64>, value: i64, count: u64) {
    let sum = table.entry(value).or_insert(0);
    *sum = sum.saturating_add(count).min(IOS_MAX);
}

/// A histogram of sectors off the unit.
#[derive(Clone, Debug, Default)]
pub struct HistogramRows {
    /// Line of its heading.
    pub line: u64,
    /// I/O by the lowest value of their row.
    pub rows: BTreeMap<i64, u64>,
    /// I/O of rows whose label was lost, behind one of 0 or more: they are off the unit.
    pub unlabelled: u64,
    /// The label of the last row.
    last: Option<i64>,
    /// Whether that row still lacks its count.
    lacks_count: bool,
}

impl HistogramRows {
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Takes a line below the heading.
    pub fn take(&mut self, line: &[u8]) -> RowTaken {
        let words: Vec<&[u8]> = split_words(line).collect();
        let [first, others @ ..] = &words[..] else {
            return RowTaken::Row;
        };
        let label = parse_i64(first).filter(|value| row_range(*value).is_some());
        match (label, others.last()) {
            (_, None) => self.take_lone(first, label),
            (Some(value), Some(last)) => {
                let has_bar = memchr::memchr(b'|', line).is_some();
                let is_misread_bar =
                    !has_bar && others.len() == 1 && [&b"L"[..], b"l", b"I", b"1"].contains(last);
                self.begin(value);
                match parse_count(last) {
                    Some(count) if !is_misread_bar => self.count(count),
                    Some(_) => {}
                    None if is_misread_bar || last.ends_with(b"|") => {}
                    None => return RowTaken::Unreadable,
                }
                RowTaken::Row
            }
            (None, Some(_)) if parse_i64(first).is_some() || *first == b"|" => RowTaken::Unreadable,
            (None, Some(_)) => RowTaken::Other,
        }
    }

    fn take_lone(&mut self, word: &[u8], label: Option<i64>) -> RowTaken {
        let count = parse_count(word);
        match (count, label) {
            (Some(count), _) if self.lacks_count => self.count(count),
            (_, Some(value)) if self.last.is_none_or(|last| value > last) => self.begin(value),
            (Some(count), _) if self.last.is_some_and(|last| last >= 0) => {
                self.unlabelled = self.unlabelled.saturating_add(count).min(IOS_MAX);
                return RowTaken::Unreadable;
            }
            _ if self.lacks_count => {
                self.lacks_count = false;
                return RowTaken::Unreadable;
            }
            _ => return RowTaken::Other,
        }
        RowTaken::Row
    }

    fn begin(&mut self, value: i64) {
        self.last = Some(value);
        self.lacks_count = true;
    }

    fn count(&mut self, count: u64) {
        if let Some(value) = self.last {
            add(&mut self.rows, value, count);
        }
        self.lacks_count = false;
    }

    /// Whether it may be a later print of the same histogram, which is never cleared.
    pub fn continues(&self, before: &HistogramRows) -> bool {
        let has_grown = |(value, ios): (&i64, &u64)| self.rows.get(value).unwrap_or(&0) >= ios;
        before.rows.iter().all(has_grown)
    }

    /// All I/O in it.
    pub fn sum(&self) -> u64 {
        let rows = self.rows.values();
        rows.fold(self.unlabelled, |sum, ios| sum.saturating_add(*ios))
    }

    /// Those in rows off the unit.
    pub fn off_unit(&self) -> u64 {
        let rows = self.rows.iter().filter(|(value, _)| **value != 0);
        rows.fold(self.unlabelled, |sum, (_, ios)| sum.saturating_add(*ios))
    }

    /// Rows with I/O that no remainder can be in: their lowest values, and the I/O.
    pub fn impossible(&self) -> impl Iterator<Item = (i64, u64)> {
        let is_impossible =
            |(value, ios): &(&i64, &u64)| **ios > 0 && !(0..UNIT_SECTORS as i64).contains(*value);
        let rows = self.rows.iter().filter(is_impossible);
        rows.map(|(value, ios)| (*value, *ios))
    }

    /// The least and the most bytes by which its I/O are off in all.
    pub fn offset_bytes(&self) -> [u128; 2] {
        let mut sums = [0; 2];
        for (value, ios) in &self.rows {
            let (low, high) = row_range(*value).unwrap_or_default();
            for (sum, end) in sums.iter_mut().zip([low, high]) {
                let sectors = end.clamp(0, UNIT_SECTORS as i64 - 1) as u128;
                *sum += sectors * 512 * u128::from(*ios);
            }
        }
        sums
    }
}
