//! Batches to a Parquet file.
//!
//! A row group is held in memory, encoded, until it is full (some megabytes). Devices and layers are known
//! only at the end, when the metadata is written.

use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;

use crate::batch::{Batch, UNKNOWN_NS, UNKNOWN_PID};
use crate::error::Error;
use crate::names::{Device, Names};
use crate::op::Layer;
use crate::parquet::meta::{self, WriterFacts};
use crate::parquet::rows::{ColumnRows, RowsWriter, known};
use crate::parquet::schema::{At, trace_schema, writer_properties};
use crate::parquet::words::NO_WORD;
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
pub(super) fn columns_of(batch: &Batch) -> Result<Vec<ColumnRows<'_>>, ParquetError> {
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
        device.map(|device| device.name.as_bytes())
    };
    let columns = vec![
        ColumnRows::I64(batch.time_ns.clone(), None),
        ColumnRows::of_words(batch.device.iter().copied(), device),
        ColumnRows::of_words(batch.layer.iter().copied(), |layer| {
            Some(layer.word().as_bytes())
        }),
        ColumnRows::of_words(batch.op.iter().copied(), |op| Some(op.word().as_bytes())),
        ColumnRows::I32(batch.flags.clone(), None),
        ColumnRows::I64(sectors.collect(), None),
        ColumnRows::I32(rem_bytes.collect(), None),
        ColumnRows::I64(lengths, None),
        known_i64(&batch.queue_ns, rows),
        known_i64(&batch.device_ns, rows),
        known_pid(&batch.pid, rows),
        name_words(&batch.comm, batch),
        known_i64(&batch.cgroup, rows),
        name_words(&batch.file, batch),
        known_pid(&batch.tid, rows),
    ];
    match &columns[At::Device as usize] {
        ColumnRows::Words(_, devices) if devices.contains(&NO_WORD) => Err(ParquetError::General(
            "found an I/O of a device without a name".to_owned(),
        )),
        _ => Ok(columns),
    }
}

fn known_i64(column: &[i64], rows: usize) -> ColumnRows<'static> {
    if column.is_empty() {
        return ColumnRows::I64(Vec::new(), Some(vec![0; rows]));
    }
    let cells = column.iter().map(|&ns| (ns != UNKNOWN_NS).then_some(ns));
    let (values, levels) = known(cells);
    ColumnRows::I64(values, levels)
}

fn known_pid(column: &[i32], rows: usize) -> ColumnRows<'static> {
    if column.is_empty() {
        return ColumnRows::I32(Vec::new(), Some(vec![0; rows]));
    }
    let cells = column
        .iter()
        .map(|&pid| (pid != UNKNOWN_PID).then_some(pid));
    let (values, levels) = known(cells);
    ColumnRows::I32(values, levels)
}

fn name_words<'names>(column: &[u32], batch: &'names Batch) -> ColumnRows<'names> {
    if column.is_empty() {
        return ColumnRows::Words(Vec::new(), vec![NO_WORD; batch.len()]);
    }
    ColumnRows::of_words(column.iter().copied(), |id| {
        batch.names.word_of(id).map(str::as_bytes)
    })
}
