//! The fit of one extent on one grid: the distances of its ends from boundaries, the number of cells that it touches,
//! and of those that it covers only in part.
//!
//! The figures are for one I/O, so that callers can weight and sum them; ratios over many I/O, such as amplification,
//! are computed next to the counts. They are an upper bound for a device: caches and merging may save some of it.

use serde::Serialize;

use crate::extent::Extent;
use crate::grid::Grid;
use crate::units::Bytes;

/// An extent laid on a grid. Only for lengths of at least 1: a flush fits nowhere and everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Fit {
    /// Bytes between the boundary at or before the start and the start; less than the granularity.
    pub head: Bytes,
    /// Bytes between the last boundary at or before the end and the end; less than the granularity.
    pub tail: Bytes,
    /// Cells touched, at least 1. On a boundary grid this is the fan-out.
    pub cells: u64,
    /// Cells that this length needs at best: the length in granularities, rounded up.
    pub min_cells: u64,
    /// Cells covered only in part: 0, 1 or 2.
    pub partial_cells: u64,
}

impl Fit {
    /// Lays `extent` on `grid`. `None` when the length is 0.
    #[must_use]
    pub const fn from_extent(extent: Extent, grid: &Grid) -> Option<Self> {
        Self::from_residue(extent.start().0, extent.len(), grid)
    }

    /// The same from `start_mod`, the start modulo some M in bytes, where the start itself was not
    /// kept. `None` when the length is 0.
    ///
    /// Exact whenever the granularity divides M (see [`Grid::divides`]), at every offset; for any
    /// other M the result says nothing, and it is for the caller to have asked. Takes two divisions
    /// and no 128-bit arithmetic, so it may be called for each row of a residue table.
    #[must_use]
    pub const fn from_residue(start_mod: u64, len: Bytes, grid: &Grid) -> Option<Self> {
        if len.0 == 0 {
            return None;
        }
        let granularity = grid.granularity().0;
        let head = grid.past_boundary(Bytes(start_mod)).0;
        let whole = len.0 / granularity;
        let rest = len.0 % granularity;
        // head + len may exceed 64 bits. Split as head + rest + whole cells it need not be formed:
        // head and rest are each below the granularity, so their sum spans 0, 1 or 2 cells.
        let to_boundary = granularity - head;
        let extra_cells = if rest > to_boundary {
            2
        } else if rest > 0 || head > 0 {
            1
        } else {
            0
        };
        let tail = if rest >= to_boundary {
            rest - to_boundary
        } else {
            head + rest
        };
        let cells = whole + extra_cells;
        Some(Self {
            head: Bytes(head),
            tail: Bytes(tail),
            cells,
            min_cells: whole + (rest > 0) as u64,
            partial_cells: partial_cells(head, tail, cells),
        })
    }

    /// Whether the start is off the grid. Says nothing of the length: see [`Fit::odd_length`].
    #[must_use]
    pub const fn misaligned(&self) -> bool {
        self.head.0 != 0
    }

    /// Whether more cells are touched than the length needs, which a better start would avoid.
    #[must_use]
    pub const fn split(&self) -> bool {
        self.cells > self.min_cells
    }

    /// Whether a boundary is inside, for any reason; long I/O cross even if aligned.
    #[must_use]
    pub const fn crosses(&self) -> bool {
        self.cells > 1
    }

    /// Whether `len` is no multiple of the granularity, so that no start makes both ends fit.
    #[must_use]
    pub const fn odd_length(len: Bytes, grid: &Grid) -> bool {
        !len.0.is_multiple_of(grid.granularity().0)
    }

    /// Bytes of all cells touched: the transfer of a unit grid, in either direction. `grid` must be the one of this
    /// fit. 128 bits, because the outer cells may reach beyond the last `u64`.
    #[must_use]
    pub const fn touched_bytes(&self, grid: &Grid) -> u128 {
        self.cells as u128 * grid.granularity().0 as u128
    }

    /// Bytes of the cells covered in part: a write on a unit grid reads them first. `grid` must be the one of this fit.
    #[must_use]
    pub const fn read_first_bytes(&self, grid: &Grid) -> u128 {
        self.partial_cells as u128 * grid.granularity().0 as u128
    }
}

/// A single cell is partial once, even when both of its ends are cut off.
const fn partial_cells(head: u64, tail: u64, cells: u64) -> u64 {
    let cut = (head != 0) as u64 + (tail != 0) as u64;
    if cells == 1 && cut == 2 { 1 } else { cut }
}

/// The granularity of an I/O: the largest power of two that divides both its start and its length.
///
/// Not the alignment of its start alone. Every power of two divides a start of 0, where the length
/// decides. `None` when the length is 0, for which there is no largest one.
#[must_use]
pub const fn granularity_of_io(extent: Extent) -> Option<Bytes> {
    if extent.is_empty() {
        return None;
    }
    // The lowest set bit of either is the lowest set bit of both taken together.
    let both = extent.start().0 | extent.len().0;
    Some(Bytes(1 << both.trailing_zeros()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::GridKind;

    fn fit(start: u64, len: u64, granularity: u64, offset: u64) -> Option<Fit> {
        let extent = Extent::new(Bytes(start), Bytes(len)).expect("an extent");
        let grid = Grid::new(Bytes(granularity), Bytes(offset), GridKind::Unit).expect("a grid");
        Fit::from_extent(extent, &grid)
    }

    #[test]
    fn a_start_at_sector_34_touches_two_cells_of_8_kib() {
        let grid = Grid::unit(Bytes(8_192)).expect("a grid");
        let fit = fit(34 * 512, 8_192, 8_192, 0).expect("has a length");
        assert_eq!((fit.head, fit.tail), (Bytes(1_024), Bytes(1_024)));
        assert_eq!((fit.cells, fit.min_cells, fit.partial_cells), (2, 1, 2));
        assert!(fit.misaligned() && fit.split() && fit.crosses());
        assert!(!Fit::odd_length(Bytes(8_192), &grid));
        assert_eq!(
            (fit.touched_bytes(&grid), fit.read_first_bytes(&grid)),
            (16_384, 16_384)
        );
    }

    #[test]
    fn a_start_at_sector_7_fits_a_grid_at_sector_7() {
        let fit = fit(7 * 512, 4_096, 4_096, 3_584).expect("has a length");
        assert_eq!((fit.head, fit.cells, fit.partial_cells), (Bytes(0), 1, 0));
        assert!(!fit.misaligned() && !fit.split());
    }

    #[test]
    fn an_aligned_long_io_crosses_but_is_not_split() {
        let fit = fit(0, (20 * 48) << 10, 48 << 10, 0).expect("has a length");
        assert_eq!((fit.cells, fit.partial_cells), (20, 0));
        assert!(fit.crosses() && !fit.split());
    }

    #[test]
    fn a_cell_cut_at_both_ends_is_one_partial_cell() {
        let fit = fit(1, 2, 8, 0).expect("has a length");
        assert_eq!((fit.cells, fit.partial_cells), (1, 1));
    }

    #[test]
    fn a_flush_has_no_fit_and_no_granularity() {
        assert_eq!(fit(4_096, 0, 4_096, 0), None);
        let flush = Extent::new(Bytes(4_096), Bytes(0)).expect("an extent");
        assert_eq!(granularity_of_io(flush), None);
    }

    #[test]
    fn granularity_of_io_takes_start_and_length_together() {
        let check = |start, len, expected| {
            let extent = Extent::new(Bytes(start), Bytes(len)).expect("an extent");
            assert_eq!(granularity_of_io(extent), Some(Bytes(expected)));
        };
        check(17_408, 8_192, 1_024);
        check(8_192, 1_536, 512);
        check(0, 12_288, 4_096);
        check(0, 1 << 63, 1 << 63);
        check(u64::MAX - 1, 1, 1);
    }
}
