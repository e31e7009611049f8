//! From the library's columns to those of a [`Batch`].
//!
//! Whole columns are copied and checked at once; only where a check fails is it looked at row by row.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};

use crate::batch::{Batch, UNKNOWN_NS, UNKNOWN_PID};
use crate::names::Names;
use crate::op::{Layer, Op};
use crate::parquet::schema::{At, COLUMNS};
use crate::parquet::statistics::Source;
use crate::parquet::words::{Bad, Remap};

/// Sectors beyond this have no byte address in 63 bits.
const SECTORS_BITS: u32 = 54;
/// No length comes near 2^62; with this bound the end of an I/O cannot overflow.
const LEN_BITS: u32 = 62;
/// Bits of the bytes within a sector.
const REM_BITS: u32 = 9;

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
        take.latency(At::QueueNs, &mut batch.queue_ns, "a time not below 0 in queue_ns", &mut bad);
        take.latency(At::DeviceNs, &mut batch.device_ns, "a time not below 0 in device_ns", &mut bad);
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
        let mut spare = Vec::new();
        let sectors = self.borrowed(At::Sector, &mut spare, bad);
        self.within(sectors, SECTORS_BITS, "a sector from 0 to 2^54", bad);
        batch.start_bytes.extend(sectors.iter().map(|&sector| sector.cast_unsigned() << 9));
        spare.clear();
        let lengths = self.borrowed(At::LenBytes, &mut spare, bad);
        self.within(lengths, LEN_BITS, "a length from 0 to 2^62 bytes", bad);
        batch.len_bytes.extend(lengths.iter().map(|&len| len.cast_unsigned()));
        if self.sources[At::RemBytes as usize] != Source::Number(0) {
            let mut rems = Vec::new();
            self.numbers_32(At::RemBytes, &mut rems, 0, bad);
            let wide: Vec<i64> = rems.iter().map(|&rem| i64::from(rem)).collect();
            self.within(&wide, REM_BITS, "a rest from 0 to 511 bytes", bad);
            for (start, rem) in batch.start_bytes.iter_mut().zip(&rems) {
                *start |= u64::from(rem.cast_unsigned()) & 511;
            }
        }
    }

    /// The numbers of a column where they lie, if all are there; else a copy of them.
    fn borrowed<'s>(&'s self, at: At, spare: &'s mut Vec<i64>, bad: &mut Bad) -> &'s [i64] {
        match self.array(at).and_then(|array| array.as_primitive_opt::<Int64Type>()) {
            Some(column) if column.null_count() == 0 => column.values(),
            _ => {
                self.numbers(at, spare, 0, bad);
                spare
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

    /// A time that is never below 0, or unknown.
    fn latency(&self, at: At, out: &mut Vec<i64>, expected: &'static str, bad: &mut Bad) {
        self.numbers(at, out, UNKNOWN_NS, bad);
        // Without nulls the sign bits of all values together tell whether one is below 0.
        let any_null = self.array(at).is_some_and(|column| column.null_count() > 0);
        if !any_null && out.iter().fold(0, |any, &value| any | value) >= 0 {
            return;
        }
        for (row, value) in out.iter().enumerate() {
            if *value < 0 && *value != UNKNOWN_NS {
                bad.mark(self.count, row, || value.to_string(), expected);
            }
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
