//! The residue table: I/O counted by (operation, start modulo M, length, continues a stream).
//!
//! It is enough for the fit on every grid whose granularity divides M, at every offset, long after the I/O. It is
//! bounded: if it needs more different rows than its cap, the whole table takes the next step of one fixed chain. First
//! lengths that are no power of two are rounded up to one and marked, then M is halved as often as necessary. A step
//! depends only on the number of rows, so tables of one modulus that are merged in any order and grouping end at the
//! same step with the same rows.
//!
//! Tables of different moduli meet at the greatest common divisor. If such tables also overflow, the order of merging
//! can decide about the degree of their reduction (never about their content at that modulus).

use serde::{Deserialize, Serialize};

use plumb_geometry::{Bounds, Grid, gcd};
use plumb_trace::{Op, UNKNOWN_NS};

use crate::columns::{BLOCK_EVENTS, Ios};
use crate::fit::{FitSums, Select};

mod cells;
mod columnar;
mod counters;
mod key;
mod step;
mod written;

use cells::Cells;
pub use columnar::ColumnsError;
use counters::Counters;
pub use counters::GRIDS_MAX;
pub use key::Key;
use step::CountingStep;

/// Cap on the rows of a table unless its maker sets another one. A database gives some hundreds, a busy mixed guest up
/// to 14,000 in two hours, a desktop with many odd lengths 100,000. A row takes 64 bytes, its place in the index 6 to 13.
pub const ROWS_MAX: usize = 1 << 18;

/// Smallest cap on the rows of a table: with M lowered to one unit there still are rows for each operation, stream bit
/// and power of two of a length, 6 · 2 · 65 of them.
pub const ROWS_MAX_LEAST: usize = 1 << 10;

/// Largest cap on the rows of a table.
pub const ROWS_MAX_LARGEST: usize = 1 << 20;

/// Cap of the tables in saved profiles of version 1, which do not hold it.
pub(crate) const ROWS_MAX_OF_VERSION_1: usize = 1 << 14;

/// M unless a grid asks for another: divisible by every usual page, block, chunk and segment.
pub const MODULUS_BYTES: u64 = 1 << 20;

/// Largest M, so that a residue in bytes fits its field of the key.
pub const MODULUS_BYTES_MAX: u64 = 1 << 24;

/// Regions of 2^58 bytes are 64 for all addresses that there are.
const REGION_SHIFT_MAX: u32 = 58;

/// Buffers for finding the rows of a block, kept for reuse.
pub(crate) struct Room {
    keys: [Key; BLOCK_EVENTS],
    numbers: [u32; BLOCK_EVENTS],
    /// Rows of the block whose likely row of the table is not theirs.
    others: [u16; BLOCK_EVENTS],
}

impl Default for Room {
    fn default() -> Room {
        Room {
            keys: [Key(0); BLOCK_EVENTS],
            numbers: [0; BLOCK_EVENTS],
            others: [0; BLOCK_EVENTS],
        }
    }
}

/// The sums of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// I/O.
    pub ios: u64,
    /// Known latencies. Those of I/O that were counted earlier are among them, so there may be more than `ios`.
    pub timed: u64,
    /// Their sum, ns.
    pub ns_sum: u128,
    /// Sum of their squares, ns².
    pub ns_squared_sum: u128,
    /// The touched regions of the device; see [`Table::region_shift`].
    pub regions: u64,
}

/// I/O counted by residue; see the module.
#[derive(Clone, Debug)]
pub struct Table {
    unit: u64,
    base_modulus: u64,
    modulus: u64,
    lengths_rounded: bool,
    mixed_moduli: bool,
    spread_unknown: bool,
    region_shift: u32,
    rows_max: u32,
    cells: Cells,
    counters: Counters,
}

/// The requirements of a modulus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModulusError {
    /// Not a whole number of sectors, or nothing.
    #[error("modulus of a residue table: found {0} bytes, expected a multiple of 512")]
    NotSectors(u64),
    /// Too large for the table.
    #[error("modulus of a residue table: found {0} bytes, expected at most {MODULUS_BYTES_MAX}")]
    TooLarge(u64),
}

impl Default for Table {
    fn default() -> Table {
        Table::build(MODULUS_BYTES)
    }
}

impl Table {
    /// An empty table with M in bytes.
    ///
    /// # Errors
    /// When M is no multiple of 512 between 512 and [`MODULUS_BYTES_MAX`].
    pub fn new(modulus_bytes: u64) -> Result<Table, ModulusError> {
        if modulus_bytes == 0 || !modulus_bytes.is_multiple_of(512) {
            return Err(ModulusError::NotSectors(modulus_bytes));
        }
        if modulus_bytes > MODULUS_BYTES_MAX {
            return Err(ModulusError::TooLarge(modulus_bytes));
        }
        Ok(Table::build(modulus_bytes))
    }

    fn build(modulus_bytes: u64) -> Table {
        let modulus = modulus_bytes / 512;
        Table {
            unit: 512,
            base_modulus: modulus,
            modulus,
            lengths_rounded: false,
            mixed_moduli: false,
            spread_unknown: false,
            region_shift: 20,
            rows_max: ROWS_MAX as u32,
            cells: Cells::default(),
            counters: Counters::default(),
        }
    }

    /// The table with another cap on its rows, from [`ROWS_MAX_LEAST`] to [`ROWS_MAX_LARGEST`]; one with more rows drops detail.
    #[must_use]
    pub fn with_rows_max(mut self, rows: usize) -> Table {
        self.rows_max = rows.clamp(ROWS_MAX_LEAST, ROWS_MAX_LARGEST) as u32;
        self.lower_until_it_fits();
        self
    }

    /// The empty table with grids on which sums stay exact when the table drops lengths. Grids whose granularity
    /// does not divide M are left out, and those beyond [`GRIDS_MAX`].
    #[must_use]
    pub fn with_grids(mut self, grids: &[Grid]) -> Table {
        debug_assert!(self.is_empty(), "grids are fixed before the first I/O");
        self.counters = Counters::new(grids, self.base_modulus * self.unit);
        self
    }

    /// Cap on the rows.
    #[must_use]
    pub fn rows_max(&self) -> usize {
        self.rows_max as usize
    }

    /// Unit in which residues and lengths are kept: 512, or 1 once something was no multiple of it.
    #[must_use]
    pub fn unit_bytes(&self) -> u64 {
        self.unit
    }

    /// M in bytes, as it is now.
    #[must_use]
    pub fn modulus_bytes(&self) -> u64 {
        self.modulus * self.unit
    }

    /// M in bytes, as the table began.
    #[must_use]
    pub fn base_modulus_bytes(&self) -> u64 {
        self.base_modulus * self.unit
    }

    /// Length of the I/O of a row in bytes: one, or a range where it was rounded.
    #[must_use]
    pub fn len_bytes(&self, key: Key) -> Bounds<u64> {
        Bounds {
            low: key.length_min().saturating_mul(self.unit),
            high: key.length_max(self.unit_shift()).saturating_mul(self.unit),
        }
    }

    /// The exact sums that the table counted on a grid, if it did.
    pub(crate) fn counted(&self, grid: &Grid, select: Select) -> Option<FitSums> {
        self.counters.answer(grid, select)
    }

    /// Whether lengths that are no power of two were rounded up.
    #[must_use]
    pub fn are_lengths_rounded(&self) -> bool {
        self.lengths_rounded
    }

    /// Whether M is smaller than the table began with, for want of rows.
    #[must_use]
    pub fn is_modulus_lowered(&self) -> bool {
        self.modulus < self.base_modulus
    }

    /// Whether tables of different M were merged into this one.
    #[must_use]
    pub fn has_mixed_moduli(&self) -> bool {
        self.mixed_moduli
    }

    /// Whether some latencies came as sums without their squares, so that nothing tells how far they spread.
    #[must_use]
    pub fn is_spread_unknown(&self) -> bool {
        self.spread_unknown
    }

    /// Regions are 2^shift bytes; bit r of a row stands for region r. There are at most 64, so the shift
    /// grows with the device, and of a device of known size 33 to 64 are used.
    #[must_use]
    pub fn region_shift(&self) -> u32 {
        self.region_shift
    }

    /// How many rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.len() == 0
    }

    /// All rows, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (Key, Row)> + '_ {
        self.cells.iter()
    }

    /// Counts one I/O.
    pub fn add(
        &mut self,
        op: Op,
        start_bytes: u64,
        len_bytes: u64,
        continues: bool,
        device_ns: Option<i64>,
    ) {
        self.make_ready(start_bytes | len_bytes, start_bytes);
        if !Key::keeps(len_bytes) {
            self.counters.give_up();
        } else if self.counters.are_counting() {
            self.counters
                .count(op, continues, start_bytes, len_bytes, 1);
        }
        let key = self.step().key(op, continues, start_bytes, len_bytes);
        let region = 1 << (start_bytes >> self.region_shift & 63);
        self.cells
            .at(key)
            .count(region, device_ns.map(|ns| ns.max(0).unsigned_abs()));
        self.lower_until_it_fits();
    }

    /// Counts the I/O of a block one after the other.
    #[inline(always)]
    pub(crate) fn add_block(
        &mut self,
        ios: &Ios<'_>,
        continues: &[bool; BLOCK_EVENTS],
        room: &mut Room,
    ) {
        let bits = |column: &[u64]| column.iter().fold(0, |bits, number| bits | number);
        let (starts, lengths) = (bits(ios.start_bytes), bits(ios.len_bytes));
        // Larger regions and smaller units give the same whether they come before an I/O or with it. All bits of
        // some numbers together have the same highest one as the largest.
        self.make_ready(starts | lengths, starts);
        if self.counters.are_counting() || !Key::keeps(lengths) {
            self.count_on_grids(ios, continues);
        }
        self.step().keys(ios, lengths, continues, &mut room.keys);
        self.find_rows(ios.len(), room);
        self.count_rows(ios, &room.numbers);
        // Some rows too many do no harm before: the step depends on nothing but which rows there are.
        self.lower_until_it_fits();
    }

    #[cold]
    fn count_on_grids(&mut self, ios: &Ios<'_>, continues: &[bool; BLOCK_EVENTS]) {
        let starts = ios.start_bytes.iter().zip(ios.len_bytes);
        for ((&op, (&start, &len)), &continues) in ios.op.iter().zip(starts).zip(continues) {
            if !Key::keeps(len) {
                self.counters.give_up();
            }
            self.counters.count(op, continues, start, len, 1);
        }
    }

    /// Finds the rows of a block of I/O by their keys. Separate from counting them, and in three passes; only the last
    /// has to wait for one row before the next.
    #[inline(always)]
    fn find_rows(&mut self, rows: usize, room: &mut Room) {
        let Room {
            keys,
            numbers,
            others,
        } = room;
        for (&key, number) in keys.iter().zip(numbers.iter_mut()).take(rows) {
            *number = self.cells.likely(key);
        }
        let mut count = 0;
        for (row, (&key, &number)) in keys.iter().zip(numbers.iter()).enumerate().take(rows) {
            others[count % BLOCK_EVENTS] = row as u16;
            count += usize::from(!self.cells.has(number, key));
        }
        for &row in &others[..count] {
            let row = usize::from(row);
            numbers[row] = self.cells.number(keys[row]);
        }
    }

    #[inline(always)]
    fn count_rows(&mut self, ios: &Ios<'_>, numbers: &[u32; BLOCK_EVENTS]) {
        let region_shift = self.region_shift;
        for ((row, &start), &number) in ios.start_bytes.iter().enumerate().zip(numbers) {
            let ns = ios.device_ns(row);
            let known = (ns != UNKNOWN_NS).then_some(ns.max(0).unsigned_abs());
            self.cells
                .numbered(number)
                .count(1 << (start >> region_shift & 63), known);
        }
    }

    /// Goes over to bytes and to larger regions where I/O of these starts and lengths need them.
    fn make_ready(&mut self, bits: u64, start_bytes_max: u64) {
        if self.unit != 1 && bits & 511 != 0 {
            self.count_in_bytes();
        }
        if start_bytes_max >> self.region_shift >= 64 {
            self.widen_regions(start_bytes_max);
        }
    }

    #[inline(always)]
    fn step(&self) -> CountingStep {
        CountingStep {
            unit_shift: self.unit_shift(),
            modulus: self.modulus,
            mask: if self.modulus.is_power_of_two() {
                self.modulus - 1
            } else {
                0
            },
            lengths_rounded: self.lengths_rounded,
        }
    }

    /// Counts a row that somebody else has already summed up.
    pub fn add_row(
        &mut self,
        op: Op,
        residue_bytes: u64,
        len_bytes: u64,
        continues: bool,
        row: &Row,
    ) {
        if self.unit != 1 && (residue_bytes | len_bytes) & 511 != 0 {
            self.count_in_bytes();
        }
        if !Key::keeps(len_bytes) {
            self.counters.give_up();
        } else if self.counters.are_counting() {
            self.counters
                .count(op, continues, residue_bytes, len_bytes, row.ios);
        }
        let key = self.step().key(op, continues, residue_bytes, len_bytes);
        self.spread_unknown |= row.ns_sum > 0 && row.ns_squared_sum == 0;
        self.cells.at(key).absorb(row);
        self.lower_until_it_fits();
    }

    /// The same I/O with all starts moved, as those of a partition that begins elsewhere; `None` where lengths were
    /// rounded, which would make them exact.
    #[must_use]
    pub fn moved(&self, by_bytes: i128) -> Option<Table> {
        let modulus = i128::from(self.modulus_bytes());
        let mut moved = Table::new(self.modulus_bytes()).ok()?;
        for (key, row) in self.iter() {
            if key.is_rounded() {
                return None;
            }
            let residue = i128::from(key.residue() * self.unit_bytes()) + by_bytes;
            let residue = residue.rem_euclid(modulus) as u64;
            let len = key.length() * self.unit_bytes();
            moved.add_row(key.op(), residue, len, key.continues(), &row);
        }
        Some(moved)
    }

    /// Rounds all lengths up, as a table that is full does, for a source that rounded some of them.
    pub fn round_lengths(&mut self) {
        self.counters.give_up();
        self.take_step(self.modulus, true);
    }

    /// Adds another table to this one.
    pub fn merge(&mut self, other: &Table) {
        let mut other = std::borrow::Cow::Borrowed(other);
        if self.unit != other.unit {
            self.count_in_bytes();
            other.to_mut().count_in_bytes();
        }
        self.rows_max = self.rows_max.min(other.rows_max);
        self.counters.intersect(&other.counters);
        self.mixed_moduli |= other.mixed_moduli;
        self.spread_unknown |= other.spread_unknown;
        if self.base_modulus != other.base_modulus {
            self.mixed_moduli = true;
            self.base_modulus = gcd(self.base_modulus, other.base_modulus);
        }
        let modulus = gcd(self.modulus, other.modulus);
        let rounded = self.lengths_rounded || other.lengths_rounded;
        self.take_step(modulus, rounded);
        self.counters
            .absorb(&other.counters, &other.cells, other.unit);
        let shift = self.region_shift.max(other.region_shift);
        self.set_region_shift(shift);
        for (key, mut row) in other.iter() {
            row.regions = fold_regions(row.regions, shift - other.region_shift);
            let key = reduce(key, self.modulus, self.lengths_rounded);
            self.cells.at(key).absorb(&row);
        }
        self.lower_until_it_fits();
    }

    #[inline]
    fn unit_shift(&self) -> u32 {
        if self.unit == 1 { 0 } else { 9 }
    }

    fn lower_until_it_fits(&mut self) {
        while self.cells.len() > self.rows_max() {
            self.lower();
        }
    }

    /// Takes the next step of the chain.
    fn lower(&mut self) {
        if !self.lengths_rounded {
            self.take_step(self.modulus, true);
            return;
        }
        let half = if self.modulus.is_multiple_of(2) {
            self.modulus / 2
        } else {
            1
        };
        self.take_step(half, true);
    }

    fn take_step(&mut self, modulus: u64, lengths_rounded: bool) {
        if modulus == self.modulus && lengths_rounded == self.lengths_rounded {
            return;
        }
        if lengths_rounded && !self.lengths_rounded {
            self.counters.begin(&self.cells, self.unit);
        }
        self.modulus = modulus;
        self.lengths_rounded = lengths_rounded;
        self.rebuild(|key| reduce(key, modulus, lengths_rounded));
    }

    /// Changes to a unit of one byte. Counts in sectors stay exact.
    fn count_in_bytes(&mut self) {
        if self.unit == 1 {
            return;
        }
        let shift = self.unit_shift();
        self.unit = 1;
        self.modulus <<= shift;
        self.base_modulus <<= shift;
        self.rebuild(|key| key.in_bytes(shift));
    }

    fn rebuild(&mut self, change: impl Fn(Key) -> Key) {
        let before = std::mem::take(&mut self.cells);
        for (key, row) in before.iter() {
            self.cells.at(change(key)).absorb(&row);
        }
    }

    fn widen_regions(&mut self, start_bytes: u64) {
        let bits = 64 - start_bytes.leading_zeros();
        self.set_region_shift(bits.saturating_sub(6));
    }

    /// Makes regions at least 2^shift bytes large.
    pub fn set_region_shift(&mut self, shift: u32) {
        let shift = shift.min(REGION_SHIFT_MAX);
        if shift <= self.region_shift {
            return;
        }
        let by = shift - self.region_shift;
        self.region_shift = shift;
        self.cells.fold_regions(by);
    }
}

/// A key as a step of the chain has it.
fn reduce(key: Key, modulus: u64, lengths_rounded: bool) -> Key {
    let key = if lengths_rounded {
        key.with_rounded_length()
    } else {
        key
    };
    key.with_modulus(modulus)
}

/// A mask of regions for regions 2^by times as large.
fn fold_regions(mut regions: u64, by: u32) -> u64 {
    for _ in 0..by.min(6) {
        let pairs = (regions | regions >> 1) & 0x5555_5555_5555_5555;
        regions = (0..32).fold(0, |folded, bit| folded | (pairs >> (2 * bit) & 1) << bit);
    }
    if by > 6 {
        u64::from(regions != 0)
    } else {
        regions
    }
}

impl PartialEq for Table {
    fn eq(&self, other: &Table) -> bool {
        self.unit == other.unit
            && self.modulus == other.modulus
            && self.base_modulus == other.base_modulus
            && self.lengths_rounded == other.lengths_rounded
            && self.spread_unknown == other.spread_unknown
            && self.mixed_moduli == other.mixed_moduli
            && self.region_shift == other.region_shift
            && self.rows_max == other.rows_max
            && self.counters == other.counters
            && self.cells.sorted().eq(other.cells.sorted())
    }
}
