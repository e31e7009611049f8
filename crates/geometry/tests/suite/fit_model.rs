//! The fit against marking the cell of every byte, over all small spaces, and against 128-bit
//! arithmetic at the far end of the range.

use std::collections::BTreeMap;

use plumb_geometry::{Bytes, Extent, Fit, Grid, GridKind, granularity_of_io};
use proptest::prelude::*;

/// Bytes of the space in which every extent is tried.
const SPACE: u64 = 48;

fn extent(start: u64, len: u64) -> Extent {
    Extent::new(Bytes(start), Bytes(len)).expect("ends within 64 bits")
}

fn grid(granularity: u64, offset: u64) -> Grid {
    Grid::new(Bytes(granularity), Bytes(offset), GridKind::Unit).expect("a grid")
}

fn extents() -> impl Iterator<Item = (u64, u64)> {
    (0..SPACE).flat_map(|start| (1..=SPACE - start).map(move |len| (start, len)))
}

/// For each byte position the number of its cell, found by counting up from the far side of byte 0: a new cell begins
/// at each boundary.
fn cell_of_each_byte(granularity: u64, offset: u64) -> Vec<u64> {
    let mut cell = 0;
    let mut to_boundary = offset;
    let mut cells = Vec::new();
    for _ in 0..2 * SPACE {
        if to_boundary == 0 {
            cell += 1;
            to_boundary = granularity;
        }
        to_boundary -= 1;
        cells.push(cell);
    }
    cells
}

/// Bytes that the extent covers of each cell it touches.
fn covered(cells: &[u64], start: u64, len: u64) -> BTreeMap<u64, u64> {
    let mut covered = BTreeMap::new();
    for &cell in &cells[start as usize..(start + len) as usize] {
        *covered.entry(cell).or_default() += 1;
    }
    covered
}

/// Steps back from `position` until a boundary, where the cell changes; before byte 0 the spacing
/// alone continues.
fn steps_back(cells: &[u64], granularity: u64, offset: u64, position: u64) -> u64 {
    let is_boundary = |at: u64| {
        if at == 0 {
            offset == 0
        } else {
            cells[at as usize] != cells[at as usize - 1]
        }
    };
    let found = (0..=position).find(|&back| is_boundary(position - back));
    found.unwrap_or(position + granularity - offset)
}

#[test]
fn the_fit_equals_a_mark_of_every_byte() {
    let mut tried = 0_u64;
    for granularity in 1..=12 {
        for offset in 0..granularity {
            let cells = cell_of_each_byte(granularity, offset);
            let grid = grid(granularity, offset);
            for (start, len) in extents() {
                let covered = covered(&cells, start, len);
                let partial = covered
                    .values()
                    .filter(|&&bytes| bytes < granularity)
                    .count();
                let fit = Fit::from_extent(extent(start, len), &grid).expect("has a length");
                let context = format!("{start}+{len} on {granularity}@{offset}: {fit:?}");
                let back = |position| steps_back(&cells, granularity, offset, position);
                assert_eq!(fit.head.0, back(start), "head of {context}");
                assert_eq!(fit.tail.0, back(start + len), "tail of {context}");
                assert_eq!(fit.cells, covered.len() as u64, "cells of {context}");
                assert_eq!(
                    fit.partial_cells, partial as u64,
                    "partial cells of {context}"
                );
                assert_eq!(
                    fit.touched_bytes(&grid),
                    (covered.len() as u64 * granularity).into()
                );
                assert_eq!(
                    fit.read_first_bytes(&grid),
                    (partial as u64 * granularity).into()
                );
                assert_eq!(fit.crosses(), covered.len() > 1);
                assert_eq!(fit.misaligned(), back(start) != 0);
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 78 * SPACE * (SPACE + 1) / 2);
}

#[test]
fn the_least_number_of_cells_is_that_of_the_best_start() {
    for granularity in 1..=12 {
        let cells = cell_of_each_byte(granularity, 0);
        for (start, len) in extents() {
            let best = (0..granularity)
                .map(|s| covered(&cells, s, len).len() as u64)
                .min();
            let fit =
                Fit::from_extent(extent(start, len), &grid(granularity, 0)).expect("has a length");
            assert_eq!(Some(fit.min_cells), best);
            assert_eq!(Some(fit.split()), best.map(|best| fit.cells > best));
            let odd = covered(&cells, 0, len)
                .values()
                .any(|&bytes| bytes < granularity);
            assert_eq!(Fit::odd_length(Bytes(len), &grid(granularity, 0)), odd);
        }
    }
}

#[test]
fn a_residue_of_any_multiple_gives_the_same_fit() {
    for granularity in 1..=12 {
        for (offset, times) in (0..granularity).flat_map(|o| (1..=4).map(move |t| (o, t))) {
            let (grid, modulus) = (grid(granularity, offset), granularity * times);
            assert!(grid.divides(modulus));
            for (start, len) in extents() {
                let whole = Fit::from_extent(extent(start, len), &grid);
                assert_eq!(Fit::from_residue(start % modulus, Bytes(len), &grid), whole);
            }
        }
    }
}

#[test]
fn the_granularity_of_an_io_is_the_largest_power_that_divides_both() {
    for (start, len) in extents() {
        let divides = |power: &u64| start % power == 0 && len % power == 0;
        let expected = (0..6)
            .map(|shift| 1 << shift)
            .filter(divides)
            .max()
            .map(Bytes);
        assert_eq!(granularity_of_io(extent(start, len)), expected);
    }
}

/// Sizes of every magnitude, and the last few below the limit.
fn any_magnitude() -> impl Strategy<Value = u64> {
    prop_oneof![
        (any::<u64>(), 0_u32..64).prop_map(|(value, shift)| value >> shift),
        u64::MAX - 16..=u64::MAX,
    ]
}

proptest! {
    #[test]
    fn the_fit_is_exact_for_every_number(
        start in any_magnitude(), len in any_magnitude(),
        granularity in any_magnitude(), offset in any_magnitude(),
    ) {
        let granularity = granularity.max(1);
        let grid = grid(granularity, offset % granularity);
        let (g, o) = (u128::from(granularity), u128::from(grid.offset().0));
        // One granularity up, so that nothing is below zero.
        let from = u128::from(start) + g - o;
        let to = from + u128::from(len);
        let Some(fit) = Fit::from_residue(start, Bytes(len), &grid) else {
            prop_assert_eq!(len, 0);
            return Ok(());
        };
        prop_assert_eq!(u128::from(fit.head.0), from % g);
        prop_assert_eq!(u128::from(fit.tail.0), to % g);
        prop_assert_eq!(u128::from(fit.cells), to.div_ceil(g) - from / g);
        prop_assert_eq!(u128::from(fit.min_cells), u128::from(len).div_ceil(g));
        // A cell is whole if both of its ends are within the extent.
        let whole = (to / g).saturating_sub(from.div_ceil(g));
        prop_assert_eq!(u128::from(fit.partial_cells), u128::from(fit.cells) - whole);
        prop_assert_eq!(fit.touched_bytes(&grid), u128::from(fit.cells) * g);
        prop_assert_eq!(Fit::odd_length(Bytes(len), &grid), fit.head != fit.tail);
        if let Ok(extent) = Extent::new(Bytes(start), Bytes(len)) {
            prop_assert_eq!(Fit::from_extent(extent, &grid), Some(fit));
        }
    }
}
