//! The fold against its promises, and against a slow model that only adds and takes away the modulus.

use proptest::prelude::*;

use super::*;

fn remap(moves: &[(u64, u64)], shift_bytes: i64, modulus_bytes: u64) -> Remap {
    let moves = moves.iter().map(|&(old, new)| Move { old, new }).collect();
    Remap::new(moves, shift_bytes, modulus_bytes).expect("it can be")
}

fn start(remap: &Remap, start: u64, len_bytes: u32, size_bytes: u64) -> Option<(u64, bool)> {
    remap
        .place(start, len_bytes, size_bytes)
        .map(|placed| (placed.start, placed.is_folded))
}

#[test]
fn ranges_end_where_the_next_begins() {
    let remap = remap(&[(10_000, 14_000), (1_000, 2_048)], 0, 1 << 20);
    let on = |at| start(&remap, at, 512, 1 << 30).map(|(start, _)| start);
    assert_eq!(on(999), Some(999), "places before the first one stay");
    assert_eq!((on(1_000), on(9_999)), (Some(2_048), Some(11_047)));
    assert_eq!((on(10_000), on(90_000)), (Some(14_000), Some(94_000)));
}

#[test]
fn a_shift_comes_on_top() {
    assert_eq!(
        start(&remap(&[(1_000, 2_000)], -24, 1 << 20), 1_024, 512, 1 << 30),
        Some((2_000, false))
    );
    assert_eq!(
        start(&remap(&[], -512, 4_096), 0, 512, 40_000),
        Some((36_352, true)),
        "from before the target"
    );
}

/// Worked out by hand: the target has 10 moduli of 100 and 50 bytes.
#[test]
fn addresses_beyond_the_device_wrap() {
    let remap = remap(&[], 0, 100);
    let on = |at, len| start(&remap, at, len, 1_050);
    assert_eq!(
        on(1_040, 10),
        Some((1_040, false)),
        "it fits, beyond the last whole modulus"
    );
    assert_eq!(on(1_050, 10), Some((50, true)));
    assert_eq!(on(2_107, 10), Some((107, true)));
    assert_eq!(on(1_045, 10), Some((45, true)), "it crosses the end");
    assert_eq!(
        on(1_990, 80),
        Some((890, true)),
        "still across the end: one modulus back"
    );
    assert_eq!(on(7, 1_040), Some((7, false)));
    assert_eq!(on(20, 1_040), None, "no start of its residue has room");
    assert_eq!(start(&remap, 5, 10, 14), None, "smaller than the modulus");
}

#[test]
fn impossible_values_are_refused() {
    let twice = vec![Move { old: 5, new: 6 }, Move { old: 5, new: 7 }];
    assert!(matches!(
        Remap::new(twice, 0, 512),
        Err(ReplayError::SameRange { old: 5 })
    ));
    assert!(matches!(
        Remap::new(Vec::new(), 0, 0),
        Err(ReplayError::NoModulus)
    ));
}

/// Goes step by step: whole multiples of the modulus down until it is within the folding length, then on until it fits.
fn model(at: i128, len: u64, size: u64, modulus: u64) -> Option<i128> {
    let (len, size, modulus) = (i128::from(len), i128::from(size), i128::from(modulus));
    if at >= 0 && at + len <= size {
        return Some(at);
    }
    let mut whole = 0;
    while whole + modulus <= size {
        whole += modulus;
    }
    if whole == 0 {
        return None;
    }
    let mut at = at;
    while at < 0 {
        at += whole;
    }
    while at >= whole {
        at -= whole;
    }
    while at + len > size {
        at -= modulus;
    }
    (at >= 0).then_some(at)
}

proptest! {
    #[test]
    fn residues_are_kept_within_the_target(
        at in 0u64..200_000, len in 1u32..3_000, size in 1u64..20_000, power in 6u32..13, shift in -30_000i64..30_000,
    ) {
        let modulus = 1u64 << power;
        let placed = remap(&[], shift, modulus).place(at, len, size);
        let asked = i128::from(at) + i128::from(shift);
        prop_assert_eq!(placed.map(|placed| i128::from(placed.start)), model(asked, len.into(), size, modulus));
        if let Some(placed) = placed {
            prop_assert!(placed.start + u64::from(len) <= size);
            let moved = i128::from(placed.start) - asked;
            prop_assert_eq!(moved % i128::from(modulus), 0);
            prop_assert_eq!(placed.is_folded, moved != 0);
        }
    }

    /// A stream goes on wherever neither of two neighbours crosses a multiple of the folding length or the end.
    #[test]
    fn streams_are_kept(first in 0u64..100_000, lens in prop::collection::vec(1u32..2_000, 2..60), size in 9_000u64..20_000) {
        let modulus = 512;
        let whole = size / modulus * modulus;
        let remap = remap(&[], 0, modulus);
        let mut at = first;
        let mut last: Option<(u64, u64, u64)> = None;
        for len in lens {
            let end = at + u64::from(len);
            let placed = remap.place(at, len, size).expect("there is room").start;
            if let Some((before, before_end, placed_end)) = last {
                let crosses = |from: u64, to: u64| from / whole != to / whole;
                let is_at_an_edge = crosses(before, end) || (before < size && end > whole);
                prop_assert!(is_at_an_edge || placed == placed_end, "{before}..{before_end} then {at}..{end}");
            }
            last = Some((at, end, placed + u64::from(len)));
            at = end;
        }
    }
}
