//! The rows of a table by their keys.
//!
//! Rows are in the order of their first I/O, each with its key in one line of the cache, so the frequent ones are close
//! together. Beside them is an index: groups of eight places, each place a byte of the key's hash and the number of a
//! row. A byte that differs excludes a row without a look at it, so counting an I/O touches the line of one row and
//! hardly ever a wrong one.

use super::{Key, Row};

/// A row with its key.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Cell {
    key: Key,
    ios: u64,
    timed: u64,
    regions: u64,
    ns_sum: u128,
    ns_squared_sum: u128,
}

impl Cell {
    const fn new(key: Key) -> Cell {
        Cell {
            key,
            ios: 0,
            timed: 0,
            regions: 0,
            ns_sum: 0,
            ns_squared_sum: 0,
        }
    }

    /// Counts one I/O, and its latency where it is known.
    #[inline(always)]
    pub(super) fn count(&mut self, region: u64, device_ns: Option<u64>) {
        self.ios += 1;
        self.regions |= region;
        if let Some(ns) = device_ns {
            self.timed += 1;
            self.ns_sum += u128::from(ns);
            let squared = u128::from(ns) * u128::from(ns);
            self.ns_squared_sum = self.ns_squared_sum.saturating_add(squared);
        }
    }

    /// Adds sums from elsewhere. Sums saturate, for any source.
    pub(super) fn absorb(&mut self, row: &Row) {
        self.ios = self.ios.saturating_add(row.ios);
        self.timed = self.timed.saturating_add(row.timed);
        self.regions |= row.regions;
        self.ns_sum = self.ns_sum.saturating_add(row.ns_sum);
        self.ns_squared_sum = self.ns_squared_sum.saturating_add(row.ns_squared_sum);
    }

    fn row(&self) -> Row {
        Row {
            ios: self.ios,
            timed: self.timed,
            ns_sum: self.ns_sum,
            ns_squared_sum: self.ns_squared_sum,
            regions: self.regions,
        }
    }
}

/// Most rows that the index can number; see [`IndexGroup`].
pub(super) const NUMBERS_MAX: usize = 1 << 24;

/// Places of a group.
const GROUP: usize = 8;

/// Of the places of all groups at most this number of eight are in use, so that most rows are in their own group.
const TAKEN_MAX: usize = 5;

/// Bits of a hash that the tag takes, the highest ones.
const TAG_BITS: u32 = 8;

/// One in each byte of a word.
const EACH: u64 = 0x0101_0101_0101_0101;

/// The rows of a table; see the module.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    cells: Vec<Cell>,
    /// A power of two of them, or none yet.
    groups: Vec<IndexGroup>,
    /// Leaves as many of the bits below the tag as number the groups.
    group_shift: u32,
}

impl Default for Cells {
    fn default() -> Cells {
        Cells {
            cells: Vec::new(),
            groups: Vec::new(),
            group_shift: u64::BITS - 1,
        }
    }
}

/// Places of the index.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
struct IndexGroup {
    /// For each place a byte of the hash, 0 where it is free.
    tags: u64,
    /// For each place the lower 16 bits of the number of the row, and the 8 above them: a group fills half a line
    /// of the cache.
    numbers_low: [u16; GROUP],
    numbers_high: [u8; GROUP],
}

impl IndexGroup {
    #[inline(always)]
    fn number(&self, place: usize) -> u32 {
        u32::from(self.numbers_high[place]) << 16 | u32::from(self.numbers_low[place])
    }
}

#[inline(always)]
fn hash(key: Key) -> u64 {
    key.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A byte of a hash that is never 0, in each byte of a word. The highest bits of the product depend on all bits of
/// the key; groups take theirs from right below.
#[inline(always)]
fn tag(hash: u64) -> u64 {
    (hash >> (64 - TAG_BITS)).max(1) * EACH
}

/// The highest bit of each byte that is 0; a byte right above such a one may be taken for one as well.
#[inline(always)]
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(EACH) & !word & EACH << 7
}

impl Cells {
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, Row)> + '_ {
        self.cells.iter().map(|cell| (cell.key, cell.row()))
    }

    /// The rows in order of their keys.
    pub(super) fn sorted(&self) -> impl ExactSizeIterator<Item = (Key, Row)> + '_ {
        // Keys with the numbers of their rows, since whole rows take five times as long to sort.
        let numbered = self.cells.iter().map(|cell| cell.key).zip(0u32..);
        let mut keys: Vec<(Key, u32)> = numbered.collect();
        keys.sort_unstable_by_key(|(key, _)| *key);
        let rows = keys.into_iter();
        rows.map(|(key, number)| (key, self.cells[number as usize].row()))
    }

    /// The row of a key, new or known.
    pub(super) fn at(&mut self, key: Key) -> &mut Cell {
        let number = self.number(key);
        self.numbered(number)
    }

    /// The row of a number.
    #[inline(always)]
    pub(super) fn numbered(&mut self, number: u32) -> &mut Cell {
        &mut self.cells[number as usize]
    }

    /// The number of the row that is most likely that of a key. Looks at no row, so that many lookups are under way
    /// at a time; [`Cells::has`] tells whether it is.
    #[inline(always)]
    pub(super) fn likely(&self, key: Key) -> u32 {
        let hash = hash(key);
        self.groups.get(self.group(hash)).map_or(0, |group| {
            let alike = zero_bytes(group.tags ^ tag(hash));
            group.number(alike.trailing_zeros() as usize / 8 % GROUP)
        })
    }

    /// Whether a row is that of a key.
    #[inline(always)]
    pub(super) fn has(&self, number: u32, key: Key) -> bool {
        self.cells
            .get(number as usize)
            .is_some_and(|cell| cell.key == key)
    }

    /// The number of the row of a key, new or known.
    pub(super) fn number(&mut self, key: Key) -> u32 {
        let hash = hash(key);
        let tag = tag(hash);
        let mut at = self.group(hash);
        while let Some(group) = self.groups.get(at) {
            let mut alike = zero_bytes(group.tags ^ tag);
            while alike != 0 {
                let number = group.number(alike.trailing_zeros() as usize / 8 % GROUP);
                if self.has(number, key) {
                    return number;
                }
                alike &= alike - 1;
            }
            if zero_bytes(group.tags) != 0 {
                break;
            }
            at = (at + 1) & (self.groups.len() - 1);
        }
        self.insert(key)
    }

    #[inline(always)]
    fn group(&self, hash: u64) -> usize {
        (hash << TAG_BITS >> self.group_shift) as usize
    }

    #[cold]
    #[inline(never)]
    fn insert(&mut self, key: Key) -> u32 {
        if self.cells.len() >= TAKEN_MAX * self.groups.len() {
            self.widen_index();
        }
        self.cells.push(Cell::new(key));
        self.enter(self.cells.len() - 1)
    }

    /// Puts a row into the index.
    fn enter(&mut self, row: usize) -> u32 {
        debug_assert!(
            row < NUMBERS_MAX,
            "a table is lowered soon after it has a row too many"
        );
        let number = row as u32;
        let hash = hash(self.cells[row].key);
        let mut at = self.group(hash);
        while zero_bytes(self.groups[at].tags) == 0 {
            at = (at + 1) & (self.groups.len() - 1);
        }
        let group = &mut self.groups[at];
        // The lowest of the bytes that are taken for 0 is.
        let free = zero_bytes(group.tags).trailing_zeros() as usize / 8;
        group.tags |= (tag(hash) & 0xff) << (8 * free);
        group.numbers_low[free] = number as u16;
        group.numbers_high[free] = (number >> 16) as u8;
        number
    }

    fn widen_index(&mut self) {
        let groups = (2 * self.groups.len()).max(GROUP);
        self.groups = vec![IndexGroup::default(); groups];
        self.group_shift = u64::BITS - groups.trailing_zeros();
        for row in 0..self.cells.len() {
            self.enter(row);
        }
    }

    /// Makes each region 2^by times as large.
    pub(super) fn fold_regions(&mut self, by: u32) {
        for cell in &mut self.cells {
            cell.regions = super::fold_regions(cell.regions, by);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_row_fills_one_line_of_the_cache() {
        assert_eq!(size_of::<Cell>(), 64);
        assert_eq!(size_of::<IndexGroup>(), 32);
    }

    #[test]
    fn rows_are_found_again() {
        let (mut cells, mut expected) = (Cells::default(), BTreeMap::new());
        for n in 0..400_000u64 {
            let key = Key((((n * n) % 20_011) << 35) + n % 17);
            cells.at(key).count(1, Some(n));
            *expected.entry(key).or_insert(0) += u128::from(n);
        }
        let found: BTreeMap<Key, u128> = cells.iter().map(|(key, row)| (key, row.ns_sum)).collect();
        assert_eq!(found, expected);
        assert_eq!(cells.len(), expected.len());
        assert!(cells.len() > 1 << 16, "{} rows", cells.len());
        assert!(cells.len() <= TAKEN_MAX * cells.groups.len());
    }

    #[test]
    fn a_byte_alike_is_never_missed() {
        for (tags, wanted) in [
            (0x8001_00ff_7f80_0102u64, 0xff),
            (0x0101_0101_0101_0101, 1),
            (0xff00, 0xff),
        ] {
            let alike = zero_bytes(tags ^ (wanted * EACH));
            for place in 0..GROUP {
                let is_alike = tags >> (8 * place) & 0xff == wanted;
                assert!(
                    !is_alike || alike >> (8 * place) & 0x80 != 0,
                    "{tags:x} {wanted:x} {place}"
                );
            }
        }
    }
}
