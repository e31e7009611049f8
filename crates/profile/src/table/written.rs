//! The encoded form of a table, and the tests for impossible ones from elsewhere.

use serde::{Deserialize, Serialize};

use super::cells::Cells;
use super::counters::Counters;
use super::{
    Key, MODULUS_BYTES_MAX, REGION_SHIFT_MAX, ROWS_MAX_LARGEST, ROWS_MAX_LEAST,
    ROWS_MAX_OF_VERSION_1, Row, Table,
};
use crate::codec::{self, ProfileVersion};

/// A table in the form in which it is written: rows in order of their keys.
#[derive(Deserialize)]
pub(super) struct WrittenTable {
    pub(super) header: TableHeader,
    #[serde(deserialize_with = "crate::bounded::list::<_, _, ROWS_MAX_LARGEST>")]
    pub(super) rows: Vec<(Key, Row)>,
    pub(super) since_version_2: SinceVersion2,
}

/// The properties of all rows of a table.
#[derive(Serialize, Deserialize)]
pub(super) struct TableHeader {
    unit: u64,
    base_modulus: u64,
    modulus: u64,
    lengths_rounded: bool,
    mixed_moduli: bool,
    spread_unknown: bool,
    region_shift: u32,
}

impl TableHeader {
    pub(super) fn new(table: &Table) -> TableHeader {
        TableHeader {
            unit: table.unit,
            base_modulus: table.base_modulus,
            modulus: table.modulus,
            lengths_rounded: table.lengths_rounded,
            mixed_moduli: table.mixed_moduli,
            spread_unknown: table.spread_unknown,
            region_shift: table.region_shift,
        }
    }
}

/// Fields that version 1 of the encoded form does not have.
#[derive(Serialize)]
pub(super) struct SinceVersion2 {
    pub(super) rows_max: u32,
    pub(super) counters: Counters,
}

impl<'de> Deserialize<'de> for SinceVersion2 {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if codec::version_read() == ProfileVersion::One {
            return Ok(SinceVersion2 {
                rows_max: ROWS_MAX_OF_VERSION_1 as u32,
                counters: Counters::default(),
            });
        }
        let (rows_max, counters) = Deserialize::deserialize(deserializer)?;
        Ok(SinceVersion2 { rows_max, counters })
    }
}

impl Serialize for Table {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let since_version_2 = SinceVersion2 {
            rows_max: self.rows_max,
            counters: self.counters.clone(),
        };
        // The fields of `WrittenTable`, without a copy of all rows.
        (
            TableHeader::new(self),
            SortedRows(&self.cells),
            since_version_2,
        )
            .serialize(serializer)
    }
}

/// Rows that are written in order of their keys.
struct SortedRows<'a>(&'a Cells);

impl Serialize for SortedRows<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.sorted())
    }
}

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Table, D::Error> {
        let written = WrittenTable::deserialize(deserializer)?;
        written.into_table().map_err(serde::de::Error::custom)
    }
}

impl Table {
    /// All rows in order of their keys.
    pub(super) fn sorted_rows(&self) -> Vec<(Key, Row)> {
        self.cells.sorted().collect()
    }
}

impl WrittenTable {
    /// The table, or the first impossible value in it.
    pub(super) fn into_table(self) -> Result<Table, String> {
        let TableHeader {
            unit,
            base_modulus,
            modulus,
            lengths_rounded,
            mixed_moduli,
            spread_unknown,
            region_shift,
        } = self.header;
        if unit != 1 && unit != 512 {
            return Err(format!(
                "unit of a residue table: found {}, expected 1 or 512",
                unit
            ));
        }
        let most = MODULUS_BYTES_MAX / unit;
        let moduli = 1..=most;
        if !moduli.contains(&modulus)
            || !moduli.contains(&base_modulus)
            || !base_modulus.is_multiple_of(modulus)
        {
            return Err(format!(
                "modulus of a residue table: found {}, expected 1 to {most}",
                modulus
            ));
        }
        if region_shift > REGION_SHIFT_MAX {
            return Err(format!(
                "regions of a residue table: found a shift of {}, expected at most {REGION_SHIFT_MAX}",
                region_shift
            ));
        }
        let SinceVersion2 { rows_max, counters } = self.since_version_2;
        if !(ROWS_MAX_LEAST..=ROWS_MAX_LARGEST).contains(&(rows_max as usize))
            || self.rows.len() > rows_max as usize
        {
            return Err(format!(
                "rows of a residue table: found {} and a cap of {rows_max}, expected a cap of {ROWS_MAX_LEAST} to {ROWS_MAX_LARGEST} that holds them",
                self.rows.len()
            ));
        }
        if !counters.are_valid(base_modulus * unit, lengths_rounded) {
            return Err("sums of a residue table: found grids or counts out of range".to_owned());
        }
        if !self.rows.is_sorted_by(|(one, _), (next, _)| one < next) {
            return Err("rows of a residue table: found them out of order".to_owned());
        }
        let mut table = Table {
            unit,
            base_modulus,
            modulus,
            lengths_rounded,
            mixed_moduli,
            spread_unknown,
            region_shift,
            rows_max,
            cells: Cells::default(),
            counters,
        };
        for (key, row) in self.rows {
            // A row may have more latencies than I/O: those of I/O that an earlier reading counted.
            if !key.is_valid(table.modulus, table.unit_shift(), table.lengths_rounded) {
                return Err("row of a residue table: found a key out of range".to_owned());
            }
            table.cells.at(key).absorb(&row);
        }
        Ok(table)
    }
}
