//! From the library's columns to those of a [`Batch`].
//!
//! A column that the statistics of its row group show to be one value throughout is not decoded at all, one
//! that is all null stays empty. Names come as numbers into a dictionary; those are mapped through a table
//! made once a dictionary, never by comparing words row by row.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, RecordBatch};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;

use crate::batch::{Batch, UNKNOWN_NS, UNKNOWN_PID};
use crate::names::Names;
use crate::op::{Layer, Op};
use crate::parquet::schema::{At, COLUMNS};

/// Sectors beyond this have no byte address in 63 bits.
const SECTORS_BITS: u32 = 54;
/// No length comes near 2^62; with this bound the end of an I/O cannot overflow.
const LEN_BITS: u32 = 62;
/// Bits of the bytes within a sector.
const REM_BITS: u32 = 9;

/// Where the values of a column of a row group come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Not in the file, not wanted, or all null.
    Absent,
    /// One number throughout.
    Number(i64),
    /// One word throughout.
    Word(String),
    /// A column of the library's batches, by its place there.
    Array(usize),
}

/// What the statistics of a row group say of a column: all null, one value, or nothing of use.
#[must_use]
pub fn source_by_statistics(chunk: &ColumnChunkMetaData, rows: i64, nullable: bool) -> Option<Source> {
    let statistics = chunk.statistics()?;
    let never_null = chunk.column_descr().max_def_level() == 0;
    let nulls = if never_null { Some(0) } else { statistics.null_count_opt() };
    if nullable && nulls == u64::try_from(rows).ok() {
        return Some(Source::Absent);
    }
    if nulls != Some(0) {
        return None;
    }
    match statistics {
        Statistics::Int32(range) => {
            range.min_opt().filter(|min| Some(*min) == range.max_opt()).map(|&one| Source::Number(one.into()))
        }
        Statistics::Int64(range) => {
            range.min_opt().filter(|min| Some(*min) == range.max_opt()).map(|&one| Source::Number(one))
        }
        // Long words are cut in the statistics, which the flags tell.
        Statistics::ByteArray(range) if range.min_is_exact() && range.max_is_exact() => {
            let one = range.min_bytes_opt().filter(|min| Some(*min) == range.max_bytes_opt())?;
            std::str::from_utf8(one).ok().map(|word| Source::Word(word.to_owned()))
        }
        _ => None,
    }
}

/// Rows that cannot be used, and why the first of each kind cannot.
#[derive(Default)]
pub struct Bad {
    rows: Vec<bool>,
    /// Row, what was found, what was expected.
    pub found: Vec<(usize, String, &'static str)>,
}

impl Bad {
    fn mark(&mut self, rows: usize, row: usize, found: impl FnOnce() -> String, expected: &'static str) {
        self.rows.resize(rows, false);
        if let Some(bad) = self.rows.get_mut(row)
            && !std::mem::replace(bad, true)
        {
            self.found.push((row, found(), expected));
        }
    }

    /// Whether every row can be used.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Whether a row cannot be used.
    #[must_use]
    pub fn is_bad(&self, row: usize) -> bool {
        self.rows.get(row).copied().unwrap_or(false)
    }
}

/// A dictionary's numbers in terms of ours.
struct Remap<T> {
    values: Option<ArrayRef>,
    table: Vec<T>,
    unknown_words: Vec<bool>,
    any_unknown: bool,
}

impl<T> Default for Remap<T> {
    fn default() -> Remap<T> {
        Remap { values: None, table: Vec::new(), unknown_words: Vec::new(), any_unknown: false }
    }
}

impl<T: Copy> Remap<T> {
    /// Makes the table unless the dictionary is still the one it was made of. The dictionary is kept, so that
    /// no other one can come to lie at its address.
    fn learn(
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
        self.unknown_words.clear();
        if let Some(words) = words.values().as_string_opt::<i32>() {
            for word in words {
                let mapped = word.and_then(&mut map);
                self.unknown_words.push(mapped.is_none());
                self.table.push(mapped.unwrap_or(unknown));
            }
        }
        self.any_unknown = self.unknown_words.contains(&true);
    }

    fn fill(&self, words: &DictionaryArray<Int32Type>, unknown: T, out: &mut Vec<T>) {
        let keys = words.keys().values();
        let place = |key: &i32| usize::try_from(*key).unwrap_or(usize::MAX);
        out.extend(keys.iter().map(|key| self.table.get(place(key)).copied().unwrap_or(unknown)));
        if let Some(nulls) = words.nulls().filter(|nulls| nulls.null_count() > 0) {
            for (value, known) in out.iter_mut().zip(nulls) {
                if !known {
                    *value = unknown;
                }
            }
        }
    }

    /// Marks rows without a word or with one that means nothing.
    fn mark(&self, words: &DictionaryArray<Int32Type>, expected: &'static str, bad: &mut Bad) {
        let keys = words.keys();
        if !self.any_unknown && keys.null_count() == 0 {
            return;
        }
        for row in 0..keys.len() {
            let key = keys.is_valid(row).then(|| usize::try_from(keys.value(row)).unwrap_or(usize::MAX));
            if key.and_then(|key| self.unknown_words.get(key)) != Some(&false) {
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

/// Makes batches of the columns of one row group.
pub struct Decoder {
    sources: [Source; COLUMNS.len()],
    device: Remap<u32>,
    layer: Remap<Layer>,
    op: Remap<Op>,
    comm: Remap<u32>,
    file: Remap<u32>,
}

impl Decoder {
    /// A decoder of columns that come from these places.
    #[must_use]
    pub fn new(sources: [Source; COLUMNS.len()]) -> Decoder {
        Decoder {
            sources,
            device: Remap::default(),
            layer: Remap::default(),
            op: Remap::default(),
            comm: Remap::default(),
            file: Remap::default(),
        }
    }

    /// Appends the library's rows to an empty batch; returns the rows that cannot be used.
    pub fn fill(&mut self, rows: &RecordBatch, names: &mut Names, batch: &mut Batch) -> Bad {
        let mut bad = Bad::default();
        let count = rows.num_rows();
        let take = Taker { sources: &self.sources, rows, count };
        take.numbers(At::TimeNs, &mut batch.time_ns, 0, &mut bad);
        take.words(At::Device, &mut self.device, &mut batch.device, u32::MAX, &mut bad, |word| {
            Some(names.device(word))
        });
        take.words(At::Layer, &mut self.layer, &mut batch.layer, Layer::Request, &mut bad, Layer::from_word);
        take.words(At::Op, &mut self.op, &mut batch.op, Op::Other, &mut bad, Op::from_word);
        take.numbers_32(At::Flags, &mut batch.flags, 0, &mut bad);
        take.extents(batch, &mut bad);
        take.numbers(At::QueueNs, &mut batch.queue_ns, UNKNOWN_NS, &mut bad);
        take.not_negative(&batch.queue_ns, "a time not below 0 in queue_ns", &mut bad);
        take.numbers(At::DeviceNs, &mut batch.device_ns, UNKNOWN_NS, &mut bad);
        take.not_negative(&batch.device_ns, "a time not below 0 in device_ns", &mut bad);
        take.numbers_32(At::Pid, &mut batch.pid, UNKNOWN_PID, &mut bad);
        take.words(At::Comm, &mut self.comm, &mut batch.comm, 0, &mut bad, |word| Some(names.word(word)));
        take.numbers(At::Cgroup, &mut batch.cgroup, UNKNOWN_NS, &mut bad);
        take.words(At::File, &mut self.file, &mut batch.file, 0, &mut bad, |word| Some(names.word(word)));
        bad
    }
}

struct Taker<'a> {
    sources: &'a [Source; COLUMNS.len()],
    rows: &'a RecordBatch,
    count: usize,
}

impl Taker<'_> {
    fn array(&self, at: At) -> Option<&ArrayRef> {
        match self.sources[at as usize] {
            Source::Array(place) => self.rows.columns().get(place),
            _ => None,
        }
    }

    fn numbers(&self, at: At, out: &mut Vec<i64>, unknown: i64, bad: &mut Bad) {
        if let Source::Number(one) = self.sources[at as usize] {
            out.resize(self.count, one);
        } else if let Some(column) = self.array(at).and_then(|array| array.as_primitive_opt::<Int64Type>()) {
            if COLUMNS[at as usize].nullable && column.null_count() == self.count {
                return;
            }
            out.extend_from_slice(column.values());
            self.nulls(at, column, out, unknown, bad);
        }
    }

    fn numbers_32(&self, at: At, out: &mut Vec<i32>, unknown: i32, bad: &mut Bad) {
        if let Source::Number(one) = self.sources[at as usize] {
            out.resize(self.count, i32::try_from(one).unwrap_or(unknown));
        } else if let Some(column) = self.array(at).and_then(|array| array.as_primitive_opt::<Int32Type>()) {
            if COLUMNS[at as usize].nullable && column.null_count() == self.count {
                return;
            }
            out.extend_from_slice(column.values());
            self.nulls(at, column, out, unknown, bad);
        }
    }

    /// Unknown where null is allowed, damage where it is not.
    fn nulls<T: Copy>(&self, at: At, column: &dyn Array, out: &mut [T], unknown: T, bad: &mut Bad) {
        let Some(nulls) = column.nulls().filter(|nulls| nulls.null_count() > 0) else { return };
        for (row, (value, known)) in out.iter_mut().zip(nulls).enumerate() {
            if !known {
                *value = unknown;
                if !COLUMNS[at as usize].nullable {
                    bad.mark(
                        self.count,
                        row,
                        || format!("null in {}", COLUMNS[at as usize].name),
                        "a number",
                    );
                }
            }
        }
    }

    fn words<T: Copy>(
        &self,
        at: At,
        remap: &mut Remap<T>,
        out: &mut Vec<T>,
        unknown: T,
        bad: &mut Bad,
        mut map: impl FnMut(&str) -> Option<T>,
    ) {
        let nullable = COLUMNS[at as usize].nullable;
        if let Source::Word(word) = &self.sources[at as usize] {
            let one = map(word);
            out.resize(self.count, one.unwrap_or(unknown));
            for row in 0..if one.is_none() { self.count } else { 0 } {
                bad.mark(self.count, row, || word.escape_debug().collect(), expected_word(at));
            }
        } else if let Some(column) = self.array(at).and_then(|array| array.as_dictionary_opt::<Int32Type>()) {
            if nullable && column.null_count() == self.count {
                return;
            }
            remap.learn(column, unknown, map);
            remap.fill(column, unknown, out);
            if !nullable {
                remap.mark(column, expected_word(at), bad);
            }
        }
    }

    /// Start and length in bytes of sector, rest and length.
    fn extents(&self, batch: &mut Batch, bad: &mut Bad) {
        let (mut sectors, mut rems, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        self.numbers(At::Sector, &mut sectors, 0, bad);
        self.numbers(At::LenBytes, &mut lengths, 0, bad);
        let no_rem = self.sources[At::RemBytes as usize] == Source::Number(0);
        if !no_rem {
            self.numbers_32(At::RemBytes, &mut rems, 0, bad);
        }
        self.within(&sectors, SECTORS_BITS, "a sector from 0 to 2^54", bad);
        self.within(&lengths, LEN_BITS, "a length from 0 to 2^62 bytes", bad);
        batch.start_bytes.extend(sectors.iter().map(|&sector| sector.cast_unsigned() << 9));
        batch.len_bytes.extend(lengths.iter().map(|&len| len.cast_unsigned()));
        if !no_rem {
            let wide: Vec<i64> = rems.iter().map(|&rem| i64::from(rem)).collect();
            self.within(&wide, REM_BITS, "a rest from 0 to 511 bytes", bad);
            for (start, rem) in batch.start_bytes.iter_mut().zip(&rems) {
                *start |= u64::from(rem.cast_unsigned()) & 511;
            }
        }
    }

    /// Marks values below 0 or of more bits.
    fn within(&self, values: &[i64], bits: u32, expected: &'static str, bad: &mut Bad) {
        let any = values.iter().fold(0, |any, &value| any | value).cast_unsigned();
        if any >> bits == 0 {
            return;
        }
        for (row, value) in values.iter().enumerate().filter(|(_, value)| value.cast_unsigned() >> bits != 0)
        {
            bad.mark(self.count, row, || value.to_string(), expected);
        }
    }

    /// Marks values below 0 that do not stand for unknown.
    fn not_negative(&self, values: &[i64], expected: &'static str, bad: &mut Bad) {
        let wrong = |value: i64| (value < 0) & (value != UNKNOWN_NS);
        if !values.iter().fold(false, |any, &value| any | wrong(value)) {
            return;
        }
        for (row, value) in values.iter().enumerate().filter(|(_, value)| wrong(**value)) {
            bad.mark(self.count, row, || value.to_string(), expected);
        }
    }
}

const fn expected_word(at: At) -> &'static str {
    match at {
        At::Layer => "a layer: vfs, bio or request",
        At::Op => "an operation: read, write, discard, flush, write-zeroes or other",
        _ => "the name of a device",
    }
}
