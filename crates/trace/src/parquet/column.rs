//! Reads one column of a row group into a column of a batch.
//!
//! Dictionary keys are translated directly into the wanted values, by a table made once for each dictionary. All other
//! encodings are the library's; its values are checked and translated in one go.

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::DataType;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;

use crate::parquet::keys::{KeyTable, Keys};
use crate::parquet::meaning::Meaning;
use crate::parquet::pages::{ColumnPart, Pages, RowsPart};
use crate::parquet::pread::PartFile;

/// Rows that cannot be used, and why.
#[derive(Default)]
pub struct Bad {
    rows: Vec<bool>,
    /// Row, the value found, the value expected.
    pub found: Vec<(usize, String, &'static str)>,
}

impl Bad {
    /// Notes that a row cannot be used.
    pub fn mark(&mut self, row: usize, found: impl FnOnce() -> String, expected: &'static str) {
        self.rows.resize(self.rows.len().max(row + 1), false);
        if !std::mem::replace(&mut self.rows[row], true) {
            self.found.push((row, found(), expected));
        }
    }

    /// Whether every row can be used.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Whether a row cannot be used.
    pub fn is_bad(&self, row: usize) -> bool {
        self.rows.get(row).copied().unwrap_or(false)
    }
}

/// A column of a row group that is being read.
pub struct GroupColumn<P: DataType, T> {
    pages: Pages,
    /// Rows of this page that are still to come; 0 before the first page.
    left: usize,
    levels: Option<Keys>,
    values: Values<P>,
    dictionary: Dictionary<P, T>,
    /// The values of the rows that are being read.
    read: Vec<P::T>,
    /// The existing ones.
    known: Vec<bool>,
}

enum Values<P: DataType> {
    Keys(Keys),
    Library(Box<ColumnReaderImpl<P>>),
}

struct Dictionary<P: DataType, T> {
    values: Vec<P::T>,
    meanings: Option<KeyTable<T>>,
    all_make_sense: bool,
}

impl<P: DataType, T: Copy> GroupColumn<P, T> {
    /// A column at its first row.
    ///
    /// # Errors
    /// When it cannot be read at all.
    pub fn new(
        file: &PartFile,
        chunk: &ColumnChunkMetaData,
        rows: usize,
    ) -> Result<GroupColumn<P, T>> {
        Ok(GroupColumn {
            pages: Pages::new(file, chunk, rows)?,
            left: 0,
            levels: None,
            values: Values::Keys(Keys::new(Bytes::new(), 0)?),
            dictionary: Dictionary {
                values: Vec::new(),
                meanings: None,
                all_make_sense: true,
            },
            read: Vec::new(),
            known: Vec::new(),
        })
    }

    /// Appends the next rows, tells how many of them are null, and marks those that make no sense.
    ///
    /// # Errors
    /// When there are fewer, or they cannot be decoded.
    pub fn read<M: Meaning<P::T, Is = T>>(
        &mut self,
        rows: usize,
        meaning: &mut M,
        out: &mut Vec<T>,
        bad: &mut Bad,
    ) -> Result<usize> {
        let first = out.len();
        let mut nulls = 0;
        while out.len() - first < rows {
            if self.left == 0 {
                self.enter_page(meaning)?;
                continue;
            }
            let row = out.len() - first;
            let some = (rows - row).min(self.left);
            let present = self.read_levels(some)?;
            let wrong = self.read_values(present, meaning, out)?;
            self.left -= some;
            if present < some {
                space(&self.known, out, first + row, meaning.unknown());
                self.mark_nulls(row, meaning, bad);
                nulls += some - present;
            }
            self.mark_wrong(row, &wrong, meaning, bad);
        }
        Ok(nulls)
    }

    fn enter_page<M: Meaning<P::T, Is = T>>(&mut self, meaning: &mut M) -> Result<()> {
        match self.pages.next_part()? {
            None => Err(ParquetError::EOF(
                "found the end of a column, expected more rows".to_owned(),
            )),
            Some(ColumnPart::Dictionary(bytes, count)) => {
                let values = &mut self.dictionary.values;
                values.clear();
                let mut reader = self
                    .pages
                    .library_reader::<P>(bytes, count, Encoding::PLAIN);
                reader.read_records(count, None, None, values)?;
                let all: Vec<Option<T>> =
                    values.iter().map(|value| meaning.decode(value)).collect();
                self.dictionary.all_make_sense = all.iter().all(Option::is_some);
                let unknown = meaning.unknown();
                let meanings = all.into_iter().map(|meant| meant.unwrap_or(unknown));
                self.dictionary.meanings = Some(KeyTable::new(meanings, unknown));
                Ok(())
            }
            Some(ColumnPart::Rows(RowsPart {
                rows,
                levels,
                encoding,
                values,
            })) => {
                self.left = rows;
                self.levels = levels;
                #[allow(deprecated, reason = "files of the format's first version have it")]
                let is_keys = matches!(
                    encoding,
                    Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY
                );
                self.values = if is_keys {
                    Values::Keys(Keys::of_page(&values)?)
                } else {
                    Values::Library(self.pages.library_reader(values, rows, encoding))
                };
                Ok(())
            }
        }
    }

    /// Finds out which of the next rows have a value, and how many.
    fn read_levels(&mut self, rows: usize) -> Result<usize> {
        let Some(levels) = &mut self.levels else {
            return Ok(rows);
        };
        self.known.clear();
        levels.read(rows, &KeyTable::new([false, true], false), &mut self.known)?;
        Ok(self.known.iter().filter(|known| **known).count())
    }

    /// Appends the meanings of the next values; returns the invalid ones, by their place among these.
    fn read_values<M: Meaning<P::T, Is = T>>(
        &mut self,
        count: usize,
        meaning: &mut M,
        out: &mut Vec<T>,
    ) -> Result<Vec<(usize, P::T)>> {
        match &mut self.values {
            Values::Keys(keys) => self.dictionary.read(keys, count, meaning, out),
            Values::Library(reader) => {
                self.read.clear();
                reader.read_records(count, None, None, &mut self.read)?;
                if self.read.len() != count {
                    return Err(ParquetError::EOF(
                        "found the end of a page, expected more values".to_owned(),
                    ));
                }
                Ok(translate(&mut self.read, meaning, out))
            }
        }
    }

    fn mark_nulls<M: Meaning<P::T>>(&self, row: usize, meaning: &M, bad: &mut Bad) {
        let Some((found, expected)) = meaning.complaint(None) else {
            return;
        };
        for (place, _) in self.known.iter().enumerate().filter(|(_, known)| !**known) {
            bad.mark(row + place, || found.clone(), expected);
        }
    }

    fn mark_wrong<M: Meaning<P::T>>(
        &self,
        row: usize,
        wrong: &[(usize, P::T)],
        meaning: &M,
        bad: &mut Bad,
    ) {
        if wrong.is_empty() {
            return;
        }
        let known = |(place, known): (usize, &bool)| known.then_some(place);
        let rows: Option<Vec<usize>> = self
            .levels
            .is_some()
            .then(|| self.known.iter().enumerate().filter_map(known).collect());
        for (place, value) in wrong {
            if let Some((found, expected)) = meaning.complaint(Some(value)) {
                let place = rows
                    .as_ref()
                    .map_or(Some(*place), |rows| rows.get(*place).copied());
                bad.mark(row + place.unwrap_or(0), || found, expected);
            }
        }
    }
}

impl<P: DataType, T: Copy> Dictionary<P, T> {
    fn read<M: Meaning<P::T, Is = T>>(
        &self,
        keys: &mut Keys,
        count: usize,
        meaning: &mut M,
        out: &mut Vec<T>,
    ) -> Result<Vec<(usize, P::T)>> {
        let Some(meanings) = &self.meanings else {
            return Err(ParquetError::General(
                "found keys without a dictionary".to_owned(),
            ));
        };
        if self.all_make_sense {
            keys.read(count, meanings, out)?;
            return Ok(Vec::new());
        }
        let places = KeyTable::new(0..self.values.len(), 0);
        let mut read = Vec::new();
        keys.read(count, &places, &mut read)?;
        let mut values: Vec<P::T> = read
            .into_iter()
            .map(|place| self.values[place].clone())
            .collect();
        Ok(translate(&mut values, meaning, out))
    }
}

/// Appends the meanings of values; returns the invalid ones.
fn translate<V: Clone, M: Meaning<V>>(
    values: &mut Vec<V>,
    meaning: &mut M,
    out: &mut Vec<M::Is>,
) -> Vec<(usize, V)> {
    if meaning.of_all(values, out) {
        return Vec::new();
    }
    let unknown = meaning.unknown();
    out.extend(
        values
            .iter()
            .map(|value| meaning.decode(value).unwrap_or(unknown)),
    );
    let wrong = values
        .iter()
        .enumerate()
        .filter(|(_, value)| meaning.decode(value).is_none());
    wrong.map(|(place, value)| (place, value.clone())).collect()
}

/// Moves the values from `first` on to the rows that have one.
fn space<T: Copy>(known: &[bool], out: &mut Vec<T>, first: usize, unknown: T) {
    let mut from = out.len();
    out.resize(first + known.len(), unknown);
    for (row, known) in (first..out.len()).zip(known).rev() {
        if *known {
            from -= 1;
            out[row] = out[from];
        } else {
            out[row] = unknown;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_move_to_their_rows() {
        let mut out = vec![9, 1, 2, 3];
        space(
            &[false, true, false, false, true, true, false],
            &mut out,
            1,
            0,
        );
        assert_eq!(out, [9, 0, 1, 0, 0, 2, 3, 0]);
    }
}
