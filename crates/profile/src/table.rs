//! The residue table: I/O counted by (operation, start modulo M, length, continues a stream).
//!
//! It is enough to lay the I/O on every grid whose granularity divides M, at every offset, long after the I/O
//! went by. It is bounded: when more than [`ROWS_MAX`] different rows are needed, the whole table takes the next
//! step of one fixed chain. First lengths that are no power of two are rounded up to one and marked, then M
//! is halved as often as it takes. A step depends only on how many rows there are, so tables of one modulus
//! that are merged in any order and grouping end at the same step with the same rows.
//!
//! Tables of different moduli meet at the greatest common divisor. If such tables also overflow, the order of
//! merging can decide how far they are reduced (never what they say at that modulus).

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use plumb_geometry::gcd;
use plumb_trace::{DEVICE_NS_SUM_MAX, IOS_MAX, Op};

/// Most rows of a table. A database gives some hundreds, a busy mixed guest up to 14,000 in two hours.
pub const ROWS_MAX: usize = 16_384;

/// M unless a grid asks for another: divisible by every usual page, block, chunk and segment.
pub const MODULUS_BYTES: u64 = 1 << 20;

/// Largest M, so that a residue in bytes fits its field of the key.
pub const MODULUS_BYTES_MAX: u64 = 1 << 24;

/// Longest length, in units, that is kept exactly.
const LENGTH_MAX: u64 = (1 << 35) - 1;

/// A row's key in one word, in the order in which rows are written: operation, stream bit, mark, residue, length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key(u64);

impl Key {
    fn new(op: Op, continues: bool, residue: u64, length: u64) -> Key {
        debug_assert!(residue < 1 << 24, "a residue is below the largest modulus");
        let (rounded, length) = if length > LENGTH_MAX { (true, exponent(length)) } else { (false, length) };
        Key((op as u64) << 61
            | u64::from(continues) << 60
            | u64::from(rounded) << 59
            | residue << 35
            | length)
    }

    /// What the I/O do.
    #[must_use]
    pub fn op(self) -> Op {
        Op::from_code((self.0 >> 61) as u8).unwrap_or(Op::Other)
    }

    /// Whether they continue a stream.
    #[must_use]
    pub fn continues(self) -> bool {
        self.0 >> 60 & 1 == 1
    }

    /// Whether the length was rounded up to a power of two.
    #[must_use]
    pub fn is_rounded(self) -> bool {
        self.0 >> 59 & 1 == 1
    }

    /// Start modulo M, in units.
    #[must_use]
    pub fn residue(self) -> u64 {
        self.0 >> 35 & 0xff_ffff
    }

    /// Length in units; when rounded, the power of two at or above it.
    #[must_use]
    pub fn length(self) -> u64 {
        let field = self.0 & LENGTH_MAX;
        if self.is_rounded() { 1u64.checked_shl(field as u32).unwrap_or(u64::MAX) } else { field }
    }

    fn is_valid(self, modulus: u64) -> bool {
        self.0 >> 61 < 6 && self.residue() < modulus && (!self.is_rounded() || self.0 & LENGTH_MAX < 64)
    }

    fn with_rounded_length(self) -> Key {
        let length = self.length();
        if self.is_rounded() || length == 0 || length.is_power_of_two() {
            return self;
        }
        Key(self.0 & !LENGTH_MAX | 1 << 59 | exponent(length))
    }

    fn with_modulus(self, modulus: u64) -> Key {
        Key(self.0 & !(0xff_ffff << 35) | self.residue() % modulus << 35)
    }

    /// The same I/O counted in bytes instead of units of `unit` bytes.
    fn in_bytes(self, unit: u64) -> Key {
        let mut key = Key::new(self.op(), self.continues(), self.residue() * unit, 0);
        if self.is_rounded() {
            key.0 |= 1 << 59 | ((self.0 & LENGTH_MAX) + u64::from(unit.trailing_zeros())).min(63);
        } else {
            key = Key::new(
                self.op(),
                self.continues(),
                self.residue() * unit,
                self.length().saturating_mul(unit),
            );
        }
        key
    }
}

/// Exponent of the power of two at or above `length`.
fn exponent(length: u64) -> u64 {
    u64::from(64 - (length.max(1) - 1).leading_zeros()).min(63)
}

/// What is summed up in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// I/O.
    pub ios: u64,
    /// I/O of which the latency is known.
    pub timed: u64,
    /// Sum of the known latencies, ns.
    pub ns_sum: u128,
    /// Sum of their squares, ns².
    pub ns_squared_sum: u128,
    /// Which regions of the device were touched; see [`Table::region_shift`].
    pub regions: u64,
}

impl Row {
    fn absorb(&mut self, other: &Row) {
        self.ios += other.ios;
        self.timed += other.timed;
        self.ns_sum += other.ns_sum;
        self.ns_squared_sum = self.ns_squared_sum.saturating_add(other.ns_squared_sum);
        self.regions |= other.regions;
    }
}

/// I/O counted by residue; see the module.
#[derive(Clone, Debug)]
pub struct Table {
    unit: u64,
    base_modulus: u64,
    modulus: u64,
    lengths_rounded: bool,
    mixed_moduli: bool,
    region_shift: u32,
    index: FxHashMap<Key, u32>,
    keys: Vec<Key>,
    rows: Vec<Row>,
}

/// What a modulus must be.
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
            region_shift: 20,
            index: FxHashMap::default(),
            keys: Vec::new(),
            rows: Vec::new(),
        }
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

    /// Regions are 2^shift bytes; bit r of a row stands for region r. There are at most 64, so the shift
    /// grows with the device, and of a device of known size 33 to 64 are used.
    #[must_use]
    pub fn region_shift(&self) -> u32 {
        self.region_shift
    }

    /// How many rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All rows, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &Row)> {
        self.keys.iter().copied().zip(&self.rows)
    }

    /// Counts one I/O.
    #[inline]
    pub fn add(&mut self, op: Op, start_bytes: u64, len_bytes: u64, continues: bool, device_ns: Option<i64>) {
        if self.unit != 1 && (start_bytes | len_bytes) & 511 != 0 {
            self.count_in_bytes();
        }
        if start_bytes >> self.region_shift >= 64 {
            self.widen_regions(start_bytes);
        }
        let shift = if self.unit == 1 { 0 } else { 9 };
        let key =
            self.reduce(Key::new(op, continues, (start_bytes >> shift) % self.modulus, len_bytes >> shift));
        let region = 1u64 << (start_bytes >> self.region_shift);
        let row = self.row(key);
        row.ios += 1;
        row.regions |= region;
        if let Some(ns) = device_ns {
            let ns = ns.max(0).unsigned_abs();
            row.timed += 1;
            row.ns_sum += u128::from(ns);
            row.ns_squared_sum = row.ns_squared_sum.saturating_add(u128::from(ns) * u128::from(ns));
        }
        if self.rows.len() > ROWS_MAX {
            self.lower_until_it_fits();
        }
    }

    /// Counts a row that somebody else has already summed up.
    pub fn add_row(&mut self, op: Op, residue_bytes: u64, len_bytes: u64, continues: bool, row: &Row) {
        if self.unit != 1 && (residue_bytes | len_bytes) & 511 != 0 {
            self.count_in_bytes();
        }
        let key = Key::new(op, continues, residue_bytes / self.unit % self.modulus, len_bytes / self.unit);
        let key = self.reduce(key);
        self.row(key).absorb(row);
        self.lower_until_it_fits();
    }

    /// Adds another table to this one.
    pub fn merge(&mut self, other: &Table) {
        let mut other = std::borrow::Cow::Borrowed(other);
        if self.unit != other.unit {
            self.count_in_bytes();
            other.to_mut().count_in_bytes();
        }
        self.mixed_moduli |= other.mixed_moduli;
        if self.base_modulus != other.base_modulus {
            self.mixed_moduli = true;
            self.base_modulus = gcd(self.base_modulus, other.base_modulus);
        }
        let modulus = gcd(self.modulus, other.modulus);
        let rounded = self.lengths_rounded || other.lengths_rounded;
        self.take_step(modulus, rounded);
        let shift = self.region_shift.max(other.region_shift);
        self.set_region_shift(shift);
        for (key, row) in other.iter() {
            let mut row = *row;
            row.regions = fold_regions(row.regions, shift - other.region_shift);
            let key = self.reduce(key);
            self.row(key).absorb(&row);
        }
        self.lower_until_it_fits();
    }

    #[inline]
    fn row(&mut self, key: Key) -> &mut Row {
        let next = self.rows.len() as u32;
        let at = *self.index.entry(key).or_insert(next);
        if at == next {
            self.keys.push(key);
            self.rows.push(Row::default());
        }
        &mut self.rows[at as usize]
    }

    /// A key as the present step of the chain has it.
    #[inline]
    fn reduce(&self, key: Key) -> Key {
        let key = if self.lengths_rounded { key.with_rounded_length() } else { key };
        if self.modulus < self.base_modulus || self.mixed_moduli {
            key.with_modulus(self.modulus)
        } else {
            key
        }
    }

    fn lower_until_it_fits(&mut self) {
        while self.rows.len() > ROWS_MAX {
            if self.lengths_rounded {
                let half = if self.modulus.is_multiple_of(2) { self.modulus / 2 } else { 1 };
                self.take_step(half, true);
            } else {
                self.take_step(self.modulus, true);
            }
        }
    }

    fn take_step(&mut self, modulus: u64, lengths_rounded: bool) {
        if modulus == self.modulus && lengths_rounded == self.lengths_rounded {
            return;
        }
        self.modulus = modulus;
        self.lengths_rounded = lengths_rounded;
        self.rebuild(|key| {
            let key = if lengths_rounded { key.with_rounded_length() } else { key };
            key.with_modulus(modulus)
        });
    }

    /// Goes over to a unit of one byte. What was counted in sectors stays exact.
    fn count_in_bytes(&mut self) {
        if self.unit == 1 {
            return;
        }
        let unit = self.unit;
        self.unit = 1;
        self.modulus *= unit;
        self.base_modulus *= unit;
        self.rebuild(|key| key.in_bytes(unit));
    }

    fn rebuild(&mut self, change: impl Fn(Key) -> Key) {
        self.index.clear();
        let keys = std::mem::take(&mut self.keys);
        let rows = std::mem::take(&mut self.rows);
        for (key, row) in keys.into_iter().zip(rows) {
            self.row(change(key)).absorb(&row);
        }
    }

    fn widen_regions(&mut self, start_bytes: u64) {
        let bits = 64 - start_bytes.leading_zeros();
        self.set_region_shift(bits.saturating_sub(6));
    }

    /// Makes regions at least 2^shift bytes large.
    pub fn set_region_shift(&mut self, shift: u32) {
        if shift <= self.region_shift {
            return;
        }
        let by = shift - self.region_shift;
        self.region_shift = shift;
        for row in &mut self.rows {
            row.regions = fold_regions(row.regions, by);
        }
    }
}

/// A mask of regions for regions 2^by times as large.
fn fold_regions(mut regions: u64, by: u32) -> u64 {
    for _ in 0..by.min(6) {
        let pairs = (regions | regions >> 1) & 0x5555_5555_5555_5555;
        regions = (0..32).fold(0, |folded, bit| folded | (pairs >> (2 * bit) & 1) << bit);
    }
    if by > 6 { u64::from(regions != 0) } else { regions }
}

/// A table in the form in which it is written: rows in order of their keys.
#[derive(Serialize, Deserialize)]
struct Written {
    unit: u64,
    base_modulus: u64,
    modulus: u64,
    lengths_rounded: bool,
    mixed_moduli: bool,
    region_shift: u32,
    rows: Vec<(Key, Row)>,
}

impl Serialize for Table {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows: Vec<(Key, Row)> = self.iter().map(|(key, row)| (key, *row)).collect();
        rows.sort_unstable_by_key(|(key, _)| *key);
        Written {
            unit: self.unit,
            base_modulus: self.base_modulus,
            modulus: self.modulus,
            lengths_rounded: self.lengths_rounded,
            mixed_moduli: self.mixed_moduli,
            region_shift: self.region_shift,
            rows,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Table, D::Error> {
        let written = Written::deserialize(deserializer)?;
        let fault = serde::de::Error::custom;
        if written.unit != 1 && written.unit != 512 {
            return Err(fault(format!("unit of a residue table: found {}, expected 1 or 512", written.unit)));
        }
        let most = MODULUS_BYTES_MAX / written.unit;
        let moduli = 1..=most;
        if !moduli.contains(&written.modulus)
            || !moduli.contains(&written.base_modulus)
            || written.modulus > written.base_modulus
        {
            return Err(fault(format!(
                "modulus of a residue table: found {}, expected 1 to {most}",
                written.modulus
            )));
        }
        if written.rows.len() > ROWS_MAX || written.region_shift > 63 {
            return Err(fault(format!(
                "residue table: found {} rows, expected at most {ROWS_MAX}",
                written.rows.len()
            )));
        }
        let mut table = Table {
            unit: written.unit,
            base_modulus: written.base_modulus,
            modulus: written.modulus,
            lengths_rounded: written.lengths_rounded,
            mixed_moduli: written.mixed_moduli,
            region_shift: written.region_shift,
            index: FxHashMap::default(),
            keys: Vec::with_capacity(written.rows.len()),
            rows: Vec::with_capacity(written.rows.len()),
        };
        let (mut ios, mut ns_sum) = (0u64, 0u128);
        for (key, row) in written.rows {
            ios = ios.saturating_add(row.ios);
            ns_sum = ns_sum.saturating_add(row.ns_sum);
            if ios > IOS_MAX || ns_sum > DEVICE_NS_SUM_MAX {
                return Err(fault("residue table: found more I/O or ns than there can be".to_owned()));
            }
            if !key.is_valid(table.modulus) || row.timed > row.ios {
                return Err(fault("row of a residue table: found a key or count out of range".to_owned()));
            }
            table.row(key).absorb(&row);
        }
        Ok(table)
    }
}

impl PartialEq for Table {
    fn eq(&self, other: &Table) -> bool {
        let rows = |table: &Table| {
            let mut rows: Vec<(Key, Row)> = table.iter().map(|(key, row)| (key, *row)).collect();
            rows.sort_unstable_by_key(|(key, _)| *key);
            rows
        };
        self.unit == other.unit
            && self.modulus == other.modulus
            && self.base_modulus == other.base_modulus
            && self.lengths_rounded == other.lengths_rounded
            && self.mixed_moduli == other.mixed_moduli
            && self.region_shift == other.region_shift
            && rows(self) == rows(other)
    }
}
