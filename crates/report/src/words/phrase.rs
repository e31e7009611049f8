//! Phrases that sentences of several rules share: places, shares, lists, grids.

use plumb_geometry::{Bounds, Bytes, Share, group_digits, plural};
use plumb_model::{CountedShare, GridOf};
use plumb_stack::CellKind;

use crate::format;

/// `17 KiB (34 sectors)`: bytes and, if they are whole, sectors.
pub(super) fn place(bytes: Bytes) -> String {
    match bytes.to_sectors_exact() {
        Some(sectors) if bytes.0 > 0 => format!("{bytes} ({sectors})"),
        _ => bytes.to_string(),
    }
}

/// `sector 40`, or bytes that are no whole sector.
pub(super) fn sector(bytes: Bytes) -> String {
    match bytes.to_sectors_exact() {
        Some(sectors) => format!("sector {}", group_digits(sectors.0)),
        None => format!("byte {}", group_digits(bytes.0)),
    }
}

/// `15 of 64 (23.4 %)`, `No`, `All`: the beginning of a sentence about I/O.
pub(super) fn share(share: Share) -> String {
    match (share.numerator, share.denominator) {
        (0, _) => "No".to_owned(),
        (part, whole) if part == whole => "All".to_owned(),
        (part, whole) => format!(
            "{} of {} ({})",
            group_digits(part),
            group_digits(whole),
            format::percent(share.value())
        ),
    }
}

/// `7,231 of 94,878 (7.6 %)`.
pub(super) fn part_of(part: impl Into<Bounds<u64>>, whole: u64) -> String {
    let part = part.into();
    format!(
        "{} of {} ({})",
        format::count_within(part),
        group_digits(whole),
        format::share_within(part, whole)
    )
}

/// As [`part_of`].
pub(super) fn counted(counted: &CountedShare) -> String {
    part_of(counted.count, counted.of)
}

/// The interval of a share, and the possible effect of lost events.
pub(super) fn interval(counted: &CountedShare) -> Vec<String> {
    let mut sentences = vec![format!(
        "The 95 % interval of that share is {} to {}.",
        format::percent(counted.share_low),
        format::percent(counted.share_high)
    )];
    if let Some(lost) = &counted.lost {
        sentences.push(format!(
            "The source lost {}, which no count includes; with them the share is between {} and {}.",
            plural(lost.events, "event"),
            format::percent(lost.share_low),
            format::percent(lost.share_high)
        ));
    }
    sentences
}

/// `a`, `a and b`, `a, b and 3 more`.
pub(super) fn list(names: &[String]) -> String {
    match names {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [first, last] => format!("{first} and {last}"),
        [first, second, third] => format!("{first}, {second} and {third}"),
        [first, second, rest @ ..] => format!("{first}, {second} and {} more", rest.len()),
    }
}

/// `the 4 KiB physical block of sda`.
pub(super) fn unit(grid: &GridOf) -> String {
    format!(
        "the {} {} of {}",
        grid.granularity_bytes,
        grid.what.text(),
        grid.on
    )
}

/// Why a grid is only assumed, and how to find out; `None` if it is not.
pub(super) fn assumed(grid: &GridOf, given: Option<Bytes>) -> Option<String> {
    if grid.what != CellKind::Assumed {
        return None;
    }
    let (on, size) = (&grid.on, grid.granularity_bytes);
    Some(match given {
        Some(given) => format!(
            "{size} is assumed: nothing larger than the {given} that you gave is known of {on}. Pass a larger `--grid` to \
             replace it."
        ),
        None => format!(
            "{size} is assumed: {on} reports no larger block. If you know its block, pass it with `--grid`."
        ),
    })
}

/// A rate with its thousands apart and no more digits than it has: `402`, `1,206`, `65.5`.
pub(super) fn rate(rate: f64) -> String {
    let tenths = (rate * 10.0).round() as u64;
    let whole = group_digits(tenths / 10);
    match tenths % 10 {
        0 => whole,
        tenth => format!("{whole}.{tenth}"),
    }
}

/// The first letter as at the beginning of a sentence. Names of devices stay as they are.
pub(crate) fn capital(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_lists() {
        assert_eq!(place(Bytes(17_408)), "17 KiB (34 sectors)");
        assert_eq!(place(Bytes(700)), "700 B");
        assert_eq!(place(Bytes(0)), "0 B");
        assert_eq!(sector(Bytes(20_480)), "sector 40");
        let names = |count: usize| vec!["a".to_owned(); count];
        assert_eq!(list(&names(3)), "a, a and a");
        assert_eq!(list(&names(5)), "a, a and 3 more");
        assert_eq!(rate(65.46), "65.5");
        assert_eq!(rate(1_206.0), "1,206");
    }
}
