//! Words of a dictionary column in terms of a trace's own numbers, by a table made once a dictionary; and the
//! rows that turn out to be of no use.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray};

/// Tables of this size are looked up by the low byte of a key, which needs no check of bounds.
const SMALL: usize = 256;

/// Rows that cannot be used, and why.
#[derive(Default)]
pub struct Bad {
    rows: Vec<bool>,
    /// Row, what was found, what was expected.
    pub found: Vec<(usize, String, &'static str)>,
}

impl Bad {
    /// Notes that a row of `rows` cannot be used.
    pub fn mark(&mut self, rows: usize, row: usize, found: impl FnOnce() -> String, expected: &'static str) {
        self.rows.resize(rows, false);
        if let Some(bad) = self.rows.get_mut(row)
            && !std::mem::replace(bad, true)
        {
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

/// A dictionary's numbers in terms of ours.
pub struct Remap<T> {
    values: Option<ArrayRef>,
    /// By key; filled up with "unknown" to at least [`SMALL`].
    table: Vec<T>,
    meaningless: Vec<bool>,
    any_meaningless: bool,
}

impl<T> Default for Remap<T> {
    fn default() -> Remap<T> {
        Remap { values: None, table: Vec::new(), meaningless: Vec::new(), any_meaningless: false }
    }
}

impl<T: Copy> Remap<T> {
    /// Makes the table unless the dictionary is still the one it was made of. The dictionary is kept, so that
    /// no other one can come to lie at its address.
    pub fn learn(
        &mut self,
        words: &DictionaryArray<Int32Type>,
        unknown: T,
        mut map: impl FnMut(&str) -> Option<T>,
    ) {
        let address = |values: &ArrayRef| {
            let words = values.as_string_opt::<i32>()?;
            Some((words.values().as_ptr(), words.value_offsets().as_ptr(), words.len()))
        };
        if let Some(known) = &self.values
            && address(known) == address(words.values())
        {
            return;
        }
        self.values = Some(words.values().clone());
        self.table.clear();
        self.meaningless.clear();
        if let Some(words) = words.values().as_string_opt::<i32>() {
            for word in words {
                let mapped = word.and_then(&mut map);
                self.meaningless.push(mapped.is_none());
                self.table.push(mapped.unwrap_or(unknown));
            }
        }
        self.any_meaningless = self.meaningless.contains(&true);
        self.table.resize(self.table.len().max(SMALL), unknown);
    }

    /// Appends what the keys stand for.
    pub fn fill(&self, words: &DictionaryArray<Int32Type>, unknown: T, out: &mut Vec<T>) {
        let keys = words.keys().values();
        if let Ok(small) = <&[T; SMALL]>::try_from(self.table.as_slice()) {
            // The library has checked the keys against the dictionary.
            out.extend(keys.iter().map(|&key| small[usize::from(key as u8)]));
        } else {
            let place = |key: &i32| usize::try_from(*key).unwrap_or(usize::MAX);
            out.extend(keys.iter().map(|key| self.table.get(place(key)).copied().unwrap_or(unknown)));
        }
        if let Some(nulls) = words.nulls().filter(|nulls| nulls.null_count() > 0) {
            for (value, known) in out.iter_mut().zip(nulls) {
                if !known {
                    *value = unknown;
                }
            }
        }
    }

    /// Marks rows without a word or with one that means nothing.
    pub fn mark(&self, words: &DictionaryArray<Int32Type>, expected: &'static str, bad: &mut Bad) {
        let keys = words.keys();
        if !self.any_meaningless && keys.null_count() == 0 && !words.values().is_empty() {
            return;
        }
        for row in 0..keys.len() {
            let key = keys.is_valid(row).then(|| usize::try_from(keys.value(row)).unwrap_or(usize::MAX));
            if key.and_then(|key| self.meaningless.get(key)) != Some(&false) {
                let values = words.values().as_string_opt::<i32>();
                let word = key.zip(values).filter(|(key, words)| *key < words.len());
                let found = || {
                    word.map_or("null".to_owned(), |(key, words)| words.value(key).escape_debug().collect())
                };
                bad.mark(keys.len(), row, found, expected);
            }
        }
    }
}
