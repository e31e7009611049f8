//! Batches to a Parquet file.
//!
//! A row group is held in memory, encoded, until it is full (some megabytes). Devices and layers are known
//! only at the end, when the metadata is written.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use rustc_hash::FxHashMap;

use crate::batch::{Batch, UNKNOWN_NS, UNKNOWN_PID};
use crate::error::Error;
use crate::names::{Device, Names};
use crate::op::{Layer, Op};
use crate::parquet::meta::{self, WriterFacts};
use crate::parquet::schema::{arrow_schema, writer_properties};
use crate::source::SourceInfo;
use crate::write::{Output, TraceWriter, Written};

/// Writes schema version 1.
pub struct ParquetWriter {
    writer: ArrowWriter<Output>,
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
        let writer = ArrowWriter::try_new(output, arrow_schema(), Some(writer_properties()))
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
        let rows = record_batch(batch).and_then(|rows| self.writer.write(&rows));
        rows.map_err(|error| write_error(&self.path, error))
    }

    fn finish(mut self: Box<Self>, info: &SourceInfo) -> Result<Written, Error> {
        for pair in self.noted.metadata(info) {
            self.writer.append_key_value_metadata(pair);
        }
        let output = self
            .writer
            .into_inner()
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

/// A batch in the form that the library writes.
pub(super) fn record_batch(batch: &Batch) -> Result<RecordBatch, ParquetError> {
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
    let layers = word_dictionary(batch.layer.iter().map(|&layer| layer as u32), |id| {
        Layer::ALL.get(id as usize).map(|layer| layer.word())
    });
    let ops = word_dictionary(batch.op.iter().map(|&op| op as u32), |id| {
        Op::ALL.get(id as usize).map(|op| op.word())
    });
    let device = |id: u32| {
        batch
            .names
            .devices()
            .get(id as usize)
            .map(|device| device.name.as_str())
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(batch.time_ns.clone())),
        word_dictionary(batch.device.iter().copied(), device),
        layers,
        ops,
        Arc::new(Int32Array::from(batch.flags.clone())),
        Arc::new(Int64Array::from_iter_values(sectors)),
        Arc::new(Int32Array::from_iter_values(rem_bytes)),
        Arc::new(Int64Array::from(lengths)),
        known_i64(&batch.queue_ns, rows),
        known_i64(&batch.device_ns, rows),
        known_pid(&batch.pid, rows),
        name_words(&batch.comm, batch),
        known_i64(&batch.cgroup, rows),
        name_words(&batch.file, batch),
        known_pid(&batch.tid, rows),
    ];
    Ok(RecordBatch::try_new(arrow_schema(), columns)?)
}

fn known_i64(column: &[i64], rows: usize) -> ArrayRef {
    if column.is_empty() {
        return Arc::new(Int64Array::new_null(rows));
    }
    Arc::new(
        column
            .iter()
            .map(|&ns| (ns != UNKNOWN_NS).then_some(ns))
            .collect::<Int64Array>(),
    )
}

fn known_pid(column: &[i32], rows: usize) -> ArrayRef {
    if column.is_empty() {
        return Arc::new(Int32Array::new_null(rows));
    }
    Arc::new(
        column
            .iter()
            .map(|&pid| (pid != UNKNOWN_PID).then_some(pid))
            .collect::<Int32Array>(),
    )
}

fn name_words(column: &[u32], batch: &Batch) -> ArrayRef {
    let word = |id| batch.names.word_of(id);
    if column.is_empty() {
        word_dictionary(std::iter::repeat_n(0, batch.len()), word)
    } else {
        word_dictionary(column.iter().copied(), word)
    }
}

/// A dictionary column of only the words that occur; ids without a word are null.
fn word_dictionary<'names>(
    ids: impl Iterator<Item = u32>,
    word: impl Fn(u32) -> Option<&'names str>,
) -> ArrayRef {
    let mut places: FxHashMap<u32, Option<i32>> = FxHashMap::default();
    let mut values: Vec<&str> = Vec::new();
    let mut last: Option<(u32, Option<i32>)> = None;
    let mut place = |id: u32| {
        // Neighbours mostly share device, layer and command.
        if let Some((known, place)) = last
            && known == id
        {
            return place;
        }
        let place = *places.entry(id).or_insert_with(|| {
            values.push(word(id)?);
            i32::try_from(values.len() - 1).ok()
        });
        last = Some((id, place));
        place
    };
    let keys: Int32Array = ids.map(&mut place).collect();
    Arc::new(DictionaryArray::<Int32Type>::new(
        keys,
        Arc::new(StringArray::from(values)),
    ))
}
