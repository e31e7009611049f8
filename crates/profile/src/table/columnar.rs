//! A table as columns, for stores that keep thousands of them, and the reduction that goes with it.
//!
//! Written as columns, a row takes 10 to 12 bytes after compression, and 12 to 16 written as rows. More than half of that
//! is the sum of squared latencies, so a store of long windows drops it. [`Table::reduced`] takes the same chain of steps
//! as a table that is full, so reduced tables merge like all others.

use serde::{Deserialize, Serialize};

use super::cells::Cells;
use super::counters::Counters;
use super::written::{SinceVersion2, TableHeader, WrittenTable};
use super::{Key, ROWS_MAX_LARGEST, Row, Table};

/// Why bytes are not the columns of a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("damaged columns of a residue table: {0}")]
pub struct ColumnsError(String);

/// The columns. A column that holds only zeros is empty.
#[derive(Serialize, Deserialize)]
struct ColumnarTable {
    header: TableHeader,
    rows_max: u32,
    counters: Counters,
    /// Each key less the one before.
    #[serde(deserialize_with = "crate::bounded::list::<_, _, ROWS_MAX_LARGEST>")]
    key_steps: Vec<u64>,
    #[serde(deserialize_with = "crate::bounded::list::<_, _, ROWS_MAX_LARGEST>")]
    ios: Vec<u64>,
    #[serde(deserialize_with = "crate::bounded::list::<_, _, ROWS_MAX_LARGEST>")]
    timed: Vec<u64>,
    #[serde(deserialize_with = "crate::bounded::list::<_, _, ROWS_MAX_LARGEST>")]
    regions: Vec<u64>,
    #[serde(deserialize_with = "crate::bounded::list::<_, _, ROWS_MAX_LARGEST>")]
    ns_sum: Vec<u128>,
    #[serde(deserialize_with = "crate::bounded::list::<_, _, ROWS_MAX_LARGEST>")]
    ns_squared_sum: Vec<u128>,
}

impl Table {
    /// The table reduced to at most `rows` rows by the steps of a full table, and without sums of squared latencies
    /// unless they are to be kept. It keeps more rows if even the smallest modulus needs them.
    #[must_use]
    pub fn reduced(&self, rows: usize, keep_squares: bool) -> Table {
        let mut table = self.clone();
        while table.len() > rows && !(table.lengths_rounded && table.modulus == 1) {
            table.lower();
        }
        if !keep_squares {
            table.drop_squares();
        }
        table
    }

    /// An empty table with the same caps, grids and regions, so that merging it into another table changes nothing there.
    #[must_use]
    pub fn emptied(&self) -> Table {
        Table {
            modulus: self.base_modulus,
            lengths_rounded: false,
            mixed_moduli: false,
            spread_unknown: false,
            cells: Cells::default(),
            counters: self.counters.emptied(),
            ..*self
        }
    }

    fn drop_squares(&mut self) {
        let before = std::mem::take(&mut self.cells);
        for (key, mut row) in before.iter() {
            self.spread_unknown |= row.ns_sum > 0;
            row.ns_squared_sum = 0;
            self.cells.at(key).absorb(&row);
        }
    }

    /// The table as columns.
    ///
    /// # Errors
    /// If memory is short.
    pub fn to_columns(&self) -> Result<Vec<u8>, ColumnsError> {
        let rows = self.sorted_rows();
        let mut before = 0;
        let key_steps = rows.iter().map(|(key, _)| {
            let step = key.0 - before;
            before = key.0;
            step
        });
        let columns = ColumnarTable {
            header: TableHeader::new(self),
            rows_max: self.rows_max,
            counters: self.counters.clone(),
            key_steps: key_steps.collect(),
            ios: column(&rows, |row| row.ios),
            timed: column(&rows, |row| row.timed),
            regions: column(&rows, |row| row.regions),
            ns_sum: column(&rows, |row| row.ns_sum),
            ns_squared_sum: column(&rows, |row| row.ns_squared_sum),
        };
        postcard::to_allocvec(&columns).map_err(|error| ColumnsError(error.to_string()))
    }

    /// The table of these columns; the bytes may come from anywhere.
    ///
    /// # Errors
    /// If they are not the columns of a table.
    pub fn from_columns(bytes: &[u8]) -> Result<Table, ColumnsError> {
        let columns: ColumnarTable =
            postcard::from_bytes(bytes).map_err(|error| ColumnsError(error.to_string()))?;
        let count = columns.key_steps.len();
        let lengths = [
            columns.ios.len(),
            columns.timed.len(),
            columns.regions.len(),
            columns.ns_sum.len(),
            columns.ns_squared_sum.len(),
        ];
        if let Some(found) = lengths.into_iter().find(|len| *len != 0 && *len != count) {
            return Err(ColumnsError(format!(
                "found a column of {found} rows, expected {count} or none"
            )));
        }
        let mut rows = Vec::with_capacity(count);
        let mut key = 0u64;
        for at in 0..count {
            key = key
                .checked_add(columns.key_steps[at])
                .ok_or_else(|| ColumnsError("found a key of more than 64 bits".to_owned()))?;
            let row = Row {
                ios: at_or_zero(&columns.ios, at),
                timed: at_or_zero(&columns.timed, at),
                ns_sum: at_or_zero(&columns.ns_sum, at),
                ns_squared_sum: at_or_zero(&columns.ns_squared_sum, at),
                regions: at_or_zero(&columns.regions, at),
            };
            rows.push((Key(key), row));
        }
        let written = WrittenTable {
            header: columns.header,
            rows,
            since_version_2: SinceVersion2 {
                rows_max: columns.rows_max,
                counters: columns.counters,
            },
        };
        written.into_table().map_err(ColumnsError)
    }
}

/// A column of rows; empty if it holds only zeros.
fn column<T: Default + PartialEq>(rows: &[(Key, Row)], value: impl Fn(&Row) -> T) -> Vec<T> {
    let values: Vec<T> = rows.iter().map(|(_, row)| value(row)).collect();
    let zero = T::default();
    if values.iter().all(|value| *value == zero) {
        return Vec::new();
    }
    values
}

fn at_or_zero<T: Copy + Default>(column: &[T], at: usize) -> T {
    column.get(at).copied().unwrap_or_default()
}
