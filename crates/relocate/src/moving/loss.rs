//! Bytes that a move could not bring along, as ranges of the partition.
//!
//! An unreadable block is filled with zeros at its new place. Bytes with a wrong sum stay unchanged, because the wrong
//! ones cannot be identified. Both are named, and a move with either does not end as if it had none.

use std::fmt;
use std::ops::Range;

/// Why bytes are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossKind {
    /// They cannot be read, and became zeros.
    Unreadable,
    /// They are not proven to be right: their sum is another one, or a block among them cannot be read. They stay as they
    /// were found.
    Doubtful,
}

/// Bytes of the partition that are lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostRange {
    /// Counted from the partition's first byte.
    pub range: Range<u64>,
    /// Why.
    pub kind: LossKind,
}

impl fmt::Display for LostRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.range;
        let last = end.saturating_sub(1);
        match self.kind {
            LossKind::Unreadable => write!(f, "bytes {start} to {last} cannot be read"),
            LossKind::Doubtful => write!(f, "bytes {start} to {last} do not match their sum"),
        }
    }
}

/// Whether a move stops at bytes that it cannot read or prove, or goes on without them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLoss {
    /// It stops.
    #[default]
    Stop,
    /// It notes them in the journal and goes on.
    Accept,
}

/// Sorts ranges, and joins those that touch and are lost for one reason.
pub(crate) fn joined(mut ranges: Vec<LostRange>) -> Vec<LostRange> {
    ranges.sort_by_key(|lost| (lost.kind, lost.range.start));
    let mut found: Vec<LostRange> = Vec::new();
    for lost in ranges {
        match found.last_mut() {
            Some(last) if last.kind == lost.kind && lost.range.start <= last.range.end => {
                last.range.end = last.range.end.max(lost.range.end);
            }
            _ => found.push(lost),
        }
    }
    found.sort_by_key(|lost| (lost.range.start, lost.kind));
    found
}

/// Whether every byte of `range` is in one of `ranges`, which are [`joined`].
pub(crate) fn covers(ranges: &[LostRange], range: &Range<u64>) -> bool {
    let mut at = range.start;
    while at < range.end {
        let next = ranges
            .iter()
            .filter(|lost| lost.range.start <= at && at < lost.range.end)
            .map(|lost| lost.range.end)
            .max();
        match next {
            Some(end) => at = end,
            None => return false,
        }
    }
    true
}

/// Ranges but for the bytes of others.
pub(crate) fn without(ranges: Vec<LostRange>, others: &[Range<u64>]) -> Vec<LostRange> {
    let mut left = ranges;
    for other in others {
        let sides = |lost: LostRange| {
            let Range { start, end } = lost.range;
            let sides = [start..end.min(other.start), start.max(other.end)..end];
            let kind = lost.kind;
            sides
                .into_iter()
                .filter(|side| !side.is_empty())
                .map(move |range| LostRange { range, kind })
        };
        left = left.into_iter().flat_map(sides).collect();
    }
    left
}

/// Ranges that are named in an error, the rest as a number.
const NAMED_MAX: usize = 8;

/// The ranges in words.
pub(super) fn list(ranges: &[LostRange]) -> String {
    let named: Vec<String> = ranges
        .iter()
        .take(NAMED_MAX)
        .map(ToString::to_string)
        .collect();
    let named = named.join("; ");
    match ranges.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named}; and {more} more ranges"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(range: Range<u64>, kind: LossKind) -> LostRange {
        LostRange { range, kind }
    }

    #[test]
    fn ranges_of_one_kind_join() {
        use LossKind::{Doubtful, Unreadable};
        let ranges = vec![
            lost(8..16, Unreadable),
            lost(0..8, Unreadable),
            lost(4..6, Doubtful),
            lost(20..24, Unreadable),
        ];
        let expected = vec![
            lost(0..16, Unreadable),
            lost(4..6, Doubtful),
            lost(20..24, Unreadable),
        ];
        assert_eq!(joined(ranges), expected);
        let left = without(expected.clone(), &[2..5, 18..22, 30..40]);
        let expected_left = vec![
            lost(0..2, Unreadable),
            lost(5..16, Unreadable),
            lost(5..6, Doubtful),
            lost(22..24, Unreadable),
        ];
        assert_eq!(left, expected_left);
        for (range, is_covered) in [
            (0..16, true),
            (4..17, false),
            (20..24, true),
            (16..20, false),
        ] {
            assert_eq!(covers(&expected, &range), is_covered, "{range:?}");
        }
    }
}
