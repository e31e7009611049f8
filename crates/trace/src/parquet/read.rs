//! Reads a trace of schema version 1, row group by row group.
//!
//! Only the columns wanted are decoded. Rows that cannot be are counted and passed over, and so is a row group
//! in which the library fails: the next one is tried. The library is known to panic on some damaged pages
//! instead of returning an error; every call that decodes is guarded against that.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::reader::Length;

use crate::batch::{BATCH_EVENTS, Batch};
use crate::error::{Damage, Error, Place, shown};
use crate::names::Names;
use crate::op::Layer;
use crate::order::Ordered;
use crate::parquet::columns::{Decoder, Source, source_by_statistics};
use crate::parquet::layers::layers_of_rows;
use crate::parquet::meta;
use crate::parquet::pread::PartFile;
use crate::parquet::schema::{At, COLUMNS, SCHEMA_VERSION, leaves_of, read_schema};
use crate::reader::{Columns, Fill, LayerChoice, ReadOptions, Reader};
use crate::source::SourceInfo;

/// Shortest Parquet file: both magic words and the footer's length.
const FILE_BYTES_MIN: u64 = 12;

/// Reads Parquet traces.
pub struct ParquetReader {
    file: PartFile,
    metadata: ArrowReaderMetadata,
    leaves: [Option<usize>; COLUMNS.len()],
    columns: Columns,
    takes: [bool; Layer::ALL.len()],
    names: Names,
    shared_names: Arc<Names>,
    shared_count: (usize, usize),
    info: SourceInfo,
    group: Option<Group>,
    next_group: usize,
    row: u64,
    last_ns: i64,
    failure: Option<ParquetError>,
}

/// The row group that is being read.
struct Group {
    rows: ParquetRecordBatchReader,
    decoder: Decoder,
    /// Rows that are still to come.
    left: u64,
}

/// Opens a trace.
///
/// # Errors
/// When it is cut off, is Parquet but no trace, has a newer schema, or lacks the layer asked for.
pub fn open(
    file: File,
    path: String,
    format: &'static str,
    options: &ReadOptions,
) -> Result<Box<dyn Reader>, Error> {
    let file = PartFile::new(file).map_err(|source| Error::Open { path: path.clone(), source })?;
    check_end(&file, &path)?;
    let library = |source| Error::Parquet { path: path.clone(), source };
    let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = guarded(|| ArrowReaderMetadata::load(&file, plain)).map_err(library)?;
    let mut info = SourceInfo { path: path.clone(), format, verified: true, ..SourceInfo::default() };
    let mut names = Names::default();
    let no_pairs: Vec<KeyValue> = Vec::new();
    let pairs = metadata.metadata().file_metadata().key_value_metadata().unwrap_or(&no_pairs);
    let said = meta::read(pairs, &mut info, &mut names);
    check_version(said.schema.as_deref(), &mut info)?;
    let leaves = leaves_of(metadata.parquet_schema(), metadata.schema())
        .map_err(|(found, expected)| Error::NoTrace { path: path.clone(), found, expected })?;
    let typed = ArrowReaderOptions::new().with_schema(read_schema(metadata.schema()));
    let metadata =
        guarded(|| ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), typed)).map_err(library)?;
    info.layers = match said.layers {
        Some(layers) => layers,
        None => guarded(|| layers_of_rows(&file, &metadata, leaves[At::Layer as usize])).map_err(library)?,
    };
    let takes = layers_taken(options.layer, &info)?;
    let reader = ParquetReader {
        file,
        metadata,
        leaves,
        columns: options.columns,
        takes,
        shared_names: Arc::new(names.clone()),
        shared_count: (names.devices().len(), names.word_count()),
        names,
        info,
        group: None,
        next_group: 0,
        row: 0,
        last_ns: i64::MIN,
        failure: None,
    };
    Ok(if said.in_order { Box::new(reader) } else { Box::new(Ordered::new(Box::new(reader))) })
}

/// A Parquet file says at its end where everything is.
fn check_end(file: &PartFile, path: &str) -> Result<(), Error> {
    let tail = file.tail(4).map_err(|source| Error::Open { path: path.to_owned(), source })?;
    if file.len() >= FILE_BYTES_MIN && tail == b"PAR1" {
        return Ok(());
    }
    let damage = Damage {
        place: Place::Byte(file.len().saturating_sub(4)),
        found: shown(&tail),
        expected:
            "`PAR1` after the footer: recording or copying was cut off, and without its footer no row of a \
                   Parquet file can be found; record or copy it again"
                .to_owned(),
    };
    Err(Error::Malformed { path: path.to_owned(), damage })
}

fn check_version(schema: Option<&str>, info: &mut SourceInfo) -> Result<(), Error> {
    match schema.map(str::parse::<u32>) {
        Some(Ok(1..=SCHEMA_VERSION)) => Ok(()),
        None => {
            info.note(format!("no {} in the metadata: taken as version {SCHEMA_VERSION}", meta::SCHEMA));
            Ok(())
        }
        Some(_) => Err(Error::NewerSchema {
            path: info.path.clone(),
            found: schema.unwrap_or_default().escape_debug().take(20).collect(),
            expected: SCHEMA_VERSION,
        }),
    }
}

fn layers_taken(choice: LayerChoice, info: &SourceInfo) -> Result<[bool; Layer::ALL.len()], Error> {
    let lowest = info.layers.iter().max().copied().unwrap_or(Layer::Request);
    if let LayerChoice::Only(asked) = choice
        && !info.layers.contains(&asked)
    {
        let present = info.layers.iter().map(|layer| layer.word()).collect::<Vec<_>>().join(", ");
        return Err(Error::NoLayer { path: info.path.clone(), asked, present });
    }
    Ok(Layer::ALL.map(|layer| choice.takes(layer, lowest)))
}

/// Calls the library so that a panic in it becomes an error.
pub(super) fn guarded<T>(call: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        Err(ParquetError::General("found data that the Parquet library cannot cope with".to_owned()))
    })
}

impl ParquetReader {
    /// Goes to the next row group of which anything is wanted; `false` when there is none.
    fn enter_group(&mut self) -> bool {
        while let Some(chunks) = self.metadata.metadata().row_groups().get(self.next_group) {
            let index = self.next_group;
            self.next_group += 1;
            let rows = u64::try_from(chunks.num_rows()).unwrap_or(0);
            let (sources, mask) = self.plan(index);
            let unwanted = match &sources[At::Layer as usize] {
                Source::Word(word) => Layer::from_word(word).is_some_and(|layer| !self.takes[layer as usize]),
                _ => false,
            };
            if unwanted || rows == 0 {
                self.row += rows;
                self.info.counts.records += rows;
                continue;
            }
            let builder =
                ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone())
                    .with_row_groups(vec![index])
                    .with_projection(mask)
                    .with_batch_size(BATCH_EVENTS);
            match guarded(|| builder.build()) {
                Ok(reader) => {
                    self.group = Some(Group { rows: reader, decoder: Decoder::new(sources), left: rows });
                    return true;
                }
                Err(error) => self.give_up_rows(rows, error),
            }
        }
        false
    }

    /// Where each column of a row group comes from, and which ones the library has to decode.
    fn plan(&self, index: usize) -> ([Source; COLUMNS.len()], ProjectionMask) {
        let chunks = self.metadata.metadata().row_group(index);
        let mut sources = [const { Source::Absent }; COLUMNS.len()];
        let mut decoded = Vec::new();
        for (at, leaf) in self.leaves.iter().enumerate() {
            let Some(leaf) = leaf.filter(|_| self.is_wanted(at)) else { continue };
            let chunk = &chunks.columns()[leaf];
            // The time is always decoded: it tells how many rows there are.
            let known = source_by_statistics(chunk, chunks.num_rows(), COLUMNS[at].nullable);
            match known.filter(|_| at != At::TimeNs as usize) {
                Some(source) => sources[at] = source,
                None => decoded.push((leaf, at)),
            }
        }
        decoded.sort_unstable();
        for (place, (_, at)) in decoded.iter().enumerate() {
            sources[*at] = Source::Array(place);
        }
        let mask =
            ProjectionMask::leaves(self.metadata.parquet_schema(), decoded.iter().map(|(leaf, _)| *leaf));
        (sources, mask)
    }

    fn is_wanted(&self, at: usize) -> bool {
        let optional = [
            (At::QueueNs, self.columns.queue_ns),
            (At::DeviceNs, self.columns.device_ns),
            (At::Pid, self.columns.pid),
            (At::Comm, self.columns.comm),
            (At::Cgroup, self.columns.cgroup),
            (At::File, self.columns.file),
        ];
        optional.iter().all(|(column, wanted)| *column as usize != at || *wanted)
    }

    /// Puts the next rows of the row group into the batch, if there are any.
    fn read_rows(&mut self, batch: &mut Batch) {
        let Some(group) = &mut self.group else { return };
        let next = guarded(|| group.rows.next().transpose().map_err(ParquetError::from));
        let left = group.left;
        let rows = match next {
            Ok(Some(rows)) if rows.num_rows() > 0 && rows.num_rows() as u64 <= left => rows,
            Ok(None) if left == 0 => {
                self.group = None;
                return;
            }
            Ok(_) => {
                let error = ParquetError::EOF(format!("found another count of rows, expected {left} more"));
                return self.give_up_rows(left, error);
            }
            Err(error) => return self.give_up_rows(left, error),
        };
        group.left -= rows.num_rows() as u64;
        let bad = group.decoder.fill(&rows, &mut self.names, batch);
        self.info.counts.records += rows.num_rows() as u64;
        for (row, found, expected) in &bad.found {
            let place = Place::Row(self.row + *row as u64);
            self.info.damage(Damage { place, found: found.clone(), expected: (*expected).to_owned() });
        }
        self.row += rows.num_rows() as u64;
        if !bad.is_empty() {
            batch.retain(|_, row| !bad.is_bad(row));
        }
        if !batch.layer.iter().fold(true, |all, &layer| all & self.takes[layer as usize]) {
            let takes = self.takes;
            batch.retain(|batch, row| takes[batch.layer[row] as usize]);
        }
    }

    /// Passes over the rest of a row group.
    fn give_up_rows(&mut self, rows: u64, error: ParquetError) {
        self.group = None;
        let damage = Damage {
            place: Place::Row(self.row),
            found: error.to_string(),
            expected: format!("{rows} more rows of the row group"),
        };
        self.info.damage(damage);
        self.info.counts.damaged += rows.saturating_sub(1);
        self.info.counts.records += rows;
        self.row += rows;
        self.failure.get_or_insert(error);
    }

    fn hand_over(&mut self, batch: &mut Batch) {
        let count = (self.names.devices().len(), self.names.word_count());
        if count != self.shared_count {
            self.shared_count = count;
            self.shared_names = Arc::new(self.names.clone());
        }
        batch.names = Arc::clone(&self.shared_names);
        self.info.counts.events += batch.len() as u64;
        let first_ns = batch.time_ns.first().copied().unwrap_or(self.last_ns);
        if first_ns >= self.last_ns && batch.is_in_order() {
            self.last_ns = batch.time_ns.last().copied().unwrap_or(self.last_ns);
            return;
        }
        for &time_ns in &batch.time_ns {
            self.info.counts.out_of_order += u64::from(time_ns < self.last_ns);
            self.last_ns = self.last_ns.max(time_ns);
        }
    }
}

impl Reader for ParquetReader {
    fn fill(&mut self, batch: &mut Batch) -> Result<Fill, Error> {
        batch.clear();
        while batch.is_empty() {
            if self.group.is_none() && !self.enter_group() {
                return match self.failure.take() {
                    Some(source) if self.info.counts.events == 0 => {
                        Err(Error::Parquet { path: self.info.path.clone(), source })
                    }
                    _ => Ok(Fill::End),
                };
            }
            self.read_rows(batch);
        }
        self.hand_over(batch);
        Ok(Fill::Events)
    }

    fn info(&self) -> &SourceInfo {
        &self.info
    }
}
