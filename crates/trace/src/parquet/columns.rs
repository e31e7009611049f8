//! From the columns of a row group to those of a [`Batch`]: the meaning of each number and word.

use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::RowGroupMetaData;

use crate::batch::{Batch, UNKNOWN_NS, UNKNOWN_PID};
use crate::names::Names;
use crate::op::{Layer, Op};
use crate::parquet::column::{Bad, GroupColumn};
use crate::parquet::meaning::{Meaning, Scaled, Word, any_number, is_within, latency};
use crate::parquet::pread::PartFile;
use crate::parquet::schema::{At, COLUMNS};
use crate::parquet::statistics::Source;

/// Sectors beyond this have no byte address in 63 bits.
const SECTORS_BITS: u32 = 54;
/// No length comes near 2^62; with this bound the end of an I/O cannot overflow.
const LEN_BITS: u32 = 62;
/// Bits of the bytes within a sector.
const REM_BITS: u32 = 9;

/// Makes batches of the columns of one row group.
pub struct Decoder {
    time_ns: ColumnInput<Int64Type, i64>,
    device: ColumnInput<ByteArrayType, u32>,
    layer: ColumnInput<ByteArrayType, Layer>,
    op: ColumnInput<ByteArrayType, Op>,
    flags: ColumnInput<Int32Type, i32>,
    sector: ColumnInput<Int64Type, u64>,
    rem_bytes: ColumnInput<Int32Type, u64>,
    len_bytes: ColumnInput<Int64Type, u64>,
    queue_ns: ColumnInput<Int64Type, i64>,
    device_ns: ColumnInput<Int64Type, i64>,
    pid: ColumnInput<Int32Type, i32>,
    tid: ColumnInput<Int32Type, i32>,
    comm: ColumnInput<ByteArrayType, u32>,
    cgroup: ColumnInput<Int64Type, i64>,
    file: ColumnInput<ByteArrayType, u32>,
    /// The rests of the rows that are being read.
    rests: Vec<u64>,
}

impl Decoder {
    /// A decoder of columns that come from these places.
    ///
    /// # Errors
    /// When one of them cannot be read at all.
    pub fn new(
        file: &PartFile,
        group: &RowGroupMetaData,
        sources: &[Source; COLUMNS.len()],
    ) -> Result<Decoder> {
        let inputs = Inputs {
            file,
            group,
            sources,
        };
        Ok(Decoder {
            time_ns: inputs.numbers(At::TimeNs)?,
            device: inputs.byte_arrays(At::Device)?,
            layer: inputs.byte_arrays(At::Layer)?,
            op: inputs.byte_arrays(At::Op)?,
            flags: inputs.numbers_32(At::Flags)?,
            sector: inputs.numbers(At::Sector)?,
            rem_bytes: inputs.numbers_32(At::RemBytes)?,
            len_bytes: inputs.numbers(At::LenBytes)?,
            queue_ns: inputs.numbers(At::QueueNs)?,
            device_ns: inputs.numbers(At::DeviceNs)?,
            pid: inputs.numbers_32(At::Pid)?,
            tid: inputs.numbers_32(At::Tid)?,
            comm: inputs.byte_arrays(At::Comm)?,
            cgroup: inputs.numbers(At::Cgroup)?,
            file: inputs.byte_arrays(At::File)?,
            rests: Vec::new(),
        })
    }

    /// Appends the next rows to an empty batch; returns those that cannot be used.
    ///
    /// # Errors
    /// When there are fewer, or they cannot be decoded.
    pub fn fill(&mut self, rows: usize, names: &mut Names, batch: &mut Batch) -> Result<Bad> {
        let mut bad = Bad::default();
        let mut next = Next {
            rows,
            bad: &mut bad,
        };
        next.read(
            &mut self.time_ns,
            any_number(At::TimeNs, 0),
            &mut batch.time_ns,
        )?;
        let device = Word {
            of: |word: &str| Some(names.device(word)),
            unknown: u32::MAX,
            at: At::Device,
        };
        next.read(&mut self.device, device, &mut batch.device)?;
        let layer = Word {
            of: Layer::from_word,
            unknown: Layer::Request,
            at: At::Layer,
        };
        next.read(&mut self.layer, layer, &mut batch.layer)?;
        let op = Word {
            of: Op::from_word,
            unknown: Op::Other,
            at: At::Op,
        };
        next.read(&mut self.op, op, &mut batch.op)?;
        next.read(&mut self.flags, any_number(At::Flags, 0), &mut batch.flags)?;
        self.fill_extents(&mut next, batch)?;
        next.read(
            &mut self.queue_ns,
            latency(At::QueueNs),
            &mut batch.queue_ns,
        )?;
        next.read(
            &mut self.device_ns,
            latency(At::DeviceNs),
            &mut batch.device_ns,
        )?;
        next.read(
            &mut self.pid,
            any_number(At::Pid, UNKNOWN_PID),
            &mut batch.pid,
        )?;
        next.read(
            &mut self.tid,
            any_number(At::Tid, UNKNOWN_PID),
            &mut batch.tid,
        )?;
        let comm = Word {
            of: |word: &str| Some(names.word(word)),
            unknown: 0,
            at: At::Comm,
        };
        next.read(&mut self.comm, comm, &mut batch.comm)?;
        next.read(
            &mut self.cgroup,
            any_number(At::Cgroup, UNKNOWN_NS),
            &mut batch.cgroup,
        )?;
        let file = Word {
            of: |word: &str| Some(names.word(word)),
            unknown: 0,
            at: At::File,
        };
        next.read(&mut self.file, file, &mut batch.file)?;
        Ok(bad)
    }

    /// Start and length in bytes of sector, rest and length.
    fn fill_extents(&mut self, next: &mut Next<'_>, batch: &mut Batch) -> Result<()> {
        let expected = "a sector from 0 to 2^54";
        let is_sector = |sector: i64| is_within(sector, SECTORS_BITS);
        let start = |sector: i64| sector.cast_unsigned() << 9;
        let start = Scaled {
            makes_sense: is_sector,
            is: start,
            unknown: 0,
            at: At::Sector,
            expected,
        };
        next.read(&mut self.sector, start, &mut batch.start_bytes)?;
        let expected = "a length from 0 to 2^62 bytes";
        let is_len = |len: i64| is_within(len, LEN_BITS);
        let len = Scaled {
            makes_sense: is_len,
            is: i64::cast_unsigned,
            unknown: 0,
            at: At::LenBytes,
            expected,
        };
        next.read(&mut self.len_bytes, len, &mut batch.len_bytes)?;
        if matches!(self.rem_bytes, ColumnInput::One(0)) {
            return Ok(());
        }
        let expected = "a rest from 0 to 511 bytes";
        let is_rest = |rest: i32| is_within(rest.into(), REM_BITS);
        let rest = |rest: i32| u64::from(rest.cast_unsigned());
        let rest = Scaled {
            makes_sense: is_rest,
            is: rest,
            unknown: 0,
            at: At::RemBytes,
            expected,
        };
        self.rests.clear();
        next.read(&mut self.rem_bytes, rest, &mut self.rests)?;
        for (start, rest) in batch.start_bytes.iter_mut().zip(&self.rests) {
            *start |= rest;
        }
        Ok(())
    }
}

/// The source of a column's values.
enum ColumnInput<P: DataType, T> {
    /// From nowhere: the column stays empty.
    Absent,
    /// One value throughout.
    One(P::T),
    /// The file.
    File(Box<GroupColumn<P, T>>),
}

/// The parts of the inputs of a row group.
struct Inputs<'a> {
    file: &'a PartFile,
    group: &'a RowGroupMetaData,
    sources: &'a [Source; COLUMNS.len()],
}

impl Inputs<'_> {
    fn numbers<T: Copy>(&self, at: At) -> Result<ColumnInput<Int64Type, T>> {
        self.input(at, |source| {
            if let Source::Number(one) = source {
                Some(*one)
            } else {
                None
            }
        })
    }

    fn numbers_32<T: Copy>(&self, at: At) -> Result<ColumnInput<Int32Type, T>> {
        let one = |source: &Source| match source {
            Source::Number(one) => i32::try_from(*one).ok(),
            _ => None,
        };
        self.input(at, one)
    }

    fn byte_arrays<T: Copy>(&self, at: At) -> Result<ColumnInput<ByteArrayType, T>> {
        let one = |source: &Source| match source {
            Source::Word(one) => Some(ByteArray::from(one.as_str())),
            _ => None,
        };
        self.input(at, one)
    }

    fn input<P: DataType, T: Copy>(
        &self,
        at: At,
        one: impl Fn(&Source) -> Option<P::T>,
    ) -> Result<ColumnInput<P, T>> {
        let source = &self.sources[at as usize];
        if let Source::Leaf(leaf) = source {
            let rows = usize::try_from(self.group.num_rows()).unwrap_or(0);
            return Ok(ColumnInput::File(Box::new(GroupColumn::new(
                self.file,
                self.group.column(*leaf),
                rows,
            )?)));
        }
        Ok(one(source).map_or(ColumnInput::Absent, ColumnInput::One))
    }
}

/// The rows that are read next, and their faults.
struct Next<'a> {
    rows: usize,
    bad: &'a mut Bad,
}

impl Next<'_> {
    fn read<P: DataType, M: Meaning<P::T>>(
        &mut self,
        input: &mut ColumnInput<P, M::Is>,
        mut meaning: M,
        out: &mut Vec<M::Is>,
    ) -> Result<()> {
        match input {
            ColumnInput::Absent => {}
            ColumnInput::One(one) => {
                let meant = meaning.decode(one);
                out.resize(self.rows, meant.unwrap_or(meaning.unknown()));
                if meant.is_none()
                    && let Some((found, expected)) = meaning.complaint(Some(one))
                {
                    (0..self.rows).for_each(|row| self.bad.mark(row, || found.clone(), expected));
                }
            }
            ColumnInput::File(column) => {
                let nulls = column.read(self.rows, &mut meaning, out, self.bad)?;
                if nulls == self.rows && meaning.complaint(None).is_none() {
                    out.clear();
                }
            }
        }
        Ok(())
    }
}
