//! The fit of extents with a partly known start or length on a grid: the least and the most of each figure of
//! [`Fit`](crate::Fit).
//!
//! A table that ran out of room keeps a length as "between two powers of two", and a start modulo
//! less than the granularity. Every figure is then a range that contains the truth.

use crate::bounds::Bounds;
use crate::grid::Grid;
use crate::units::{Bytes, gcd};

/// Lengths from `low` to `high` in steps of `step` bytes; both ends are multiples of the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    low: u64,
    high: u64,
    step: u64,
}

impl Lengths {
    /// `None` for lengths of 0, for a step of 0, and if the ends are out of order.
    #[must_use]
    pub const fn new(low: Bytes, high: Bytes, step: Bytes) -> Option<Self> {
        if low.0 == 0 || step.0 == 0 || low.0 > high.0 {
            return None;
        }
        Some(Self {
            low: low.0,
            high: high.0,
            step: step.0,
        })
    }

    /// Bytes of the last cell that such a length needs, 1 to the granularity (at least 1). Whether an
    /// I/O is split depends on nothing else of its length.
    #[must_use]
    pub fn rests(self, granularity: Bytes) -> Bounds<u64> {
        rests(self, granularity.0.max(1))
    }
}

/// The ends of each figure; see the module. A flag holds for certain (`low`) or perhaps (`high`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extremes {
    /// Distance of the start from the boundary before it.
    pub head: Bounds<u64>,
    /// Whether the start is off the grid.
    pub misaligned: Bounds<bool>,
    /// Whether the length is no multiple of the granularity.
    pub odd_length: Bounds<bool>,
    /// Whether some cell is covered only in part.
    pub partial: Bounds<bool>,
    /// Whether more cells are touched than the length needs.
    pub split: Bounds<bool>,
    /// Whether more than one cell is touched.
    pub crosses: Bounds<bool>,
    /// Cells touched.
    pub cells: Bounds<u128>,
    /// Cells that the length needs.
    pub min_cells: Bounds<u128>,
    /// Cells covered only in part.
    pub partial_cells: Bounds<u128>,
    /// Bytes of all cells touched.
    pub touched_bytes: Bounds<u128>,
    /// Bytes of all cells touched, less the length.
    pub beyond_bytes: Bounds<u128>,
}

impl Extremes {
    /// From the start modulo `modulus` (at least 1) and the known facts of the length.
    #[must_use]
    pub fn from_residue(start_mod: u64, modulus: u64, lengths: Lengths, grid: &Grid) -> Self {
        let heads = heads(start_mod, modulus, grid);
        let granularity = u128::from(grid.granularity().0);
        let (low, high) = (u128::from(lengths.low), u128::from(lengths.high));
        let head = heads.map(u128::from);
        let rest = rests(lengths, grid.granularity().0).map(u128::from);

        let misaligned = heads.map(|head| head != 0);
        let odd_length = odd_length(lengths, grid.granularity().0);
        // One cell more than the length needs is touched when the last, perhaps shorter, cell of
        // the length does not fit behind the head.
        let split = Bounds {
            low: head.low + rest.low > granularity,
            high: head.high + rest.high > granularity,
        };
        let cells = Bounds {
            low: (head.low + low).div_ceil(granularity),
            high: (head.high + high).div_ceil(granularity),
        };
        Extremes {
            head: heads,
            misaligned,
            odd_length,
            partial: Bounds {
                low: misaligned.low || odd_length.low,
                high: misaligned.high || odd_length.high,
            },
            split,
            crosses: cells.map(|cells| cells > 1),
            cells,
            min_cells: Bounds {
                low: low.div_ceil(granularity),
                high: high.div_ceil(granularity),
            },
            partial_cells: partial_cells(head, rest, odd_length, cells, granularity),
            touched_bytes: cells.map(|cells| cells.saturating_mul(granularity)),
            beyond_bytes: beyond_bytes(head, rest, split, granularity),
        }
    }
}

/// Distances from the boundary before the start: one where the granularity divides the modulus, else
/// all that agree with it modulo their greatest common divisor.
fn heads(start_mod: u64, modulus: u64, grid: &Grid) -> Bounds<u64> {
    if grid.divides(modulus) {
        return Bounds::exact(grid.past_boundary(Bytes(start_mod)).0);
    }
    let known = gcd(grid.granularity().0, modulus.max(1)).max(1);
    let low = (start_mod % known + known - grid.offset().0 % known) % known;
    Bounds {
        low,
        high: grid.granularity().0 - known + low,
    }
}

/// Bytes of the last cell that the length needs, 1 to the granularity.
fn rests(lengths: Lengths, granularity: u64) -> Bounds<u64> {
    let rest = |length: u64| (length - 1) % granularity + 1;
    let cell = |length: u64| (length - 1) / granularity;
    let (low, high) = (rest(lengths.low), rest(lengths.high));
    if cell(lengths.low) == cell(lengths.high) {
        return Bounds { low, high };
    }
    // Lengths on both sides of a multiple of the granularity. If steps miss that multiple, the ends may be a little
    // wide.
    let step = gcd(lengths.step, granularity).max(1);
    Bounds {
        low: low.min(step),
        high: granularity,
    }
}

fn odd_length(lengths: Lengths, granularity: u64) -> Bounds<bool> {
    let holds_multiple = lengths.high / granularity * granularity >= lengths.low;
    let only_multiples = lengths.low.is_multiple_of(granularity)
        && (lengths.low == lengths.high || lengths.step.is_multiple_of(granularity));
    Bounds {
        low: !holds_multiple,
        high: !only_multiples,
    }
}

fn partial_cells(
    head: Bounds<u128>,
    rest: Bounds<u128>,
    odd_length: Bounds<bool>,
    cells: Bounds<u128>,
    granularity: u128,
) -> Bounds<u128> {
    // The end is on a boundary exactly if head and rest make up a cell.
    let (low, high) = (head.low + rest.low, head.high + rest.high);
    let ends_on = Bounds {
        low: low == granularity && high == granularity,
        high: low <= granularity && granularity <= high,
    };
    let certain = |flag: bool| u128::from(flag);
    let low = if cells.low > 1 {
        (certain(head.low > 0) + certain(!ends_on.high))
            .max(certain(head.low > 0 || odd_length.low))
    } else {
        certain(head.low > 0 || odd_length.low)
    };
    let both = certain(head.high > 0) + certain(!ends_on.low);
    Bounds {
        low,
        high: if cells.high > 1 { both } else { both.min(1) },
    }
}

fn beyond_bytes(
    head: Bounds<u128>,
    rest: Bounds<u128>,
    split: Bounds<bool>,
    granularity: u128,
) -> Bounds<u128> {
    let low = if split.low {
        2 * granularity - rest.high
    } else {
        (granularity - rest.high).max(head.low)
    };
    // A split needs a rest of more than the granularity less the head.
    let of_split = (2 * granularity - rest.low).min(granularity + head.high.max(1) - 1);
    let of_others = granularity - rest.low;
    Bounds {
        low,
        high: match split {
            Bounds { low: true, .. } => of_split,
            Bounds { high: false, .. } => of_others,
            _ => of_split.max(of_others),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::Fit;
    use crate::grid::GridKind;

    /// Every figure of every start and length that agrees with the known facts, by the arithmetic of known ones.
    fn tried(start_mod: u64, modulus: u64, lengths: Lengths, grid: &Grid) -> Vec<(Fit, u64)> {
        // All heads come up within one common multiple.
        let starts = (start_mod..start_mod + grid.granularity().0 * modulus)
            .step_by(usize::try_from(modulus).expect("small"));
        starts
            .flat_map(|start| {
                let mut length = lengths.low;
                let mut fits = Vec::new();
                while length <= lengths.high {
                    let fit = Fit::from_residue(start, Bytes(length), grid).expect("a length");
                    fits.push((fit, length));
                    length += lengths.step;
                }
                fits
            })
            .collect()
    }

    fn check(start_mod: u64, modulus: u64, lengths: Lengths, grid: &Grid) {
        let found = Extremes::from_residue(start_mod, modulus, lengths, grid);
        let tried = tried(start_mod, modulus, lengths, grid);
        let what = format!("start {start_mod} modulo {modulus}, {lengths:?}, {grid:?}: {found:?}");
        let holds = |flag: Bounds<bool>, of: &dyn Fn(&Fit, u64) -> bool, name: &str| {
            let all = tried.iter().all(|(fit, len)| of(fit, *len));
            let any = tried.iter().any(|(fit, len)| of(fit, *len));
            assert!(!flag.low || all, "{name} is certain, and not true: {what}");
            assert!(flag.high || !any, "{name} is excluded, and true: {what}");
        };
        holds(found.misaligned, &|fit, _| fit.misaligned(), "misaligned");
        holds(
            found.odd_length,
            &|_, len| Fit::odd_length(Bytes(len), grid),
            "odd length",
        );
        holds(found.partial, &|fit, _| fit.partial_cells > 0, "partial");
        holds(found.split, &|fit, _| fit.split(), "split");
        holds(found.crosses, &|fit, _| fit.crosses(), "crosses");
        for (fit, len) in &tried {
            let touched = fit.touched_bytes(grid);
            for (bounds, value, name) in [
                (found.head.map(u128::from), u128::from(fit.head.0), "head"),
                (found.cells, u128::from(fit.cells), "cells"),
                (found.min_cells, u128::from(fit.min_cells), "needed"),
                (
                    found.partial_cells,
                    u128::from(fit.partial_cells),
                    "partial cells",
                ),
                (found.touched_bytes, touched, "touched"),
                (found.beyond_bytes, touched - u128::from(*len), "beyond"),
            ] {
                assert!(
                    bounds.contains(value),
                    "{name} {value} at length {len}: {what}"
                );
            }
        }
        if tried.len() == 1 || (grid.divides(modulus) && lengths.low == lengths.high) {
            assert!(
                found.cells.known().is_some()
                    && found.partial_cells.known().is_some()
                    && found.beyond_bytes.known().is_some()
                    && found.split.known().is_some()
                    && found.odd_length.known().is_some(),
                "a known start and length leave no range: {what}"
            );
        }
    }

    #[test]
    fn ranges_hold_every_case() {
        for granularity in 1..=9 {
            for offset in 0..granularity {
                let grid =
                    Grid::new(Bytes(granularity), Bytes(offset), GridKind::Unit).expect("a grid");
                for modulus in [1, 2, 3, 4, 6, 8, 36] {
                    for start in 0..modulus.min(9) {
                        for (low, high, step) in [
                            (1, 1, 1),
                            (2, 2, 1),
                            (9, 9, 1),
                            (3, 3, 1),
                            (3, 7, 1),
                            (5, 7, 1),
                            (9, 15, 1),
                            (2, 2, 2),
                            (4, 12, 4),
                            (6, 6, 2),
                            (10, 14, 2),
                            (3, 27, 3),
                            (17, 31, 1),
                            (18, 30, 2),
                        ] {
                            let lengths = Lengths::new(Bytes(low), Bytes(high), Bytes(step))
                                .expect("lengths");
                            check(start, modulus, lengths, &grid);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn ends_of_the_address_space() {
        let grid = Grid::unit(Bytes(u64::MAX)).expect("a grid");
        let lengths = Lengths::new(Bytes(1), Bytes(u64::MAX), Bytes(1)).expect("lengths");
        let found = Extremes::from_residue(u64::MAX - 1, 1, lengths, &grid);
        assert_eq!(found.cells, Bounds { low: 1, high: 2 });
        assert_eq!(Lengths::new(Bytes(0), Bytes(1), Bytes(1)), None);
        assert_eq!(Lengths::new(Bytes(2), Bytes(1), Bytes(1)), None);
    }
}
