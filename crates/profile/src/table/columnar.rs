//! A table as columns, for stores that keep thousands of them, and the reduction that goes with it.
//!
//! Written as columns, a row takes 10 to 12 bytes after compression, and 12 to 16 written as rows. More than half of that
//! is the sum of squared latencies, so a store of long windows drops it. Without it no latency of one start can be compared with that of
//! another, so the sums of the latencies of each operation, stream bit and length are shared out to their rows, and one number is written
//! for all of these: they took two thirds of the rest. [`Table::reduced`] takes the same chain of steps as a table that is full, so reduced
//! tables merge like all others.

use serde::{Deserialize, Serialize};

use super::cells::Cells;
use super::counters::Counters;
use super::written::{SinceVersion2, TableHeader, WrittenTable};
use super::{Key, ROWS_MAX_LARGEST, Row, Table};

/// Why bytes are not the columns of a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("damaged columns of a residue table: {0}")]
pub struct ColumnsError(String);

/// Bit of `rows_max` in columns whose sums of squares are written as [`above_least`]. Columns without it have the sums themselves.
const SQUARES_ABOVE_LEAST: u32 = 1 << 31;

/// The columns. A column that holds only zeros is empty.
#[derive(Serialize, Deserialize)]
struct ColumnarTable {
    header: TableHeader,
    /// Cap on the rows, and [`SQUARES_ABOVE_LEAST`].
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
    /// One for each row, or one for each operation, stream bit and length, in the order of their first rows, if the rows share them.
    #[serde(deserialize_with = "crate::bounded::list::<_, _, ROWS_MAX_LARGEST>")]
    ns_sum: Vec<u128>,
    #[serde(deserialize_with = "crate::bounded::list::<_, _, ROWS_MAX_LARGEST>")]
    ns_squared_sum: Vec<u128>,
}

impl Table {
    /// The table reduced to at most `rows` rows by the steps of a full table, and without sums of squared latencies
    /// unless they are to be kept; without these, rows of one operation, stream bit and length have the same mean latency. It keeps more rows
    /// if even the smallest modulus needs them.
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
        let mut rows = self.sorted_rows();
        self.spread_unknown |= rows.iter().any(|(_, row)| row.ns_sum > 0);
        let lengths = LengthSums::of_rows(&rows);
        lengths.share_out(&lengths.ns_sums(), &mut rows);
        self.cells = Cells::default();
        for (key, mut row) in rows {
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
        let has_squares = rows.iter().any(|(_, row)| row.ns_squared_sum > 0);
        let columns = ColumnarTable {
            header: TableHeader::new(self),
            rows_max: self.rows_max | if has_squares { SQUARES_ABOVE_LEAST } else { 0 },
            counters: self.counters.clone(),
            key_steps: key_steps(&rows),
            ios: column(&rows, |row| row.ios),
            timed: column(&rows, |row| row.timed),
            regions: column(&rows, |row| row.regions),
            ns_sum: ns_sum_column(&rows),
            ns_squared_sum: match has_squares {
                true => column(&rows, above_least),
                false => Vec::new(),
            },
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
            columns.ns_squared_sum.len(),
        ];
        if let Some(found) = lengths.into_iter().find(|len| *len != 0 && *len != count) {
            return Err(ColumnsError(format!(
                "found a column of {found} rows, expected {count} or none"
            )));
        }
        let is_shared = !columns.ns_sum.is_empty() && columns.ns_sum.len() != count;
        let mut rows = Vec::with_capacity(count);
        let mut key = 0u64;
        for at in 0..count {
            key = key
                .checked_add(columns.key_steps[at])
                .ok_or_else(|| ColumnsError("found a key of more than 64 bits".to_owned()))?;
            let row = Row {
                ios: at_or_zero(&columns.ios, at),
                timed: at_or_zero(&columns.timed, at),
                ns_sum: match is_shared {
                    true => 0,
                    false => at_or_zero(&columns.ns_sum, at),
                },
                ns_squared_sum: at_or_zero(&columns.ns_squared_sum, at),
                regions: at_or_zero(&columns.regions, at),
            };
            rows.push((Key(key), row));
        }
        if is_shared {
            let lengths = LengthSums::of_rows(&rows);
            let (found, expected) = (columns.ns_sum.len(), lengths.sums.len());
            if found != expected {
                return Err(ColumnsError(format!(
                    "found {found} sums of latencies, expected {expected}, {count} or none"
                )));
            }
            lengths.share_out(&columns.ns_sum, &mut rows);
        }
        if columns.rows_max & SQUARES_ABOVE_LEAST != 0 {
            for (_, row) in &mut rows {
                row.ns_squared_sum = row.ns_squared_sum.wrapping_add(least_squares(row));
            }
        }
        let written = WrittenTable {
            header: columns.header,
            rows,
            since_version_2: SinceVersion2 {
                rows_max: columns.rows_max & !SQUARES_ABOVE_LEAST,
                counters: columns.counters,
            },
        };
        written.into_table().map_err(ColumnsError)
    }
}

/// The sums of the rows of each operation, stream bit and length.
struct LengthSums {
    /// For each row the number of its sums.
    numbers: Vec<u32>,
    /// In the order of the first row of each.
    sums: Vec<Row>,
}

impl LengthSums {
    fn of_rows(rows: &[(Key, Row)]) -> LengthSums {
        let mut cells = Cells::default();
        let number = |(key, row): &(Key, Row)| {
            let number = cells.number(key.with_modulus(1));
            cells.numbered(number).absorb(row);
            number
        };
        LengthSums {
            numbers: rows.iter().map(number).collect(),
            sums: cells.iter().map(|(_, row)| row).collect(),
        }
    }

    fn ns_sums(&self) -> Vec<u128> {
        self.sums.iter().map(|sums| sums.ns_sum).collect()
    }

    /// Gives each row its share of the sum of latencies, by its known latencies. The shares of a sum add up to it. The rows are those from which
    /// these sums are made.
    fn share_out(&self, ns_sums: &[u128], rows: &mut [(Key, Row)]) {
        let mut given: Vec<(u64, u128)> = vec![(0, 0); self.sums.len()];
        for ((_, row), number) in rows.iter_mut().zip(&self.numbers) {
            let number = *number as usize;
            let (sum, all) = (ns_sums[number], self.sums[number].timed);
            let (timed, ns) = &mut given[number];
            *timed = timed.saturating_add(row.timed);
            // Quotient and remainder apart: the product of the sum would not fit.
            let upto = match u128::from(all) {
                0 => sum,
                all => sum / all * u128::from(*timed) + sum % all * u128::from(*timed) / all,
            };
            row.ns_sum = upto - *ns;
            *ns = upto;
        }
    }
}

/// The sums of latencies: one for each operation, stream bit and length if they give those of all rows.
fn ns_sum_column(rows: &[(Key, Row)]) -> Vec<u128> {
    let lengths = LengthSums::of_rows(rows);
    let sums = lengths.ns_sums();
    let mut shared = rows.to_vec();
    lengths.share_out(&sums, &mut shared);
    if shared == rows && sums.iter().any(|sum| *sum > 0) {
        return sums;
    }
    column(rows, |row| row.ns_sum)
}

/// The least sum of squares that latencies with this number and sum can have: the square of one latency. A row of a quiet window has
/// one I/O, so that nothing is above it. 0 of a sum too large to be squared.
fn least_squares(row: &Row) -> u128 {
    let squared = row.ns_sum.checked_mul(row.ns_sum).unwrap_or(0);
    squared.checked_div(row.timed.into()).unwrap_or(0)
}

/// The sum of squares above the least one; of a row from elsewhere that has less, a number that leads back to it.
fn above_least(row: &Row) -> u128 {
    row.ns_squared_sum.wrapping_sub(least_squares(row))
}

/// Each key less the one before.
fn key_steps(rows: &[(Key, Row)]) -> Vec<u64> {
    let mut before = 0;
    let step = |(key, _): &(Key, Row)| key.0 - std::mem::replace(&mut before, key.0);
    rows.iter().map(step).collect()
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

#[cfg(test)]
mod tests {
    use plumb_trace::Op;

    use super::*;

    /// A store before version 4 has a sum of latencies and one of squares for each row; those of hours and days have no squares.
    #[test]
    fn columns_of_earlier_stores_are_read() {
        for has_squares in [true, false] {
            let mut table = Table::default();
            for at in 0..50 {
                let ns = Some(1_000_003 * at as i64);
                table.add(Op::Write, at * at % 13 * 512, 4096, false, ns);
            }
            if !has_squares {
                let rows = table.sorted_rows();
                table = Table::default();
                for (key, mut row) in rows {
                    row.ns_squared_sum = 0;
                    let (residue, length) = (key.residue() * 512, key.length() * 512);
                    table.add_row(Op::Write, residue, length, false, &row);
                }
            }
            let rows = table.sorted_rows();
            let columns = ColumnarTable {
                header: TableHeader::new(&table),
                rows_max: table.rows_max,
                counters: table.counters.clone(),
                key_steps: key_steps(&rows),
                ios: column(&rows, |row| row.ios),
                timed: column(&rows, |row| row.timed),
                regions: column(&rows, |row| row.regions),
                ns_sum: column(&rows, |row| row.ns_sum),
                ns_squared_sum: column(&rows, |row| row.ns_squared_sum),
            };
            let bytes = postcard::to_allocvec(&columns).expect("room");
            assert_eq!(Table::from_columns(&bytes), Ok(table));
        }
    }
}
