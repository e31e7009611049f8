//! The share of random I/O across a boundary: compare an observed share of split I/O with it.
//!
//! The starts are taken to be spread evenly over the multiples of one unit, counted from a base, as
//! for random access to equal records of a volume that begins there; real starts that are not even
//! are counted from the residue table instead. The method is that of the Solaris stripe arithmetic
//! (8 KiB on a 32 KiB interlace: 15 of 64 starts).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::grid::Grid;
use crate::units::{Bytes, gcd};

/// An exact share, 0 to 1, in lowest terms; the denominator is at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "RawShare")]
pub struct Share {
    /// Starts that count.
    pub numerator: u64,
    /// Starts in all.
    pub denominator: u64,
}

impl Share {
    /// The share as a number, 0 to 1.
    #[must_use]
    pub fn value(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// `part` of `whole` in lowest terms; the callers have `whole` at least 1.
    const fn reduced(part: u64, whole: u64) -> Self {
        let common = gcd(part, whole);
        Self {
            numerator: part / common,
            denominator: whole / common,
        }
    }
}

/// The serialized form, which may come from anywhere.
#[derive(Deserialize)]
struct RawShare {
    numerator: u64,
    denominator: u64,
}

impl TryFrom<RawShare> for Share {
    type Error = &'static str;

    fn try_from(raw: RawShare) -> Result<Self, &'static str> {
        if raw.denominator == 0 || raw.numerator > raw.denominator {
            return Err("found a share that is no number from 0 to 1, expected one");
        }
        Ok(Self::reduced(raw.numerator, raw.denominator))
    }
}

impl fmt::Display for Share {
    /// `15/64`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

/// Share of I/O of `len` bytes that touch more cells of `grid` than their length needs
/// ([`Fit::split`](crate::Fit::split)), when starts are even over the multiples of `unit` bytes.
/// `None` when `len` or `unit` is 0.
#[must_use]
pub const fn split_share(len: Bytes, grid: &Grid, unit: Bytes) -> Option<Share> {
    split_share_from(Bytes(0), len, grid, unit)
}

/// As [`split_share`], for starts at `base`, `base + step`, `base + 2·step`, …: pages of `step` bytes
/// in a volume that begins at byte `base` of the address space of the grid. The share is that of
/// one whole period of the starts modulo the granularity.
#[must_use]
pub const fn split_share_from(base: Bytes, len: Bytes, grid: &Grid, step: Bytes) -> Option<Share> {
    let granularity = grid.granularity().0;
    let past_last_boundary = if len.0 == 0 {
        return None;
    } else {
        (len.0 - 1) % granularity + 1
    };
    // The cells needed at best leave this much room; a start further in than that spills over.
    let room = granularity - past_last_boundary;
    share_beyond(room, base, grid, step)
}

/// Share of I/O of `len` bytes with a boundary inside ([`Fit::crosses`](crate::Fit::crosses)),
/// under the same assumption: 1 for every length over the granularity. `None` as above.
#[must_use]
pub const fn crossing_share(len: Bytes, grid: &Grid, unit: Bytes) -> Option<Share> {
    if len.0 == 0 || unit.0 == 0 {
        return None;
    }
    match grid.granularity().0.checked_sub(len.0) {
        Some(room) => share_beyond(room, Bytes(0), grid, unit),
        None => Some(Share {
            numerator: 1,
            denominator: 1,
        }),
    }
}

/// Share of the starts that are more than `room` bytes past a boundary.
const fn share_beyond(room: u64, base: Bytes, grid: &Grid, unit: Bytes) -> Option<Share> {
    if unit.0 == 0 {
        return None;
    }
    let granularity = grid.granularity().0;
    // Modulo the granularity the multiples of a unit visit each multiple of `step` equally often, even if the unit does
    // not divide the granularity; base and offset move all of them by `first`.
    let step = gcd(unit.0, granularity);
    let starts = granularity / step;
    let first = grid.past_boundary(base).0 % step;
    let beyond = if room < first {
        starts
    } else {
        starts - 1 - (room - first) / step
    };
    Some(Share::reduced(beyond, starts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extent::Extent;
    use crate::fit::Fit;
    use crate::grid::GridKind;

    #[test]
    fn the_stripe_arithmetic_of_the_seeds() {
        let check = |chunk: u64, shown: &str| {
            let grid = Grid::boundary(Bytes(chunk)).expect("a grid");
            let share = split_share(Bytes(8_192), &grid, Bytes(512)).expect("has a length");
            assert_eq!(share.to_string(), shown);
        };
        check(32 << 10, "15/64");
        check(1 << 20, "15/2048");
    }

    /// By hand: of the starts base, base + 8 KiB, base + 16 KiB, … those with the last byte in another chunk than the
    /// first.
    #[test]
    fn the_base_decides_the_position_of_pages() {
        for (chunk, base, shown) in [
            (32u64 << 10, 0u64, "0/1"),
            (32 << 10, 512, "1/4"),
            (32 << 10, 1 << 20, "0/1"),
            (1 << 20, 0, "0/1"),
            (1 << 20, 512, "1/128"),
            (1 << 20, 512 + (7 << 20), "1/128"),
        ] {
            let grid = Grid::boundary(Bytes(chunk)).expect("a grid");
            let page = Bytes(8 << 10);
            let share = split_share_from(Bytes(base), page, &grid, page).expect("has a length");
            assert_eq!(share.to_string(), shown, "{chunk} {base}");
        }
    }

    #[test]
    fn shares_from_a_base_agree_with_laying_out_every_start() {
        for granularity in 1..=12 {
            for (base, len, step) in all_of(granularity) {
                let grid = Grid::boundary(Bytes(granularity)).expect("a grid");
                let split = |k: u64| {
                    let extent = Extent::new(Bytes(base + k * step), Bytes(len)).expect("small");
                    Fit::from_extent(extent, &grid)
                        .expect("has a length")
                        .split()
                };
                let count = (0..granularity).filter(|k| split(*k)).count() as u64;
                assert_eq!(
                    split_share_from(Bytes(base), Bytes(len), &grid, Bytes(step)),
                    Some(Share::reduced(count, granularity)),
                    "{granularity} {base} {len} {step}"
                );
            }
        }
    }

    #[test]
    fn nothing_is_shared_out_for_no_length_or_no_unit() {
        let grid = Grid::boundary(Bytes(8)).expect("a grid");
        for (len, unit) in [(0, 1), (1, 0), (0, 0), (9, 0)] {
            assert_eq!(split_share(Bytes(len), &grid, Bytes(unit)), None);
            assert_eq!(crossing_share(Bytes(len), &grid, Bytes(unit)), None);
        }
        let far = split_share(Bytes(u64::MAX), &grid, Bytes(u64::MAX)).expect("has a length");
        assert_eq!(far.to_string(), "3/4");
    }

    #[test]
    fn both_shares_agree_with_laying_out_every_start() {
        for granularity in 1..=12 {
            for (offset, len, unit) in all_of(granularity) {
                let grid = Grid::new(Bytes(granularity), Bytes(offset), GridKind::Boundary)
                    .expect("a grid");
                let count = |wanted: fn(&Fit) -> bool| {
                    let starts = (0..granularity).map(|k| k * unit);
                    let fits = starts.map(|start| {
                        let extent = Extent::new(Bytes(start), Bytes(len)).expect("small");
                        Fit::from_extent(extent, &grid).expect("has a length")
                    });
                    Some(Share::reduced(
                        fits.filter(wanted).count() as u64,
                        granularity,
                    ))
                };
                let (len, unit) = (Bytes(len), Bytes(unit));
                assert_eq!(split_share(len, &grid, unit), count(Fit::split));
                assert_eq!(crossing_share(len, &grid, unit), count(Fit::crosses));
            }
        }
    }

    fn all_of(granularity: u64) -> impl Iterator<Item = (u64, u64, u64)> {
        (0..granularity)
            .flat_map(|offset| (1..30).map(move |len| (offset, len)))
            .flat_map(|(offset, len)| (1..15).map(move |unit| (offset, len, unit)))
    }
}
