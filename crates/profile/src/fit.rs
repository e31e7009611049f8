//! The fit of a residue table's I/O on a grid: exact sums, or the reason why the table does not have it.

use serde::{Deserialize, Serialize};

use plumb_geometry::{
    Bounds, Bytes, Extremes, Fit, Grid, GridKind, Lengths, SmallSort, group_digits,
};
use plumb_trace::{IOS_MAX, Op};

use crate::histogram::{Counts, power_index};
use crate::table::{Key, Table};

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
    /// The offset is between two units.
    #[error("starts were kept in units of {unit}, and {offset} is no multiple of it")]
    Offset {
        /// Offset asked for.
        offset: Bytes,
        /// Unit of the table.
        unit: Bytes,
    },
    /// Lengths were dropped, so that a figure is a range on both sides of the threshold.
    #[error(
        "the length of {} of {} I/O ({:.1} %) is known only as a range between two powers of two: there were too many different ones",
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
    #[error("the source has no starts of I/O")]
    NoStarts,
}

/// The selected rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Select {
    /// Only this operation; `None` is reads and writes.
    pub op: Option<Op>,
    /// Only stream heads (`false`) or only continuations (`true`).
    pub continues: Option<bool>,
    /// Only lengths of at least this number of bytes. Of rounded lengths only those that surely are as long count,
    /// which are all of them if this is a power of two or one more.
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

/// Exact sums over I/O laid on one grid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FitSums {
    ios: u64,
    misaligned: u64,
    head_bytes: u128,
    heads: Counts,
    odd_length: u64,
    partial: u64,
    split: u64,
    crossing: u64,
    cells: u128,
    cells_min: u128,
    partial_cells: u128,
    bytes: u128,
    touched_bytes: u128,
    read_first_bytes: u128,
}

impl FitSums {
    /// Adds I/O of one operation and length with the same fit.
    pub(crate) fn add(&mut self, op: Op, len: Bytes, fit: &Fit, ios: u64, grid: &Grid) {
        let if_so = |so: bool| if so { ios } else { 0 };
        add(&mut self.ios, ios);
        add(&mut self.misaligned, if_so(fit.misaligned()));
        add(&mut self.odd_length, if_so(Fit::odd_length(len, grid)));
        add(&mut self.partial, if_so(fit.partial_cells > 0));
        add(&mut self.split, if_so(fit.split()));
        add(&mut self.crossing, if_so(fit.crosses()));
        self.heads.add(head_index(fit.head.0), ios);
        add_times(&mut self.head_bytes, fit.head.0.into(), ios);
        add_times(&mut self.cells, fit.cells.into(), ios);
        add_times(&mut self.cells_min, fit.min_cells.into(), ios);
        add_times(&mut self.partial_cells, fit.partial_cells.into(), ios);
        add_times(&mut self.bytes, len.0.into(), ios);
        if grid.kind() == GridKind::Unit {
            add_times(&mut self.touched_bytes, fit.touched_bytes(grid), ios);
            if op == Op::Write {
                add_times(&mut self.read_first_bytes, fit.read_first_bytes(grid), ios);
            }
        }
    }

    /// Adds the sums over other I/O laid on the same grid.
    pub(crate) fn merge(&mut self, other: &FitSums) {
        add(&mut self.ios, other.ios);
        add(&mut self.misaligned, other.misaligned);
        add(&mut self.odd_length, other.odd_length);
        add(&mut self.partial, other.partial);
        add(&mut self.split, other.split);
        add(&mut self.crossing, other.crossing);
        self.heads.merge(&other.heads);
        add_times(&mut self.head_bytes, other.head_bytes, 1);
        add_times(&mut self.cells, other.cells, 1);
        add_times(&mut self.cells_min, other.cells_min, 1);
        add_times(&mut self.partial_cells, other.partial_cells, 1);
        add_times(&mut self.bytes, other.bytes, 1);
        add_times(&mut self.touched_bytes, other.touched_bytes, 1);
        add_times(&mut self.read_first_bytes, other.read_first_bytes, 1);
    }

    /// Whether sums from elsewhere can be those of I/O.
    pub(crate) fn is_plausible(&self) -> bool {
        let parts = [
            self.misaligned,
            self.odd_length,
            self.partial,
            self.split,
            self.crossing,
        ];
        self.ios <= IOS_MAX
            && parts.iter().all(|part| *part <= self.ios)
            && self.heads.can_be_ios(65)
            && self.split <= self.crossing
            && self.cells_min <= self.cells
            && self.bytes <= u128::from(u64::MAX) * u128::from(self.ios)
    }
}

/// Sums over the I/O of a table on a grid. Each is exact if the table keeps the necessary detail, and else a range that
/// contains the truth.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FitTally {
    /// I/O asked for.
    pub ios: u64,
    /// Of these, I/O whose length the table keeps only as a range between two powers of two.
    pub rounded: u64,
    /// I/O that do not start on the grid.
    pub misaligned: Bounds<u64>,
    /// Sum of the distances from the boundary before the start, bytes.
    pub head_bytes_sum: Bounds<u128>,
    /// Heads by power of two of their 512-byte sectors, as `quantize` would print: index 0 is on the grid,
    /// index n+1 holds 2^n to 2^(n+1)−1 sectors. Empty where the table does not keep starts on this grid.
    #[serde(skip)]
    pub heads: Counts,
    /// I/O whose length is no multiple of the granularity.
    pub odd_length: Bounds<u64>,
    /// I/O that cover some cell only in part: they start or end off the grid.
    pub partial: Bounds<u64>,
    /// I/O that touch more cells than their length needs.
    pub split: Bounds<u64>,
    /// I/O that touch more than one cell, for any reason.
    pub crossing: Bounds<u64>,
    /// Cells touched.
    pub cells: Bounds<u128>,
    /// Cells that the lengths need.
    pub cells_min: Bounds<u128>,
    /// Cells covered only in part.
    pub partial_cells: Bounds<u128>,
    /// Bytes asked for.
    pub bytes: Bounds<u128>,
    /// Bytes of all cells touched; counts for unit grids only.
    pub touched_bytes: Bounds<u128>,
    /// Bytes of cells that a write covers only in part and has to read first; unit grids only.
    pub read_first_bytes: Bounds<u128>,
    /// Bytes touched or read first, less the bytes asked for; unit grids only.
    pub beyond_bytes: Bounds<u128>,
}

impl FitTally {
    /// Why a count is no single number: too many lengths were dropped.
    #[must_use]
    pub fn lengths_dropped(&self) -> Unknown {
        Unknown::Lengths {
            rounded: self.rounded,
            ios: self.ios,
        }
    }

    /// Cells touched per cell that the lengths need; `None` without cells.
    #[must_use]
    pub fn cells_ratio(&self) -> Option<Bounds<f64>> {
        // An I/O touches at most one cell more than it needs, so its excess is the number of splits. That keeps the
        // range narrow: cells touched and needed vary together.
        let ratio = |more: u64, least: u128| 1.0 + more as f64 / least as f64;
        (self.cells_min.low > 0).then(|| Bounds {
            low: ratio(self.split.low, self.cells_min.high),
            high: ratio(self.split.high, self.cells_min.low),
        })
    }

    /// Bytes moved per byte asked for: an upper bound, since neighbours in a stream, caches and merges save some.
    /// `None` on grids that are no units, and without bytes.
    #[must_use]
    pub fn amplification(&self, grid: &Grid) -> Option<Bounds<f64>> {
        if grid.kind() != GridKind::Unit || self.bytes.low == 0 {
            return None;
        }
        let ratio = |beyond: u128, bytes: u128| 1.0 + beyond as f64 / bytes as f64;
        Some(Bounds {
            low: ratio(self.beyond_bytes.low, self.bytes.high),
            high: ratio(self.beyond_bytes.high, self.bytes.low),
        })
    }

    /// Adds I/O with a partly known start or length.
    fn add_extremes(
        &mut self,
        key: Key,
        ios: u64,
        known: &Extremes,
        len: Bounds<u64>,
        grid: &Grid,
    ) {
        add(&mut self.ios, ios);
        add(&mut self.rounded, if key.is_rounded() { ios } else { 0 });
        self.misaligned.add(known.misaligned.count(ios));
        self.odd_length.add(known.odd_length.count(ios));
        self.partial.add(known.partial.count(ios));
        self.split.add(known.split.count(ios));
        self.crossing.add(known.crosses.count(ios));
        if let Some(head) = known.head.known() {
            self.heads.add(head_index(head), ios);
        }
        self.head_bytes_sum
            .add(known.head.map(u128::from).times(ios));
        self.cells.add(known.cells.times(ios));
        self.cells_min.add(known.min_cells.times(ios));
        self.partial_cells.add(known.partial_cells.times(ios));
        self.bytes.add(len.map(u128::from).times(ios));
        if grid.kind() == GridKind::Unit {
            self.touched_bytes.add(known.touched_bytes.times(ios));
            self.beyond_bytes.add(known.beyond_bytes.times(ios));
            if key.op() == Op::Write {
                let granularity = u128::from(grid.granularity().0);
                let read_first = known
                    .partial_cells
                    .map(|cells| cells.saturating_mul(granularity))
                    .times(ios);
                self.read_first_bytes.add(read_first);
                self.beyond_bytes.add(read_first);
            }
        }
    }

    /// Adds the sums over other I/O laid on the same grid.
    pub fn merge(&mut self, other: &FitTally) {
        add(&mut self.ios, other.ios);
        add(&mut self.rounded, other.rounded);
        self.misaligned.add(other.misaligned);
        self.head_bytes_sum.add(other.head_bytes_sum);
        self.heads.merge(&other.heads);
        self.odd_length.add(other.odd_length);
        self.partial.add(other.partial);
        self.split.add(other.split);
        self.crossing.add(other.crossing);
        self.cells.add(other.cells);
        self.cells_min.add(other.cells_min);
        self.partial_cells.add(other.partial_cells);
        self.bytes.add(other.bytes);
        self.touched_bytes.add(other.touched_bytes);
        self.read_first_bytes.add(other.read_first_bytes);
        self.beyond_bytes.add(other.beyond_bytes);
    }

    fn from_sums(sums: FitSums, grid: &Grid) -> FitTally {
        let moved = sums.touched_bytes.saturating_add(sums.read_first_bytes);
        let is_unit = grid.kind() == GridKind::Unit;
        FitTally {
            ios: sums.ios,
            rounded: 0,
            misaligned: Bounds::exact(sums.misaligned),
            head_bytes_sum: Bounds::exact(sums.head_bytes),
            heads: sums.heads,
            odd_length: Bounds::exact(sums.odd_length),
            partial: Bounds::exact(sums.partial),
            split: Bounds::exact(sums.split),
            crossing: Bounds::exact(sums.crossing),
            cells: Bounds::exact(sums.cells),
            cells_min: Bounds::exact(sums.cells_min),
            partial_cells: Bounds::exact(sums.partial_cells),
            bytes: Bounds::exact(sums.bytes),
            touched_bytes: Bounds::exact(sums.touched_bytes),
            read_first_bytes: Bounds::exact(sums.read_first_bytes),
            beyond_bytes: Bounds::exact(if is_unit {
                moved.saturating_sub(sums.bytes)
            } else {
                0
            }),
        }
    }
}

/// Sums saturate instead of wrapping: counts of an untrusted source may be that large.
fn add(sum: &mut u64, ios: u64) {
    *sum = sum.saturating_add(ios);
}

fn add_times(sum: &mut u128, each: u128, ios: u64) {
    *sum = sum.saturating_add(each.saturating_mul(ios.into()));
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
    /// Whether the table has the fit of its I/O on a grid; if M had to be lowered below the granularity, by ranges.
    ///
    /// # Errors
    /// When the granularity does not divide the M that the table began with or the offset is no whole number of units.
    pub fn can_answer(&self, grid: &Grid) -> Result<(), Unknown> {
        if !grid.divides(self.base_modulus_bytes()) {
            return Err(self.too_coarse(grid));
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

    /// Why a grid has no answer, or only a range: its granularity does not divide M, as it is or as it was lowered.
    #[must_use]
    pub fn too_coarse(&self, grid: &Grid) -> Unknown {
        Unknown::Modulus {
            granularity: grid.granularity(),
            modulus: Bytes(self.modulus_bytes()),
        }
    }

    /// The fit of the selected I/O on a grid.
    ///
    /// # Errors
    /// If the table does not have it, and if there are no I/O.
    pub fn fit(&self, grid: &Grid, select: Select) -> Result<FitTally, Unknown> {
        self.can_answer(grid)?;
        let tally = match self.counted(grid, select) {
            Some(sums) => FitTally::from_sums(sums, grid),
            None => self.sum_rows(grid, select),
        };
        if tally.ios == 0 {
            Err(Unknown::NoIo)
        } else {
            Ok(tally)
        }
    }

    fn sum_rows(&self, grid: &Grid, select: Select) -> FitTally {
        let unit = self.unit_bytes();
        let are_starts_known = grid.divides(self.modulus_bytes());
        let (mut sums, mut in_part) = (FitSums::default(), FitTally::default());
        for (key, row) in self.iter().filter(|(key, _)| select.takes(*key, unit)) {
            let (start, len) = (key.residue() * unit, self.len_bytes(key));
            match len.known() {
                Some(len) if are_starts_known => {
                    if let Some(fit) = Fit::from_residue(start, Bytes(len), grid) {
                        sums.add(key.op(), Bytes(len), &fit, row.ios, grid);
                    }
                }
                _ => {
                    let step = if len.known().is_some() { len.low } else { unit };
                    let lengths = Lengths::new(Bytes(len.low), Bytes(len.high), Bytes(step));
                    if let Some(lengths) = lengths {
                        let known =
                            Extremes::from_residue(start, self.modulus_bytes(), lengths, grid);
                        in_part.add_extremes(key, row.ios, &known, len, grid);
                    }
                }
            }
        }
        let mut tally = FitTally::from_sums(sums, grid);
        tally.merge(&in_part);
        tally
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

    /// The number of selected I/O by length: (length in bytes, whether rounded up, I/O), most first.
    #[must_use]
    pub fn lengths(&self, select: Select) -> Vec<(u64, bool, u64)> {
        let mut lengths = std::collections::BTreeMap::new();
        for (key, row) in self
            .iter()
            .filter(|(key, row)| row.ios > 0 && select.takes(*key, self.unit_bytes()))
        {
            let length = key.length().saturating_mul(self.unit_bytes());
            let ios: &mut u64 = lengths.entry((length, key.is_rounded())).or_insert(0);
            *ios = ios.saturating_add(row.ios);
        }
        let mut lengths: Vec<_> = lengths
            .into_iter()
            .map(|((length, rounded), ios)| (length, rounded, ios))
            .collect();
        lengths.small_sort_by_key(|&(_, _, ios)| std::cmp::Reverse(ios));
        lengths
    }

    /// The commonest length of the selected I/O in bytes, and how many have it; `None` if more I/O have lengths that a full
    /// table keeps only as a range.
    #[must_use]
    pub fn commonest_length(&self, select: Select) -> Option<(u64, u64)> {
        let (length, is_rounded, ios) = *self.lengths(select).first()?;
        (!is_rounded).then_some((length, ios))
    }

    /// How many I/O are asked for.
    #[must_use]
    pub fn count(&self, select: Select) -> u64 {
        let rows = self
            .iter()
            .filter(|(key, _)| select.takes(*key, self.unit_bytes()));
        rows.fold(0, |ios, (_, row)| ios.saturating_add(row.ios))
    }

    /// The numbers of reads and writes of at least these lengths, and of stream heads among them: the same as
    /// [`Table::count`] with each of these as the least length, in one pass.
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
        let mut table = Table::default().with_rows_max(1 << 14);
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
