//! The rows of a table by their keys: a hash table with open addressing, in which a row and its key share one
//! line of the cache, since counting an I/O should touch no more than that.
//!
//! Rows are never taken out one by one. Half of the places are free at least, so a row is found at its place or
//! right after it.

use super::{Key, Row};

/// Stands for a free place; no key has it, since no operation has code 7.
const FREE: u64 = u64::MAX;

/// Places to begin with.
const PLACES_MIN: usize = 64;

/// A row with its key.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Cell {
    key: u64,
    ios: u64,
    timed: u64,
    regions: u64,
    ns_sum: u128,
    ns_squared_sum: u128,
}

const EMPTY: Cell = Cell { key: FREE, ios: 0, timed: 0, regions: 0, ns_sum: 0, ns_squared_sum: 0 };

impl Cell {
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

    /// Adds what was summed up elsewhere. Sums stay at their end, whatever a source says.
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

/// The rows of a table; see the module.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    /// A power of two of them, or none yet.
    cells: Vec<Cell>,
    rows: usize,
    /// What is left of a hash after this shift is a place.
    shift: u32,
}

impl Cells {
    pub(super) const fn new() -> Cells {
        Cells { cells: Vec::new(), rows: 0, shift: 63 }
    }

    /// None yet, with room for as many as another one has.
    pub(super) fn with_room_of(other: &Cells) -> Cells {
        let mut cells = Cells::new();
        cells.resize(other.cells.len());
        cells
    }

    pub(super) fn len(&self) -> usize {
        self.rows
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, Row)> + '_ {
        self.cells.iter().filter(|cell| cell.key != FREE).map(|cell| (Key(cell.key), cell.row()))
    }

    /// The row of a key, new or known.
    #[inline(always)]
    pub(super) fn at(&mut self, key: Key) -> &mut Cell {
        let mut place = self.place(key);
        loop {
            match self.cells.get(place) {
                Some(cell) if cell.key == key.0 => return &mut self.cells[place],
                Some(cell) if cell.key != FREE => place = (place + 1) & (self.cells.len() - 1),
                _ => return self.insert(key),
            }
        }
    }

    #[inline(always)]
    fn place(&self, key: Key) -> usize {
        (key.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[cold]
    #[inline(never)]
    fn insert(&mut self, key: Key) -> &mut Cell {
        // The row that overflows a table still has its place: it is about to be lowered.
        if self.cells.is_empty() || self.rows > self.cells.len() / 2 {
            self.resize((2 * self.cells.len()).max(PLACES_MIN));
        }
        self.rows += 1;
        let place = self.free_place(key);
        self.cells[place] = Cell { key: key.0, ..EMPTY };
        &mut self.cells[place]
    }

    fn free_place(&self, key: Key) -> usize {
        let mut place = self.place(key);
        while self.cells[place].key != FREE {
            place = (place + 1) & (self.cells.len() - 1);
        }
        place
    }

    /// Makes room for the rows of another one. Without that, taking them in their order, which is that of their
    /// hashes, would fill one end of a small table first.
    pub(super) fn make_room_for(&mut self, other: &Cells) {
        if other.cells.len() > self.cells.len() {
            self.resize(other.cells.len());
        }
    }

    fn resize(&mut self, places: usize) {
        if places == 0 {
            return;
        }
        let before = std::mem::replace(&mut self.cells, vec![EMPTY; places]);
        self.shift = 64 - places.trailing_zeros();
        for cell in before.iter().filter(|cell| cell.key != FREE) {
            let place = self.free_place(Key(cell.key));
            self.cells[place] = *cell;
        }
    }

    /// Makes each region 2^by times as large.
    pub(super) fn fold_regions(&mut self, by: u32) {
        for cell in self.cells.iter_mut().filter(|cell| cell.key != FREE) {
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
    }

    #[test]
    fn rows_are_found_again() {
        let (mut cells, mut expected) = (Cells::new(), BTreeMap::new());
        for n in 0..50_000u64 {
            let key = Key((((n * n) % 9_973) << 30) | (n % 7));
            cells.at(key).count(1, Some(n));
            *expected.entry(key).or_insert(0) += u128::from(n);
        }
        let found: BTreeMap<Key, u128> = cells.iter().map(|(key, row)| (key, row.ns_sum)).collect();
        assert_eq!(found, expected);
        assert_eq!(cells.len(), expected.len());
        assert!(cells.cells.len() >= 2 * cells.len() - 1);
    }
}
