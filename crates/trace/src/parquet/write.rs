//! Batches to a Parquet file.
//!
//! A row group is held in memory, encoded, until it is full (some megabytes). Devices and layers are known
//! only at the end, when the metadata is written.

use std::sync::Arc;

use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use rustc_hash::FxHashMap;

use crate::batch::{Batch, UNKNOWN_NS, UNKNOWN_PID};
use crate::error::Error;
use crate::names::{Device, Names};
use crate::op::{Layer, Op};
use crate::parquet::meta::{self, WriterFacts};
use crate::parquet::rows::{ColumnRows, RowsWriter, Values};
use crate::parquet::schema::{trace_schema, writer_properties};
use crate::source::SourceInfo;
use crate::write::{Output, TraceWriter, Written};

/// Writes schema version 1.
pub struct ParquetWriter {
    writer: RowsWriter<Output>,
    path: String,
    noted: Noted,
}

impl ParquetWriter {
    /// Begins a file.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn new(output: Output) -> Result<ParquetWriter, Error> {
        let path = output.path();
        let writer = trace_schema()
            .and_then(|schema| RowsWriter::new(output, schema, writer_properties()))
            .map_err(|error| write_error(&path, error))?;
        Ok(ParquetWriter {
            writer,
            path,
            noted: Noted::default(),
        })
    }
}

impl TraceWriter for ParquetWriter {
    fn write(&mut self, batch: &Batch) -> Result<(), Error> {
        if batch.is_empty() {
            return Ok(());
        }
        self.noted.see(batch);
        let rows = columns_of(batch).and_then(|rows| self.writer.write(batch.len(), &rows));
        rows.map_err(|error| write_error(&self.path, error))
    }

    fn finish(mut self: Box<Self>, info: &SourceInfo) -> Result<Written, Error> {
        for pair in self.noted.metadata(info) {
            self.writer.file_mut().append_key_value_metadata(pair);
        }
        let output = self
            .writer
            .finish()
            .map_err(|error| write_error(&self.path, error))?;
        output.commit()?;
        Ok(Written {
            events: self.noted.events,
            losses: Vec::new(),
        })
    }
}

/// Facts about the rows so far, for the metadata.
pub(super) struct Noted {
    names: Arc<Names>,
    devices: Vec<Device>,
    layers: Vec<Layer>,
    last_ns: i64,
    in_order: bool,
    /// How many.
    pub(super) events: u64,
}

impl Default for Noted {
    fn default() -> Noted {
        Noted {
            names: Arc::default(),
            devices: Vec::new(),
            layers: Vec::new(),
            last_ns: i64::MIN,
            in_order: true,
            events: 0,
        }
    }
}

impl Noted {
    /// Takes note of a batch.
    pub(super) fn see(&mut self, batch: &Batch) {
        for layer in Layer::ALL {
            if !self.layers.contains(&layer) && batch.layer.contains(&layer) {
                self.layers.push(layer);
                self.layers.sort_unstable();
            }
        }
        let first_ns = batch.time_ns.first().copied().unwrap_or(self.last_ns);
        self.in_order &= self.last_ns <= first_ns && batch.is_in_order();
        self.last_ns = batch.time_ns.last().copied().unwrap_or(self.last_ns);
        if !Arc::ptr_eq(&self.names, &batch.names) {
            self.keep_devices();
            self.names = Arc::clone(&batch.names);
        }
        self.events += batch.len() as u64;
    }

    /// Keeps the present facts about devices: a later batch may come from another source.
    fn keep_devices(&mut self) {
        for device in self.names.devices() {
            match self
                .devices
                .iter_mut()
                .find(|kept| kept.name == device.name)
            {
                Some(kept) => kept.clone_from(device),
                None => self.devices.push(device.clone()),
            }
        }
    }

    /// The metadata of a file of these rows.
    pub(super) fn metadata(&mut self, info: &SourceInfo) -> Vec<KeyValue> {
        self.keep_devices();
        let seen = WriterFacts {
            devices: &self.devices,
            layers: &self.layers,
            in_order: self.in_order,
        };
        meta::write(info, &seen)
    }
}

pub(super) fn write_error(path: &str, error: ParquetError) -> Error {
    let source = match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(source) => *source,
            Err(other) => std::io::Error::other(other),
        },
        other => std::io::Error::other(other),
    };
    Error::Write {
        path: path.to_owned(),
        source,
    }
}

/// The columns of a batch, in the order of the schema.
pub(super) fn columns_of(batch: &Batch) -> Result<Vec<ColumnRows>, ParquetError> {
    let rows = batch.len();
    let sectors = batch
        .start_bytes
        .iter()
        .map(|start| (start / 512).cast_signed());
    let rem_bytes = batch.start_bytes.iter().map(|start| (start % 512) as i32);
    let lengths: Result<Vec<i64>, _> = batch
        .len_bytes
        .iter()
        .map(|&len| i64::try_from(len))
        .collect();
    let lengths =
        lengths.map_err(|_| ParquetError::General("found a length above 2^63 bytes".to_owned()))?;
    let device = |id: u32| {
        let device = batch.names.devices().get(id as usize);
        device.map(|device| device.name.as_str())
    };
    let layer = |id: u32| Layer::ALL.get(id as usize).map(|layer| layer.word());
    let op = |id: u32| Op::ALL.get(id as usize).map(|op| op.word());
    let layers = batch.layer.iter().map(|&layer| layer as u32);
    let ops = batch.op.iter().map(|&op| op as u32);
    Ok(vec![
        ColumnRows::known(Values::I64(batch.time_ns.clone())),
        needed_words(batch.device.iter().copied(), device)?,
        needed_words(layers, layer)?,
        needed_words(ops, op)?,
        ColumnRows::known(Values::I32(batch.flags.clone())),
        ColumnRows::known(Values::I64(sectors.collect())),
        ColumnRows::known(Values::I32(rem_bytes.collect())),
        ColumnRows::known(Values::I64(lengths)),
        known_i64(&batch.queue_ns, rows),
        known_i64(&batch.device_ns, rows),
        known_pid(&batch.pid, rows),
        name_words(&batch.comm, batch),
        known_i64(&batch.cgroup, rows),
        name_words(&batch.file, batch),
        known_pid(&batch.tid, rows),
    ])
}

/// A column of which no value is known.
fn unknown(values: Values, rows: usize) -> ColumnRows {
    ColumnRows {
        values,
        levels: Some(vec![0; rows]),
    }
}

fn known_i64(column: &[i64], rows: usize) -> ColumnRows {
    if column.is_empty() {
        return unknown(Values::I64(Vec::new()), rows);
    }
    let cells = column.iter().map(|&ns| (ns != UNKNOWN_NS).then_some(ns));
    ColumnRows::perhaps(cells, Values::I64)
}

fn known_pid(column: &[i32], rows: usize) -> ColumnRows {
    if column.is_empty() {
        return unknown(Values::I32(Vec::new()), rows);
    }
    let cells = column
        .iter()
        .map(|&pid| (pid != UNKNOWN_PID).then_some(pid));
    ColumnRows::perhaps(cells, Values::I32)
}

fn name_words(column: &[u32], batch: &Batch) -> ColumnRows {
    if column.is_empty() {
        return unknown(Values::Words(Vec::new()), batch.len());
    }
    let words = words_of(column.iter().copied(), |id| batch.names.word_of(id));
    ColumnRows::perhaps(words, Values::Words)
}

fn needed_words<'names>(
    ids: impl Iterator<Item = u32>,
    word: impl Fn(u32) -> Option<&'names str>,
) -> Result<ColumnRows, ParquetError> {
    let words: Option<Vec<ByteArray>> = words_of(ids, word).collect();
    let words = words.ok_or_else(|| ParquetError::General("found a row without a word".to_owned()));
    Ok(ColumnRows::known(Values::Words(words?)))
}

/// The words of these numbers; they share the memory of equal ones.
fn words_of<'names>(
    ids: impl Iterator<Item = u32>,
    word: impl Fn(u32) -> Option<&'names str>,
) -> impl Iterator<Item = Option<ByteArray>> {
    let mut words: FxHashMap<u32, Option<ByteArray>> = FxHashMap::default();
    let mut last: Option<(u32, Option<ByteArray>)> = None;
    ids.map(move |id| {
        // Neighbours mostly share device, layer and command.
        if let Some((known, word)) = &last
            && *known == id
        {
            return word.clone();
        }
        let word = words
            .entry(id)
            .or_insert_with(|| word(id).map(ByteArray::from))
            .clone();
        last = Some((id, word.clone()));
        word
    })
}
