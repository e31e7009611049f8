//! A position that is on several grids at once: the boundaries that two grids share are a grid again, given by the
//! Chinese remainder theorem.
//!
//! That puts everything which limits a start into one form: a unit with its alignment offset, the sectors of a label,
//! the cylinders of an old one.

use plumb_geometry::{Bytes, Grid, GridKind, gcd};

use crate::error::PlanError;

/// The grid of the boundaries that both have.
///
/// # Errors
/// When they have none in common, or the distance between those exceeds 64 bits.
pub fn meet(one: &Grid, other: &Grid) -> Result<Grid, PlanError> {
    let (a, b) = (one.granularity().0, other.granularity().0);
    let common = gcd(a, b);
    let gap = i128::from(other.offset().0) - i128::from(one.offset().0);
    if gap % i128::from(common) != 0 {
        return Err(PlanError::NoCommonBoundary {
            one: *one,
            other: *other,
        });
    }
    let too_large = PlanError::TooLarge {
        what: "the distance between positions that are on all grids",
    };
    let granularity = (a / common).checked_mul(b).ok_or(too_large.clone())?;
    // Steps of `a` from the first boundary of `one` until a boundary of `other`: gap / a, modulo b / common.
    let modulus = i128::from(b / common);
    let steps = (gap / i128::from(common)).rem_euclid(modulus)
        * inverse(i128::from(a / common), modulus)
        % modulus;
    let offset =
        (i128::from(one.offset().0) + steps * i128::from(a)).rem_euclid(i128::from(granularity));
    let offset = u64::try_from(offset).map_err(|_| too_large.clone())?;
    Grid::new(Bytes(granularity), Bytes(offset), GridKind::Unit).map_err(|_| too_large)
}

/// Like [`meet`], for any number of grids; every position without any.
///
/// # Errors
/// As [`meet`].
pub fn meet_all<'a>(grids: impl IntoIterator<Item = &'a Grid>) -> Result<Grid, PlanError> {
    let every = Grid::unit(Bytes(1)).map_err(|_| PlanError::TooLarge { what: "a grid" })?;
    grids
        .into_iter()
        .try_fold(every, |known, grid| meet(&known, grid))
}

/// The smallest boundary at or after a position; `None` beyond 64 bits.
#[must_use]
pub fn next_boundary(grid: &Grid, position: Bytes) -> Option<Bytes> {
    match grid.past_boundary(position).0 {
        0 => Some(position),
        past => position.checked_add(Bytes(grid.granularity().0 - past)),
    }
}

/// The inverse of a number modulo one that it has no divisor in common with; 0 modulo 1.
fn inverse(value: i128, modulus: i128) -> i128 {
    let (mut old, mut new) = (value.rem_euclid(modulus), modulus);
    let (mut old_factor, mut factor) = (1_i128, 0_i128);
    while new != 0 {
        let quotient = old / new;
        (old, new) = (new, old - quotient * new);
        (old_factor, factor) = (factor, old_factor - quotient * factor);
    }
    old_factor.rem_euclid(modulus)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn grid(granularity: u64, offset: u64) -> Grid {
        Grid::new(Bytes(granularity), Bytes(offset), GridKind::Unit).expect("a grid")
    }

    #[test]
    fn an_alignment_offset_against_sectors() {
        assert_eq!(meet(&grid(4096, 3584), &grid(512, 0)), Ok(grid(4096, 3584)));
        assert!(matches!(
            meet(&grid(4096, 3584), &grid(4096, 0)),
            Err(PlanError::NoCommonBoundary { .. })
        ));
        let large = meet(&grid(u64::MAX, 0), &grid(u64::MAX - 1, 0));
        assert!(matches!(large, Err(PlanError::TooLarge { .. })));
    }

    proptest! {
        /// Against looking at every position of one period.
        #[test]
        fn boundaries_are_those_of_both(a in 1_u64..60, b in 1_u64..60, x in 0_u64..60, y in 0_u64..60) {
            let (one, other) = (grid(a, x % a), grid(b, y % b));
            let on = |grid: &Grid, at: u64| grid.past_boundary(Bytes(at)) == Bytes(0);
            let both: Vec<u64> = (0..2 * a * b).filter(|at| on(&one, *at) && on(&other, *at)).collect();
            match meet(&one, &other) {
                Ok(met) => {
                    let found: Vec<u64> = (0..2 * a * b).filter(|at| on(&met, *at)).collect();
                    prop_assert_eq!(found, both);
                }
                Err(_) => prop_assert!(both.is_empty()),
            }
        }

        #[test]
        fn the_next_boundary_is_the_first(a in 1_u64..60, x in 0_u64..60, at in 0_u64..500) {
            let grid = grid(a, x % a);
            let first = (at..).find(|at| grid.past_boundary(Bytes(*at)) == Bytes(0));
            prop_assert_eq!(next_boundary(&grid, Bytes(at)), first.map(Bytes));
        }
    }
}
