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
#[derive(Serialize, Deserialize)]
struct WrittenTable {
    unit: u64,
    base_modulus: u64,
    modulus: u64,
    lengths_rounded: bool,
    mixed_moduli: bool,
    spread_unknown: bool,
    region_shift: u32,
    #[serde(deserialize_with = "crate::bounded::list::<_, _, ROWS_MAX_LARGEST>")]
    rows: Vec<(Key, Row)>,
    since_version_2: SinceVersion2,
}

/// Fields that version 1 of the encoded form does not have.
#[derive(Serialize)]
struct SinceVersion2 {
    rows_max: u32,
    counters: Counters,
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
        let mut rows: Vec<(Key, Row)> = self.iter().collect();
        rows.sort_unstable_by_key(|(key, _)| *key);
        WrittenTable {
            unit: self.unit,
            base_modulus: self.base_modulus,
            modulus: self.modulus,
            lengths_rounded: self.lengths_rounded,
            mixed_moduli: self.mixed_moduli,
            spread_unknown: self.spread_unknown,
            region_shift: self.region_shift,
            rows,
            since_version_2: SinceVersion2 {
                rows_max: self.rows_max,
                counters: self.counters.clone(),
            },
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Table, D::Error> {
        let written = WrittenTable::deserialize(deserializer)?;
        let fault = serde::de::Error::custom;
        if written.unit != 1 && written.unit != 512 {
            return Err(fault(format!(
                "unit of a residue table: found {}, expected 1 or 512",
                written.unit
            )));
        }
        let most = MODULUS_BYTES_MAX / written.unit;
        let moduli = 1..=most;
        if !moduli.contains(&written.modulus)
            || !moduli.contains(&written.base_modulus)
            || !written.base_modulus.is_multiple_of(written.modulus)
        {
            return Err(fault(format!(
                "modulus of a residue table: found {}, expected 1 to {most}",
                written.modulus
            )));
        }
        if written.region_shift > REGION_SHIFT_MAX {
            return Err(fault(format!(
                "regions of a residue table: found a shift of {}, expected at most {REGION_SHIFT_MAX}",
                written.region_shift
            )));
        }
        let SinceVersion2 { rows_max, counters } = written.since_version_2;
        if !(ROWS_MAX_LEAST..=ROWS_MAX_LARGEST).contains(&(rows_max as usize))
            || written.rows.len() > rows_max as usize
        {
            return Err(fault(format!(
                "rows of a residue table: found {} and a cap of {rows_max}, expected a cap of {ROWS_MAX_LEAST} to {ROWS_MAX_LARGEST} that holds them",
                written.rows.len()
            )));
        }
        if !counters.are_valid(written.base_modulus * written.unit, written.lengths_rounded) {
            return Err(fault(
                "sums of a residue table: found grids or counts out of range".to_owned(),
            ));
        }
        if !written.rows.is_sorted_by(|(one, _), (next, _)| one < next) {
            return Err(fault(
                "rows of a residue table: found them out of order".to_owned(),
            ));
        }
        let mut table = Table {
            unit: written.unit,
            base_modulus: written.base_modulus,
            modulus: written.modulus,
            lengths_rounded: written.lengths_rounded,
            mixed_moduli: written.mixed_moduli,
            spread_unknown: written.spread_unknown,
            region_shift: written.region_shift,
            rows_max,
            cells: Cells::default(),
            counters,
        };
        for (key, row) in written.rows {
            if !key.is_valid(table.modulus, table.unit_shift(), table.lengths_rounded)
                || row.timed > row.ios
            {
                return Err(fault(
                    "row of a residue table: found a key or count out of range".to_owned(),
                ));
            }
            table.cells.at(key).absorb(&row);
        }
        Ok(table)
    }
}
