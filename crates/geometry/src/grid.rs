//! A grid: boundaries at equal distances through an address space, and the meaning of touching one of the cells between
//! them.
//!
//! Left out: the source of a grid and whether to believe it (`stack` knows), and the fit of I/O on it ([`crate::fit`]).

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::units::Bytes;

/// The kind of a cell, and with it the cost of touching one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GridKind {
    /// The device moves whole cells, and a write to part of one reads it first: a physical sector,
    /// an indirection unit, a file-system record, a database page.
    Unit,
    /// An I/O is cut at each boundary, which costs one more command: a RAID chunk, a zone.
    Boundary,
    /// The data of one full parity stripe: writing less of it means reading data or parity.
    ParityStripe,
}

/// Boundaries at `offset + k * granularity` for every integer k, in the address space of one target (its name is in
/// the caller's output).
///
/// Granularity is at least 1 and offset less than granularity. Serialized as `granularity_bytes`,
/// `offset_bytes` and `kind`, and checked when read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "RawGrid", try_from = "RawGrid")]
pub struct Grid {
    granularity: Bytes,
    offset: Bytes,
    kind: GridKind,
}

/// Why a grid cannot exist.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GridError {
    /// Cells of no size.
    #[error("granularity of a grid is 0: expected at least 1 byte")]
    ZeroGranularity,
    /// The offset is not the smallest one that describes the grid. It is not reduced in silence,
    /// because an offset beyond its granularity is more often a mistake in the unit.
    #[error(
        "grid offset of {} bytes is not below its granularity of {} bytes: \
         write the offset modulo the granularity, which is {}",
        offset.0, granularity.0, offset.0.checked_rem(granularity.0).unwrap_or(0)
    )]
    OffsetNotBelowGranularity {
        /// The offset asked for.
        offset: Bytes,
        /// The granularity asked for.
        granularity: Bytes,
    },
}

impl Grid {
    /// The grid used if none is known: 4 KiB units at offset 0. A result on it must name its source as *assumed*.
    pub const ASSUMED: Self = Self {
        granularity: Bytes(4096),
        offset: Bytes(0),
        kind: GridKind::Unit,
    };

    /// Units of 1 MiB at offset 0, where partitioning tools begin partitions.
    pub const MEBIBYTE: Self = Self {
        granularity: Bytes(1 << 20),
        offset: Bytes(0),
        kind: GridKind::Unit,
    };

    /// A grid with cells of `granularity` bytes; one starts at byte `offset`.
    ///
    /// # Errors
    /// [`GridError::ZeroGranularity`], or [`GridError::OffsetNotBelowGranularity`].
    pub const fn new(granularity: Bytes, offset: Bytes, kind: GridKind) -> Result<Self, GridError> {
        if granularity.0 == 0 {
            return Err(GridError::ZeroGranularity);
        }
        if offset.0 >= granularity.0 {
            return Err(GridError::OffsetNotBelowGranularity {
                offset,
                granularity,
            });
        }
        Ok(Self {
            granularity,
            offset,
            kind,
        })
    }

    /// Units of `granularity` bytes at offset 0.
    ///
    /// # Errors
    /// [`GridError::ZeroGranularity`].
    pub const fn unit(granularity: Bytes) -> Result<Self, GridError> {
        Self::new(granularity, Bytes(0), GridKind::Unit)
    }

    /// Boundaries every `granularity` bytes from offset 0 on.
    ///
    /// # Errors
    /// [`GridError::ZeroGranularity`].
    pub const fn boundary(granularity: Bytes) -> Result<Self, GridError> {
        Self::new(granularity, Bytes(0), GridKind::Boundary)
    }

    /// Parity stripes that hold `granularity` bytes of data each, the first at offset 0.
    ///
    /// # Errors
    /// [`GridError::ZeroGranularity`].
    pub const fn parity_stripe(granularity: Bytes) -> Result<Self, GridError> {
        Self::new(granularity, Bytes(0), GridKind::ParityStripe)
    }

    /// Distance between boundaries, at least 1.
    #[must_use]
    pub const fn granularity(&self) -> Bytes {
        self.granularity
    }

    /// The first boundary at or after byte 0; less than the granularity.
    #[must_use]
    pub const fn offset(&self) -> Bytes {
        self.offset
    }

    /// The cost of touching a cell.
    #[must_use]
    pub const fn kind(&self) -> GridKind {
        self.kind
    }

    /// The distance of `position` from the boundary before it: 0 on a boundary, else less than the granularity. Exact
    /// also for positions before the offset, and for any `u64`.
    #[must_use]
    pub const fn past_boundary(&self, position: Bytes) -> Bytes {
        let residue = position.0 % self.granularity.0;
        // Both are below the granularity, so neither branch can leave the range of u64.
        if residue >= self.offset.0 {
            Bytes(residue - self.offset.0)
        } else {
            Bytes(residue + (self.granularity.0 - self.offset.0))
        }
    }

    /// Whether knowing `start mod modulus` is enough for the fit on this grid: whether the
    /// granularity divides `modulus`. A modulus of 0 stands for no knowledge and gives `false`.
    #[must_use]
    pub const fn divides(&self, modulus: u64) -> bool {
        modulus != 0 && modulus.is_multiple_of(self.granularity.0)
    }
}

impl fmt::Display for Grid {
    /// `4 KiB at offset 0`, or `4 KiB at offset 3,584 B (7 sectors)`; the sectors are left out
    /// where the offset is no whole number of them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at offset ", self.granularity)?;
        match self.offset.to_sectors_exact() {
            _ if self.offset.0 == 0 => f.write_str("0"),
            Some(sectors) => write!(f, "{} ({sectors})", self.offset),
            None => write!(f, "{}", self.offset),
        }
    }
}

/// The serialized form, which carries its unit in the names of its fields.
#[derive(Serialize, Deserialize)]
struct RawGrid {
    granularity_bytes: Bytes,
    offset_bytes: Bytes,
    kind: GridKind,
}

impl From<Grid> for RawGrid {
    fn from(grid: Grid) -> Self {
        Self {
            granularity_bytes: grid.granularity,
            offset_bytes: grid.offset,
            kind: grid.kind,
        }
    }
}

impl TryFrom<RawGrid> for Grid {
    type Error = GridError;

    fn try_from(raw: RawGrid) -> Result<Self, GridError> {
        Self::new(raw.granularity_bytes, raw.offset_bytes, raw.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit_at(granularity: u64, offset: u64) -> Result<Grid, GridError> {
        Grid::new(Bytes(granularity), Bytes(offset), GridKind::Unit)
    }

    #[test]
    fn a_grid_needs_cells_and_a_reduced_offset() {
        assert_eq!(unit_at(0, 0), Err(GridError::ZeroGranularity));
        assert_eq!(unit_at(1, 0), Grid::unit(Bytes(1)));
        let error = unit_at(4_096, 4_608).expect_err("offset beyond the granularity");
        let text = error.to_string();
        assert!(
            text.contains("4608") && text.contains("4096") && text.ends_with("512"),
            "{text}"
        );
        assert!(unit_at(4_096, 4_096).is_err());
    }

    #[test]
    fn display_is_exact() {
        let check = |grid: Result<Grid, GridError>, shown: &str| {
            assert_eq!(grid.expect("a grid").to_string(), shown);
        };
        check(unit_at(4_096, 3_584), "4 KiB at offset 3,584 B (7 sectors)");
        check(unit_at(8_192, 1_024), "8 KiB at offset 1 KiB (2 sectors)");
        check(unit_at(12, 5), "12 B at offset 5 B");
        check(Ok(Grid::ASSUMED), "4 KiB at offset 0");
    }

    #[test]
    fn past_boundary_holds_before_the_offset_and_at_the_far_end() {
        let grid = unit_at(u64::MAX, u64::MAX - 1).expect("a grid");
        assert_eq!(grid.past_boundary(Bytes(u64::MAX - 1)), Bytes(0));
        assert_eq!(grid.past_boundary(Bytes(0)), Bytes(1));
        assert_eq!(grid.past_boundary(Bytes(u64::MAX - 2)), Bytes(u64::MAX - 1));
    }

    #[test]
    fn a_modulus_answers_for_its_divisors_only() {
        assert!(Grid::ASSUMED.divides(1 << 20));
        assert!(!Grid::ASSUMED.divides(6 << 10));
        assert!(!Grid::ASSUMED.divides(0));
    }
}
