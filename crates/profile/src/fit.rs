//! How the I/O of a residue table lie on a grid: exact sums, or why the table cannot tell.

use serde::{Deserialize, Serialize};

use plumb_geometry::{Bytes, Fit, Grid, GridKind, group_digits};
use plumb_trace::Op;

use crate::histogram::{Counts, power_index};
use crate::table::{Key, Row, Table};

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Unknown {
    /// The granularity does not divide M.
    #[error("the residues were kept modulo {modulus}, which {granularity} does not divide")]
    Modulus {
        /// Granularity asked for.
        granularity: Bytes,
        /// M of the table.
        modulus: Bytes,
    },
    /// The offset lies between two units.
    #[error("starts were kept in units of {unit}, and {offset} is no multiple of it")]
    Offset {
        /// Offset asked for.
        offset: Bytes,
        /// Unit of the table.
        unit: Bytes,
    },
    /// Too many lengths were rounded up for what is known of the others to stand for all.
    #[error(
        "the length of {} of {} I/O ({:.1} %) is not known exactly any more: there were too many different ones",
        group_digits(*rounded), group_digits(*ios), *rounded as f64 * 100.0 / (*ios).max(1) as f64
    )]
    Lengths {
        /// I/O whose length was rounded up.
        rounded: u64,
        /// All I/O.
        ios: u64,
    },
    /// Nothing was counted.
    #[error("no read or write was seen")]
    NoIo,
    /// The source holds no table at all.
    #[error("the source does not tell where I/O start")]
    NoStarts,
}

/// Share of I/O whose length was rounded up, in percent, from which sums over the others tell nothing of all.
pub const ROUNDED_PERCENT_MAX: u64 = 10;

/// Whether sums over the I/O of known length stand for all.
///
/// # Errors
/// When too many lengths were rounded up.
pub fn lengths_known(ios: u64, rounded: u64) -> Result<(), Unknown> {
    let many = u128::from(rounded) * 100 > u128::from(ios) * u128::from(ROUNDED_PERCENT_MAX);
    if many {
        Err(Unknown::Lengths { rounded, ios })
    } else {
        Ok(())
    }
}

/// Which rows of a table are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Select {
    /// Only this operation; `None` is reads and writes.
    pub op: Option<Op>,
    /// Only stream heads (`false`) or only continuations (`true`).
    pub continues: Option<bool>,
    /// Only lengths of at least so many bytes. Of lengths that were rounded those are taken that surely are as
    /// long, which are all of them where this is a power of two or one more.
    pub len_bytes_min: u64,
}

impl Select {
    /// All reads and writes.
    pub const DATA: Select = Select {
        op: None,
        continues: None,
        len_bytes_min: 0,
    };
    /// Reads and writes that are stream heads.
    pub const HEADS: Select = Select {
        op: None,
        continues: Some(false),
        len_bytes_min: 0,
    };

    /// One operation.
    #[must_use]
    pub const fn op(op: Op) -> Select {
        Select {
            op: Some(op),
            continues: None,
            len_bytes_min: 0,
        }
    }

    /// Whether a row is asked for; I/O without an extent never are.
    #[must_use]
    pub fn takes(&self, key: Key, unit: u64) -> bool {
        let op = match self.op {
            Some(op) => key.op() == op,
            None => matches!(key.op(), Op::Read | Op::Write),
        };
        op && key.length() > 0
            && self
                .continues
                .is_none_or(|continues| key.continues() == continues)
            && key.length_min().saturating_mul(unit) >= self.len_bytes_min
    }
}

/// Sums over the I/O of a table laid on a grid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FitTally {
    /// I/O asked for.
    pub ios: u64,
    /// Of these, I/O that do not start on the grid.
    pub misaligned: u64,
    /// Sum of the distances from the boundary before the start, bytes.
    pub head_bytes_sum: u128,
    /// Heads by power of two of their 512-byte sectors, as `quantize` would print: index 0 is on the grid,
    /// index n+1 holds 2^n to 2^(n+1)−1 sectors.
    #[serde(skip)]
    pub heads: Counts,
    /// I/O whose length is not known exactly any more; they are in none of the sums below.
    pub unknown_length: u64,
    /// I/O whose length is no multiple of the granularity.
    pub odd_length: u64,
    /// I/O that cover some cell only in part: they start or end off the grid.
    pub partial: u64,
    /// I/O that touch more cells than their length needs.
    pub split: u64,
    /// I/O that touch more than one cell, whatever the cause.
    pub crossing: u64,
    /// Cells touched.
    pub cells: u128,
    /// Cells that the lengths need.
    pub cells_min: u128,
    /// Cells covered only in part.
    pub partial_cells: u128,
    /// Bytes asked for.
    pub bytes: u128,
    /// Bytes of all cells touched; counts for unit grids only.
    pub touched_bytes: u128,
    /// Bytes of cells that a write covers only in part and has to read first; unit grids only.
    pub read_first_bytes: u128,
}

impl FitTally {
    /// I/O whose length is known.
    #[must_use]
    pub fn known_length(&self) -> u64 {
        self.ios - self.unknown_length
    }

    /// Whether the sums that need lengths stand for all I/O.
    ///
    /// # Errors
    /// When too many lengths were rounded up.
    pub fn lengths_known(&self) -> Result<(), Unknown> {
        lengths_known(self.ios, self.unknown_length)
    }

    /// Cells touched per cell that the lengths need; `None` where too little is known.
    #[must_use]
    pub fn cells_ratio(&self) -> Option<f64> {
        let is_known = self.cells_min > 0 && self.lengths_known().is_ok();
        is_known.then(|| self.cells as f64 / self.cells_min as f64)
    }

    /// Bytes moved per byte asked for: an upper bound, since neighbours in a stream, caches and merges save some.
    /// `None` on grids that are no units, without bytes, or where too few lengths are known.
    #[must_use]
    pub fn amplification(&self, grid: &Grid) -> Option<f64> {
        if grid.kind() != GridKind::Unit || self.bytes == 0 || self.lengths_known().is_err() {
            return None;
        }
        Some((self.touched_bytes + self.read_first_bytes) as f64 / self.bytes as f64)
    }

    fn add(&mut self, key: Key, row: &Row, unit: u64, grid: &Grid) {
        let ios = row.ios;
        let wide = u128::from(ios);
        let start = Bytes(key.residue() * unit);
        let head = grid.past_boundary(start).0;
        add(&mut self.ios, ios);
        add(&mut self.misaligned, if head == 0 { 0 } else { ios });
        self.head_bytes_sum += wide * u128::from(head);
        self.heads.add(head_index(head), ios);
        if key.is_rounded() {
            add(&mut self.unknown_length, ios);
            return;
        }
        let len = Bytes(key.length().saturating_mul(unit));
        let Some(fit) = Fit::from_residue(start.0, len, grid) else {
            return;
        };
        add(
            &mut self.odd_length,
            if Fit::odd_length(len, grid) { ios } else { 0 },
        );
        add(
            &mut self.partial,
            if fit.partial_cells > 0 { ios } else { 0 },
        );
        add(&mut self.split, if fit.split() { ios } else { 0 });
        add(&mut self.crossing, if fit.crosses() { ios } else { 0 });
        self.cells += wide * u128::from(fit.cells);
        self.cells_min += wide * u128::from(fit.min_cells);
        self.partial_cells += wide * u128::from(fit.partial_cells);
        self.bytes += wide * u128::from(len.0);
        if grid.kind() == GridKind::Unit {
            self.touched_bytes += wide * fit.touched_bytes(grid);
            if key.op() == Op::Write {
                self.read_first_bytes += wide * fit.read_first_bytes(grid);
            }
        }
    }
}

impl FitTally {
    /// Adds the sums over other I/O laid on the same grid.
    pub fn merge(&mut self, other: &FitTally) {
        add(&mut self.ios, other.ios);
        add(&mut self.misaligned, other.misaligned);
        self.head_bytes_sum += other.head_bytes_sum;
        self.heads.merge(&other.heads);
        add(&mut self.unknown_length, other.unknown_length);
        add(&mut self.odd_length, other.odd_length);
        add(&mut self.partial, other.partial);
        add(&mut self.split, other.split);
        add(&mut self.crossing, other.crossing);
        self.cells += other.cells;
        self.cells_min += other.cells_min;
        self.partial_cells += other.partial_cells;
        self.bytes += other.bytes;
        self.touched_bytes += other.touched_bytes;
        self.read_first_bytes += other.read_first_bytes;
    }
}

/// Sums stay at their end rather than begin anew: counts of a source that nobody vouches for may be that large.
fn add(sum: &mut u64, ios: u64) {
    *sum = sum.saturating_add(ios);
}

/// Index of a head in [`FitTally::heads`].
fn head_index(head_bytes: u64) -> usize {
    let sectors = head_bytes / 512;
    if head_bytes == 0 {
        0
    } else {
        64 - sectors.leading_zeros() as usize
    }
    .max(usize::from(head_bytes > 0))
}

impl Table {
    /// Whether the table can tell how its I/O lie on a grid.
    ///
    /// # Errors
    /// When the granularity does not divide M or the offset is no whole number of units.
    pub fn can_answer(&self, grid: &Grid) -> Result<(), Unknown> {
        if !grid.divides(self.modulus_bytes()) {
            return Err(self.outside(grid));
        }
        let unit = Bytes(self.unit_bytes());
        if !grid.offset().0.is_multiple_of(unit.0) {
            return Err(Unknown::Offset {
                offset: grid.offset(),
                unit,
            });
        }
        Ok(())
    }

    pub(crate) fn outside(&self, grid: &Grid) -> Unknown {
        Unknown::Modulus {
            granularity: grid.granularity(),
            modulus: Bytes(self.modulus_bytes()),
        }
    }

    /// How the I/O asked for lie on a grid.
    ///
    /// # Errors
    /// When the table cannot tell, and when there are none.
    pub fn fit(&self, grid: &Grid, select: Select) -> Result<FitTally, Unknown> {
        self.can_answer(grid)?;
        let unit = self.unit_bytes();
        let mut tally = FitTally::default();
        for (key, row) in self.iter().filter(|(key, _)| select.takes(*key, unit)) {
            tally.add(key, &row, unit, grid);
        }
        if tally.ios == 0 {
            Err(Unknown::NoIo)
        } else {
            Ok(tally)
        }
    }

    /// How many I/O are asked for at each start modulo a granularity, in bytes.
    ///
    /// # Errors
    /// When the granularity does not divide M.
    pub fn starts_within(
        &self,
        granularity: Bytes,
        select: Select,
    ) -> Result<std::collections::BTreeMap<u64, u64>, Unknown> {
        let modulus = Bytes(self.modulus_bytes());
        if granularity.0 == 0 || !modulus.0.is_multiple_of(granularity.0) {
            return Err(Unknown::Modulus {
                granularity,
                modulus,
            });
        }
        let mut starts = std::collections::BTreeMap::new();
        for (key, row) in self
            .iter()
            .filter(|(key, _)| select.takes(*key, self.unit_bytes()))
        {
            *starts
                .entry(key.residue() * self.unit_bytes() % granularity.0)
                .or_insert(0) += row.ios;
        }
        Ok(starts)
    }

    /// How many I/O are asked for, of which lengths: (length in bytes, whether rounded up, I/O), most first.
    #[must_use]
    pub fn lengths(&self, select: Select) -> Vec<(u64, bool, u64)> {
        let mut lengths = std::collections::BTreeMap::new();
        for (key, row) in self
            .iter()
            .filter(|(key, _)| select.takes(*key, self.unit_bytes()))
        {
            let length = key.length().saturating_mul(self.unit_bytes());
            let ios: &mut u64 = lengths.entry((length, key.is_rounded())).or_insert(0);
            *ios = ios.saturating_add(row.ios);
        }
        let mut lengths: Vec<_> = lengths
            .into_iter()
            .map(|((length, rounded), ios)| (length, rounded, ios))
            .collect();
        lengths.sort_by_key(|&(_, _, ios)| std::cmp::Reverse(ios));
        lengths
    }

    /// How many I/O are asked for.
    #[must_use]
    pub fn count(&self, select: Select) -> u64 {
        let rows = self
            .iter()
            .filter(|(key, _)| select.takes(*key, self.unit_bytes()));
        rows.fold(0, |ios, (_, row)| ios.saturating_add(row.ios))
    }

    /// How many reads and writes are at least so many bytes long, and how many of them are stream heads: the same as
    /// [`Table::count`] with each of these as the least length, at one go.
    #[must_use]
    pub fn count_by_length<const LENGTHS: usize>(
        &self,
        len_bytes_min: [u64; LENGTHS],
    ) -> [(u64, u64); LENGTHS] {
        let unit = self.unit_bytes();
        let mut counts = [(0u64, 0u64); LENGTHS];
        for (key, row) in self
            .iter()
            .filter(|(key, _)| Select::DATA.takes(*key, unit))
        {
            let len_bytes = key.length_min().saturating_mul(unit);
            let head_ios = if key.continues() { 0 } else { row.ios };
            for ((ios, heads), len_bytes_min) in counts.iter_mut().zip(len_bytes_min) {
                if len_bytes >= len_bytes_min {
                    *ios = ios.saturating_add(row.ios);
                    *heads = heads.saturating_add(head_ios);
                }
            }
        }
        counts
    }

    /// I/O by power of two of their length; index as [`power_index`].
    #[must_use]
    pub fn sizes(&self, select: Select) -> Counts {
        let mut sizes = Counts::default();
        for (length, _, ios) in self.lengths(select) {
            sizes.add(power_index(length), ios);
        }
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_length_are_counts() {
        let mut table = Table::default();
        for io in 0..5_000u64 {
            let op = [Op::Read, Op::Write, Op::Discard][io as usize % 3];
            table.add(
                op,
                io * io % 977 * 512,
                io * 7 % 40 * 512,
                io % 5 == 0,
                None,
            );
        }
        let grid = Grid::new(Bytes(4_096), Bytes(512), GridKind::Unit).expect("a grid");
        for rounded in [false, true] {
            if rounded {
                table.merge(&crowded());
                assert!(table.are_lengths_rounded());
            }
            let least = [0, 1, 3_000, 4_096, 8 << 10, u64::MAX];
            let counts = table.count_by_length(least);
            for (len_bytes_min, counts) in least.into_iter().zip(counts) {
                let count = |select| {
                    table.count(Select {
                        len_bytes_min,
                        ..select
                    })
                };
                assert_eq!(
                    counts,
                    (count(Select::DATA), count(Select::HEADS)),
                    "{len_bytes_min}"
                );
            }
            let mut both = table.fit(&grid, Select::op(Op::Read)).expect("reads");
            both.merge(&table.fit(&grid, Select::op(Op::Write)).expect("writes"));
            assert_eq!(Ok(both), table.fit(&grid, Select::DATA));
        }
    }

    /// A table with more rows than fit.
    fn crowded() -> Table {
        let mut table = Table::default();
        for io in 0..40_000u64 {
            table.add(
                Op::Read,
                io % 2_048 * 512,
                (1 + io / 2_048) * 512,
                false,
                None,
            );
        }
        table
    }

    #[test]
    fn starts_fold_to_any_granularity_that_divides_the_modulus() {
        let mut table = Table::new(16 << 10).expect("a modulus");
        for (start, continues) in [(512, false), (4_608, true), (8_192, false), (16_896, false)] {
            table.add(Op::Read, start, 4_096, continues, None);
        }
        let starts = |granularity, select| {
            let starts = table
                .starts_within(Bytes(granularity), select)
                .expect("divides");
            starts.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(starts(4_096, Select::DATA), [(0, 1), (512, 3)]);
        assert_eq!(starts(4_096, Select::HEADS), [(0, 1), (512, 2)]);
        assert_eq!(
            starts(16 << 10, Select::DATA),
            [(512, 2), (4_608, 1), (8_192, 1)]
        );
        for granularity in [0, 3 << 10, 32 << 10] {
            assert!(
                table
                    .starts_within(Bytes(granularity), Select::DATA)
                    .is_err(),
                "{granularity}"
            );
        }
    }
}
